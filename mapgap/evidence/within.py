"""What the spread of the measurement leaves open about a proven optimum: a second step, which changes no optimum."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mapgap.catalogue import registry
from mapgap.core import Budget, InstanceBase, PlanBase
from mapgap.execution.watch import verify
from mapgap.records.record import relative

LONGEST_S = 10.0
"""The search for a simpler plan gets as long as a method, but no longer than that."""


@dataclass(frozen=True)
class Within:
    """An optimum within what was measured, and the simplest plan that cannot be told apart from it.

    Attributes
    ----------
    low, high : int
        Interval of the objective of the optimum, between the quartiles of the times.
    plan : PlanBase, optional
        The simplest plan; ``None`` where the optimum is.
    words : str
        In how far it is simpler, or why none is given.
    complete : bool
        All plans were searched.
    value, plan_low, plan_high : int, optional
        Of that plan: by the medians, and its interval.
    worse : float, optional
        Share by which it misses the optimum by the medians.
    """

    low: int
    high: int
    plan: PlanBase | None
    words: str
    complete: bool
    value: int | None = None
    plan_low: int | None = None
    plan_high: int | None = None
    worse: float | None = None

    def to_json(self) -> dict[str, Any]:
        return {**vars(self), "plan": None if self.plan is None else self.plan.to_json()}


def interval(instance: InstanceBase, plan: PlanBase) -> tuple[int, int] | None:
    """The ends of the objective of a plan, in order; ``None`` where nothing says how far the measurements spread."""
    found = registry.problems()[instance.problem].interval
    ends = None if found is None else found(instance, plan)
    return None if ends is None else (min(ends), max(ends))


def within(instance: InstanceBase, plan: Mapping[str, Any], budget: Budget) -> Within | None:
    """The second step after the optimum of an instance; ``None`` where nothing says how far the measurements spread."""
    problem = registry.problems()[instance.problem]
    best: PlanBase = problem.plan_type.model_validate_json(json.dumps(plan))
    ends = interval(instance, best)
    if ends is None:
        return None
    library = registry.library(instance.problem)
    found = library.preferred(instance, best, Budget(min(budget.time_s, LONGEST_S)))
    if found.plan is None:
        return Within(*ends, None, found.words, found.complete)
    value = verify(problem, instance, found.plan).objective
    optimum = verify(problem, instance, best).objective
    worse = relative(value, optimum, -1 if problem.sense == "max" else 1)
    low, high = interval(instance, found.plan) or (None, None)
    return Within(*ends, found.plan, found.words, found.complete, value, low, high, worse)
