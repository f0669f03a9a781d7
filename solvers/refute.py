"""Refute an integer program by a tree of integer steps that :mod:`mapgap.evidence.check` follows without a solver.

HiGHS solves linear relaxations only. Its duals, scaled and rounded to integers, combine rows into one that is valid
whatever the engine's arithmetic; a useless combination proves nothing and is tried again at another scale. So no word
of an engine enters the proof: the search here decides which steps to write, the checker whether they hold.

What the relaxation minimises is the left-hand side of the cutoff row. With a product ``E L <= v`` it is that of the
secant over the present range instead, the weighted sum of E and L that the box allows least of: its reduced costs fix
variables where those of E or L alone would not. A secant is the closer to the hyperbola the narrower the range, so
bounds of both factors are proven first.

:func:`refute` searches for a whole tree. Who grows one of his own asks a :class:`Relaxation` of its boxes, turns the
duals into whole numbers by :func:`least`, what they prove, and :func:`emptying`, the step that says so, and branches by
:func:`look_ahead`.

Where the caller names variables to branch on, as a schedule needs (places before orders), relaxations of both halves
decide between the first of them, since numbers of boxes make large files. Only rows with a variable whose bounds moved
are looked at again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any, Protocol

import highspy
import numpy as np

from mapgap.core import Budget
from mapgap.solvers.guard import check_version
from mapgap.solvers.rows import NARROWER, ROUNDS, Propagation

Terms = dict[int, int]
Rows = Sequence[tuple[Terms, int]]
Duals = list[tuple[int, float]]
Steps = list[list[Any]]
SCALES = (10**4, 10**6, 10**8, 10**11, 10**14, 10**17)
"""Multipliers are duals times one of these, the smallest that proves something: short numbers, short files."""
FRACTION = 1e-6
CANDIDATES = 8
"""Variables whose halves are tried before a box is split."""
DECIDED = (highspy.HighsModelStatus.kOptimal, highspy.HighsModelStatus.kInfeasible)
UNITS = 1000.0
"""A wide variable is so many units, or up to twice as many, for the engine of a scaled program."""
ITERATIONS = 20
"""Simplex iterations of one relaxation, per row and column."""
NARROWINGS = 3
"""Rounds in which the relaxation bounds the factors of products, before the first split."""


class Box(Protocol):
    """Bounds of all variables, as the checker keeps them."""

    lower: list[int]
    upper: list[int]
    rows: list[tuple[Terms, int]]

    def halves(self, j: int, v: int) -> tuple[Any, Any]: ...
    def tighten(self, row: Terms, bound: int) -> bool: ...
    def secant(self, product: tuple[int, int, int]) -> tuple[Terms, int]: ...
    def window(self, machine: Any, begin: int, end: int | None = None) -> tuple[Terms, int]: ...
    def moment(self, store: Any, time: int) -> tuple[Terms, int]: ...


Promising = Callable[[Any, Sequence[float]], Sequence[int]]
"""``(box, point)`` to variables that are open in the box, the more promising ones first; the point may be empty."""


class Program(Protocol):
    """An integer program, as the checker's writers make it."""

    lower: list[int]
    upper: list[int]
    rows: list[tuple[Terms, int]]
    products: list[tuple[int, int, int]]
    machines: list[Any]
    stores: list[Any]
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


