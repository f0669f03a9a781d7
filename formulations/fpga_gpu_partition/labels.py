"""Labels of a module: choices for its first layers, as rows of ticks and sums that are extended layer by layer.

What the following layers see of a label are the ticks at which the three queues are free, the ticks at which living
tensors are ready, how many of their bytes were copied to the other side and since when, and the sums so far. The queues
serve jobs in a fixed order (rule 2 of the problem), hence every later tick is a non-decreasing function of these,
made of maxima and sums, and non-increasing in the copied bytes: a label that is nowhere better than another one with
the same homes can be dropped. (Under a dispatcher that takes what is ready first this would be wrong: there, a shorter
job can lengthen the schedule.)
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from mapgap.formulations.fpga_gpu_partition.dominance import Array
from mapgap.problems.fpga_gpu_partition import Instance, Option, Side

GPU, FPGA, LINK, ENERGY, MULTIPLIERS, M20K = range(6)
"""First columns of a label; ready ticks and copies of tensors follow."""

INPUT = "input"
"""Source of the network input; other sources are layers of the module (0 upwards) or of earlier ones (-1 downwards)."""

Source = int | str
Homes = tuple[tuple[Source, Side], ...]
"""Sides on which living tensors lie, in the order of their names."""


@dataclass(frozen=True)
class Shape:
    """A module with its surroundings renamed, so that equal modules are equal values.

    Attributes
    ----------
    options : per layer
    reads : per layer ``(source, part, bytes)``
    parts : per layer bytes of its output's parts
    inputs : tuple of Source
        Layers of earlier modules that it reads.
    delivered : tuple of int
        Layers whose outputs are the network's.
    exported : tuple of int
        Layers that later modules read.
    """

    options: tuple[tuple[Option, ...], ...]
    reads: tuple[tuple[tuple[Source, int, int], ...], ...]
    parts: tuple[tuple[int, ...], ...]
    inputs: tuple[int, ...]
    delivered: tuple[int, ...]
    exported: tuple[int, ...]

    @cached_property
    def read_until(self) -> dict[Source, int]:
        """Position of the last layer that reads a source; the number of layers for what is delivered at the end."""
        last: dict[Source, int] = {}
        for position, reads in enumerate(self.reads):
            last |= {source: position for source, _, _ in reads}
        return last | dict.fromkeys(self.delivered, len(self.options))

    @cached_property
    def home_until(self) -> dict[Source, int]:
        """As ``read_until`` for the homes, which are known to the end where other modules read."""
        return self.read_until | dict.fromkeys((*self.exported, *self.inputs), len(self.options))

    @cached_property
    def column(self) -> dict[tuple[str, Source, int], int]:
        """Column of ``("ready", layer, 0)``, ``("copied", source, part)`` and ``("since", source, part)``."""
        names: list[tuple[str, Source, int]] = [("ready", i, 0) for i in range(len(self.options))]
        tensors = {(s, p) for reads in self.reads for s, p, _ in reads}
        tensors |= {(i, part) for i in self.delivered for part in range(len(self.parts[i]))}
        for s, p in sorted(tensors, key=str):
            names += [("copied", s, p), ("since", s, p)]
        return {name: M20K + 1 + i for i, name in enumerate(names)}


class Labels:
    """Labels with the same homes.

    Attributes
    ----------
    homes : dict of Source to Side
    values : (n, columns) int64
        Copied bytes are stored as non-positive numbers, so that smaller is better everywhere.
    choices : (n, layers so far) int64
    """

    def __init__(
        self, instance: Instance, shape: Shape, homes: dict[Source, Side], values: Array, choices: Array
    ) -> None:
        self.instance, self.shape, self.homes, self.values, self.choices = instance, shape, homes, values, choices

    def extended(self, position: int, number: int) -> Labels:
        """New labels in which the layer at ``position`` takes its option ``number``."""
        taken = np.full((len(self.choices), 1), number, np.int64)
        new = Labels(self.instance, self.shape, dict(self.homes), self.values.copy(), np.hstack([self.choices, taken]))
        new._issue(position, self.shape.options[position][number])
        new._forget(position)
        return new

    def deliver(self) -> None:
        """Outputs of the network go to the GPU (rule 10)."""
        for layer in self.shape.delivered:
            for part, size in enumerate(self.shape.parts[layer]):
                self._fetch(layer, part, "gpu", size)

    def _issue(self, position: int, option: Option) -> None:
        """All jobs of one layer (rule 2): fetches of both parts, GPU part, FPGA part, join."""
        reads = self.shape.reads[position]
        whole = tuple(size for _, _, size in reads)
        nothing = np.zeros(len(self.values), np.int64)
        there: dict[Side, Array] = {}
        sides: tuple[Side, ...] = ("gpu", "fpga")
        for side in sides:
            if option.kind in (side, "split"):
                part_reads = option.gpu_reads if side == "gpu" else option.fpga_reads
                sizes = part_reads if option.kind == "split" else whole
                there[side] = nothing
                for (source, part, _), size in zip(reads, sizes, strict=True):
                    there[side] = np.maximum(there[side], self._fetch(source, part, side, size))
        end = nothing
        for side, since in there.items():
            queue, ticks, makes = (
                (GPU, option.gpu_ticks, option.gpu_makes)
                if side == "gpu"
                else (FPGA, option.fpga_ticks, option.fpga_makes)
            )
            done = np.maximum(self.values[:, queue], since) + ticks
            self.values[:, queue] = done
            if side != option.home and makes:
                done = self._move(done, np.full(len(self.values), makes, np.int64))
            end = np.maximum(end, done)
        self.values[:, ENERGY] += option.gpu_energy + option.fpga_energy
        self.values[:, MULTIPLIERS] += option.multipliers
        self.values[:, M20K] += option.m20k
        self.values[:, self.shape.column["ready", position, 0]] = end
        self.homes[position] = option.home

    def _fetch(self, source: Source, part: int, side: Side, size: int) -> Array:
        """Ticks from which ``size`` bytes of the tensor are on ``side``; moves what is missing there (rule 6)."""
        values, column = self.values, self.shape.column
        made = np.zeros(len(values), np.int64)
        if size == 0:
            return made
        if isinstance(source, int) and source >= 0:
            made = values[:, column["ready", source, 0]].copy()
        if ("gpu" if source == INPUT else self.homes[source]) == side:
            return made
        copied, since = column["copied", source, part], column["since", source, part]
        missing = np.maximum(size + values[:, copied], 0)
        end = self._move(made, missing)
        values[:, copied] = np.minimum(values[:, copied], -size)
        values[:, since] = np.where(missing > 0, end, values[:, since])
        return values[:, since].copy()

    def _move(self, after: Array, size: Array) -> Array:
        """Transfer ``size`` bytes where positive; ticks at which it has ended (rule 11)."""
        link, values = self.instance.link, self.values
        ticks = link.setup_ticks - (-size * 10**9 // (link.bytes_per_second * self.instance.tick_ns))
        energy = link.setup_energy - (-size * link.energy_per_mb // 10**6)
        end = np.maximum(after, values[:, LINK]) + ticks
        values[:, LINK] = np.where(size > 0, end, values[:, LINK])
        values[:, ENERGY] += np.where(size > 0, energy, 0)
        return end

    def _forget(self, position: int) -> None:
        """Clear what no later layer of the module looks at."""
        for (_, source, _), column in self.shape.column.items():
            if self.shape.read_until.get(source, -1) <= position:
                self.values[:, column] = 0
        self.homes = {s: side for s, side in self.homes.items() if self.shape.home_until.get(s, -1) > position}
