"""The work of the quick planner ``ruin_and_recreate``, with which exact methods begin.

1. The neighbourhood search makes first plans.
2. Synergy's Algorithm 1 plans pipeline by pipeline; its ablations run too where they can be better: without joint
   resources where equal pipelines may share operations, as they then get equal plans, and without source and target
   where the search has found no plan yet.
3. From the better plan the search goes on.
"""

from __future__ import annotations

from mapgap.core import Budget, SolveResult
from mapgap.heuristics.multi_model_splitting.search.neighbourhood import Neighbourhood, started
from mapgap.heuristics.multi_model_splitting.synergy_algorithm import algorithm_1
from mapgap.problems.multi_model_splitting import Instance, Plan

WORK = 75_000
"""Segments looked at after the first plans; some hundredths of a second."""


def quick_search(instance: Instance, budget: Budget) -> tuple[Neighbourhood, SolveResult]:
    """A search that has done the work above and announced its plans, and how Synergy ended."""
    search = started(instance, budget.seed, lambda: budget.exhausted)  # 1
    if search.plan is not None:
        budget.report(plan=search.plan)
    ablations = [{"ends": False}] if search.plan is None else []
    ablations += [{"joint": False}] if instance.sharing else []
    for ablation in ablations:  # 2
        plan = algorithm_1(instance, budget.quiet(), "data_intensity", **ablation).plan
        if isinstance(plan, Plan) and search.offer(plan):
            budget.report(plan=plan)
    published = algorithm_1(instance, budget.quiet(), "data_intensity")  # 2
    if isinstance(published.plan, Plan) and search.offer(published.plan):
        budget.report(plan=published.plan)
    limit, search.quiet = search.work + WORK, 0  # 3
    while not (search.plan is None or search.settled or budget.exhausted or search.work >= limit):
        if search.walk(work=limit - search.work):
            budget.report(plan=search.plan)
    return search, published
