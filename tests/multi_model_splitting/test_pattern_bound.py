"""Bounds by patterns: never beyond an optimum, the heaviest pattern by brute force, and what only patterns refute."""

import itertools
import random

import numpy as np
import pytest

from mapgap.catalogue import registry
from mapgap.contract.seeds import samples
from mapgap.core import Budget, Status
from mapgap.formulations.multi_model_splitting.chains import ceiling, chains, profiles
from mapgap.formulations.multi_model_splitting.column_bound import Relaxation
from mapgap.formulations.multi_model_splitting.pattern_bound import Patterns, Program, groups_of
from mapgap.formulations.multi_model_splitting.pattern_kernels import DIMENSIONS, UNKNOWN, Items, Room, heaviest
from mapgap.problems.multi_model_splitting import Boundary, Device, Instance, Layer, Pipeline
from mapgap.problems.multi_model_splitting.evaluate import evaluate

METHODS = registry.methods("multi_model_splitting")
LIBRARY = registry.library("multi_model_splitting")


def optimum(instance, name="enumerate"):
    result = METHODS[name].solve(instance, Budget(time_s=300).start())
    assert result.status in (Status.OPTIMAL, Status.INFEASIBLE)
    return None if result.plan is None else evaluate(instance, result.plan).objective


def best(relaxation, lower, upper):
    """The best bound that a relaxation proves."""
    return max(relaxation.bisect(lambda: (lower, upper)), default=lower)


def bounds(instance):
    """Of the hardest group, of two and of all, from nothing up to more than any plan; and that limit."""
    tables = profiles(instance)
    groups, top = groups_of(instance, tables), ceiling(instance, tables)
    found = [best(Patterns(instance, tables, groups[:k]), 0, top + 1) for k in (1, 2, len(groups))]
    return found, top


def check(family, seed):
    instance = LIBRARY.generate(family, seed)
    instance = instance.changed(objective="throughput")
    best = optimum(instance)
    found, top = bounds(instance)
    assert max(found) <= (top + 1 if best is None else best), seed
    return best is not None and max(found) * 2 > best


@pytest.mark.in_turn
@pytest.mark.parametrize("sample", samples(30, 600))
@pytest.mark.parametrize("family", ["tiny", "realistic"])
def test_no_bound_is_beyond_the_optimum(family, sample):
    assert 10 * sum(check(family, seed) for seed in sample) > len(sample)  # nor are they all next to nothing


def knapsack(rng):
    groups = rng.randint(1, 3)
    n = rng.randint(1, 6)
    value = sorted((rng.randint(1, 10**9) for _ in range(n)), reverse=True)
    demand = [[rng.choice((0, rng.randint(0, 10**6))) for _ in range(DIMENSIONS)] for _ in range(n)]
    free = [rng.choice((0, rng.randint(0, 3 * 10**6), 10**7)) for _ in range(DIMENSIONS)]
    most = [rng.randint(1, 3) for _ in range(groups)]
    group = [rng.randrange(groups) for _ in range(n)]
    arrays = (np.array(each, np.int64) for each in (value, demand, group))
    return Items(*arrays), Room(np.array(free, np.int64), np.array(most, np.int64))


def test_the_heaviest_pattern_is_that_of_all_multisets():
    rng = random.Random(3)
    full = 0
    for _ in range(300):
        items, room = knapsack(rng)
        n, best = len(items.value), 0
        for times in itertools.product(*(range(int(room.most[g]) + 1) for g in items.group)):
            count = np.array(times)
            held = np.bincount(items.group, weights=count, minlength=len(room.most))
            if (held <= room.most).all() and (count @ items.demand <= room.free).all():
                best = max(best, int(count @ items.value))
        chosen = np.zeros(n, np.int64)
        assert heaviest(items, room, 10**6, chosen) == best
        assert chosen @ items.value == best
        assert (chosen @ items.demand <= room.free).all()
        full += best > 0
    assert full > 100


