"""The first plan of every exact method."""

from __future__ import annotations

from mapgap.core import Budget
from mapgap.problems.multi_model_splitting import Instance
from mapgap.problems.multi_model_splitting.shared.neighbourhood import FIRST, Neighbourhood, started

WORK = 4 * FIRST


def first_plan(instance: Instance, budget: Budget) -> Neighbourhood:
    """A short neighbourhood search, in which every better plan is announced.

    It is longer than that of the quick planner, so that no exact method ends with less.
    """

    def over() -> bool:
        return budget.exhausted

    found = started(instance, budget.seed, over)
    if found.plan is not None:
        budget.report(plan=found.plan)
    while not (found.plan is None or found.settled or found.work >= WORK or over()):
        if found.walk(work=FIRST):
            budget.report(plan=found.plan)
    return found
