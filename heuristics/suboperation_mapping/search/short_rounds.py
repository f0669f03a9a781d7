"""A few short rounds of annealing: all that the quick planner does, and where longer searches begin.

The best solutions, one of each ratio, are annealed in turn, then some of them under a neighbouring ratio
(:mod:`~mapgap.heuristics.suboperation_mapping.search.pool`). The number of steps follows from the size of the instance:
some hundredths of a second. No clock, no seed: the same solutions give the same, unless the time limit cuts the search.
"""

from __future__ import annotations

import random

from mapgap.heuristics.suboperation_mapping.search.pool import Search, ratio_moves
from mapgap.problems.suboperation_mapping import Instance
from mapgap.problems.suboperation_mapping.lowered.arrays import lower
from mapgap.problems.suboperation_mapping.lowered.ratios import pe_ratio

LARGE = 3_000  #: work of a mapping from which an instance is large
STEPS = 1_600_000  #: annealing steps times operations, half of it on large instances, …
SHORT = 30_000  #: … but of small instances at most so many steps
FINALISTS = 3  #: solutions that are annealed first
ROUND = 4_000  #: steps of a round, if there are enough for more rounds than finalists, …
ROUNDS = 10  #: … and for no more rounds than these
WARM = (0.002, 0.005)  #: first temperatures of the rounds, as shares of the makespan


def mapping_work(instance: Instance) -> int:
    """About the work of one MTrain-Mapping: operations times squared accelerators."""
    return lower(instance, pe_ratio(instance)).n * len(instance.accelerators) ** 2


def short_rounds(search: Search, fixed: bool = False) -> None:
    """Improve the solutions of a search, each in its own ratio only if ratios are ``fixed``."""
    instance = search.instance
    if search.best is None:
        return
    large = mapping_work(instance) > LARGE
    rng, neighbour = random.Random(0), ratio_moves(instance)
    steps = min((STEPS // 2 if large else STEPS) // search.best.lowered.n, SHORT)
    rounds = max(FINALISTS, min(ROUNDS, steps // ROUND))
    finalists = search.ranked()[:FINALISTS]
    for turn in range(rounds):
        if search.budget.exhausted:
            break
        ranked = search.ranked()
        parent = search.pool[finalists[turn] if turn < len(finalists) else ranked[rng.randrange(len(ranked)) // 2]]
        ratio = parent.lowered.ratio
        if turn >= len(finalists) and len(ratio) > 1 and not fixed:
            ratio = neighbour(ratio, rng)
        search.anneal(ratio, parent, WARM[turn % len(WARM)], steps // rounds, turn)
    search.rounds = 0  # whoever goes on from here does so in the same way
