"""Pipelines of other systems, planned as their papers do and executed as an HPP: GPipe, HetPipe (and ``pipedream``).

Interpretation
--------------
* ``gpipe`` (Huang et al., 2019), the paper's PP: one device per stage in memory order, cuts that balance the execution
  times of the real devices and overlook the sizes of the tensors between them ("overlooks the sizes of intermediate
  tensors", Sec. 5.6). It runs with 1F1B (Sec. 5.2). ``stages`` limits their number; the devices left over stay idle.
* ``hetpipe`` (Park et al., 2020): G virtual workers of N / G devices each run the whole model as a pipeline; their
  devices are alike ("equal distribution"), so that the same cuts suit all of them. Cuts minimise the slowest stage or
  transfer; G minimises the time of a round, which ends with G exchanges of all weights over the parameter server's
  link. *That* execution is not an HPP: its latency and the volume of Eq. (1) are in the notes ``hdp_latency_s`` and
  ``hdp_volume_mb``. The plan is its placement run as an HPP: stage p is replicated on the p-th devices of all workers.

Neither looks at memory; a plan that exceeds it is rejected with the reason (the paper's OOM).
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from mapgap.core import Budget, Finding, InputError, SolveResult
from mapgap.heuristics.hybrid_pipeline.asteroid import EQUAL, plan_of
from mapgap.heuristics.hybrid_pipeline.chain import Chain, chain, report, result
from mapgap.problems.hybrid_pipeline import Instance
from mapgap.problems.hybrid_pipeline.lowered.batching import every_micro_batch
from mapgap.problems.hybrid_pipeline.lowered.observe import observed
from mapgap.problems.hybrid_pipeline.lowered.order import memory_order, slowness
from mapgap.problems.hybrid_pipeline.lowered.tables import Array

NEVER = 2**61


def balanced_cuts(cost: Callable[[int, int], Array], stages: int, layers: int, transfer: Array) -> list[int]:
    """Cuts ``0 < ... < L`` that minimise the largest stage or transfer.

    Parameters
    ----------
    cost : callable
        ``cost(p, j)`` are the times of stage p for layers ``[i, j)``, by i from 0 to ``j - 1``.
    stages, layers : int
    transfer : (L + 1,)
        Time of a transfer across each cut.
    """
    best = np.full((stages + 1, layers + 1), NEVER, np.int64)
    origin = np.zeros((stages + 1, layers + 1), np.int64)
    best[0, 0] = 0
    for p in range(stages):
        for j in range(p + 1, layers - (stages - p - 1) + 1):
            before = best[p, :j] if p == 0 else np.maximum(best[p, :j], transfer[:j])
            values = np.maximum(before, cost(p, j))
            i = int(values.argmin())
            best[p + 1, j], origin[p + 1, j] = values[i], i
    cuts = [layers]
    for p in range(stages, 0, -1):
        cuts.append(int(origin[p, cuts[-1]]))
    return cuts[::-1]


@observed
@every_micro_batch
def run_gpipe(instance: Instance, budget: Budget, stages: int = 0) -> SolveResult:
    """One device per stage, balanced execution times.

    Raises
    ------
    InputError
        More stages than devices or layers.
    """
    begin = time.process_time()
    most = min(len(instance.devices), len(instance.layers))
    if not 0 <= stages <= most:
        raise InputError(Finding(f"expected 1 to {most}, or 0 for as many; found {stages}", ("stages",)))
    count = stages or most
    seen = chain(instance, memory_order(instance), memory=False)

    def cost(p: int, j: int) -> Array:
        times: Array = seen.tables.both[p, j, seen.tables.batch] - seen.tables.both[p, :j, seen.tables.batch]
        return times

    cuts = balanced_cuts(cost, count, seen.layers, np.zeros(seen.layers + 1, np.int64))
    rows = [(cuts[p], cuts[p + 1], p, p + 1) for p in range(count)]
    return report(budget, result(instance, plan_of(seen, rows, rule=EQUAL), begin))


@every_micro_batch
def run_hetpipe(instance: Instance, budget: Budget) -> SolveResult:
    """HetPipe's virtual workers: cuts, number of workers, and what its own execution would take."""
    begin = time.process_time()
    slow = slowness(instance)
    order = sorted(range(len(slow)), key=lambda d: (slow[d], d))
    seen = chain(instance, order, memory=False)
    count = len(order)
    choices = []
    for workers in (g for g in range(1, count + 1) if count % g == 0 and count // g <= seen.layers):
        rows = _hetpipe_rows(seen, workers)
        ticks, volume = _hdp(seen, rows, workers)
        choices.append((ticks, workers, volume, rows))
    ticks, workers, volume, rows = min(choices)
    return report(
        budget,
        result(
            instance,
            plan_of(seen, rows),
            begin,
            workers=workers,
            hdp_latency_s=ticks * instance.seconds_per_tick,
            hdp_volume_mb=volume / 1e6,
        ),
    )


def _hetpipe_rows(seen: Chain, workers: int) -> list[tuple[int, int, int, int]]:
    """Stages of the common cuts; stage p has the places ``[p G, (p + 1) G)``, one per virtual worker."""
    stages = len(seen.order) // workers

    def cost(p: int, j: int) -> Array:
        slowest: Array = seen.tables.both[p * workers : (p + 1) * workers, :, seen.tables.batch].max(axis=0)
        times: Array = slowest[j] - slowest[:j]
        return times

    cuts = balanced_cuts(cost, stages, seen.layers, 2 * seen.tables.comm[0])
    return [(cuts[p], cuts[p + 1], p * workers, (p + 1) * workers) for p in range(stages)]


def _hdp(seen: Chain, rows: list[tuple[int, int, int, int]], workers: int) -> tuple[int, int]:
    """Ticks of a round and bytes of Eq. (1) under HetPipe's own execution.

    A worker with M_g micro-batches takes (M_g + stages - 1) times its slowest step; they take what balances them. All
    weights then cross the link of the parameter server once in each direction for every worker.
    """
    pace = []
    for worker in range(workers):
        full = seen.tables.both[:, :, seen.tables.batch]
        steps = [int(full[a + worker, j] - full[a + worker, i]) for i, j, a, _ in rows]
        steps += [2 * int(seen.tables.comm[0, j]) for _, j, _, _ in rows[:-1]]
        pace.append(max(1, max(steps)))
    given = [0] * workers
    for _ in range(seen.tables.micro_batches):
        worker = min(range(workers), key=lambda g: (pace[g] * (given[g] + 1), g))
        given[worker] += 1
    ticks = max(p * (k + len(rows) - 1) for p, k in zip(pace, given, strict=True) if k)
    instance = seen.instance
    crossing = sum(instance.layers[j - 1].output_bytes for _, j, _, _ in rows[:-1])
    volume = 2 * instance.mini_batch * crossing
    if workers > 1:
        everything = 2 * workers * int(seen.tables.weights[-1])
        rates = [instance.bandwidth[d][e] for d in seen.order for e in seen.order if d != e]
        ticks += instance.transfer_ticks(everything, min(rates))
        volume += everything
    return ticks, volume
