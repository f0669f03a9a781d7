"""A plan's tasks replayed event by event on links of its own, on ports, or on one medium; independent of evaluators.

Interpretation
--------------
1.  A transfer takes as long as the model says, at the full rate of its link, and is not interrupted.
2.  ``links``: only the lane of the task is taken, as the problems have it; every pair of boards has a link of its own.
    ``ports``: a transfer also takes the way out of its sender and the way in of its receiver (a switch, full duplex).
    ``shared``: a transfer also takes the one medium that all boards have (a bus, a radio channel).
3.  Whenever something ends, tasks begin whose lanes, ports and medium are free: first those that became ready first,
    of those that became ready together the first of the script.
4.  Where groups of boards exchange rows, the pair with the slowest link stands for them, as in the script.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from heapq import heappop, heappush
from typing import Literal, get_args

from mapgap.clock.trace import measured
from mapgap.core import InputError, Script, Task

Medium = Literal["links", "ports", "shared"]
MEDIA: tuple[Medium, ...] = get_args(Medium)
SAME = 1 + 1e-12
"""Ends that differ by rounding only are one moment."""
LATER, LEAST = 8, 3
"""Rounds of a run, over those in flight, if nobody says how many; and at least."""
CLOSE, MOST = 0.01, 16


def ends(script: Script, medium: Medium = "links") -> dict[str, float]:
    """When every task ends, in seconds."""
    left = [len(set(task.after)) for task in script.tasks]
    behind: dict[str, list[int]] = {}
    for k, task in enumerate(script.tasks):
        for name in set(task.after):
            behind.setdefault(name, []).append(k)
    taken = [_taken(task, medium) for task in script.tasks]
    waiting = [(0.0, k) for k, count in enumerate(left) if not count]
    busy, running, found, now = set[Hashable](), list[tuple[float, int]](), dict[str, float](), 0.0
    while waiting or running:
        kept = []
        for since, k in sorted(waiting):
            if busy.isdisjoint(taken[k]):
                busy |= taken[k]
                heappush(running, (now + script.tasks[k].seconds, k))
            else:
                kept.append((since, k))
        waiting = kept
        now = running[0][0]
        while running and running[0][0] <= now * SAME:
            _, k = heappop(running)
            busy -= taken[k]
            found[script.tasks[k].name] = now
            for each in behind.get(script.tasks[k].name, ()):
                left[each] -= 1
                if not left[each]:
                    waiting.append((now, each))
    assert len(found) == len(script.tasks)
    return found


def _taken(task: Task, medium: Medium) -> frozenset[Hashable]:
    """What a task needs for itself while it lasts."""
    needed: set[Hashable] = {task.lane}
    if task.move is not None and task.move.bytes and task.seconds:
        if medium == "ports":
            needed |= {("out", task.move.sender), ("in", task.move.receiver)}
        elif medium == "shared":
            needed.add("medium")
    return frozenset(needed)


def full(script: Callable[[int, int], Script], rounds: int | None = None, medium: Medium = "links") -> Script:
    """A plan whose rounds overlap (``script(rounds, in_flight)``), so many that its busiest lane is always busy.

    The fewest with which the replay on the medium takes what the model says, within :data:`CLOSE`; where no number up
    to :data:`MOST` does, or so many rounds are too few, the one that comes closest.
    """
    tried = []
    for in_flight in range(1, MOST + 1):
        found = script(rounds or LATER * in_flight + 1, in_flight)
        if len(found.rounds) > LEAST * in_flight:
            apart = abs(round_s(found, medium) - found.seconds)
            tried.append((apart, in_flight, found))
            if apart <= CLOSE * found.seconds:
                break
    if not tried:
        raise InputError(f"--rounds: expected at least {LEAST + 1} of rounds that overlap, found {rounds}")
    return min(tried)[2]


def round_s(script: Script, medium: Medium = "links") -> float:
    """Seconds of a round; of rounds that overlap there have to be enough (:func:`full`)."""
    found = ends(script, medium)
    records = [
        {"task": task.name, "start": end - task.seconds, "end": end}
        for task, end in ((task, found[task.name]) for task in script.tasks)
    ]
    return measured(script, records)
