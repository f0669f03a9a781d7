"""Refute an integer program by a tree of integer steps that :mod:`mapgap.evidence.check` follows without a solver.

HiGHS solves linear relaxations only. Its duals, scaled and rounded to integers, combine rows into one that is valid
whatever the engine's arithmetic; a useless combination proves nothing and is tried again at another scale. So no word
of an engine enters the proof: the search here decides which steps to write, the checker whether they hold.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import highspy
import numpy as np

from mapgap.core import Budget
from mapgap.solvers.guard import check_version

Terms = dict[int, int]
SCALES = (10**4, 10**6, 10**8, 10**11, 10**14, 10**17)
"""Multipliers are duals times one of these, the smallest that proves something: short numbers, short files."""
FRACTION = 1e-6
ROUNDS = 12
"""Rounds of single-row propagation per box."""


class Box(Protocol):
    """Bounds of all variables, as the checker keeps them."""

    lower: list[int]
    upper: list[int]
    secants: list[tuple[Terms, int]]

    def halves(self, j: int, v: int) -> tuple[Any, Any]: ...
    def tighten(self, row: Terms, bound: int) -> bool: ...
    def secant(self, product: tuple[int, int, int]) -> tuple[Terms, int]: ...


class Program(Protocol):
    """An integer program, as the checker's writers make it."""

    lower: list[int]
    upper: list[int]
    rows: list[tuple[Terms, int]]
    products: list[tuple[int, int, int]]
    cutoff: int


@dataclass(frozen=True)
class Refutation:
    """Outcome of a search.

    Attributes
    ----------
    proof : list of steps or None
        ``None`` if the search ended without one.
    point : list of int or None
        A point of the program: it cannot be refuted.
    boxes : int
    """

    proof: list[list[Any]] | None
    point: list[int] | None = None
    boxes: int = 0


class _Relaxation:
    """The linear relaxation in HiGHS, with the bounds of one box after the other."""

    def __init__(self, program: Program) -> None:
        check_version("highspy")
        self.program = program
        self.base = len(program.rows)
        self.extra = self.offset = 0
        self.columns = np.arange(len(program.lower), dtype=np.int32)
        terms, self.limit = program.rows[program.cutoff]
        lp = highspy.HighsLp()
        lp.num_col_, lp.num_row_ = len(program.lower), self.base
        cost = np.zeros(lp.num_col_)
        for j, a in terms.items():
            cost[j] = a
        lp.col_cost_ = cost
        lp.col_lower_ = np.array(program.lower, float)
        lp.col_upper_ = np.array(program.upper, float)
        limits = np.array([float(bound) for _, bound in program.rows])
        limits[program.cutoff] = highspy.kHighsInf  # it is what is minimised
        lp.row_lower_, lp.row_upper_ = np.full(self.base, -highspy.kHighsInf), limits
        index = [j for row, _ in program.rows for j in row]
        value = [float(a) for row, _ in program.rows for a in row.values()]
        starts = np.cumsum([0, *(len(row) for row, _ in program.rows)])
        lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
        lp.a_matrix_.start_ = starts.astype(np.int32)
        lp.a_matrix_.index_ = np.array(index, np.int32)
        lp.a_matrix_.value_ = np.array(value)
        self.engine = highspy.Highs()
        for name, setting in {"output_flag": False, "threads": 1, "presolve": "off", "solver": "simplex"}.items():
            self.engine.setOptionValue(name, setting)
        self.engine.passModel(lp)

    def solve(self, box: Box) -> tuple[list[float] | None, list[tuple[int, float]]]:
        """``(point, duals)``: the point that minimises the cutoff row, ``None`` if there is none, then a dual ray."""
        self._secants(box)
        count = len(self.columns)
        self.engine.changeColsBounds(count, self.columns, np.array(box.lower, float), np.array(box.upper, float))
        self.engine.run()
        states = highspy.HighsModelStatus
        status = self.engine.getModelStatus()
        if status == states.kInfeasible:
            found, has, ray = self.engine.getDualRay()
            duals = np.asarray(ray) if has else np.zeros(self.base + self.extra)
            return None, self._positive(duals)
        if status != states.kOptimal:
            return None, []
        solution = self.engine.getSolution()
        duals = self._positive(np.asarray(solution.row_dual))
        return list(solution.col_value), [*duals, (self.program.cutoff, 1.0)]

    def _positive(self, duals: Any) -> list[tuple[int, float]]:
        """Multipliers of rows; of several secants of a product only the last is in the relaxation."""
        return [
            (int(i) if i < self.base else int(i) + self.offset, -float(duals[i]))
            for i in np.flatnonzero(duals < -1e-12)
        ]

    def _secants(self, box: Box) -> None:
        if self.extra:
            self.engine.deleteRows(self.extra, np.arange(self.base, self.base + self.extra, dtype=np.int32))
        used = box.secants[-len(self.program.products) :] if self.program.products else []
        self.extra, self.offset = len(used), len(box.secants) - len(used)
        for row, bound in used:
            scale = 1.0 / max(1, *map(abs, row.values()))
            index = np.array(list(row), np.int32)
            value = np.array([a * scale for a in row.values()])
            self.engine.addRow(-highspy.kHighsInf, bound * scale, len(row), index, value)

    def scale_of(self, box: Box, i: int) -> float:
        """What a row was divided by when it went to the engine."""
        return 1.0 if i < self.base else float(max(1, *map(abs, box.secants[i - self.base][0].values())))