class Relaxation:
    """The linear relaxation in HiGHS, without the cutoff row, with the bounds of one box after the other.

    ``late`` rows are left out of it until one of their ``late`` variables is fixed.
    """

    def __init__(self, program: Program, budget: Budget, scaled: bool, late: Collection[int] = ()) -> None:
        check_version("highspy")
        self.budget, self.count, count = budget, len(program.rows), len(program.lower)
        ranges = np.array(program.upper, float) if scaled else np.ones(count)
        self.unit = 2.0 ** np.maximum(0.0, np.floor(np.log2(np.maximum(ranges, 1.0) / UNITS)))
        self.factor, self.scaled = np.ones(len(program.rows)), scaled
        if scaled:
            largest = (max((abs(a) * self.unit[j] for j, a in row.items()), default=1.0) for row, _ in program.rows)
            self.factor = 1.0 / np.array(list(largest))
        self.columns = np.arange(count, dtype=np.int32)
        self.wide = np.array(program.upper) > 1
        lp = highspy.HighsLp()
        lp.num_col_, lp.num_row_ = count, len(program.rows)
        lp.col_cost_ = np.zeros(count)
        lp.col_lower_ = np.array(program.lower, float) / self.unit
        lp.col_upper_ = np.array(program.upper, float) / self.unit
        limits = np.array([float(bound) for _, bound in program.rows]) * self.factor
        limits[program.cutoff] = highspy.kHighsInf  # it is what is minimised
        lp.row_lower_, lp.row_upper_ = np.full(len(program.rows), -highspy.kHighsInf), limits
        lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
        lp.a_matrix_.start_ = np.cumsum([0, *(len(row) for row, _ in program.rows)]).astype(np.int32)
        lp.a_matrix_.index_ = np.array([j for row, _ in program.rows for j in row], np.int32)
        values = np.array([float(a) for row, _ in program.rows for a in row.values()])
        repeats = np.diff(lp.a_matrix_.start_)
        lp.a_matrix_.value_ = values * self.unit[lp.a_matrix_.index_] * np.repeat(self.factor, repeats)
        self.engine = highspy.Highs()
        for name, setting in {"output_flag": False, "threads": 1, "presolve": "off", "solver": "simplex"}.items():
            self.engine.setOptionValue(name, setting)
        # Without presolve the simplex method was seen to cycle for ever; what it leaves undecided is branched on.
        self.engine.setOptionValue("simplex_iteration_limit", ITERATIONS * (count + len(program.rows)))
        self.engine.passModel(lp)
        own = [(i, [j for j in row if j in late]) for i, (row, _) in enumerate(program.rows)] if late else []
        self.late = np.array([i for i, js in own if js], np.int32)
        self.ends = np.array([(js[0], js[-1]) for _, js in own if js], int).reshape(-1, 2)
        self.limits, self.awake = limits[self.late], np.ones(len(self.late), bool)
        self.extra: list[tuple[Terms, int]] = []

    def minimise(self, box: Box, row: Terms) -> tuple[list[float] | None, Duals]:
        """``(point, multipliers)`` of the smallest ``row``; without a point the multipliers are those of a dual ray.

        With the multipliers the rows add up to one that bounds ``row``, or that no point of the box satisfies.
        """
        largest = max((1.0, *(abs(a) * float(self.unit[j]) for j, a in row.items())))
        cost = np.zeros(len(self.columns))
        for j, a in row.items():
            cost[j] = a * self.unit[j] / largest
        self.engine.changeColsCost(len(self.columns), self.columns, cost)
        upper = np.array(box.upper, float)
        self._run(box, upper)
        if self.engine.getModelStatus() not in DECIDED:
            # A box that is almost empty can leave the engine undecided: then only bounds of choices are kept.
            self.engine.clearSolver()
            self._run(box, np.where(self.wide, highspy.kHighsInf, upper))
        status = self.engine.getModelStatus()
        if status == highspy.HighsModelStatus.kInfeasible:
            _, has, ray = self.engine.getDualRay()
            return None, _multipliers(np.asarray(ray) * self.factor) if has else []
        if status != highspy.HighsModelStatus.kOptimal:
            return None, []
        solution = self.engine.getSolution()
        multipliers = _multipliers(np.asarray(solution.row_dual) * self.factor)
        return (np.asarray(solution.col_value) * self.unit).tolist(), [(i, y * largest) for i, y in multipliers]

    def extend(self, rows: Rows, basis: Any = None) -> None:
        """Rows beside those of the program, in the place of those that were so before, and a basis of all to begin at.

        Those that both begin with stay; the engine takes a basis away with any row that goes.
        """
        pairs = zip(rows, self.extra, strict=False)
        same = sum(1 for _ in takewhile(lambda pair: pair[0] is pair[1], pairs))
        if same < len(self.extra):
            own = self.count + np.arange(same, len(self.extra), dtype=np.int32)
            self.engine.deleteRows(len(own), own)
        factors = self.factor[: self.count + same].tolist()
        for row, bound in rows[same:]:
            columns = np.array(list(row), np.int32)
            values = np.array(list(row.values()), float) * self.unit[columns]
            factors.append(1.0 / max(abs(values), default=1.0) if self.scaled else 1.0)
            limits = -highspy.kHighsInf, float(bound) * factors[-1]
            self.engine.addRow(*limits, len(row), columns, values * factors[-1])
        self.factor, self.extra = np.array(factors), list(rows)
        if basis is not None:
            self.engine.setBasis(basis)

    def basis(self) -> tuple[Any, list[int]]:
        """The basis that the last minimum has without the rows beside the program that it is not at, and the others."""
        found = self.engine.getBasis()
        rows = found.row_status
        others = [k for k in range(len(self.extra)) if rows[self.count + k] != highspy.HighsBasisStatus.kBasic]
        found.row_status = rows[: self.count] + [rows[self.count + k] for k in others]
        return found, others

    def _wake(self, box: Box) -> None:
        """Late rows with a variable that is fixed, and no others."""
        fixed = np.array(box.lower) == np.array(box.upper)
        awake = fixed[self.ends].any(axis=1)
        moved = np.flatnonzero(awake != self.awake)
        limits = np.where(awake[moved], self.limits[moved], highspy.kHighsInf)
        self.engine.changeRowsBounds(len(moved), self.late[moved], np.full(len(moved), -highspy.kHighsInf), limits)
        self.awake = awake

    def _run(self, box: Box, upper: Any) -> None:
        if len(self.late):
            self._wake(box)
        lower = np.array(box.lower, float) / self.unit
        self.engine.changeColsBounds(len(self.columns), self.columns, lower, upper / self.unit)
        self.engine.setOptionValue("time_limit", self.engine.getRunTime() + max(0.05, self.budget.remaining_s))
        self.engine.run()

    def weigh_less(self) -> None:
        """Devex weights, which take less time an iteration: quicker where any point of a box is enough."""
        self.engine.setOptionValue("simplex_dual_edge_weight_strategy", 1)

    def forget(self) -> None:
        """Start anew: after many changes of bounds and costs a dual ray may be none."""
        self.engine.clearSolver()


