"""What the public interface returns: the result of a run, the check of a plan; and what it raises.

The gap of a plan is ``(objective - bound) / bound`` to the best bound that *any* method has proven on the instance:
this run, the others of a comparison, the ledger of best-known results. The distance to the best plan known is another
number with another name. Where runs contradict each other there is no gap at all.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from mapgap.catalogue import registry
from mapgap.core import (
    Budget,
    Evaluation,
    InputError,
    InstanceBase,
    MapgapError,
    PlanBase,
    PlanError,
    Status,
    Stop,
    TracePoint,
    Violation,
)
from mapgap.evidence.within import Within, within
from mapgap.interface.display import Chart, chart_of, percent, quantity, table_html, write_text
from mapgap.records.record import RunRecord, plain, relative
from mapgap.records.runs import InstanceFacts


class FailedRunWarning(UserWarning):
    """A method of a comparison failed; its result says how."""


class ContradictionWarning(UserWarning):
    """Two methods cannot both be right about one instance."""


class RunError(MapgapError):
    """A method failed: it raised, its process died, or a claim of it was refuted.

    Attributes
    ----------
    result : Result
        What was seen of the run; plans that were verified before it failed are in it.
    """

    def __init__(self, result: Result) -> None:
        super().__init__(f"{result.method} on {result.instance.name}: {result.error}")
        self.result = result


class RefutedError(RunError, PlanError):
    """A plan, an objective, a bound or a status that a method claimed does not hold."""


@dataclass(frozen=True, eq=False, repr=False)
class Result:
    """One measured and verified run.

    Attributes
    ----------
    record : RunRecord
        Everything the run showed, as ``mapgap solve --json`` prints it. Its ``gap`` is that of this run alone.
    instance : InstanceBase
        What was solved, expanded.
    known : InstanceFacts
        Best plan and best bound of this run, of the others of a comparison, and of the ledger.
    contradictions : tuple of str
        Runs that cannot all be right about the instance; empty as it should be.
    """

    record: RunRecord
    instance: InstanceBase
    known: InstanceFacts
    contradictions: tuple[str, ...] = ()

    @property
    def method(self) -> str:
        return self.record.method

    @property
    def problem(self) -> str:
        return self.record.problem

    @property
    def status(self) -> Status:
        """What the run has proven."""
        return Status(self.record.status)

    @property
    def word(self) -> str:
        """``certified``, ``solver-proven`` or ``open``."""
        return self.record.word

    @property
    def stop(self) -> Stop:
        """Why it ended."""
        return Stop(self.record.stop)

    @property
    def objective(self) -> int | None:
        """Of the plan, by the evaluator; ``None`` without a verified plan."""
        return self.record.objective

    @cached_property
    def within(self) -> Within | None:
        """Of an optimum on measured times: what their quartiles leave open, and the simplest plan that they do not tell
        apart from it. Searched when it is first asked for, for the time limit of the run, 10 seconds at most."""
        if self.status is not Status.OPTIMAL or self.record.plan is None or self.record.error:
            return None
        return within(self.instance, self.record.plan, Budget(self.record.time_limit_s))

    @property
    def unit(self) -> str:
        """Of objective and bounds."""
        return self.record.unit

    @property
    def value(self) -> str:
        """The objective with its unit."""
        return "no plan" if self.objective is None else quantity(self.objective, self.unit)

    @property
    def bound(self) -> int | None:
        """The best bound that this run has proven."""
        return self.record.bound

    @property
    def best_bound(self) -> int | None:
        """The best bound that any method known here has proven."""
        return None if self.contradictions else self.known.bound

    @property
    def gap(self) -> float | None:
        """Share by which the plan misses :attr:`best_bound`; ``None`` without a plan or a bound."""
        return relative(self.objective, self.best_bound, self.record.sign)

    @property
    def best_plan(self) -> int | None:
        """Objective of the best plan known here."""
        return self.known.best

    @property
    def gap_to_best(self) -> float | None:
        """Share by which the plan misses the best plan known."""
        return relative(self.objective, self.known.best, self.record.sign)

    @property
    def seconds(self) -> float | None:
        """Wall-clock time of the method, imports excluded."""
        return self.record.wall_s

    @property
    def terms(self) -> Mapping[str, Any]:
        """Further values of the plan (throughput, memory, …)."""
        return self.record.terms

    @property
    def notes(self) -> Mapping[str, Any]:
        """What the method says of its run."""
        return self.record.notes

    @property
    def trace(self) -> Sequence[TracePoint]:
        """Improvements over time, with verified objectives."""
        return self.record.trace

    @property
    def error(self) -> str | None:
        """How the method failed; ``None`` if it did not."""
        return self.record.error

    @cached_property
    def plan(self) -> PlanBase | None:
        """The best verified plan, an object of the problem's plan type."""
        if self.record.plan is None or self.objective is None:
            return None
        plan: PlanBase = registry.problems()[self.problem].plan_type.model_validate_json(json.dumps(self.record.plan))
        return plan

    def gantt(self) -> Chart:
        """The timetable of the plan.

        Raises
        ------
        InputError
            There is no plan, or the problem has no chart.
        """
        if self.plan is None:
            raise InputError(f"gantt: expected a result with a plan, {self.method} on {self.instance.name} has none")
        return chart_of(self.instance, self.plan, f"{self.instance.name} · {self.method} · {self.value}")

    def save(self, path: Path | str) -> Path:
        """Write the record as JSON: ``mapgap check INSTANCE FILE`` and :func:`mapgap.check` read the plan from it.

        Raises
        ------
        InputError
            The file cannot be written.
        """
        return write_text(Path(path), json.dumps(self.record.to_json(), indent=1) + "\n")

    def __repr__(self) -> str:
        stated = [str(self.status), *([self.value] if self.objective is not None else [])]
        gap = [] if self.gap is None else [f"gap {percent(self.gap)} to bound {self.best_bound:,}"]
        wrong = ["FAILED"] if self.error else []
        time = [] if self.seconds is None else [f"{self.seconds:.3g} s"]
        contradicted = ["CONTRADICTED"] if self.contradictions else []
        parts = ", ".join([*contradicted, *wrong, *stated, *gap, f"stopped by {self.stop}", *time])
        return f"<Result {self.method} on {self.instance.name}: {parts}>"

    def _repr_html_(self) -> str:
        rows = {
            "instance": self.instance.name,
            "method": f"{self.method} ({self.record.kind})",
            "status": f"{self.status} ({self.word}), stopped by {self.stop}",
            "objective": None if self.objective is None else self.value,
            "bound of this run": None if self.bound is None else quantity(self.bound, self.unit),
            "gap to the best proven bound": None if self.gap is None else f"{percent(self.gap)} of {self.best_bound:,}",
            "distance to the best plan": None
            if self.gap_to_best is None
            else f"{percent(self.gap_to_best)} of {self.best_plan:,}",
            "time": None if self.seconds is None else f"{self.seconds:.3f} s",
            "reason": self.record.reason,
            "error": self.error,
        }
        listed = [[name, value] for name, value in rows.items() if value not in (None, "")]
        return table_html([], listed, warnings=self.contradictions)


