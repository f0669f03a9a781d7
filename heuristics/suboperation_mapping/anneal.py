"""The best plan in a given time, without proof: annealing over ratio, mapping and order.

1.  *Starts*. The plan in the file ``start``, if one is given; plans of other bandwidths are good ones. The best single
    accelerator; MTrain-Mapping in both readings of the delta latency and the well-balanced scheme, at the PE-based
    ratio and the step-aligned ones (:mod:`step_aligned`); MTrain-Converting. The best are annealed a little
    (:mod:`short_rounds`).
2.  *Rounds*. A parent is drawn from a pool of the best solutions, one of each ratio; better ones are drawn more
    often. In half of the rounds some samples go from one share to another: one, a few, half, all, or as many as the
    next step of the compute tables is away. The mapping stays, and is annealed (:mod:`annealing_kernels`) from a
    temperature that the rounds take in turn.
3.  *Pool*. The result replaces the solution of its ratio if it is better; the worst one leaves.
4.  *Lengths*. Rounds grow longer while the best solution stays. The search gives up after ``PATIENCE`` rounds per
    operation without a better plan, which small instances reach within a second and large ones hardly ever.

The same seed makes the same rounds, so a run that ends by ``rounds`` is repeatable. One that ends by time is cut
somewhere. Every better plan is announced at once, the first one before any search.

References
----------
Kirkpatrick, Gelatt, Vecchi, "Optimization by simulated annealing", Science 220, 1983. Starts and moves are our own.
"""

from __future__ import annotations

from collections.abc import Sequence

from mapgap.core import Budget, SolveResult, Stop
from mapgap.heuristics.suboperation_mapping.common import result
from mapgap.heuristics.suboperation_mapping.search.pool import Rounds, Search
from mapgap.heuristics.suboperation_mapping.search.short_rounds import short_rounds
from mapgap.heuristics.suboperation_mapping.search.starts import read_start, starts
from mapgap.problems.suboperation_mapping import Instance
from mapgap.problems.suboperation_mapping.lowered.mapped import Mapped


def search(instance: Instance, budget: Budget, rounds: int = 0, known: Sequence[Mapped] = ()) -> Search:
    """Search until the time is up or, if ``rounds`` is positive, so many rounds are done.

    Parameters
    ----------
    known : sequence of Mapped
        Solutions to start from besides those of the heuristics.
    """
    state = Search(instance, budget)
    for mapped in known:
        state.offer(mapped)
    for start in starts(instance, budget):
        state.offer(start)
        if budget.exhausted:
            break
    short_rounds(state)
    turns = Rounds(state)
    while not budget.exhausted and (not rounds or state.rounds < rounds) and turns.next():
        pass
    return state


def run(instance: Instance, budget: Budget, rounds: int = 0, start: str = "") -> SolveResult:
    """Annealing until the time is up, or for ``rounds`` rounds; also from the plan in the file ``start``."""
    found = search(instance, budget, rounds, [read_start(instance, start)] if start else [])
    stop = Stop.TIME if budget.exhausted else Stop.DONE
    return result(found.best, budget, stop, rounds=found.rounds)
