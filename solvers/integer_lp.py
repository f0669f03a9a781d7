"""Linear programs with integer data whose bounds are recomputed from rounded duals: no engine is believed.

Weak duality, for ``min c x`` over ``row_lower <= A x <= row_upper, lower <= x <= upper`` and *any* vector ``y``: each
row may be weighted with its ``y_i``, so that every point ``x`` has

    c x = (c - y A) x + y A x >= sum_j min over [lower_j, upper_j] of (c - y A)_j x_j
                                 + sum_i (y_i row_lower_i if y_i > 0 else y_i row_upper_i).

The right-hand side is computed in whole numbers. A bad ``y`` gives a small number, never a wrong one, so the engine may
use presolve, interior points and loose tolerances. Every column needs finite bounds, or rounding of ``y`` would cost
everything; a row without the side that the sign of ``y_i`` asks for takes ``y_i = 0``.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import highspy
import numpy as np
from numpy.typing import NDArray

from mapgap.core import Status
from mapgap.solvers.guard import check_version
from mapgap.solvers.highs import MatrixModel

Vector = NDArray[np.float64]
IntegerTerms = list[tuple[int, int]]

DIGITS = 60
"""Binary digits after the point of a multiplier, relative to the largest coefficient of its row."""


MANY_ROWS = 9000
"""Rows above which the interior point method is faster than the simplex method."""


@dataclass(frozen=True)
class LinearOutcome:
    """What the engine says and what it is worth.

    Attributes
    ----------
    status : Status
        OPTIMAL: the engine solved the program; UNKNOWN: it did not.
    multipliers : mapping of int to int
        Rounded duals by row, in units of ``2 ** -shift``; all that a proof needs.
    shift : int
    values : (columns,) or None
        The engine's point, in the units of the columns.
    closed : set of int
        Columns that were held at 0.
    """

    status: Status
    multipliers: Mapping[int, int]
    shift: int = 0
    values: Vector | None = None
    closed: Set[int] = frozenset()


@dataclass
class IntegerLP:
    """Columns and rows with integer data; ``None`` is an absent side of a row.

    ``unit`` is the magnitude of a column, by which it is scaled for the engine only. The upper bound of a ``hidden``
    one is kept from the engine, and only makes the rounding of duals cheap.
    """

    lower: list[int] = field(default_factory=list)
    upper: list[int] = field(default_factory=list)
    cost: list[int] = field(default_factory=list)
    unit: list[float] = field(default_factory=list)
    hidden: list[bool] = field(default_factory=list)
    row_lower: list[int | None] = field(default_factory=list)
    row_upper: list[int | None] = field(default_factory=list)
    starts: list[int] = field(default_factory=lambda: [0])
    index: list[int] = field(default_factory=list)
    value: list[int] = field(default_factory=list)

    @property
    def columns(self) -> int:
        return len(self.lower)

    @property
    def rows(self) -> int:
        return len(self.row_lower)

    def column(self, upper: int, cost: int = 0, unit: float = 1.0, hidden: bool = False) -> int:
        """Index of a new column with bounds ``[0, upper]``."""
        self.lower.append(0)
        self.upper.append(upper)
        self.cost.append(cost)
        self.unit.append(unit)
        self.hidden.append(hidden)
        return len(self.lower) - 1

    def row(self, terms: Iterable[tuple[int, int]], lower: int | None = None, upper: int | None = None) -> int:
        """Add ``lower <= sum of terms <= upper``; several terms of one column are added up."""
        merged: dict[int, int] = {}
        for j, v in terms:
            merged[j] = merged.get(j, 0) + v
        for j, v in merged.items():
            if v:
                self.index.append(j)
                self.value.append(v)
        self.starts.append(len(self.index))
        self.row_lower.append(lower)
        self.row_upper.append(upper)
        return len(self.row_lower) - 1

    def solve(self, time_s: float) -> LinearOutcome:
        """Solve once; see :class:`Engine`."""
        return Engine(self).solve(time_s)

    def scaled(self) -> tuple[highspy.HighsLp, Vector]:
        """The program for the engine, its columns in their units, and the factor of every row's dual."""
        unit, cost = np.array(self.unit), np.array(self.cost, float)
        index, starts = np.array(self.index, np.int32), np.array(self.starts, np.int32)
        value = np.array(self.value, float) * unit[index]
        largest = np.ones(self.rows)
        filled = np.flatnonzero(np.diff(starts))
        largest[filled] = np.maximum.reduceat(np.abs(value), starts[filled]) if len(filled) else 1.0
        factor = 1.0 / largest
        objective = max(1.0, float((np.abs(cost) * unit).max(initial=0.0)))
        infinite = highspy.kHighsInf
        low = np.array([-infinite if v is None else float(v) for v in self.row_lower])
        high = np.array([infinite if v is None else float(v) for v in self.row_upper])
        lp = highspy.HighsLp()
        lp.num_col_, lp.num_row_ = self.columns, self.rows
        lp.col_cost_ = cost * unit / objective
        upper = np.where(np.array(self.hidden, bool), infinite, np.array(self.upper, float) / unit)
        lp.col_lower_, lp.col_upper_ = np.array(self.lower, float) / unit, upper
        lp.row_lower_, lp.row_upper_ = low * factor, high * factor
        lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
        lp.a_matrix_.start_, lp.a_matrix_.index_ = starts, index
        lp.a_matrix_.value_ = value * np.repeat(factor, np.diff(starts))
        return lp, factor * objective

    def rounded(self, duals: Vector) -> tuple[dict[int, int], int]:
        """Whole multipliers near ``duals * 2 ** shift``, none on an absent side of a row."""
        if not len(duals):
            return {}, 0
        coefficient = max((abs(v) for v in self.value), default=1)
        shift = DIGITS + coefficient.bit_length()
        found = {}
        for i in np.flatnonzero(duals).tolist():
            whole = round(float(duals[i]) * (1 << shift))
            if whole and (self.row_lower[i] if whole > 0 else self.row_upper[i]) is not None:
                found[i] = whole
        return found, shift

    def dual_bound(self, outcome: LinearOutcome) -> int:
        """Least value of the objective, rounded up: exact in whole numbers whatever the multipliers are."""
        total = self.dual_total(outcome)
        return -((-total) >> outcome.shift)

    def dual_total(self, outcome: LinearOutcome) -> int:
        """The same before it is rounded, in units of ``2 ** -shift``.

        Raises
        ------
        ValueError
            A multiplier asks for a side that its row does not have.
        """
        multipliers, shift = outcome.multipliers, outcome.shift
        reduced = [c << shift for c in self.cost]
        total = 0
        index, value, starts = self.index, self.value, self.starts
        for i, y in multipliers.items():
            side = self.row_lower[i] if y > 0 else self.row_upper[i]
            if side is None:
                raise ValueError(f"row {i}: expected a multiplier of the other sign, found {y}")
            total += y * side
            for k in range(starts[i], starts[i + 1]):
                reduced[index[k]] -= y * value[k]
        for j, d in enumerate(reduced):
            if d > 0:
                total += d * self.lower[j]
            elif j not in outcome.closed:
                total += d * self.upper[j]
        return total

    def proof(self, outcome: LinearOutcome) -> dict[str, Any]:
        """The multipliers as plain data: ``{"shift": s, "rows": [i, y, …]}``."""
        flat: Sequence[int] = [n for pair in sorted(outcome.multipliers.items()) for n in pair]
        return {"shift": outcome.shift, "rows": list(flat)}


