"""Instances of neuron masking from foreign files: boards are stragglers, layers with weights have neurons.

The model must be a plain chain whose layers say how many channels they read and write (ONNX does). Layers without
weights belong to the one before them.

Settings
--------
samples
    Samples of a training cycle.
cycle_s
    Seconds that a cycle may take, or a list of them of which the fleet chooses one.
least_percent
    Part of the neurons of every layer that stays at least (10); the last layer stays whole.
backward
    Backward over forward time where it was not measured.

A device's tick is the time of one work unit: the measured time of the whole model over its work. Moving weights is part
of that time, so both rates of transfer are 0. Files hold no contributions of neurons: each counts 1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from mapgap.core import ACTIVITY_LIMIT, InputError
from mapgap.core.workload import Settings, WorkBoard, WorkLayer, Workload, at
from mapgap.instances.imported import ask_for_memory, imported_tags, with_backward
from mapgap.instances.neuron_masking.compact import totals
from mapgap.problems.neuron_masking import Device, Instance, Layer, Rate

HEAD_ROOM = ACTIVITY_LIMIT // 16
"""Work and memory of the whole model stay below it."""


@dataclass
class _Part:
    """A layer with neurons and those behind it; per sample."""

    name: str
    neurons: int
    macs: int
    weight_bytes: int
    stored_bytes: int


def build(workload: Workload, settings: Settings) -> Instance:
    """The instance of a workload.

    Raises
    ------
    InputError
        The model is no chain with channels, or something is missing.
    """
    samples = settings.whole("samples", "samples of a training cycle", least=1)
    given = settings.given.get("cycle_s")
    if isinstance(given, list) and given and all(isinstance(s, (int, float)) and 0 < s < 1e9 for s in given):
        settings.used.add("cycle_s")
        cycles = sorted({max(1, round(1000 * float(s))) for s in given})
    else:
        cycles = [max(1, round(1000 * settings.number("cycle_s", "seconds that a cycle may take")))]
    percent = settings.whole("least_percent", "percent of the neurons of a layer that stay at least", 10, most=100)
    ask_for_memory(workload, settings)
    workload, notes = with_backward(workload, settings)
    settings.check(complete=True)
    inputs, parts = _parts(workload)
    unit_macs = _unit([part.macs * samples for part in parts], inputs, parts)
    unit_bytes = _unit([2 * part.weight_bytes + part.stored_bytes for part in parts], inputs, parts)
    layers = []
    before = inputs
    for k, part in enumerate(parts):
        pairs = before * part.neurons
        least = part.neurons if k == len(parts) - 1 else max(1, min(part.neurons, part.neurons * percent // 100))
        layers.append(
            Layer(
                name=part.name,
                neurons=part.neurons,
                least=least,
                work=math.ceil(part.macs * samples / pairs / unit_macs),
                weights=math.ceil(2 * part.weight_bytes / pairs / unit_bytes),
                features=math.ceil(part.stored_bytes / part.neurons / unit_bytes),
            )
        )
        before = part.neurons
    total = max(1, totals(inputs, layers)[0])
    return Instance(
        name=workload.name,
        source=" ".join([workload.source, *notes, f"{samples} samples a cycle; every neuron contributes 1."]),
        tags=imported_tags(assumed=bool(notes)),
        memory_unit_bytes=unit_bytes,
        work_unit_macs=unit_macs,
        cycle_ms=tuple(cycles),
        inputs=inputs,
        layers=tuple(layers),
        devices=tuple(
            _device(board, workload, layers, total, samples, cycles, unit_bytes) for board in workload.boards
        ),
    )


def _parts(workload: Workload) -> tuple[int, list[_Part]]:
    """Channels of the input, and the layers with neurons."""
    found: list[_Part] = []
    inputs = 0
    for i, layer in enumerate(workload.layers):
        if layer.inputs not in ((i - 1,), ()) and i > 0:
            raise InputError(
                f"{layer.name}: expected a plain chain, found a layer that reads {_reads(workload, layer)}"
            )
        if layer.weight_bytes == 0 or (found and not layer.macs and "channels_out" not in layer.attributes):
            if found:
                found[-1].weight_bytes += layer.weight_bytes
                found[-1].stored_bytes += layer.stored_bytes
            continue
        into, out = (layer.attributes.get(key) for key in ("channels_in", "channels_out"))
        if not isinstance(into, int) or not isinstance(out, int) or layer.macs is None or min(into, out) < 1:
            raise InputError(f"missing: {layer.name}: expected channels and operations, as an ONNX model has them")
        if layer.attributes.get("groups", 1) != 1:
            raise InputError(f"{layer.name}: expected a layer in which every neuron reads all before, found groups")
        inputs = inputs or into
        found.append(_Part(layer.name, out, layer.macs, layer.weight_bytes, layer.stored_bytes))
    if not found:
        raise InputError(f"{workload.name}: expected a layer with weights, found none")
    return inputs, found


def _reads(workload: Workload, layer: WorkLayer) -> str:
    return ", ".join("the input" if i < 0 else workload.layers[i].name for i in layer.inputs)


def _unit(amounts: list[int], inputs: int, parts: list[_Part]) -> int:
    """A unit in which the sum of the amounts stays below :data:`HEAD_ROOM`, with all rounding."""
    before, pairs = inputs, 0
    for part in parts:
        pairs += before * part.neurons + part.neurons
        before = part.neurons
    unit = 1
    while sum(amounts) / unit + pairs >= HEAD_ROOM:
        unit *= 2
        if unit > 2**60:
            raise InputError(f"expected fewer than {HEAD_ROOM:,} pairs of neurons, found {pairs:,}")
    return unit


def _device(
    board: WorkBoard, workload: Workload, layers: list[Layer], work: int, samples: int, cycles: list[int], unit: int
) -> Device:
    batch = max(workload.batches, default=8)
    spent = sum(at(curve, batch) for curve in (*board.forward, *board.backward)) * samples / batch
    tick_ps = max(1, round(1000 * spent / work))
    limits = tuple(min(ACTIVITY_LIMIT - 1, cycle * 10**9 // tick_ps) for cycle in cycles)
    return Device(
        name=board.name,
        tick_ps=tick_ps,
        transfer=Rate(ticks=0, per=1),
        spill=Rate(ticks=0, per=1),
        overhead=0,
        time_limit=limits,
        work_limit=(work,) * len(cycles),
        memory_limit=(board.memory_bytes or 0) // unit,
        contributions=tuple((1,) * layer.neurons for layer in layers),
    )
