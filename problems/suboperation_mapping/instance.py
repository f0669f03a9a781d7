"""Instance and plan of sub-operation mapping: plain integers, validated as a whole."""

from __future__ import annotations

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
)

Phase = Literal["FP", "BP", "WU"]
Medium = Literal["links", "ports", "shared"]


class Accelerator(Frozen):
    """One FPGA with its accelerator IP.

    Attributes
    ----------
    name : str
    memory : int
        DRAM capacity in memory units (rounded down).
    pes : int
        Processing elements (DSPs), read by the PE-based initial partition only (Alg. 1, step 3).
    """

    name: str
    memory: int = Field(ge=0, le=LARGEST)
    pes: int = Field(ge=1, le=LARGEST)


class Edge(Frozen):
    """A tensor that a layer reads: ``source`` is the index of the producing layer, ``bytes`` its size per sample."""

    source: int = Field(ge=0, le=LARGEST)
    bytes: int = Field(ge=0, le=LARGEST)


class Layer(Frozen):
    """One layer of the network.

    Attributes
    ----------
    name : str
    kind : {"split", "fused"}
        Non-batch-wise layers split along the batch; batch-wise layers do not.
    inputs : tuple of Edge
        Producing layers, all of smaller index; empty for a layer that reads the network input only.
    network_input_bytes : int
        Bytes per sample read from the network input (0 for inner layers).
    output_bytes : int
        Bytes per sample of the layer's own output; used for the loss of layers without consumers.
    weight_bytes : int
    fp, bp, wu : tuple of tuple of int
        Compute ticks ``[accelerator][k]``: for a split layer ``k + 1`` is the share, ``B`` entries; for a fused layer
        one entry, the whole batch. ``bp`` is empty for a layer without inputs from other layers, ``wu`` for a fused
        one.
    """

    name: str
    kind: Literal["split", "fused"]
    inputs: tuple[Edge, ...] = ()
    network_input_bytes: int = Field(default=0, ge=0, le=LARGEST)
    output_bytes: int = Field(ge=0, le=LARGEST)
    weight_bytes: int = Field(ge=0, le=LARGEST)
    fp: tuple[tuple[int, ...], ...]
    bp: tuple[tuple[int, ...], ...] = ()
    wu: tuple[tuple[int, ...], ...] = ()

    @property
    def input_bytes(self) -> int:
        """Bytes per sample of everything the layer reads."""
        return self.network_input_bytes + sum(edge.bytes for edge in self.inputs)


