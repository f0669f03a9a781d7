"""Problem, evaluator, simulator and replay of hybrid pipelines: values by hand, literal formulas, invariants."""

import itertools

import pytest
from pipelines import example
from pydantic import ValidationError

from mapgap.catalogue.registry import methods
from mapgap.core import Budget, SolveResult, Status, Stop
from mapgap.instances.hybrid_pipeline import LIBRARY
from mapgap.problems.hybrid_pipeline import (
    PROBLEM,
    Device,
    DeviceType,
    OldStage,
    Plan,
    Replanning,
    Stage,
)
from mapgap.problems.hybrid_pipeline.evaluate import best_shares, evaluate, execution_times, migration_ticks
from mapgap.problems.hybrid_pipeline.gantt import gantt
from mapgap.problems.hybrid_pipeline.lowered.replay import (
    DETECTION_S,
    FAILURE_S,
    coordinator_ticks,
    recovery_s,
    replayed,
    throughput,
)
from mapgap.problems.hybrid_pipeline.simulate import peak_memory, sequence, simulate, warm_up_forwards


def two_stages(cut, first=0):
    return Plan(
        micro_batch=2,
        stages=(
            Stage(start=0, stop=cut, devices=(first,), shares=(2,)),
            Stage(start=cut, stop=4, devices=(1 - first,), shares=(2,)),
        ),
    )


@pytest.mark.parametrize(
    ("first", "cut", "ticks"), [(0, 3, 74), (0, 2, 112), (0, 1, 162), (1, 1, 96), (1, 2, 96), (1, 3, 144)]
)
def test_latency_of_the_example(first, cut, ticks):
    # The table of docs/methods/hybrid_pipeline.md, by hand.
    result = evaluate(example(), two_stages(cut, first))
    assert result.feasible
    assert result.objective == ticks


def test_group_pays_for_allreduce():
    # D = 4 * 24; Ta = 2 (2 - 1) 20 / (2 * 1) = 20 (Eq. 5).
    plan = Plan(micro_batch=2, stages=(Stage(start=0, stop=4, devices=(0, 1), shares=(1, 1)),))
    result = evaluate(example(), plan)
    assert result.objective == 116
    assert result.terms["steps"]["allreduce"] == [20]
    assert result.terms["communication_mb"] == 2 * 20 / 1e6  # Eq. (2), G = 1


def test_wasted_time_is_not_credited():
    # All samples on the slow member: literally 192 + 20; with the shares of Eq. (7) 116.
    plan = Plan(micro_batch=2, stages=(Stage(start=0, stop=4, devices=(0, 1), shares=(0, 2)),))
    terms = evaluate(example(), plan).terms
    assert (terms["literal_ticks"], terms["nested_ticks"]) == (212, 116)
    for seed in range(120):
        instance = LIBRARY.generate("tiny", seed)
        everyone = tuple(range(len(instance.devices)))
        batch = instance.micro_batch_sizes[-1]
        for shares in itertools.product(range(batch + 1), repeat=len(everyone)):
            if sum(shares) == batch:
                stage = Stage(start=0, stop=len(instance.layers), devices=everyone, shares=shares)
                plan = Plan(micro_batch=batch, stages=(stage,))
                result = evaluate(instance, plan)
                latency = max(result.terms["literal_ticks"], result.terms["nested_ticks"])
                rounds = 1 if instance.replanning is None else instance.replanning.rounds
                assert result.objective == migration_ticks(instance, plan) + rounds * latency


def test_best_shares_solve_eq_7():
    """T, then Ef + Eb, then Ef, against all shares."""
    for seed in range(80):
        instance = LIBRARY.generate("small", seed)
        batch, everyone = instance.micro_batch_sizes[-1], tuple(range(len(instance.devices)))
        bare = Stage(start=0, stop=2, devices=everyone, shares=(0,) * len(everyone))

        def key(shares, bare=bare, instance=instance):
            total = max(
                sum(kind.forward[i][y - 1] + kind.backward[i][y - 1] for i in range(2)) if y else 0
                for kind, y in zip([instance.device_type(d) for d in bare.devices], shares, strict=True)
            )
            forward, backward = execution_times(instance, bare, shares)
            return total, forward + backward, forward

        def fits(shares, instance=instance):
            need = [sum(x.state_memory + y * x.activation_memory for x in instance.layers[:2]) for y in shares]
            return all(n <= instance.device_type(d).memory for d, n in enumerate(need))

        every = itertools.product(range(batch + 1), repeat=len(everyone))
        keys = [key(shares) for shares in every if sum(shares) == batch and fits(shares)]
        found = best_shares(instance, bare, batch, 1)
        assert (None if found is None else key(found)) == min(keys, default=None), seed


