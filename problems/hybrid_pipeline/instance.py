"""Instance and plan of hybrid pipeline planning: plain integers, validated as a whole."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from itertools import pairwise
from math import gcd
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
    resolve,
)

TOO_FINE: Location = ("tick_ns",)
"""Where a tick is found to be too fine for the sums of all durations."""
_ALONG_ORDER = "mapgap.problems.hybrid_pipeline.lowered.graph:restricted"
_PLAIN_LINKS = "mapgap.problems.hybrid_pipeline.lowered.links:restricted"
OBJECTIVES = ("latency", "bottleneck")
Objective = Literal["latency", "bottleneck"]
_HELD: Location = ("replanning", "held")
_OLD_STAGES: Location = ("replanning", "stages")


class Layer(Frozen):
    """One layer of the sequence that stages cut.

    Attributes
    ----------
    name : str
    output_bytes : int
        a_l: bytes per sample of *everything* that crosses a cut behind this layer, residuals included; not used in
        the last layer. The gradients that return have the same size.
    weight_bytes : int
        w_l: bytes that an AllReduce or a migration moves.
    state_memory : int
        Memory units of weights, gradients and optimizer state (MOD + OPT of Eq. 3).
    activation_memory : int
        Memory units per sample that the forward pass stores for the backward pass (ACT of Eq. 3).
    flops : int
        Floating-point operations per sample; read by the FLOPs-based re-planning of Sec. 3.4 only.
    """

    name: str
    output_bytes: int = Field(ge=0, le=LARGEST)
    weight_bytes: int = Field(ge=0, le=LARGEST)
    state_memory: int = Field(ge=0, le=LARGEST)
    activation_memory: int = Field(ge=0, le=LARGEST)
    flops: int = Field(default=0, ge=0, le=LARGEST)


Table = tuple[tuple[int, ...], ...]
QUARTILES = ("lower", "upper")


class Quartiles(Frozen):
    """Quartiles of measured times: tables like the medians, of which none is beyond them.

    Attributes
    ----------
    forward_lower, forward_upper, backward_lower, backward_upper : tuple of tuple of int
        Ticks ``[layer][k]`` for ``k + 1`` samples. Backward times that were not measured have those of their multiples.
    """

    forward_lower: Table
    forward_upper: Table
    backward_lower: Table
    backward_upper: Table


class DeviceType(Frozen):
    """A kind of device with its profile.

    Attributes
    ----------
    name : str
    memory : int
        u_d: memory units a training process may use (rounded down).
    forward, backward : tuple of tuple of int
        t_f and t_b: ticks ``[layer][k]`` for ``k + 1`` samples; as many entries as the largest micro-batch size,
        non-decreasing. No samples take no time.
    quartiles : Quartiles, optional
        How far the measurements spread of which ``forward`` and ``backward`` are the medians. No method reads them.

    Notes
    -----
    ``quartiles`` are left out of JSON, and so of the content hash, where there are none.
    """

    name: str
    memory: int = Field(ge=0, le=LARGEST)
    forward: Table
    backward: Table
    quartiles: Quartiles | None = None

    def coarser(self, factor: int) -> DeviceType:
        """All times in ticks so many times as long, rounded up."""

        def longer(table: Table) -> Table:
            return tuple(tuple(-(-ticks // factor) for ticks in row) for row in table)

        spread = self.quartiles and Quartiles(**{name: longer(table) for name, table in self.quartiles})
        times = {"forward": longer(self.forward), "backward": longer(self.backward)}
        return self.model_copy(update={**times, "quartiles": spread})

    @model_serializer(mode="wrap")
    def _without_none(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        data: dict[str, Any] = handler(self)
        if self.quartiles is None:
            data.pop("quartiles", None)
        return data

    def at(self, quartile: str) -> DeviceType:
        """The type with the times of a quartile, "lower" or "upper", as its times; itself if none was measured."""
        if self.quartiles is None:
            return self
        tables = {phase: getattr(self.quartiles, f"{phase}_{quartile}") for phase in ("forward", "backward")}
        return self.model_copy(update={**tables, "quartiles": None})


class Device(Frozen):
    """One device: its name and the index of its type."""

    name: str
    type: int = Field(ge=0, le=LARGEST)


class OldStage(Frozen):
    """A stage of the pipeline that ran before the failure.

    Attributes
    ----------
    start, stop : int
        Layers ``[start, stop)``.
    devices : tuple of int
        Surviving members; empty when the stage lost its only device.
    """

    start: int = Field(ge=0, le=LARGEST)
    stop: int = Field(ge=1, le=LARGEST)
    devices: tuple[int, ...]


class Replanning(Frozen):
    """What is left of a pipeline after a device failed (Sec. 3.4); the instance lists the survivors only.

    Attributes
    ----------
    failed : str
        Name of the failed device.
    rounds : int
        R: rounds that will be trained with the new plan; the objective is T_migration + R * latency.
    stages : tuple of OldStage
        The old pipeline without the failed device.
    held : tuple of tuple of (int, int), one entry per survivor
        Layer intervals ``[start, stop)`` whose weights lie on the device: its old stage and backups of other stages.
    old_latency : int
        HPP-round latency before the failure in ticks (for throughput over time).
    """

    failed: str
    rounds: int = Field(ge=1, le=LARGEST)
    stages: tuple[OldStage, ...] = Field(min_length=1)
    held: tuple[tuple[tuple[int, int], ...], ...]
    old_latency: int = Field(ge=0, le=LARGEST)


class Tensor(Frozen):
    """What one layer makes and others read, in the forward or in the backward pass.

    Attributes
    ----------
    layers : tuple of int
        The layer that makes it, then those that read it.
    size : int
        Bytes per sample.
    """

    layers: tuple[int, ...] = Field(min_length=1)
    size: int = Field(ge=0, le=LARGEST)


class Graph(Frozen):
    """What an instance says of its layers where they are no plain chain (rules 15 to 17).

    Attributes
    ----------
    edges : tuple of (int, int), optional
        Layers ``(u, v)``, ``u < v``: v reads what u makes. Without them the layers are a chain.
    together : tuple of tuple of int
        Co-location classes: layers that must be in one stage.
    unsupported : tuple of tuple of int
        By type of device, the layers that it cannot execute; empty: none, on any type.
    hosts : tuple of int
        Types of devices to whose memory the tensors go: with ``communication: tensors`` they pay for none.
    tensors, gradients : tuple of Tensor, optional
        What the forward and the backward pass make. Without ``tensors`` every layer makes ``output_bytes`` for those
        that read it; without ``gradients`` as much returns. With ``communication: tensors`` only.
    """

    edges: tuple[tuple[int, int], ...] | None = None
    together: tuple[tuple[int, ...], ...] = ()
    unsupported: tuple[tuple[int, ...], ...] = ()
    hosts: tuple[int, ...] = ()
    tensors: tuple[Tensor, ...] | None = None
    gradients: tuple[Tensor, ...] | None = None


class Execution(Frozen):
    """How plans are executed where that is not as Asteroid has it; the defaults are Asteroid's (rule 12).

    Attributes
    ----------
    training : bool
        False: inference. Backward times count as 0, no gradients return, no AllReduce, one micro-batch is stored.
    replication : bool
        False: every stage has one device.
    allreduce : {"round", "micro_batch", "rotating"}
        Once after the last backward pass; with every micro-batch, as part of the backward pass; or the same for
        replicas that take whole micro-batches in turn, so that one exchange serves as many micro-batches as there are
        members.
    allreduce_factor : int
        Bytes that an AllReduce of m members moves over each link, in units of (m - 1) / m of the weights: 2 (Eq. 5), 4
        in PipeDream's released code, 0 where none counts.
    medium : {"links", "shared"}
        What an AllReduce moves crosses the links of all members at once, or one medium, bytes after bytes.
    communication : {"step", "load", "free", "tensors"}
        A transfer is a step between two stages; or part of the load of both; or takes no time; or each stage pays,
        once, for every tensor that it makes for other stages or reads from them (rule 16).
    transfers : {"one_link", "parallel"}
        Between two groups over one link, or over as many as the smaller one has members, of the smallest bandwidth.
    stored : {"warm_up", "one", "all", "behind"}
        Micro-batches whose activations a stage holds in training: those of its warm-up (Eq. 3), one, all M, or one for
        itself and each stage behind, at most M.
    latency : {"round", "flow_shop"}
        What the latency of training counts: Eqs. (4)-(6), or every stage once and the longest one for each further
        micro-batch, as in inference (rule 13); an AllReduce at the end of a round may not count then.

    Notes
    -----
    ``stored`` and ``latency`` are left out of JSON where they are the default.
    """

    training: bool = True
    replication: bool = True
    allreduce: Literal["round", "micro_batch", "rotating"] = "round"
    allreduce_factor: int = Field(default=2, ge=0, le=64)
    medium: Literal["links", "shared"] = "links"
    communication: Literal["step", "load", "free", "tensors"] = "step"
    transfers: Literal["one_link", "parallel"] = "one_link"
    stored: Literal["warm_up", "one", "all", "behind"] = "warm_up"
    latency: Literal["round", "flow_shop"] = "round"

    @model_serializer(mode="wrap")
    def _without_defaults(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        data: dict[str, Any] = handler(self)
        for name in ("stored", "latency"):
            if data.get(name) == type(self).model_fields[name].default:
                del data[name]
        return data


class Instance(InstanceBase):
    """One model on one cluster.

    Attributes
    ----------
    mini_batch : int
        Samples of one HPP-round, M * B.
    micro_batch_sizes : tuple of int
        Allowed micro-batch sizes B, ascending divisors of ``mini_batch``; usually one. The plan chooses.
    tick_ns : int
        Nanoseconds per tick.
    memory_unit_bytes : int
        Bytes per memory unit.
    types : tuple of DeviceType
    devices : tuple of Device, length N
    bandwidth : tuple of tuple of int, shape (N, N)
        b_{d,d'}: bytes per second between two devices, symmetric; the diagonal is ignored.
    layers : tuple of Layer, length L
    all_devices : bool
        Every device must belong to a stage (as Algorithm 2 has it); otherwise devices may stay idle.
    replanning : Replanning, optional
        Present when the instance asks for a new plan after a failure.
    medium : {"links", "ports", "shared"}
        What transfers share (rule 18): nothing, the ports of the devices, or one medium.
    latency_ns : tuple of tuple of int, shape (N, N), optional
        Nanoseconds that a message between two devices takes beside its bytes (rule 19), symmetric; the diagonal is
        ignored. Empty: none.
    execution : Execution
        What differs from Asteroid's execution.
    objective : {"latency", "bottleneck"}
        The HPP-round latency, or the longest step of a micro-batch, which limits the throughput of a full pipeline.
    graph : Graph, optional
        Present where the layers are no plain chain; ``output_bytes`` of a layer is then its own output only.

    Notes
    -----
    ``medium``, ``latency_ns``, ``execution``, ``objective`` and ``graph`` are left out of JSON, and so of the content
    hash, where they are the defaults.
    """

    problem: Literal["hybrid_pipeline"] = "hybrid_pipeline"
    mini_batch: int = Field(ge=1, le=LARGEST)
    micro_batch_sizes: tuple[int, ...] = Field(min_length=1)
    tick_ns: int = Field(ge=1, le=LARGEST)
    memory_unit_bytes: int = Field(ge=1, le=LARGEST)
    types: tuple[DeviceType, ...] = Field(min_length=1)
    devices: tuple[Device, ...] = Field(min_length=1)
    bandwidth: tuple[tuple[int, ...], ...]
    medium: Literal["links", "ports", "shared"] = "links"
    latency_ns: tuple[tuple[int, ...], ...] = ()
    layers: tuple[Layer, ...] = Field(min_length=1)
    all_devices: bool = True
    replanning: Replanning | None = None
    execution: Execution = Execution()
    objective: Objective = "latency"
    graph: Graph | None = None

    @model_serializer(mode="wrap")
    def _without_defaults(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        data: dict[str, Any] = handler(self)
        for name in ("medium", "latency_ns", "execution", "objective", "graph"):
            if getattr(self, name) == type(self).model_fields[name].default:
                data.pop(name, None)
        return data

    def restricted(self, known: Collection[str] = ()) -> tuple[InstanceBase, Callable[[Any], Any]] | None:
        """Of a graph, the chain along one topological order (rule 17); links of their own, without latencies."""
        said: str | None = None
        if self.graph is not None and "graph" not in known:
            said = _ALONG_ORDER
        elif (self.in_turn and "medium" not in known) or (self.latency_ns and "latency_ns" not in known):
            said = _PLAIN_LINKS
        found: tuple[InstanceBase, Callable[[Any], Any]] | None = None if said is None else resolve(said)(self)
        return found

    def coarser(self, factor: int) -> Instance | None:
        """Ticks so many times as long, but not of a replanning, which knows an old latency."""
        if self.replanning is not None:
            return None
        ns = self.tick_ns * factor
        said = f"Times rounded up from ticks of {self.tick_ns} ns to ticks of {ns} ns, in which the sums are safe."
        types = tuple(kind.coarser(factor) for kind in self.types)
        source = f"{self.source} {said}".strip()
        return self.model_copy(update={"tick_ns": ns, "types": types, "source": source})

    @property
    def in_turn(self) -> bool:
        """All transfers take turns on one medium (rule 18)."""
        return self.medium == "shared"

    def late(self, group: Sequence[int], other: Sequence[int]) -> int:
        """Nanoseconds of a message between two groups, or inside one: the largest of any pair (rule 19)."""
        return max((self.latency_ns[d][e] for d in group for e in other if d != e), default=0) if self.latency_ns else 0

    @property
    def edges(self) -> tuple[tuple[int, int], ...]:
        """``(u, v)``: layer v reads what layer u makes."""
        if self.graph is not None and self.graph.edges is not None:
            return self.graph.edges
        return tuple(pairwise(range(len(self.layers))))

    def tensors(self, *, gradients: bool = False) -> tuple[Tensor, ...]:
        """What the forward or the backward pass makes, with those who read it (rule 16)."""
        if self.graph is not None:
            given = self.graph.gradients if gradients else self.graph.tensors
            if given is not None:
                return given
            if gradients and self.graph.tensors is not None:
                return self.graph.tensors
        readers: dict[int, list[int]] = {}
        for u, v in dict.fromkeys(self.edges):
            readers.setdefault(u, []).append(v)
        return tuple(Tensor(layers=(u, *found), size=self.layers[u].output_bytes) for u, found in readers.items())

    def supports(self, kind: int, layer: int) -> bool:
        """Whether devices of a type can execute a layer."""
        return self.graph is None or not self.graph.unsupported or layer not in self.graph.unsupported[kind]

    @property
    def seconds_per_tick(self) -> float:
        return self.tick_ns * 1e-9

    def device_type(self, device: int) -> DeviceType:
        """Type of the device with this index."""
        return self.types[self.devices[device].type]

    @property
    def measured(self) -> bool:
        """Some type has quartiles."""
        return any(kind.quartiles is not None for kind in self.types)

    def at(self, quartile: str) -> Instance:
        """The instance with all times at a quartile, "lower" or "upper"; it is not validated anew."""
        return self.model_copy(update={"types": tuple(kind.at(quartile) for kind in self.types)})

    def transfer_ticks(self, size_bytes: int, bandwidth: int, late: int = 0) -> int:
        """Ticks to move ``size_bytes`` at ``bandwidth`` bytes per second, ``late`` ns of latency included, rounded up;
        no bytes take no time."""
        if not size_bytes:
            return 0
        return -(-(size_bytes * 10**9 + late * bandwidth) // (bandwidth * self.tick_ns))

    def allreduce_ticks(self, members: int, weight_bytes: int, bandwidth: int, late: int = 0) -> int:
        """T_a of Eq. (5), rounded up, with what ``execution`` and the medium change and ``late`` ns of latency for each
        part of the weights that is passed on; 0 for a single device, without weights and in inference."""
        if members == 1 or not self.execution.training or not weight_bytes:
            return 0
        divisor = 1 if self.in_turn or self.execution.medium == "shared" else members
        if self.execution.allreduce == "rotating":
            divisor *= members
        moved = self.execution.allreduce_factor * (members - 1) * (weight_bytes * 10**9 + members * late * bandwidth)
        return -(-moved // (divisor * bandwidth * self.tick_ns))

    def with_micro_batch(self, size: int) -> Instance:
        """The same instance with one micro-batch size only."""
        return self if self.micro_batch_sizes == (size,) else self.model_copy(update={"micro_batch_sizes": (size,)})

    @model_validator(mode="after")
    def _check(self) -> Instance:
        findings = self._shape_findings() or self._replanning_findings() or self._magnitude_findings()
        if findings:
            raise InputError(findings)
        return self

    def _shape_findings(self) -> list[Finding]:
        found = []
        sizes = self.micro_batch_sizes
        if any(b < 1 or self.mini_batch % b for b in sizes) or any(a >= b for a, b in pairwise(sizes)):
            text = f"expected ascending divisors of {self.mini_batch}, found {list(sizes)}"
            found.append(Finding(text, ("micro_batch_sizes",)))
        for field in ("types", "devices", "layers"):
            names = [item.name for item in getattr(self, field)]
            twice = sorted(name for name, count in Counter(names).items() if count > 1)
            if twice:
                found.append(Finding(f"expected distinct names, found {', '.join(twice)} more than once", (field,)))
        found += [
            Finding(f"expected a type below {len(self.types)}, found {device.type}", ("devices", d), device.name)
            for d, device in enumerate(self.devices)
            if device.type >= len(self.types)
        ]
        found += self._bandwidth_findings() or self._latency_findings() or self._load_findings()
        found += self._graph_findings()
        for t, kind in enumerate(self.types):
            found += self._table_findings(("types", t, "forward"), kind.name, kind.forward)
            found += self._table_findings(("types", t, "backward"), kind.name, kind.backward)
            found += self._quartile_findings(t, kind) if not found else []
        return found

    def _bandwidth_findings(self) -> list[Finding]:
        n, rates = len(self.devices), self.bandwidth
        if len(rates) != n or any(len(row) != n for row in rates):
            shape = [len(row) for row in rates]
            return [Finding(f"expected {n} rows of {n} entries, one per device, found rows of {shape}", ("bandwidth",))]
        large = [
            Finding(f"expected at most {LARGEST}, found {rate}", ("bandwidth", i, j))
            for i, row in enumerate(rates)
            for j, rate in enumerate(row)
            if abs(rate) > LARGEST
        ]
        return large or [
            Finding(
                f"expected a positive number equal to bandwidth[{j}][{i}], found {rates[i][j]} and {rates[j][i]}",
                ("bandwidth", i, j),
            )
            for i in range(n)
            for j in range(i)
            if rates[i][j] <= 0 or rates[i][j] != rates[j][i]
        ]

    def _latency_findings(self) -> list[Finding]:
        """Latencies, and one medium, only where messages are told from each other: not tensor by tensor."""
        n, late, tensors = len(self.devices), self.latency_ns, self.execution.communication == "tensors"
        if tensors and self.medium == "shared":
            return [Finding("shared: expected links, as stages pay tensor by tensor; found shared", ("medium",))]
        if not late:
            return []
        if tensors or len(late) != n or any(len(row) != n for row in late):
            shape = "none, as stages pay tensor by tensor" if tensors else f"{n} rows of {n} entries, one per device"
            return [Finding(f"expected {shape}; found rows of {[len(row) for row in late]}", ("latency_ns",))]
        return [
            Finding(
                f"expected 0 to {LARGEST} and latency_ns[{j}][{i}], found {late[i][j]} and {late[j][i]}",
                ("latency_ns", i, j),
            )
            for i in range(n)
            for j in range(i)
            if not 0 <= late[i][j] <= LARGEST or late[i][j] != late[j][i]
        ]

    def _load_findings(self) -> list[Finding]:
        """A transfer that is part of two loads must take the same time whichever groups it joins; no flow shop ends
        with an AllReduce."""
        how, rules = self.execution.communication, self.execution
        ends = rules.training and rules.replication and rules.allreduce == "round" and rules.allreduce_factor > 0
        if ends and rules.latency == "flow_shop":
            text = "flow_shop: expected allreduce: micro_batch or rotating, or allreduce_factor: 0; found an AllReduce"
            return [Finding(f"{text} at the end of the round", ("execution", "latency"))]
        if how not in ("load", "tensors"):
            return []
        n = len(self.devices)
        rates = sorted({self.bandwidth[i][j] for i in range(n) for j in range(i)})
        where: Location = ("execution", "communication")
        late = {self.latency_ns[i][j] for i in range(n) for j in range(i)} if self.latency_ns else {0}
        if len(late) > 1:
            text = f"{how}: expected one latency between all devices, found {len(late)} from {min(late)} to {max(late)}"
            return [Finding(text, where)]
        if len(rates) > 1:
            text = (
                f"{how}: expected one bandwidth between all devices, found {len(rates)} from {rates[0]} to {rates[-1]}"
            )
            return [Finding(text, where)]
        if self.execution.transfers != "one_link":
            return [Finding(f"{how}: expected transfers over one_link, found parallel", where)]
        if how == "tensors" and self.execution.replication:
            return [Finding("tensors: expected replication: false, found true", where)]
        return []

    def _graph_findings(self) -> list[Finding]:
        """Layers and types that there are, edges that lead on, and tensors only where they count."""
        if self.graph is None:
            return []
        graph, count, found = self.graph, len(self.layers), []
        for k, (u, v) in enumerate(graph.edges or ()):
            if not 0 <= u < v < count:
                text = f"expected layers u < v below {count}, found {[u, v]}"
                found.append(Finding(text, ("graph", "edges", k)))
        named = [(("graph", "together", k), each) for k, each in enumerate(graph.together)]
        named += [(("graph", "unsupported", k), each) for k, each in enumerate(graph.unsupported)]
        for field in ("tensors", "gradients"):
            named += [(("graph", field, k), each.layers) for k, each in enumerate(getattr(graph, field) or ())]
        for where, each in named:
            if len(set(each)) != len(each) or any(not 0 <= layer < count for layer in each):
                found.append(Finding(f"expected distinct layers below {count}, found {list(each)}", where))
        if graph.unsupported and len(graph.unsupported) != len(self.types):
            text = f"expected {len(self.types)} entries, one per type, found {len(graph.unsupported)}"
            found.append(Finding(text, ("graph", "unsupported")))
        if any(not 0 <= kind < len(self.types) for kind in graph.hosts):
            text = f"expected types below {len(self.types)}, found {list(graph.hosts)}"
            found.append(Finding(text, ("graph", "hosts")))
        if (graph.gradients or graph.hosts) and self.execution.communication != "tensors":
            text = f"expected execution communication: tensors beside them, found {self.execution.communication}"
            found.append(Finding(f"gradients, hosts: {text}", ("graph",)))
        if self.replanning is not None:
            found.append(Finding("expected no graph beside replanning, found one", ("graph",)))
        return found

    def _quartile_findings(self, t: int, kind: DeviceType) -> list[Finding]:
        """Tables like the medians, and none of them beyond these."""
        if kind.quartiles is None:
            return []
        found = []
        for phase, medians in (("forward", kind.forward), ("backward", kind.backward)):
            for quartile, sign, beyond in zip(QUARTILES, (1, -1), ("above", "below"), strict=True):
                place: Location = ("types", t, "quartiles", f"{phase}_{quartile}")
                table = getattr(kind.quartiles, f"{phase}_{quartile}")
                wrong = self._table_findings(place, kind.name, table) or [
                    Finding(f"expected a quartile not {beyond} the median {b}, found {a}", (*place, i), kind.name)
                    for i, rows in enumerate(zip(table, medians, strict=True))
                    for a, b in zip(*rows, strict=True)
                    if sign * a > sign * b
                ]
                found += wrong
        return found

    def _table_findings(self, where: Location, kind: str, table: Table) -> list[Finding]:
        if len(table) != len(self.layers):
            return [Finding(f"expected {len(self.layers)} rows, one per layer, found {len(table)}", where, kind)]
        width, found = max(self.micro_batch_sizes), []
        for i, (layer, row) in enumerate(zip(self.layers, table, strict=True)):
            place, name = (*where, i), f"{layer.name} on {kind}"
            if len(row) != width:
                found.append(Finding(f"expected {width} entries, one per share, found {len(row)}", place, name))
            elif row[0] < 0 or sorted(row) != list(row):
                wrong = next((f"{a} before {b}" for a, b in pairwise(row) if a > b), f"{row[0]}")
                text = f"expected ticks from 0 on that never fall with more samples, found {wrong}"
                found.append(Finding(text, place, name))
        return found

    def _replanning_findings(self) -> list[Finding]:
        if self.replanning is None:
            return []
        n, last, found = len(self.devices), len(self.layers), []
        held, stages = self.replanning.held, self.replanning.stages
        if len(held) != n:
            found.append(Finding(f"expected {n} entries, one per device, found {len(held)}", _HELD))
        intervals = [interval for row in held for interval in row]
        outside = [[a, b] for a, b in intervals if not 0 <= a < b <= last]
        if outside:
            found.append(Finding(f"expected intervals [start, stop) within 0 and {last}, found {outside}", _HELD))
        lost = [layer.name for i, layer in enumerate(self.layers) if not any(a <= i < b for a, b in intervals)]
        if lost:
            found.append(Finding(f"expected every layer on some device, lost: {', '.join(lost)}", _HELD))
        adjoining = [s.start for s in stages] + [last] == [0] + [s.stop for s in stages]
        if not adjoining or any(s.start >= s.stop for s in stages):
            shown = [[s.start, s.stop] for s in stages]
            found.append(Finding(f"expected adjoining intervals from layer 0 to {last}, found {shown}", _OLD_STAGES))
        members = [d for stage in stages for d in stage.devices]
        if len(set(members)) != len(members) or any(not 0 <= d < n for d in members):
            found.append(Finding(f"expected devices 0 to {n - 1}, each at most once, found {members}", _OLD_STAGES))
        return found

    def _magnitude_findings(self) -> list[Finding]:
        """The worst latency and the worst demand must leave solver rows far from 2^31."""
        n, batch = len(self.devices), max(self.micro_batch_sizes)
        rounds = self.mini_batch // min(self.micro_batch_sizes)
        execution = sum(
            max(kind.forward[i][-1] + kind.backward[i][-1] for kind in self.types) for i in range(len(self.layers))
        )
        slowest = min((self.bandwidth[i][j] for i in range(n) for j in range(i)), default=0)
        if self.graph is None:
            cuts = sorted((layer.output_bytes for layer in self.layers[:-1]), reverse=True)[: n - 1]
        else:  # all tensors may cross any cut
            sums = [sum(each.size for each in self.tensors(gradients=back)) for back in (False, True)]
            cuts = [max(sums)] * (n - 1)
        late = self.late(range(n), range(n))
        moved = [2 * self.transfer_ticks(batch * size, slowest, late) for size in cuts]
        if self.execution.communication == "free":
            moved = []
        weights = sum(layer.weight_bytes for layer in self.layers)
        members = range(2, n + 1) if self.execution.replication else range(0)
        reduced = max((self.allreduce_ticks(m, weights, slowest, late) for m in members), default=0)
        if late:  # of every stage, rounded up, with its own messages
            reduced += n + sum(self.allreduce_ticks(m, 1, slowest, late) for m in members)
        if self.execution.allreduce != "round":  # with every micro-batch, of every stage, rounded up
            execution += reduced + n
        if self.execution.communication == "load":
            execution += 2 * sum(moved)
        if self.execution.communication == "tensors" and moved:
            execution += moved[0]
            moved = []
        latency = rounds * max([1, execution, *moved]) + execution + sum(moved) + reduced
        if self.in_turn:  # behind k cuts a group has n - k members at most
            every = execution if self.execution.allreduce != "round" else 0
            for k in range(len(moved) + 1):
                last = self.allreduce_ticks(n - k, weights, slowest, late) + 2 * reduced * bool(late) + n
                latency = max(latency, rounds * (sum(moved[:k]) + every) + execution + last)
        if self.replanning is not None:
            latency = self.replanning.rounds * latency + (self.transfer_ticks(weights, slowest) if n > 1 else 0)
        memory = sum(layer.state_memory for layer in self.layers)
        memory += min(2 * n - 1, rounds) * batch * sum(layer.activation_memory for layer in self.layers)
        found = []
        # Tensors that stages pay for one by one are no rows of any model.
        power = 40 if self.execution.communication == "tensors" else 30
        if latency >= 2**power:
            text = f"expected a tick so coarse that the worst plan takes < 2^{power} ticks, found {latency}"
            found.append(Finding(f"{self.tick_ns}: {text}", TOO_FINE))
        if memory >= ACTIVITY_LIMIT:
            text = f"{self.memory_unit_bytes}: expected the worst demand below 2^30 units, found {memory}"
            found.append(Finding(text, ("memory_unit_bytes",)))
        return found or self._fraction_findings(weights)

    def _fraction_findings(self, weights: int) -> list[Finding]:
        """Methods multiply bytes by fractions in lowest terms, in 64 bits: Eq. (5) of 2 to N devices, and rule 11."""
        n = len(self.devices)
        rates = {self.bandwidth[i][j]: ("bandwidth", i, j) for i in range(n) for j in range(i)}
        factors = [(1, 1), *((2 * (members - 1), members) for members in range(2, n + 1))]
        for rate, place in sorted(rates.items()):
            for times, parts in factors:
                top, bottom = times * 10**9, parts * rate * self.tick_ns
                shared = gcd(top, bottom)
                if bottom // shared >= SUM_LIMIT:
                    text = f"expected {parts} times bytes per second times tick_ns below 2^62, found {bottom}"
                    return [Finding(text, place)]
                if weights * (top // shared) >= SUM_LIMIT:
                    text = f"expected weight_bytes that sum to < {SUM_LIMIT // (top // shared)} at this bandwidth"
                    return [Finding(f"{text} and tick, found {weights}", ("layers",), f"{rate} bytes per second")]
        return []


class Stage(Frozen):
    """A stage: layers ``[start, stop)`` on ``devices`` (indices), of which each takes its share of a micro-batch.

    On a graph a stage may be a set, ``layers``, in place of ``start`` and ``stop``; either is left out of JSON.
    """

    start: int = 0
    stop: int = 0
    devices: tuple[int, ...]
    shares: tuple[int, ...]
    layers: tuple[int, ...] | None = None

    @model_validator(mode="after")
    def _check(self) -> Stage:
        given = self.model_fields_set & {"start", "stop"}
        if (given and self.layers is not None) or (self.layers is None and len(given) < 2):
            raise InputError(f"stage: expected start and stop, or layers; found {', '.join(sorted(given)) or 'none'}")
        return self

    @model_serializer(mode="wrap")
    def _as_given(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        data: dict[str, Any] = handler(self)
        for field in ("layers",) if self.layers is None else ("start", "stop"):
            data.pop(field, None)
        return data

    @property
    def rows(self) -> Sequence[int]:
        """The layers of the stage."""
        return range(self.start, self.stop) if self.layers is None else self.layers


class Plan(PlanBase):
    """Decisions only.

    Attributes
    ----------
    micro_batch : int
        B, one of the instance's ``micro_batch_sizes``.
    stages : tuple of Stage
        In pipeline order.
    """

    micro_batch: int
    stages: tuple[Stage, ...]
