"""Instance and plan of the FPGA-GPU partition: plain integers, validated as a whole."""

from __future__ import annotations

from functools import cached_property
from typing import Literal

from pydantic import Field, model_validator

from mapgap.core import (
    ACTIVITY_LIMIT,
    LARGEST,
    SUM_LIMIT,
    Finding,
    Frozen,
    InputError,
    InstanceBase,
    Location,
    PlanBase,
)

Side = Literal["gpu", "fpga"]
Objective = Literal["energy", "latency", "edp", "weighted"]
OBJECTIVES: tuple[Objective, ...] = ("energy", "latency", "edp", "weighted")
NETWORK_INPUT = -1
"""``Read.source`` of the network input."""


class Fabric(Frozen):
    """Resources of the FPGA that direct hardware mapping occupies.

    Attributes
    ----------
    multipliers : int
        Multipliers, in DSP blocks and in logic together.
    m20k : int
        Memory blocks of 20 Kb.
    """

    multipliers: int = Field(ge=0, le=LARGEST)
    m20k: int = Field(ge=0, le=LARGEST)


class Link(Frozen):
    """What moves tensors between the two sides (rule 11).

    Attributes
    ----------
    bytes_per_second : int
    setup_ticks : int
        Ticks of every transfer before the first byte.
    setup_energy : int
        Energy units of every transfer.
    energy_per_mb : int
        Energy units of 10^6 bytes.
    """

    bytes_per_second: int = Field(ge=1, le=LARGEST)
    setup_ticks: int = Field(default=0, ge=0, le=LARGEST)
    setup_energy: int = Field(default=0, ge=0, le=LARGEST)
    energy_per_mb: int = Field(default=0, ge=0, le=LARGEST)


class Option(Frozen):
    """One way to run one layer.

    Attributes
    ----------
    name : str
        Distinct within the layer; plans name options.
    kind : {"gpu", "fpga", "split"}
        Where the layer runs; a split runs on both sides at once.
    home : {"gpu", "fpga"}
        Where the output lies afterwards; of a split, where the parts are joined.
    gpu_ticks, fpga_ticks : int
        Time of either part; 0 for the side that does nothing.
    gpu_energy, fpga_energy : int
        Energy of either part without standby power.
    multipliers, m20k : int
        Fabric that the FPGA part occupies, for the whole run of the network.
    gpu_reads, fpga_reads : tuple of int
        Splits only: bytes that either part reads of each input of the layer, in the order of the inputs. Other options
        read their inputs whole.
    gpu_makes, fpga_makes : int
        Splits only: bytes of output or partial sums made by either part; those of the side that is not ``home`` cross
        the link.
    fold : int or None
        Uses of each multiplier per output (1 is strict direct hardware mapping); a label.
    split : {"input", "output", "channel"} or None
        Channels that a split divides (rule 8); a label.
    channels : int or None
        ``g_l``: channels of the FPGA part; a label.
    """

    name: str = Field(min_length=1)
    kind: Literal["gpu", "fpga", "split"]
    home: Side
    gpu_ticks: int = Field(default=0, ge=0, le=LARGEST)
    gpu_energy: int = Field(default=0, ge=0, le=LARGEST)
    fpga_ticks: int = Field(default=0, ge=0, le=LARGEST)
    fpga_energy: int = Field(default=0, ge=0, le=LARGEST)
    multipliers: int = Field(default=0, ge=0, le=LARGEST)
    m20k: int = Field(default=0, ge=0, le=LARGEST)
    gpu_reads: tuple[int, ...] = ()
    fpga_reads: tuple[int, ...] = ()
    gpu_makes: int = Field(default=0, ge=0, le=LARGEST)
    fpga_makes: int = Field(default=0, ge=0, le=LARGEST)
    fold: int | None = Field(default=None, ge=1, le=LARGEST)
    split: Literal["input", "output", "channel"] | None = None
    channels: int | None = Field(default=None, ge=1, le=LARGEST)