def test_a_search_of_too_many_nodes_says_nothing():
    items, room = knapsack(random.Random(3))
    ample = Room(np.full(DIMENSIONS, 10**9), room.most)
    assert heaviest(items, ample, 0, np.zeros(len(items.value), np.int64)) == UNKNOWN


def test_any_numbers_give_no_more_than_the_heaviest_patterns():
    """The inequality that the bound rests on, at random numbers and the limit of a plan that exists."""
    rng = np.random.default_rng(4)
    checked = 0
    for seed in range(40):
        instance = LIBRARY.generate("realistic", seed).changed(objective="throughput")
        best = optimum(instance)
        if best is None:
            continue
        tables = profiles(instance)
        program = Program(Patterns(instance, tables, groups_of(instance, tables)), chains(instance, tables, best), best)
        for _ in range(5):
            values = rng.integers(-(10**9), 10**9, program.rows)
            heavy = sum(kind.devices * program.heaviest(kind, values)[0] for kind in program.kinds)
            assert int(program.count @ (values[program.first] - values[program.last])) <= heavy
            checked += 1
    assert checked > 50


def whole_models(models, boards, ticks=1000):
    """Models of one layer that any board runs in 1000 ticks."""
    free = (0,) * boards
    ends = {"bytes": 1, "transmit": free, "receive": free}
    return Instance(
        name="whole",
        tick_ns=1000,
        devices=tuple(Device(name=f"d{d}", weights=10**6, bias=0, layers=99) for d in range(boards)),
        pipelines=tuple(
            Pipeline(
                name=f"p{p}",
                model="m",
                sensing=free,
                layers=(Layer(name="all", weights=1, bias=0, output_bytes=1, inference=(ticks,) * boards),),
                boundaries=(Boundary(**ends, load=free), Boundary(**ends, unload=free)),
            )
            for p in range(models)
        ),
    )


def test_models_that_cannot_be_cut_are_counted():
    # Three models on two boards: one board has two of them, 2000 ticks. A mixture of paths has 1500 on each.
    instance = whole_models(3, 2)
    tables = profiles(instance)
    assert best(Relaxation(instance, tables), 0, 2000) == 1500
    told = list(Patterns(instance, tables, groups_of(instance, tables)).bisect(lambda: (0, 2000)))
    assert told[-1] >= 1990
    assert told == sorted(told)
    assert optimum(instance) == 2000


def test_five_large_models_on_four_large_boards_are_bounded():
    """One of the five must be cut, at the price of transfers; paths see none of that."""
    instance = LIBRARY.generate("mixed_20x16", 200)
    tables = profiles(instance)
    groups = groups_of(instance, tables)
    assert len(groups[0]) == 5
    plan = METHODS["ruin_and_recreate"].solve(instance, Budget(300).start()).plan
    reached = evaluate(instance, plan).objective
    alone = best(Relaxation(instance, tables), 0, reached)
    assert 1.5 * alone < best(Patterns(instance, tables, groups[:1]), alone, reached) <= reached


def test_groups_have_equal_models_and_with_sharing_one_of_a_signal():
    instance = LIBRARY.generate("mixed_20x16", 200)
    tables = profiles(instance)
    groups = groups_of(instance, tables)
    assert sorted(p for group in groups for p in group) == list(range(20))
    assert all(len({instance.pipelines[p].model for p in group}) == 1 for group in groups)
    named = tuple(pipeline.model_copy(update={"signal": pipeline.model}) for pipeline in instance.pipelines)
    alone = groups_of(instance.changed(pipelines=named, sharing=True), tables)
    assert [len(group) for group in alone] == [1] * len(groups)


def test_a_search_that_is_over_proves_what_it_had():
    instance = LIBRARY.generate("small", 2)
    tables = profiles(instance)
    assert best(Patterns(instance, tables, groups_of(instance, tables), lambda: True), 5, 10**6) == 5
