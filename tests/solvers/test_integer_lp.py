"""Bounds recomputed from duals: right for the engine's, never wrong for any others."""

import random
from fractions import Fraction

import numpy as np
import pytest

from mapgap.contract.seeds import seeds
from mapgap.core import Status
from mapgap.solvers.highs import MatrixModel, Relaxation
from mapgap.solvers.integer_lp import Engine, IntegerLP, LinearOutcome, WholeRows


def cover(size):
    """min x + y with size * x + y >= 7 * size and 0 <= x, y <= 5 * size: x = 7, so 7."""
    program = IntegerLP()
    x, y = program.column(5 * size, cost=1), program.column(5 * size, cost=1)
    program.row([(x, size), (y, 1)], lower=7 * size)
    return program


@pytest.mark.parametrize("size", [10**3, 10**5, 10**7])
def test_optimum_by_hand(size):
    program = cover(size)
    outcome = program.solve(10)
    assert outcome.status is Status.OPTIMAL
    assert program.dual_bound(outcome) == 7


def test_bound_of_multipliers_by_hand():
    """With y = 1/1024 the reduced costs of cover(1000) are 24/1024 and 1023/1024, so the bound is 7000/1024."""
    program = cover(1000)
    assert program.dual_total(LinearOutcome(Status.UNKNOWN, {0: 1}, 10)) == 7000
    assert program.dual_bound(LinearOutcome(Status.UNKNOWN, {0: 1}, 10)) == 7
    # Twice as much: x costs 1 - 2000/1024, times its upper bound 5000; 14000/1024 are won by the row.
    assert program.dual_total(LinearOutcome(Status.UNKNOWN, {0: 2}, 10)) == 14000 + 5000 * (1024 - 2000)


def test_a_multiplier_without_a_side_is_refused():
    with pytest.raises(ValueError, match="row 0: expected a multiplier of the other sign, found -3"):
        cover(1000).dual_bound(LinearOutcome(Status.UNKNOWN, {0: -3}, 10))


def random_program(rng):
    """A program that some whole point satisfies, and that point."""
    program = IntegerLP()
    size = 10 ** rng.randint(0, 6)
    point = [rng.randint(0, size) for _ in range(rng.randint(1, 5))]
    for _ in point:
        program.column(size, cost=rng.randint(-9, 9), hidden=False)
    for _ in range(rng.randint(1, 6)):
        terms = [(j, rng.randint(-size, size)) for j in range(len(point)) if rng.random() < 0.7]
        value = sum(a * point[j] for j, a in terms)
        sides = rng.choice(((value, value), (value - rng.randint(0, size), None), (None, value + rng.randint(0, 9))))
        program.row(terms, *sides)
    return program, sum(c * x for c, x in zip(program.cost, point, strict=True))


@pytest.mark.parametrize("seed", seeds(12, 60))
def test_any_duals_bound_every_point(seed):
    """The bound of weak duality lies below the objective of a feasible point, however bad the multipliers are."""
    rng = random.Random(seed)
    program, attained = random_program(rng)
    outcome = program.solve(10)
    assert outcome.status is Status.OPTIMAL
    assert program.dual_bound(outcome) <= attained
    for _ in range(5):
        wild = program.rounded(np.array([rng.gauss(0, 1) for _ in range(program.rows)]))
        assert program.dual_bound(LinearOutcome(Status.UNKNOWN, *wild)) <= attained
    # The engine's duals are worth the engine's objective.
    value = sum(c * x for c, x in zip(program.cost, outcome.values, strict=True))
    assert program.dual_bound(outcome) >= value - 1e-6 * (1 + abs(value))


def test_a_model_in_floating_point_is_bounded_exactly():
    """min x with 3/8 x >= 1: the dual 8/3 is no double, and a bound from it must not exceed 8/3."""
    model = MatrixModel()
    x = model.column(upper=100.0, cost=1.0)
    model.row([(x, 0.375)], 1.0)
    outcome = model.solve(10, relaxed=True)
    whole = WholeRows(model, 1000)
    bound = whole.bound(outcome.duals)
    assert 0 <= Fraction(8, 3) - bound < Fraction(1, 10**9)
    assert whole.bound(np.array([2.0])) == 2
    assert whole.bound(np.array([4.0])) == 4 - Fraction(1, 2) * 100


def test_a_kept_basis_gives_the_bounds_of_a_fresh_program():
    """Columns closed and opened in any order: the bound is that of the program written with those limits."""
    rng = random.Random(5)
    for _ in range(20):
        program, fresh = IntegerLP(), IntegerLP()
        rows = [[(j, rng.randint(-5, 5)) for j in range(8)] for _ in range(6)]
        point = [rng.randint(0, 3) for _ in range(8)]
        point[0] = point[1] = point[2] = 0  # the columns that are closed: every program has this point
        costs = [rng.randint(0, 9) * 1000 for _ in range(8)]
        for one in (program, fresh):
            for cost in costs:
                one.column(7, cost)
            for row in rows:
                one.row(row, sum(v * point[j] for j, v in row) - 1)
        engine = Engine(program)
        for _ in range(5):
            closed = frozenset(j for j in range(3) if rng.random() < 0.5)
            fresh.upper[:3] = [0 if j in closed else 7 for j in range(3)]
            assert program.dual_bound(engine.solve(10.0, closed)) == fresh.dual_bound(fresh.solve(10.0))


@pytest.mark.parametrize("seed", seeds(5, 40))
def test_rows_that_are_added_are_those_of_a_fresh_program(seed):
    """After each row the optimum is that of a model that had all rows from the start."""
    rng = random.Random(seed)
    model, rows = MatrixModel(), [[(j, float(rng.randint(1, 9))) for j in range(4)] for _ in range(6)]
    for _ in range(4):
        model.column(upper=5.0, cost=-float(rng.randint(1, 9)))
    relaxation = Relaxation(model)
    for count in range(1, len(rows) + 1):
        limits = [30.0 - 3 * k for k in range(count)]
        relaxation.row(rows[count - 1], upper=limits[-1])
        fresh = MatrixModel()
        for cost in model.cost:
            fresh.column(upper=5.0, cost=cost)
        for row, limit in zip(rows, limits, strict=False):
            fresh.row(row, upper=limit)
        outcome, expected = relaxation.solve(10.0), fresh.solve(10.0, relaxed=True, simplex=True)
        assert outcome.bound == pytest.approx(expected.bound)
        assert len(outcome.duals) == count
