"""What the exact models share: the partitions of the batch, cheap bounds per ratio, and the loop over ratios."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import permutations
from typing import Any

import numpy as np

from mapgap.core import Budget, PlanError, SolveResult, Status, Stop
from mapgap.problems.suboperation_mapping import Instance
from mapgap.problems.suboperation_mapping.evaluate import diagnose
from mapgap.problems.suboperation_mapping.lowered import Array, Lowered, lower

Ratio = tuple[int, ...]


@dataclass(frozen=True)
class Ordered:
    """A mapping in sequence form with its makespan, timed as early as possible."""

    lowered: Lowered
    location: Array
    sequence: Array
    makespan: int


@dataclass(frozen=True)
class RatioResult:
    """What one model says about one ratio.

    ``bound`` is a proven lower bound of the ratio or of the cutoff, whichever is smaller; ``claimed`` the objective
    the model believes of ``best``; ``infeasible`` that no plan of this ratio exists at all.
    """

    best: Ordered | None
    bound: int
    stop: Stop
    claimed: int | None = None
    infeasible: bool = False


def partitions(batch: int, parts: int) -> Iterator[Ratio]:
    """Partitions of ``batch`` into at most ``parts`` parts, non-increasing, padded with zeros."""

    def extend(rest: int, largest: int, slots: int) -> Iterator[Ratio]:
        if slots == 0:
            if rest == 0:
                yield ()
            return
        for first in range(min(rest, largest), -1, -1):
            if first * slots < rest:
                return
            for tail in extend(rest - first, first, slots - 1):
                yield (first, *tail)

    yield from extend(batch, batch, parts)


def horizon(lowered: Lowered) -> int:
    """No plan of the ratio takes longer: every operation one after the other, each with its slowest choice."""
    total = int(lowered.compute.max(axis=1).sum())
    if len(lowered.pred):
        total += int(lowered.pred_ticks.max(axis=(1, 2)).sum())
    total += int(lowered.gradient_ticks.sum(axis=2).max(axis=1).sum())
    return max(total, 1)


def critical_path(lowered: Lowered) -> int:
    """The larger of the longest path and the area, both with the fastest accelerator and without transfers."""
    fastest = lowered.compute.min(axis=1)
    end = np.zeros(lowered.n, np.int64)
    for o in lowered.topological:
        before = lowered.pred[lowered.pred_ptr[o] : lowered.pred_ptr[o + 1]]
        end[o] = fastest[o] + (end[before].max() if len(before) else 0)
    return max(int(end.max()), -(-int(fastest.sum()) // lowered.accelerators))


def dram_binds(lowered: Lowered) -> bool:
    """Some accelerator cannot hold all weights and all stored tensors at once."""
    demand = int(lowered.item_units.sum()) + int(lowered.weight_units.sum())
    return demand > int(lowered.capacity.min())


def reachability(lowered: Lowered) -> Array:
    """``(n, n)`` booleans: a chain of precedences leads from the row to the column."""
    reach = np.zeros((lowered.n, lowered.n), bool)
    for o in lowered.topological:
        for p in lowered.pred[lowered.pred_ptr[o] : lowered.pred_ptr[o + 1]]:
            reach[:, o] |= reach[:, p]
            reach[p, o] = True
    return reach


def timed(lowered: Lowered, location: Array, sequence: Array) -> Ordered | None:
    """The plan timed as early as possible; ``None`` if it exceeds the DRAM."""
    start, end = lowered.timetable(location, sequence)
    if lowered.memory_excess(location, start, end):
        return None
    return Ordered(lowered, location, sequence, int(end.max()))


def simple_start(lowered: Lowered) -> Ordered | None:
    """The best of: every share on an accelerator of its own, fused layers with the first share."""
    best: Ordered | None = None
    for places in permutations(range(lowered.accelerators)):
        location = np.array([places[max(share, 0)] for _, _, share in lowered.operations], np.int64)
        found = timed(lowered, location, lowered.topological)
        if found is not None and (best is None or found.makespan < best.makespan):
            best = found
    return best


@dataclass
class _Sweep:
    """State of the loop over ratios."""

    best: Ordered | None = None
    claimed: int | None = None
    bounds: dict[Ratio, int] = field(default_factory=dict)
    infeasible: set[Ratio] = field(default_factory=set)

    def offer(self, found: Ordered | None, claimed: int | None, budget: Budget) -> None:
        if found is not None and (self.best is None or found.makespan < self.best.makespan):
            self.best, self.claimed = found, claimed
            budget.report(plan=found.lowered.plan(found.location, found.sequence))

    def bound(self) -> int | None:
        """Smallest bound over the ratios that may hold a plan, never above the incumbent."""
        open_bounds = [b for r, b in self.bounds.items() if r not in self.infeasible]
        if self.best is not None:
            open_bounds.append(self.best.makespan)
        return min(open_bounds, default=None)


def sweep(
    instance: Instance,
    budget: Budget,
    solve_ratio: Callable[[Lowered, int | None, float], RatioResult],
    ratio: Ratio = (),
) -> SolveResult:
    """Solve every partition of the batch (or one ``ratio``), most promising first, each with the incumbent as cutoff.

    ``solve_ratio(lowered, cutoff, seconds)`` looks for plans *below* the cutoff. The bound of the instance is the
    smallest over all ratios; under a given ``ratio`` nothing is proven of the instance and the bound is ``None``.
    """
    reasons = diagnose(instance)
    if reasons:
        return SolveResult(Status.INFEASIBLE, Stop.PROVED, reason="; ".join(reasons))
    ratios = [tuple(ratio)] if ratio else list(partitions(instance.batch, len(instance.accelerators)))
    models = [lower(instance, r) for r in ratios]
    state = _Sweep(bounds={m.ratio: critical_path(m) for m in models})
    for lowered in models:
        found = simple_start(lowered)
        state.offer(found, None if found is None else found.makespan, budget)
    models.sort(key=lambda m: (state.bounds[m.ratio], m.ratio))
    stop = Stop.PROVED
    searched = 0
    for position, lowered in enumerate(models):
        cutoff = None if state.best is None else state.best.makespan
        if cutoff is not None and state.bounds[lowered.ratio] >= cutoff:
            continue
        if budget.exhausted or stop is Stop.INTERRUPTED:
            stop = Stop.TIME if stop is Stop.PROVED else stop
            break
        searched += 1
        result = solve_ratio(lowered, cutoff, budget.remaining_s / (len(models) - position))
        state.bounds[lowered.ratio] = max(state.bounds[lowered.ratio], result.bound)
        if result.infeasible:
            state.infeasible.add(lowered.ratio)
        if result.stop is not Stop.PROVED:
            stop = result.stop  # an interruption ends the loop below, so nothing overwrites it
        state.offer(result.best, result.claimed, budget)
        if not ratio:
            budget.report(bound=state.bound())
    return _result(instance, state, stop, bool(ratio), {"ratios": len(ratios), "ratios_searched": searched})


def _result(instance: Instance, state: _Sweep, stop: Stop, partial: bool, notes: dict[str, Any]) -> SolveResult:
    best, bound = state.best, state.bound()
    if len(state.infeasible) == len(state.bounds):
        sizes = ", ".join(f"{a.name} {a.memory}" for a in instance.accelerators)
        reason = f"DRAM: no mapping and order of any of the {len(state.bounds)} ratios fits ({sizes} units)"
        return SolveResult(Status.UNKNOWN if partial else Status.INFEASIBLE, stop, reason=reason, notes=notes)
    if best is None:
        return SolveResult(Status.UNKNOWN, stop, bound=None if partial else bound, notes=notes)
    if bound is not None and bound > best.makespan:
        raise PlanError(f"bound {bound} above the makespan {best.makespan} of a plan")
    proven = not partial and bound == best.makespan
    return SolveResult(
        status=Status.OPTIMAL if proven else Status.FEASIBLE,
        stop=Stop.PROVED if proven else (Stop.DONE if stop is Stop.PROVED else stop),
        plan=best.lowered.plan(best.location, best.sequence),
        bound=None if partial else bound,
        claimed=state.claimed,
        notes=notes,
    )
