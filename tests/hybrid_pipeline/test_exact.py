"""Exact methods of hybrid pipelines against brute force, against each other, and bounds against the simulator."""

import pytest
from pipelines import example

from mapgap.catalogue.registry import methods
from mapgap.contract.seeds import seeds
from mapgap.core import Budget, InputError, Status
from mapgap.formulations.hybrid_pipeline import simulator_bound
from mapgap.instances.hybrid_pipeline import LIBRARY
from mapgap.problems.hybrid_pipeline.evaluate import evaluate, execution_times, slowest_link
from mapgap.problems.hybrid_pipeline.lowered.groups import interchangeable
from mapgap.problems.hybrid_pipeline.simulate import simulate

METHODS = methods("hybrid_pipeline")
BRUTE = METHODS["enumerate"]
EXACT = {name: METHODS[name] for name in ("label_dp", "cpsat", "mip")}


def solved(method, instance, **options):
    result = method.solve(instance, Budget(time_s=300.0), **options)
    if result.plan is None:
        return result.status, None
    checked = evaluate(instance, result.plan)
    assert checked.feasible, checked.violations
    assert checked.objective == result.claimed == result.bound
    return result.status, checked.objective


@pytest.mark.parametrize("seed", seeds(5, 50))
def test_all_agree_on_small_instances(seed):
    instance = LIBRARY.generate("small", seed)
    truth = solved(BRUTE, instance)
    for name, method in EXACT.items():
        assert solved(method, instance) == truth, name
    assert solved(EXACT["label_dp"], instance, engine="python") == truth


@pytest.mark.parametrize("seed", [12, 66, 625, 660])
def test_an_allreduce_may_take_longer_than_all_execution(seed):
    # The only stages compute next to nothing and synchronise large weights: A exceeds every bound on D.
    instance = LIBRARY.generate("realistic", seed)
    truth = solved(BRUTE, instance)
    for name, method in EXACT.items():
        assert solved(method, instance) == truth, name


@pytest.mark.in_turn
def test_the_small_family_has_every_kind():
    family = [LIBRARY.generate("small", seed) for seed in range(60)]
    assert {i.all_devices for i in family} == {True, False}
    assert {i.replanning is None for i in family} == {True, False}
    assert {len(i.micro_batch_sizes) for i in family} == {1, 2}
    assert {len({b for r, row in enumerate(i.bandwidth) for c, b in enumerate(row) if r != c}) > 1 for i in family} == {
        True,
        False,
    }
    infeasible = [BRUTE.solve(i, Budget(300.0)).status is Status.INFEASIBLE for i in family]
    assert 0 < sum(infeasible) < len(infeasible)


def test_the_worked_example():
    # docs/methods/hybrid_pipeline.md: fast l1-l3, slow l4.
    result = EXACT["label_dp"].solve(example(), Budget())
    assert result.bound == 74
    assert [(s.start, s.stop, s.devices) for s in result.plan.stages] == [(0, 3, (0,)), (3, 4, (1,))]


def test_scaling_instance_in_both_engines():
    instance = LIBRARY.generate("scaling", 0)
    assert solved(EXACT["label_dp"], instance) == solved(EXACT["label_dp"], instance, engine="python")


def test_idle_devices_never_hurt():
    for seed in range(40):
        instance = LIBRARY.generate("small", seed)
        forced = solved(EXACT["label_dp"], instance.model_copy(update={"all_devices": True}))[1]
        free = solved(EXACT["label_dp"], instance.model_copy(update={"all_devices": False}))[1]
        assert forced is None or free <= forced


def test_more_memory_may_hurt():
    """Shares solve Eq. (7): a smaller T may come with a larger Ef + Eb (rule 6)."""
    instance = LIBRARY.generate("small", 136)
    types = tuple(kind.model_copy(update={"memory": 2 * kind.memory}) for kind in instance.types)
    roomier = instance.model_copy(update={"types": types})
    assert solved(BRUTE, instance) == (Status.OPTIMAL, 855)
    assert solved(BRUTE, roomier) == (Status.OPTIMAL, 857)


def test_classes_of_devices():
    uneven = LIBRARY.generate("scaling", 9)
    assert interchangeable(LIBRARY.generate("scaling", 2)) == [[0], [1, 2], [3, 4, 5]]
    assert len(interchangeable(uneven)) > 3


def plan_bound(instance, plan):
    """Z of one plan with its own shares: its simulated latency (half duplex) is at least this, ticks."""
    micro_batches = instance.mini_batch // plan.micro_batch
    d = z = 0
    for p in range(len(plan.stages) - 1, -1, -1):
        stage = plan.stages[p]
        f, b = execution_times(instance, stage, stage.shares)
        busy = 0
        for device, share in zip(stage.devices, stage.shares, strict=True):
            kind, rows = instance.device_type(device), range(stage.start, stage.stop)
            if share:
                busy = max(busy, sum(kind.forward[i][share - 1] + kind.backward[i][share - 1] for i in rows))
        ta = 0
        if len(stage.devices) > 1:
            weights = sum(layer.weight_bytes for layer in instance.layers[stage.start : stage.stop])
            ta = instance.allreduce_ticks(len(stage.devices), weights, slowest_link(instance, stage.devices))
        if p == len(plan.stages) - 1:
            d, z = micro_batches * busy, micro_batches * busy + ta
            continue
        size = plan.micro_batch * instance.layers[stage.stop - 1].output_bytes
        c = instance.transfer_ticks(size, slowest_link(instance, stage.devices, plan.stages[p + 1].devices))
        d = max(micro_batches * busy, f + b + 2 * micro_batches * c, f + b + 2 * c + d)
        z = max(d + ta, f + c + z)
    return z


@pytest.mark.in_turn
def test_no_simulated_round_is_shorter_than_the_bounds():
    for seed in range(60):
        instance = LIBRARY.generate("small", seed).model_copy(update={"replanning": None})
        bound = simulator_bound.run(instance, Budget(300.0)).bound
        for method in (EXACT["label_dp"], BRUTE):
            result = method.solve(instance, Budget(300.0))
            if result.plan is None:
                assert bound is None
                continue
            latency = simulate(instance, result.plan).latency
            assert bound <= min(latency, result.claimed)
            assert plan_bound(instance, result.plan) <= latency


def test_unknown_engine():
    with pytest.raises(InputError, match="engine"):
        EXACT["label_dp"].solve(example(), Budget(300.0), engine="fast")