class Engine:
    """HiGHS on one thread with a program, whose basis it keeps: columns can be closed and opened between solves.

    By dual simplex, or the first time by interior points and crossover where there are many rows; without crossover the
    duals are too rough on one program in ten.
    """

    def __init__(self, program: IntegerLP) -> None:
        check_version("highspy")
        self.program = program
        self.solver = highspy.Highs()
        lp, self.scaling = program.scaled()
        self.solver.setOptionValue("output_flag", False)
        self.solver.setOptionValue("threads", 1)
        self.solver.passModel(lp)
        self.closed: Set[int] = frozenset()
        # With presolve, interior points were seen to call a feasible program infeasible; without they are no slower.
        self.ways = ["simplex"] if program.rows < MANY_ROWS else ["ipm", "simplex"]

    def solve(self, time_s: float, closed: Set[int] = frozenset()) -> LinearOutcome:
        """Solve, and round the duals.

        Parameters
        ----------
        time_s : float
            Wall-clock limit.
        closed : set of int
            Columns that are 0; their lower limit is.
        """
        begun = time.perf_counter()
        for j in self.closed ^ closed:
            self.solver.changeColBounds(j, 0.0, 0.0 if j in closed else self.program.upper[j] / self.program.unit[j])
        self.closed = frozenset(closed)
        best = LinearOutcome(Status.UNKNOWN, {}, closed=self.closed)
        for way in self.ways:
            found = self._ask(way, time_s - (time.perf_counter() - begun))
            if found.status is Status.OPTIMAL:
                self.ways = ["simplex"]  # from the basis
                return found
            if found.multipliers and self._worth(found) > (self._worth(best) if best.multipliers else 0):
                best = found
            self.solver.clearSolver()
        return best

    def _worth(self, outcome: LinearOutcome) -> int:
        return self.program.dual_bound(outcome)

    def _ask(self, way: str, time_s: float) -> LinearOutcome:
        options: dict[str, float | str] = {
            "time_limit": self.solver.getRunTime() + max(0.05, time_s),
            "presolve": "on" if way == "simplex" else "off",
            "solver": way,
        }
        for name, setting in options.items():
            self.solver.setOptionValue(name, setting)
        self.solver.run()
        solution = self.solver.getSolution()
        duals = np.array(solution.row_dual)
        if not solution.dual_valid or len(duals) != self.program.rows or not np.isfinite(duals).all():
            return LinearOutcome(Status.UNKNOWN, {}, closed=self.closed)
        multipliers, shift = self.program.rounded(duals * self.scaling)
        solved = self.solver.getModelStatus() == highspy.HighsModelStatus.kOptimal
        values = np.array(solution.col_value) * np.array(self.program.unit)
        status = Status.OPTIMAL if solved else Status.UNKNOWN
        return LinearOutcome(status, multipliers, shift, values, self.closed)


