"""Refute the program of a schedule: parts of the ranges of starts are cut off where they are refuted at once.

A relaxation knows next to nothing of machines that do one task after the other. But what a machine has to do between
two times fits there, by the bounds of a box (``window`` of the checker's box), as does what a store holds at one time
(``moment``); and the closer these are, the more such rows a point violates. So a part at either end of the range of a
start is cut off, if single rows, windows and the relaxation together leave nothing of it (*shaving*), or a place: many
steps without a tree, each of which makes others possible. Only where ranges hardly get smaller a place is branched on.

Nearly all of the time goes to parts that are not refuted. A point that was found before, and that lies in the part and
in its windows, says so without a relaxation; else this begins at the basis, and with the windows, where that of the
whole box ended. What is left of the box has a relaxation of its own, whose point says which place to branch on.

Where all starts, loads and places are fixed, windows and moments leave out nothing that a schedule must keep, but that
a task which takes no time waits for its machine as well. So what has no other schedule is refuted, given the time.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Sequence
from copy import copy, deepcopy
from typing import Any

import numpy as np

from mapgap.core import Budget
from mapgap.solvers.refute import (
    FRACTION,
    Box,
    Program,
    Promising,
    Search,
    Steps,
    emptying,
    look_ahead,
    middle,
)
from mapgap.solvers.rows import NARROWER, ROUNDS
from mapgap.solvers.trim import ROWS, followed, trimmed

LITTLE = 0.5
"""Ticks by which a window does not fit at a point at least: less may be the engine's rounding."""


class Machine:
    """Tasks of a machine in arrays, to see which windows a point violates."""

    def __init__(self, end: int, tasks: Sequence[tuple[int, int, int, int, list[int]]]) -> None:
        self.end = end
        self.start, self.load, self.place, self.least = np.array([task[:4] for task in tasks], np.int64).T
        self.after = np.array([j for *_, after in tasks for j in (end, *after)])
        self.firsts = np.cumsum([0, *(1 + len(after) for *_, after in tasks)])[:-1]

    def violated(self, lower: Any, upper: Any, point: Any) -> list[tuple[int, ...]]:
        """``(begin,)`` or ``(begin, end)`` of those that do not fit, of a begin with the end where it is by most.

        Parameters
        ----------
        lower, upper : arrays of int
            Of all variables.
        point : array of float
        """
        seen = np.flatnonzero(upper[self.place])
        first, final = lower[self.start], upper[self.start] + upper[self.load]
        final = np.minimum(final, np.minimum.reduceat(upper[self.after], self.firsts))
        seen = seen[np.argsort(final[seen], kind="stable")]
        first, final, least = first[seen], final[seen], self.least[seen]
        begins = np.unique(first[first <= lower[self.end]])[:, None]
        overlap = np.clip(first + least - begins, 0, least) * point[self.place[seen]]
        done = np.cumsum(np.where(first >= begins, point[self.load[seen]], overlap), axis=1)
        over = np.where(final >= begins, begins + done - final, -np.inf)
        found: list[tuple[int, ...]] = []
        for begin, here, so_far in zip(begins[:, 0].tolist(), over, done, strict=True):
            at = int(here.argmax())
            if here[at] > LITTLE:
                found.append((begin, int(final[at])))
            if begin + so_far[-1] - point[self.end] > LITTLE:
                found.append((begin,))
        return found


