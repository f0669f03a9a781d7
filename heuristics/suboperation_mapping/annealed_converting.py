"""A quick planner: MTrain-Converting in both readings, step-aligned ratios, and a short annealing of the best.

1.  The best single accelerator and MTrain-Converting in both readings of the delta latency, so that the plan is never
    worse than any of them. On large instances MTrain-Converting can take all the time that a quick planner has: there
    it maps some ratios only, in the literal reading, and where it would map more, that the plan is better is measured
    only (study ``quick_planners``).
2.  MTrain-Mapping in both readings at the step-aligned ratios (:mod:`step_aligned`).
3.  The best solutions, one of each ratio, are annealed in turn, then some of them under a neighbouring ratio
    (:mod:`search`).

The number of annealing steps follows from the size of the instance: some hundredths of a second. No clock, no seed: the
plan is always the same, unless the time limit cuts the search.
"""

from __future__ import annotations

import random

from mapgap.core import Budget, SolveResult, Stop
from mapgap.heuristics.suboperation_mapping.common import result
from mapgap.heuristics.suboperation_mapping.mtrain import mtrain_converting
from mapgap.problems.suboperation_mapping import Instance
from mapgap.problems.suboperation_mapping.shared.lowered import lower
from mapgap.problems.suboperation_mapping.shared.mapped import best_single
from mapgap.problems.suboperation_mapping.shared.mtrain_mapping import DELTAS, mtrain_mapping
from mapgap.problems.suboperation_mapping.shared.ratios import pe_ratio
from mapgap.problems.suboperation_mapping.shared.search import Search, quiet, ratio_moves
from mapgap.problems.suboperation_mapping.shared.step_aligned import step_aligned_ratios

LARGE = 3_000  #: operations times squared accelerators, the work of a mapping, from which MTrain-Converting …
MAPPINGS = 185_000  #: … stops at so much work: some hundredths of a second
STEPS = 1_600_000  #: annealing steps times operations, half of it on large instances, …
SHORT = 30_000  #: … but of small instances at most so many steps
FINALISTS = 3  #: solutions that are annealed first
ROUND = 4_000  #: steps of a round, if there are enough for more rounds than finalists, …
ROUNDS = 10  #: … and for no more rounds than these
WARM = (0.002, 0.005)  #: first temperatures of the rounds, as shares of the makespan
QUICK = 1000  #: prefixes of a ready set at step-aligned ratios


def refine(search: Search, work: int) -> None:
    """Step 3, for so many steps times operations."""
    assert search.best is not None
    rng, neighbour = random.Random(0), ratio_moves(search.instance)
    steps = min(work // search.best.lowered.n, SHORT)
    rounds = max(FINALISTS, min(ROUNDS, steps // ROUND))
    finalists = search.ranked()[:FINALISTS]
    for turn in range(rounds):
        if search.budget.exhausted:
            break
        ranked = search.ranked()
        parent = search.pool[finalists[turn] if turn < len(finalists) else ranked[rng.randrange(len(ranked)) // 2]]
        ratio = parent.lowered.ratio
        if turn >= len(finalists) and len(ratio) > 1:
            ratio = neighbour(ratio, rng)
        search.anneal(ratio, parent, WARM[turn % len(WARM)], steps // rounds, turn)


def run(instance: Instance, budget: Budget) -> SolveResult:
    """The better of both readings of MTrain-Converting, improved."""
    search = Search(instance, budget)
    search.offer(best_single(instance))
    work = lower(instance, pe_ratio(instance)).n * len(instance.accelerators) ** 2
    large = work > LARGE
    complete = True
    for delta in ("sum",) if large else DELTAS:
        most = max(2, MAPPINGS // work) if large else None
        mapped, notes = mtrain_converting(instance, quiet(budget), delta=delta, most=most)
        search.offer(mapped)
        complete = complete and (large or notes["complete"])
    for ratio in step_aligned_ratios(instance):
        for delta in DELTAS:
            if not budget.exhausted:
                search.offer(mtrain_mapping(lower(instance, ratio), delta=delta, search_limit=QUICK))
    if search.best is not None:
        refine(search, STEPS // 2 if large else STEPS)
    stop = Stop.TIME if budget.exhausted or not complete else Stop.DONE
    return result(search.best, budget, stop, annealings=search.rounds)
