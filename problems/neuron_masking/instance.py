"""Instance and plan of neuron masking: plain integers, validated as a whole."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Literal

from pydantic import Field, model_validator

from mapgap.core import ACTIVITY_LIMIT, LARGEST, Finding, Frozen, InputError, InstanceBase, Location, PlanBase

Objective = Literal["neurons", "contribution", "smallest_share", "rate"]

SHARE = 10_000
"""Shares are counted in ten-thousandths: a layer that keeps n of N neurons has the share ``SHARE * n // N``."""

MS_PER_HOUR = 3_600_000
"""The objective ``rate`` counts contribution per hour."""


class Layer(Frozen):
    """One layer with neurons (a convolution's filters, a fully connected layer's units).

    Attributes
    ----------
    name : str
    neurons : int
        N_i, all neurons of the layer.
    least : int
        Fewest neurons that may be kept; ``neurons`` for a layer that must stay whole (the output layer).
    work : int
        Work units per pair (kept neuron of the layer, kept neuron of the layer before) and cycle: Eq. (1).
    weights : int
        Memory units of weight and gradient per such pair: first term of Eq. (2).
    features : int
        Memory units of feature map per kept neuron of the layer and mini-batch: second term of Eq. (2).
    """

    name: str
    neurons: int = Field(ge=1, le=LARGEST)
    least: int = Field(ge=1, le=LARGEST)
    work: int = Field(ge=0, le=LARGEST)
    weights: int = Field(ge=0, le=LARGEST)
    features: int = Field(ge=0, le=LARGEST)


class Rate(Frozen):
    """Ticks per memory unit as a fraction: ``units`` take ``ceil(ticks * units / per)`` ticks.

    Attributes
    ----------
    ticks : int
    per : int
    """

    ticks: int = Field(ge=0, le=LARGEST)
    per: int = Field(ge=1, le=LARGEST)


class Device(Frozen):
    """One device of the fleet. Its tick is the time it takes for one work unit (1 / C_cpu).

    Attributes
    ----------
    name : str
    tick_ps : int
        Picoseconds per tick, rounded to nearest; only reports and pictures use it.
    transfer : Rate
        N_b / V_mc: ticks per memory unit moved between main memory and processor.
    spill : Rate
        N_b / V_sm: ticks per memory unit above ``memory_limit`` moved from secondary memory.
    overhead : int
        O_T in ticks.
    time_limit : tuple of int, length K
        b_T in ticks, one per cycle time of the instance.
    work_limit : tuple of int, length K
        b_W in work units, one per cycle time of the instance.
    memory_limit : int
        b_M (= M_c) in memory units.
    contributions : tuple of tuple of int, shape (layers, N_i)
        U^{ij} of Eq. (7): one number for every neuron, in the order of the neurons.
    """

    name: str
    tick_ps: int = Field(ge=1, le=LARGEST)
    transfer: Rate
    spill: Rate
    overhead: int = Field(ge=0, le=LARGEST)
    time_limit: tuple[int, ...]
    work_limit: tuple[int, ...]
    memory_limit: int = Field(ge=0, le=LARGEST)
    contributions: tuple[tuple[int, ...], ...]

    def ranking(self, layer: int) -> list[int]:
        """Neurons of a layer by falling contribution, ties by index."""
        contribution = self.contributions[layer]
        return sorted(range(len(contribution)), key=lambda j: (-contribution[j], j))


