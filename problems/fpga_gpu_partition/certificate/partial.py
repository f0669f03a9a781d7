"""Unfinished combinations of options: part of the writer, standard library only.

Of two unfinished combinations only the better is kept: where they agree in the sides of all tensors that are read later
or seen by other modules, and in what has been copied of them, and one is no later in any queue, tensor or copy and
needs no more energy, multipliers and M20K. Whatever options follow, both then move the same bytes; every end of a step
is a maximum of such times plus ticks that do not depend on them, so it is no later in the better one, nor is the
makespan, which the standby energy grows with.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import le
from typing import Any

QUEUES = ("gpu", "fpga", "link")


class Partial:
    """The first layers of a module under some options: sides, ends of queues, tensors and copies, what was used."""

    __slots__ = ("copied", "energy", "free", "home", "instance", "needs", "ready")

    def __init__(self, instance: dict[str, Any], home: dict[int, str]) -> None:
        self.instance, self.home = instance, home
        self.free = dict.fromkeys(QUEUES, 0)
        self.ready: dict[int, int] = {}
        self.copied: dict[tuple[int, int], tuple[int, int]] = {}  # bytes on the other side, since when
        self.energy, self.needs = 0, [0, 0]

    def copy(self) -> Partial:
        found = Partial(self.instance, dict(self.home))
        found.free, found.ready, found.copied = dict(self.free), dict(self.ready), dict(self.copied)
        found.energy, found.needs = self.energy, self.needs
        return found

    def run(self, queue: str, after: int, ticks: int, energy: int) -> int:
        self.free[queue] = max(after, self.free[queue]) + ticks
        self.energy += energy
        return self.free[queue]

    def move(self, after: int, size: int) -> int:
        link, tick = self.instance["link"], self.instance["tick_ns"]
        ticks = link["setup_ticks"] - (-size * 10**9 // (link["bytes_per_second"] * tick))
        return self.run("link", after, ticks, link["setup_energy"] - (-size * link["energy_per_mb"] // 10**6))

    def fetch(self, source: int, part: int, side: str, size: int) -> int:
        made = self.ready.get(source, 0)
        if size == 0 or self.home[source] == side:
            return made if size else 0
        held, since = self.copied.get((source, part), (0, 0))
        if size > held:
            since = self.move(made, size - held)
            self.copied[source, part] = (size, since)
        return since

    def values(self) -> tuple[int, ...]:
        """Latency, energy, multipliers, M20K."""
        makespan = max(self.free.values())
        standby = self.instance["standby_mw"] * self.instance["tick_ns"] * makespan
        return makespan, self.energy - (-standby // (1000 * self.instance["energy_unit_nj"])), *self.needs


def better(listed: Iterable[Partial], needed: set[int], seen: set[int]) -> list[Partial]:
    """Without those that another one makes needless, as the docstring argues."""
    groups: dict[Any, dict[tuple[int, ...], Partial]] = {}
    for each in listed:
        free, home = each.free, each.home
        each.ready = {i: t for i, t in each.ready.items() if i in needed}
        each.copied = {key: copy for key, copy in each.copied.items() if key[0] in needed}
        sides = tuple(sorted((i, side) for i, side in home.items() if i in needed or i in seen))
        copies = sorted((key, *copy) for key, copy in each.copied.items())
        # A tensor is used where it lies or on the link, a copy on the other side: not before these queues are free.
        ready = (max(t, min(free[home[i]], free["link"])) for i, t in each.ready.items())  # in the order of layers
        since = (max(t, free["gpu" if home[key[0]] == "fpga" else "fpga"]) for key, _, t in copies)
        times = (*free.values(), *ready, *since, each.energy, *each.needs)
        groups.setdefault((sides, tuple(copy[:2] for copy in copies)), {}).setdefault(times, each)
    return [group[times] for group in groups.values() for times in undominated(list(group))]


def undominated(listed: Sequence[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """Without values that another one reaches or undercuts in all; in lexicographic order."""
    kept: list[tuple[int, ...]] = []
    for values in sorted(set(listed)):
        for k, other in enumerate(kept):
            if all(map(le, other, values)):
                kept.insert(0, kept.pop(k))  # what is better than one is so than many
                break
        else:
            kept.append(values)
    return sorted(kept)
