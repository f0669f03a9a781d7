"""A plan as tasks: several rounds in flight, and every unit of a device serves who came first."""

from __future__ import annotations

from mapgap.core import Clock, Move, Script, Task
from mapgap.problems.multi_model_splitting.evaluate import Key, loads, tasks
from mapgap.problems.multi_model_splitting.instance import Instance, PipelinePlan, Plan

IN_FLIGHT = 4
"""Rounds that have begun and not ended at a time: the cycle time of rule 5 is that of busy units."""


def script(instance: Instance, plan: Plan, rounds: int) -> Script:
    """The tasks of Sec. 5.4.1 of so many rounds. A transmission moves the bytes; the reception is waited for."""
    names, tick = [device.name for device in instance.devices], instance.seconds_per_tick
    found: dict[tuple[int, Key], Task] = {}
    ends: list[tuple[str, ...]] = []
    for r in range(rounds):
        last = []
        for index, decisions in enumerate(plan.pipelines):
            before: tuple[str, ...] = ends[r - IN_FLIGHT] if r >= IN_FLIGHT else ()
            boundaries = iter(_crossed(instance, index, decisions))
            for task in tasks(instance, index, decisions):
                move = None
                if task.key[0] == "transmit":
                    size = instance.pipelines[index].boundaries[next(boundaries)].bytes
                    move = Move(names[task.key[1]], names[task.key[2]], size)
                if (r, task.key) not in found:  # what is shared is done once (rule 9)
                    lane, group = f"{names[task.device]} {task.unit}", instance.pipelines[index].name
                    board = "" if move else names[task.device]
                    about = {"round": r, "pipeline": group, "what": task.label.removeprefix(f"{group} ")}
                    name = f"{r}/{task.label}/{names[task.device]}"
                    found[r, task.key] = Task(name, lane, group, task.ticks * tick, board, move, before, about)
                before = (found[r, task.key].name,)
            last.append(before[0])
        ends.append(tuple(last))
    cycle = max(loads(instance, plan).values()) * tick
    return Script(tuple(found.values()), tuple(ends), cycle, in_flight=IN_FLIGHT)


def _crossed(instance: Instance, index: int, plan: PipelinePlan) -> list[int]:
    """Boundaries that are moved, in order (rule 3)."""
    places = [plan.source, *(segment.device for segment in plan.segments), plan.target]
    firsts = [*(segment.first for segment in plan.segments), len(instance.pipelines[index].layers)]
    return [b for b, here, there in zip(firsts, places, places[1:], strict=False) if here != there]


CLOCK = Clock(script)
