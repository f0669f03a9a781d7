"""The graph G* of one ratio as integer arrays."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from mapgap.problems.suboperation_mapping.instance import (
    Instance,
    Medium,
    Operation,
    Phase,
    Plan,
    operation_name,
    operations,
    parse_operation,
)
from mapgap.problems.suboperation_mapping.lowered.ratios import Ratio
from mapgap.problems.suboperation_mapping.lowered.timing import Storage, Timing, run_memory_excess, run_timetable

Array = NDArray[np.int64]
PHASES: tuple[Phase, ...] = get_args(Phase)
MEDIA: tuple[Medium, ...] = get_args(Medium)
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
    lowering = next((known for known in _known if known.instance is instance), None)
    if lowering is None:
        lowering = Lowering(instance)
        _known.append(lowering)
    return lowering.lower(ratio)


class Skeleton(NamedTuple):
    """What the graphs of all ratios with the same non-zero shares have in common.

    A size in bytes is ``per_sample * samples[share] + constant`` where share -1 has the samples of the whole batch.

    Attributes
    ----------
    share : (n,)
        Share of each operation.
    table : (n,)
        Row of its phase and layer in ``Lowering.tables``.
    moved : (3, E)
        ``per_sample``, ``share`` and ``constant`` of the tensor of each precedence.
    stored : (2, I)
        ``per_sample`` and ``share`` of each stored tensor.
    """

    operations: list[Operation]
    share: Array
    table: Array
    pred_ptr: Array
    pred: Array
    moved: Array
    holder_ptr: Array
    holder: Array
    gradient_ticks: NDArray[np.int64]
    item_owner: Array
    item_release: Array
    stored: Array
    layer: Array
    topological: Array


Size = tuple[int, int, int]
"""Bytes per sample, share, constant bytes."""


class Lowering:
    """Makes the graphs of an instance; what does not depend on the ratio is made once.

    Attributes
    ----------
    tables : (layers * 3, N, batch)
        Compute ticks by layer and phase, accelerator, and samples - 1 (of a fused layer only ``batch - 1``).
    """

    def __init__(self, instance: Instance) -> None:
        self.instance = instance
        count = len(instance.accelerators)
        self.tables = np.zeros((3 * len(instance.layers), count, instance.batch), np.int64)
        for index, layer in enumerate(instance.layers):
            for phase, table in enumerate((layer.fp, layer.bp, layer.wu)):
                if table:  # a fused layer has one entry, for the whole batch
                    rows = np.array(table, np.int64)
                    self.tables[3 * index + phase, :, instance.batch - rows.shape[1] :] = rows
        self.weight_units = np.array(
            [instance.memory_units(2 * each.weight_bytes) for each in instance.layers], np.int64
        )
        self.capacity = np.array([a.memory for a in instance.accelerators], np.int64)
        self._ticks: dict[int, NDArray[np.int64]] = {}
        self._skeletons: dict[tuple[int, ...], Skeleton] = {}

    def lower(self, ratio: Ratio) -> Lowered:
        """The graph of one ratio."""
        shares = tuple(b for b, samples in enumerate(ratio) if samples > 0)
        if shares not in self._skeletons:
            self._skeletons[shares] = self._skeleton(ratio)
        common = self._skeletons[shares]
        samples = np.array([*ratio, self.instance.batch], np.int64)  # share -1 is the last
        per_sample, share, constant = common.moved
        unit = self.instance.memory_unit_bytes
        return Lowered(
            instance=self.instance,
            ratio=ratio,
            operations=common.operations,
            timing=Timing(
                compute=np.ascontiguousarray(self.tables[common.table, :, samples[common.share] - 1]),
                pred_ptr=common.pred_ptr,
                pred=common.pred,
                pred_ticks=self.ticks(per_sample * samples[share] + constant),
                holder_ptr=common.holder_ptr,
                holder=common.holder,
                gradient_ticks=common.gradient_ticks,
                medium=MEDIA.index(self.instance.medium),
            ),
            storage=Storage(
                item_owner=common.item_owner,
                item_release=common.item_release,
                item_units=-(-common.stored[0] * samples[common.stored[1]] // unit),
                layer=common.layer,
                weight_units=self.weight_units,
                capacity=self.capacity,
            ),
            topological=common.topological,
        )

    def ticks(self, sizes: Array) -> NDArray[np.int64]:
        """``(len(sizes), N, N)`` transfer ticks, rounded up, 0 on the diagonal."""
        count = len(self.capacity)
        different, where = np.unique(sizes, return_inverse=True)
        rows = np.zeros((len(different), count, count), np.int64)
        for row, size in zip(rows, different.tolist(), strict=True):
            if size not in self._ticks:  # Python integers: bytes * 10^9 does not fit 64 bits
                ends = range(count)
                self._ticks[size] = np.array(
                    [[0 if i == j else self.instance.transfer_ticks(size, i, j) for j in ends] for i in ends], np.int64
                )
            row[:] = self._ticks[size]
        return rows[where]

    def _skeleton(self, ratio: Ratio) -> Skeleton:
        ops = operations(self.instance, ratio)
        index = {operation: o for o, operation in enumerate(ops)}
        tensors = _tensors(self.instance, ops)
        forward_of: dict[int, list[int]] = {}
        for o, (phase, layer, _) in enumerate(ops):
            if phase == "FP":
                forward_of.setdefault(layer, []).append(o)
        pred: list[int] = []
        moved: list[Size] = []
        holder: list[int] = []
        stored: list[tuple[int, int, int, int]] = []
        pred_ptr, holder_ptr = np.zeros(len(ops) + 1, np.int64), np.zeros(len(ops) + 1, np.int64)
        gradient_bytes = np.zeros(len(ops), np.int64)
        for o, operation in enumerate(ops):
            phase, layer, share = operation
            for previous, size in tensors[operation]:
                pred.append(index[previous])
                moved.append(size)
            if phase == "WU":
                holder += forward_of[layer]
                gradient_bytes[o] = self.instance.layers[layer].weight_bytes
                stored += _stored(self.instance, index, layer, share, o)
            pred_ptr[o + 1], holder_ptr[o + 1] = len(pred), len(holder)
        held = np.array(stored, np.int64).reshape(-1, 4).T.copy()
        return Skeleton(
            operations=ops,
            share=np.array([share for _, _, share in ops], np.int64),
            table=np.array([3 * layer + PHASES.index(phase) for phase, layer, _ in ops], np.int64),
            pred_ptr=pred_ptr,
            pred=np.array(pred, np.int64),
            moved=np.array(moved, np.int64).reshape(-1, 3).T.copy(),
            holder_ptr=holder_ptr,
            holder=np.array(holder, np.int64),
            gradient_ticks=self.ticks(gradient_bytes),
            item_owner=held[0],
            item_release=held[1],
            stored=held[2:],
            layer=np.array([layer for _, layer, _ in ops], np.int64),
            topological=_topological(ops),
        )


_known: deque[Lowering] = deque(maxlen=4)  # of the instances last lowered


def _tensors(instance: Instance, ops: list[Operation]) -> dict[Operation, list[tuple[Operation, Size]]]:
    """``(producer, size)`` of all tensors that an operation reads, tensor by tensor (rules 2-4).

    An edge carries an activation forward and its loss back, for the samples that both ends have in common.
    """
    parts: dict[int, list[int]] = {}
    for phase, layer, share in ops:
        if phase == "FP":
            parts.setdefault(layer, []).append(share)
    found: dict[Operation, list[tuple[Operation, Size]]] = {operation: [] for operation in ops}
    read: set[int] = set()
    for consumer, spec in enumerate(instance.layers):
        for edge in spec.inputs:
            read.add(edge.source)
            for here in parts[consumer]:
                for there in parts[edge.source]:
                    if here != there and -1 not in (here, there):
                        continue  # other samples
                    size = (edge.bytes, max(here, there), 0)
                    found["FP", consumer, here].append((("FP", edge.source, there), size))
                    for phase in BACKWARD:
                        loss = found.get((phase, edge.source, there))
                        if loss is not None:
                            loss.append((("BP", consumer, here), size))
    for layer, shares in parts.items():
        spec = instance.layers[layer]
        last = 0 if layer in read else spec.output_bytes
        for share in shares:
            for phase, per_sample, constant in (("BP", 0, spec.weight_bytes), ("WU", spec.input_bytes, 0)):
                local = found.get((phase, layer, share))
                if local is not None:
                    local.append((("FP", layer, share), (per_sample + last, share, constant)))
    return found


def _stored(
    instance: Instance, index: dict[Operation, int], layer: int, share: int, release: int
) -> list[tuple[int, int, int, int]]:
    """``(owner, release, bytes per sample, share)`` of the input activation and the losses that a WU needs."""
    spec = instance.layers[layer]
    forward = index[("FP", layer, share)]
    found = [(forward, release, spec.input_bytes, share)]
    consumers = instance.consumers(layer)
    for consumer, edge in consumers:
        part = share if instance.layers[consumer].kind == "split" else -1
        found.append((index[("BP", consumer, part)], release, edge.bytes, share))
    if not consumers:
        found.append((forward, release, spec.output_bytes, share))
    return found


def _topological(ops: list[Operation]) -> Array:
    forward = [o for o, (phase, _, _) in enumerate(ops) if phase == "FP"]
    # A WU needs the BP of later layers only, a BP too: falling layers, WU before BP of the same layer.
    backward = [o for o, (phase, _, _) in enumerate(ops) if phase != "FP"]
    backward.sort(key=lambda o: (-ops[o][1], ops[o][0] == "BP", ops[o][2]))
    return np.array(forward + backward, np.int64)
