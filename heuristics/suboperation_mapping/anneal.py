"""The best plan in a given time, without proof: annealing over ratio, mapping and order.

1.  *Starts*. The plan in the file ``start``, if one is given; plans of other bandwidths are good ones. The complete run
    of the quick planner (:mod:`annealed_converting`), whose pool is kept. The well-balanced scheme at the PE-based
    ratio and the step-aligned ones; on large instances, where the quick planner maps some ratios only,
    MTrain-Converting.
2.  *Rounds*. A parent is drawn from a pool of the best solutions, one of each ratio; better ones are drawn more
    often. In half of the rounds some samples go from one share to another: one, a few, half, all, or as many as the
    next step of the compute tables is away. The mapping stays, and is annealed (:mod:`annealing_kernels`) from a
    temperature that the rounds take in turn.
3.  *Pool*. The result replaces the solution of its ratio if it is better; the worst one leaves.
4.  *Lengths*. Rounds grow longer while the best solution stays. The search gives up after ``patience`` rounds per
    operation (or place in the pool, if these are more) without a better plan, which small instances reach within a
    second and large ones hardly ever.

The same seed makes the same rounds, so a run that ends by ``rounds`` is repeatable. One that ends by time is cut
somewhere. Every better plan is announced at once, the first one before any search.

References
----------
Kirkpatrick, Gelatt, Vecchi, "Optimization by simulated annealing", Science 220, 1983. Starts and moves are our own.
"""

from __future__ import annotations

from collections.abc import Iterator

from mapgap.core import Budget, SolveResult, Stop
from mapgap.heuristics.suboperation_mapping import annealed_converting
from mapgap.heuristics.suboperation_mapping.common import result
from mapgap.heuristics.suboperation_mapping.mtrain import DELTAS, mtrain_converting
from mapgap.heuristics.suboperation_mapping.params import Annealing, QuickPlanner
from mapgap.heuristics.suboperation_mapping.search.pool import Rounds, Search, mapping_work
from mapgap.heuristics.suboperation_mapping.search.step_aligned import step_aligned_ratios
from mapgap.problems.suboperation_mapping import Instance, Plan
from mapgap.problems.suboperation_mapping.lowered.arrays import lower
from mapgap.problems.suboperation_mapping.lowered.mapped import Mapped, started, timed, well_balanced
from mapgap.problems.suboperation_mapping.lowered.ratios import pe_ratio


def starts(instance: Instance, budget: Budget, params: Annealing = Annealing()) -> Iterator[Mapped | None]:
    """What step 1 has beside the quick planner, within the budget; ``None`` stands for what does not fit.

    With MTrain-Converting in both readings among both, no search ends with less than the published heuristic. On large
    instances with shared links it maps some ratios only, as the quick planner does: each takes tenths of a second.
    """
    for ratio in dict.fromkeys((pe_ratio(instance), *step_aligned_ratios(instance, params.every_subset))):
        lowered = lower(instance, ratio)
        yield timed(lowered, well_balanced(lowered), lowered.topological)
    if (work := mapping_work(instance)) > params.large:
        most = None if instance.medium == "links" else max(2, QuickPlanner.mappings // work)
        for delta in DELTAS:
            yield mtrain_converting(instance, budget.quiet(), delta=delta, search_limit=params.quick, most=most)[0]


def more(search: Search, params: Annealing = Annealing()) -> Iterator[None]:
    """What step 1 has beside the quick planner; yields after every plan."""
    for start in starts(search.instance, search.budget, params):
        search.offer(start)
        yield
        if search.budget.exhausted:
            break


def run(
    instance: Instance,
    budget: Budget,
    rounds: int = 0,
    start: str | Plan | None = None,
    params: Annealing = Annealing(),
) -> SolveResult:
    """Annealing until the time is up, or for ``rounds`` rounds; also from a plan, or the file of one."""
    search = Search(instance, budget, params)
    search.offer(started(instance, start))
    annealed_converting.begin(search)
    for _ in more(search, params):
        pass
    turns = Rounds(search, params)
    while not budget.exhausted and (not rounds or search.rounds < rounds) and turns.next():
        pass
    stop = Stop.TIME if budget.exhausted else Stop.DONE
    return result(search.best, budget, stop, rounds=search.rounds)
