"""A quick planner: MTrain-Converting in both readings, step-aligned ratios, and a short annealing of the best.

1.  The best single accelerator and MTrain-Converting in both readings of the delta latency, so that the plan is never
    worse than any of them. On large instances MTrain-Converting can take all the time that a quick planner has: there
    it maps some ratios only, in the literal reading, and where it would map more, that the plan is better is measured
    only (study ``quick_planners``).
2.  MTrain-Mapping in both readings at the step-aligned ratios (:mod:`step_aligned`).
3.  A short annealing of the best (:func:`~mapgap.heuristics.suboperation_mapping.search.pool.short_rounds`).

The number of annealing steps follows from the size of the instance: some hundredths of a second. No clock, no seed: the
plan is always the same, unless the time limit cuts the search.
"""

from __future__ import annotations

from mapgap.core import Budget, SolveResult, Stop
from mapgap.heuristics.suboperation_mapping.common import result
from mapgap.heuristics.suboperation_mapping.mtrain import DELTAS, mtrain_converting, mtrain_mapping
from mapgap.heuristics.suboperation_mapping.params import QuickPlanner
from mapgap.heuristics.suboperation_mapping.search.pool import Search, mapping_work, short_rounds
from mapgap.heuristics.suboperation_mapping.search.step_aligned import step_aligned_ratios
from mapgap.problems.suboperation_mapping import Instance
from mapgap.problems.suboperation_mapping.lowered.arrays import lower
from mapgap.problems.suboperation_mapping.lowered.mapped import best_single


def begin(search: Search, mappings: int = QuickPlanner.mappings) -> bool:
    """The complete run, into the pool of a search that may go on from there; whether MTrain-Converting was finished."""
    instance, budget, params = search.instance, search.budget, search.params
    search.offer(best_single(instance))
    work = mapping_work(instance)
    large = work > params.large
    complete = True
    for delta in ("sum",) if large else DELTAS:
        most = max(2, mappings // work) if large else None
        mapped, notes = mtrain_converting(instance, budget.quiet(), delta=delta, most=most)
        search.offer(mapped)
        complete = complete and (large or notes["complete"])
    for ratio in step_aligned_ratios(instance, params.every_subset):
        for delta in DELTAS:
            if not budget.exhausted:
                search.offer(mtrain_mapping(lower(instance, ratio), delta=delta, search_limit=params.quick))
    short_rounds(search)
    return complete


def run(instance: Instance, budget: Budget, params: QuickPlanner = QuickPlanner()) -> SolveResult:
    """The better of both readings of MTrain-Converting, improved."""
    search = Search(instance, budget, params)
    complete = begin(search, params.mappings)
    stop = Stop.TIME if budget.exhausted or not complete else Stop.DONE
    return result(search.best, budget, stop, annealings=search.rounds)
