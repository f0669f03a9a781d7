"""A search for refutations of scheduling programs, where branching and propagation matter more than elsewhere.

As in :mod:`mapgap.solvers.refute`, HiGHS solves linear relaxations and its duals, rounded, become steps of a proof. Two
things differ. The relaxations of both halves decide between several variables to branch on, as big numbers of boxes
would make files large. And only rows with a variable whose bounds moved are propagated: a schedule has many rows, and
most bounds of times move a little all the time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import highspy
import numpy as np

from mapgap.core import Budget
from mapgap.evidence.check import Box, Program, combined
from mapgap.solvers.guard import check_version

SCALES = (10**3, 10**5, 10**8, 10**11, 10**14, 10**17)
"""Multipliers are duals times one of these, the smallest that proves something: short numbers, short files."""
FRACTION = 1e-6
ROUNDS = 12
NARROWER = 0.9
"""A range has to shrink to this part of itself for another look at its rows."""
CANDIDATES = 8
"""Variables whose halves are tried before a box is split."""
DECIDED = (highspy.HighsModelStatus.kOptimal, highspy.HighsModelStatus.kInfeasible)

Point = Sequence[float]
Duals = list[tuple[int, float]]


class Relaxation:
    """The linear relaxation in HiGHS, with the bounds of one box after the other."""

    def __init__(self, program: Program) -> None:
        check_version("highspy")
        count, rows = len(program.lower), program.rows
        self.columns, self.cutoff = np.arange(count, dtype=np.int32), program.cutoff
        self.wide = np.array(program.upper) > 1
        lp = highspy.HighsLp()
        lp.num_col_, lp.num_row_ = count, len(rows)
        cost = np.zeros(count)
        for j, a in rows[program.cutoff][0].items():
            cost[j] = a
        lp.col_cost_ = cost
        lp.col_lower_, lp.col_upper_ = np.array(program.lower, float), np.array(program.upper, float)
        limits = np.array([float(bound) for _, bound in rows])
        limits[program.cutoff] = highspy.kHighsInf  # it is what is minimised
        lp.row_lower_, lp.row_upper_ = np.full(len(rows), -highspy.kHighsInf), limits
        lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
        lp.a_matrix_.start_ = np.cumsum([0, *(len(row) for row, _ in rows)]).astype(np.int32)
        lp.a_matrix_.index_ = np.array([j for row, _ in rows for j in row], np.int32)
        lp.a_matrix_.value_ = np.array([float(a) for row, _ in rows for a in row.values()])
        self.engine = highspy.Highs()
        for name, setting in {"output_flag": False, "threads": 1, "presolve": "off", "solver": "simplex"}.items():
            self.engine.setOptionValue(name, setting)
        self.engine.passModel(lp)

    def value(self, box: Box) -> float:
        """The least value of the cutoff row; infinite where there is none.

        A box that is almost empty can leave the engine undecided: then the bounds of times are left out.
        """
        lower, upper = np.array(box.lower, float), np.array(box.upper, float)
        self.engine.changeColsBounds(len(self.columns), self.columns, lower, upper)
        self.engine.run()
        if self.engine.getModelStatus() not in DECIDED:
            self.engine.clearSolver()
            upper = np.where(self.wide, highspy.kHighsInf, upper)
            self.engine.changeColsBounds(len(self.columns), self.columns, lower, upper)
            self.engine.run()
        optimal = self.engine.getModelStatus() == highspy.HighsModelStatus.kOptimal
        return cast(float, self.engine.getInfo().objective_function_value) if optimal else float("inf")

    def solve(self, box: Box) -> tuple[Point, Duals]:
        """``(point, multipliers)``; without a point the multipliers are those of a dual ray."""
        self.value(box)
        status = self.engine.getModelStatus()
        if status == highspy.HighsModelStatus.kInfeasible:
            _, has, ray = self.engine.getDualRay()
            return [], multipliers(np.asarray(ray)) if has else []
        if status != highspy.HighsModelStatus.kOptimal:
            return [], []
        solution = self.engine.getSolution()
        duals = multipliers(np.asarray(solution.row_dual))
        return list(solution.col_value), [*duals, (self.cutoff, 1.0)]


def multipliers(duals: Any) -> Duals:
    """Of rows ``<=``, largest 1 or as they are."""
    return [(int(i), -float(duals[i])) for i in np.flatnonzero(duals < -1e-12)]


class Search:
    """Depth first; ``proof`` grows by every step that does something."""

    def __init__(self, program: Program, priority: Sequence[Sequence[int]]) -> None:
        self.program, self.priority = program, priority
        self.relaxation = Relaxation(program)
        self.proof: list[list[Any]] = []
        self.users: dict[int, list[int]] = {}
        for i, (row, _) in enumerate(program.rows):
            for j in row:
                self.users.setdefault(j, []).append(i)

    def run(self, budget: Budget, boxes: int) -> list[list[Any]] | None:
        """The proof; ``None`` if there is a point, or none is found with so many boxes."""
        first = Box(self.program.lower[:], self.program.upper[:], [])
        stack = [(first, set(range(len(self.program.rows))))]
        while stack:
            boxes -= 1
            if boxes < 0 or budget.exhausted:
                return None
            box, waiting = stack.pop()
            point = self.shrink(box, waiting)
            if point is None:
                continue
            j = self.branching(box, point)
            if j is None:
                return None
            v = int(np.floor(point[j] + FRACTION)) if point else box.lower[j]
            v = min(max(v, box.lower[j]), box.upper[j] - 1)
            self.proof.append(["s", j, v])
            below, above = box.halves(j, v)
            stack += [(above, set(self.users[j])), (below, set(self.users[j]))]
        return self.proof

    def shrink(self, box: Box, waiting: set[int]) -> Point | None:
        """A point to branch at, empty if none is known; ``None`` if the box is empty."""
        while True:
            if not self.propagate(box, waiting):
                return None
            point, duals = self.relaxation.solve(box)
            before = (box.lower[:], box.upper[:])
            worse = bool(point) and point[0] > box.upper[0] + FRACTION
            largest = 1.0 if point else max((y for _, y in duals), default=1.0)
            for scale in (SCALES if worse or not point else SCALES[1:2]) if duals else ():
                step: list[Any] = ["p"]
                for i, y in duals:
                    if (whole := round(scale * y / largest)) > 0:
                        step += [i, whole]
                row, bound = combined(self.program.rows, step[1:])
                if sum(a * (box.lower[j] if a > 0 else box.upper[j]) for j, a in row.items()) > bound:
                    self.proof.append(step)
                    return None
                if not worse and point:
                    box.tighten(row, bound)
                    break
            if (box.lower, box.upper) == before:
                return point
            self.proof.append(step)
            moved = [j for j in row if self.moved(box, j, before[0][j], before[1][j])]
            waiting = {i for j in moved for i in self.users[j]}
            if not self.propagate(box, waiting):
                return None
            bounds = zip(box.lower, point, box.upper, strict=True)
            if all(low - FRACTION <= x <= high + FRACTION for low, x, high in bounds):
                return point
            waiting = set()

    @staticmethod
    def moved(box: Box, j: int, lower: int, upper: int) -> bool:
        return box.upper[j] - box.lower[j] < upper - lower and box.upper[j] - box.lower[j] <= NARROWER * (upper - lower)

    def propagate(self, box: Box, waiting: set[int]) -> bool:
        """Single rows until nothing moves much; the rows that did something become one step."""
        useful: list[Any] = ["q"]
        for _ in range(ROUNDS):
            touched: set[int] = set()
            for i in sorted(waiting):
                row, bound = self.program.rows[i]
                before = [(box.lower[j], box.upper[j]) for j in row]
                if not box.tighten(row, bound):
                    self.proof.append([*useful, i])
                    return False
                now = [(box.lower[j], box.upper[j]) for j in row]
                if now != before:
                    useful.append(i)
                    touched.update(j for j, old in zip(row, before, strict=True) if self.moved(box, j, *old))
            if not touched:
                break
            waiting = {i for j in touched for i in self.users[j]}
        if len(useful) > 1:
            self.proof.append(useful)
        return True

    def branching(self, box: Box, point: Point) -> int | None:
        """Of the most fractional variables of the first group that has any, the one whose halves are worst."""
        opened = [[j for j in group if box.lower[j] < box.upper[j]] for group in self.priority]
        if not point:
            return next((j for group in opened for j in group), None)
        away = {j: abs(point[j] - round(point[j])) for group in opened for j in group}
        split = [[j for j in group if away[j] > FRACTION] for group in opened]
        best = sorted(next((group for group in split if group), []), key=lambda j: -away[j])[:CANDIDATES]
        least = 1e-6 * max(1.0, point[0])

        def gain(j: int) -> float:
            found = 1.0
            for half in box.halves(j, int(np.floor(point[j]))):
                found *= max(least, min(self.relaxation.value(half), 2.0 * box.upper[0]) - point[0])
            return found

        return max(best, key=gain, default=None)


def refute(
    program: Program, budget: Budget, priority: Sequence[Sequence[int]], boxes: int = 1 << 30
) -> list[list[Any]] | None:
    """A proof that a program has no point; ``None`` if none is found within budget and number of boxes.

    Parameters
    ----------
    program : Program
        Without products; its variable 0 is what the cutoff row bounds.
    priority : sequence of sequences of int
        The variables to branch on, the more important ones first.
    """
    return Search(program, priority).run(budget, boxes)
