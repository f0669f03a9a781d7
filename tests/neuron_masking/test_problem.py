"""Instance, plan and evaluator of neuron masking against numbers worked out by hand."""

import itertools

import pytest
from pydantic import ValidationError

from mapgap.core import InputError
from mapgap.problems.neuron_masking import PROBLEM, SHARE, Device, Instance, Layer, Mask, Plan, Rate, costs
from mapgap.problems.neuron_masking.evaluate import diagnose, evaluate, gantt


def device(name="pi", **changes):
    base = {
        "name": name,
        "tick_ps": 10**9,
        "transfer": Rate(ticks=1, per=10),
        "spill": Rate(ticks=3, per=2),
        "overhead": 5,
        "time_limit": (49,),
        "work_limit": (36,),
        "memory_limit": 72,
        "contributions": ((10, 40, 20, 30), (7, 8)),
    }
    return Device(**{**base, **changes})


def instance(*devices, **changes):
    layers = (
        Layer(name="conv", neurons=4, least=1, work=2, weights=5, features=7),
        Layer(name="fc", neurons=2, least=2, work=3, weights=1, features=0),
    )
    base = {
        "name": "hand",
        "memory_unit_bytes": 8,
        "work_unit_macs": 1,
        "cycle_ms": (1000,),
        "inputs": 3,
        "layers": layers,
        "devices": devices or (device(),),
    }
    return Instance(**{**base, **changes})


def plan(*kept, cycle=0, chosen=None):
    return Plan(cycle=cycle, masks=tuple(Mask(kept=n, chosen=chosen) for n in kept))


def test_costs_by_hand():
    # W = 2*3*3 + 3*3*2 = 36. M = 5*3*3 + 7*3 + 1*3*2 = 72, moved in ceil(7.2) = 8 ticks. T = 36 + 8 + 5 = 49.
    cost = costs(instance(), device(), (3, 2))
    assert (cost.work, cost.memory, cost.transfer, cost.spilled, cost.spill, cost.time) == (36, 72, 8, 0, 0, 49)
    # 22 units above 50 spill in 33 ticks; with hard memory they are a violation instead.
    small = device(memory_limit=50)
    cost = costs(instance(memory_mode="spill"), small, (3, 2))
    assert (cost.spilled, cost.spill, cost.time) == (22, 33, 82)
    assert costs(instance(), small, (3, 2)).time == 49


def test_halving_all_inner_neurons_quarters_inner_work():
    # Table 2: 98 minutes at 100% and 22 at 50%. Eq. (1) counts the kept neurons of both layers.
    inner = instance(
        layers=tuple(
            Layer(name=n, neurons=8, least=1, work=w, weights=0, features=0) for n, w in (("a", 0), ("b", 5), ("c", 7))
        ),
        devices=(device(contributions=((1,) * 8,) * 3, time_limit=(10**6,)),),
    )
    whole, half = costs(inner, inner.devices[0], (8, 8, 8)), costs(inner, inner.devices[0], (4, 4, 4))
    assert whole.work == 4 * half.work == 12 * 64


@pytest.mark.parametrize(
    ("objective", "expected"),
    # 3 + 2 neurons; 40 + 30 + 20 and 7 + 8; conv keeps 3 of 4; 105 per 1000 ms are 378000 per hour.
    [("neurons", 5), ("contribution", 105), ("smallest_share", 7500), ("rate", 378_000)],
)
def test_objectives_by_hand(objective, expected):
    found = evaluate(instance(objective=objective), plan((3, 2)))
    assert found.feasible
    assert found.objective == found.terms[objective] == expected
    assert found.terms["devices"]["pi"]["time_s"] == pytest.approx(0.049)
    assert found.terms["devices"]["pi"]["memory_bytes"] == 72 * 8


