"""Ruin and recreate: the quick planner of the house, Synergy's plan and a short neighbourhood search from it.

What the order of the pipelines costs is never repaired by Synergy. The search (:mod:`.search.quick_search`) takes some
pipelines out and puts each back where it costs least, again and again.

The result is never worse than Synergy's. The work is a number of segments looked at, not a time: the same seed gives
the same plan, unless the budget ends before. No solver takes part.
"""

from __future__ import annotations

from mapgap.core import Budget, SolveResult, Status, Stop
from mapgap.heuristics.multi_model_splitting.search.quick_search import quick_search
from mapgap.problems.multi_model_splitting import Instance


def run(instance: Instance, budget: Budget) -> SolveResult:
    """The best plan of Synergy and the search."""
    search, published = quick_search(instance, budget)
    if search.plan is None:
        return published
    return SolveResult(Status.FEASIBLE, Stop.TIME if budget.exhausted else Stop.DONE, search.plan)
