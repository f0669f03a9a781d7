"""Bounds by what is refuted: none above what is true, halves where the whole is not to be had, and fair shares."""

import random

import pytest

from mapgap.solvers.destructive import Destructive


class Refuting:
    """A search that ends after so many turns, with steps if nothing is below its aim."""

    def __init__(self, aim, optimum, turns, rng):
        self.aim, self.optimum, self.turns, self.rng = aim, optimum, turns, rng
        self.asked, self.steps = 0, None

    def turn(self):
        self.asked += self.rng.randint(0, 3)
        self.turns -= 1
        if self.turns <= 0 and self.aim <= self.optimum:
            self.steps = [["nothing below", self.aim]]
        return self.turns > 0


def bounds_of(goal, optimum, bound, turns, seed):
    """Those that two searches prove one after the other, and the relaxations of each aim that was tried."""
    begun, rng = [], random.Random(seed)

    def begin(aim):
        begun.append(Refuting(aim, optimum, turns(aim), rng))
        return begun[-1]

    both, bounds = Destructive(begin, goal, 10), [bound]
    while bounds[-1] < goal and both.turn(bounds[-1]):
        if both.proven is not None and both.proven[0] > bounds[-1]:
            assert both.proven[1] == [["nothing below", both.proven[0]]]
            bounds.append(both.proven[0])
    assert both.asked == sum(search.asked for search in begun)
    return bounds, begun


@pytest.mark.parametrize("seed", range(5))
def test_half_of_the_way_again_and_again_to_an_optimum_below_the_goal(seed):
    """Bisection by hand of 2,000 to 10,000 with an optimum of 8,600, until no more than a step of 10 is left."""
    bounds, begun = bounds_of(10_000, 8_600, 2_000, lambda aim: 50, seed)
    assert bounds == [2_000, 6_000, 8_000, 8_500, 8_563, 8_594]
    aims = [10_000, 6_000, 8_000, 9_000, 8_500, 8_750, 8_625, 8_563, 8_594, 8_610, 8_602]
    assert [search.aim for search in begun] == aims
    assert all(search.turns == 0 for search in begun)


@pytest.mark.parametrize("seed", range(5))
def test_a_goal_that_can_be_refuted_costs_no_more_than_twice_its_search(seed):
    bounds, begun = bounds_of(10_000, 10_000, 2_000, lambda aim: 300 if aim == 10_000 else 90, seed)
    assert bounds == [2_000, 6_000, 8_000, 9_000, 10_000]
    whole = begun[0].asked
    assert sum(search.asked for search in begun[1:]) <= whole + 3  # those of the last turn


@pytest.mark.parametrize("seed", range(5))
def test_halves_go_on_while_the_goal_takes_long_and_stop_at_a_step(seed):
    """From 9,985 half of 15 is 9,993; half of the 7 that are missing then is less than a step."""
    bounds, begun = bounds_of(10_000, 9_995, 2_000, lambda aim: 2_000 if aim == 10_000 else 20, seed)
    assert bounds[-2:] == [9_985, 9_993]
    assert begun[0].turns == 0
    assert begun[0].steps is None


def test_what_is_proven_elsewhere_ends_the_search_for_as_much():
    begun = []

    def begin(aim):
        begun.append(Refuting(aim, 10**6, 10**6, random.Random(0)))
        return begun[-1]

    both = Destructive(begin, 1_000, 10)
    assert both.turn(0)
    assert both.searches == 2
    assert both.turn(500)
    assert [search.aim for search in begun] == [1_000, 500, 750]
    assert both.turn(995)
    assert both.searches == 1
    assert len(begun) == 3


def test_one_that_is_missing_is_not_looked_for_twice():
    begun = []

    def begin(aim):
        begun.append(Refuting(aim, 100, 1, random.Random(0)))
        return begun[-1]

    both = Destructive(begin, 100, 0)
    assert both.turn(99)
    assert both.proven == (100, [["nothing below", 100]])
    assert len(begun) == 1