@pytest.mark.parametrize(
    ("rule", "changes"),
    [
        ("time limit", {"time_limit": (48,)}),
        ("work limit", {"work_limit": (35,)}),
        ("memory limit", {"memory_limit": 71}),
    ],
)
def test_each_limit_flips_feasibility(rule, changes):
    # The mask meets all three limits exactly; one unit less breaks that limit and no other.
    tight = instance(device(**changes))
    found = evaluate(tight, plan((3, 2)))
    assert [(v.rule, v.where, v.amount) for v in found.violations] == [(rule, "pi", 1)]
    assert found.objective == 5
    assert evaluate(tight, plan((2, 2))).feasible


def test_every_violation_is_listed():
    found = evaluate(instance(device(time_limit=(0,), work_limit=(0,), memory_limit=0)), plan((3, 2)))
    assert [v.rule for v in found.violations] == ["time limit", "work limit", "memory limit"]


@pytest.mark.parametrize(
    ("broken", "rule"),
    [
        (plan((3, 2), cycle=1), "cycle"),
        (plan((3, 2), (3, 2)), "devices"),
        (plan((3,)), "layers"),
        (plan((0, 2)), "least"),
        (plan((3, 1)), "least"),
        (plan((5, 2)), "neurons"),
        (plan((3, 2), chosen=((0, 1, 2),)), "chosen"),
        (plan((3, 2), chosen=((0, 1), None)), "chosen"),
        (plan((3, 2), chosen=((0, 1, 4), None)), "chosen"),
        (plan((3, 2), chosen=((1, 0, 2), None)), "chosen"),
        (plan((3, 2), chosen=((1, 1, 2), None)), "chosen"),
        (plan((3, 2), chosen=((0, 1, 2), None)), "top share"),
    ],
)
def test_broken_plans_have_no_value(broken, rule):
    found = evaluate(instance(), broken)
    assert found.objective is None
    assert rule in {v.rule for v in found.violations}


@pytest.mark.parametrize(("percent", "legal"), [(0, 4), (33, 3), (34, 2), (66, 2), (67, 1), (100, 1)])
def test_share_kept_by_contribution(percent, legal):
    # Contributions 10, 40, 20, 30 and three kept: ceil(P_s * 3) of them are the largest; of the 4 triples those legal.
    rule = instance(objective="contribution", top_percent=percent)
    found = [evaluate(rule, plan((3, 2), chosen=(triple, None))) for triple in itertools.combinations(range(4), 3)]
    assert sum(f.feasible for f in found) == legal
    # The plan that states no neurons keeps the largest: legal for every share, and nothing is better.
    best = evaluate(rule, plan((3, 2)))
    assert best.feasible
    assert best.objective == max(f.objective for f in found if f.feasible)


def test_equal_contributions_are_interchangeable():
    equal = instance(device(contributions=((5, 5, 5, 1), (0, 0))), objective="contribution")
    for pair in ((0, 1), (0, 2), (1, 2)):
        assert evaluate(equal, plan((2, 2), chosen=(pair, None))).objective == 10
    assert not evaluate(equal, plan((2, 2), chosen=((0, 3), None))).feasible


def fleet(objective):
    # Under the longer cycle the first device has time for three filters and the second for one, else both for one.
    return instance(
        device("a", time_limit=(30, 49), work_limit=(36, 36)),
        device("b", time_limit=(20, 30), work_limit=(36, 36)),
        cycle_ms=(1000, 1600),
        objective=objective,
    )


def test_fleet_adds_up_or_takes_the_smallest():
    # One filter: W = 6 + 6, M = 15 + 7 + 2 moved in 3 ticks. Two: W = 24, M = 48 in 5. Three: see above.
    for kept, time in ((1, 20), (2, 34), (3, 49)):
        assert costs(fleet("neurons"), fleet("neurons").devices[0], (kept, 2)).time == time
    assert evaluate(fleet("neurons"), plan((3, 2), (1, 2), cycle=1)).objective == 8
    assert evaluate(fleet("smallest_share"), plan((3, 2), (1, 2), cycle=1)).objective == SHARE // 4
    # 40 + 30 + 20 + 15 and 40 + 15 in 1.6 s; 40 + 15 twice in 1 s.
    assert evaluate(fleet("rate"), plan((3, 2), (1, 2), cycle=1)).objective == 160 * 3_600_000 // 1600
    assert evaluate(fleet("rate"), plan((1, 2), (1, 2), cycle=0)).objective == 110 * 3600
    wrong = evaluate(fleet("rate"), plan((3, 2), (1, 2), cycle=0))
    assert [(v.rule, v.where) for v in wrong.violations] == [("time limit", "a")]


