"""Single rows in compiled loops do what the checker does with the steps that they become, and lose no solution."""

from itertools import product
from random import Random

import pytest

from mapgap.contract.seeds import seeds
from mapgap.evidence.check import Box
from mapgap.solvers.rows import Propagation


def random_rows(rng):
    """Ten rows of four variables of -3 to 6."""
    rows = [
        ({j: rng.choice([-3, -2, -1, 1, 2, 3]) for j in rng.sample(range(4), rng.randint(1, 3))}, rng.randint(-6, 9))
        for _ in range(10)
    ]
    return rows, [-3] * 4, [6] * 4


@pytest.mark.parametrize("seed", seeds(40, 1000))
@pytest.mark.parametrize("factor", [1, 1 << 70])  # integers of 64 bits, and Python's
def test_rows_tighten_as_the_checker_does_and_keep_every_solution(seed, factor):
    rows, lower, upper = random_rows(Random(f"{seed} rows"))
    large = [({j: a * factor for j, a in row.items()}, bound * factor) for row, bound in rows]
    propagation = Propagation(large, lower, upper)
    assert (propagation.kind.kind == "O") == (factor > 1)
    box, waiting = Box(lower[:], upper[:], []), set(range(len(rows)))
    useful, holds = propagation(box, waiting)
    own = Box(lower[:], upper[:], [])
    assert all(own.tighten(*rows[i]) for i in useful[: len(useful) - (not holds)])
    if not holds:
        assert not own.tighten(*rows[useful[-1]])
    assert (own.lower, own.upper) == (box.lower, box.upper)
    assert all(type(bound) is int for bound in (*box.lower, *box.upper))
    every = product(*(range(low, high + 1) for low, high in zip(lower, upper, strict=True)))
    solutions = [x for x in every if all(sum(a * x[j] for j, a in row.items()) <= bound for row, bound in rows)]
    assert holds or not solutions
    for x in solutions:
        assert all(low <= v <= high for low, v, high in zip(box.lower, x, box.upper, strict=True))
    if holds and not waiting:  # nothing moves any more but by less than a tenth, which a range of at most 9 cannot
        assert all(own.tighten(*row) for row in rows)
        assert (own.lower, own.upper) == (box.lower, box.upper)


def test_a_row_that_does_not_wait_is_not_looked_at():
    rows = [({0: 1}, 3), ({1: 1}, 2), ({0: -1, 1: 1}, 0)]
    box = Box([0, 0], [9, 9], [])
    assert Propagation(rows, [0, 0], [9, 9])(box, {1}) == ([1], True)
    assert (box.lower, box.upper) == ([0, 0], [9, 2])
