"""PipeDream's planner (Narayanan et al., SOSP 2019), three readings of what an AllReduce costs a stage.

``A(j, m) = min_{i, m'} max(A(i, m - m'), 2 c_i, T(i, j, m'))``: the slowest stage or transfer of layers ``[0, j)`` on m
machines. With W the times of all layers of the average device for a micro-batch, and all replicas m' with equal shares,

* ``paper``: ``T = max(W, 2 (m' - 1) w / b) / m'`` (Sec. 3.1): computing and exchanging weights overlap;
* ``released``: ``T = (W + 4 (m' - 1) w / (b m')) / m'``, and transfers between stages take no time: the authors'
  ``optimizer_graph_hierarchical.py`` without a compression ratio, on one level of machines;
* ``amortised``: ``T = max(W / m', T_a / M)``: in synchronous training, which is what an HPP is, weights are exchanged
  once for M micro-batches. This is the one that suits Asteroid's execution.

Interpretation
--------------
1.  Replicas stand at adjacent places of the devices in instance order; b is the smallest bandwidth between them.
2.  Devices are alike to it: the average of their times. The plan gives them equal shares, as Eq. (7) would on equal
    devices.
3.  All machines are used. Memory is overlooked; a plan that exceeds it is rejected with the reason.
"""

from __future__ import annotations

import time
from typing import Literal

import numpy as np

from mapgap.core import Budget, SolveResult
from mapgap.heuristics.hybrid_pipeline.asteroid import EQUAL, plan_of
from mapgap.heuristics.hybrid_pipeline.chain import Chain, Rows, chain, report, result
from mapgap.problems.hybrid_pipeline import Instance
from mapgap.problems.hybrid_pipeline.lowered.batching import every_micro_batch
from mapgap.problems.hybrid_pipeline.lowered.tables import Array

NEVER = 2**61

Reading = Literal["amortised", "paper", "released"]


@every_micro_batch
def run(instance: Instance, budget: Budget, reading: Reading = "amortised") -> SolveResult:
    """PipeDream's dynamic programme on the average device."""
    begin = time.process_time()
    seen = chain(instance, range(len(instance.devices)), homogeneous=True, memory=False)
    rows, slowest = stages(seen, reading, budget=budget)
    if not instance.execution.replication:
        rows, slowest = stages(seen, reading, 1, budget)
    if not rows and budget.exhausted:
        return result(instance, None, begin, finished=False)
    plan = plan_of(seen, rows, rule=EQUAL) if rows else None
    return report(budget, result(instance, plan, begin, slowest_s=slowest * instance.seconds_per_tick))


def stages(seen: Chain, reading: Reading, most: int | None = None, budget: Budget | None = None) -> tuple[Rows, int]:
    """Stages of A(L, N) and its value in ticks; replicas of a stage, at most ``most``, stand at adjacent places.

    No stages when the time is over before.
    """
    layers, places = seen.layers, len(seen.order)
    times = seen.tables.both[0, :, seen.tables.batch]
    transfer = 0 * seen.tables.comm[0] if reading == "released" else 2 * seen.tables.comm[0]
    best = np.full((layers + 1, places + 1), NEVER, np.int64)
    origin = np.zeros((layers + 1, places + 1, 2), np.int64)
    best[0, 0] = 0
    for j in range(1, layers + 1):
        if budget is not None and budget.exhausted:
            return [], NEVER
        for m in range(1, places + 1):
            for used in range(max(0, m - (most or places)), m):
                weights = seen.tables.weights[j] - seen.tables.weights[:j]
                stage = stage_times(seen, reading, times[j] - times[:j], weights, (used, m))
                before = best[:j, used] if used == 0 else np.maximum(best[:j, used], transfer[:j])
                values = np.maximum(before, stage)
                i = int(values.argmin())
                if values[i] < best[j, m]:
                    best[j, m], origin[j, m] = values[i], (i, used)
    last = places if best[layers, places] < NEVER else int(best[layers].argmin())
    rows: list[tuple[int, int, int, int]] = []
    j, m = layers, last
    while j > 0:
        i, used = (int(x) for x in origin[j, m])
        rows.append((i, j, used, m))
        j, m = i, used
    return rows[::-1], int(best[layers, last])


def stage_times(seen: Chain, reading: Reading, work: Array, weights: Array, places: tuple[int, int]) -> Array:
    """T(i, j, m') in ticks by first layer; ``work`` and ``weights`` (j,) are those of layers ``[i, j)``."""
    a, b = places
    members, tables = b - a, seen.tables
    if reading == "amortised":
        reduce = weights * tables.reduce_num[a, b] // tables.reduce_den[a, b]
        amortised: Array = np.maximum(work // members, reduce // tables.micro_batches)
        return amortised
    if members == 1:
        return work
    bandwidth = seen.instance.bandwidth
    rate = min(bandwidth[seen.order[x]][seen.order[y]] for x in range(a, b) for y in range(a, b) if x != y)
    moved = np.array([int(w) * (members - 1) * 10**9 // (rate * seen.instance.tick_ns) for w in weights], np.int64)
    slowest: Array = np.maximum(work, 2 * moved) if reading == "paper" else work + 4 * moved // members
    return -(-slowest // members)
