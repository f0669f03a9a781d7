"""Does an imported instance hold the whole workload: weights, multiply-accumulates, and the time of every board?

Layers are merged between cuts, times tabulated and rounded to ticks; none of it may lose a part of the model.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator

from mapgap.core import InputError
from mapgap.core.workload import Settings, WorkBoard, Workload, at
from mapgap.problems.hybrid_pipeline import Instance

WITHIN = 0.01
Build = Callable[[Workload, Settings], Instance]


def conserved(build: Build) -> Build:
    """An importer whose instances are checked against their workloads.

    Raises
    ------
    InputError
        A sum over the layers differs by more than 1 %, of times by more than rounding adds.
    """

    @functools.wraps(build)
    def checked(workload: Workload, settings: Settings) -> Instance:
        instance = build(workload, settings)
        wrong = list(_wrong(instance, workload))
        if wrong:
            raise InputError(wrong)
        return instance

    return checked


def _wrong(instance: Instance, workload: Workload) -> Iterator[str]:
    layers, tick = instance.layers, instance.tick_ns
    sums: list[tuple[str, float, float, float]] = [
        ("weights", sum(e.weight_bytes for e in layers), sum(e.weight_bytes for e in workload.layers), 0.0),
        ("operations", sum(e.flops for e in layers), sum(2 * (e.macs or 0) for e in workload.layers), 0.0),
    ]
    for device, board in zip(instance.devices, workload.boards, strict=True):
        tables = instance.types[device.type].forward
        held, whole = float(tick * sum(e[-1] for e in tables)), _time(board, len(tables[0]))
        sums.append((f"time on {board.name}", held, whole, float(tick * len(layers))))
    for what, held, whole, rounding in sums:
        if abs(held - whole) > WITHIN * whole + rounding:
            text = f"expected all {what} of the model in the instance, found {held:,.0f} of {whole:,.0f}"
            yield f"{workload.name}: {text}"


def _time(board: WorkBoard, samples: int) -> float:
    """Nanoseconds of all layers; more samples never take less."""
    return math.fsum(
        max(at(curve, k) for k in {1, samples, *(point for point, _ in curve if point < samples)})
        for curve in board.forward
    )
