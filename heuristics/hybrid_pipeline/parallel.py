"""Training without a pipeline: on one device, and data parallelism in two versions (Sec. 5.1, baselines).

``data_parallel`` is the paper's DP "with heterogeneous workload balancing" (Sec. 5.2): one stage on all devices with
the shares of Algorithm 1. ``eddl`` (Hao and Zhang, 2021) distributes data by speed alone: shares proportional to the
measured speed, whatever the memory, no offloading afterwards. ``on_device`` takes the fastest device that fits, or the
one named by ``device``; the paper takes the most powerful one.
"""

from __future__ import annotations

import time

from mapgap.core import Budget, Finding, InputError, SolveResult
from mapgap.heuristics.hybrid_pipeline.asteroid import plan_of
from mapgap.heuristics.hybrid_pipeline.chain import chain, report, result
from mapgap.problems.hybrid_pipeline import Instance, Plan, Stage
from mapgap.problems.hybrid_pipeline.lowered.batching import every_micro_batch
from mapgap.problems.hybrid_pipeline.lowered.order import memory_order, slowness


@every_micro_batch
def run_on_device(instance: Instance, budget: Budget, device: str = "") -> SolveResult:
    """Everything on one device.

    Raises
    ------
    InputError
        No device of that name.
    """
    begin = time.process_time()
    names = [d.name for d in instance.devices]
    if device and device not in names:
        raise InputError(Finding(f"expected one of {', '.join(names)}, found {device!r}", ("device",)))
    (batch,) = instance.micro_batch_sizes
    slow = slowness(instance)
    chosen = [names.index(device)] if device else sorted(range(len(names)), key=lambda d: (slow[d], d))
    outcomes = []
    for d in chosen:
        stage = Stage(start=0, stop=len(instance.layers), devices=(d,), shares=(batch,))
        outcomes.append(result(instance, Plan(micro_batch=batch, stages=(stage,)), begin, device=names[d]))
        if outcomes[-1].plan is not None:
            return report(budget, outcomes[-1])
    return outcomes[0]


@every_micro_batch
def run_data_parallel(instance: Instance, budget: Budget) -> SolveResult:
    """One stage on all devices, shares of Algorithm 1."""
    begin = time.process_time()
    seen = chain(instance, memory_order(instance))
    plan = plan_of(seen, [(0, seen.layers, 0, len(seen.order))])
    return report(budget, result(instance, plan, begin))


@every_micro_batch
def run_eddl(instance: Instance, budget: Budget) -> SolveResult:
    """One stage on all devices, shares proportional to speed."""
    begin = time.process_time()
    (batch,) = instance.micro_batch_sizes
    speed = [1.0 / max(1, ticks) for ticks in slowness(instance)]
    exact = [batch * v / sum(speed) for v in speed]
    shares = [int(x) for x in exact]
    by_remainder = sorted(range(len(exact)), key=lambda d: (shares[d] - exact[d], d))
    for d in by_remainder[: batch - sum(shares)]:
        shares[d] += 1
    devices = tuple(range(len(shares)))
    stage = Stage(start=0, stop=len(instance.layers), devices=devices, shares=tuple(shares))
    return report(budget, result(instance, Plan(micro_batch=batch, stages=(stage,)), begin))
