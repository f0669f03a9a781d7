"""Energy and latency of one plan under many sets of constants at once, without rounding.

The rules are the evaluator's (three queues in order, modules one after the other); sizes come from the instance, which
does not depend on the constants, and times from the cost model, whose constants may be numpy arrays of one shape. A
test compares the two.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from mapgap.instances.fpga_gpu_partition.cost_model import CostModel, Number
from mapgap.instances.fpga_gpu_partition.lowering import Graph, Shape
from mapgap.problems.fpga_gpu_partition import NETWORK_INPUT, Instance, Option, Read


@dataclass
class _Module:
    """The queues of one module, in µs from its start."""

    instance: Instance
    model: CostModel
    homes: dict[int, str]
    free: dict[str, Number] = field(default_factory=lambda: {"gpu": 0.0, "fpga": 0.0, "link": 0.0})
    ready: dict[int, Number] = field(default_factory=dict)
    copied: dict[tuple[int, int], tuple[int, Number]] = field(default_factory=dict)

    def run(self, queue: str, after: Number, time: Number) -> Number:
        self.free[queue] = np.maximum(self.free[queue], after) + time
        return self.free[queue]

    def move(self, after: Number, size: int) -> Number:
        return self.run("link", after, self.model.link_transfer_us(size))

    def fetch(self, tensor: Read, side: str, size: int) -> Number:
        """When so many bytes of a tensor are on a side."""
        if size == 0:
            return 0.0
        made = self.ready.get(tensor.source, 0.0)
        if self.homes[tensor.source] == side:
            return made
        held, since = self.copied.get((tensor.source, tensor.part), (0, 0.0))
        if size > held:
            since = self.move(made, size - held)
            self.copied[tensor.source, tensor.part] = (size, since)
        return since

    def layer(self, index: int, shape: Shape, option: Option) -> Number:
        """All jobs of a layer; its energy above the base power."""
        layer, model = self.instance.layers[index], self.model
        whole = tuple(self.instance.read_bytes(read) for read in layer.reads)
        split = option.kind == "split"
        share = on_fpga(shape, option)
        ends: list[Number] = []
        energy: Number = 0.0
        starts: dict[str, Number] = {}
        if share < 1:
            sizes = option.gpu_reads if split else whole
            starts["gpu"] = self._last("gpu", layer.reads, sizes)
        if share > 0:
            sizes = option.fpga_reads if split else whole
            starts["fpga"] = self._last("fpga", layer.reads, sizes)
        if share < 1:
            macs = shape.row.macs * (1 - share)
            free = shape.kind == "join"
            energy = energy + (0.0 if free else model.gpu_uj(shape.kind, macs))
            ends.append(self.run("gpu", starts["gpu"], 0.0 if free else model.gpu_us(shape.kind, macs)))
        if share > 0:
            free = shape.kind == "join"
            fold = option.fold or 1
            energy = energy + (0.0 if free else model.fpga_uj(shape, fold, shape.row.macs * share))
            ends.append(self.run("fpga", starts["fpga"], 0.0 if free else model.fpga_us(shape, fold)))
            if split and option.fpga_makes:
                ends.append(self.move(ends[-1], option.fpga_makes))
        self.homes[index] = option.home
        self.ready[index] = _latest(ends)
        return energy

    def _last(self, side: str, reads: Sequence[Read], sizes: Sequence[int]) -> Number:
        return _latest([self.fetch(read, side, size) for read, size in zip(reads, sizes, strict=True)])

    def end(self) -> Number:
        return _latest(list(self.free.values()))


def _latest(ends: Sequence[Number]) -> Number:
    found: Number = 0.0
    for end in ends:
        found = np.maximum(found, end)
    return found


def on_fpga(shape: Shape, option: Option) -> float:
    """Share of a layer's multiply-accumulates on the FPGA."""
    if option.kind != "split":
        return 1.0 if option.kind == "fpga" else 0.0
    assert option.channels is not None
    return option.channels / (shape.channels_in if option.split == "input" else shape.row.cout)


def plan_cost(instance: Instance, graph: Graph, model: CostModel, options: Sequence[str]) -> tuple[Number, Number]:
    """Energy (µJ) and latency (µs) of a plan; ``graph`` is what the instance was lowered from.

    Parameters
    ----------
    instance : Instance
        A whole network whose splits are joined on the GPU, as the compact form makes them.
    graph : Graph
    model : CostModel
        Its constants may be arrays of one shape.
    options : sequence of str
        The name of an option of every layer.
    """
    homes: dict[int, str] = {NETWORK_INPUT: "gpu"}
    energy: Number = 0.0
    latency: Number = 0.0
    index = 0
    for module in instance.modules:
        queues = _Module(instance, model, homes)
        first = index
        for layer in module.layers:
            option = layer.option(options[index])
            assert option is not None
            energy = energy + queues.layer(index, graph.shapes[index], option)
            index += 1
        for done in range(first, index):
            if done in instance.outputs:
                for part, size in enumerate(instance.layers[done].outputs):
                    queues.fetch(Read(source=done, part=part), "gpu", size)
        latency = latency + queues.end()
    return energy + model.base_power_w * latency, latency
