"""Instance and plan of multi-model splitting: plain integers, validated as a whole."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from heapq import nlargest
from typing import Any, Literal

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer, model_validator

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
    latency_findings,
    resolve,
)

OBJECTIVES = ("throughput", "latency")
_SIMPLER = "mapgap.problems.multi_model_splitting.lowered.radios:restricted"
UNITS = ("sensor", "mcu", "accelerator", "radio")
RESOURCES = ("weights", "bias", "layers")


class Device(Frozen):
    """A wearable with an accelerator.

    Attributes
    ----------
    name : str
    weights, bias : int
        Bytes of weight and bias memory of the accelerator (rounded down).
    layers : int
        Most layers on the accelerator; 0 for a device that only senses or shows results.
    sensors, interfaces : tuple of str
        Types that a source (target) requirement can ask for.
    """

    name: str
    weights: int = Field(ge=0, le=LARGEST)
    bias: int = Field(ge=0, le=LARGEST)
    layers: int = Field(ge=0, le=LARGEST)
    sensors: tuple[str, ...] = ()
    interfaces: tuple[str, ...] = ()


class Requirement(Frozen):
    """What a source or target asks for (Sec. 4.2): a ``device`` by name, a ``type``, or, if neither is set, nothing."""

    device: str | None = None
    type: str | None = None

    @model_validator(mode="after")
    def _check(self) -> Requirement:
        if self.device is not None and self.type is not None:
            raise InputError("expected a designated device or a type, found both")
        return self


class Layer(Frozen):
    """One layer of a model.

    Attributes
    ----------
    name : str
    weights, bias : int
        Bytes, rounded up.
    output_bytes : int
        ``Out_size`` of the paper, read by the pipeline order of Synergy only.
    inference : tuple of int, length N
        Ticks per device.
    """

    name: str
    weights: int = Field(ge=0, le=LARGEST)
    bias: int = Field(ge=0, le=LARGEST)
    output_bytes: int = Field(ge=0, le=LARGEST)
    inference: tuple[int, ...]


class Boundary(Frozen):
    """The tensor between two layers: what it costs if the model is cut there.

    Attributes
    ----------
    bytes : int
        Bytes that move.
    load : tuple of int, length N
        Ticks to load it into the accelerator of a device; empty for the last boundary, which no layer reads.
    unload : tuple of int, length N
        Ticks to unload it; empty for the first boundary, which no layer writes.
    transmit, receive : tuple of int, length N
        Ticks on the radio of the sending and of the receiving device.
    """

    bytes: int = Field(ge=0, le=LARGEST)
    load: tuple[int, ...] = ()
    unload: tuple[int, ...] = ()
    transmit: tuple[int, ...]
    receive: tuple[int, ...]


class Pipeline(Frozen):
    """``(source requirement, model, target requirement)``.

    Attributes
    ----------
    name : str
    source, target : Requirement
    signal : str
        What is sensed; pipelines with equal non-empty signals may share the sensing (rule 9).
    model : str
        Pipelines with equal models may share segments (rule 9).
    sensing : tuple of int, length N
        Ticks of the sensing task per device.
    layers : tuple of Layer, length L
    boundaries : tuple of Boundary, length L + 1
    """

    name: str
    source: Requirement = Requirement()
    target: Requirement = Requirement()
    signal: str = ""
    model: str
    sensing: tuple[int, ...]
    layers: tuple[Layer, ...] = Field(min_length=1)
    boundaries: tuple[Boundary, ...]


class Deployed(Frozen):
    """Layers ``first`` to ``last - 1`` of a pipeline that lie in the accelerator of a device before planning.

    Both are names, because pipelines and devices come and go; the device may have left.
    """

    pipeline: str
    device: str
    first: int = Field(ge=0, le=LARGEST)
    last: int


class Instance(InstanceBase):
    """Pipelines that run together on a set of devices.

    Attributes
    ----------
    objective : {"throughput", "latency"}
    tick_ns : int
        Nanoseconds per tick.
    sharing : bool
        Operation sharing between pipelines (rule 9).
    medium : {"links", "ports", "shared"}
        What transmissions share (rule 13): their radios, or one medium. Left out of JSON, and so of the content hash,
        where it is the default.
    latency_ns : tuple of tuple of int, shape (N, N), optional
        Nanoseconds that a message takes beside its bytes (rule 14), from row to column; the diagonal is ignored. Empty:
        none, and left out of JSON.
    devices : tuple of Device, length N
    pipelines : tuple of Pipeline
    deployed : tuple of Deployed
        What an earlier plan left behind; empty at the first planning. It does not change the objective (rule 11).
    """

    problem: Literal["multi_model_splitting"] = "multi_model_splitting"
    objective: Literal["throughput", "latency"] = "throughput"
    tick_ns: int = Field(ge=1, le=LARGEST)
    sharing: bool = False
    medium: Literal["links", "ports", "shared"] = "links"
    latency_ns: tuple[tuple[int, ...], ...] = ()
    devices: tuple[Device, ...] = Field(min_length=1)
    pipelines: tuple[Pipeline, ...] = Field(min_length=1)
    deployed: tuple[Deployed, ...] = ()

    @model_serializer(mode="wrap")
    def _without_links(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        data: dict[str, Any] = handler(self)
        for name in ("medium", "latency_ns"):
            if getattr(self, name) == type(self).model_fields[name].default:
                data.pop(name, None)
        return data

    @property
    def in_turn(self) -> bool:
        """All transmissions take turns on one medium, and the cycle counts them (rule 13)."""
        return self.medium == "shared" and self.objective == "throughput"

    def restricted(self, known: Collection[str] = ()) -> tuple[InstanceBase, Callable[[Any], Any]] | None:
        """Transmissions that share their radios only, and take what they take at least, whoever receives."""
        gone = [name for name in ("medium", "latency_ns") if name not in known]
        gone = [name for name in gone if (self.in_turn if name == "medium" else self.latency_ns)]
        found: tuple[InstanceBase, Callable[[Any], Any]] | None = resolve(_SIMPLER)(self, gone) if gone else None
        return found

    def late_ticks(self, sender: int, receiver: int) -> int:
        """Ticks that a message takes beside its bytes, rounded up (rule 14)."""
        if not self.latency_ns or sender == receiver:
            return 0
        return -(-self.latency_ns[sender][receiver] // self.tick_ns)

    @property
    def seconds_per_tick(self) -> float:
        return self.tick_ns * 1e-9

    def sources(self, pipeline: int) -> list[int]:
        """Devices that satisfy the source requirement, ascending (rule 8)."""
        need = self.pipelines[pipeline].source
        return [d for d, device in enumerate(self.devices) if _satisfies(need, device.name, device.sensors)]

    def targets(self, pipeline: int) -> list[int]:
        """Devices that satisfy the target requirement, ascending (rule 8)."""
        need = self.pipelines[pipeline].target
        return [d for d, device in enumerate(self.devices) if _satisfies(need, device.name, device.interfaces)]

    @model_validator(mode="after")
    def _check(self) -> Instance:
        findings = [*self._names(), *self._shapes()] or [*self._unequal(), *self._magnitudes()]
        if findings:
            raise InputError(findings)
        return self

    def _names(self) -> Iterator[Finding]:
        if len({device.name for device in self.devices}) != len(self.devices):
            yield Finding("expected distinct names", ("devices",))
        if len({pipeline.name for pipeline in self.pipelines}) != len(self.pipelines):
            yield Finding("expected distinct names", ("pipelines",))

    def _shapes(self) -> Iterator[Finding]:
        n = len(self.devices)
        yield from latency_findings(self.latency_ns, n)
        for index, pipeline in enumerate(self.pipelines):
            last, name = len(pipeline.layers), pipeline.name
            if len(pipeline.boundaries) != last + 1:
                text = f"expected {last + 1} boundaries, found {len(pipeline.boundaries)}"
                yield Finding(text, ("pipelines", index), name)
            for location, table, entries in _tables(pipeline, n):
                where = ("pipelines", index, *location)
                if len(table) != entries:
                    yield Finding(f"expected {entries} ticks, one per device, found {len(table)}", where, name)
                elif min(table, default=0) < 0:
                    yield Finding(f"expected ticks of at least 0, found {list(table)}", where, name)
        lengths = {pipeline.name: len(pipeline.layers) for pipeline in self.pipelines}
        for index, old in enumerate(self.deployed):
            if not 0 <= old.first < old.last <= lengths.get(old.pipeline, 0):
                text = f"expected layers of a pipeline, found {old.first}:{old.last} of {old.pipeline}"
                yield Finding(text, ("deployed", index))

    def _unequal(self) -> Iterator[Finding]:
        """Only equal tasks can be merged."""
        signals: dict[str, Pipeline] = {}
        models: dict[str, Pipeline] = {}
        for index, pipeline in enumerate(self.pipelines if self.sharing else ()):
            where = ("pipelines", index)
            first = signals.setdefault(pipeline.signal, pipeline) if pipeline.signal else pipeline
            if _sensed(pipeline) != _sensed(first):
                text = f"signal {pipeline.signal}: expected sensing and input as in {first.name}"
                yield Finding(text, where, pipeline.name)
            first = models.setdefault(pipeline.model, pipeline)
            if (pipeline.layers, pipeline.boundaries) != (first.layers, first.boundaries):
                text = f"model {pipeline.model}: expected layers and boundaries as in {first.name}"
                yield Finding(text, where, pipeline.name)

    def _magnitudes(self) -> Iterator[Finding]:
        """The tasks of any plan and all memory demands must leave solver rows far from 2^31."""
        total = sum(self._longest(pipeline) for pipeline in self.pipelines)
        if total >= ACTIVITY_LIMIT:
            expected = "expected a tick so coarse that the tasks of any plan sum to < 2^30"
            yield Finding(f"{self.tick_ns}: {expected}, found {total}", ("tick_ns",))
        for p, pipeline in enumerate(self.pipelines):
            moved = sum(cut.bytes for cut in pipeline.boundaries) + sum(y.output_bytes for y in pipeline.layers)
            if moved >= SUM_LIMIT:
                text = f"expected bytes of all boundaries that sum to < 2^62, found {moved}"
                yield Finding(text, ("pipelines", p, "boundaries"), pipeline.name)
        for resource in ("weights", "bias"):
            memory = sum(getattr(layer, resource) for pipeline in self.pipelines for layer in pipeline.layers)
            if memory >= ACTIVITY_LIMIT:
                yield Finding(f"expected all layers to sum to < 2^30, found {memory}", ("pipelines",), resource)

    def _longest(self, pipeline: Pipeline) -> int:
        """No plan has more work for this pipeline: every task on its slowest device, the dearest cuts."""
        segments = min(len(pipeline.layers), len(self.devices))
        cuts, n = pipeline.boundaries, range(len(self.devices))
        late = max(self.late_ticks(d, e) for d in n for e in n)
        return (
            max(pipeline.sensing)
            + sum(max(layer.inference) for layer in pipeline.layers)
            + _sum_largest(segments, (max(cut.load, default=0) for cut in cuts))
            + _sum_largest(segments, (max(cut.unload, default=0) for cut in cuts))
            + _sum_largest(
                segments + 1, (max(cut.transmit) + late * (cut.bytes > 0) + max(cut.receive) for cut in cuts)
            )
        )


def _tables(pipeline: Pipeline, n: int) -> Iterator[tuple[Location, tuple[int, ...], int]]:
    """Every list of ticks: where it is in the pipeline, and how many there must be."""
    last = len(pipeline.layers)
    yield ("sensing",), pipeline.sensing, n
    for i, layer in enumerate(pipeline.layers):
        yield ("layers", i, "inference"), layer.inference, n
    for b, cut in enumerate(pipeline.boundaries):
        yield ("boundaries", b, "load"), cut.load, n if b < last else 0
        yield ("boundaries", b, "unload"), cut.unload, n if b > 0 else 0
        yield ("boundaries", b, "transmit"), cut.transmit, n
        yield ("boundaries", b, "receive"), cut.receive, n


def _sensed(pipeline: Pipeline) -> tuple[object, ...]:
    """What pipelines of one signal have in common."""
    data = pipeline.boundaries[0]
    return pipeline.sensing, data.bytes, data.transmit, data.receive


def _satisfies(need: Requirement, name: str, types: tuple[str, ...]) -> bool:
    if need.device is not None:
        return name == need.device
    return need.type is None or need.type in types


def _sum_largest(count: int, values: Iterable[int]) -> int:
    return sum(nlargest(count, values))


class Segment(Frozen):
    """Layers ``first`` to ``last - 1`` (the paper's superscript ``first:last``) on the device with that number."""

    device: int
    first: int
    last: int


class PipelinePlan(Frozen):
    """Execution plan of one pipeline: device numbers of source and target, segments in the order of the layers."""

    source: int
    target: int
    segments: tuple[Segment, ...]


class Plan(PlanBase):
    """Joint execution plan: one entry per pipeline, in the order of the instance."""

    pipelines: tuple[PipelinePlan, ...]