class Read(Frozen):
    """A tensor that a layer reads: part ``part`` of the output of layer ``source`` (global index, or -1).

    ``bytes`` is what the layer reads of it, ``None`` all.
    """

    source: int = Field(ge=NETWORK_INPUT)
    part: int = Field(default=0, ge=0, le=LARGEST)
    bytes: int | None = Field(default=None, ge=0, le=LARGEST)


class Layer(Frozen):
    """One layer of the network.

    Attributes
    ----------
    name : str
        Distinct in the network.
    operation : str
        What the layer computes (``conv3x3``, ``conv1x1``, ``depthwise``, ``add``, …); a label for rules and reports.
    reads : tuple of Read
        Tensors of earlier layers or of the network input.
    outputs : tuple of int
        Bytes of each part of the output (rule 5).
    options : tuple of Option
    macs : int
        Multiply-accumulates; a label.
    """

    name: str = Field(min_length=1)
    operation: str
    reads: tuple[Read, ...] = Field(min_length=1)
    outputs: tuple[int, ...] = Field(min_length=1)
    options: tuple[Option, ...] = Field(min_length=1)
    macs: int = Field(default=0, ge=0)

    def option(self, name: str) -> Option | None:
        """The option of that name."""
        return next((option for option in self.options if option.name == name), None)


class Module(Frozen):
    """A group of layers that runs as a whole, for instance a Fire module; ``kind`` is a label."""

    name: str = Field(min_length=1)
    kind: str
    layers: tuple[Layer, ...] = Field(min_length=1)


