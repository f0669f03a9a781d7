"""Sparse LP and MIP models handed to HiGHS as one matrix, with reduced costs and proven dual bounds.

Rows and columns are numbers here: relaxations of 10^5 columns are built for hundreds of cases, too many for an object
per variable. Models whose solutions are plans are :class:`~mapgap.solvers.mip.MipModel`.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass, field

import highspy
import numpy as np
from numpy.typing import NDArray

from mapgap.core import Status
from mapgap.solvers.guard import check_version

Vector = NDArray[np.float64]
Terms = list[tuple[int, float]]


TOLERANCE, INTEGRALITY = 1e-9, 1e-7
"""Of rows and reduced costs, and of integers. :mod:`mapgap.solvers.mip` records wrong optima at 1e-9, and both are
right: there 1e-9 is asked of *binaries* in big-M rows of up to 10^8 ticks, below what doubles resolve. Here times are
scaled to about 1000, no row has a big M, integrality stays at 1e-7, and what is believed is never the optimum of a MIP
but a bound, which the caller lowers by a relative 1e-6 before it rounds. The LP behind such a bound is solved to 1e-9
because its error must stay far below that margin.

The presolve is off in every MIP, for its INFEASIBLE and its bounds are believed, and with it HiGHS 1.13.1 was seen to
be wrong in both (:mod:`mapgap.solvers.mip`). Measured on destructive questions of ``stage_mip``, on and off: 22.7 s and
23.8 s for 63 questions of seven random instances, all answers equal; 42 s and 85 s for nine questions of ResNet-56 at
1 GB/s (one of them open after 20 s without it), 0.3 s and 2.6 s for nine of AlexNet. To search with it and to prove
without would cost more still, as most questions end in a proof."""


LARGEST = TOLERANCE * 2**52
"""Of coefficients: beyond it the rounding of one product in doubles exceeds the tolerance of its row. HiGHS was seen
to call a question INFEASIBLE that has a point, with coefficients of 1 and 10^9 in one row."""


@dataclass(frozen=True)
class MatrixOutcome:
    """What HiGHS proved of a matrix model; an :class:`~mapgap.solvers.outcome.Outcome` in floating point.

    Attributes
    ----------
    status : Status
        INFEASIBLE: no point satisfies the rows, bounds and integrality.
    bound : float or None
        Proven lower bound on the minimum; ``None`` when nothing is proven.
    values : (columns,) or None
        The best point found.
    reduced : (columns,) or None
        Reduced costs of an LP solved to optimality.
    duals : (rows,) or None
        Its duals, from which :class:`~mapgap.solvers.integer_lp.WholeRows` recomputes the bound.
    """

    status: Status
    bound: float | None = None
    values: Vector | None = None
    reduced: Vector | None = None
    duals: Vector | None = None


@dataclass
class MatrixModel:
    """Columns and rows of ``min cost x, row_lower <= A x <= row_upper, lower <= x <= upper``."""

    lower: list[float] = field(default_factory=list)
    upper: list[float] = field(default_factory=list)
    cost: list[float] = field(default_factory=list)
    integer: list[bool] = field(default_factory=list)
    row_lower: list[float] = field(default_factory=list)
    row_upper: list[float] = field(default_factory=list)
    starts: list[int] = field(default_factory=lambda: [0])
    index: list[int] = field(default_factory=list)
    value: list[float] = field(default_factory=list)

    @property
    def columns(self) -> int:
        return len(self.lower)

    @property
    def rows(self) -> int:
        return len(self.row_lower)

    @property
    def resolved(self) -> bool:
        """Can doubles tell whether a row holds? Where they cannot, no answer proves anything."""
        return max(map(abs, self.value), default=0.0) <= LARGEST

    def column(self, upper: float = 1.0, cost: float = 0.0, integer: bool = False) -> int:
        """Index of a new column with bounds ``[0, upper]``."""
        self.lower.append(0.0)
        self.upper.append(upper)
        self.cost.append(cost)
        self.integer.append(integer)
        return len(self.lower) - 1

    def row(self, terms: Terms, lower: float = -highspy.kHighsInf, upper: float = highspy.kHighsInf) -> None:
        """Add ``lower <= sum of terms <= upper``; several terms of one column are added up."""
        merged: dict[int, float] = {}
        for j, v in terms:
            merged[j] = merged.get(j, 0.0) + v
        for j, v in merged.items():
            if v != 0.0:
                self.index.append(j)
                self.value.append(v)
        self.starts.append(len(self.index))
        self.row_lower.append(lower)
        self.row_upper.append(upper)

    def solve(
        self,
        time_s: float,
        *,
        relaxed: bool,
        upper: Vector | None = None,
        seed: int = 0,
        simplex: bool = False,
        presolve: bool | None = None,
    ) -> MatrixOutcome:
        """Solve on one thread.

        A linear program is presolved; that it has no point is believed only if it has none without presolve either.

        Parameters
        ----------
        time_s : float
            Wall-clock limit.
        relaxed : bool
            Drop integrality; then reduced costs are returned.
        upper : (columns,), optional
            Column upper bounds in place of the model's.
        simplex : bool
            Dual simplex for the LP instead of the interior point method with crossover.
        presolve : bool, optional
            Default: of linear programs only (see :data:`TOLERANCE`).
        """
        solver = self.engine(relaxed=relaxed, upper=upper, seed=seed, simplex=simplex, presolve=presolve)
        solver.setOptionValue("time_limit", max(0.05, time_s))
        solver.run()
        if relaxed and presolve is None and solver.getModelStatus() == highspy.HighsModelStatus.kInfeasible:
            return self.solve(time_s, relaxed=True, upper=upper, seed=seed, simplex=True, presolve=False)
        return _outcome(solver, relaxed)

    def engine(
        self,
        *,
        relaxed: bool,
        upper: Vector | None = None,
        seed: int = 0,
        simplex: bool = False,
        presolve: bool | None = None,
    ) -> highspy.Highs:
        """HiGHS with this model and its options, on one thread; see :meth:`solve`."""
        check_version("highspy")
        solver = highspy.Highs()
        options: dict[str, float | int | str | bool] = {
            "output_flag": False,
            "threads": 1,
            "random_seed": seed,
            "mip_rel_gap": 1e-7,
            "primal_feasibility_tolerance": TOLERANCE,
            "dual_feasibility_tolerance": TOLERANCE,
            "mip_feasibility_tolerance": INTEGRALITY,
            "presolve": "on" if (relaxed if presolve is None else presolve) else "off",
        }
        if relaxed:
            options["solver"] = "simplex" if simplex else "ipm"
        for name, setting in options.items():
            solver.setOptionValue(name, setting)
        solver.passModel(self._lp(relaxed, upper))
        return solver

    def _lp(self, relaxed: bool, upper: Vector | None) -> highspy.HighsLp:
        lp = highspy.HighsLp()
        lp.num_col_, lp.num_row_ = self.columns, self.rows
        lp.col_cost_ = np.array(self.cost)
        lp.col_lower_ = np.array(self.lower)
        lp.col_upper_ = np.array(self.upper) if upper is None else upper
        lp.row_lower_, lp.row_upper_ = np.array(self.row_lower), np.array(self.row_upper)
        lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
        lp.a_matrix_.start_ = np.array(self.starts, np.int32)
        lp.a_matrix_.index_ = np.array(self.index, np.int32)
        lp.a_matrix_.value_ = np.array(self.value)
        if not relaxed:
            kinds = highspy.HighsVarType
            lp.integrality_ = [kinds.kInteger if flag else kinds.kContinuous for flag in self.integer]
        return lp


class Relaxation:
    """HiGHS with the linear relaxation of a model, whose basis it keeps: columns close and open, rows are added."""

    def __init__(self, matrix: MatrixModel) -> None:
        self.matrix, self.closed = matrix, frozenset[int]()
        self.solver = matrix.engine(relaxed=True, simplex=True)

    def row(self, terms: Terms, lower: float = -highspy.kHighsInf, upper: float = highspy.kHighsInf) -> None:
        """As :meth:`MatrixModel.row`, of the model as well."""
        begin = len(self.matrix.index)
        self.matrix.row(terms, lower, upper)
        index, value = np.array(self.matrix.index[begin:], np.int32), np.array(self.matrix.value[begin:])
        self.solver.addRow(lower, upper, len(index), index, value)

    def solve(self, time_s: float, closed: Set[int] = frozenset()) -> MatrixOutcome:
        """Solve by dual simplex, with some columns at 0."""
        for j in self.closed ^ closed:
            self.solver.changeColBounds(j, 0.0, 0.0 if j in closed else self.matrix.upper[j])
        self.closed = frozenset(closed)
        self.solver.setOptionValue("time_limit", self.solver.getRunTime() + max(0.05, time_s))
        self.solver.run()
        if self.solver.getModelStatus() == highspy.HighsModelStatus.kInfeasible:  # believed only from a fresh start
            upper = np.array(self.matrix.upper)
            upper[list(closed)] = 0.0
            return self.matrix.solve(time_s, relaxed=True, upper=upper, simplex=True, presolve=False)
        return _outcome(self.solver, relaxed=True)


def _outcome(solver: highspy.Highs, relaxed: bool) -> MatrixOutcome:
    status, info, solution = solver.getModelStatus(), solver.getInfo(), solver.getSolution()
    if status == highspy.HighsModelStatus.kInfeasible:
        return MatrixOutcome(Status.INFEASIBLE)
    optimal = status == highspy.HighsModelStatus.kOptimal
    if relaxed and not optimal:  # an LP that is not solved proves nothing
        return MatrixOutcome(Status.UNKNOWN)
    if relaxed:
        values, reduced = np.array(solution.col_value), np.array(solution.col_dual)
        duals = np.array(solution.row_dual)
        return MatrixOutcome(Status.OPTIMAL, info.objective_function_value, values, reduced, duals)
    found = info.primal_solution_status == highspy.SolutionStatus.kSolutionStatusFeasible
    return MatrixOutcome(
        status=Status.OPTIMAL if optimal else Status.FEASIBLE if found else Status.UNKNOWN,
        bound=info.mip_dual_bound if np.isfinite(info.mip_dual_bound) else None,
        values=np.array(solution.col_value) if found else None,
    )
