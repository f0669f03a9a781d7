"""A plan as tasks: several rounds in flight, and every unit of a device serves who came first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mapgap.core import Clock, Move, PlannedModel, PlannedStage, Quarters, Script, Task
from mapgap.core.clock import Told, calibrated_source
from mapgap.problems.multi_model_splitting.evaluate import Key, loads, tasks
from mapgap.problems.multi_model_splitting.instance import Instance, PipelinePlan, Plan

IN_FLIGHT = 4
"""Rounds that have begun and not ended at a time: the cycle time of rule 5 is that of busy units."""


def script(instance: Instance, plan: Plan, rounds: int, in_flight: int = IN_FLIGHT) -> Script:
    """The tasks of Sec. 5.4.1 of so many rounds. A transmission moves the bytes; the reception is waited for."""
    names, tick = [device.name for device in instance.devices], instance.seconds_per_tick
    found: dict[tuple[int, Key], Task] = {}
    ends: list[tuple[str, ...]] = []
    for r in range(rounds):
        last = []
        for index, decisions in enumerate(plan.pipelines):
            before: tuple[str, ...] = ends[r - in_flight] if r >= in_flight else ()
            boundaries = iter(_crossed(instance, index, decisions))
            for task in tasks(instance, index, decisions):
                move = None
                if task.key[0] == "transmit":
                    size = instance.pipelines[index].boundaries[next(boundaries)].bytes
                    move = Move(names[task.key[1]], names[task.key[2]], size)
                if (r, task.key) not in found:  # what is shared is done once (rule 9)
                    lane, group = f"{names[task.device]} {task.unit}", instance.pipelines[index].name
                    board = "" if move else names[task.device]
                    what = task.label.removeprefix(f"{group} ")
                    about = {"round": r, "pipeline": group, "kind": task.key[0], "what": what}
                    name = f"{r}/{task.label}/{names[task.device]}"
                    found[r, task.key] = Task(name, lane, group, task.ticks * tick, board, move, before, about)
                before = (found[r, task.key].name,)
            last.append(before[0])
        ends.append(tuple(last))
    cycle = max(loads(instance, plan).values()) * tick
    return Script(tuple(found.values()), tuple(ends), cycle, in_flight=in_flight)


def _crossed(instance: Instance, index: int, plan: PipelinePlan) -> list[int]:
    """Boundaries that are moved, in order (rule 3)."""
    places = [plan.source, *(segment.device for segment in plan.segments), plan.target]
    firsts = [*(segment.first for segment in plan.segments), len(instance.pipelines[index].layers)]
    return [b for b, here, there in zip(firsts, places, places[1:], strict=False) if here != there]


def models(instance: Instance, plan: Plan) -> tuple[PlannedModel, ...]:
    """The segments of every pipeline by name, one sample at a time."""
    names = [device.name for device in instance.devices]
    found = []
    for pipeline, decisions in zip(instance.pipelines, plan.pipelines, strict=True):
        stages = tuple(
            PlannedStage(
                tuple(layer.name for layer in pipeline.layers[segment.first : segment.last]),
                ((names[segment.device], 1),),
            )
            for segment in decisions.segments
        )
        found.append(PlannedModel(pipeline.name, 1, stages, names[decisions.source], names[decisions.target]))
    return tuple(found)


def calibrated(instance: Instance, records: Sequence[Mapping[str, Any]]) -> tuple[Instance, list[Told]]:
    """The instance with measured times: what tasks of a kind took on a device over what they should have taken, its
    median, is the factor of all tasks of that kind there, as models that share operations have one table. Latencies
    stay as they are, and are in neither."""
    place = {device.name: d for d, device in enumerate(instance.devices)}
    ratios: dict[tuple[str, int], list[float]] = {}
    for record in records[1:]:
        where, late = place[record.get("board") or record["sender"]], 0.0
        if "receiver" in record:
            late = instance.late_ticks(where, place[record["receiver"]]) * instance.seconds_per_tick
        if record["model_s"] > late:
            ratio = max(0.0, record["seconds"] - late) / (record["model_s"] - late)
            ratios.setdefault((record["kind"], where), []).append(ratio)
    found = {key: Quarters.of(each) for key, each in sorted(ratios.items())}

    def times(kind: str, table: Sequence[int]) -> tuple[int, ...]:
        return tuple(round(t * found[kind, d].middle) if (kind, d) in found else t for d, t in enumerate(table))

    kinds = ("load", "unload", "transmit", "receive")
    pipelines = tuple(
        pipeline.model_copy(
            update={
                "sensing": times("sense", pipeline.sensing),
                "layers": tuple(
                    layer.model_copy(update={"inference": times("infer", layer.inference)}) for layer in pipeline.layers
                ),
                "boundaries": tuple(
                    cut.model_copy(update={kind: times(kind, getattr(cut, kind)) for kind in kinds})
                    for cut in pipeline.boundaries
                ),
            }
        )
        for pipeline in instance.pipelines
    )
    told = [(f"{instance.devices[d].name}: {kind}", each, "times") for (kind, d), each in found.items()]
    return instance.changed(pipelines=pipelines, source=calibrated_source(instance.source, told)), told


CLOCK = Clock(script, staging=models, calibrating=calibrated)