class Store:
    """What a store holds in arrays, to see at which times a point has too much of it; all have as many loads."""

    def __init__(self, room: int, always: Sequence[tuple[int, int]], held: Sequence[Any]) -> None:
        self.room, self.always = room, np.array(always, np.int64).reshape(-1, 2).T
        self.start, self.place, self.size, self.last = np.array([each[:4] for each in held], np.int64).reshape(-1, 4).T
        loads = np.array([each[4] for each in held], np.int64)
        self.loads = loads.reshape(len(held), loads.size // max(1, len(held)))

    def violated(self, lower: Any, upper: Any, point: Any) -> list[tuple[int]]:
        """``(time,)`` of those at which too much is there, when something comes."""
        begin, until = upper[self.start], lower[self.last] + lower[self.loads].sum(axis=1)
        times = np.unique(begin[begin < until])
        there = (begin <= times[:, None]) & (times[:, None] < until)
        always, each = self.always
        stored = there @ (self.size * point[self.place]) + (point[always] * each).sum()
        return [(int(time),) for time in times[stored > self.room + LITTLE]]


class Part:
    """A box, the numbers of those of its rows that its relaxation has, and the basis where that ended."""

    def __init__(self, box: Box, rows: list[int], basis: Any) -> None:
        self.box, self.rows, self.basis = box, rows, basis


class Shaving:
    """The search for the steps of one program.

    Parameters
    ----------
    program : Program
        With ``cutoff`` and ``machines``, and with ``stores`` if it has any.
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
        self.search.relaxation.weigh_less()
        self.row, self.limit = program.rows[program.cutoff]
        self.sizes: dict[tuple[int, bool], int] = {}
        self.machines = [Machine(*machine) for machine in program.machines]
        self.stores = [Store(*store) for store in program.stores]
        tasks = [task for _, those in program.machines for task in those]
        self.decided = [list(dict.fromkeys(task[k] for task in tasks)) for k in (0, 1, 2)]
        self.starts, _, self.places = self.decided
        self.asked, self.whole = 0, deepcopy(box)
        self.steps: Steps | None = None
        self.points: deque[Any] = deque(maxlen=2 * len(self.starts))
        self.growing = self.grow(Part(box, [], None), set(range(len(program.rows))))

    def turn(self) -> bool:
        """Look at one range; ``False`` if the search ended."""
        try:
            next(self.growing)
        except StopIteration as end:
            self.steps = None if end.value is None else trimmed(self.program, self.whole, end.value)
            return False
        return True

    def finished(self) -> Steps | None:
        """The steps, if any are found in time."""
        while self.turn():
            pass
        return self.steps

    def grow(self, part: Part, waiting: set[int]) -> Generator[None, None, Steps | None]:
        """Steps that leave nothing of a box; ``None`` if none are found in time."""
        steps: Steps = []
        behind: list[Steps] = []  # of upper parts, which come after all that is below
        while (point := self.closed(part, waiting, steps)) is not None:
            before = self.width(part.box)
            if (yield from self.shaved(part, steps, behind)):
                break
            if self.budget.exhausted:
                return None
            if self.width(part.box) < NARROWER * before:
                waiting = set()
                continue
            if (halves := self.halves(part, point, steps)) is None:
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

    def halves(self, part: Part, point: Sequence[float], steps: Steps) -> list[Part] | None:
        """Of a box at a promising place, or else in the middle of the widest range of a start, then of a load and of a
        place; ``None`` where all of these are fixed."""
        box = part.box
        self.relax(part)
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
            widest = (max(those, key=lambda j: box.upper[j] - box.lower[j]) for those in self.decided)
            j = next((j for j in widest if box.lower[j] < box.upper[j]), None)
            if j is None:
                return None
            v = (box.lower[j] + box.upper[j]) // 2
        steps.append(["s", j, v])
        return [Part(half, part.rows[:], part.basis) for half in box.halves(j, v)]

    def shaved(self, part: Part, steps: Steps, behind: list[Steps]) -> Generator[None, None, bool]:
        """Cut off what is refuted of all ranges and choices; whether nothing of the box is left."""
        box = part.box
        for j in self.starts:
            yield
            for below in (True, False):
                size = self.sizes.get((j, below), self.least)
                while box.lower[j] < box.upper[j] and not self.budget.exhausted:
                    v = min(box.lower[j] + size, box.upper[j]) - 1 if below else max(box.upper[j] - size, box.lower[j])
                    cut = self.cut(part, j, v, below, steps, behind)
                    if cut is None:
                        return True
                    self.sizes[j, below] = size
                    size = 2 * size if cut else size // 4
                    if not cut and size < self.least:
                        break
        for j in self.places:
            for below in (True, False):
                if box.lower[j] == box.upper[j] or self.budget.exhausted:
                    break
                if self.cut(part, j, 0, below, steps, behind) is None:
                    return True
        return False

    def cut(self, part: Part, j: int, v: int, below: bool, steps: Steps, behind: list[Steps]) -> bool | None:
        """Cut off ``x[j] <= v``, or what is above; whether that was refuted, and ``None`` if the rest is as well."""
        halves, waiting = part.box.halves(j, v), set(self.search.users[j])
        tried = Part(halves[not below], part.rows[:], part.basis)
        own = self.search.proof = []
        if self.search.propagate(tried.box, waiting) and (
            self.known(tried.box) or self.closed(tried, waiting, own) is not None
        ):
            return False
        steps.append(["s", j, v])
        if below:
            steps += own
        else:
            behind.append(own)
        part.box.lower, part.box.upper = halves[below].lower, halves[below].upper
        self.search.proof = steps
        return True if self.search.propagate(part.box, set(self.search.users[j])) else None

    def closed(self, part: Part, waiting: set[int], steps: Steps) -> list[float] | None:
        """Shrink a box; a point of it (empty if the engine has none), or ``None`` if nothing of it is left."""
        own: Steps = []
        before = len(part.box.rows)
        point = self._closed(part, waiting, own)
        steps += self.used(own, part, before)
        return point

    def relax(self, part: Part) -> None:
        """Begin the relaxation of a box where it ended before."""
        self.search.relaxation.extend([part.box.rows[k] for k in part.rows], part.basis)

    def _closed(self, part: Part, waiting: set[int], steps: Steps) -> list[float] | None:
        box, relaxation, base = part.box, self.search.relaxation, len(self.program.rows)
        self.search.proof = steps
        if not self.search.propagate(box, waiting):
            return None
        self.relax(part)
        point: list[float] = []
        for _ in range(ROUNDS):
            self.asked += 1
            found, duals = relaxation.minimise(box, self.row)
            within = found is not None and sum(a * found[j] for j, a in self.row.items()) <= self.limit
            if not within:
                duals = [(i if i < base else base + part.rows[i - base], y) for i, y in duals]
                number = None if found is None else self.program.cutoff
                step = emptying(self.program.rows + box.rows, box, number, duals)
                if step is not None:
                    steps.append(step)
                    return None
                if found is None:  # after many changes a dual ray may be none
                    relaxation.forget()
                    return point
            point = found or point
            part.basis, others = relaxation.basis()
            part.rows = [part.rows[k] for k in others]
            violated = self.violated(box, point)
            if not violated:
                if within:
                    self.points.append(np.array(point))
                break
            self.relax(part)
            for step in violated:
                steps.append(step)
                followed(self.program, box, step)
                part.rows.append(len(box.rows) - 1)
                if not self.search.add(box, ["p", base + len(box.rows) - 1, 1], waiting):
                    return None
            if not self.search.propagate(box, waiting):
                return None
            relaxation.extend([box.rows[k] for k in part.rows])
        return point

    def known(self, box: Box) -> bool:
        """Whether a point of another box lies in this one, and in its windows, so that no relaxation refutes it."""
        points = np.array(self.points).reshape(-1, len(box.lower))
        inside = (points >= np.array(box.lower) - FRACTION) & (points <= np.array(box.upper) + FRACTION)
        return any(not self.violated(box, point) for point in points[inside.all(axis=1)][::-1])

    def violated(self, box: Box, point: Sequence[float]) -> Steps:
        """Windows and moments that a point violates, as steps."""
        lower, upper, at = np.array(box.lower), np.array(box.upper), np.array(point)
        kinds: tuple[tuple[str, Sequence[Any]], ...] = (("w", self.machines), ("m", self.stores))
        return [
            [kind, k, *times]
            for kind, found in kinds
            for k, one in enumerate(found)
            for times in one.violated(lower, upper, at)
        ]

    def used(self, steps: Steps, part: Part, before: int) -> Steps:
        """Steps of one box without the rows that no sum has, nor its relaxation; the box has no others either.

        Parameters
        ----------
        before : int
            The number of the row of the box that the first one of the steps is.
        """
        base, rows = len(self.program.rows), part.box.rows
        needed = {i - base for kind, *numbers in steps if kind == "p" for i in numbers[::2]} | set(part.rows)
        kept = [k for k in range(len(rows)) if k < before or k in needed]
        names = {base + k: base + number for number, k in enumerate(kept)}
        found: Steps = []
        row = before
        for kind, *numbers in steps:
            if kind in ROWS:
                row += 1
                if row - 1 not in needed:
                    continue
            elif kind == "p":
                numbers[::2] = [names.get(i, i) for i in numbers[::2]]
            found.append([kind, *numbers])
        part.rows = [names[base + k] - base for k in part.rows]
        part.box.rows[:] = [rows[k] for k in kept]
        return found
