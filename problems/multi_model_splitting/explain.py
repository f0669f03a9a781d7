"""Why a joint plan is not better: its bottleneck, what more hardware would bring, where it differs from another."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mapgap.core import LARGEST, Binding, Case, Exchange, Explainer, PlanTable, quantity, relaxed
from mapgap.problems.multi_model_splitting.dynamic import late_between
from mapgap.problems.multi_model_splitting.evaluate import MEDIUM, Key, Task, evaluate, loads, place_name, tasks
from mapgap.problems.multi_model_splitting.instance import RESOURCES, Instance, PipelinePlan, Plan


def binding(instance: Instance, plan: Plan) -> Binding:
    """Throughput: the tasks of the longest load. Latency: the pipelines, the longest first."""
    if instance.objective == "latency":
        return _latencies(instance, plan)
    load, tick = loads(instance, plan), instance.seconds_per_tick
    cycle = max(load.values())
    place = next(place for place, ticks in load.items() if ticks == cycle)
    device, unit = place
    own = [t for t in _distinct(instance, plan) if place in ((t.device, t.unit), MEDIUM)]
    if place == MEDIUM:
        own = [t for t in own if t.key[0] == "transmit"]
    own.sort(key=lambda t: -t.ticks)
    rows = [
        (
            instance.pipelines[task.pipeline].name,
            task.label.removeprefix(f"{instance.pipelines[task.pipeline].name} "),
            quantity(task.ticks * tick, "s"),
            f"{100 * task.ticks / cycle:.1f} %" if cycle else None,
        )
        for task in own
        if task.ticks
    ]
    second = max((ticks for where, ticks in load.items() if where != place), default=0)
    where, memory = "the one medium", list[str]()
    if place != MEDIUM:
        name = instance.devices[device].name
        where, used = f"the {unit} of {name}", evaluate(instance, plan).terms["used"][name]
        memory = [
            f"{resource} {100 * used[resource] / getattr(instance.devices[device], resource):.0f} %"
            for resource in RESOURCES
            if getattr(instance.devices[device], resource)
        ]
    sentence = (
        f"The bottleneck is {where}: {len(rows)} tasks load it for {quantity(cycle * tick, 's')} in every "
        f"cycle, the next busiest unit for {quantity(second * tick, 's')}."
    )
    if memory:
        sentence += f" Its memory is in use to: {', '.join(memory)}."
    columns = ("pipeline", "task", "takes", "share")
    bars = frozenset((f"{place_name(instance, place)} (bottleneck)", task.label) for task in own)
    return Binding(sentence, PlanTable(columns, tuple(rows), columns[2:]), bars)


def _distinct(instance: Instance, plan: Plan) -> list[Task]:
    """All tasks, merged ones once."""
    found: dict[Key, Task] = {}
    for index, decisions in enumerate(plan.pipelines):
        for task in tasks(instance, index, decisions):
            found.setdefault(task.key, task)
    return list(found.values())


def _latencies(instance: Instance, plan: Plan) -> Binding:
    tick = instance.seconds_per_tick
    own = {index: tasks(instance, index, decisions) for index, decisions in enumerate(plan.pipelines)}
    total = sum(task.ticks for each in own.values() for task in each)
    rows = []
    for index in sorted(own, key=lambda i: -sum(task.ticks for task in own[i])):
        spent = sum(task.ticks for task in own[index])
        moved = sum(task.ticks for task in own[index] if task.transfer)
        longest = max(own[index], key=lambda task: task.ticks)
        rows.append(
            (
                instance.pipelines[index].name,
                quantity(spent * tick, "s"),
                quantity(moved * tick, "s"),
                f"{100 * spent / total:.1f} %" if total else None,
                f"{longest.label.removeprefix(instance.pipelines[index].name + ' ')} on "
                f"{instance.devices[longest.device].name}",
            )
        )
    sentence = f"All latencies add up to {quantity(total * tick, 's')}; {rows[0][0]} takes the largest part."
    columns = ("pipeline", "latency", "on the radio", "share", "longest task")
    labels = {task.label for task in own[next(i for i in own if instance.pipelines[i].name == rows[0][0])]}
    lanes = [
        f"{device.name} {unit}" for device in instance.devices for unit in ("sensor", "mcu", "accelerator", "radio")
    ]
    bars = frozenset((f"{lane}{mark}", label) for lane in lanes for mark in ("", " (bottleneck)") for label in labels)
    return Binding(sentence, PlanTable(columns, tuple(rows), columns[1:4]), bars)


def relaxations(instance: Instance) -> list[Case]:
    """Faster radios, free sensing, more memory, shared operations, more devices, no common medium, no latency."""
    pipelines = [pipeline.model_dump() for pipeline in instance.pipelines]
    faster = [
        {
            **pipeline,
            "boundaries": [
                {
                    **cut,
                    "transmit": [-(-t // 2) for t in cut["transmit"]],
                    "receive": [-(-t // 2) for t in cut["receive"]],
                }
                for cut in pipeline["boundaries"]
            ],
        }
        for pipeline in pipelines
    ]
    found = relaxed(instance, "radios twice as fast", pipelines=faster)
    if instance.in_turn:
        found += relaxed(instance, "radios that do not share a medium", medium="links")
    if instance.latency_ns:
        found += relaxed(instance, "messages without latency", latency_ns=())
    if any(any(pipeline["sensing"]) for pipeline in pipelines):
        sensed = [{**pipeline, "sensing": [0 for _ in pipeline["sensing"]]} for pipeline in pipelines]
        found += relaxed(instance, "sensing takes no time", pipelines=sensed)
    larger = [
        {**device.model_dump(), **{r: min(2 * getattr(device, r), LARGEST) for r in RESOURCES}}
        for device in instance.devices
    ]
    found += relaxed(instance, "twice the memory", devices=larger)
    if not instance.sharing:
        found += relaxed(instance, "equal operations shared", sharing=True)
    for index, device in enumerate(instance.devices):
        if device.layers:
            found += _with_another(instance, index)
    return found


def _with_another(instance: Instance, index: int) -> list[Case]:
    """A second device like this one, without its sensors and interfaces, so that who may sense stays as it is."""
    own = instance.devices[index]
    added = {**own.model_dump(), "name": f"{own.name} (2)", "sensors": (), "interfaces": ()}

    def wider(row: Any) -> tuple[int, ...]:
        return (*row, row[index]) if row else ()

    pipelines = []
    for pipeline in instance.pipelines:
        data = pipeline.model_dump()
        data["sensing"] = wider(data["sensing"])
        for layer in data["layers"]:
            layer["inference"] = wider(layer["inference"])
        for cut in data["boundaries"]:
            for table in ("load", "unload", "transmit", "receive"):
                cut[table] = wider(cut[table])
        pipelines.append(data)
    boards = [*(device.model_dump() for device in instance.devices), added]
    late = late_between(instance, [*range(len(instance.devices)), index])
    return relaxed(instance, f"a second {own.name}", devices=boards, pipelines=pipelines, latency_ns=late)


def exchanges(instance: Instance, plan: Plan, other: Plan) -> list[Exchange]:
    """Pipeline by pipeline."""
    found = []
    for index, (before, after) in enumerate(zip(plan.pipelines, other.pipelines, strict=True)):
        if before != after:
            label = f"{instance.pipelines[index].name}: {_path(instance, before)} to {_path(instance, after)}"
            found.append(Exchange(label, _taking(index, after)))
    return found


def _taking(index: int, after: PipelinePlan) -> Callable[[Plan], Plan]:
    def take(p: Plan) -> Plan:
        return Plan(pipelines=tuple(after if k == index else each for k, each in enumerate(p.pipelines)))

    return take


def _path(instance: Instance, plan: PipelinePlan) -> str:
    parts = [f"{s.first}:{s.last} on {instance.devices[s.device].name}" for s in plan.segments]
    return ", ".join(parts)


EXPLAINER = Explainer(binding, relaxations, exchanges)
