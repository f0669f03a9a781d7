"""Event-driven simulation of one HPP-round on the level of devices: what the closed form approximates.

Every device works through a fixed sequence of forward and backward passes with its own times ``F_d``, ``B_d`` of its
share. A micro-batch crosses a cut when all members of the group have finished it; the link between two stages carries
one micro-batch at a time (half duplex) or one in each direction (full duplex), first come, first served. Members of the
last stage turn back alone, since both passes of a sample are on one device (Sec. 4). AllReduce follows the last
backward pass of the group. Nothing else takes time.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from typing import Literal

from mapgap.problems.hybrid_pipeline.evaluate import crossing_ticks, stage_allreduce
from mapgap.problems.hybrid_pipeline.instance import Instance, Plan

Policy = Literal["ours", "a", "b", "c", "gpipe"]
Duplex = Literal["half", "full"]


@dataclass(frozen=True)
class Task:
    """One bar of the schedule: ``[start, end)`` ticks on a device (``F``, ``B``, ``R``) or a link (``F``, ``B``).

    ``where`` is ``("device", index)`` or ``("link", stage in front of it)``; an AllReduce ``R`` has micro-batch -1.
    """

    where: tuple[str, int]
    kind: Literal["F", "B", "R"]
    micro_batch: int
    start: int
    end: int


@dataclass(frozen=True)
class Schedule:
    """All tasks by start, and the end of the last one in ticks."""

    tasks: tuple[Task, ...]
    latency: int


def warm_up_forwards(policy: Policy, stages_behind: int, micro_batches: int) -> int:
    """K_p of Sec. 5.4 with ``P - p - 1`` stages behind stage p: (a) 2 (P - p), (b) P - p, (c) 2 (P - p) + 1, ours
    2 (P - p) - 1, at most M; with GPipe's order all M forward passes come first."""
    left = stages_behind + 1
    kept = {"ours": 2 * left - 1, "a": 2 * left, "b": left, "c": 2 * left + 1, "gpipe": micro_batches}[policy]
    return min(kept, micro_batches)


def sequence(kept: int, micro_batches: int) -> list[tuple[Literal["F", "B"], int]]:
    """K forward passes, then one backward and one forward in turn (1F1B), then the remaining backward passes."""
    order: list[tuple[Literal["F", "B"], int]] = [("F", m) for m in range(kept)]
    for m in range(micro_batches):
        order.append(("B", m))
        if kept + m < micro_batches:
            order.append(("F", kept + m))
    return order


