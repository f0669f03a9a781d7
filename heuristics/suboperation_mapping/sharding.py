"""Sharding baselines with synchronous layers: Alpa (fixed ratio) and HAP (sharding and ratio together).

Interpretation
--------------
MTrain compares with "the ILP-based sharding algorithm in Alpa" and "the algorithm in HAP that jointly finds the best
sharding scheme and the sharding ratio" and describes both as DP/TP with gather and scatter after every layer (Sec.
III-B). What is modelled, and how, is stated in ``synchronous``; the choice per layer is exact (dynamic programming
instead of an ILP: same optimum).

1.  *Alpa* uses the PE-based ratio. *HAP* takes the best over all partitions of the batch, parts given to the
    accelerators by falling PEs (enumeration instead of an LP: exact in integers).
2.  ``synchronous_ticks`` and ``synchronous_throughput_gflops`` in the notes are the result of the baseline as the
    paper means it: the least synchronous latency with tensor parallelism admitted. Compare *these* with the paper.
    ``synchronous_ticks_on_all_devices`` admits no split layer on a single accelerator ("distribute each training
    operation on all devices", Sec. VI-C); only so can the baselines fall below the single accelerator.
3.  The returned plan is the best sharding without tensor parallelism (no plan of this problem can express it), share
    ``b`` of a data-parallel layer on accelerator ``b``. The evaluator runs it asynchronously and without the host:
    an optimistic reading, usually faster than the synchronous latency it was chosen by
    (``plan_synchronous_ticks``).
4.  The sharding ignores DRAM. If the plan exceeds it, the next candidates are pure data parallelism with all
    fused layers on one accelerator, then everything on one accelerator, by synchronous latency.

References
----------
Zheng et al., Alpa, OSDI 2022; Zhang et al., HAP, arXiv:2401.05965, 2024; MTrain, Sec. III-B, VI-C.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from mapgap.core import Budget, SolveResult, Stop
from mapgap.heuristics.suboperation_mapping.common import partition_ratios, result
from mapgap.heuristics.suboperation_mapping.synchronous import DATA, TENSOR, Synchronous
from mapgap.problems.suboperation_mapping import Instance
from mapgap.problems.suboperation_mapping.lowered.arrays import lower
from mapgap.problems.suboperation_mapping.lowered.mapped import Mapped, timed
from mapgap.problems.suboperation_mapping.lowered.ratios import Ratio, pe_ratio


def as_mapping(instance: Instance, ratio: Ratio, sharding: Sequence[int]) -> Mapped | None:
    """The sharding in the plan space; ``None`` if it exceeds the DRAM.

    Without a data-parallel layer there is nothing to split, and the whole batch becomes one share.
    """
    if DATA not in sharding:
        ratio = (instance.batch, *[0] * (len(ratio) - 1))
    lowered = lower(instance, ratio)
    location = [share if sharding[layer] == DATA else sharding[layer] for _, layer, share in lowered.operations]
    return timed(lowered, np.array(location, np.int64), lowered.topological)


def uniform_shardings(instance: Instance) -> list[tuple[int, ...]]:
    """Data parallelism with all fused layers on one accelerator, and everything on one accelerator."""
    accelerators = range(len(instance.accelerators))
    mixed = [tuple(a if layer.kind == "fused" else DATA for layer in instance.layers) for a in accelerators]
    return mixed + [tuple(a for _ in instance.layers) for a in accelerators]


def solve(instance: Instance, budget: Budget, ratios: Iterable[Ratio]) -> SolveResult:
    """Best sharding over the ratios; see the module docstring for what is returned."""
    attained: tuple[int, Ratio, tuple[int, ...]] | None = None  # tensor parallelism admitted
    candidates: list[tuple[int, Ratio, tuple[int, ...]]] = []  # expressible as plans
    all_devices: list[int] = []  # without layers on a single accelerator
    stop, seen = Stop.DONE, 0
    for ratio in ratios:
        if seen and budget.exhausted:
            stop = Stop.TIME
            break
        seen += 1
        model = Synchronous(instance, ratio)
        all_devices.append(model.best(tensor=True, single=False)[0])
        ticks, sharding = model.best(tensor=True)
        if attained is None or ticks < attained[0]:
            attained = (ticks, ratio, sharding)
        if TENSOR in sharding:
            ticks, sharding = model.best(tensor=False)
        candidates.append((ticks, ratio, sharding))
        candidates += [(model.latency(uniform), ratio, uniform) for uniform in uniform_shardings(instance)]
    assert attained is not None
    best_ticks, best_ratio, best_sharding = attained
    seconds = best_ticks * instance.seconds_per_tick
    notes = {
        "synchronous_ticks": best_ticks,
        "synchronous_throughput_gflops": instance.flops / seconds / 1e9 if seconds else None,
        "synchronous_ticks_on_all_devices": min(all_devices),
        "synchronous_ratio": list(best_ratio),
        "tensor_parallel_layers": sum(choice == TENSOR for choice in best_sharding),
        "data_parallel_layers": sum(choice == DATA for choice in best_sharding),
        "ratios_mapped": seen,
    }
    for ticks, ratio, sharding in sorted(set(candidates)):
        mapped = as_mapping(instance, ratio, sharding)
        if mapped is not None:
            return result(mapped, budget, stop, **notes, plan_synchronous_ticks=ticks)
    return result(None, budget, stop, **notes)


def run_alpa(instance: Instance, budget: Budget) -> SolveResult:
    """Best sharding at the PE-based ratio."""
    return solve(instance, budget, [pe_ratio(instance)])


def run_hap(instance: Instance, budget: Budget) -> SolveResult:
    """Best sharding and ratio together."""
    return solve(instance, budget, partition_ratios(instance))