def test_every_broken_rule_is_reported():
    instance = example(all_devices=True)
    whole = Stage(start=0, stop=4, devices=(0,), shares=(2,))
    assert [v.rule for v in evaluate(instance, Plan(micro_batch=2, stages=(whole,))).violations] == ["all devices"]
    broken = Plan(micro_batch=1, stages=(Stage(start=1, stop=3, devices=(0, 0, 7), shares=(2,)),))
    rules = {v.rule for v in evaluate(instance, broken).violations}
    assert rules == {"micro-batch size", "contiguous stages", "device group", "disjoint groups", "shares"}
    poor = tuple(kind.model_copy(update={"memory": 13}) for kind in instance.types)
    # Eq. (3): 3 layers, K = 3 stored micro-batches of 2 samples: 3 + 3 * 2 * 3 = 21.
    result = evaluate(example(types=poor), two_stages(3))
    assert [(v.rule, v.amount) for v in result.violations] == [("memory", 8)]
    assert result.objective == 74


def places(**changes):
    """Location and name of everything that is wrong with a changed example."""
    with pytest.raises(ValidationError) as caught:
        example(**changes)
    (error,) = caught.value.errors()
    return [(finding.location, finding.name) for finding in error["ctx"]["error"].findings]


def test_instance_lists_all_findings_with_their_places():
    assert places(mini_batch=7, bandwidth=((0, 1), (2, 0))) == [(("micro_batch_sizes",), ""), (("bandwidth", 1, 0), "")]
    assert places(devices=(Device(name="F", type=0), Device(name="S", type=7))) == [(("devices", 1), "S")]
    falling = DeviceType(name="fast", memory=1, forward=((1, 1), (2, 1), (1, 1), (1, 1)), backward=((1,),) * 3)
    types = (falling, example().types[1])
    expected = [(("types", 0, "forward", 1), "l2 on fast"), (("types", 0, "backward"), "fast")]
    assert places(types=types) == expected
    replanning = failed().replanning.model_copy(update={"held": (((0, 9),), ())})
    assert places(replanning=replanning) == [(("replanning", "held"), "")]
    assert places(tick_ns=1, bandwidth=((0, 1), (1, 0))) == [(("tick_ns",), "")]


def test_diagnose_names_the_layer():
    poor = tuple(kind.model_copy(update={"memory": 0}) for kind in example().types)
    assert any("l1" in reason for reason in PROBLEM.diagnose(example(types=poor)))


def test_simulation_by_hand():
    # One stage: M (F + B) = 96. Two stages (cut 3, K = 3 and 1, 4 ticks on the link): F runs F0 F1 F2 until 18 and B0
    # at 26-38, when S has done B0 (22) and the link is free; F3 follows at 38-44 and B1 at 44-56; S waits for F3 from
    # 46 to 48, F has B2 until 68 and B3 until 80. The closed form (74) overlooks that F3 stands behind B0.
    instance = example()
    alone = Plan(micro_batch=2, stages=(Stage(start=0, stop=4, devices=(0,), shares=(2,)),))
    assert simulate(instance, alone).latency == 96
    assert simulate(instance, two_stages(3)).latency == 80


def test_order_and_policies():
    assert sequence(2, 3) == [("F", 0), ("F", 1), ("B", 0), ("F", 2), ("B", 1), ("B", 2)]
    assert [warm_up_forwards("ours", behind, 9) for behind in (2, 1, 0)] == [5, 3, 1]  # Sec. 3.2's example
    assert [warm_up_forwards(policy, 2, 4) for policy in ("a", "b", "c", "gpipe")] == [4, 3, 4, 4]
    memory = {policy: max(peak_memory(example(), two_stages(2), policy).values()) for policy in ("ours", "a", "gpipe")}
    assert memory["ours"] <= memory["a"] <= memory["gpipe"]


