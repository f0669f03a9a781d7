"""Lower bounds of single ratios along a chain of layers, the ratio of smallest bound first; asks no engine's word.

Every ratio has the bound of its longest path. The one of smallest bound is raised along a chain (:mod:`ascent`), first
by weights, then by labels and choices of moves towards the makespan of the best plan, as long as any is left open.
Where a layer's shares have too many places (``spreads``), as four shares on four accelerators have, the path is all
there is.
"""

from __future__ import annotations

from mapgap.core import Budget, SolveResult, Status, Stop
from mapgap.formulations.suboperation_mapping.ascent import Ascent, chained, shares_of
from mapgap.formulations.suboperation_mapping.params import Chains as Params
from mapgap.formulations.suboperation_mapping.path_bound import path_bound, share_paths
from mapgap.formulations.suboperation_mapping.phase_graph import PhaseGraph
from mapgap.formulations.suboperation_mapping.stage_state import State
from mapgap.problems.suboperation_mapping import Instance, Plan
from mapgap.problems.suboperation_mapping.evaluate import diagnose
from mapgap.problems.suboperation_mapping.lowered.mapped import best_single, started
from mapgap.problems.suboperation_mapping.lowered.ratios import Ratio, partitions


def run(instance: Instance, budget: Budget, start: str | Plan | None = None, params: Params = Params()) -> SolveResult:
    """The least bound of all ratios; no plan. A good ``start`` saves tries at what cannot be proven.

    Raises
    ------
    InputError
        ``start`` is none of this instance.
    """
    if reasons := diagnose(instance):
        return SolveResult(Status.INFEASIBLE, Stop.PROVED, reason="; ".join(reasons))
    state = State.begin(instance, budget.quiet(), partitions(instance.batch, len(instance.accelerators)), False)
    paths = share_paths(PhaseGraph(instance))
    for ratio, known in state.ratios.items():
        known.raise_to(path_bound(paths, ratio), own=True)
    tell(state, "path", budget)
    if (plan := started(instance, start) or best_single(instance)) is not None:
        state.learn(plan.plan, plan.makespan)
        ascents = ascents_of(state, plan.makespan, params)
        while not budget.exhausted and (still := [ratio for ratio in state.open() if ratio in ascents]):
            ascent = ascents[still[0]]
            if not ascent.climb(budget):
                del ascents[still[0]]
            state.ratios[still[0]].raise_to(ascent.bound, own=True)
            tell(state, "chain", budget)
    stop = Stop.TIME if budget.exhausted else Stop.DONE
    notes = {"ladder": [[rung, bound] for rung, bound in state.ladder.items()]}
    return SolveResult(Status.UNKNOWN, stop, bound=state.bound, notes=notes)


def ascents_of(state: State, goal: int, params: Params) -> dict[Ratio, Ascent]:
    """Of all ratios that have a chain, and few places for their shares."""
    data, devices = state.instance.to_json(), len(state.instance.accelerators)
    shares = {ratio: shares_of(ratio) for ratio in state.ratios} if chained(data) else {}
    few = {ratio: those for ratio, those in shares.items() if devices ** len(those) <= params.spreads}
    return {ratio: Ascent(data, those, goal, params) for ratio, those in few.items()}


def tell(state: State, rung: str, budget: Budget) -> None:
    """Report the bound of the instance, which rests on whole numbers of our own."""
    state.recomputed()
    state.announce(rung)
    budget.report(bound=state.bound)
