"""What every exact method does besides asking its engine: a first plan at once, and search when the engine is stuck."""

from __future__ import annotations

from dataclasses import replace

from mapgap.core import Budget
from mapgap.formulations.multi_model_splitting.chains import Chain
from mapgap.formulations.multi_model_splitting.twins import TwinNeighbourhood
from mapgap.heuristics.multi_model_splitting.search.neighbourhood import FIRST, Neighbourhood
from mapgap.heuristics.multi_model_splitting.search.quick_search import quick_search
from mapgap.problems.multi_model_splitting import Instance

QUICK = 0.3
"""Part of the budget that the quick planner may take."""
WORK = 4 * FIRST
MARGIN, MARGIN_S = 0.1, 0.3
"""Kept at the end of the budget: a part of it, at most so many seconds."""
FLOOR = 0.3
"""Part of the budget after which the first bound is taken as it is: on a busy machine it could use all of a second."""
BLOCK_S, SEGMENT_S = 2e-4, 1.5e-4
"""Seconds per block and device, and per segment, that a program may take to be built, on a busy machine."""


def first_plan(instance: Instance, budget: Budget) -> Neighbourhood:
    """The quick planner's search, then a longer one of its own; every better plan is announced.

    So no exact method ends with less than the quick planner, and that is never worse than Synergy. On few instances
    Synergy takes seconds; what it has not found within a part of the time is not waited for.
    """
    found = TwinNeighbourhood(instance, budget.seed)
    early = replace(budget, time_s=budget.elapsed_s + QUICK * budget.remaining_s)
    plan = quick_search(instance, early)[0].plan
    if plan is not None:
        found.offer(plan)
    while not (found.settled or budget.exhausted or found.work >= WORK):
        if found.walk(work=FIRST):
            budget.report(plan=found.plan)
    return found


def margin_s(budget: Budget) -> float:
    """Seconds of the budget's end in which nothing new should begin."""
    return min(MARGIN_S, MARGIN * budget.time_s)


def until(budget: Budget, seconds: float) -> bool:
    """Whether so much of the budget is used, or so little of it is left that nothing new should begin."""
    return budget.elapsed_s >= seconds or budget.remaining_s < margin_s(budget)


def seek(search: Neighbourhood, budget: Budget, seconds: float, bound: int = 0) -> None:
    """Neighbourhood search until then, or until many walks have found nothing; every better plan is announced.

    Parameters
    ----------
    seconds : float
        Of the budget's clock.
    bound : int
        Proven, or 0.
    """
    search.quiet = 0
    while not (search.settled or until(budget, seconds)):
        if search.walk(bound):
            budget.report(plan=search.plan)


def blocks_s(chains: list[Chain]) -> float:
    """Seconds to build the assignment model of some chains."""
    return BLOCK_S * sum(chain.inference.size for chain in chains)


def segments_s(chains: list[Chain]) -> float:
    """Seconds to build the flow model of some chains, and to hand it to its engine."""
    return SEGMENT_S * sum(int(chain.segments.sum()) for chain in chains)