class _Simulation:
    """State of one run; ``heap`` holds (time, order of creation, resource) of tasks that end."""

    def __init__(self, instance: Instance, plan: Plan, policy: Policy, duplex: Duplex) -> None:
        self.instance, self.plan, self.duplex = instance, plan, duplex
        self.micro_batches = instance.mini_batch // plan.micro_batch
        last = len(plan.stages) - 1
        self.tasks: list[Task] = []
        self.times: dict[int, dict[str, int]] = {}
        self.queue: dict[int, list[tuple[Literal["F", "B"], int]]] = {}
        self.stage_of: dict[int, int] = {}
        for p, stage in enumerate(plan.stages):
            kept = warm_up_forwards(policy, last - p, self.micro_batches)
            order = sequence(kept, self.micro_batches)
            if not instance.execution.training:
                order = [("F", m) for m in range(self.micro_batches)]
            for device, share in zip(stage.devices, stage.shares, strict=True):
                self.times[device] = device_times(instance, plan, p, device, share)
                self.queue[device] = order[::-1]
                self.stage_of[device] = p
        self.link_ticks = [
            0 if instance.execution.communication == "load" else crossing_ticks(instance, plan, p)
            for p in range(len(plan.stages) - 1)
        ]
        self.ready: set[tuple[int, str, int]] = {(0, "F", m) for m in range(self.micro_batches)}  # (stage, kind, m)
        self.missing: dict[tuple[int, str, int], int] = {}  # members that have not finished a pass
        self.waiting: dict[tuple[int, str], list[tuple[int, str, int]]] = {}  # (link, lane): ready since, kind, m
        self.busy: set[tuple[str, int, str]] = set()
        self.heap: list[tuple[int, int, Task]] = []

    def run(self) -> Schedule:
        now = 0
        self._dispatch(now)
        while self.heap:
            now = self.heap[0][0]
            while self.heap and self.heap[0][0] == now:
                task = heapq.heappop(self.heap)[2]
                self._finish(task, now)
            self._dispatch(now)
        self._allreduce()
        self.tasks.sort(key=lambda task: (task.start, task.where, task.end))
        return Schedule(tuple(self.tasks), max(task.end for task in self.tasks))

    def _lane(self, kind: str) -> str:
        return kind if self.duplex == "full" else "both"

    def _link(self, p: int, lane: str) -> tuple[str, int, str]:
        """What a transfer needs for itself; all of them the same on one medium."""
        return ("link", -1, "both") if self.instance.in_turn else ("link", p, lane)

    def _begin(self, where: tuple[str, int], lane: str, kind: Literal["F", "B"], m: int, now: int, ticks: int) -> None:
        task = Task(where, kind, m, now, now + ticks)
        self.tasks.append(task)
        self.busy.add(self._link(where[1], lane) if where[0] == "link" else (*where, lane))
        heapq.heappush(self.heap, (task.end, len(self.tasks), task))

    def _dispatch(self, now: int) -> None:
        """Start whatever can start."""
        for device, queue in self.queue.items():
            p = self.stage_of[device]
            if not queue or ("device", device, "both") in self.busy:
                continue
            kind, m = queue[-1]
            own = kind == "B" and p == len(self.plan.stages) - 1  # its own forward pass stood before it in the queue
            if own or (p, kind, m) in self.ready:
                queue.pop()
                self._begin(("device", device), "both", kind, m, now, self.times[device][kind])
        links = list(self.waiting.items())
        if self.instance.in_turn:  # first come, first served on the one medium
            links.sort(key=lambda link: link[1][:1] or [(now + 1, "", 0)])
        for (p, lane), waiting in links:
            if waiting and self._link(p, lane) not in self.busy:
                _, name, m = heapq.heappop(waiting)
                self._begin(("link", p), lane, "F" if name == "F" else "B", m, now, self.link_ticks[p])

    def _finish(self, task: Task, now: int) -> None:
        """Free the resource; pass the micro-batch on when the whole group has it."""
        place, index = task.where
        kind, m = task.kind, task.micro_batch
        if place == "link":
            self.busy.discard(self._link(index, self._lane(kind)))
            self.ready.add((index + 1 if kind == "F" else index, kind, m))
            return
        self.busy.discard((place, index, "both"))
        p = self.stage_of[index]
        key = (p, kind, m)
        self.missing[key] = self.missing.get(key, len(self.plan.stages[p].devices)) - 1
        if self.missing[key]:
            return
        if kind == "F" and p < len(self.plan.stages) - 1:
            heapq.heappush(self.waiting.setdefault((p, self._lane("F")), []), (now, "F", m))
        elif kind == "B" and p > 0:
            heapq.heappush(self.waiting.setdefault((p - 1, self._lane("B")), []), (now, "B", m))

    def _allreduce(self) -> None:
        """T_a after the last backward pass of each group; on one medium in turns, those of later stages first."""
        free = 0
        for stage in reversed(self.plan.stages):
            if len(stage.devices) == 1 or self.instance.execution.allreduce != "round":
                continue
            members = {("device", device) for device in stage.devices}
            end = max(task.end for task in self.tasks if task.where in members)
            ticks = stage_allreduce(self.instance, stage)
            if self.instance.in_turn:
                end = max(end, free)
                free = end + ticks
            self.tasks += [Task(("device", device), "R", -1, end, end + ticks) for device in stage.devices]


def device_times(instance: Instance, plan: Plan, p: int, device: int, share: int) -> dict[str, int]:
    """Forward and backward ticks of a member, with the transfers and the AllReduce that the execution makes part of
    them (those of the whole group)."""
    stage, kind = plan.stages[p], instance.device_type(device)
    rows, execution = stage.rows, instance.execution
    forward = sum(kind.forward[i][share - 1] for i in rows) if share else 0
    backward = sum(kind.backward[i][share - 1] for i in rows) if share and execution.training else 0
    if execution.communication == "load":
        moved = sum(crossing_ticks(instance, plan, cut) for cut in (p - 1, p) if 0 <= cut < len(plan.stages) - 1)
        forward += moved
        backward += moved if execution.training else 0
    if execution.allreduce != "round":
        backward += stage_allreduce(instance, stage)
    return {"F": forward, "B": backward}


def simulate(instance: Instance, plan: Plan, policy: Policy = "ours", duplex: Duplex = "half") -> Schedule:
    """Simulate one HPP-round of a plan whose structure is valid; memory is not looked at."""
    return _Simulation(instance, plan, policy, duplex).run()


def peak_memory(instance: Instance, plan: Plan, policy: Policy = "ours") -> dict[str, int]:
    """Eq. (3) per device (by name, memory units) with the K_p of a policy, as in Fig. 15(b)."""
    micro_batches = instance.mini_batch // plan.micro_batch
    found = {}
    for p, stage in enumerate(plan.stages):
        kept = warm_up_forwards(policy, len(plan.stages) - 1 - p, micro_batches) if instance.execution.training else 1
        layers = [instance.layers[i] for i in stage.rows]
        state = sum(layer.state_memory for layer in layers)
        stored = sum(layer.activation_memory for layer in layers)
        for device, share in zip(stage.devices, stage.shares, strict=True):
            found[instance.devices[device].name] = state + kept * share * stored
    return found
