"""Refute the program of a schedule: parts of the ranges of starts are cut off where they are refuted at once.

A relaxation knows next to nothing of machines that do one task after the other. But what a machine has to do between
two times fits there, by the bounds of a box (``window`` of the checker's box); and the closer these are, the more such
rows a point violates. So a part at either end of the range of a start is cut off, if single rows, windows and the
relaxation together leave nothing of it (*shaving*), or a place: many steps without a tree, each of which makes others
possible. Only where ranges hardly get smaller a place is branched on.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from copy import copy
from typing import Any

import numpy as np

from mapgap.core import Budget
from mapgap.solvers.refute import (
    FRACTION,
    NARROWER,
    ROUNDS,
    Box,
    Program,
    Promising,
    Search,
    Steps,
    emptying,
    look_ahead,
    middle,
)


class Machine:
    """Tasks of a machine in arrays, to see which windows a point violates."""

    def __init__(self, end: int, tasks: Sequence[tuple[int, int, int, int, list[int]]]) -> None:
        self.end = end
        self.start, self.load, self.place, self.least = np.array([task[:4] for task in tasks], np.int64).T
        self.after = np.array([j for *_, after in tasks for j in (end, *after)])
        self.firsts = np.cumsum([0, *(1 + len(after) for *_, after in tasks)])[:-1]

    def violated(self, lower: Any, upper: Any, point: Any, little: float) -> list[tuple[int, ...]]:
        """``(begin,)`` or ``(begin, end)`` of those that do not fit, of a begin with the end where it is by most.

        Parameters
        ----------
        lower, upper : arrays of int
            Of all variables.
        point : array of float
        little : float
            Ticks by which a window does not fit at least.
        """
        seen = np.flatnonzero(upper[self.place])
        first, final = lower[self.start], np.minimum.reduceat(upper[self.after], self.firsts)
        seen = seen[np.argsort(final[seen], kind="stable")]
        first, final, least = first[seen], final[seen], self.least[seen]
        begins = np.unique(first[first <= lower[self.end]])[:, None]
        overlap = np.clip(first + least - begins, 0, least) * point[self.place[seen]]
        done = np.cumsum(np.where(first >= begins, point[self.load[seen]], overlap), axis=1)
        over = np.where(final >= begins, begins + done - final, -np.inf)
        found: list[tuple[int, ...]] = []
        for begin, here, so_far in zip(begins[:, 0].tolist(), over, done, strict=True):
            at = int(here.argmax())
            if here[at] > little:
                found.append((begin, int(final[at])))
            if begin + so_far[-1] - point[self.end] > little:
                found.append((begin,))
        return found


class Shaving:
    """The search for the steps of one program.

    Parameters
    ----------
    program : Program
        With ``cutoff`` and ``machines``.
    box : Box
        All bounds of the program.
    promising : callable
        Places to branch on, where shaving ends.
    least : int
        No less is cut off a range; where that much goes, twice as much is tried next, and a quarter where it does not.

    Attributes
    ----------
    asked : int
        Relaxations so far.
    steps : list of steps or None
        What the search ended with: steps that leave nothing of the box.
    """

    def __init__(self, program: Program, box: Box, budget: Budget, promising: Promising, least: int) -> None:
        self.program, self.budget, self.promising, self.least = program, budget, promising, least
        self.search = Search(program, budget, None, False, ())
        self.row, self.limit = program.rows[program.cutoff]
        self.parts: dict[tuple[int, bool], int] = {}
        self.machines = [Machine(*machine) for machine in program.machines]
        tasks = [task for _, those in program.machines for task in those]
        self.starts, self.places = (list(dict.fromkeys(task[k] for task in tasks)) for k in (0, 2))
        self.asked, self.steps = 0, None
        self.growing = self.grow(box, set(range(len(program.rows))))

    def turn(self) -> bool:
        """Look at all ranges of a box once; ``False`` if the search ended."""
        try:
            next(self.growing)
        except StopIteration as end:
            self.steps = end.value
            return False
        return True

    def finished(self) -> Steps | None:
        """The steps, if any are found in time."""
        while self.turn():
            pass
        return self.steps

    def grow(self, box: Box, waiting: set[int]) -> Generator[None, None, Steps | None]:
        """Steps that leave nothing of a box; ``None`` if none are found in time."""
        steps: Steps = []
        behind: list[Steps] = []  # of upper parts, which come after all that is below
        while (point := self.closed(box, waiting, steps)) is not None:
            before = self.width(box)
            yield
            if self.shaved(box, steps, behind):
                break
            if self.budget.exhausted:
                return None
            if self.width(box) <= NARROWER * before:
                waiting = set()
                continue
            if (halves := self.halves(box, point, steps)) is None:
                return None
            for half in halves:
                own = yield from self.grow(half, set(self.search.users[steps[-1][1]]))
                if own is None:
                    return None
                behind.append(own)
            behind[-2:] = reversed(behind[-2:])
            break
        return steps + [step for own in reversed(behind) for step in own]

    def width(self, box: Box) -> int:
        """The sum of all ranges of starts."""
        return sum(box.upper[j] - box.lower[j] for j in self.starts)

    def halves(self, box: Box, point: Sequence[float], steps: Steps) -> tuple[Box, Box] | None:
        """Of a box at a promising place, or else in the middle of the widest range of a start; ``None`` of a point."""
        self.search.relaxation.extend(())
        if not point:  # all but empty, and the engine's tolerances are too large: where it nearly is
            ranges = zip(box.lower, box.upper, self.program.upper, strict=True)
            wider = copy(box)
            wider.upper = [high if low == high else most for low, high, most in ranges]
            point = self.search.relaxation.minimise(wider, self.row)[0] or []
        found = self.promising(box, point)
        j = look_ahead(self.search.relaxation, box, self.row, self.limit, point, found)
        if j is not None:
            v = middle(box, point, j)
        else:
            j = max(self.starts, key=lambda j: box.upper[j] - box.lower[j])
            if box.lower[j] == box.upper[j]:
                return None
            v = (box.lower[j] + box.upper[j]) // 2
        steps.append(["s", j, v])
        halves: tuple[Box, Box] = box.halves(j, v)
        return halves

    def shaved(self, box: Box, steps: Steps, behind: list[Steps]) -> bool:
        """Cut off what is refuted of all ranges and choices; whether nothing of the box is left."""
        for j in self.starts:
            for below in (True, False):
                part = self.parts.get((j, below), self.least)
                while box.lower[j] < box.upper[j] and not self.budget.exhausted:
                    v = min(box.lower[j] + part, box.upper[j]) - 1 if below else max(box.upper[j] - part, box.lower[j])
                    cut = self.cut(box, j, v, below, steps, behind)
                    if cut is None:
                        return True
                    self.parts[j, below] = part
                    part = 2 * part if cut else part // 4
                    if not cut and part < self.least:
                        break
        for j in self.places:
            for below in (True, False):
                if box.lower[j] == box.upper[j] or self.budget.exhausted:
                    break
                if self.cut(box, j, 0, below, steps, behind) is None:
                    return True
        return False

    def cut(self, box: Box, j: int, v: int, below: bool, steps: Steps, behind: list[Steps]) -> bool | None:
        """Cut off ``x[j] <= v``, or what is above; whether that was refuted, and ``None`` if the rest is as well."""
        halves = box.halves(j, v)
        own: Steps = []
        if self.closed(halves[not below], set(self.search.users[j]), own) is not None:
            return False
        steps.append(["s", j, v])
        if below:
            steps += own
        else:
            behind.append(own)
        rest = halves[below]
        box.lower, box.upper = rest.lower, rest.upper
        self.search.proof = steps
        return True if self.search.propagate(box, set(self.search.users[j])) else None

    def closed(self, box: Box, waiting: set[int], steps: Steps) -> list[float] | None:
        """Shrink a box; a point of it (empty if the engine has none), or ``None`` if nothing of it is left."""
        own: Steps = []
        before = len(box.rows)
        point = self._closed(box, waiting, own)
        steps += used(own, box, len(self.program.rows) + before)
        return point

    def _closed(self, box: Box, waiting: set[int], steps: Steps) -> list[float] | None:
        relaxation, base, before = self.search.relaxation, len(self.program.rows), len(box.rows)
        self.search.proof = steps
        relaxation.extend(())
        point: list[float] = []
        for _ in range(ROUNDS):
            if not self.search.propagate(box, waiting):
                return None
            self.asked += 1
            found, duals = relaxation.minimise(box, self.row)
            duals = [(i if i < base else i + before, y) for i, y in duals]
            if found is None or sum(a * found[j] for j, a in self.row.items()) > self.limit:
                number = None if found is None else self.program.cutoff
                step = emptying(self.program.rows + box.rows, box, number, duals)
                if step is not None:
                    steps.append(step)
                    return None
                if found is None:  # after many changes a dual ray may be none
                    relaxation.forget()
                    return point
            point = found or point
            windows = self.windows(box, point)
            if not windows:
                break
            for k, *times in windows:
                steps.append(["w", k, *times])
                box.rows.append(box.window(self.program.machines[k], *times))
                if not self.search.add(box, ["p", base + len(box.rows) - 1, 1], waiting):
                    return None
            relaxation.extend(box.rows[before:])
        return point

    def windows(self, box: Box, point: Sequence[float]) -> list[tuple[int, ...]]:
        """Those that a point violates."""
        lower, upper, at = np.array(box.lower), np.array(box.upper), np.array(point)
        little = FRACTION * self.limit + 1
        return [
            (k, *times)
            for k, machine in enumerate(self.machines)
            for times in machine.violated(lower, upper, at, little)
        ]


def used(steps: Steps, box: Box, first: int) -> Steps:
    """Steps of one box without the windows that no sum has; the box has no others either.

    Parameters
    ----------
    first : int
        The number of the row that the first window of the steps is.
    """
    sums = {i for kind, *numbers in steps if kind == "p" for i in numbers[::2]}
    names: dict[int, int] = {}
    found: Steps = []
    windows = rows = first
    for kind, *numbers in steps:
        if kind == "w":
            if windows in sums:
                names[windows] = rows
                rows += 1
                found.append([kind, *numbers])
            windows += 1
        elif kind == "p":
            renamed = [names.get(i, i) for i in numbers[::2]]
            found.append([kind, *(n for pair in zip(renamed, numbers[1::2], strict=True) for n in pair)])
        else:
            found.append([kind, *numbers])
    begin = len(box.rows) - (windows - first)
    box.rows[begin:] = [row for k, row in enumerate(box.rows[begin:], first) if k in names]
    return found
