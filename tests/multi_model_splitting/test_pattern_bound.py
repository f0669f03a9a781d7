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
from mapgap.formulations.multi_model_splitting.joint import Joint as Exact
from mapgap.formulations.multi_model_splitting.params import Joint
from mapgap.formulations.multi_model_splitting.pattern_bound import Patterns, Program, groups_of
from mapgap.formulations.multi_model_splitting.pattern_kernels import DIMENSIONS, Items, Room, heaviest, undominated
from mapgap.problems.multi_model_splitting import Boundary, Device, Instance, Layer, Pipeline, Requirement
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
@pytest.mark.parametrize("sample", samples(15, 600))
@pytest.mark.parametrize("family", ["tiny", "realistic"])
def test_no_bound_is_beyond_the_optimum(family, sample):
    assert 10 * sum(check(family, seed) for seed in sample) > len(sample)  # nor are they all next to nothing


def knapsack(rng):
    """Up to two items to choose one of each, the dearest first, then up to six others; the last dimension is a sum."""
    groups, ends = rng.randint(1, 3), rng.randint(0, 2)
    sizes = [rng.randint(1, 3) for _ in range(ends)]
    begin = [sum(sizes[:s]) for s in range(ends + 1)]
    value = [v for n in sizes for v in sorted((rng.randint(-(10**9), 10**9) for _ in range(n)), reverse=True)]
    n = rng.randint(1, 5)
    value += sorted((rng.randint(1, 10**9) for _ in range(n)), reverse=True)
    group = [*(groups + s for s, size in enumerate(sizes) for _ in range(size)), *rng.choices(range(groups), k=n)]
    demand = np.array([[rng.choice((0, rng.randint(0, 10**6))) for _ in range(DIMENSIONS)] for _ in value], np.int64)
    free = np.array([rng.choice((0, rng.randint(0, 3 * 10**6), 10**7)) for _ in range(DIMENSIONS)], np.int64)
    most = np.array([rng.randint(1, 3) for _ in range(groups)], np.int64)
    weights = np.array([rng.choice((0, rng.randint(0, 1000))) for _ in range(DIMENSIONS)], np.int64)
    each = np.array([*(rng.randint(0, 10**8) for _ in range(groups)), *[0] * ends], np.int64)
    guide = demand @ weights + each[group]
    items = Items(np.array(value, np.int64), np.column_stack([demand, guide]), np.array(group, np.int64))
    return items, Room(np.append(free, free @ weights + most @ each[:groups]), most, np.array(begin, np.int64))


def patterns(items, room):
    """Value and numbers of all multisets that fit."""
    ends, groups = len(room.begin) - 1, len(room.most)
    one = [[k] for k in range(room.begin[-1])]
    for times in itertools.product(*([0, 1] for _ in one), *(range(room.most[g] + 1) for g in items.group[len(one) :])):
        count = np.array(times, np.int64)
        held = np.bincount(items.group, weights=count, minlength=groups + ends)
        fits = (held[:groups] <= room.most).all() and (held[groups:] == 1).all()
        if fits and (count @ items.demand <= room.free)[:DIMENSIONS].all():
            yield int(count @ items.value), count


@pytest.mark.in_turn
def test_the_heaviest_pattern_is_that_of_all_multisets():
    rng = random.Random(3)
    full = 0
    for _ in range(100):
        items, room = knapsack(rng)
        best = max((value for value, _ in patterns(items, room)), default=None)
        for above in (-(10**12), 0, rng.randint(-(10**9), 3 * 10**9)):
            chosen = np.zeros(len(items.value), np.int64)
            found, proven = heaviest(items, room, above, 10**6, 10**6, chosen)
            least = max(above, 0) if len(room.begin) == 1 else above
            assert (found, proven) == (max(least, least if best is None else best), 1)
            if found > least:
                assert any((chosen == count).all() and value == best for value, count in patterns(items, room))
            else:
                assert not chosen.any()
        full += best is not None and best > 0
    assert full > 30


def test_what_is_dominated_is_in_no_pattern_that_is_heavier():
    rng = random.Random(5)
    dropped = 0
    for _ in range(40):
        items, room = knapsack(rng)
        order = np.argsort(-items.value, kind="stable")
        kept = np.zeros(len(order), np.bool_)
        undominated(Items(items.value[order], items.demand[order], items.group[order]), kept)
        kept = set(order[kept].tolist())
        found = list(patterns(items, room))
        without = [value for value, count in found if set(np.flatnonzero(count).tolist()) <= kept]
        assert max(without, default=None) == max((value for value, _ in found), default=None)
        dropped += len(kept) < len(order)
    assert dropped > 3


def test_a_search_of_too_many_nodes_proves_nothing():
    items, room = knapsack(random.Random(3))
    ample = room._replace(free=np.full(DIMENSIONS + 1, 10**12))
    chosen = np.zeros(len(items.value), np.int64)
    assert heaviest(items, ample, -(10**12), 10**6, 0, chosen)[1] == 0
    best = max(value for value, _ in patterns(items, ample))
    found, proven = heaviest(items, ample, -(10**12), 0, 10**6, chosen)  # the first pattern will do
    assert found == chosen @ items.value
    assert proven == 0 or found == best


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
            each = [(kind.devices, program.heaviest(kind, values, -(10**12))[:2]) for kind in program.kinds]
            assert all(proven for _, (_, proven) in each)
            heavy = sum(devices * value for devices, (value, _) in each)
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


def test_who_does_not_hold_the_input_sends_it():
    # Three models that start from board 0, which holds one of them, as the others do: it sends two inputs of 400 ticks.
    # Without ends the boards are one class, and one of that class, board 0, has the input already: a tick of inference.
    base = whole_models(3, 3, ticks=1)
    far = base.pipelines[0].boundaries[0].model_copy(update={"transmit": (400,) * 3, "receive": (400,) * 3})
    update = {"source": Requirement(device="d0"), "boundaries": (far, base.pipelines[0].boundaries[1])}
    devices = tuple(device.model_copy(update={"weights": 1}) for device in base.devices)
    instance = base.changed(devices=devices, pipelines=tuple(p.model_copy(update=update) for p in base.pipelines))
    tables = profiles(instance)
    groups = groups_of(instance, tables)
    assert best(Patterns(instance, tables, groups), 0, 5000) == optimum(instance) == 800
    assert best(Patterns(instance, tables, groups, params=Joint(pattern_ends=0)), 0, 5000) == 1


@pytest.mark.in_turn
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


def test_a_limit_below_the_bound_needs_no_question():
    # A relaxation may have raised the bound past a limit that was to be asked next; no program has such a range.
    instance = LIBRARY.generate("mixed_4x4", 1)
    algorithm = Exact(instance, Budget(300).start())
    assert algorithm.bound > 0
    assert algorithm.ask(algorithm.bound - 1, False, 1.0) is Status.INFEASIBLE
    assert algorithm.notes["probes"] == 0