@pytest.mark.parametrize("duplex", ["half", "full"])
def test_simulation_keeps_its_rules(duplex):
    """No overlap on a device or lane, every pass after its input, all passes done."""
    instance = example()
    plan = two_stages(1)
    tasks = simulate(instance, plan, duplex=duplex).tasks
    lanes = {(t.where, t.kind if duplex == "full" and t.where[0] == "link" else "") for t in tasks}
    for where, kind in lanes:
        own = sorted((t.start, t.end) for t in tasks if t.where == where and (not kind or t.kind == kind))
        assert all(a[1] <= b[0] for a, b in itertools.pairwise(own))
    at = {(t.where, t.kind, t.micro_batch): t for t in tasks}
    for m in range(4):
        chain = [
            (("device", 0), "F"),
            (("link", 0), "F"),
            (("device", 1), "F"),
            (("device", 1), "B"),
            (("link", 0), "B"),
            (("device", 0), "B"),
        ]
        steps = [at[where, kind, m] for where, kind in chain]
        assert all(a.end <= b.start for a, b in itertools.pairwise(steps))
    assert [lane.name for lane in gantt(instance, plan)] == ["F (stage 0)", "link 0-1", "S (stage 1)"]


def test_observed_methods_note_schedules_and_times():
    """The example's optimum takes 80 ticks under K = 3, 1 (by hand above); GPipe's order stores all four."""
    label_dp, options = methods("hybrid_pipeline")["label_dp"], {"simulate": True, "repeat": 3}
    plain, seen = label_dp.solve(example(), Budget(300.0)), label_dp.solve(example(), Budget(300.0), **options)
    assert plain.plan == seen.plan
    assert not {"schedules", "median_s"} & plain.notes.keys()
    assert seen.notes["repeated"] == 3
    assert seen.notes["median_s"] >= 0
    rows = {(row["policy"], row["duplex"]): row for row in seen.notes["schedules"]}
    assert len(rows) == 10
    assert rows["ours", "half"]["latency_s"] == pytest.approx(80e-6)
    assert rows["ours", "full"]["latency_s"] <= rows["ours", "half"]["latency_s"]
    # l1-l3 on F: 3 units of state, 3 of activations per sample; 2 samples, K = 3 and 4.
    assert rows["ours", "half"]["peak_memory"]["F"] == 3 + 3 * 2 * 3
    assert rows["gpipe", "half"]["peak_memory"]["F"] == 3 + 4 * 2 * 3
    assert all(row["fits"] for row in rows.values())


def failed():
    """Layers l1-l2 on F; S held l3-l4 of the failed device as a backup and is now to have work."""
    stages = (OldStage(start=0, stop=2, devices=(0,)), OldStage(start=2, stop=4, devices=(1,)))
    held = (((0, 2),), ((2, 4),))
    return example(replanning=Replanning(failed="X", rounds=3, stages=stages, held=held, old_latency=80))


def test_migration_by_hand():
    # F takes l3 (6 bytes) from S: 6 ticks; the plan needs nothing else. Objective 6 + 3 * 74.
    instance, plan = failed(), two_stages(3)
    assert migration_ticks(instance, plan) == 6
    assert evaluate(instance, plan).objective == 6 + 3 * 74
    # Through F: l3 and l4 gather there (14), then l4 goes to S (8).
    assert coordinator_ticks(instance, plan, 0) == 22
    assert recovery_s(instance, plan, 1.0) == pytest.approx(1.0 + 6e-6)
    corners = throughput(instance, plan, 1.0, 0.5, 2.0)
    assert [value for _, value in corners[2:4]] == [0.0, 0.0]
    assert corners[0][1] == pytest.approx(8 / 80e-6)


def test_replanning_methods_note_the_outage():
    """Same plan, two ways of transport: between the devices, and all through F (hand-computed above)."""
    found = SolveResult(Status.FEASIBLE, Stop.DONE, two_stages(3))
    methods_by_way = [replayed(lambda instance, budget: found, through) for through in (False, True)]
    light, heavy = (method(failed(), Budget(300.0)).notes["replay"] for method in methods_by_way)
    assert light["transport_s"] == pytest.approx(6e-6)
    assert heavy["transport_s"] == pytest.approx(22e-6)
    for note in (light, heavy):
        resumed = FAILURE_S + DETECTION_S + note["planning_s"] + note["transport_s"]
        assert note["corners"][3][0] == pytest.approx(resumed)
        assert note["corners"][4][1] == pytest.approx(8 / 74e-6)
    assert replayed(lambda instance, budget: found)(example(), Budget(300.0)) is found