class Instance(InstanceBase):
    """One training iteration on one cluster.

    Attributes
    ----------
    batch : int
    tick_ns : int
        Nanoseconds per tick.
    memory_unit_bytes : int
        Bytes per memory unit.
    flops : int
        Floating-point operations of one iteration, for throughput only.
    accelerators : tuple of Accelerator, length N
    bandwidth : tuple of tuple of int, shape (N, N)
        Bytes per second from row to column; the diagonal is ignored.
    layers : tuple of Layer
        In topological order.
    medium : {"links", "ports", "shared"}
        What transfers need for themselves while they last (rule 10): nothing, as every pair of accelerators has a link
        of its own; the way out of the sender and the way into the receiver, as on a switch; or one medium that all
        accelerators have.
    latency_ns : tuple of tuple of int, shape (N, N), optional
        Nanoseconds that a message takes beside its bytes (rule 11), from row to column; the diagonal is ignored. Empty:
        none.

    Notes
    -----
    ``medium`` and ``latency_ns`` are left out of JSON, and so of the content hash, where they are the defaults.
    """

    problem: Literal["suboperation_mapping"] = "suboperation_mapping"
    batch: int = Field(ge=1, le=LARGEST)
    tick_ns: int = Field(ge=1, le=LARGEST)
    memory_unit_bytes: int = Field(ge=1, le=LARGEST)
    flops: int = Field(ge=0, le=LARGEST)
    accelerators: tuple[Accelerator, ...] = Field(min_length=1)
    bandwidth: tuple[tuple[int, ...], ...]
    layers: tuple[Layer, ...] = Field(min_length=1)
    medium: Medium = "links"
    latency_ns: tuple[tuple[int, ...], ...] = ()

    @model_serializer(mode="wrap")
    def _without_defaults(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        data: dict[str, Any] = handler(self)
        for name in ("medium", "latency_ns"):
            if getattr(self, name) == type(self).model_fields[name].default:
                data.pop(name, None)
        return data

    @property
    def seconds_per_tick(self) -> float:
        return self.tick_ns * 1e-9

    def transfer_ticks(self, size_bytes: int, source: int, target: int) -> int:
        """Ticks to move ``size_bytes`` between two accelerators: 0 on the same one, else rounded up (rules 6, 11)."""
        if source == target or size_bytes == 0:
            return 0
        rate = self.bandwidth[source][target]
        return -(-(size_bytes * 10**9 + self.late_ns(source, target) * rate) // (rate * self.tick_ns))

    def late_ns(self, source: int, target: int) -> int:
        """Nanoseconds that a message takes beside its bytes."""
        return self.latency_ns[source][target] if self.latency_ns and source != target else 0

    def memory_units(self, size_bytes: int) -> int:
        """Memory units that hold ``size_bytes``, rounded up."""
        return -(-size_bytes // self.memory_unit_bytes)

    def consumers(self, layer: int) -> list[tuple[int, Edge]]:
        """``(consumer index, edge)`` for every edge that leaves ``layer``, by consumer index."""
        return [(c, edge) for c, other in enumerate(self.layers) for edge in other.inputs if edge.source == layer]

    @property
    def largest_demand(self) -> int:
        """Memory units that hold everything ever stored, however the batch is shared out (each share rounds up)."""
        total = 0
        unit, n = self.memory_unit_bytes, len(self.accelerators)
        for index, layer in enumerate(self.layers):
            total += self.memory_units(2 * layer.weight_bytes)
            if layer.kind == "split":
                losses = [edge.bytes for _, edge in self.consumers(index)] or [layer.output_bytes]
                for size in (layer.input_bytes, *losses):
                    total += self.memory_units(self.batch * size) + (n if size % unit else 0)
        return total

    @model_validator(mode="after")
    def _check(self) -> Instance:
        findings = self._shape_findings() or self._magnitude_findings()
        if findings:
            raise InputError(findings)
        return self

    def _shape_findings(self) -> list[Finding]:
        n = len(self.accelerators)
        found = []
        if len({a.name for a in self.accelerators}) != n:
            found.append(Finding("expected distinct names", ("accelerators",)))
        if len(self.bandwidth) != n or any(len(row) != n for row in self.bandwidth):
            expected = f"expected a {n} x {n} matrix, one row and column per accelerator"
            found.append(Finding(f"{expected}, found rows of {[len(row) for row in self.bandwidth]}", ("bandwidth",)))
        else:
            found += [
                Finding(f"expected a positive number of bytes per second, found {rate}", ("bandwidth", i, j))
                for i, row in enumerate(self.bandwidth)
                for j, rate in enumerate(row)
                if i != j and rate <= 0
            ]
            found += [
                Finding(f"expected at most {LARGEST} bytes per second, found {rate}", ("bandwidth", i, j))
                for i, row in enumerate(self.bandwidth)
                for j, rate in enumerate(row)
                if abs(rate) > LARGEST
            ]
        found += latency_findings(self.latency_ns, n)
        names: set[str] = set()
        for index, layer in enumerate(self.layers):
            here: Location = ("layers", index)
            if layer.name in names:
                found.append(Finding("expected a distinct name", here, layer.name))
            names.add(layer.name)
            if "/" in layer.name:
                found.append(Finding("expected a name without '/'", here, layer.name))
            found += [
                Finding(
                    f"expected a layer before it (no cycles), found {edge.source}", (*here, "inputs", i), layer.name
                )
                for i, edge in enumerate(layer.inputs)
                if edge.source >= index
            ]
            if len({edge.source for edge in layer.inputs}) != len(layer.inputs):
                found.append(Finding("expected at most one edge from each producing layer", here, layer.name))
            found += self._table_findings(here, layer)
        return found

    def _table_findings(self, here: Location, layer: Layer) -> list[Finding]:
        """Latency tables of the wrong shape or with negative entries."""
        n = len(self.accelerators)
        entries = self.batch if layer.kind == "split" else 1
        expected = {"fp": n, "bp": n if layer.inputs else 0, "wu": n if layer.kind == "split" else 0}
        tables = {"fp": layer.fp, "bp": layer.bp, "wu": layer.wu}
        found = []
        for phase, rows in expected.items():
            table = tables[phase]
            if len(table) != rows or any(len(row) != entries for row in table):
                text = f"expected {rows} rows of {entries} ticks, found {[len(row) for row in table]}"
                found.append(Finding(text, (*here, phase), layer.name))
            found += [
                Finding(f"expected ticks of at least 0, found {min(row)}", (*here, phase, a), layer.name)
                for a, row in enumerate(table)
                if min(row, default=0) < 0
            ]
        return found

    def _magnitude_findings(self) -> list[Finding]:
        """Sums of worst durations and of memory demands must leave solver rows far from 2^31."""
        n = len(self.accelerators)
        slowest = min((self.bandwidth[i][j] for i in range(n) for j in range(n) if i != j), default=1) * self.tick_ns
        late = max((-(-self.late_ns(i, j) // self.tick_ns) for i in range(n) for j in range(n)), default=0)
        total = memory = size = 0
        for index, layer in enumerate(self.layers):
            copies = n if layer.kind == "split" else 1
            for table in (layer.fp, layer.bp, layer.wu):
                total += copies * max((ticks for row in table for ticks in row), default=0)
            moved = 3 * self.batch * (layer.input_bytes + layer.output_bytes) + 2 * n * layer.weight_bytes
            moved += 2 * self.batch * sum(edge.bytes for _, edge in self.consumers(index))
            size += moved
            if n > 1:
                total += -(-moved * 10**9 // slowest) + 6 * n
                # Messages: of an edge activations and twice the loss, of a layer what is its own, and dW.
                total += late * n * (3 * len(layer.inputs) + 2 + (n - 1 if layer.kind == "split" else 0))
            memory += self.memory_units(2 * layer.weight_bytes)
            if layer.kind == "split":
                memory += self.memory_units(self.batch * layer.input_bytes) + n
                memory += self.memory_units(
                    self.batch * (sum(edge.bytes for _, edge in self.consumers(index)) or layer.output_bytes)
                )
        found = []
        if size >= SUM_LIMIT:
            found.append(Finding(f"expected all bytes of a batch to sum to < 2^62, found {size}", ("layers",)))
        if total >= ACTIVITY_LIMIT:
            text = f"expected a tick so coarse that all durations sum to < 2^30, found {total}"
            found.append(Finding(f"{self.tick_ns}: {text}", ("tick_ns",)))
        if memory >= ACTIVITY_LIMIT:
            text = f"expected all demands to sum to < 2^30, found {memory}"
            found.append(Finding(f"{self.memory_unit_bytes}: {text}", ("memory_unit_bytes",)))
        return found


Operation = tuple[Phase, int, int]
"""``(phase, layer index, share index)``; the share index of a fused layer is -1."""


def operations(instance: Instance, ratio: tuple[int, ...]) -> list[Operation]:
    """All operations of G* (Sec. IV) for a ratio: FP, then BP, then WU, by layer and share."""
    shares = [b for b, samples in enumerate(ratio) if samples > 0]
    found: list[Operation] = []
    for index, layer in enumerate(instance.layers):
        found += [("FP", index, b) for b in (shares if layer.kind == "split" else [-1])]
    for index, layer in enumerate(instance.layers):
        if layer.inputs:
            found += [("BP", index, b) for b in (shares if layer.kind == "split" else [-1])]
    for index, layer in enumerate(instance.layers):
        if layer.kind == "split":
            found += [("WU", index, b) for b in shares]
    return found


def operation_name(instance: Instance, operation: Operation) -> str:
    """``FP/conv1/0`` for share 0 of a split layer, ``FP/bn1`` for a fused one."""
    phase, layer, share = operation
    name = f"{phase}/{instance.layers[layer].name}"
    return name if share < 0 else f"{name}/{share}"


def parse_operation(instance: Instance, name: str) -> Operation:
    """Inverse of :func:`operation_name`.

    Raises
    ------
    ValueError
        No such operation name.
    """
    phase, _, rest = name.partition("/")
    layer_name, _, share = rest.partition("/")
    layer = next((i for i, layer in enumerate(instance.layers) if layer.name == layer_name), None)
    if phase not in ("FP", "BP", "WU") or layer is None or (share and not share.isdigit()):
        raise ValueError(f"{name!r}: expected PHASE/layer[/share]")
    return phase, layer, int(share) if share else -1  # type: ignore[return-value]


class Plan(PlanBase):
    """Decisions only.

    Attributes
    ----------
    ratio : tuple of int, length N
        Samples per share; zeros make no sub-operation.
    order : tuple of tuple of str, length N
        Per accelerator the names of its operations (:func:`operation_name`) in execution order.
    """

    ratio: tuple[int, ...]
    order: tuple[tuple[str, ...], ...]
