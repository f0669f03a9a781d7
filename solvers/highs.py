"""Sparse LP and MIP models handed to HiGHS as one matrix, with reduced costs and proven dual bounds."""

from __future__ import annotations

from dataclasses import dataclass, field

import highspy
import numpy as np
from numpy.typing import NDArray

from mapgap.solvers.guard import check_version

Vector = NDArray[np.float64]
Terms = list[tuple[int, float]]


@dataclass(frozen=True)
class Answer:
    """What HiGHS proved.

    Attributes
    ----------
    infeasible : bool
        No point satisfies the rows, bounds and integrality.
    bound : float or None
        Proven lower bound on the minimum; ``None`` when nothing is proven.
    values : (columns,) or None
        The best point found.
    reduced : (columns,) or None
        Reduced costs of an LP solved to optimality.
    optimal : bool
    """

    infeasible: bool
    bound: float | None
    values: Vector | None = None
    reduced: Vector | None = None
    optimal: bool = False


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
        first_feasible: bool = False,
        simplex: bool = False,
    ) -> Answer:
        """Solve on one thread.

        Parameters
        ----------
        time_s : float
            Wall-clock limit.
        relaxed : bool
            Drop integrality; then reduced costs are returned.
        upper : (columns,), optional
            Column upper bounds in place of the model's.
        first_feasible : bool
            Stop at the first integer point.
        simplex : bool
            Dual simplex for the LP instead of the interior point method with crossover.
        """
        check_version("highspy")
        solver = highspy.Highs()
        options: dict[str, float | int | str | bool] = {
            "output_flag": False,
            "threads": 1,
            "random_seed": seed,
            "time_limit": max(0.05, time_s),
            "mip_rel_gap": 1e-7,
            "primal_feasibility_tolerance": 1e-9,
            "dual_feasibility_tolerance": 1e-9,
            "mip_feasibility_tolerance": 1e-7,
        }
        if first_feasible:
            options["mip_max_improving_sols"] = 1
        if relaxed:
            options["solver"] = "simplex" if simplex else "ipm"
        for name, setting in options.items():
            solver.setOptionValue(name, setting)
        solver.passModel(self._lp(relaxed, upper))
        solver.run()
        return self._answer(solver, relaxed)

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

    def _answer(self, solver: highspy.Highs, relaxed: bool) -> Answer:
        status, info = solver.getModelStatus(), solver.getInfo()
        states = highspy.HighsModelStatus
        if status == states.kInfeasible:
            return Answer(infeasible=True, bound=None)
        optimal = status == states.kOptimal
        if relaxed:
            if not optimal:
                return Answer(infeasible=False, bound=None)
            solution = solver.getSolution()
            return Answer(
                infeasible=False,
                bound=info.objective_function_value,
                optimal=True,
                values=np.array(solution.col_value),
                reduced=np.array(solution.col_dual),
            )
        bound = info.mip_dual_bound
        found = info.primal_solution_status == highspy.SolutionStatus.kSolutionStatusFeasible
        return Answer(
            infeasible=False,
            bound=bound if np.isfinite(bound) else None,
            values=np.array(solver.getSolution().col_value) if found else None,
            optimal=optimal,
        )
