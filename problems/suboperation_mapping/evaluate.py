"""The evaluator: the paper's rules in plain loops. Every other part of the project is measured against this file."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

from mapgap.core import Evaluation, GanttBar, GanttLane, Violation
from mapgap.problems.suboperation_mapping.instance import (
    Instance,
    Operation,
    Plan,
    operation_name,
    operations,
    parse_operation,
)


def predecessors(instance: Instance, ratio: tuple[int, ...], operation: Operation) -> list[tuple[Operation, int]]:
    """``(predecessor, bytes moved if it lies on another accelerator)``; rules 2-4 of the module ``__init__``."""
    phase, index, share = operation
    layer = instance.layers[index]
    shares = [b for b, samples in enumerate(ratio) if samples > 0]
    own = ratio[share] if share >= 0 else instance.batch
    found: list[tuple[Operation, int]] = []

    def read(kind: str, other: int, size: int) -> None:
        """One tensor of ``size`` bytes per sample from layer ``other``, share to share."""
        if instance.layers[other].kind == "fused":
            found.append(((kind, other, -1), size * own))  # type: ignore[arg-type]
        elif share >= 0:
            found.append(((kind, other, share), size * own))  # type: ignore[arg-type]
        else:
            found.extend(((kind, other, b), size * ratio[b]) for b in shares)  # type: ignore[misc]

    if phase == "FP":
        for edge in layer.inputs:
            read("FP", edge.source, edge.bytes)
        return found
    consumers = instance.consumers(index)
    for consumer, edge in consumers:  # loss at the layer's output
        read("BP", consumer, edge.bytes)
    loss = 0 if consumers else layer.output_bytes * own
    if phase == "BP":
        found.append((("FP", index, share), layer.weight_bytes + loss))
    else:
        found.append((("FP", index, share), layer.input_bytes * own + loss))
    return found


def compute_ticks(instance: Instance, ratio: tuple[int, ...], operation: Operation, accelerator: int) -> int:
    """Lat_Comp of an operation."""
    phase, index, share = operation
    layer = instance.layers[index]
    table = {"FP": layer.fp, "BP": layer.bp, "WU": layer.wu}[phase]
    return table[accelerator][ratio[share] - 1 if share >= 0 else 0]


def _check_decisions(instance: Instance, plan: Plan) -> tuple[dict[Operation, int], list[Violation]]:
    """Location of every operation, and what is wrong with ratio and order."""
    n = len(instance.accelerators)
    found: list[Violation] = []
    if len(plan.ratio) != n or any(r < 0 for r in plan.ratio) or sum(plan.ratio) != instance.batch:
        amount = abs(sum(plan.ratio) - instance.batch)
        text = f"expected {n} non-negative shares that add up to {instance.batch}, found {list(plan.ratio)}"
        return {}, [Violation("ratio", "ratio", amount, text)]
    if len(plan.order) != n:
        return {}, [
            Violation("order", "order", abs(len(plan.order) - n), f"expected {n} lists, found {len(plan.order)}")
        ]
    location: dict[Operation, int] = {}
    expected = set(operations(instance, plan.ratio))
    for a, names in enumerate(plan.order):
        for name in names:
            where = f"{instance.accelerators[a].name}: {name}"
            try:
                operation = parse_operation(instance, name)
            except ValueError as error:
                found.append(Violation("unknown operation", where, 1, str(error)))
                continue
            if operation not in expected:
                found.append(Violation("unknown operation", where, 1, "no such operation under this ratio"))
            elif operation in location:
                found.append(Violation("assigned once", where, 1, "the operation stands in the order twice"))
            else:
                location[operation] = a
    for operation in sorted(expected - set(location)):
        found.append(
            Violation("assigned once", operation_name(instance, operation), 1, "the operation has no accelerator")
        )
    return location, found


def _timetable(
    instance: Instance, plan: Plan, location: dict[Operation, int]
) -> tuple[dict[Operation, int], dict[Operation, int], dict[Operation, int]] | None:
    """Start, end and transfer ticks of every operation (rule 5); ``None`` when the orders wait for each other."""
    before: dict[Operation, Operation] = {}
    for names in plan.order:
        for first, second in pairwise(names):
            before[parse_operation(instance, second)] = parse_operation(instance, first)
    holders: dict[int, set[int]] = {}  # accelerators with an FP sub-operation, by layer
    for (phase, index, _), a in location.items():
        if phase == "FP":
            holders.setdefault(index, set()).add(a)
    inputs = {operation: predecessors(instance, plan.ratio, operation) for operation in location}
    start: dict[Operation, int] = {}
    end: dict[Operation, int] = {}
    transfer: dict[Operation, int] = {}
    waiting = list(location)
    while waiting:
        blocked = []
        for operation in waiting:
            needed = inputs[operation]
            if any(p not in end for p, _ in needed) or (operation in before and before[operation] not in end):
                blocked.append(operation)
                continue
            phase, index, _ = operation
            a = location[operation]
            moved = sum(instance.transfer_ticks(size, location[p], a) for p, size in needed)
            if phase == "WU":  # dW to every accelerator that holds an FP sub-operation of the layer (rule 4)
                weights = instance.layers[index].weight_bytes
                moved += sum(instance.transfer_ticks(weights, a, holder) for holder in holders[index])
            ready = [end[p] for p, _ in needed]
            if operation in before:
                ready.append(end[before[operation]])
            start[operation] = max(ready, default=0)
            transfer[operation] = moved
            end[operation] = start[operation] + moved + compute_ticks(instance, plan.ratio, operation, a)
        if len(blocked) == len(waiting):
            return None
        waiting = blocked
    return start, end, transfer


class Timetable(NamedTuple):
    """Accelerator, first and last tick, and ticks of transfer of every operation (rule 5)."""

    location: dict[Operation, int]
    start: dict[Operation, int]
    end: dict[Operation, int]
    transfer: dict[Operation, int]


def timetable(instance: Instance, plan: Plan) -> Timetable | None:
    """When everything happens; ``None`` for a plan without a value."""
    location, broken = _check_decisions(instance, plan)
    found = None if broken else _timetable(instance, plan, location)
    return None if found is None else Timetable(location, *found)


def _memory_intervals(
    instance: Instance,
    plan: Plan,
    location: dict[Operation, int],
    start: dict[Operation, int],
    end: dict[Operation, int],
) -> list[tuple[int, int, int, int]]:
    """``(accelerator, from, to, units)`` of everything stored until a WU ends (rule 7)."""
    found = []
    for operation in location:
        phase, index, share = operation
        if phase != "WU":
            continue
        layer = instance.layers[index]
        samples = plan.ratio[share]
        forward: Operation = ("FP", index, share)
        held = [(forward, layer.input_bytes * samples)]
        consumers = instance.consumers(index)
        for consumer, edge in consumers:
            producer: Operation = ("BP", consumer, share if instance.layers[consumer].kind == "split" else -1)
            held.append((producer, edge.bytes * samples))
        if not consumers:
            held.append((forward, layer.output_bytes * samples))
        for producer, size in held:
            found.append((location[producer], start[producer], end[operation], instance.memory_units(size)))
    return found


def _memory_peak(
    instance: Instance,
    plan: Plan,
    location: dict[Operation, int],
    start: dict[Operation, int],
    end: dict[Operation, int],
) -> list[tuple[int, int]]:
    """Per accelerator ``(peak units, tick at which it is reached)``."""
    intervals = _memory_intervals(instance, plan, location, start, end)
    peaks = []
    for a in range(len(instance.accelerators)):
        present = {index for (_, index, _), where in location.items() if where == a}
        weights = sum(instance.memory_units(2 * instance.layers[index].weight_bytes) for index in present)
        peak = (weights, 0)
        for moment in sorted({since for where, since, _, _ in intervals if where == a}):
            stored = sum(units for where, since, until, units in intervals if where == a and since <= moment < until)
            if weights + stored > peak[0]:
                peak = (weights + stored, moment)
        peaks.append(peak)
    return peaks


def evaluate(instance: Instance, plan: Plan) -> Evaluation:
    """Makespan of one training iteration in ticks, and every rule the plan breaks.

    Terms: ``makespan_s``, ``throughput_gflops``, and per accelerator ``compute_ticks``, ``transfer_ticks``,
    ``duty_cycle`` (busy share of the makespan), ``peak_memory`` (memory units).
    """
    location, violations = _check_decisions(instance, plan)
    if violations:
        return Evaluation(None, {}, tuple(violations))
    times = _timetable(instance, plan, location)
    if times is None:
        text = "the orders of the accelerators wait for each other"
        return Evaluation(None, {}, (Violation("acyclic order", "order", 1, text),))
    start, end, transfer = times
    makespan = max(end.values())
    peaks = _memory_peak(instance, plan, location, start, end)
    for accelerator, (peak, moment) in zip(instance.accelerators, peaks, strict=True):
        if peak > accelerator.memory:
            text = f"{peak} units at tick {moment}, capacity {accelerator.memory}"
            violations.append(Violation("DRAM", accelerator.name, peak - accelerator.memory, text))
    names = [accelerator.name for accelerator in instance.accelerators]
    busy = {name: sum(end[o] - start[o] for o in location if location[o] == a) for a, name in enumerate(names)}
    moved = {name: sum(transfer[o] for o in location if location[o] == a) for a, name in enumerate(names)}
    seconds = makespan * instance.seconds_per_tick
    terms = {
        "makespan_s": seconds,
        "throughput_gflops": instance.flops / seconds / 1e9 if seconds else None,
        "compute_ticks": {name: busy[name] - moved[name] for name in names},
        "transfer_ticks": moved,
        "duty_cycle": {name: busy[name] / makespan if makespan else 0.0 for name in names},
        "peak_memory": {name: peak for name, (peak, _) in zip(names, peaks, strict=True)},
    }
    return Evaluation(makespan, terms, tuple(violations))


def gantt(instance: Instance, plan: Plan) -> list[GanttLane]:
    """One lane per accelerator, times in seconds; the plan must have a value."""
    found = timetable(instance, plan)
    if found is None:
        return []
    location, start, end, transfer = found
    tick = instance.seconds_per_tick
    lanes = []
    for a, accelerator in enumerate(instance.accelerators):
        bars = [
            GanttBar(start[o] * tick, end[o] * tick, operation_name(instance, o), o[0], transfer[o] * tick)
            for o in sorted(location, key=lambda o: start[o])
            if location[o] == a
        ]
        lanes.append(GanttLane(accelerator.name, tuple(bars)))
    return lanes


def diagnose(instance: Instance) -> list[str]:
    """Simple proofs of infeasibility, in words; an empty list proves nothing.

    Every layer's weights and gradients lie on at least one accelerator, so each layer must fit somewhere and all
    together must fit into the sum of the capacities.
    """
    reasons = []
    largest = max(accelerator.memory for accelerator in instance.accelerators)
    total = 0
    for layer in instance.layers:
        need = instance.memory_units(2 * layer.weight_bytes)
        total += need
        if need > largest:
            reasons.append(
                f"DRAM: weights and gradients of layer {layer.name} need {need} units, the largest DRAM has {largest}"
            )
    capacity = sum(accelerator.memory for accelerator in instance.accelerators)
    if total > capacity:
        reasons.append(
            f"DRAM: weights and gradients of all layers need {total} units, all DRAM together has {capacity}"
        )
    return reasons