def refute(program: Program, box: Box, budget: Budget, priority: Sequence[int] = ()) -> Refutation:
    """Search for a refutation, depth first.

    Parameters
    ----------
    program : Program
        With ``cutoff``.
    box : Box
        All bounds of the program.
    priority : sequence of int
        Variables to branch on before all others while they are fractional; the first of them goes first.
    """
    relaxation = _Relaxation(program)
    users: dict[int, list[int]] = {}
    for i, (row, _) in enumerate(program.rows):
        for j in row:
            users.setdefault(j, []).append(i)
    proof: list[list[Any]] = []
    stack, boxes = [box], 0
    while stack:
        box = stack.pop()
        boxes += 1
        while True:
            if budget.exhausted:
                return Refutation(None, boxes=boxes)
            outcome = _step(program, box, relaxation, users, proof)
            if outcome == "empty":
                break
            if outcome == "again":
                continue
            j = _branching(box, outcome, priority)
            if j is None:  # an integer point, or nothing was learnt
                point = [round(x) for x in outcome]
                if point and _satisfied(program, point):
                    return Refutation(None, point, boxes)
                j = next((k for k in (*priority, *range(len(box.lower))) if box.lower[k] < box.upper[k]), None)
                if j is None:
                    return Refutation(None, boxes=boxes)
                v = (box.lower[j] + box.upper[j]) // 2
            else:
                v = min(max(int(np.floor(outcome[j] + FRACTION)), box.lower[j]), box.upper[j] - 1)
            proof.append(["s", int(j), int(v)])
            below, above = box.halves(j, v)
            stack += [above, below]
            break
    return Refutation(proof, boxes=boxes)


def _step(
    program: Program, box: Box, relaxation: _Relaxation, users: dict[int, list[int]], proof: list[list[Any]]
) -> Any:
    """One round on a box: ``empty``, ``again`` if bounds moved, else the relaxation's point (empty if it has none)."""
    if not _propagate(program, box, users, proof):
        return "empty"
    for k, product in enumerate(program.products):
        row, bound = box.secant(product)
        last = box.secants[k - len(program.products)] if box.secants else None
        if last == (row, bound):
            continue
        for each in range(len(program.products)):  # all anew, so that the last ones are one per product
            proof.append(["h", each])
            box.secants.append(box.secant(program.products[each]))
        break
    for k in range(-len(program.products), 0):
        before = (box.lower[:], box.upper[:])
        holds = box.tighten(*box.secants[k])
        if not holds or (box.lower, box.upper) != before:
            proof.append(["p", len(program.rows) + len(box.secants) + k, 1])
        if not holds:
            return "empty"
    point, duals = relaxation.solve(box)
    if not duals:
        return point or []
    before = (box.lower[:], box.upper[:])
    for scale in SCALES if point is None or _value(program, point) > program.rows[program.cutoff][1] else SCALES[1:2]:
        step = ["p"]
        largest = max(y / relaxation.scale_of(box, i) for i, y in duals) or 1.0
        for i, y in duals:
            whole = round(scale * y / relaxation.scale_of(box, i) / (largest if point is None else 1.0))
            if whole > 0:
                step += [int(i), int(whole)]
        if len(step) == 1:
            continue
        rows = program.rows + box.secants
        total: Terms = {}
        limit = 0
        for i, y in zip(step[1::2], step[2::2], strict=True):
            limit += y * rows[i][1]
            for j, a in rows[i][0].items():
                total[j] = total.get(j, 0) + y * a
        if not box.tighten({j: a for j, a in total.items() if a}, limit):
            proof.append(step)
            return "empty"
        if (box.lower, box.upper) != before:
            proof.append(step)
            return "again"
    return point or []


def _value(program: Program, point: Sequence[float]) -> float:
    return sum(a * point[j] for j, a in program.rows[program.cutoff][0].items())


def _propagate(program: Program, box: Box, users: dict[int, list[int]], proof: list[list[Any]]) -> bool:
    """Single rows until nothing moves (much); the rows that did something become one step."""
    useful: list[Any] = ["q"]
    waiting = list(range(len(program.rows)))
    for _ in range(ROUNDS):
        touched: set[int] = set()
        for i in waiting:
            row, bound = program.rows[i]
            before = [(box.lower[j], box.upper[j]) for j in row]
            if not box.tighten(row, bound):
                proof.append([*useful, i])
                return False
            changed = [j for j, old in zip(row, before, strict=True) if (box.lower[j], box.upper[j]) != old]
            if changed:
                useful.append(i)
                touched.update(changed)
        if not touched:
            break
        waiting = sorted({i for j in touched for i in users[j]})
    if len(useful) > 1:
        proof.append(useful)
    return True


def _branching(box: Box, point: Sequence[float], priority: Sequence[int]) -> int | None:
    """The first fractional variable of the priority, else the most fractional one; ``None`` at integer points."""
    away = [abs(x - round(x)) for x in point]
    for j in priority if away else ():
        if away[j] > FRACTION and box.lower[j] < box.upper[j]:
            return j
    candidates = [j for j in range(len(point)) if away[j] > FRACTION and box.lower[j] < box.upper[j]]
    return max(candidates, key=lambda j: away[j], default=None)


def _satisfied(program: Program, point: Sequence[int]) -> bool:
    rows = all(sum(a * point[j] for j, a in row.items()) <= bound for row, bound in program.rows)
    return rows and all(point[e] * point[length] <= v for e, length, v in program.products)
