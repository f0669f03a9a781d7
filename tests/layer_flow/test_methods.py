"""Layouts by hand, and bounds and plans against brute force on random instances."""

import pytest

from mapgap.catalogue import registry
from mapgap.contract.seeds import samples, seeds
from mapgap.core import Budget, Status
from mapgap.evidence import check
from mapgap.formulations.layer_flow import cover_bound, stages
from mapgap.formulations.layer_flow.certificate import prove
from mapgap.formulations.layer_flow.enumerate import run as enumerate_all
from mapgap.heuristics.layer_flow import one_pipeline, petals, swarm
from mapgap.instances.layer_flow.families import cluster as generated
from mapgap.instances.layer_flow.families import realistic
from mapgap.problems.layer_flow import Instance, Node
from mapgap.problems.layer_flow.evaluate import evaluate
from mapgap.problems.layer_flow.lowered.limits import flow_limit


def mesh(tables, layers, **changes):
    count, wide = len(tables), 10**7
    return Instance(
        name="by hand",
        scale=1,
        layers=layers,
        nodes=tuple(Node(name=f"n{i}", throughput=table) for i, table in enumerate(tables)),
        entry=(wide,) * count,
        exit=(wide,) * count,
        links=tuple(tuple(0 if i == j else wide for j in range(count)) for i in range(count)),
        **changes,
    )


def test_one_pipeline_takes_the_largest_common_throughput():
    # At 4000: 2 + 1 + 1 = 4 layers; at 5000 only 1 + 1 + 1.
    instance = mesh([(9000, 4000), (5000, 3900), (6000, 3000)], 4)
    assert evaluate(instance, one_pipeline.run(instance, Budget(9).start()).plan).objective == 4000
    assert one_pipeline.shares(instance, 5000) is None
    assert one_pipeline.shares(instance, 4000) == {0: 2, 1: 1, 2: 1}


def test_one_pipeline_skips_numbers_of_layers_that_are_slow():
    # T(2) is slow: 3 + 1, not 2 + 2.
    instance = mesh([(900, 10, 800), (900, 10, 800)], 4)
    assert evaluate(instance, one_pipeline.run(instance, Budget(9).start()).plan).objective == 800


def test_swarm_fills_the_stage_of_least_throughput():
    # Two stages of two layers. 50 to the first, 40 and 30 to the second: 50 against 70.
    instance = mesh([(90, 50), (80, 40), (70, 30)], 4)
    plan = swarm.run(instance, Budget(9).start()).plan
    assert plan.starts == (0, 2, 2)
    assert evaluate(instance, plan).objective == 50
    assert swarm.run(instance, Budget(9).start(), stages=3).status is Status.UNKNOWN


def test_petals_goes_where_the_least_throughput_is():
    # Whoever comes first holds layers 1 and 2, the next 3 and 4 (both still 0); the third joins the slower pair.
    instance = mesh([(9, 5), (9, 5), (9, 2)], 4, partial=True)
    plan = petals.run(instance, Budget(9).start()).plan
    assert sorted(plan.starts[:2]) in ([0, 2], [0, 0], [2, 2])
    assert set(plan.counts) == {2}


def test_two_halves_that_no_pair_covers():
    # F = 253 needs one node of up to 7 layers or two of more: 8 x 7 = 56 < 60. So 252 is a bound; area allows 336.
    table = (2678, 1339, 828, 572, 458, 320, 275, 214, 168, 252, 193)
    instance = mesh([table] * 8, 60)
    assert cover_bound.bound(instance, Budget(60).start()) == 252
    assert flow_limit(instance) == 336


def test_stages_beat_one_pipeline_where_nodes_stand_side_by_side():
    # One after the other: a has 2 layers at 100, b and c one each at 60: 60. Side by side b and c hold two at 50 each.
    instance = mesh([(200, 100), (60, 50), (60, 50)], 4)
    assert evaluate(instance, one_pipeline.run(instance, Budget(9).start()).plan).objective == 60
    assert evaluate(instance, stages.run(instance, Budget(9).start()).plan).objective == 100


@pytest.mark.in_turn
@pytest.mark.parametrize("sample", samples(12, 200))
def test_no_bound_is_below_the_optimum_and_no_certificate_claims_more(sample):
    proven = 0
    for seed in sample:
        instance = realistic(seed)
        truth = enumerate_all(instance, Budget(60).start())
        assert truth.status is Status.OPTIMAL
        bound = cover_bound.bound(instance, Budget(60).start())
        assert bound >= truth.bound
        assert cover_bound.bound(instance, Budget(60).start(), known=truth.bound) >= truth.bound
        facts = instance.to_json()
        proof = prove(facts, bound, Budget(60).start())
        assert proof is not None
        check.check({"schema": 1, "instance": facts, "bound": bound, "proof": proof})
        proven += bound == truth.bound
        if truth.bound:
            assert prove(facts, truth.bound - 1, Budget(60).start()) is None
            with pytest.raises(check.Refused):
                check.check({"schema": 1, "instance": facts, "bound": truth.bound - 1, "proof": proof})
    assert proven


@pytest.mark.in_turn
@pytest.mark.parametrize("seed", seeds(2, 20))
def test_on_clusters_no_layout_passes_more_than_the_bound(seed):
    instance = generated(seed)
    bound = cover_bound.bound(instance, Budget(60).start())
    for name in ("one_pipeline", "petals", "swarm", "stages"):
        plan = registry.methods("layer_flow")[name].solve(instance, Budget(20).start()).plan
        assert evaluate(instance, plan).objective <= bound
