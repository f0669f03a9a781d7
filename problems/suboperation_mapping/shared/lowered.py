"""The graph G* of one ratio as integer arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mapgap.problems.suboperation_mapping.instance import (
    Instance,
    Operation,
    Phase,
    Plan,
    operation_name,
    operations,
    parse_operation,
)
from mapgap.problems.suboperation_mapping.shared.ratios import Ratio
from mapgap.problems.suboperation_mapping.shared.timing import Storage, Timing, run_memory_excess, run_timetable

Array = NDArray[np.int64]
BACKWARD: tuple[Phase, Phase] = ("BP", "WU")


@dataclass(frozen=True)
class Lowered:
    """G* of ``instance`` under ``ratio``; ``n`` operations, ``N`` accelerators.

    Attributes
    ----------
    operations : list of Operation, length n
        FP by layer, then BP by layer, then WU by layer.
    timing : Timing
    storage : Storage
    topological : (n,)
        A sequence that respects all precedences: FP by layer, BP by falling layer, each WU right after its loss.
    """

    instance: Instance
    ratio: Ratio
    operations: list[Operation]
    timing: Timing
    storage: Storage
    topological: Array

    @property
    def n(self) -> int:
        return len(self.operations)

    @property
    def accelerators(self) -> int:
        return len(self.storage.capacity)

    def predecessors(self, o: int) -> Array:
        """Operations that ``o`` follows, once per tensor that it reads."""
        return self.timing.pred[self.timing.pred_ptr[o] : self.timing.pred_ptr[o + 1]]

    def makespan(self, location: Array, sequence: Array) -> int:
        """Ticks until the last operation ends."""
        _, end = self.timetable(location, sequence)
        return int(end.max())

    def timetable(self, location: Array, sequence: Array) -> tuple[Array, Array]:
        """Start and end of every operation, both of shape (n,)."""
        start, end = np.empty(self.n, np.int64), np.empty(self.n, np.int64)
        run_timetable(self.timing, location, sequence, start, end)
        return start, end

    def memory_excess(self, location: Array, start: Array, end: Array) -> int:
        """Sum over accelerators of the units by which the peak exceeds the capacity; 0 if all fit."""
        return int(run_memory_excess(self.storage, location, start, end))

    def plan(self, location: Array, sequence: Array) -> Plan:
        """The plan of a mapping."""
        order: list[list[str]] = [[] for _ in range(self.accelerators)]
        for o in sequence:
            order[location[o]].append(operation_name(self.instance, self.operations[o]))
        return Plan(ratio=self.ratio, order=tuple(tuple(names) for names in order))

    def mapping(self, plan: Plan) -> tuple[Array, Array]:
        """``(location, sequence)`` of a plan with this ratio.

        Raises
        ------
        ValueError
            The orders of the accelerators wait for each other.
        """
        index = {operation: o for o, operation in enumerate(self.operations)}
        return self.merged([[index[parse_operation(self.instance, name)] for name in names] for names in plan.order])

    def merged(self, orders: Sequence[Sequence[int]]) -> tuple[Array, Array]:
        """``(location, sequence)`` of the orders of all accelerators, in which every operation stands once.

        Raises
        ------
        ValueError
            The orders wait for each other.
        """
        location = np.full(self.n, -1, np.int64)
        for a, ops in enumerate(orders):
            location[list(ops)] = a
        heads, done = [0] * len(orders), np.zeros(self.n, bool)
        sequence: list[int] = []
        while len(sequence) < self.n:
            before = len(sequence)
            for a, ops in enumerate(orders):
                while heads[a] < len(ops):
                    o = ops[heads[a]]
                    if not all(done[self.predecessors(o)]):
                        break
                    done[o] = True
                    sequence.append(o)
                    heads[a] += 1
            if len(sequence) == before:
                raise ValueError("the orders of the accelerators wait for each other")
        return location, np.array(sequence, np.int64)


def lower(instance: Instance, ratio: Ratio) -> Lowered:
    """Build the arrays of one ratio (a tuple of length N that adds up to the batch)."""
    ops = operations(instance, ratio)
    index = {operation: o for o, operation in enumerate(ops)}
    n, count = len(ops), len(instance.accelerators)
    moved = _tensors(instance, ratio, ops)
    compute = np.zeros((n, count), np.int64)
    pred_ptr, holder_ptr = np.zeros(n + 1, np.int64), np.zeros(n + 1, np.int64)
    pred: list[int] = []
    sizes: list[int] = []
    holder: list[int] = []
    gradient_bytes = np.zeros(n, np.int64)
    items: list[tuple[int, int, int]] = []
    forward_of: dict[int, list[int]] = {}
    for o, (phase, layer, _) in enumerate(ops):
        if phase == "FP":
            forward_of.setdefault(layer, []).append(o)
    for o, operation in enumerate(ops):
        phase, layer, share = operation
        spec = instance.layers[layer]
        table = {"FP": spec.fp, "BP": spec.bp, "WU": spec.wu}[phase]
        compute[o] = [row[ratio[share] - 1 if share >= 0 else 0] for row in table]
        for previous, size in moved[operation]:
            pred.append(index[previous])
            sizes.append(size)
        if phase == "WU":
            holder += forward_of[layer]
            gradient_bytes[o] = spec.weight_bytes
            items += _stored(instance, ratio, index, layer, share, o)
        pred_ptr[o + 1], holder_ptr[o + 1] = len(pred), len(holder)
    owner, release, units = (
        (np.array(column, np.int64) for column in zip(*items, strict=True)) if items else (np.zeros(0, np.int64),) * 3
    )
    return Lowered(
        instance=instance,
        ratio=ratio,
        operations=ops,
        timing=Timing(
            compute=compute,
            pred_ptr=pred_ptr,
            pred=np.array(pred, np.int64),
            pred_ticks=_ticks(instance, np.array(sizes, np.int64)),
            holder_ptr=holder_ptr,
            holder=np.array(holder, np.int64),
            gradient_ticks=_ticks(instance, gradient_bytes),
        ),
        storage=Storage(
            item_owner=owner,
            item_release=release,
            item_units=units,
            layer=np.array([layer for _, layer, _ in ops], np.int64),
            weight_units=np.array([instance.memory_units(2 * each.weight_bytes) for each in instance.layers], np.int64),
            capacity=np.array([a.memory for a in instance.accelerators], np.int64),
        ),
        topological=_topological(ops),
    )


def _tensors(instance: Instance, ratio: Ratio, ops: list[Operation]) -> dict[Operation, list[tuple[Operation, int]]]:
    """``(producer, bytes)`` of all tensors that an operation reads, tensor by tensor (rules 2-4).

    An edge carries an activation forward and its loss back, for the samples that both ends have in common.
    """
    samples = {(layer, share): ratio[share] if share >= 0 else instance.batch for _, layer, share in ops}
    parts: dict[int, list[int]] = {}
    for layer, share in samples:
        parts.setdefault(layer, []).append(share)
    found: dict[Operation, list[tuple[Operation, int]]] = {operation: [] for operation in ops}
    read: set[int] = set()
    for consumer, spec in enumerate(instance.layers):
        for edge in spec.inputs:
            read.add(edge.source)
            for here in parts[consumer]:
                for there in parts[edge.source]:
                    if here != there and -1 not in (here, there):
                        continue  # other samples
                    size = edge.bytes * min(samples[consumer, here], samples[edge.source, there])
                    found["FP", consumer, here].append((("FP", edge.source, there), size))
                    for phase in BACKWARD:
                        loss = found.get((phase, edge.source, there))
                        if loss is not None:
                            loss.append((("BP", consumer, here), size))
    for (layer, share), count in samples.items():
        spec = instance.layers[layer]
        last = 0 if layer in read else spec.output_bytes * count
        for phase, size in zip(BACKWARD, (spec.weight_bytes, spec.input_bytes * count), strict=True):
            local = found.get((phase, layer, share))
            if local is not None:
                local.append((("FP", layer, share), size + last))
    return found


def _stored(
    instance: Instance, ratio: Ratio, index: dict[Operation, int], layer: int, share: int, release: int
) -> list[tuple[int, int, int]]:
    """``(owner, release, units)`` of the input activation and the losses that WU number ``release`` needs."""
    spec, samples = instance.layers[layer], ratio[share]
    forward = index[("FP", layer, share)]
    found = [(forward, release, instance.memory_units(spec.input_bytes * samples))]
    consumers = instance.consumers(layer)
    for consumer, edge in consumers:
        part = share if instance.layers[consumer].kind == "split" else -1
        found.append((index[("BP", consumer, part)], release, instance.memory_units(edge.bytes * samples)))
    if not consumers:
        found.append((forward, release, instance.memory_units(spec.output_bytes * samples)))
    return found


def _ticks(instance: Instance, sizes: Array) -> Array:
    """``(len(sizes), N, N)`` transfer ticks, rounded up, 0 on the diagonal."""
    count = len(instance.accelerators)
    ticks = np.zeros((len(sizes), count, count), np.int64)
    for i in range(count):
        for j in range(count):
            if i != j:  # Python integers: bytes * 10^9 does not fit 64 bits
                ticks[:, i, j] = [instance.transfer_ticks(int(size), i, j) for size in sizes]
    return ticks


def _topological(ops: list[Operation]) -> Array:
    forward = [o for o, (phase, _, _) in enumerate(ops) if phase == "FP"]
    # A WU needs the BP of later layers only, a BP too: falling layers, WU before BP of the same layer.
    backward = [o for o, (phase, _, _) in enumerate(ops) if phase != "FP"]
    backward.sort(key=lambda o: (-ops[o][1], ops[o][0] == "BP", ops[o][2]))
    return np.array(forward + backward, np.int64)
