"""Times of a board without a profile: a roofline, and how far it may be off.

    t(beta) = t0 + k max(2 macs beta / F, (beta (read + written) + weights) / W)

with the peak speed F, the memory bandwidth W and the launch time t0 of the board. A reader may say what a layer moves
otherwise (:func:`_moved`). ``k`` (time over roofline) is what the setting ``over_roofline`` says, or comes

* from the boards of the cluster that have a profile and a known speed: the geometric mean of what these took over what
  the roofline says; the error bar is the largest factor by which library boards differ on one network;
* without any, from measurements of such models that the reader of the file knows;
* without these, from the library: the geometric mean over its boards and networks; the error bar is their range.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mapgap.catalogue import registry
from mapgap.core import InputError
from mapgap.core.workload import Curve, LibraryBoard, WorkLayer, at

POINTS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)
"""Batch sizes at which an estimate is made; between them lies a line."""


@dataclass(frozen=True)
class Speed:
    """Peak speed in operations per nanosecond, memory bandwidth in bytes per nanosecond, launch in nanoseconds."""

    flops: float
    bandwidth: float
    launch: float


@dataclass(frozen=True)
class Factor:
    """k with its error bar, and where it comes from."""

    value: float
    low: float
    high: float
    source: str


def library_boards() -> dict[str, LibraryBoard]:
    """Every board that a library offers, by name."""
    return {board.name: board for name in registry.problems() for board in registry.library(name).known_boards()}


def roofline(layers: Sequence[WorkLayer], input_bytes: int, speed: Speed, samples: int) -> list[float]:
    """Nanoseconds of every layer at k = 1 without launches.

    Raises
    ------
    InputError
        A layer whose operations nobody counted.
    """
    unknown = [layer.name for layer in layers if layer.macs is None]
    if unknown:
        raise InputError(
            f"expected a profile of every board, or a model whose operations are known (ONNX); found {len(unknown)} "
            f"layers without them ({unknown[0]})"
        )
    found = []
    for layer in layers:
        read = sum(input_bytes if i < 0 else layers[i].output_bytes for i in layer.inputs)
        moved = samples * (read + layer.output_bytes) + _moved(layer, samples)
        found.append(max(2 * (layer.macs or 0) * samples / speed.flops, moved / speed.bandwidth))
    return found


def _moved(layer: WorkLayer, samples: int) -> int:
    """Bytes beside inputs and output: the weights.

    Where a reader says so, of these ``reads_once`` and, for every sample, ``reads_each``, at most all of them; and
    ``cache_bytes`` for every sample.
    """
    own = layer.attributes
    if "reads_once" not in own:
        return layer.weight_bytes
    weights = min(layer.weight_bytes, own["reads_once"] + samples * own["reads_each"])
    return int(weights + samples * own.get("cache_bytes", 0))


def estimate(layers: Sequence[WorkLayer], input_bytes: int, speed: Speed, k: float) -> tuple[Curve, ...]:
    """Times of every layer."""
    table = [roofline(layers, input_bytes, speed, samples) for samples in POINTS]
    return tuple(
        tuple((samples, speed.launch + k * row[i]) for samples, row in zip(POINTS, table, strict=True))
        for i in range(len(layers))
    )


def factor(
    layers: Sequence[WorkLayer],
    input_bytes: int,
    profiled: Mapping[str, tuple[Speed, tuple[Curve, ...]]],
    boards: Mapping[str, LibraryBoard],
    known: Mapping[str, float] | None = None,
) -> Factor:
    """k and its error bar.

    Parameters
    ----------
    profiled : mapping
        Boards of the cluster with a profile and a known speed.
    boards : mapping
        Boards of the library.
    known : mapping, optional
        Device to measured time over roofline of such models; it goes before the library.
    """
    networks = {name for board in boards.values() for name in board.over_roofline}
    tables = [[b.over_roofline[name] for b in boards.values() if name in b.over_roofline] for name in networks]
    if known:
        tables = [list(known.values())]
    ratios = [value for values in tables for value in values]
    if not ratios:
        raise InputError("expected boards of the library with a speed model, found none")
    spread = max(max(values) / min(values) for values in tables)
    measured, short = [], ""
    for name, (speed, curves) in profiled.items():
        samples = max(point for point, _ in curves[0])
        ideal = sum(roofline(layers, input_bytes, speed, samples))
        took = sum(at(curve, samples) for curve in curves) - speed.launch * len(layers)
        if took > 0 and ideal > 0:
            measured.append(took / ideal)
        else:
            short = f"; {name} took less than the launches of its own speed model"
    if measured:
        value = _mean(measured)
        low, high = min(value / spread, *measured), max(value * spread, *measured)
        return Factor(value, low, high, f"the profile of {', '.join(profiled)}")
    of = f"measurements of such models: {', '.join(known)}" if known else "calibrations of the library's boards"
    return Factor(_mean(ratios), min(ratios), max(ratios), f"{len(ratios)} {of}{short}")


def _mean(values: Sequence[float]) -> float:
    return math.exp(math.fsum(map(math.log, values)) / len(values))
