"""Table I under a cost model: what the paper's patterns gain over the GPU alone, module by module.

The six gains are the energy gain and the speed-up of a Fire module, an inverted bottleneck and a ShuffleNetV2 unit,
heterogeneous over GPU only. Interpretation:

1.  A gain is the ratio of the means over all modules of the type in the network ("average metric", Fig. 4): 8 Fire
    modules of SqueezeNet 1.0, 17 bottlenecks of MobileNetV2 0.5, 16 units of ShuffleNetV2 0.5.
2.  Modules are measured one at a time and own the whole fabric. Input and output tensors of the module lie on the GPU.
3.  The heterogeneous partition is Fig. 2's pattern of the module type (:func:`pattern`): in a Fire module a grouped
    convolution, ``g_l`` of the input channels of the 3×3 expansion on the FPGA; in the other modules every 1×1 on the
    FPGA and every depthwise layer on the GPU. ``g_l / C_I`` is not published: 1/2 and 3/4 are both fitted. Mapping the
    whole expansion (share 1) fits markedly worse (root mean square residual 0.066 in place of 0.03): the GPU's launch
    of the expansion is then saved, which Table I's speed-up of 1.01 excludes.
4.  ShuffleNetV2's units have two readings. ``sequential`` (the default): every unit as in rule 3. ``parallel``: Sec.
    V-B says that a unit with spatial reduction "follows the same concept as the layer from SqueezeNet, but with a
    DWConv3x3 instead of a traditional Conv3x3", so its depthwise layers are split by channels, the share of the Fire
    modules on the FPGA, and its 1×1 layers stay on the GPU; units without reduction stay as in rule 3.
5.  The fold is the smallest power of two at which the module's mapped parts fit the fabric together. Under the limit
    that Fig. 1 states, literal DHM (fold 1) holds the whole expansion of 0 of 8 Fire modules, and half of it in 2, so
    that Table I cannot have been measured with literal DHM of layers of these sizes.

Constants of the cost model may be numpy arrays of one shape: thousands of candidates are then priced at once.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import numpy.typing as npt

from mapgap.instances.fpga_gpu_partition.cost_model import CostModel, Number, fabric, multipliers, weights
from mapgap.instances.fpga_gpu_partition.lowering import Block, Graph, Shape, Tensor, graph_of
from mapgap.instances.published_numbers import load_published

NETWORKS = {"fire": "squeezenet1_0", "bottleneck": "mobilenetv2_x0_5", "unit": "shufflenetv2_x0_5"}
"""Module type to the network that it is taken from."""
PUBLISHED = {"fire": "t1_squeezenet_fire", "bottleneck": "t1_mobilenetv2_bottleneck", "unit": "t1_shufflenetv2_stage"}
TARGETS = tuple(f"{key}_{what}" for key in PUBLISHED.values() for what in ("e", "l"))
"""Identifiers of the six gains among the published numbers: energy and latency of each module type."""


def modules_of(kind: str) -> tuple[Graph, list[Block]]:
    """The network of a module type and all its modules of that type."""
    graph = graph_of(NETWORKS[kind])
    return graph, [block for block in graph.blocks if block.kind == kind]


Reading = Literal["sequential", "parallel"]
"""How ShuffleNetV2's units with spatial reduction are mapped (rule 4)."""


def reduces(shapes: Sequence[Shape]) -> bool:
    """Is it a unit with spatial reduction: does a depthwise layer make fewer pixels than it reads?"""
    return any(shape.kind == "depthwise" and shape.row.height < shape.row.height_in for shape in shapes)


def pattern(shapes: Sequence[Shape], kind: str, share: float, reading: Reading = "sequential") -> list[int]:
    """Input channels of every layer of a module that Fig. 2 puts on the FPGA; 0 for none."""
    if kind == "fire":
        return [math.floor(shape.channels_in * share) if shape.kind == "conv" else 0 for shape in shapes]
    if kind == "unit" and reading == "parallel" and reduces(shapes):
        return [math.floor(shape.channels_in * share) if shape.kind == "depthwise" else 0 for shape in shapes]
    return [shape.channels_in if shape.kind == "pointwise" else 0 for shape in shapes]


def fold_of(shapes: Sequence[Shape], channels: Sequence[int]) -> int:
    """Smallest power of two at which the mapped parts fit the multipliers of the fabric."""
    mapped = [
        weights(shape, channels_out=g) if shape.kind == "depthwise" else weights(shape, g)
        for shape, g in zip(shapes, channels, strict=True)
        if g
    ]
    fold = 1
    while sum(multipliers(count, fold) for count in mapped) > fabric().multipliers:
        fold *= 2
    return fold