def _multipliers(duals: Any) -> Duals:
    return [(int(i), -float(duals[i])) for i in np.flatnonzero(duals < -1e-12)]


def emptying(rows: Rows, box: Box, number: int | None, duals: Duals) -> list[Any] | None:
    """The step of shortest numbers that empties a box; ``None`` if no scale has one.

    Parameters
    ----------
    rows : sequence of pairs
        Those of the program, then those of the box.
    number : int or None
        The row that was minimised; ``None`` if the multipliers are those of a dual ray.
    """
    for scale in SCALES if duals or number is not None else ():
        step = _combination(rows, number, duals, scale)
        total, limit = added(rows, step)
        if _activity(total, box) > limit:
            return step
    return None


def least(rows: Rows, box: Box, number: int, duals: Duals) -> int:
    """What the multipliers prove, in whole numbers, of the left-hand side of a row over a box: at least so much."""
    *others, _, own = _combination(rows, number, duals, SCALES[-1])
    total, limit = added(rows, others)
    for j, a in rows[number][0].items():
        total[j] = total.get(j, 0) + own * a
    return -int((limit - _activity(total, box)) // own)


def _activity(row: Terms, box: Box) -> int:
    """The smallest left-hand side in the box."""
    return sum(a * (box.lower[j] if a > 0 else box.upper[j]) for j, a in row.items())


def _combination(rows: Rows, number: int | None, duals: Duals, scale: int) -> list[Any]:
    """Multiples of rows, and of the row ``number`` that the duals bound, as a step; the longer the larger the scale."""
    own = 1 if number is None else max(1, round(scale / max(map(abs, rows[number][0].values()))))
    factor = scale / max((y for _, y in duals), default=1.0) if number is None else own
    step: list[Any] = ["p"]
    for i, y in duals:
        # Large coefficients make large multipliers; zeros at their ends make a small file.
        unit = 10 ** max(0, int(np.log10(max(1.0, y * factor / scale))))
        if (whole := round(y * factor / unit) * unit) > 0:
            step += [i, whole]
    return step if number is None else [*step, number, own]


def added(rows: Rows, step: Sequence[Any]) -> tuple[Terms, int]:
    """The row that a step adds up, of rows of the program and then of a box: ``["p", i, y, i, y, …]``."""
    total: Terms = {}
    limit = 0
    for i, y in zip(step[1::2], step[2::2], strict=True):
        limit += y * rows[i][1]
        for j, a in rows[i][0].items():
            total[j] = total.get(j, 0) + y * a
    return {j: a for j, a in total.items() if a}, limit


class Search:
    """Steps that are written while boxes shrink, are emptied, or split.

    ``waiting`` are the rows of a box that may tighten something: those with a variable that moved.
    """

    def __init__(
        self,
        program: Program,
        budget: Budget,
        promising: Promising | None,
        scaled: bool,
        late: Collection[int],
    ) -> None:
        self.program, self.budget, self.promising = program, budget, promising
        self.relaxation = Relaxation(program, budget, scaled, late)
        self.proof: Steps = []
        self.rows = Propagation(program.rows, program.lower, program.upper)
        self.users: dict[int, list[int]] = {}
        for i, (row, _) in enumerate(program.rows):
            for j in row:
                self.users.setdefault(j, []).append(i)
        self.factors = sorted({j for e, length, _ in program.products for j in (e, length)})

    def solve(self, box: Box, waiting: set[int]) -> list[float] | None:
        """Shrink a box; a point to branch at (empty if nothing was learnt), or ``None`` if the box is empty."""
        while self.propagate(box, waiting) and self.chords(box, waiting):
            if self.budget.exhausted:
                return []
            before = self.ranges(box)
            number = self.objective(box)
            row, limit = (self.program.rows + box.rows)[number]
            point, duals = self.relaxation.minimise(box, row)
            if point is None and not self.emptied(box, None, duals):
                self.relaxation.forget()
                point, duals = self.relaxation.minimise(box, row)
                if point is None and not self.emptied(box, None, duals):
                    return []
            if point is None:
                return None
            if sum(a * point[j] for j, a in row.items()) > limit and self.emptied(box, number, duals):
                return None
            if not self.add(box, _combination(self.program.rows + box.rows, number, duals, SCALES[1]), waiting):
                return None
            if not self.propagate(box, waiting):
                return None
            bounds = zip(box.lower, point, box.upper, strict=True)
            cut_off = any(not low - FRACTION <= x <= high + FRACTION for low, x, high in bounds)
            if not cut_off and all(now > NARROWER * then for now, then in zip(self.ranges(box), before, strict=True)):
                return point
        return None

    def objective(self, box: Box) -> int:
        """Number of the row that the relaxation minimises."""
        products = len(self.program.products)
        return len(self.program.rows) + len(box.rows) - products if products else self.program.cutoff

    def ranges(self, box: Box) -> list[int]:
        return [box.upper[j] - box.lower[j] + 1 for j in self.factors]

    def emptied(self, box: Box, number: int | None, duals: Duals) -> bool:
        """Empty a box by a sum of rows; ``False`` if none does."""
        step = emptying(self.program.rows + box.rows, box, number, duals)
        if step is not None:
            self.proof.append(step)
        return step is not None

    def add(self, box: Box, step: list[Any], waiting: set[int]) -> bool:
        """Tighten by a sum of rows and write that down if it does something; ``False`` if the box is empty."""
        before = (box.lower[:], box.upper[:])
        row, limit = added(self.program.rows + box.rows, step)
        holds = box.tighten(row, limit)
        if not holds or (box.lower, box.upper) != before:
            self.proof.append(step)
        for j in row:
            if _moved(box, j, before[0][j], before[1][j]):
                waiting.update(self.users.get(j, ()))
        return holds

    def chords(self, box: Box, waiting: set[int]) -> bool:
        """Secants over the present ranges, as rows that tighten; ``False`` if the box is empty."""
        products = self.program.products
        for _ in range(ROUNDS if products else 0):
            before = self.ranges(box)
            fresh = [box.secant(product) for product in products]
            if box.rows[-len(products) :] != fresh:  # all anew, so that the last ones are one per product
                for k, secant in enumerate(fresh):
                    self.proof.append(["h", k])
                    box.rows.append(secant)
            first = self.objective(box)
            if not all(self.add(box, ["p", first + k, 1], waiting) for k in range(len(products))):
                return False
            if all(now > NARROWER * then for now, then in zip(self.ranges(box), before, strict=True)):
                break
        return True

    def narrow(self, box: Box, waiting: set[int]) -> bool:
        """Prove bounds of the factors of products, each by the relaxation; ``False`` if the box is empty."""
        for _ in range(NARROWINGS if self.factors else 0):
            if not self.propagate(box, waiting):
                return False
            for j in self.factors:
                point, duals = self.relaxation.minimise(box, {j: 1})
                if point is not None and not self.add(box, _combination([], None, duals, SCALES[1]), waiting):
                    return False
            if not self.chords(box, waiting):
                return False
        return True

    def propagate(self, box: Box, waiting: set[int]) -> bool:
        """Single rows until nothing moves (much); the rows that did something become one step."""
        useful, holds = self.rows(box, waiting)
        if useful:
            self.proof.append(["q", *useful])
        return holds

    def branching(self, box: Box, point: Sequence[float]) -> int | None:
        """The most fractional variable, factors of products last of all; of promising ones the best one."""
        if self.promising is not None:
            row, limit = (self.program.rows + box.rows)[self.objective(box)]
            return look_ahead(self.relaxation, box, row, limit, point, self.promising(box, point))
        away = {j: abs(x - round(x)) for j, x in enumerate(point) if box.lower[j] < box.upper[j]}
        candidates = [j for j, distance in away.items() if distance > FRACTION]
        return max(candidates, key=lambda j: (j not in self.factors, away[j]), default=None)

    def split(self, box: Box, point: Sequence[float], j: int | None) -> tuple[Box, Box] | None:
        """Halves of a box at a variable, or at any that is open if the caller names none; ``None`` if none is."""
        if j is not None:
            v = middle(box, point, j)
        elif self.promising is None:
            j = next((k for k in (*self.factors, *range(len(box.lower))) if box.lower[k] < box.upper[k]), None)
            v = 0 if j is None else (box.lower[j] + box.upper[j]) // 2
        if j is None:
            return None
        self.proof.append(["s", int(j), int(v)])
        below, above = box.halves(j, v)
        return below, above


def look_ahead(
    relaxation: Relaxation, box: Box, row: Terms, limit: int, point: Sequence[float], found: Sequence[int]
) -> int | None:
    """Of the first of some variables the one whose halves are worst for a row that is to be at most ``limit``."""
    found = found[:CANDIDATES]
    if not point or len(found) < 2:
        return next(iter(found), None)
    now, largest = sum(a * point[j] for j, a in row.items()), 2.0 * limit
    little = 1e-6 * max(1.0, now)

    def gain(j: int) -> float:
        product = 1.0
        for half in box.halves(j, middle(box, point, j)):
            there, _ = relaxation.minimise(half, row)
            value = largest if there is None else min(largest, sum(a * there[k] for k, a in row.items()))
            product *= max(little, value - now)
        return product

    return max(found, key=gain)


def middle(box: Box, point: Sequence[float], j: int) -> int:
    """Where to split at a variable; in the box if there is no point."""
    v = int(np.floor(point[j] + FRACTION)) if point else box.lower[j]
    return min(max(v, box.lower[j]), box.upper[j] - 1)


def _moved(box: Box, j: int, lower: int, upper: int) -> bool:
    """Has the range of a variable shrunk (much)?"""
    now, then = box.upper[j] - box.lower[j], upper - lower
    return now < then and now <= NARROWER * then


def refute(
    program: Program,
    box: Box,
    budget: Budget,
    promising: Promising | None = None,
    boxes: int = 1 << 30,
    *,
    scaled: bool = False,
    late: Collection[int] = (),
) -> Refutation:
    """Search for a refutation, depth first.

    Parameters
    ----------
    program : Program
        With ``cutoff``.
    box : Box
        All bounds of the program, or narrower ones.
    promising : callable, optional
        The only variables to branch on; without it, all are.
    boxes : int
        After which the search gives up.
    scaled : bool
        Hand rows and wide variables to the engine in units of their own: for coefficients of very unlike size.
    late : collection of int
        Choices whose rows say next to nothing before one of them is made: relaxations without them are quicker.
    """
    search = Search(program, budget, promising, scaled, late)
    every = range(len(program.rows))
    waiting, looked = set(every), 0
    if not search.narrow(box, waiting):
        return Refutation(search.proof, boxes=1)
    stack = [(box, waiting)]
    while stack:
        if budget.exhausted or looked == boxes:
            return Refutation(None, boxes=looked)
        box, waiting = stack.pop()
        looked += 1
        point = search.solve(box, waiting)
        if point is None:
            continue
        j = search.branching(box, point)
        if j is None and point and _satisfied(program, whole := [round(x) for x in point]):
            return Refutation(None, whole, looked)
        halves = search.split(box, point, j)
        if halves is None:
            return Refutation(None, boxes=looked)
        stack += [(half, set(search.users[search.proof[-1][1]])) for half in reversed(halves)]
    return Refutation(search.proof, boxes=looked)


def _satisfied(program: Program, point: Sequence[int]) -> bool:
    rows = all(sum(a * point[j] for j, a in row.items()) <= bound for row, bound in program.rows)
    return rows and all(point[e] * point[length] <= v for e, length, v in program.products)
