"""The pipeline over time, as in Asteroid's Figs. 4(b) and 7: one lane per device and per link between stages."""

from __future__ import annotations

from mapgap.core import GanttBar, GanttLane
from mapgap.problems.hybrid_pipeline.evaluate import evaluate
from mapgap.problems.hybrid_pipeline.instance import Instance, Plan
from mapgap.problems.hybrid_pipeline.simulate import simulate

_GROUP = {"F": "FP", "B": "BP", "R": "AllReduce"}


def gantt(instance: Instance, plan: Plan) -> list[GanttLane]:
    """Lanes of the simulated 1F1B schedule (half duplex), in seconds; empty where the plan has no value.

    Devices stand in pipeline order, each link behind the stage that it leaves. Communication is all transfer.
    """
    if evaluate(instance, plan).objective is None:
        return []
    bars: dict[tuple[str, int], list[GanttBar]] = {}
    tick = instance.seconds_per_tick
    for task in simulate(instance, plan).tasks:
        if task.end == task.start:
            continue
        label = f"{task.kind}{task.micro_batch}" if task.kind != "R" else "AllReduce"
        start, end = task.start * tick, task.end * tick
        moved = end - start if task.where[0] == "link" or task.kind == "R" else 0.0
        bars.setdefault(task.where, []).append(GanttBar(start, end, label, _GROUP[task.kind], moved))
    lanes = []
    for p, stage in enumerate(plan.stages):
        for device in stage.devices:
            name = f"{instance.devices[device].name} (stage {p})"
            lanes.append(GanttLane(name, tuple(bars.get(("device", device), []))))
        if p + 1 < len(plan.stages):
            lanes.append(GanttLane(f"link {p}-{p + 1}", tuple(bars.get(("link", p), []))))
    return lanes
