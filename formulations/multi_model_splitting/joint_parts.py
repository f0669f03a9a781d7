"""``joint`` in independent parts: one whole search, and beside it others that look for plans from seeds of their own.

The first part is the run that one process would do, for all of the time: plan, bound by column generation, integer
programs. So the result is no worse than that of one process, but for what handing it out takes. The other parts
leave the bound to it and look in different places. All tell what they find at once, and hear between two steps what the
others have found: the search goes on from the best plan, and ends where plan and bound meet.

A plan is evaluated again here. Where the engine of one part contradicted itself, only the bounds count that rest on our
own arithmetic (:mod:`.joint`), whoever found the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from mapgap.core import DISTRUSTED, Budget, Known, SolveResult, Status, Stop, Task
from mapgap.formulations.multi_model_splitting import joint
from mapgap.formulations.multi_model_splitting.starting import first_plan
from mapgap.problems.multi_model_splitting import Instance, Plan
from mapgap.problems.multi_model_splitting.diagnose import diagnose
from mapgap.problems.multi_model_splitting.evaluate import evaluate

SEEDS = 8
"""Parts beside the first. Two processes do eight rounds of them, four processes three."""


class JointParts:
    """See :class:`mapgap.core.Parts`; the parts know the best plan and the best bound."""

    def __init__(self, instance: Instance, budget: Budget) -> None:
        self.instance, self.budget = instance, budget
        self.reasons = diagnose(instance)
        self.plan: Plan | None = None
        self.value: int | None = None
        self.bound = self.own = 0
        self.infeasible = ""
        self.stop = Stop.TIME
        self.distrusted: list[str] = []
        if not self.reasons:
            self._accept(first_plan(instance, budget).plan)

    @property
    def closed(self) -> bool:
        bound = self.own if self.distrusted else self.bound
        return bool(self.reasons or self.infeasible) or (self.value is not None and bound >= self.value)

    def tasks(self) -> Sequence[Task]:
        if self.reasons:
            return []
        run = f"{__name__}:part"
        seeds = [Task(f"seed {k}", run, (k,), tells=True) for k in range(1, 1 + SEEDS)]
        return [Task("whole", run, (0,), whole=True, tells=True), *seeds]

    def wanted(self, task: Task) -> bool:
        return not self.closed

    @property
    def known(self) -> dict[str, Any]:
        return {"plan": None if self.plan is None else self.plan.to_json(), "bound": self.bound, "own": self.own}

    def learn(self, task: Task, found: SolveResult) -> None:
        if isinstance(found.plan, Plan):
            self._accept(found.plan)
        self.distrusted += found.notes.get(DISTRUSTED, ())
        if found.status is Status.INFEASIBLE:
            self.infeasible = found.reason
        self.own = max(self.own, found.notes.get("own_bound", 0))
        if found.bound is not None and found.bound > self.bound:
            self.bound = found.bound
            self.budget.report(bound=found.bound)

    def _accept(self, plan: Plan | None) -> None:
        checked = None if plan is None else evaluate(self.instance, plan)
        if checked is None or not checked.feasible or checked.objective is None:
            return
        if self.value is None or checked.objective < self.value:
            self.plan, self.value = plan, checked.objective
            self.budget.report(plan=plan)

    def result(self, stop: Stop) -> SolveResult:
        notes = {DISTRUSTED: self.distrusted} if self.distrusted else {}
        if self.reasons or (self.infeasible and self.value is None):
            reason = "; ".join(self.reasons) or self.infeasible
            return SolveResult(Status.INFEASIBLE, Stop.PROVED, reason=reason, notes=notes)
        if self.value is not None and self.closed:
            return SolveResult(Status.OPTIMAL, Stop.PROVED, self.plan, self.bound, self.value, notes=notes)
        status = Status.UNKNOWN if self.plan is None else Status.FEASIBLE
        left = Stop.TIME if stop is Stop.PROVED else stop  # all seeds are done, and it is still open
        bound = self.own if self.distrusted else self.bound
        return SolveResult(status, left, self.plan, bound or None, self.value, notes=notes)


def part(instance: Instance, budget: Budget, known: Known, seed: int) -> SolveResult:
    """The whole search (seed 0), or one for plans with a seed of its own."""
    own = replace(budget, seed=budget.seed + seed)
    return joint.search(instance, own, known, bounds=seed == 0)


def parts(instance: Instance, budget: Budget) -> JointParts:
    """Parts of the method ``joint``."""
    return JointParts(instance, budget)
