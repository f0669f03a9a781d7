"""The first plan of every exact method."""

from __future__ import annotations

from mapgap.core import Budget
from mapgap.problems.multi_model_splitting import Instance
from mapgap.problems.multi_model_splitting.shared.neighbourhood import Neighbourhood, started


def first_plan(instance: Instance, budget: Budget) -> Neighbourhood:
    """Neighbourhood search for some hundredths of a second; its plan is announced, if it has one."""
    found = started(instance, budget.seed, lambda: budget.exhausted)
    if found.plan is not None:
        budget.report(plan=found.plan)
    return found
