"""A plan as tasks: 1F1B on every device, micro-batches over half-duplex links, AllReduce; and what a run measured."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any, Literal

from mapgap.core import Clock, Move, PlannedModel, PlannedStage, Quarters, Script, Task
from mapgap.core.clock import BACKWARD, FORWARD, Told, calibrated_source
from mapgap.problems.hybrid_pipeline.evaluate import crossing_bytes, crossing_ticks, evaluate, stage_allreduce
from mapgap.problems.hybrid_pipeline.instance import DeviceType, Instance, Plan, Quartiles, Table
from mapgap.problems.hybrid_pipeline.simulate import device_times, sequence, warm_up_forwards

Kind = Literal["F", "B"]
_PHASE, _GROUP = {"F": FORWARD, "B": BACKWARD}, {"F": "FP", "B": "BP"}


def models(instance: Instance, plan: Plan) -> tuple[PlannedModel]:
    """Layers and boards of the stages by name."""
    stages = tuple(
        PlannedStage(
            tuple(instance.layers[i].name for i in stage.rows),
            tuple((instance.devices[d].name, share) for d, share in zip(stage.devices, stage.shares, strict=True)),
        )
        for stage in plan.stages
    )
    return (PlannedModel(instance.name, plan.micro_batch, stages),)


def script(instance: Instance, plan: Plan, rounds: int) -> Script:
    """HPP-rounds one after the other, each as :mod:`.simulate` has it: rules 2, 3 and 12, links first come, first
    served.

    Tasks have the times that they have on links of their own, whatever the medium; the latency is that on the medium.
    """
    tasks: list[Task] = []
    ends: list[tuple[str, ...]] = []
    for r in range(rounds):
        found = _round(instance, plan, r, ends[-1] if ends else ())
        needed = {name for task in found for name in task.after}
        ends.append(tuple(task.name for task in found if task.name not in needed))
        tasks += found
    latency = evaluate(instance, plan).terms["latency_s"]
    return Script(tuple(tasks), tuple(ends), latency)


def _round(instance: Instance, plan: Plan, r: int, before: tuple[str, ...]) -> list[Task]:
    """The tasks of one round, which begins when another one has ended."""
    tick, micro_batches, last = instance.seconds_per_tick, instance.mini_batch // plan.micro_batch, len(plan.stages) - 1
    training, found = instance.execution.training, list[Task]()
    own_links = instance.model_copy(update={"medium": "links"})
    kinds: tuple[Kind, ...] = ("F", "B") if training else ("F",)
    names = [device.name for device in instance.devices]

    def on(kind: str, m: int, place: str) -> str:
        return f"{r}/{kind}{m}/{place}"

    for p, stage in enumerate(plan.stages):
        order = sequence(warm_up_forwards("ours", last - p, micro_batches), micro_batches)
        order = order if training else [("F", m) for m in range(micro_batches)]
        for d, share in zip(stage.devices, stage.shares, strict=True):
            times, own = device_times(instance, plan, p, d, share), before
            for kind, m in order:
                link = p - 1 if kind == "F" else p
                needs = (on(kind, m, f"link{link}"),) if 0 <= link < last else ()
                about = {"round": r, "stage": p, "micro_batch": m, "phase": _PHASE[kind], "share": share}
                name, lane, seconds = on(kind, m, names[d]), f"{names[d]} (stage {p})", times[kind] * tick
                found.append(Task(name, lane, _GROUP[kind], seconds, names[d], None, (*own, *needs), about))
                own = (name,)
    for p in range(last):
        front, back = plan.stages[p].devices, plan.stages[p + 1].devices
        _, d, e = min((instance.bandwidth[d][e], d, e) for d in front for e in back)
        paid = instance.execution.communication == "step"
        size = plan.micro_batch * crossing_bytes(instance, plan, p) if paid else 0
        seconds = crossing_ticks(instance, plan, p) * tick if paid else 0.0
        for kind in kinds:
            sender, receiver, members = (d, e, front) if kind == "F" else (e, d, back)
            move = Move(names[sender], names[receiver], size)
            for m in range(micro_batches):
                about = {"round": r, "stage": p, "micro_batch": m, "phase": _PHASE[kind]}
                ended = tuple(on(kind, m, names[member]) for member in members)
                lane = f"link {p}-{p + 1}"
                found.append(Task(on(kind, m, f"link{p}"), lane, _GROUP[kind], seconds, "", move, ended, about))
    for p, stage in enumerate(plan.stages):
        count = len(stage.devices)
        if count == 1 or not training or instance.execution.allreduce != "round":
            continue
        ended = tuple(on("B", micro_batches - 1, names[d]) for d in stage.devices)
        seconds = stage_allreduce(own_links, stage) * tick
        weights = sum(instance.layers[i].weight_bytes for i in stage.rows)
        size = instance.execution.allreduce_factor * (count - 1) * weights // count
        for k, d in enumerate(stage.devices):  # a ring
            about = {"round": r, "stage": p, "phase": "allreduce"}
            move = Move(names[d], names[stage.devices[(k + 1) % count]], size)
            lane = f"{names[d]} (stage {p})"
            found.append(Task(f"{r}/R/{names[d]}", lane, "AllReduce", seconds, "", move, ended, about))
    return found


def calibrated(instance: Instance, records: Sequence[Mapping[str, Any]]) -> tuple[Instance, list[Told]]:
    """The instance with measured times and bandwidths.

    What a stage took over what it should have taken is the factor of all its layers on that type of device: its median
    for the times, its quartiles for theirs. Layers that no stage ran there take those of all that the type ran, as a
    board that is slow at some layers is rarely fast at the others. Boards of one type share what was measured. A
    bandwidth is the median of what a pair of boards moved per second; pairs that moved nothing keep theirs, and so do
    groups of several boards that computed, as these move rows between all of them at a time.
    """
    plan = Plan.model_validate_json(json.dumps(records[0]["plan"]))
    types = {device.name: device.type for device in instance.devices}
    place = {device.name: d for d, device in enumerate(instance.devices)}
    several = set[int]()
    if records[0].get("how") == "computed":
        several = {p for p in range(len(plan.stages) - 1) if any(len(s.devices) > 1 for s in plan.stages[p : p + 2])}
    factors: dict[tuple[int, str], dict[int, list[float]]] = {}
    rates: dict[tuple[int, int], list[float]] = {}
    for record in records[1:]:
        if record["seconds"] <= 0:
            continue
        if record.get("board") and record["model_s"] > 0:
            stages = factors.setdefault((types[record["board"]], record["phase"]), {})
            stages.setdefault(record["stage"], []).append(record["seconds"] / record["model_s"])
        elif record.get("bytes") and record["phase"] != "allreduce" and record["stage"] not in several:
            a, b = sorted(place[record[side]] for side in ("sender", "receiver"))
            late = instance.latency_ns[a][b] * 1e-9 if instance.latency_ns else 0.0
            if record["seconds"] > late:
                rates.setdefault((a, b), []).append(record["bytes"] / (record["seconds"] - late))
    told: list[Told] = []
    kinds = list(instance.types)
    for t, kind in enumerate(instance.types):
        measured = {phase: factors[t, phase] for phase in (FORWARD, BACKWARD) if (t, phase) in factors}
        if not measured:
            continue
        kinds[t] = _measured(kind, plan, measured)
        for phase, by_stage in measured.items():
            told += [
                (f"{kind.name}: {phase} of stage {p}", Quarters.of(found), "times") for p, found in by_stage.items()
            ]
    bandwidth = [list(row) for row in instance.bandwidth]
    for (a, b), found in sorted(rates.items()):
        bandwidth[a][b] = bandwidth[b][a] = max(1, round(median(found)))
        told.append((f"{instance.devices[a].name} to {instance.devices[b].name}", Quarters.of(found), "B/s"))
    changed = instance.changed(
        types=tuple(kinds),
        bandwidth=tuple(map(tuple, bandwidth)),
        source=calibrated_source(instance.source, told),
    )
    return changed, told


def _measured(kind: DeviceType, plan: Plan, measured: Mapping[str, Mapping[int, Sequence[float]]]) -> DeviceType:
    """A type with the times of a phase (medians, lower and upper quartiles) by what its stages took."""
    tables: dict[str, Table] = {}
    for phase in (FORWARD, BACKWARD):
        old: Table = getattr(kind, phase)
        by_stage = {p: Quarters.of(found) for p, found in measured.get(phase, {}).items()}
        every = Quarters.of([ratio for found in measured.get(phase, {}).values() for ratio in found] or [1.0])
        of_layer = {i: by_stage.get(p, every) for p, stage in enumerate(plan.stages) for i in stage.rows}
        for name, pick in (("", "middle"), ("_lower", "low"), ("_upper", "high")):
            tables[phase + name] = tuple(
                tuple(round(ticks * getattr(of_layer[i], pick)) for ticks in row) for i, row in enumerate(old)
            )
    around = {name: table for name, table in tables.items() if "_" in name}
    return DeviceType(
        name=kind.name,
        memory=kind.memory,
        forward=tables[FORWARD],
        backward=tables[BACKWARD],
        quartiles=Quartiles(**around),
    )


CLOCK = Clock(script, "on_device", models, calibrated)
