"""Instances of sub-operation mapping from foreign files: every layer with its three phases on every board.

Settings
--------
batch
    Samples of an iteration; without it the largest batch that was measured.
cuts
    ``all`` (default): every layer of the graph; ``articulation``: what lies between two single tensors is one layer.
backward
    Backward over forward time where it was not measured.
update_share
    Part of the backward time that is the weight update, in layers with weights (0.5); in others all of it is BP.

Batch normalisation is ``fused``: it does not divide along the batch. A board's fact ``pes`` (processing elements, which
one initial partition reads) is, where nobody tells, proportional to its speed.
"""

from __future__ import annotations

from mapgap.core.workload import EXTERNAL, MOST_SAMPLES, Curve, Settings, WorkBoard, Workload, at
from mapgap.instances.imported import ask_for_memory, finest, imported_tags, table, ticks, with_backward
from mapgap.problems.suboperation_mapping import Accelerator, Edge, Instance, Layer

CUTS = ("all", "articulation")
FUSED = ("batchnorm", "batchnormalization", "batchnorm2d", "batchnorm1d")


def build(workload: Workload, settings: Settings) -> Instance:
    """The instance of a workload.

    Raises
    ------
    InputError
    """
    largest = max(workload.batches, default=8)
    batch = settings.whole("batch", "samples of an iteration", largest, least=1, most=MOST_SAMPLES)
    cuts = settings.text("cuts", f"one of {', '.join(CUTS)}", CUTS[0], CUTS)
    share = settings.number("update_share", "part of the backward time that updates weights, from 0 to 1", 0.5)
    if share > 1:
        settings.wrong.append(f"--set update_share={share:g}: expected a number from 0 to 1")
    ask_for_memory(workload, settings)
    workload, notes = with_backward(workload, settings)
    settings.check(complete=True)
    tags = imported_tags(assumed=bool(notes))
    if cuts == "articulation":
        workload = workload.chain()
    notes.append(f"Batch {batch}; {share:g} of the backward time of layers with weights is the weight update.")

    def make(tick_ns: int, unit: int) -> Instance:
        return Instance(
            name=workload.name,
            source=" ".join([workload.source, *notes]),
            tags=tags,
            batch=batch,
            tick_ns=tick_ns,
            memory_unit_bytes=unit,
            flops=sum(6 * (layer.macs or 0) for layer in workload.layers) * batch,
            accelerators=tuple(
                Accelerator(name=board.name, memory=(board.memory_bytes or 0) // unit, pes=_elements(board, batch))
                for board in workload.boards
            ),
            bandwidth=workload.bandwidth,
            latency_ns=workload.latency_ns,
            layers=tuple(_layer(workload, i, batch, share, tick_ns) for i in range(len(workload.layers))),
        )

    return finest(make)


def _elements(board: WorkBoard, batch: int) -> int:
    told = board.facts.get("pes")
    if isinstance(told, int) and told > 0:
        return told
    spent = sum(at(curve, batch) for curve in board.forward)
    return max(1, round(1e12 / max(spent, 1.0)))


def _layer(workload: Workload, index: int, batch: int, share: float, tick_ns: int) -> Layer:
    layer = workload.layers[index]
    inner = tuple(i for i in layer.inputs if i != EXTERNAL)
    fused = layer.operation.partition("(")[0].lower() in FUSED
    updated = 0.0 if not layer.weight_bytes else share if inner else 1.0

    def rows(curves: list[Curve], factor: float) -> tuple[tuple[int, ...], ...]:
        scaled = [tuple((samples, factor * time) for samples, time in curve) for curve in curves]
        if fused:
            return tuple((ticks(at(curve, batch), tick_ns),) for curve in scaled)
        return tuple(table(curve, batch, tick_ns) for curve in scaled)

    forward = [board.forward[index] for board in workload.boards]
    backward = [board.backward[index] for board in workload.boards]
    return Layer(
        name=layer.name.replace("/", ":"),
        kind="fused" if fused else "split",
        inputs=tuple(Edge(source=i, bytes=workload.layers[i].output_bytes) for i in inner),
        network_input_bytes=workload.input_bytes if EXTERNAL in layer.inputs else 0,
        output_bytes=layer.output_bytes,
        weight_bytes=layer.weight_bytes,
        fp=rows(forward, 1.0),
        bp=rows(backward, 1.0 if fused else 1.0 - updated) if inner else (),
        wu=() if fused else rows(backward, updated),
    )