class Instance(InstanceBase):
    """One training cycle of one network on one straggler or on a fleet.

    Attributes
    ----------
    objective : {"neurons", "contribution", "smallest_share", "rate"}
        What is maximised; see ``mapgap.problems.neuron_masking``.
    memory_mode : {"hard", "spill"}
        Whether M may exceed b_M at the price of Eq. (4)'s last term.
    top_percent : int
        P_s in percent: this part of the kept neurons of every layer must be those of largest contribution.
    memory_unit_bytes : int
        Bytes per memory unit.
    work_unit_macs : int
        Multiply-accumulates per work unit and cycle; for reports.
    cycle_ms : tuple of int, length K
        Cycle times among which the whole fleet chooses one, rising, in milliseconds.
    inputs : int
        n_0, channels of the network input, never masked.
    layers : tuple of Layer
        A chain: layer i reads layer i - 1, the first one the input.
    devices : tuple of Device
    """

    problem: Literal["neuron_masking"] = "neuron_masking"
    objective: Objective = "neurons"
    memory_mode: Literal["hard", "spill"] = "hard"
    top_percent: int = Field(default=100, ge=0, le=100)
    memory_unit_bytes: int = Field(ge=1, le=LARGEST)
    work_unit_macs: int = Field(ge=1, le=LARGEST)
    cycle_ms: tuple[int, ...] = Field(min_length=1)
    inputs: int = Field(ge=1, le=LARGEST)
    layers: tuple[Layer, ...] = Field(min_length=1)
    devices: tuple[Device, ...] = Field(min_length=1)

    def single(self, device: int, cycle: int) -> Instance:
        """The problem of one device under one cycle time; ``rate`` becomes ``contribution``.

        A fleet decomposes into these: given the cycle time, the devices do not touch each other.
        """
        part = self.devices[device]
        alone = part.model_copy(
            update={"time_limit": (part.time_limit[cycle],), "work_limit": (part.work_limit[cycle],)}
        )
        return self.model_copy(
            update={
                "name": f"{self.name}/{part.name}/{self.cycle_ms[cycle]}ms",
                "devices": (alone,),
                "cycle_ms": (self.cycle_ms[cycle],),
                "objective": "contribution" if self.objective == "rate" else self.objective,
            }
        )

    @model_validator(mode="after")
    def _check(self) -> Instance:
        findings = [*self._misshapen()] or [*self._too_large()]
        if findings:
            raise InputError(findings)
        return self

    def _misshapen(self) -> Iterator[Finding]:
        if any(later <= earlier for earlier, later in pairwise(self.cycle_ms)):
            yield Finding(f"expected rising cycle times, found {list(self.cycle_ms)}", ("cycle_ms",))
        if max(self.cycle_ms) > LARGEST:
            yield Finding(f"expected at most {LARGEST} ms, found {max(self.cycle_ms)}", ("cycle_ms",))
        if self.cycle_ms[0] < 1:
            yield Finding(f"expected at least 1 ms, found {self.cycle_ms[0]}", ("cycle_ms",))
        for kind, names in (("layers", [y.name for y in self.layers]), ("devices", [d.name for d in self.devices])):
            if len(set(names)) != len(names):
                yield Finding("expected distinct names", (kind,))
        for i, layer in enumerate(self.layers):
            if layer.least > layer.neurons:
                text = f"expected at most its {layer.neurons} neurons, found {layer.least}"
                yield Finding(text, ("layers", i, "least"), layer.name)
        for d, device in enumerate(self.devices):
            yield from self._misshapen_device(("devices", d), device)

    def _misshapen_device(self, place: Location, device: Device) -> Iterator[Finding]:
        cycles = len(self.cycle_ms)
        for field, limits in (("time_limit", device.time_limit), ("work_limit", device.work_limit)):
            where = (*place, field)
            if len(limits) != cycles:
                text = f"expected {cycles} numbers, one per cycle time, found {len(limits)}"
                yield Finding(text, where, device.name)
            if max(limits, default=0) > LARGEST:
                yield Finding(f"expected numbers of at most {LARGEST}, found {max(limits)}", where, device.name)
            if any(limit < 0 for limit in limits):
                yield Finding(f"expected numbers of at least 0, found {min(limits)}", where, device.name)
            if any(later < earlier for earlier, later in pairwise(limits)):
                text = f"expected a longer cycle to allow no less, found {list(limits)}"
                yield Finding(text, where, device.name)
        if len(device.contributions) != len(self.layers):
            text = f"expected one row for each of {len(self.layers)} layers, found {len(device.contributions)}"
            yield Finding(text, (*place, "contributions"), device.name)
            return
        for i, (layer, row) in enumerate(zip(self.layers, device.contributions, strict=True)):
            where, name = (*place, "contributions", i), f"{device.name}: {layer.name}"
            if len(row) != layer.neurons:
                yield Finding(f"expected {layer.neurons} numbers, one per neuron, found {len(row)}", where, name)
            if any(number < 0 for number in row):
                yield Finding(f"expected numbers of at least 0, found {min(row)}", where, name)

    def _too_large(self) -> Iterator[Finding]:
        """Totals of the unmasked model must leave solver rows far from 2^31."""
        work = memory = 0
        before = self.inputs
        for layer in self.layers:
            work += layer.work * before * layer.neurons
            memory += layer.weights * before * layer.neurons + layer.features * layer.neurons
            before = layer.neurons
        totals: list[tuple[str, int, Location, str]] = [
            ("work of the whole model (a coarser work unit makes it smaller)", work, (), ""),
            ("memory of the whole model (a coarser memory_unit_bytes makes it smaller)", memory, (), ""),
        ]
        for d, device in enumerate(self.devices):
            place: Location = ("devices", d)
            moved = 0
            for name, rate in (("transfer", device.transfer), ("spill", device.spill)):
                totals.append(("ticks * memory", rate.ticks * memory, (*place, name), device.name))
                moved += -(-rate.ticks * memory // rate.per)
            totals.append(("time of the whole model", work + moved + device.overhead, place, device.name))
            totals.append(("sum", sum(map(sum, device.contributions)), (*place, "contributions"), device.name))
        for what, total, place, name in totals:
            if total >= ACTIVITY_LIMIT:
                yield Finding(f"{what}: expected < 2^30, found {total}", place, name)


class Mask(Frozen):
    """What one device keeps.

    Attributes
    ----------
    kept : tuple of int, length layers
        n_i, neurons kept in each layer.
    chosen : tuple of (tuple of int or None), length layers, optional
        Indices of the kept neurons of a layer, rising; ``None`` stands for the ``n_i`` neurons of largest
        contribution (ties by index), in one layer or, in place of the whole tuple, in all.
    """

    kept: tuple[int, ...]
    chosen: tuple[tuple[int, ...] | None, ...] | None = None


class Plan(PlanBase):
    """Decisions only.

    Attributes
    ----------
    cycle : int
        Index into ``cycle_ms``: the cycle time of the whole fleet.
    masks : tuple of Mask, one per device
    """

    cycle: int = 0
    masks: tuple[Mask, ...]