class WholeRows:
    """A model in floating point with its rows in whole numbers: doubles are fractions with a power of two below.

    Parameters
    ----------
    matrix : MatrixModel
        With whole limits and costs of columns.
    largest : int
        Upper bound of the columns that have none.
    """

    def __init__(self, matrix: MatrixModel, largest: int) -> None:
        self.program = IntegerLP()
        for upper, cost in zip(matrix.upper, matrix.cost, strict=True):
            self.program.column(largest if upper == highspy.kHighsInf else int(upper), int(cost))
            if self.program.upper[-1] < upper < highspy.kHighsInf or self.program.cost[-1] != cost:
                raise ValueError("expected whole limits and costs of columns")
        self.powers = np.ones(matrix.rows)
        for i in range(matrix.rows):
            span = slice(matrix.starts[i], matrix.starts[i + 1])
            index, value = matrix.index[span], matrix.value[span]
            sides = [matrix.row_lower[i], matrix.row_upper[i]]
            ratios = [v.as_integer_ratio() for v in (*value, *(side for side in sides if np.isfinite(side)))]
            power = max(below for _, below in ratios)
            low, high = (int(Fraction(side) * power) if np.isfinite(side) else None for side in sides)
            whole = (above * (power // below) for above, below in ratios)
            self.powers[i] = 1.0 / power
            self.program.row(zip(index, whole, strict=False), low, high)

    def bound(self, duals: Vector, closed: Set[int] = frozenset()) -> Fraction:
        """Lower bound on the optimum of the linear relaxation with some columns at 0, exact for the doubles in it.

        Parameters
        ----------
        duals : (rows,)
            Any numbers; those of the engine give the engine's optimum.
        """
        multipliers, shift = self.program.rounded(duals * self.powers)
        outcome = LinearOutcome(Status.UNKNOWN, multipliers, shift, closed=closed)
        return Fraction(self.program.dual_total(outcome), 1 << shift)
