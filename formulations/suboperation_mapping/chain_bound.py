"""Lower bounds of single ratios along a chain of layers, the ratio of smallest bound first; asks no engine's word.

Every ratio has the bound of its longest path. The one of smallest bound is raised along a chain (:mod:`ascent`), first
by weights in boxes of ratios that have it (:mod:`chain_boxes`), then by labels and choices of moves towards the
makespan of the best plan, as long as any is left open.
"""

from __future__ import annotations

from mapgap.core import Budget, SolveResult, Status, Stop
from mapgap.formulations.suboperation_mapping.ascent import Ascent
from mapgap.formulations.suboperation_mapping.boxes import LowCutter, of_ratio
from mapgap.formulations.suboperation_mapping.chain_boxes import ChainBoxes, Narrowing, chains
from mapgap.formulations.suboperation_mapping.located_frame import Frame
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
        if chains(instance, params):
            climb(state, plan.makespan, budget, params)
    stop = Stop.TIME if budget.exhausted else Stop.DONE
    notes = {"ladder": [[rung, bound] for rung, bound in state.ladder.items()]}
    return SolveResult(Status.UNKNOWN, stop, bound=state.bound, notes=notes)


def climb(state: State, goal: int, budget: Budget, params: Params) -> None:
    """Raise the ratio of smallest bound, or a box that it lies in, until it is known that this is all."""
    along, ascents = Narrowing(state.instance.to_json(), params), dict[Ratio, Ascent]()
    boxes = ChainBoxes(LowCutter(Frame(state.instance)), len(state.instance.accelerators))
    while not budget.exhausted and (still := state.open()):
        ratio = still[0]
        if (branch := boxes.next(ratio)) is not None:
            state.raise_box(branch.box, along.weighed(branch.box, goal))
            branch.tried = True
        else:
            ascent = ascents.setdefault(ratio, along.ascent(along.kept(of_ratio(ratio)), goal))
            if not ascent.climb(budget):
                return
            state.ratios[ratio].raise_to(ascent.bound, own=True)
        tell(state, "chain", budget)


def tell(state: State, rung: str, budget: Budget) -> None:
    """Report the bound of the instance, which rests on whole numbers of our own."""
    state.recomputed()
    state.announce(rung)
    budget.report(bound=state.bound)
