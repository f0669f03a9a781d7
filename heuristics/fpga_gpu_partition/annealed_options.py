"""Annealing: the quick planner of the house, both published plans and a short annealing of all options.

1. The patterns of Fig. 2 in module order, with the smallest and with the largest folds (:mod:`.paper_rule`).
2. Simulated annealing of the options of all layers, from everything on the GPU
   (:mod:`.search.annealing`).

The best of the three is never worse than a published plan. The work is a number of layers timed: the same seed gives
the same plan. No solver takes part.
"""

from __future__ import annotations

from mapgap.core import Budget, SolveResult, Status, Stop
from mapgap.heuristics.fpga_gpu_partition.construction import evaluated, plan_of
from mapgap.heuristics.fpga_gpu_partition.paper_rule import partition
from mapgap.heuristics.fpga_gpu_partition.params import Annealing as Params
from mapgap.heuristics.fpga_gpu_partition.search.annealing import Annealing
from mapgap.problems.fpga_gpu_partition import Instance, Plan
from mapgap.problems.fpga_gpu_partition.evaluate import evaluate

NOTHING_FITS = "neither the patterns nor the annealing found a plan within the limits; this proves nothing"


def run(instance: Instance, budget: Budget, params: Params = Params()) -> SolveResult:
    """The best of both published plans and the annealing."""
    known: list[tuple[int, Plan]] = []
    for largest_fold in (False, True):  # 1
        options, _ = partition(instance, largest_fold, singles=False, stop=False)
        found = evaluated(instance, options)
        if found.feasible and found.objective is not None:
            known.append((found.objective, plan_of(options)))
            budget.report(plan=min(known, key=lambda each: each[0])[1])
    annealing = Annealing(instance, params)
    annealing.run(budget.seed % 2**32)  # 2
    if (plan := annealing.plan) is not None:
        value = evaluate(instance, plan).objective
        if value is not None:
            known.append((value, plan))
    if not known:
        return SolveResult(Status.UNKNOWN, Stop.DONE, reason=NOTHING_FITS)
    best = min(known, key=lambda each: each[0])[1]
    budget.report(plan=best)
    return SolveResult(Status.FEASIBLE, Stop.DONE, best)
