"""Expansion of the compact form: a network, a cost model and limits become options in integers.

Options of a layer, with folds 1, 2, 4, … up to ``max_fold``:

=====================  ==========================================================================================
``gpu``                whole on the GPU
``fpga f2``            whole on the FPGA with fold 2
``in 8/16 f2``         split by input channels (Fig. 2b): 8 of 16 on the FPGA, partial sums of the whole output
``out 32/64 f2``       split by output channels: 32 of 64 made on the FPGA, which reads the whole input
``ch 12/24 f2``        split of a depthwise layer: 12 of 24 channels
=====================  ==========================================================================================

Splits are joined on the GPU. The FPGA's share of the channels is 3/4, 1/2, 1/4, … down to 1/32. Options that alone
exceed the fabric are left out. Dense convolutions split; with ``splits: depthwise`` depthwise layers do, too, and with
``splits: all`` pointwise ones as well.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from mapgap.instances.facts import NETWORK_INPUT
from mapgap.instances.fpga_gpu_partition.cost_model import (
    M20K_BITS,
    WORD_BITS,
    CostModel,
    m20k_blocks,
    multipliers,
    weights,
)
from mapgap.instances.fpga_gpu_partition.lowering import INPUT_LAYER, Graph, Shape, Tensor
from mapgap.problems.fpga_gpu_partition import Fabric, Instance, Layer, Link, Module, Objective, Option, Read

TICK_NS = 1000
ENERGY_UNIT_NJ = 1000
"""Microseconds and microjoules: the fitted model is far coarser, and finer units would only tell apart plans that it
cannot."""
NAMES = {"input": "in", "output": "out", "channel": "ch"}
Axis = Literal["input", "output", "channel"]
Splits = Literal["conv", "depthwise", "all"]
SHARES = ((3, 4), (1, 2), (1, 4), (1, 8), (1, 16), (1, 32))


@dataclass(frozen=True)
class Pricing:
    """What turns a shape into options."""

    model: CostModel
    fabric: Fabric
    folds: tuple[int, ...]
    splits: Splits = "conv"

    def gpu(self, shape: Shape, share: float) -> tuple[int, int]:
        """Ticks and energy of a share of a layer on the GPU, rounded up."""
        if shape.kind == "join":
            return 0, 0
        macs = shape.row.macs * share
        return _up(self.model.gpu_us(shape.kind, macs)), _up(self.model.gpu_uj(shape.kind, macs))

    def fpga(self, shape: Shape, share: float, fold: int) -> tuple[int, int]:
        """Ticks and energy of a share of a layer on the FPGA, rounded up."""
        time = self.model.fpga_us(shape, fold)
        return _up(time), _up(self.model.fpga_uj(shape, fold, shape.row.macs * share))

    def fits(self, option: Option) -> bool:
        return self.holds(option.multipliers, option.m20k)

    def holds(self, multipliers: int, m20k: int) -> bool:
        """Does the fabric alone hold so much?"""
        return multipliers <= self.fabric.multipliers and m20k <= self.fabric.m20k


def _up(value: float) -> int:
    """Microunits rounded up; a hair of floating-point noise above an integer does not count."""
    return math.ceil(value - 1e-6)


def options(shape: Shape, pricing: Pricing) -> tuple[Option, ...]:
    """All options of a layer that alone fit the fabric; the GPU first."""
    ticks, energy = pricing.gpu(shape, 1.0)
    found = [Option(name="gpu", kind="gpu", home="gpu", gpu_ticks=ticks, gpu_energy=energy)]
    if shape.kind == "join":
        # What a join gathers on the fabric waits there for the last operand.
        bits = WORD_BITS * sum(tensor.elements for tensor in shape.reads)
        joined = Option(name="fpga", kind="fpga", home="fpga", m20k=-(-bits // M20K_BITS))
        return (*found, joined) if pricing.fits(joined) else tuple(found)
    for fold in pricing.folds:
        ticks, energy = pricing.fpga(shape, 1.0, fold)
        found.append(
            Option(
                name=f"fpga f{fold}",
                kind="fpga",
                home="fpga",
                fpga_ticks=ticks,
                fpga_energy=energy,
                fold=fold,
                multipliers=multipliers(weights(shape), fold),
                m20k=m20k_blocks(shape, shape.row.cin),
            )
        )
    for fold in pricing.folds:
        found += _splits(shape, pricing, fold)
    return tuple(option for option in found if pricing.fits(option))


def _splits(shape: Shape, pricing: Pricing, fold: int) -> Iterator[Option]:
    dense = max(1, shape.row.groups) == 1
    if shape.kind == "depthwise":
        if pricing.splits != "conv":
            yield from _split(shape, pricing, fold, "channel", shape.row.cout)
    elif dense and (shape.kind == "conv" or pricing.splits == "all"):
        yield from _split(shape, pricing, fold, "input", shape.channels_in)
        yield from _split(shape, pricing, fold, "output", shape.row.cout)


def _split(shape: Shape, pricing: Pricing, fold: int, axis: Axis, total: int) -> Iterator[Option]:
    """Splits along one axis of ``total`` channels that alone fit the fabric."""
    sizes = [tensor.elements for tensor in shape.reads]
    made = sum(shape.parts)
    for part in sorted({total * top // bottom for top, bottom in SHARES} - {0, total}, reverse=True):
        share = part / total
        reads_less, makes_less = axis != "output", axis != "input"
        count = weights(shape, channels_in=part) if axis == "input" else weights(shape, channels_out=part)
        needs = multipliers(count, fold), m20k_blocks(shape, part if reads_less else shape.row.cin)
        if not pricing.holds(*needs):
            continue
        fpga_reads = tuple(-(-size * part // total) if reads_less else size for size in sizes)
        gpu_ticks, gpu_energy = pricing.gpu(shape, 1 - share)
        fpga_ticks, fpga_energy = pricing.fpga(shape, share, fold)
        fpga_makes = -(-made * part // total) if makes_less else made
        yield Option(
            name=f"{NAMES[axis]} {part}/{total} f{fold}",
            kind="split",
            home="gpu",
            split=axis,
            channels=part,
            fold=fold,
            gpu_ticks=gpu_ticks,
            gpu_energy=gpu_energy,
            fpga_ticks=fpga_ticks,
            fpga_energy=fpga_energy,
            multipliers=needs[0],
            m20k=needs[1],
            gpu_reads=tuple(s - f if reads_less else s for s, f in zip(sizes, fpga_reads, strict=True)),
            fpga_reads=fpga_reads,
            gpu_makes=made - fpga_makes if makes_less else made,
            fpga_makes=fpga_makes,
        )


def modules(graph: Graph, pricing: Pricing) -> tuple[Module, ...]:
    """All modules with their options."""
    found = []
    for block in graph.blocks:
        layers = []
        for shape in graph.shapes_of(block):
            held = options(shape, pricing)
            if shape.row.name == INPUT_LAYER:
                held = held[:1]  # the tensor lies on the GPU
            layers.append(
                Layer(
                    name=shape.row.name,
                    operation="input" if shape.row.name == INPUT_LAYER else shape.operation,
                    reads=tuple(_read(graph, tensor) for tensor in shape.reads),
                    outputs=tuple(shape.parts),
                    options=held,
                    macs=shape.row.macs,
                )
            )
        found.append(Module(name=block.name, kind=block.kind, layers=tuple(layers)))
    return tuple(found)


def _read(graph: Graph, tensor: Tensor) -> Read:
    """A read of one tensor; its size is stated where it is less than the whole part."""
    whole = graph.input if tensor.layer == NETWORK_INPUT else graph.shapes[tensor.layer].parts[tensor.part]
    return Read(source=tensor.layer, part=tensor.part, bytes=None if tensor.elements == whole else tensor.elements)


def instance(
    graph: Graph, pricing: Pricing, *, name: str, source: str, tags: Sequence[str], objective: Objective
) -> Instance:
    """The instance of a lowered network under a cost model."""
    model = pricing.model
    return Instance(
        name=name,
        source=source,
        tags=tuple(tags),
        objective=objective,
        tick_ns=TICK_NS,
        energy_unit_nj=ENERGY_UNIT_NJ,
        standby_mw=round(model.base_power_w * 1000),
        input_bytes=graph.input,
        fabric=pricing.fabric,
        link=Link(bytes_per_second=round(model.link_gbs * 1e9), setup_ticks=_up(model.link_us)),
        modules=modules(graph, pricing),
    )