class Instance(InstanceBase):
    """One inference of one network on one GPU with one FPGA.

    Layers are numbered through the modules, 0 first; ``layers`` lists them.

    Attributes
    ----------
    objective : {"energy", "latency", "edp", "weighted"}
    energy_weight, latency_weight : int
        Weights of the objective "weighted", per energy unit and per tick.
    latency_limit, energy_limit : int or None
        Largest latency in ticks and largest energy in units of a feasible plan.
    tick_ns : int
        Nanoseconds per tick.
    energy_unit_nj : int
        Nanojoules per energy unit.
    standby_mw : int
        Power of the whole board that flows whatever runs, in milliwatts (rule 12).
    input_bytes : int
        Bytes of the network input.
    fabric : Fabric
    link : Link
    modules : tuple of Module
        In the order in which they run.
    """

    problem: Literal["fpga_gpu_partition"] = "fpga_gpu_partition"
    objective: Objective = "energy"
    energy_weight: int = Field(default=1, ge=0, le=LARGEST)
    latency_weight: int = Field(default=1, ge=0, le=LARGEST)
    latency_limit: int | None = Field(default=None, ge=0, le=LARGEST)
    energy_limit: int | None = Field(default=None, ge=0, le=LARGEST)
    tick_ns: int = Field(ge=1, le=LARGEST)
    energy_unit_nj: int = Field(ge=1, le=LARGEST)
    standby_mw: int = Field(default=0, ge=0, le=LARGEST)
    input_bytes: int = Field(ge=0, le=LARGEST)
    fabric: Fabric
    link: Link
    modules: tuple[Module, ...] = Field(min_length=1)

    @cached_property
    def layers(self) -> tuple[Layer, ...]:
        """All layers in the order in which they are issued."""
        return tuple(layer for module in self.modules for layer in module.layers)

    @cached_property
    def outputs(self) -> frozenset[int]:
        """Layers that no layer reads; their outputs are the network's (rule 10)."""
        read = {r.source for layer in self.layers for r in layer.reads}
        return frozenset(set(range(len(self.layers))) - read)

    @property
    def seconds_per_tick(self) -> float:
        return self.tick_ns * 1e-9

    @property
    def joules_per_unit(self) -> float:
        return self.energy_unit_nj * 1e-9

    def read_bytes(self, read: Read) -> int:
        """Bytes that a layer reads of a tensor."""
        if read.bytes is not None:
            return read.bytes
        return self.input_bytes if read.source == NETWORK_INPUT else self.layers[read.source].outputs[read.part]

    def transfer_ticks(self, size_bytes: int) -> int:
        """Ticks of one transfer (rule 11)."""
        if size_bytes == 0:
            return 0
        return self.link.setup_ticks + -(-size_bytes * 10**9 // (self.link.bytes_per_second * self.tick_ns))

    def transfer_energy(self, size_bytes: int) -> int:
        """Energy of one transfer (rule 11)."""
        if size_bytes == 0:
            return 0
        return self.link.setup_energy + -(-size_bytes * self.link.energy_per_mb // 10**6)

    def standby_energy(self, ticks: int) -> int:
        """Energy of the standby power over one makespan (rule 12); milliwatts times nanoseconds are picojoules."""
        return -(-self.standby_mw * self.tick_ns * ticks // (1000 * self.energy_unit_nj))

    def value(self, energy: int, latency: int) -> int:
        """The objective of a plan with this energy and latency (4)."""
        if self.objective == "energy":
            return energy
        if self.objective == "latency":
            return latency
        if self.objective == "edp":
            return energy * latency
        return self.energy_weight * energy + self.latency_weight * latency

    @model_validator(mode="after")
    def _check(self) -> Instance:
        found = self._graph_findings() or self._option_findings() or self._size_findings() or self._magnitude_findings()
        if found:
            raise InputError(found)
        return self

    def _graph_findings(self) -> list[Finding]:
        found = []
        names: set[str] = set()
        for index, (layer, place) in enumerate(zip(self.layers, self._places(), strict=True)):
            if layer.name in names:
                found.append(Finding("expected a distinct name", place, layer.name))
            names.add(layer.name)
            if any(size < 0 for size in layer.outputs):
                text = f"expected sizes of at least 0, found {list(layer.outputs)}"
                found.append(Finding(text, (*place, "outputs"), layer.name))
            if len({(r.source, r.part) for r in layer.reads}) != len(layer.reads):
                found.append(Finding("expected each tensor at most once", (*place, "reads"), layer.name))
            for k, r in enumerate(layer.reads):
                at = (*place, "reads", k)
                if r.source >= index:
                    text = f"expected a layer before layer {index} (no cycles), found {r.source}"
                    found.append(Finding(text, (*at, "source"), layer.name))
                    continue
                parts = 1 if r.source == NETWORK_INPUT else len(self.layers[r.source].outputs)
                if r.part >= parts:
                    text = f"expected one of {parts} parts of layer {r.source}, found {r.part}"
                    found.append(Finding(text, (*at, "part"), layer.name))
                elif r.bytes is not None and r.bytes > self.read_bytes(Read(source=r.source, part=r.part)):
                    text = f"expected at most the output of layer {r.source}, found {r.bytes}"
                    found.append(Finding(text, (*at, "bytes"), layer.name))
        if len({module.name for module in self.modules}) != len(self.modules):
            found.append(Finding("expected distinct names", ("modules",)))
        return found

    def _places(self) -> list[Location]:
        """Where every layer lies."""
        return [("modules", m, "layers", k) for m, module in enumerate(self.modules) for k in range(len(module.layers))]

    def _option_findings(self) -> list[Finding]:
        found = []
        for layer, place in zip(self.layers, self._places(), strict=True):
            if len({option.name for option in layer.options}) != len(layer.options):
                found.append(Finding("expected distinct names", (*place, "options"), layer.name))
            sizes = [self.read_bytes(r) for r in layer.reads]
            for index, option in enumerate(layer.options):
                at, name = (*place, "options", index), f"{layer.name}, {option.name}"
                found += [Finding(each.text, (*at, *each.location), name) for each in _misfits(option, sizes)]
        return found

    def _size_findings(self) -> list[Finding]:
        """Bytes times nanoseconds, and times energy per 10^6 bytes, must stay below 2^62 (rule 11)."""
        per_byte = max(10**9, self.link.energy_per_mb)
        most = (SUM_LIMIT - 1) // per_byte
        found = []

        def check(size: int, place: Location, name: str = "") -> None:
            if size > most:
                text = f"expected at most {most} bytes, as {per_byte} times as much must be below 2^62, found {size}"
                found.append(Finding(text, place, name))

        check(self.input_bytes, ("input_bytes",))
        for layer, place in zip(self.layers, self._places(), strict=True):
            for k, size in enumerate(layer.outputs):
                check(size, (*place, "outputs", k), layer.name)
            for k, option in enumerate(layer.options):
                for field in ("gpu_makes", "fpga_makes"):
                    check(getattr(option, field), (*place, "options", k, field), f"{layer.name}, {option.name}")
        rate = self.link.bytes_per_second * self.tick_ns
        if rate >= SUM_LIMIT:
            text = f"expected bytes per second times tick_ns below 2^62, found {rate}"
            found.append(Finding(text, ("link", "bytes_per_second")))
        return found

    def worst(self) -> tuple[int, int]:
        """Latency and energy that no plan exceeds: every option's largest, every tensor moved for every reader."""
        ticks = energy = 0
        for index, layer in enumerate(self.layers):
            ticks += max(option.gpu_ticks + option.fpga_ticks for option in layer.options)
            energy += max(option.gpu_energy + option.fpga_energy for option in layer.options)
            moved = [self.read_bytes(r) for r in layer.reads]
            moved += [max(max(option.gpu_makes, option.fpga_makes) for option in layer.options)]
            moved += layer.outputs if index in self.outputs else ()
            ticks += sum(self.transfer_ticks(size) for size in moved)
            energy += sum(self.transfer_energy(size) for size in moved)
        return ticks, energy + self.standby_energy(ticks) + len(self.modules)

    def _magnitude_findings(self) -> list[Finding]:
        """Sums of worst values must leave solver rows far from 2^31."""
        ticks, energy = self.worst()
        found = []
        for name, value in (("tick_ns", ticks), ("energy_unit_nj", energy)):
            if value >= ACTIVITY_LIMIT:
                text = f"expected a unit so coarse that all options sum to < 2^30, found {value}"
                found.append(Finding(text, (name,)))
        standby = self.standby_mw * self.tick_ns * max(ticks, 1)
        if standby >= SUM_LIMIT or 1000 * self.energy_unit_nj >= SUM_LIMIT:
            text = f"expected standby_mw times tick_ns times the longest latency below 2^62, found {standby}"
            found.append(Finding(text, ("standby_mw",)))
        weighted = self.energy_weight * energy + self.latency_weight * ticks
        if not found and weighted >= ACTIVITY_LIMIT:
            text = f"expected a weighted sum (with latency_weight) below 2^30, found {weighted}"
            found.append(Finding(text, ("energy_weight",)))
        for name in ("multipliers", "m20k"):
            total = sum(max(getattr(option, name) for option in layer.options) for layer in self.layers)
            if total >= ACTIVITY_LIMIT:
                text = f"expected demands of {name} that sum to < 2^30 over all layers, found {total}"
                found.append(Finding(text, ("modules",)))
        return found


def _misfits(option: Option, sizes: list[int]) -> list[Finding]:
    """What is wrong with an option of a layer that reads tensors of these sizes; places are below the option."""
    found = []
    if option.kind == "split":
        for field, reads in (("gpu_reads", option.gpu_reads), ("fpga_reads", option.fpga_reads)):
            if len(reads) != len(sizes) or any(not 0 <= b <= s for b, s in zip(reads, sizes, strict=True)):
                found.append(Finding(f"expected at most {sizes} bytes, found {list(reads)}", (field,)))
        return found
    if option.home != option.kind:
        found.append(Finding(f"expected {option.kind}, found {option.home}", ("home",)))
    if option.gpu_reads or option.fpga_reads or option.gpu_makes or option.fpga_makes:
        found.append(Finding("expected no reads and makes, as only splits have them"))
    if option.kind == "gpu" and (option.fpga_ticks or option.fpga_energy or option.multipliers or option.m20k):
        found.append(Finding("expected nothing on the FPGA"))
    if option.kind == "fpga" and (option.gpu_ticks or option.gpu_energy):
        found.append(Finding("expected nothing on the GPU"))
    return found


class Plan(PlanBase):
    """Decisions only.

    Attributes
    ----------
    options : tuple of str
        Name of the chosen option of every layer, in the order of ``Instance.layers``.
    """

    options: tuple[str, ...]