@dataclass
class Queues:
    """The three queues of one module, in µs; whatever comes from outside the module lies on the GPU."""

    model: CostModel
    free: dict[str, Number] = field(default_factory=lambda: {"gpu": 0.0, "fpga": 0.0, "link": 0.0})
    side: dict[int, str] = field(default_factory=dict)
    ready: dict[int, Number] = field(default_factory=dict)
    moved: dict[tuple[int, int], Number] = field(default_factory=dict)

    def run(self, queue: str, after: Number, time: Number) -> Number:
        self.free[queue] = np.maximum(self.free[queue], after) + time
        return self.free[queue]

    def fetch(self, tensor: Tensor, where: str, share: float = 1.0) -> Number:
        """When (a share of) a tensor is on a side; a tensor moves once."""
        made = self.ready.get(tensor.layer, 0.0)
        if self.side.get(tensor.layer, "gpu") == where:
            return made
        key = (tensor.layer, tensor.part)
        if key not in self.moved:
            size = math.ceil(tensor.elements * share)
            self.moved[key] = self.run("link", made, self.model.link_transfer_us(size))
        return self.moved[key]


def module_cost(
    model: CostModel, graph: Graph, block: Block, channels: Sequence[int], fold: int
) -> tuple[Number, Number]:
    """Latency (µs) and energy (µJ) of a module alone; ``channels`` input channels of every layer on the FPGA.

    A layer with some channels on either side is Fig. 2b's split: both sides make partial sums of the whole output (of a
    depthwise layer, their own channels), which are joined on the GPU, as are concatenations and additions. The rules
    are the problem's (three queues in order), without rounding; a test compares them with the evaluator.
    """
    queues = Queues(model)
    energy: Number = 0.0
    for index, g in zip(range(block.first, block.last + 1), channels, strict=True):
        shape = graph.shapes[index]
        share = g / shape.channels_in
        ends: list[Number] = []
        after: Number = 0.0
        before: Number = 0.0
        for tensor in shape.reads:
            before = np.maximum(before, queues.fetch(tensor, "gpu")) if share < 1 else before
            after = np.maximum(after, queues.fetch(tensor, "fpga", share)) if share > 0 else after
        if share < 1:
            macs = shape.row.macs * (1 - share)
            time: Number = 0.0 if shape.kind == "join" else model.gpu_us(shape.kind, macs)
            energy = energy + (0.0 if shape.kind == "join" else model.gpu_uj(shape.kind, macs))
            ends.append(queues.run("gpu", before, time))
        if share > 0:
            energy = energy + model.fpga_uj(shape, fold, shape.row.macs * share)
            ends.append(queues.run("fpga", after, model.fpga_us(shape, fold)))
            if share < 1:
                made = sum(shape.parts)
                moved = math.ceil(made * share) if shape.kind == "depthwise" else made
                ends.append(queues.run("link", ends[-1], model.link_transfer_us(moved)))
        queues.ready[index] = np.max(np.broadcast_arrays(*ends), axis=0)
        queues.side[index] = "fpga" if share == 1 else "gpu"
    queues.fetch(Tensor(block.last, 0, sum(graph.shapes[block.last].parts)), "gpu")
    latency = np.max(np.broadcast_arrays(*queues.free.values()), axis=0)
    return latency, energy + model.base_power_w * latency


def gains(model: CostModel, share: float, reading: Reading = "sequential") -> Number:
    """The six gains of Table I, shape (6,) or (6, candidates), in the order of :data:`TARGETS`."""
    found = []
    for kind in NETWORKS:
        graph, blocks = modules_of(kind)
        sums = []
        for heterogeneous in (False, True):
            latency: Number = 0.0
            energy: Number = 0.0
            for block in blocks:
                shapes = graph.shapes_of(block)
                mapped = pattern(shapes, kind, share, reading) if heterogeneous else [0] * len(shapes)
                cost = module_cost(model, graph, block, mapped, fold_of(shapes, mapped))
                latency, energy = latency + cost[0], energy + cost[1]
            sums.append((latency, energy))
        (gpu_latency, gpu_energy), (latency, energy) = sums
        found += [gpu_energy / energy, gpu_latency / latency]
    return np.array(found)


def published_gains() -> npt.NDArray[np.float64]:
    """Table I, shape (6,)."""
    printed = load_published("dhm")
    return np.array([float(printed[key]) for key in TARGETS])


def figure_1(model: CostModel) -> Number:
    """Smallest advantage of the FPGA over the GPU on the layers of Fig. 1: min over layers of time and energy ratio.

    Input 224×224×3, 2 to 64 filters of 3×3 and 5×5, compute alone. Above 1 the FPGA wins everywhere.
    """
    pixels = 224 * 224
    found = []
    for kernel in (3, 5):
        for filters in (2, 4, 8, 16, 32, 64):
            macs = pixels * 3 * filters * kernel**2
            gpu_us = model.gpu_us("conv", macs)
            fpga_us = pixels / model.clock_mhz
            gpu_uj = model.gpu_uj("conv", macs) + model.base_power_w * gpu_us
            fpga_uj = model.fpga_power_w * fpga_us + model.fpga_pj * macs * 1e-6 + model.base_power_w * fpga_us
            found += [gpu_us / fpga_us, gpu_uj / fpga_uj]
    return np.min(np.array(found), axis=0)


def peak_power_w(model: CostModel) -> Number:
    """Power of the GPU's side at full rate, the largest over the kinds of layers."""
    rates = np.array([model.conv_gmacs, model.pointwise_gmacs, model.depthwise_gmacs])
    return model.base_power_w + model.gpu_power_w + model.gpu_pj * 1e-3 * np.max(rates, axis=0)
