"""Alpa's inter-operator planner (Zheng et al., "Alpa", OSDI 2022, Sec. 5.2; ``alpa/pipeline_parallel/
stage_construction.py`` of the released code).

With t(k, i, m) the time of layers ``[k, i)`` on m devices for one of the B micro-batches, the latency of a pipeline is
``T = sum_s t_s + (B - 1) max_s t_s``. The longest stage ``t_max`` is tried from small to large; for each the least sum

    F(s, k, d; t_max) = min over i, m with t(k, i, m) <= t_max of t(k, i, m) + F(s - 1, i, d - m; t_max)

is that of layers ``[k, L)`` in s stages on d devices. A stage with s - 1 behind it is only allowed where
``mem_stage + s mem_act <= mem_device``. In inference (``inference_dp``) it is ``min_s s max t``.

Interpretation
--------------
1.  A submesh is a group at adjacent places of the devices in instance order, each a host of one device, of which any
    number is a submesh (``get_submesh_choices``, "all"). All devices are used, or as many as there can be.
2.  Devices are alike to it: the average of their times, the least of their memories. The intra-operator plan of a stage
    is data parallelism with equal shares, the only one that the problem has. The plan gives them equal shares.
3.  t is the forward and backward time of a micro-batch, as ``interpret_profile_result_training_2d`` adds them; an
    AllReduce at the end of the round is no part of it, one with every micro-batch is. Transfers between stages are
    overlooked, as in the released code.
4.  Of equal plans the first in the order of t_max, then of s, then of the next cut. Values of ``t_max`` closer than
    ``gap`` (1 us in the paper and the code) to the last one are left out. Those below the least one with a plan, and
    from where ``F(t_max = inf) + (B - 1) t_max`` is no better, are not tried: that changes no result.
5.  Whatever the objective of the instance is, in training it plans for T.
"""

from __future__ import annotations

import time
from typing import NamedTuple

import numpy as np

from mapgap.core import Budget, Finding, InputError, SolveResult
from mapgap.heuristics.hybrid_pipeline.asteroid import EQUAL, plan_of
from mapgap.heuristics.hybrid_pipeline.chain import Chain, Rows, chain, report, result
from mapgap.problems.hybrid_pipeline import Instance
from mapgap.problems.hybrid_pipeline.lowered.batching import every_micro_batch
from mapgap.problems.hybrid_pipeline.lowered.tables import Array

NEVER = 2**60


class Stages(NamedTuple):
    """Stages that may be: ``ticks[m - 1, k, i]`` of layers ``[k, i)`` on m devices, :data:`NEVER` where there is none,
    and ``most[m - 1, k, i]``, so many stages it may be the first one of."""

    ticks: Array
    most: Array


@every_micro_batch
def run(instance: Instance, budget: Budget, gap: float = 1e-6) -> SolveResult:
    """Alpa's dynamic programme on the average device; ``gap`` in seconds.

    Raises
    ------
    InputError
        ``gap`` is below 0.
    """
    begin = time.process_time()
    if not gap >= 0:
        raise InputError(Finding(f"expected a gap of at least 0 seconds, found {gap}", ("gap",)))
    seen = chain(instance, range(len(instance.devices)), homogeneous=True)
    stages = priced(seen)
    rows, value, tried, finished = planned(seen, stages, round(gap / instance.seconds_per_tick), budget)
    plan = plan_of(seen, rows, rule=EQUAL) if rows else None
    planned_s = value * instance.seconds_per_tick if rows else None
    return report(budget, result(instance, plan, begin, finished, t_max_tried=tried, planned_s=planned_s))


