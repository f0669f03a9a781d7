"""Shaving ends: with steps that the checker follows, or where a schedule is."""

from itertools import pairwise, product

import pytest

from mapgap.core import Budget
from mapgap.evidence.check import Box, Program, refuted
from mapgap.solvers.shave import Shaving


def shop(tasks, end):
    """Tasks of one machine: of each the least and the most of its start and of its load, which is a multiple of 2."""
    program = Program()
    last = program.variable(0, end)
    program.cutoff = program.at_most([(last, 1)], end)
    made = []
    for begin, load in tasks:
        start, length, place = program.variable(*begin), program.variable(*load), program.variable(1, 1)
        half = program.variable(0, load[1])
        program.equal([(length, 1), (half, -2)], 0)
        program.at_most([(start, 1), (length, 1), (last, -1)], 0)
        made.append((start, length, place, load[0], []))
    program.machines.append((last, made))
    return program


def searched(program):
    search = Shaving(program, Box(program.lower[:], program.upper[:], []), Budget(60.0).start(), lambda *_: [], 1)
    return search.finished(), search.asked


def schedule(tasks, end):
    """Whether some starts and loads do not overlap, by trying all."""
    ranges = [range(low, high + 1) for low, high in (r for task in tasks for r in task)]
    for values in product(*ranges):
        spans = sorted((s, s + n) for s, n in zip(values[::2], values[1::2], strict=True))
        apart = all(f <= s for (_, f), (s, _) in pairwise(spans))
        if apart and spans[-1][1] <= end and all(n % 2 == 0 for n in values[1::2]):
            return True
    return False


# Starts that are fixed and overlap, and loads that are not: from 0 for 4 or 6, and from 3 for 2. What both take fits
# into 0 to 6, where the first one is over at the latest. The loads have to be told.
OVERLAP = [((0, 0), (4, 6)), ((3, 3), (2, 2))]


def test_loads_are_divided_where_starts_are_fixed():
    program = shop(OVERLAP, 20)
    box = Box(program.lower[:], program.upper[:], [])
    row, most = box.window(program.machines[0], 0, 6)
    assert sum(a * program.lower[j] for j, a in row.items()) <= most
    assert not schedule(OVERLAP, 20)
    steps, _ = searched(program)
    refuted(program, steps)


def test_a_schedule_that_is_fixed_ends_the_search():
    # Once the box had a width of 0, which is no less than it was.
    steps, asked = searched(shop([((0, 0), (4, 4)), ((4, 4), (2, 2))], 20))
    assert steps is None
    assert asked < 10


@pytest.mark.parametrize("seed", range(40))
def test_what_has_no_schedule_is_refuted_and_nothing_else(seed):
    tasks = [(((seed * k) % 3, (seed * k) % 3 + seed % 4), (2, 2 + 2 * (seed // k % 2))) for k in (1, 2, 3)]
    end = 5 + seed % 5
    steps, _ = searched(shop(tasks, end))
    assert (steps is None) == schedule(tasks, end)
    if steps is not None:
        refuted(shop(tasks, end), steps)


def test_a_store_may_hold_nothing_that_comes_and_goes():
    program = shop([((0, 4), (2, 2))], 20)
    program.stores.append((3, [(program.machines[0][1][0][2], 3)], []))
    assert searched(program)[0] is None
