"""Bounds by column generation: never beyond an optimum, whatever the prices, and tight where packing decides."""

import itertools
import random

import numpy as np
import pytest

from mapgap.catalogue import registry
from mapgap.contract.seeds import seeds
from mapgap.core import Budget, Status
from mapgap.formulations.multi_model_splitting.chains import ceiling, chains, floor, profiles
from mapgap.formulations.multi_model_splitting.column_bound import Relaxation
from mapgap.formulations.multi_model_splitting.dual_feasible import COUNTED, ENDS, PLAIN, ROUNDED, share, whole
from mapgap.formulations.multi_model_splitting.pricing import Prices, Route, shortest
from mapgap.problems.multi_model_splitting import Boundary, Device, Instance, Layer, Pipeline
from mapgap.problems.multi_model_splitting.evaluate import evaluate

METHODS = registry.methods("multi_model_splitting")
LIBRARY = registry.library("multi_model_splitting")
FUNCTIONS = [(PLAIN, 0), *((ROUNDED, k) for k in range(1, 9)), *((k, q) for k in (ENDS, COUNTED) for q in range(1, 61))]


def value(instance, name="enumerate"):
    result = METHODS[name].solve(instance, Budget(time_s=300).start())
    assert result.status in (Status.OPTIMAL, Status.INFEASIBLE)
    return None if result.plan is None else evaluate(instance, result.plan).objective


def bound(instance, upper):
    tables = profiles(instance)
    return max(Relaxation(instance, tables).bisect(lambda: (0, upper)), default=0), ceiling(instance, tables)


@pytest.mark.parametrize("capacity", [7, 12, 60, 120])
def test_functions_are_dual_feasible(capacity):
    # Exhaustive for two parts, random for more: what fits must keep the row of every function.
    rng = random.Random(capacity)
    parts = list(itertools.combinations_with_replacement(range(capacity + 1), 2))
    for _ in range(400):
        cuts = sorted(rng.choices(range(capacity + 1), k=rng.randint(2, 6)))
        parts.append(tuple(b - a for a, b in itertools.pairwise([0, *cuts])))
    for kind, parameter in FUNCTIONS:
        if kind in (ENDS, COUNTED) and 2 * parameter > capacity:
            continue
        values = [share(kind, parameter, capacity, x) for x in range(capacity + 1)]
        assert values[0] >= 0
        assert values[-1] <= whole(kind, parameter, capacity)
        assert all(
            sum(values[x] for x in each) <= whole(kind, parameter, capacity) for each in parts if sum(each) <= capacity
        ), (kind, parameter)


@pytest.mark.parametrize("seed", seeds(30, 600))
@pytest.mark.parametrize("family", ["tiny", "realistic"])
def test_no_bound_is_beyond_the_optimum(family, seed):
    instance = LIBRARY.generate(family, seed)
    best = value(instance)
    found, top = bound(instance, ceiling(instance, profiles(instance)) + 1)
    assert found <= (top + 1 if best is None else best)


def test_any_prices_give_no_more_than_the_length_of_a_plan_s_path():
    """The inequality that the bound rests on, at random prices: the shortest path is at most any plan's."""
    rng = random.Random(5)
    for seed in range(40):
        instance = LIBRARY.generate("realistic", seed).changed(sharing=False, objective="throughput")
        plan = METHODS["enumerate"].solve(instance, Budget(300).start()).plan
        if plan is None:
            continue
        tables = profiles(instance)
        reduced = chains(instance, tables, ceiling(instance, tables))
        relaxation = Relaxation(instance, tables)
        n = len(instance.devices)
        unit = np.array([[rng.choice((0, 1, rng.randint(0, 10**4))) for _ in range(n)] for _ in range(4)], np.int64)
        nothing = np.zeros(0, np.int64)
        prices = Prices(unit, np.zeros(n + 1, np.int64), nothing, nothing, nothing, nothing)
        for p, chain in enumerate(reduced):
            sources, targets = np.zeros((2, n), np.bool_)
            sources[instance.sources(p)] = targets[instance.targets(p)] = True
            names = ("segments", "running", "load", "unload", "transmit", "receive", "need")
            tables_of = (np.ascontiguousarray(getattr(chain, name)) for name in names)
            route = Route(*tables_of, tables[p].sensing, sources, targets, relaxation.capacity)
            length, segments, source, target = shortest(route, prices)
            own = relaxation.column(p, plan.pipelines[p])
            assert length <= int((own.loads * unit).sum())
            assert [i for i, _, _ in segments] == [0, *(j for _, j, _ in segments[:-1])]
            assert source in instance.sources(p)
            assert target in instance.targets(p)


def blocks_on_boards(models, boards):
    """Models of two halves of 60 bytes, boards of 100: one half each. A cut takes 1000 ticks on either side."""
    device = {"weights": 100, "bias": 0, "layers": 9}
    layer = Layer(name="half", weights=60, bias=0, output_bytes=1, inference=(1,) * boards)
    free, dear = (0,) * boards, (1000,) * boards
    ends = {"bytes": 1, "transmit": free, "receive": free}
    boundaries = (
        Boundary(**ends, load=free),
        Boundary(bytes=1, transmit=dear, receive=dear, load=free, unload=free),
        Boundary(**ends, unload=free),
    )
    return Instance(
        name="halves",
        tick_ns=1000,
        devices=tuple(Device(name=f"d{d}", **device) for d in range(boards)),
        pipelines=tuple(
            Pipeline(name=f"p{p}", model="m", sensing=free, layers=(layer, layer), boundaries=boundaries)
            for p in range(models)
        ),
    )


def test_halves_that_do_not_share_a_board_are_counted():
    # Three models of two halves need six boards; in bytes 360 of 500 fit into five. Only counting halves refutes it.
    instance = blocks_on_boards(3, 5)
    found, top = bound(instance, 10**6)
    assert found > top
    assert value(instance, "cpsat") is None
    # On six boards every cut is made: a board sends or receives, 1000 ticks.
    assert value(blocks_on_boards(3, 6), "cpsat") == bound(blocks_on_boards(3, 6), 1000)[0] == 1000


@pytest.mark.in_turn
def test_the_bound_is_far_above_that_of_single_pipelines():
    # What one pipeline needs alone says little of twenty; the relaxation sees them together.
    for seed in (200, 203):
        instance = LIBRARY.generate("wearables_20x16", seed)
        tables = profiles(instance)
        alone = floor(instance, tables, ceiling(instance, tables))
        plan = METHODS["ruin_and_recreate"].solve(instance, Budget(300).start()).plan
        reached = evaluate(instance, plan).objective
        found, _ = bound(instance, reached)
        assert alone < found <= reached
        assert found > 1.5 * alone


def test_a_search_that_is_over_proves_what_it_had():
    instance = LIBRARY.generate("small", 2)
    assert set(Relaxation(instance, profiles(instance), over=lambda: True).bisect(lambda: (5, 10**6))) == {5}
