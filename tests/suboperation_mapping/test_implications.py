"""Bounds that one instance says of another survive rounding to other ticks, and say nothing where DRAM may bind.

The instances are made from the same nanoseconds in ticks of different length, as those of the library are, with
bandwidths for which most transfers are rounded; the optimum of each is found by brute force over all plans.
"""

import random

import pytest

from mapgap.catalogue import registry
from mapgap.contract.seeds import seeds
from mapgap.core import Budget
from mapgap.instances.matching import matching
from mapgap.instances.suboperation_mapping.relations import carried, implied
from mapgap.problems.suboperation_mapping import PROBLEM, Instance


def optimum(instance):
    result = registry.methods(PROBLEM.name)["enumerate"].solve(instance, Budget(300.0).start())
    return None if result.plan is None else PROBLEM.evaluate(instance, result.plan).objective


def in_ticks(instance, tick, divisor=1):
    """The instance, read as nanoseconds, in ticks of ``tick`` ns, with every link ``divisor`` times slower."""

    def rounded(table):
        return tuple(tuple(-(-entry // tick) for entry in row) for row in table)

    layers = tuple(
        layer.model_copy(update={phase: rounded(getattr(layer, phase)) for phase in ("fp", "bp", "wu")})
        for layer in instance.layers
    )
    slower = tuple(tuple(max(1, rate // divisor) for rate in row) for row in instance.bandwidth)
    return instance.changed(tick_ns=tick, layers=layers, bandwidth=slower)


def fine(seed):
    """A tiny instance in ticks of 1 ns, with DRAM for everything."""
    rng = random.Random(seed)
    tiny = registry.library(PROBLEM.name).generate("tiny", seed)
    n = len(tiny.accelerators)
    rates = tuple(tuple(rng.randrange(10**7, 10**9) for _ in range(n)) for _ in range(n))
    accelerators = tuple(a.model_copy(update={"memory": tiny.largest_demand}) for a in tiny.accelerators)

    def longer(table):
        return tuple(tuple(entry * 997 + 13 for entry in row) for row in table)

    layers = tuple(
        layer.model_copy(update={phase: longer(getattr(layer, phase)) for phase in ("fp", "bp", "wu")})
        for layer in tiny.layers
    )
    return tiny.changed(tick_ns=1, accelerators=accelerators, bandwidth=rates, layers=layers)


@pytest.mark.parametrize("seed", seeds(3, 12))
def test_bounds_survive_other_ticks_and_slower_links(seed):
    base = fine(seed)
    family = [in_ticks(base, tick, divisor) for tick in (1, 7, 10, 100) for divisor in (1, 3)]
    value = {each.content_hash: optimum(each) for each in family}
    said = 0
    for source in family:
        for target in family:
            bound = implied(value[source.content_hash], source, target)
            faster = source.bandwidth[0][1] >= target.bandwidth[0][1]
            assert (bound is not None) == faster
            if bound is not None:
                assert bound <= value[target.content_hash]
                said += bound > 0
                if source == target:
                    assert bound == value[target.content_hash]
    assert said > len(family)


def test_rounding_is_paid_for():
    # Without the term E a bound in coarse ticks would say more of fine ones than is true: this must happen somewhere.
    caught = 0
    for seed in range(12):
        base = fine(seed)
        coarse, exact = in_ticks(base, 100), in_ticks(base, 1)
        caught += optimum(coarse) * 100 > optimum(exact)
    assert caught > 6


def scarce(instance, share):
    return instance.changed(
        accelerators=tuple(
            a.model_copy(update={"memory": instance.largest_demand // share}) for a in instance.accelerators
        )
    )


def test_where_dram_may_bind_only_equal_times_say_something():
    base = scarce(fine(3), 2)
    faster = base.changed(bandwidth=tuple(tuple(2 * rate for rate in row) for row in base.bandwidth))
    roomier = base.changed(accelerators=tuple(a.model_copy(update={"memory": a.memory + 1}) for a in base.accelerators))
    assert implied(100, faster, base) is None
    assert implied(100, roomier, base) == 100
    assert implied(100, base, roomier) is None


def cluster(instance: Instance, chosen):
    """The instance on some of its accelerators, in another order."""
    return instance.changed(
        accelerators=tuple(instance.accelerators[a] for a in chosen),
        bandwidth=tuple(tuple(instance.bandwidth[a][b] for b in chosen) for a in chosen),
        layers=tuple(
            layer.model_copy(
                update={p: tuple(getattr(layer, p)[a] for a in chosen) for p in ("fp", "bp", "wu") if getattr(layer, p)}
            )
            for layer in instance.layers
        ),
    )


@pytest.mark.parametrize("seed", range(8))
def test_a_plan_of_a_part_of_the_cluster_is_one_of_the_whole(seed):
    whole = fine(seed)
    n = len(whole.accelerators)
    result = registry.methods(PROBLEM.name)["enumerate"]
    for chosen in ([n - 1], list(range(n))[::-1]):
        part = cluster(whole, chosen)
        plan = result.solve(part, Budget(300.0).start()).plan
        (moved,) = carried(plan, part, whole)
        # Equal boards, equal links: the same timetable.
        assert PROBLEM.evaluate(whole, moved).objective == PROBLEM.evaluate(part, plan).objective
        assert implied(optimum(whole), whole, part) == optimum(whole)
        if len(chosen) < n:
            assert implied(optimum(part), part, whole) is None


def test_a_plan_that_leaves_a_share_out_is_renumbered():
    whole = fine(1)
    part = cluster(whole, [0])
    (plan,) = carried(optimal(part), part, whole)
    (back,) = carried(plan, whole, part)
    assert back == optimal(part)


def optimal(instance):
    return registry.methods(PROBLEM.name)["enumerate"].solve(instance, Budget(300.0).start()).plan


@pytest.mark.parametrize(
    ("allowed", "found"),
    [
        ([], ()),
        ([[0], [0]], None),
        ([[0, 1], [0]], (1, 0)),  # the first must give way
        ([[2, 1], [1, 2], [0]], (2, 1, 0)),
        ([[0, 1], [1, 2], [0], [1]], None),
    ],
)
def test_a_matching_is_found_where_there_is_one(allowed, found):
    assert matching(allowed) == found
