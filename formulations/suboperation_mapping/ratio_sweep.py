"""From one ratio to the instance: every partition of the batch, most promising first, the best plan as cutoff."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import permutations
from typing import Any

import numpy as np

from mapgap.core import DISTRUSTED, Budget, PlanBase, SolveResult, Status, Stop
from mapgap.problems.suboperation_mapping import Instance, Plan
from mapgap.problems.suboperation_mapping.evaluate import diagnose
from mapgap.problems.suboperation_mapping.shared.lowered import Lowered, lower
from mapgap.problems.suboperation_mapping.shared.mapped import Mapped, timed
from mapgap.problems.suboperation_mapping.shared.ratios import Ratio, partitions
from mapgap.solvers.turns import EngineError

SolveRatio = Callable[[Lowered, int | None, float], SolveResult]
"""``solve_ratio(lowered, cutoff, seconds)`` looks for plans of one ratio *below* the cutoff; its status, bound and plan
are about these. What :func:`nothing_below` says is that there are none."""


def nothing_below(cutoff: int | None) -> SolveResult:
    """The ratio has no plan below the cutoff, or none at all."""
    if cutoff is None:
        return SolveResult(Status.INFEASIBLE, Stop.PROVED)
    return SolveResult(Status.UNKNOWN, Stop.PROVED, bound=cutoff)


def verified(lowered: Lowered, result: SolveResult) -> Mapped | None:
    """The plan of a model timed as early as possible; ``None`` without a plan, or if it exceeds the DRAM.

    Raises
    ------
    EngineError
        The model claims another makespan.
    """
    if result.plan is None:
        return None
    found = _timed(lowered, result.plan)
    if found is not None and result.claimed is not None and found.makespan != result.claimed:
        raise EngineError(f"claims {result.claimed} for a plan of {found.makespan}")
    return found


def worth(lowered: Lowered, plan: PlanBase) -> int | None:
    """Makespan of a plan of the ratio timed as early as possible; ``None`` if it exceeds the DRAM."""
    found = _timed(lowered, plan)
    return None if found is None else found.makespan


def _timed(lowered: Lowered, plan: PlanBase) -> Mapped | None:
    assert isinstance(plan, Plan)
    return timed(lowered, *lowered.mapping(plan))


def critical_path(lowered: Lowered) -> int:
    """The larger of the longest path and the area, both with the fastest accelerator and without transfers."""
    fastest = lowered.timing.compute.min(axis=1)
    end = np.zeros(lowered.n, np.int64)
    for o in lowered.topological:
        end[o] = fastest[o] + end[lowered.predecessors(o)].max(initial=0)
    return max(int(end.max()), -(-int(fastest.sum()) // lowered.accelerators))


def simple_start(lowered: Lowered) -> Mapped | None:
    """The best of: every share on an accelerator of its own, fused layers with the first share."""
    tried = []
    for places in permutations(range(lowered.accelerators)):
        location = np.array([places[max(share, 0)] for _, _, share in lowered.operations], np.int64)
        tried.append(timed(lowered, location, lowered.topological))
    return min((found for found in tried if found is not None), key=lambda found: found.makespan, default=None)


@dataclass
class _Sweep:
    """State of the loop over ratios."""

    best: Mapped | None = None
    bounds: dict[Ratio, int] = field(default_factory=dict)
    infeasible: set[Ratio] = field(default_factory=set)
    reasons: dict[Ratio, str] = field(default_factory=dict)
    distrusted: list[str] = field(default_factory=list)

    def learn(self, ratio: Ratio, result: SolveResult) -> None:
        """Enter what was proven of a ratio, or why nothing was."""
        self.bounds[ratio] = max(self.bounds[ratio], result.bound or 0)
        if result.status is Status.INFEASIBLE:
            self.infeasible.add(ratio)
        if result.stop is Stop.DONE and result.reason:
            self.reasons[ratio] = result.reason
        self.distrusted += result.notes.get(DISTRUSTED, ())

    def offer(self, found: Mapped | None, budget: Budget) -> None:
        if found is not None and (self.best is None or found.makespan < self.best.makespan):
            self.best = found
            budget.report(plan=found.plan)

    def bound(self) -> int | None:
        """Smallest bound over the ratios that may hold a plan, never above the incumbent."""
        open_bounds = [b for r, b in self.bounds.items() if r not in self.infeasible]
        if self.best is not None:
            open_bounds.append(self.best.makespan)
        return min(open_bounds, default=None)


def sweep(instance: Instance, budget: Budget, solve_ratio: SolveRatio, ratio: Ratio = ()) -> SolveResult:
    """Solve every partition of the batch (or one ``ratio``), most promising first, each with the incumbent as cutoff.

    The bound of the instance is the smallest over all ratios; under a given ``ratio`` nothing is proven of the instance
    and the bound is ``None``.
    """
    reasons = diagnose(instance)
    if reasons:
        return SolveResult(Status.INFEASIBLE, Stop.PROVED, reason="; ".join(reasons))
    ratios = [ratio] if ratio else list(partitions(instance.batch, len(instance.accelerators)))
    graphs = [lower(instance, r) for r in ratios]
    state = _Sweep(bounds={graph.ratio: critical_path(graph) for graph in graphs})
    for graph in graphs:
        state.offer(simple_start(graph), budget)
    graphs.sort(key=lambda graph: (state.bounds[graph.ratio], graph.ratio))
    stop = Stop.PROVED
    searched = 0
    for position, graph in enumerate(graphs):
        cutoff = None if state.best is None else state.best.makespan
        if cutoff is not None and state.bounds[graph.ratio] >= cutoff:
            continue
        if budget.exhausted or stop is Stop.INTERRUPTED:
            stop = Stop.TIME if stop is Stop.PROVED else stop
            break
        searched += 1
        result = solve_ratio(graph, cutoff, budget.remaining_s / (len(graphs) - position))
        state.learn(graph.ratio, result)
        if result.stop is not Stop.PROVED:
            stop = result.stop  # an interruption ends the loop below, so nothing overwrites it
        state.offer(verified(graph, result), budget)
        if not ratio:
            budget.report(bound=state.bound())
    return _result(instance, state, stop, bool(ratio), {"ratios": len(ratios), "ratios_searched": searched})


def _result(instance: Instance, state: _Sweep, stop: Stop, partial: bool, notes: dict[str, Any]) -> SolveResult:
    best, bound = state.best, state.bound()
    if state.distrusted:
        notes = notes | {DISTRUSTED: list(dict.fromkeys(state.distrusted))}
    reason = refusals(state.reasons)
    if len(state.infeasible) == len(state.bounds):
        reason = no_ratio_fits(instance, len(state.bounds))
        return SolveResult(Status.UNKNOWN if partial else Status.INFEASIBLE, stop, reason=reason, notes=notes)
    if best is None:
        return SolveResult(Status.UNKNOWN, stop, bound=None if partial else bound, reason=reason, notes=notes)
    proven = not partial and bound == best.makespan
    return SolveResult(
        status=Status.OPTIMAL if proven else Status.FEASIBLE,
        stop=Stop.PROVED if proven else (Stop.DONE if stop is Stop.PROVED else stop),
        plan=best.plan,
        bound=None if partial else bound,
        claimed=best.makespan,
        reason="" if proven else reason,
        notes=notes,
    )


def refusals(reasons: Mapping[Ratio, str]) -> str:
    """Why some ratios were left undecided: the first reason, and how many ratios have another like it."""
    if not reasons:
        return ""
    ratio, first = next(iter(reasons.items()))
    more = f"; {len(reasons) - 1} other ratio(s) were refused as well" if len(reasons) > 1 else ""
    return f"ratio {','.join(map(str, ratio))}: {first}{more}"


def no_ratio_fits(instance: Instance, count: int) -> str:
    """The reason of an instance that has no plan at all."""
    sizes = ", ".join(f"{a.name} {a.memory}" for a in instance.accelerators)
    return f"DRAM: no mapping and order of any of the {count} ratios fits ({sizes} units)"
