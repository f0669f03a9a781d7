"""Ruin and recreate: the quick planner of the house, Synergy's plan and a short neighbourhood search from it.

1. The neighbourhood search makes first plans.
2. Synergy's Algorithm 1 plans pipeline by pipeline; its ablations run too where they can be better: without joint
   resources where equal pipelines may share operations, as they then get equal plans, and without source and target
   where the search has found no plan yet.
3. From the better plan the search goes on. What the order of the pipelines costs is never repaired by Synergy; the
   search takes some pipelines out and puts each back where it costs least, again and again.

The result is never worse than Synergy's. The work is a number of segments looked at, not a time: the same seed gives
the same plan, unless the budget ends before. No solver takes part.
"""

from __future__ import annotations

from mapgap.core import Budget, SolveResult, Status, Stop
from mapgap.heuristics.multi_model_splitting.params import Neighbourhood
from mapgap.heuristics.multi_model_splitting.search.neighbourhood import started
from mapgap.heuristics.multi_model_splitting.synergy import algorithm_1
from mapgap.problems.multi_model_splitting import Instance, Plan

DEFAULT = Neighbourhood()


def run(instance: Instance, budget: Budget, params: Neighbourhood = DEFAULT) -> SolveResult:
    """The best plan of Synergy and the search; every better plan is announced."""
    search = started(instance, budget.seed, lambda: budget.exhausted, params)  # 1
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
    limit, search.quiet = search.work + params.work, 0  # 3
    while not (search.plan is None or search.settled or budget.exhausted or search.work >= limit):
        if search.walk(work=limit - search.work):
            budget.report(plan=search.plan)
    if search.plan is None:
        return published
    return SolveResult(Status.FEASIBLE, Stop.TIME if budget.exhausted else Stop.DONE, search.plan)


def run_first(instance: Instance, budget: Budget, work: int = 2000) -> SolveResult:
    """Step 1 alone, with so many segments looked at; Synergy where that finds no plan."""
    search = started(instance, budget.seed, lambda: budget.exhausted, Neighbourhood(work=max(1, work)))
    stop = Stop.TIME if budget.exhausted else Stop.DONE
    if search.plan is None:
        return algorithm_1(instance, budget, "data_intensity")
    budget.report(plan=search.plan)
    return SolveResult(Status.FEASIBLE, stop, search.plan)