@dataclass(frozen=True, eq=False, repr=False)
class Check:
    """What a plan is worth and every rule that it breaks; true exactly when it breaks none.

    Attributes
    ----------
    instance : InstanceBase
    plan : PlanBase
    evaluation : Evaluation
    """

    instance: InstanceBase
    plan: PlanBase
    evaluation: Evaluation

    def __bool__(self) -> bool:
        return self.feasible

    @property
    def feasible(self) -> bool:
        return self.evaluation.feasible

    @property
    def objective(self) -> int | None:
        """Also of a plan that breaks rules, where it is defined."""
        return self.evaluation.objective

    @property
    def unit(self) -> str:
        return registry.problems()[self.instance.problem].unit(self.instance)

    @property
    def terms(self) -> Mapping[str, Any]:
        return self.evaluation.terms

    @property
    def violations(self) -> tuple[Violation, ...]:
        """All broken rules: which, where, by how much."""
        return self.evaluation.violations

    def to_json(self) -> dict[str, Any]:
        """What ``mapgap check --json`` prints."""
        return {
            "instance": self.instance.name,
            "instance_hash": self.instance.content_hash,
            "problem": self.instance.problem,
            "feasible": self.feasible,
            "objective": self.objective,
            "unit": self.unit,
            "terms": plain(self.terms),
            "violations": [violation.to_json() for violation in self.violations],
        }

    def gantt(self) -> Chart:
        """The timetable of the plan.

        Raises
        ------
        InputError
            The problem has no chart, or the plan has no timetable.
        """
        return chart_of(self.instance, self.plan, self.instance.name)

    def _words(self) -> str:
        value = "no objective" if self.objective is None else quantity(self.objective, self.unit)
        broken = len(self.violations)
        return f"{value}, {'feasible' if self.feasible else f'breaks {broken} rule' + 's' * (broken != 1)}"

    def __repr__(self) -> str:
        told = [f"  {each.rule}: {each.where}: {each.message} (by {each.amount})" for each in self.violations]
        return "\n".join([f"<Check of a plan of {self.instance.name}: {self._words()}>", *told])

    def _repr_html_(self) -> str:
        rows = [[each.rule, each.where, each.message, each.amount] for each in self.violations]
        columns = ["rule", "where", "what", "by"] if rows else []
        return table_html(columns, rows, f"{self.instance.name}: {self._words()}")
