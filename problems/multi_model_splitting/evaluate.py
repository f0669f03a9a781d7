"""The evaluator: the paper's rules in plain loops. Every other part of the project is measured against this file."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from mapgap.core import Evaluation, Violation
from mapgap.problems.multi_model_splitting.dynamic import churn
from mapgap.problems.multi_model_splitting.instance import RESOURCES, UNITS, Instance, PipelinePlan, Plan

MEDIUM = (-1, "medium")
"""In place of a device and a unit: the one medium (rule 13)."""
#: Identity of a task: what it does, on which device, and the identities of its inputs (rule 9).
Key = tuple[Any, ...]


@dataclass(frozen=True)
class Task:
    """One of the six types of Sec. 5.4.1, with its identity for operation sharing."""

    key: Key
    pipeline: int
    device: int
    unit: str
    ticks: int
    label: str
    transfer: bool = False


def tasks(instance: Instance, index: int, plan: PipelinePlan) -> list[Task]:
    """Tasks of one pipeline in the order of execution."""
    pipeline = instance.pipelines[index]
    sharing = instance.sharing
    found: list[Task] = []

    def task(key: Key, device: int, unit: str, ticks: int, label: str, transfer: bool = False) -> Key:
        found.append(Task(key, index, device, unit, ticks, f"{pipeline.name} {label}", transfer))
        return key

    def move(data: Key, boundary: int, sender: int, receiver: int) -> Key:
        """Transmission and reception, where two consecutive tasks lie on different devices (rule 3)."""
        if sender == receiver:
            return data
        cut = pipeline.boundaries[boundary]
        sending, receiving = cut.transmit[sender], cut.receive[receiver]
        if cut.bytes:
            sending += instance.late_ticks(sender, receiver)  # rule 14
        sent = task(("transmit", sender, receiver, data), sender, "radio", sending, f"send {boundary}", True)
        return task(("receive", receiver, sent), receiver, "radio", receiving, f"receive {boundary}", True)

    origin = pipeline.signal if sharing and pipeline.signal else ("pipeline", index)
    model = pipeline.model if sharing else ("pipeline", index)
    data = task(("sense", origin, plan.source), plan.source, "sensor", pipeline.sensing[plan.source], "sense")  # (1)
    here = plan.source
    for segment in plan.segments:
        device, first, last = segment.device, segment.first, segment.last
        data = move(data, first, here, device)  # (6), (2)
        name = f"{first}:{last}"
        loading = pipeline.boundaries[first].load[device]
        data = task(("load", model, first, last, device, data), device, "mcu", loading, f"load {name}")  # (3)
        running = sum(layer.inference[device] for layer in pipeline.layers[first:last])
        data = task(("infer", data), device, "accelerator", running, name)  # (4)
        unloading = pipeline.boundaries[last].unload[device]
        data = task(("unload", data), device, "mcu", unloading, f"unload {name}")  # (5)
        here = device
    move(data, len(pipeline.layers), here, plan.target)
    return found


def _check_pipeline(instance: Instance, index: int, plan: PipelinePlan) -> tuple[bool, list[Violation]]:
    """Whether the decisions can be evaluated at all, and every rule they break."""
    pipeline, n = instance.pipelines[index], len(instance.devices)
    found: list[Violation] = []
    numbers = [plan.source, plan.target, *(segment.device for segment in plan.segments)]
    if unknown := sorted({d for d in numbers if not 0 <= d < n}):
        text = f"expected device numbers from 0 to {n - 1}, found {unknown}"
        return False, [Violation("device number", pipeline.name, len(unknown), text)]
    position = 0
    for segment in plan.segments:
        if segment.first != position or segment.last <= segment.first:
            text = f"expected a segment that begins at layer {position}, found {segment.first}:{segment.last}"
            return False, [Violation("contiguous segments", pipeline.name, 1, text)]
        position = segment.last
    if position != len(pipeline.layers):
        text = f"expected segments up to layer {len(pipeline.layers)}, found {position}"
        return False, [Violation("contiguous segments", pipeline.name, abs(len(pipeline.layers) - position), text)]
    used = [segment.device for segment in plan.segments]
    for d in sorted(set(used)):
        if used.count(d) > 1:
            where = f"{pipeline.name}: {instance.devices[d].name}"
            text = f"{used.count(d)} segments of one pipeline on one device"
            found.append(Violation("one segment per device", where, used.count(d) - 1, text))
    for role, chosen, allowed, need in (
        ("source", plan.source, instance.sources(index), pipeline.source),
        ("target", plan.target, instance.targets(index), pipeline.target),
    ):
        if chosen not in allowed:
            wanted = f"device {need.device}" if need.device is not None else f"a device of type {need.type}"
            text = f"expected {wanted}, found {instance.devices[chosen].name}"
            found.append(Violation(role, pipeline.name, 1, text))
    return True, found


def _demands(instance: Instance, plan: Plan) -> dict[str, list[int]]:
    """Weights, bias and layers on every device (Sec. 5.2); merged segments count once (rule 9)."""
    used = {resource: [0] * len(instance.devices) for resource in RESOURCES}
    seen: set[Key] = set()
    for index, decisions in enumerate(plan.pipelines):
        loads = [task for task in tasks(instance, index, decisions) if task.key[0] == "load"]
        for segment, load in zip(decisions.segments, loads, strict=True):
            if load.key in seen:
                continue
            seen.add(load.key)
            for layer in instance.pipelines[index].layers[segment.first : segment.last]:
                used["weights"][segment.device] += layer.weights
                used["bias"][segment.device] += layer.bias
                used["layers"][segment.device] += 1
    return used


def _out_of_resource(instance: Instance, used: dict[str, list[int]]) -> list[Violation]:
    """OOR per device and resource (rule 7)."""
    found = []
    for d, device in enumerate(instance.devices):
        for resource in RESOURCES:
            need, capacity = used[resource][d], getattr(device, resource)
            if need > capacity:
                unit = "layers" if resource == "layers" else "bytes"
                text = f"out of resource: {need} {unit}, capacity {capacity}"
                found.append(Violation(resource, device.name, need - capacity, text))
    return found


def loads(instance: Instance, plan: Plan) -> dict[tuple[int, str], int]:
    """Ticks per cycle of every (device, unit), and of one medium; merged tasks count once."""
    load = {(d, unit): 0 for d in range(len(instance.devices)) for unit in UNITS}
    if instance.in_turn:
        load[MEDIUM] = 0
    seen: set[Key] = set()
    for index, decisions in enumerate(plan.pipelines):
        for task in tasks(instance, index, decisions):
            if task.key not in seen:
                seen.add(task.key)
                load[task.device, task.unit] += task.ticks
                if instance.in_turn and task.key[0] == "transmit":
                    load[MEDIUM] += task.ticks  # rule 13
    return load


def place_name(instance: Instance, place: tuple[int, str]) -> str:
    """A unit of a device, or the medium, in words."""
    return "medium" if place == MEDIUM else f"{instance.devices[place[0]].name} {place[1]}"


def evaluate(instance: Instance, plan: Plan) -> Evaluation:
    """Cycle time or total latency in ticks, and every rule the plan breaks.

    Terms: ``cycle_ticks``, ``latency_ticks`` (sum over pipelines), ``throughput_per_s`` (inferences of all pipelines),
    ``mean_latency_s``, ``latency_s`` per pipeline, ``bottleneck`` (device and unit), ``load_ticks`` per device and
    unit, ``used`` per device and resource, ``transfers``, ``churn`` if something is deployed, and ``medium_ticks`` on
    one medium.
    """
    if len(plan.pipelines) != len(instance.pipelines):
        text = f"expected {len(instance.pipelines)} execution plans, found {len(plan.pipelines)}"
        amount = abs(len(instance.pipelines) - len(plan.pipelines))
        return Evaluation(None, {}, (Violation("one plan per pipeline", "pipelines", amount, text),))
    violations: list[Violation] = []
    complete = True
    for index, decisions in enumerate(plan.pipelines):
        readable, found = _check_pipeline(instance, index, decisions)
        complete = complete and readable
        violations += found
    if not complete:
        return Evaluation(None, {}, tuple(violations))
    used = _demands(instance, plan)
    violations += _out_of_resource(instance, used)
    load = loads(instance, plan)
    cycle = max(load.values())  # Sec. 5.4.2
    each = [sum(t.ticks for t in tasks(instance, i, p)) for i, p in enumerate(plan.pipelines)]
    tick, names = instance.seconds_per_tick, [device.name for device in instance.devices]
    busiest = next(place for place, ticks in load.items() if ticks == cycle)
    terms = {
        "cycle_ticks": cycle,
        "latency_ticks": sum(each),
        "throughput_per_s": len(plan.pipelines) / (cycle * tick) if cycle else None,
        "mean_latency_s": sum(each) * tick / len(each),
        "latency_s": {p.name: ticks * tick for p, ticks in zip(instance.pipelines, each, strict=True)},
        "bottleneck": place_name(instance, busiest),
        "load_ticks": {name: {unit: load[d, unit] for unit in UNITS} for d, name in enumerate(names)},
        "used": {name: {resource: used[resource][d] for resource in RESOURCES} for d, name in enumerate(names)},
        "transfers": sum(t.key[0] == "transmit" for i, p in enumerate(plan.pipelines) for t in tasks(instance, i, p)),
    }
    if instance.in_turn:
        terms["medium_ticks"] = load[MEDIUM]
    if instance.deployed:
        terms["churn"] = asdict(churn(instance, plan))
    objective = cycle if instance.objective == "throughput" else sum(each)
    return Evaluation(objective, terms, tuple(violations))
