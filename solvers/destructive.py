"""Destructive bounds: what lies below a number is refuted, and so the number is a bound; by bisection.

That nothing is below the makespan of a plan takes long to show, or is wrong if a better plan exists. That nothing is
below half of the way there is easier by far, but all of these halves take longer than the whole where that can be
shown. So both have a search, and as much work (Klein, Scholl, "Computing lower bounds by destructive improvement: an
application to resource-constrained project scheduling", European Journal of Operational Research 112, 1999).
"""

from __future__ import annotations

from collections.abc import Callable

from mapgap.solvers.refute import Steps
from mapgap.solvers.shave import Shaving


class Destructive:
    """Two searches for steps of one program, of which either may go on; the one for halves begins anew after each.

    Parameters
    ----------
    begin : callable
        The search for steps that refute all below a number.
    goal : int
        A bound that is enough.
    step : int
        Where no more is missing, or only 1, half of it is no aim of its own.

    Attributes
    ----------
    proven : pair or None
        The largest bound that was refuted so far, and the steps.
    asked : int
        Relaxations of all searches.
    """

    def __init__(self, begin: Callable[[int], Shaving], goal: int, step: int) -> None:
        self.begin, self.goal, self.step = begin, goal, max(1, step)
        self.whole: Shaving | None = begin(goal)
        self.half: Shaving | None = None
        self.aim, self.top = 0, goal  # of the half, and the least number below which something was left
        self.lead = 0  # relaxations that halves had more than the whole
        self.proven: tuple[int, Steps] | None = None
        self.asked = 0

    @property
    def searches(self) -> int:
        """How many have not ended; at least 1."""
        return 2 if self.whole is not None and self.half is not None else 1

    def turn(self, bound: int) -> bool:
        """Let the search with less work look at one range; ``False`` if there is none.

        Parameters
        ----------
        bound : int
            Proven of the program, here or elsewhere.
        """
        if self.aim <= bound:
            self.half = None
        if self.half is None and self.top - bound > self.step:
            self.aim = self.top - (self.top - bound) // 2
            self.half = self.begin(self.aim)
        whole = self.half is None or (self.whole is not None and self.lead >= 0)
        search = self.whole if whole else self.half
        if search is None:
            return False
        before = search.asked
        more = search.turn()
        asked = search.asked - before
        self.asked += asked
        self.lead += -asked if whole else asked
        if not more:
            self.end(search, whole)
        return True

    def end(self, search: Shaving, whole: bool) -> None:
        """Keep what a search has ended with."""
        if search.steps is not None:
            self.proven = self.goal if whole else self.aim, search.steps
        if whole:
            self.whole = None
            return
        self.half = None
        if search.steps is None:
            self.top = self.aim
