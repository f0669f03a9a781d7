"""A plan as a chart: what every unit does in one cycle."""

from __future__ import annotations

from mapgap.core import GanttBar, GanttLane
from mapgap.problems.multi_model_splitting.evaluate import MEDIUM, Key, loads, place_name, tasks
from mapgap.problems.multi_model_splitting.instance import Instance, Plan


def gantt(instance: Instance, plan: Plan) -> list[GanttLane]:
    """One lane per unit of a device that works, the load of one cycle from its begin, in seconds.

    In steady state the units work on different inferences (Sec. 5.4.2): the tasks of a lane stand one after the other
    and the longest lane, the bottleneck, is the cycle time. The plan must have a value.
    """
    load, tick = loads(instance, plan), instance.seconds_per_tick
    cycle = max(load.values())
    bars: dict[tuple[int, str], list[GanttBar]] = {place: [] for place in load}
    end = dict.fromkeys(load, 0)
    seen: set[Key] = set()
    for index, decisions in enumerate(plan.pipelines):
        for task in tasks(instance, index, decisions):
            if task.key in seen or task.ticks == 0:
                continue
            seen.add(task.key)
            group = instance.pipelines[index].name
            moved = task.ticks * tick if task.transfer else 0.0
            for place in [(task.device, task.unit)] + [MEDIUM] * (MEDIUM in load and task.key[0] == "transmit"):
                begin, end[place] = end[place], end[place] + task.ticks
                bars[place].append(GanttBar(begin * tick, end[place] * tick, task.label, group, moved))
    lanes = []
    for place, found in bars.items():
        mark = " (bottleneck)" if load[place] == cycle else ""
        if found:
            lanes.append(GanttLane(f"{place_name(instance, place)}{mark}", tuple(found)))
    return lanes
