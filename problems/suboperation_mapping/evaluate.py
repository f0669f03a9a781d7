"""The evaluator: the paper's rules in plain loops. Every other part of the project is measured against this file."""

from __future__ import annotations

from collections import deque
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


Times = tuple[dict[Operation, int], dict[Operation, int], dict[Operation, int]]
"""Start, end, and ticks of transfer of every operation."""


def _timetable(instance: Instance, plan: Plan, location: dict[Operation, int]) -> Times | None:
    """The times of every operation (rules 5 and 10); ``None`` when the orders wait for each other."""
    if instance.medium != "links":
        return _queued(instance, plan, location)
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


Step = tuple[int, frozenset[str]]
"""Ticks of a transfer or a computation, and the ports or the medium that it needs for itself."""


def _steps(instance: Instance, plan: Plan, location: dict[Operation, int], operation: Operation) -> deque[Step]:
    """What an operation does, one after the other: it receives, computes, and sends dW (rules 4 and 10)."""
    a = location[operation]

    def moved(size: int, sender: int, receiver: int) -> Step:
        ports = {f"out of {sender}", f"into {receiver}"} if instance.medium == "ports" else {"medium"}
        return instance.transfer_ticks(size, sender, receiver), frozenset(ports)

    received = [(location[p], size) for p, size in predecessors(instance, plan.ratio, operation)]
    received.sort(key=lambda each: (each[0], -each[1]))
    found = [moved(size, sender, a) for sender, size in received]
    found.append((compute_ticks(instance, plan.ratio, operation, a), frozenset()))
    phase, index, _ = operation
    if phase == "WU":
        holders = {where for (kind, layer, _), where in location.items() if (kind, layer) == ("FP", index)}
        found += [moved(instance.layers[index].weight_bytes, a, holder) for holder in sorted(holders)]
    return deque((ticks, needs) for ticks, needs in found if ticks or not needs)  # a transfer of no ticks is none


def _queued(instance: Instance, plan: Plan, location: dict[Operation, int]) -> Times | None:
    """The same where transfers wait for ports or for the medium, from one end of anything to the next (rule 10)."""
    accelerators = range(len(plan.order))
    orders = [deque(parse_operation(instance, name) for name in names) for names in plan.order]
    inputs = {operation: [p for p, _ in predecessors(instance, plan.ratio, operation)] for operation in location}
    steps = {operation: _steps(instance, plan, location, operation) for operation in location}
    transfer = {o: sum(ticks for ticks, needs in steps[o] if needs) for o in location}
    start: dict[Operation, int] = {}
    end: dict[Operation, int] = {}
    waiting: dict[int, int] = {}  # accelerators whose next step has not begun, and since when it could have
    running: dict[int, tuple[int, frozenset[str]]] = {}  # those whose step lasts, until when, and what it holds
    taken: set[str] = set()
    now = 0
    while True:
        for a in accelerators:
            begins = orders[a] and orders[a][0] not in start
            if begins and all(p in end for p in inputs[orders[a][0]]):
                start[orders[a][0]] = waiting[a] = now
        for a in sorted(waiting, key=lambda a: (waiting[a], a)):
            ticks, needs = steps[orders[a][0]][0]
            if taken.isdisjoint(needs):
                taken |= needs
                running[a] = now + ticks, needs
                del waiting[a]
        if not running:
            return (start, end, transfer) if len(end) == len(location) else None
        now = min(until for until, _ in running.values())
        for a in [a for a, (until, _) in running.items() if until == now]:
            taken -= running.pop(a)[1]
            steps[orders[a][0]].popleft()
            if steps[orders[a][0]]:
                waiting[a] = now
            else:
                end[orders[a].popleft()] = now


class Timetable(NamedTuple):
    """Accelerator, first and last tick, and ticks of transfer of every operation (rules 5 and 10).

    What is neither transfer nor computation is spent waiting for ports or the medium.
    """

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
    ``duty_cycle`` (busy share of the makespan), ``peak_memory`` (memory units). Where transfers wait for each other
    (rule 10), also ``waiting_ticks``, which count as busy.
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
    computed = dict.fromkeys(names, 0)
    for operation, a in location.items():
        computed[names[a]] += compute_ticks(instance, plan.ratio, operation, a)
    waited = {name: busy[name] - moved[name] - computed[name] for name in names}
    seconds = makespan * instance.seconds_per_tick
    terms = {
        "makespan_s": seconds,
        "throughput_gflops": instance.flops / seconds / 1e9 if seconds else None,
        "compute_ticks": computed,
        "transfer_ticks": moved,
        **({} if instance.medium == "links" else {"waiting_ticks": waited}),
        "duty_cycle": {name: busy[name] / makespan if makespan else 0.0 for name in names},
        "peak_memory": {name: peak for name, (peak, _) in zip(names, peaks, strict=True)},
    }
    return Evaluation(makespan, terms, tuple(violations))


def gantt(instance: Instance, plan: Plan) -> list[GanttLane]:
    """One lane per accelerator, times in seconds; the plan must have a value.

    What a bar moves includes what it waits for ports or the medium (rule 10).
    """
    found = timetable(instance, plan)
    if found is None:
        return []
    location, start, end, _ = found
    tick = instance.seconds_per_tick
    moves = {o: end[o] - start[o] - compute_ticks(instance, plan.ratio, o, a) for o, a in location.items()}
    lanes = []
    for a, accelerator in enumerate(instance.accelerators):
        bars = [
            GanttBar(start[o] * tick, end[o] * tick, operation_name(instance, o), o[0], moves[o] * tick)
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
