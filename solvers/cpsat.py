"""Run a CP-SAT model under a budget, behind a guard against rows that the presolve is known to get wrong."""

from __future__ import annotations

import errno
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar

from ortools.sat.python import cp_model

from mapgap.core import Budget, InputError, PlanBase, Status, Stop, TracePoint
from mapgap.solvers.guard import GuardError, check_version
from mapgap.solvers.model import Model, Value
from mapgap.solvers.outcome import Outcome

ROW_LIMIT = 2**31
"""Rows from this absolute activity on were measured to give wrong OPTIMAL answers (google/or-tools issue 5293)."""

_STATUS = {
    cp_model.OPTIMAL: Status.OPTIMAL,
    cp_model.FEASIBLE: Status.FEASIBLE,
    cp_model.INFEASIBLE: Status.INFEASIBLE,
    cp_model.UNKNOWN: Status.UNKNOWN,
}


def check_rows(model: cp_model.CpModel) -> None:
    """Refuse rows, enforced or not, and objectives with Σ |coefficient| · max|variable| of 2^31 or more.

    Raises
    ------
    GuardError
        Names the row (or its number) and its activity.
    """
    proto = model.Proto()
    reach = [max(abs(v.domain[0]), abs(v.domain[-1])) for v in proto.variables]

    def activity(variables: Iterable[int], coefficients: Iterable[int]) -> int:
        return sum(abs(c) * reach[v if v >= 0 else -v - 1] for v, c in zip(variables, coefficients, strict=True))

    rows = [
        (row.name or f"number {i}", activity(row.linear.vars, row.linear.coeffs))
        for i, row in enumerate(proto.constraints)
        if row.HasField("linear")
    ]
    rows.append(("objective", activity(proto.objective.vars, proto.objective.coeffs)))
    for name, size in rows:
        if size >= ROW_LIMIT:
            raise GuardError(f"row {name}: expected an absolute activity below 2^31, found {size}; use coarser units")


class _Recorder(cp_model.CpSolverSolutionCallback):  # type: ignore[misc]
    """Keeps the trace of incumbents and hands each to ``on_solution``."""

    def __init__(self, trace: list[TracePoint], on_solution: Callable[[Callable[[Any], int]], None] | None) -> None:
        super().__init__()
        self._trace, self._on_solution, self._begin = trace, on_solution, time.perf_counter()

    def on_solution_callback(self) -> None:
        """Called by the engine on every improvement."""
        self._trace.append(TracePoint(time.perf_counter() - self._begin, objective=round(self.objective_value)))
        if self._on_solution is not None:
            self._on_solution(lambda variable: int(self.value(variable)))

    def bound(self, value: float) -> None:
        """Called by the engine on every better bound."""
        self._trace.append(TracePoint(time.perf_counter() - self._begin, bound=round(value)))


def solve(
    model: cp_model.CpModel,
    budget: Budget,
    *,
    time_s: float | None = None,
    hint: Mapping[Any, int] | None = None,
    on_solution: Callable[[Callable[[Any], int]], None] | None = None,
    parameters: Mapping[str, Any] | None = None,
) -> Outcome:
    """Minimise ``model`` within the remaining budget (or ``time_s`` of it).

    One worker and one seed give one answer, unless the clock ends the run. The engine itself catches Ctrl-C and
    returns what it holds (``Stop.INTERRUPTED``).

    Parameters
    ----------
    hint : mapping of variable to value, optional
        A start; need not be complete or feasible.
    on_solution : callable, optional
        Receives the ``value`` accessor of every improvement.
    parameters : mapping, optional
        Of the engine, by their names there.

    Raises
    ------
    GuardError
        See :func:`mapgap.solvers.guard.check_version` and :func:`check_rows`.
    """
    check_version("ortools")
    check_rows(model)
    for variable, value in (hint or {}).items():
        model.add_hint(variable, value)
    limit = min(budget.remaining_s, time_s if time_s is not None else budget.remaining_s)
    solver = cp_model.CpSolver()
    solver.parameters.max_time_in_seconds = max(limit, 0.001)
    solver.parameters.num_workers = budget.workers
    solver.parameters.random_seed = budget.seed % 2**31
    for name, setting in (parameters or {}).items():
        setattr(solver.parameters, name, setting)
    trace: list[TracePoint] = []
    recorder = _Recorder(trace, on_solution)
    solver.best_bound_callback = recorder.bound
    code = solver.solve(model, recorder)
    if code not in _STATUS:
        raise GuardError(f"CP-SAT refused the model: {model.validate()}")
    status = _STATUS[code]
    held = status in (Status.OPTIMAL, Status.FEASIBLE)
    if status in (Status.OPTIMAL, Status.INFEASIBLE):
        stop = Stop.PROVED
    else:
        # The engine does not say which; it may leave some time unused, but not half of it.
        stop = Stop.TIME if solver.wall_time >= 0.5 * limit else Stop.INTERRUPTED
    # Before the engine has a bound it states 0, which is none where objectives are negative.
    bounded = held or (status is Status.UNKNOWN and any(point.bound is not None for point in trace))
    return Outcome(
        status=status,
        stop=stop,
        objective=round(solver.objective_value) if held else None,
        bound=round(solver.best_objective_bound) if bounded else None,
        value=lambda variable: int(solver.value(variable)),
        trace=tuple(trace),
    )


class CpSatModel(Model):
    """An integer program for CP-SAT; subclasses fill ``program``, a ``cp_model.CpModel``.

    Attributes
    ----------
    parameters : mapping
        Of the engine, where its defaults do not serve.
    """

    engine = "CP-SAT"
    parameters: Mapping[str, Any] = MappingProxyType({})
    suffixes: ClassVar[tuple[str, ...]] = (".pbtxt",)

    def __init__(self) -> None:
        self.program: cp_model.CpModel = cp_model.CpModel()

    def names(self) -> Mapping[str, bool]:
        """Positions: names of CP-SAT's variables are free text and need not be unique."""
        return {str(index): True for index in range(len(self.program.proto.variables))}

    def name(self, variable: Any) -> str:
        return str(variable.index)

    def row_count(self) -> int:
        return len(self.program.proto.constraints)

    def read(self, values: Mapping[str, float]) -> PlanBase:
        """See :meth:`Model.read`; a response of CP-SAT states every variable."""
        if len(values) != len(self.names()):
            raise InputError(f"solution: expected values of {len(self.names())} variables, found {len(values)}")
        return super().read(values)

    def solve(
        self, budget: Budget, *, time_s: float | None = None, on_solution: Callable[[Value], None] | None = None
    ) -> Outcome:
        return solve(self.program, budget, time_s=time_s, on_solution=on_solution, parameters=self.parameters)

    def _hint(self, variable: Any, value: int) -> None:
        self.program.add_hint(variable, value)

    def _fix(self, variable: Any, value: int) -> None:
        self.program.add(variable == value)

    def _at_most(self, value: int) -> None:
        aim = self.program.proto.objective
        row = self.program.proto.constraints.add().linear
        row.vars.extend(aim.vars)
        row.coeffs.extend(aim.coeffs)
        row.domain.extend((-(2**62), value - round(aim.offset)))

    def _write(self, path: Path) -> None:
        for constraint, title in zip(self.program.proto.constraints, self.titles(), strict=True):
            family = title.partition("_")[0]
            constraint.name = f"{family}_{constraint.name}" if title and constraint.name else constraint.name or title
        path.open("w").close()  # the engine says only that it failed, not why
        if not self.program.export_to_file(str(path)):
            raise OSError(errno.EIO, "the engine could not write it")