def test_single_problems_of_a_fleet():
    single = fleet("rate").single(1, 1)
    assert single.objective == "contribution"
    assert single.devices[0].time_limit == (30,)
    assert single.cycle_ms == (1600,)
    assert Instance.model_validate(single.model_dump(by_alias=True)) == single


def test_diagnosis_is_complete():
    # Costs grow with every count, so the least mask decides: it takes 20 ticks, 12 units of work and 24 of memory.
    assert diagnose(instance()) == []
    assert diagnose(instance(device(time_limit=(20,)))) == []
    assert len(diagnose(instance(device(time_limit=(19,), work_limit=(11,), memory_limit=23)))) == 3
    assert diagnose(instance(device(memory_limit=0, time_limit=(19,)), memory_mode="spill"))


def test_picture_adds_up_to_the_cycle():
    lanes = gantt(fleet("rate"), plan((3, 2), (1, 2), cycle=1))
    assert [lane.name for lane in lanes] == ["a", "b"]
    assert lanes[0].bars[-1].end == pytest.approx(0.049)
    assert lanes[1].bars[-1].end == pytest.approx(0.030)
    assert [bar.group for bar in lanes[1].bars] == ["overhead", "training", "training", "main memory", "idle"]
    assert gantt(fleet("rate"), plan((3, 2))) == []


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"cycle_ms": (5, 5)}, "cycle_ms: expected rising cycle times"),
        ({"cycle_ms": (0,)}, "cycle_ms: expected at least 1 ms"),
        ({"devices": (device(), device())}, "devices: expected distinct names"),
        (
            {"devices": (device(time_limit=(1, 2)),)},
            "devices[0].time_limit (pi): expected 1 numbers, one per cycle time",
        ),
        ({"devices": (device(work_limit=(-1,)),)}, "devices[0].work_limit (pi): expected numbers of at least 0"),
        (
            {"devices": (device(contributions=((1,),)),)},
            "devices[0].contributions (pi): expected one row for each of 2",
        ),
        (
            {"devices": (device(contributions=((1,), (1, 1))),)},
            "devices[0].contributions[0] (pi: conv): expected 4 numbers, one per neuron, found 1",
        ),
        (
            {"devices": (device(contributions=((1, 2, 3, -4), (1, 1))),)},
            "devices[0].contributions[0] (pi: conv): expected numbers of at least 0, found -4",
        ),
        ({"devices": (device(overhead=2**30),)}, "devices[0] (pi): time of the whole model: expected < 2^30"),
        (
            {"devices": (device("a"), device("b", spill=Rate(ticks=2**24, per=1)))},
            "devices[1].spill (b): ticks * memory: expected < 2^30",
        ),
        ({"inputs": 2**28}, "work of the whole model"),
        (
            {
                "layers": (Layer(name="conv", neurons=4, least=5, work=1, weights=1, features=1),),
                "devices": (device(contributions=((1, 2, 3, 4),)),),
            },
            "layers[0].least (conv): expected at most its 4 neurons, found 5",
        ),
        (
            {"devices": (device(time_limit=(9, 8), work_limit=(9, 9)),), "cycle_ms": (1, 2)},
            "devices[0].time_limit (pi): expected a longer cycle to allow no less",
        ),
    ],
)
def test_wrong_instances_are_refused(changes, message):
    with pytest.raises(ValidationError) as error:
        instance(**changes)
    raised = error.value.errors()[0]["ctx"]["error"]
    assert isinstance(raised, InputError)
    assert any(str(finding).startswith(message) for finding in raised.findings), raised.problems


def test_objective_is_part_of_the_hash():
    hashes = {PROBLEM.retarget(instance(), name).content_hash for name in PROBLEM.objectives}
    assert len(hashes) == 4