def priced(seen: Chain) -> Stages:
    """Time and memory of all stages."""
    tables, rules = seen.tables, seen.instance.execution
    places, layers, batch = len(seen.order), seen.layers, tables.batch
    members = places if rules.replication else 1
    ticks = np.full((members, layers + 1, layers + 1), NEVER, np.int64)
    most = np.zeros_like(ticks)
    times = tables.both if rules.training else tables.forward
    state, activation = (np.subtract.outer(-t, -t) for t in (tables.state, tables.activation))  # [k, i]: t[i] - t[k]
    for m in range(1, members + 1):
        share = -(-batch // m)
        work = times[0, :, share]
        cost = np.subtract.outer(-work, -work)
        if rules.allreduce != "round" and m > 1:
            weights = np.subtract.outer(-tables.weights, -tables.weights)
            cost = cost - (-weights * tables.reduce_num[0, m] // tables.reduce_den[0, m])
        left = int(tables.room.min()) - state
        kept = left // np.maximum(1, activation * share)
        most[m - 1] = np.where(activation > 0, kept, np.where(left >= 0, layers, 0))
        if not rules.training:  # a stage stores one micro-batch, wherever it is
            most[m - 1] = np.where(most[m - 1] > 0, layers, 0)
        ticks[m - 1] = np.where(np.triu(np.ones_like(cost), 1) * most[m - 1] > 0, cost, NEVER)
    return Stages(ticks, most)


def planned(seen: Chain, stages: Stages, gap: int, budget: Budget) -> tuple[Rows, int, int, bool]:
    """Stages, T in ticks, the number of ``t_max`` tried, and whether the time sufficed."""
    used, rounds = _devices(stages, len(seen.order)), seen.tables.micro_batches
    if used == 0:
        return [], NEVER, 0, True
    if not seen.instance.execution.training:
        return *_inference(stages, used), 1, True
    values = np.unique(stages.ticks[stages.ticks < NEVER])
    low, high = 0, len(values) - 1
    while low < high:  # the least t_max with a plan
        middle = (low + high) // 2
        found = bool(_sums(stages, used, int(values[middle]))[:, 0, used].min() < NEVER)
        low, high = (low, middle) if found else (middle + 1, high)
    least = int(_sums(stages, used, int(values[-1]))[:, 0, used].min())
    best, rows, last, tried = NEVER, list[tuple[int, int, int, int]](), -gap, 0
    for longest in values[low:].tolist():
        if longest - last < gap:
            continue
        if budget.exhausted:
            return rows, best, tried, False
        if least + (rounds - 1) * longest >= best:
            break
        path, sums = _path(stages, _sums(stages, used, longest), used, longest)
        last, tried = longest, tried + 1
        slowest = max(int(stages.ticks[b - a - 1, k, i]) for k, i, a, b in path)
        if sums + (rounds - 1) * slowest < best:
            best, rows = sums + (rounds - 1) * slowest, path
    return rows, best, tried, True


def _devices(stages: Stages, places: int) -> int:
    """As many devices as stages can use at once; 0 if there are no stages that hold a micro-batch."""
    sums = _sums(stages, places, NEVER - 1)
    return max((d for d in range(1, places + 1) if sums[:, 0, d].min() < NEVER), default=0)


def _sums(stages: Stages, devices: int, longest: int) -> Array:
    """F(s, k, d; t_max), shape (S + 1, L + 1, devices + 1)."""
    layers = stages.ticks.shape[1] - 1
    most = min(layers, devices)
    sums = np.full((most + 1, layers + 1, devices + 1), NEVER, np.int64)
    sums[0, layers, 0] = 0
    for s in range(1, most + 1):
        for m, (ticks, allowed) in enumerate(zip(stages.ticks, stages.most, strict=True), 1):
            costs = np.where((ticks <= longest) & (allowed >= s), ticks, NEVER)
            for d in range(max(m, s), devices + 1):
                found = (costs + sums[s - 1, :, d - m]).min(axis=1)
                np.minimum(sums[s, :, d], found, out=sums[s, :, d])
    return np.minimum(sums, NEVER)


def _path(stages: Stages, sums: Array, devices: int, longest: int) -> tuple[list[tuple[int, int, int, int]], int]:
    """The stages of F(s, 0, devices; t_max) for the best s, and the sum."""
    s, k, d = int(sums[:, 0, devices].argmin()), 0, devices
    value, rows = int(sums[s, 0, devices]), list[tuple[int, int, int, int]]()
    while s > 0:
        i, m = next(
            (i, m)
            for i in range(k + 1, sums.shape[1])
            for m in range(1, min(d, len(stages.ticks)) + 1)
            if stages.most[m - 1, k, i] >= s
            and stages.ticks[m - 1, k, i] <= longest
            and stages.ticks[m - 1, k, i] + sums[s - 1, i, d - m] == sums[s, k, d]
        )
        rows.append((k, i, devices - d, devices - d + m))
        s, k, d = s - 1, i, d - m
    return rows, value


def _inference(stages: Stages, devices: int) -> tuple[list[tuple[int, int, int, int]], int]:
    """Stages of least ``s max t``, and that value."""
    layers = stages.ticks.shape[1] - 1
    best, rows = NEVER, list[tuple[int, int, int, int]]()
    values = np.unique(stages.ticks[stages.ticks < NEVER])
    for s in range(1, min(layers, devices) + 1):
        low, high = 0, len(values)
        while low < high:
            middle = (low + high) // 2
            enough = _sums(stages, devices, int(values[middle]))[s, 0, devices] < NEVER
            low, high = (low, middle) if enough else (middle + 1, high)
        if low < len(values) and s * int(values[low]) < best:
            best = s * int(values[low])
            sums = _sums(stages, devices, int(values[low]))
            sums[:s, 0, devices] = sums[s + 1 :, 0, devices] = NEVER
            rows = _path(stages, sums, devices, int(values[low]))[0]
    return rows, best
