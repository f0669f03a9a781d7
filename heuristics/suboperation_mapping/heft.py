"""HEFT: list scheduling by upward rank with insertion, a reference from the field.

Interpretation
--------------
1.  ``rank(o)`` = mean compute over accelerators + mean of own dW transfer + max over successors s of (mean transfer
    of the precedence + rank(s)). Transfers are averaged over ordered pairs of distinct accelerators.
2.  Operations by falling rank, ties in topological order; each goes to the accelerator with the earliest finish, ties
    by index, into the first idle gap that is long enough (insertion policy). Transfers count into the duration on the
    receiver, as in the problem. A WU can come before an FP of another share where no fused layer lies between; the
    dW for a holder without a place is not counted then, and the finished schedule is timed anew.
3.  DRAM: accelerators where the partial schedule would exceed a budget are skipped, with what a WU releases
    stored for ever until that WU is scheduled. If none is left the answer is UNKNOWN.

References
----------
Topcuoglu, Hariri, Wu, "Performance-effective and low-complexity task scheduling for heterogeneous computing", IEEE
TPDS 13(3), 2002.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mapgap.core import Budget, SolveResult, Stop
from mapgap.heuristics.suboperation_mapping.common import chosen_ratio, partition_ratios, result
from mapgap.heuristics.suboperation_mapping.search.mapping_kernels import fits
from mapgap.heuristics.suboperation_mapping.search.ready_set_kernels import UNMAPPED
from mapgap.problems.suboperation_mapping import Instance
from mapgap.problems.suboperation_mapping.lowered.arrays import Array, Lowered, lower
from mapgap.problems.suboperation_mapping.lowered.mapped import Mapped, timed


def upward_rank(lowered: Lowered) -> NDArray[np.float64]:
    """Upward rank (n,) of every operation in ticks."""
    pairs = max(1, lowered.accelerators * (lowered.accelerators - 1))
    timing = lowered.timing
    moved = timing.pred_ticks.sum(axis=(1, 2)) / pairs
    own = timing.compute.mean(axis=1) + timing.gradient_ticks.sum(axis=(1, 2)) / pairs
    tail = np.zeros(lowered.n)
    for o in lowered.topological[::-1]:
        tail[o] += own[o]
        for e in range(timing.pred_ptr[o], timing.pred_ptr[o + 1]):
            p = timing.pred[e]
            tail[p] = max(tail[p], moved[e] + tail[o])
    return tail


def duration_on(lowered: Lowered, location: Array, o: int, a: int) -> int:
    """Compute and transfers of ``o`` on ``a``; predecessors are located, dW goes to the holders that are."""
    timing = lowered.timing
    total = int(timing.compute[o, a])
    for e in range(timing.pred_ptr[o], timing.pred_ptr[o + 1]):
        total += int(timing.pred_ticks[e, location[timing.pred[e]], a])
    holders = set(location[timing.holder[timing.holder_ptr[o] : timing.holder_ptr[o + 1]]].tolist())
    return total + sum(int(timing.gradient_ticks[o, a, target]) for target in holders - {UNMAPPED})


def first_gap(busy: list[tuple[int, int]], ready: int, duration: int) -> int:
    """Earliest start at or after ``ready`` of a gap of ``duration`` between the sorted intervals ``busy``."""
    moment = ready
    for start, end in busy:
        if moment + duration <= start:
            break
        moment = max(moment, end)
    return moment


def heft(lowered: Lowered) -> Mapped | None:
    """HEFT schedule of one ratio, or ``None`` when no accelerator fits an operation."""
    rank = upward_rank(lowered)
    place = np.empty(lowered.n, np.int64)
    place[lowered.topological] = np.arange(lowered.n)
    order = sorted(range(lowered.n), key=lambda o: (-rank[o], place[o]))
    location = np.full(lowered.n, UNMAPPED, np.int64)
    start, end = np.zeros(lowered.n, np.int64), np.zeros(lowered.n, np.int64)
    busy: list[list[tuple[int, int]]] = [[] for _ in range(lowered.accelerators)]
    for o in order:
        before = lowered.predecessors(o)
        ready = int(end[before].max()) if len(before) else 0
        options = []
        for a in range(lowered.accelerators):
            duration = duration_on(lowered, location, o, a)
            begin = first_gap(busy[a], ready, duration)
            options.append((begin + duration, a, begin))
        for finish, a, begin in sorted(options):  # earliest finish first
            location[o], start[o], end[o] = a, begin, finish
            if fits(lowered.storage, location, start, end):
                busy[a] = sorted([*busy[a], (begin, finish)])
                break
        else:
            return None
    position = np.empty(lowered.n, np.int64)
    position[order] = np.arange(lowered.n)
    sequence = np.array(sorted(range(lowered.n), key=lambda o: (start[o], position[o])), np.int64)
    return timed(lowered, location, sequence)


def run_heft(instance: Instance, budget: Budget, ratio: str = "") -> SolveResult:
    """HEFT at the PE-based ratio or at ``ratio`` ("40,24")."""
    return result(heft(lower(instance, chosen_ratio(instance, ratio))), budget)


def run_heft_dfs(instance: Instance, budget: Budget) -> SolveResult:
    """The best HEFT schedule over all partitions of the batch, parts by falling PEs."""
    best: Mapped | None = None
    seen = 0
    wanted = list(partition_ratios(instance))
    for ratio in wanted:
        if budget.exhausted:
            break
        mapped = heft(lower(instance, ratio))
        seen += 1
        if mapped is not None and (best is None or mapped.makespan < best.makespan):
            best = mapped
            budget.report(plan=best.plan)
    stop = Stop.DONE if seen == len(wanted) else Stop.TIME
    return result(best, budget, stop, ratios=len(wanted), ratios_mapped=seen)
