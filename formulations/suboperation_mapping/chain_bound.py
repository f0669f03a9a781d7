"""Lower bounds of single ratios along a chain of layers, the ratio of smallest bound first; asks no engine's word.

Every ratio has the bound of its longest path. The one of smallest bound is raised along a chain (:mod:`ascent`), first
by weights, then by labels towards the makespan of the best plan, as long as any is left open. Where a layer's shares
have too many places (``spreads``), as four shares on four accelerators have, the path is all there is.
"""

from __future__ import annotations

from collections.abc import Iterator

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


class Chains:
    """The search over ratios, in pieces, around bounds and plans that others raise as well.

    Attributes
    ----------
    possible : bool
        Whether the network has a chain.
    """

    def __init__(self, state: State, params: Params) -> None:
        self.state, self.params = state, params
        self.data = state.instance.to_json()
        self.ascents: dict[Ratio, Ascent] = {}
        self.done: set[Ratio] = set()
        self.possible = chained(self.data)

    def along(self, ratio: Ratio) -> bool:
        """Whether a ratio is bounded along a chain."""
        spreads = len(self.state.instance.accelerators) ** len(shares_of(ratio))
        return self.possible and bool(spreads <= self.params.spreads)

    def steps(self, budget: Budget) -> Iterator[None]:
        """A try to raise the bound of one ratio, then the next one."""
        while (goal := self.state.makespan) is not None:
            ratio = next((r for r in self.state.open() if r not in self.done and self.along(r)), None)
            if ratio is None:
                return
            self.climb(ratio, goal, budget)
            yield

    def climb(self, ratio: Ratio, goal: int, budget: Budget) -> None:
        """One try."""
        ascent = self.ascents.setdefault(ratio, Ascent(self.data, shares_of(ratio), goal, self.params))
        ascent.goal = goal
        if not ascent.climb(budget):
            self.done.add(ratio)
        self.state.ratios[ratio].raise_to(ascent.bound, own=True)
        self.state.recomputed()
        self.state.announce("chain")


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
    state.recomputed()
    state.announce("path")
    budget.report(bound=state.bound)
    if (known_plan := started(instance, start) or best_single(instance)) is not None:
        state.learn(known_plan.plan, known_plan.makespan)
    for _ in Chains(state, params).steps(budget):
        budget.report(bound=state.bound)
        if budget.exhausted:
            break
    stop = Stop.TIME if budget.exhausted else Stop.DONE
    notes = {"ladder": [[rung, bound] for rung, bound in state.ladder.items()]}
    return SolveResult(Status.UNKNOWN, stop, bound=state.bound, notes=notes)
