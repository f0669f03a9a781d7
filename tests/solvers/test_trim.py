"""What is left of a refutation is one, and has nothing that a page of reasoning does without."""

from mapgap.evidence.check import Box, Program, refuted
from mapgap.solvers.trim import trimmed


def small(*rows):
    """Three variables of 0 to 9."""
    program = Program()
    for _ in range(3):
        program.variable(0, 9)
    for terms, bound in rows:
        program.at_most(terms, bound)
    return program


def trim(program, steps):
    refuted(program, steps)
    found = trimmed(program, Box(program.lower[:], program.upper[:], []), steps)
    refuted(program, found)
    return found


def test_a_row_that_nothing_rests_on_goes():
    # x >= 5, y <= 3 and x <= 4: y does not matter, nor that x <= 7
    program = small(([(0, -1)], -5), ([(1, 1)], 3), ([(0, 1)], 7), ([(0, 1)], 4))
    assert trim(program, [["q", 1, 0, 2, 3]]) == [["q", 0, 3]]


def test_what_a_row_rests_on_stays():
    # x >= 5, so y >= 5 by x <= y, so z >= 5, and z <= 4
    program = small(([(0, -1)], -5), ([(0, 1), (1, -1)], 0), ([(1, 1), (2, -1)], 0), ([(2, 1)], 4))
    assert trim(program, [["q", 0, 1], ["q", 2, 3]]) == [["q", 0, 1, 2, 3]]


def test_a_division_goes_that_a_half_does_not_need():
    # neither half needs to know that x <= 4, or x >= 5
    program = small(([(1, -1)], -5), ([(1, 1)], 4))
    assert trim(program, [["s", 0, 4], ["q", 0, 1], ["q", 0, 1]]) == [["q", 0, 1]]
    # y <= 4 is no news to the lower half of y; the upper one needs that it is above 4
    assert trim(program, [["s", 1, 4], ["q", 0], ["q", 1]]) == [["s", 1, 4], ["q", 0], ["q", 1]]


def test_a_division_stays_that_both_halves_need():
    # x = y and x + y = 9, so neither is whole; that x + y <= 9 alone does nothing
    program = small(([(0, 1), (1, -1)], 0), ([(0, -1), (1, 1)], 0), ([(0, 1), (1, 1)], 9), ([(0, -1), (1, -1)], -9))
    steps = [["q", 2], ["s", 0, 4], ["q", 1, 3], ["q", 0, 2]]
    assert trim(program, steps) == steps[1:]


def test_sums_and_windows_have_new_numbers():
    # a machine with two tasks of 3 and 4 that start at 0 or later and end by 6, and a window too early to matter
    program = small()
    loads = [program.variable(3, 3), program.variable(4, 4)]
    places = [program.variable(1, 1) for _ in loads]
    program.upper[2] = 6
    program.machines.append((2, [(0, loads[0], places[0], 3, []), (1, loads[1], places[1], 4, [])]))
    first = len(program.rows)
    steps = [["w", 0, 0, 9], ["w", 0, 0, 6], ["p", first, 1], ["p", first + 1, 1]]
    assert trim(program, steps) == [["w", 0, 0, 6], ["p", first, 1]]


def test_what_is_stored_rests_on_when_it_comes_and_goes():
    # 5 from x <= 2 until y >= 3, in a store of 4; z does not matter
    program = small(([(0, 1)], 2), ([(1, -1)], -3), ([(2, 1)], 4))
    place, load = program.variable(1, 1), program.variable(0, 1)
    program.stores.append((4, [], [(0, place, 5, 1, [load])]))
    steps = [["q", 2, 0, 1], ["m", 0, 2], ["p", 3, 1]]
    assert trim(program, steps) == [["q", 0, 1], *steps[1:]]
    refuted(program, steps)


def test_a_window_rests_on_when_a_task_is_over():
    # two tasks of 3 that start by 2 are over by 5; that the end is at most 9 does not matter
    program = small(([(0, 1)], 2), ([(1, 1)], 2), ([(2, 1)], 9))
    loads, places = ([program.variable(n, n) for _ in range(2)] for n in (3, 1))
    program.machines.append((2, [(j, loads[j], places[j], 3, []) for j in (0, 1)]))
    steps = [["q", 2, 1, 0], ["w", 0, 0, 5], ["p", 3, 1]]
    assert trim(program, steps) == [["q", 1, 0], *steps[1:]]


def test_a_secant_rests_on_both_bounds_of_its_factor():
    # x y <= 6 with x and y from 3 on
    program = small(([(0, -1)], -3), ([(1, -1)], -3), ([(2, -1)], -1))
    program.products.append((0, 1, 6))
    program.lower[1] = 1
    steps = [["q", 2, 1, 0], ["h", 0], ["p", 3, 1]]
    assert trim(program, steps) == [["q", 1, 0], *steps[1:]]
