"""What the combinations of options of a module cost: part of the writer, standard library only.

Combinations are built layer by layer, and of two unfinished ones only the better is kept: where they agree in the sides
of all tensors that are read later or seen by other modules, and in what has been copied of them, and one is no later
in any queue, tensor or copy and needs no more energy, multipliers and M20K. Whatever options follow, both then move the
same bytes; every end of a step is a maximum of such times plus ticks that do not depend on them, so it is no later in
the better one, nor is the makespan, which the standby energy grows with.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import product
from operator import le
from typing import Any

INPUT = -1
QUEUES = ("gpu", "fpga", "link")


class Facts:
    """What the combinations of options of one module cost."""

    def __init__(self, instance: dict[str, Any]) -> None:
        self.instance = instance
        self.layers = [layer for module in instance["modules"] for layer in module["layers"]]
        self.module = [m for m, module in enumerate(instance["modules"]) for _ in module["layers"]]
        read = {r["source"] for layer in self.layers for r in layer["reads"]}
        self.outputs = set(range(len(self.layers))) - read
        #: Per module the layers whose side matters beyond one module: read from earlier ones, or by later ones.
        shared = {
            r["source"]
            for i, layer in enumerate(self.layers)
            for r in layer["reads"]
            if r["source"] != INPUT and self.module[r["source"]] != self.module[i]
        }
        self.seen = []
        for m in range(len(instance["modules"])):
            mine = [i for i in range(len(self.layers)) if self.module[i] == m]
            outside = {r["source"] for i in mine for r in self.layers[i]["reads"]} & shared - set(mine)
            self.seen.append(sorted(outside) + [i for i in mine if i in shared])

    def combinations(self, m: int) -> list[tuple[tuple[str, ...], tuple[int, ...]]]:
        """``(sides of seen layers, (latency, energy, multipliers, M20K))``, without those that are no better."""
        mine = [i for i in range(len(self.layers)) if self.module[i] == m]
        outside, inside = ([i for i in self.seen[m] if (i in mine) is own] for own in (False, True))
        found = []
        for where in product(("gpu", "fpga"), repeat=len(outside)):
            partial = [Partial(self.instance, {INPUT: "gpu", **dict(zip(outside, where, strict=True))})]
            for k, i in enumerate(mine):
                needed = {r["source"] for j in mine[k + 1 :] for r in self.layers[j]["reads"]} | self.outputs
                extended = [self.step(each, i, option) for each in partial for option in self.layers[i]["options"]]
                partial = better(extended, needed, set(inside))
            for each in partial:
                for i in mine:
                    for part, size in enumerate(self.layers[i]["outputs"] if i in self.outputs else ()):
                        each.fetch(i, part, "gpu", size)
            for sides in product(*(dict.fromkeys(o["home"] for o in self.layers[i]["options"]) for i in inside)):
                listed = [
                    each.values()
                    for each in partial
                    if all(each.home[i] == s for i, s in zip(inside, sides, strict=True))
                ]
                found += [((*where, *sides), values) for values in undominated(listed)]
        return found

    def step(self, before: Partial, i: int, option: dict[str, Any]) -> Partial:
        """A combination with an option for one more layer (rules 2, 6, 8, 10 to 12)."""
        found, layer = before.copy(), self.layers[i]
        ends, there = [0], {}
        for side in ("gpu", "fpga"):
            if option["kind"] in (side, "split"):
                sizes = option[f"{side}_reads"] if option["kind"] == "split" else map(self.size, layer["reads"])
                reads = zip(layer["reads"], sizes, strict=True)
                there[side] = max(found.fetch(r["source"], r["part"], side, size) for r, size in reads)
        for side, after in there.items():
            done = found.run(side, after, option[f"{side}_ticks"], option[f"{side}_energy"])
            if option["home"] != side and option[f"{side}_makes"]:
                done = found.move(done, option[f"{side}_makes"])
            ends.append(done)
        found.ready[i], found.home[i] = max(ends), option["home"]
        found.needs = [found.needs[0] + option["multipliers"], found.needs[1] + option["m20k"]]
        return found

    def size(self, read: dict[str, Any]) -> int:
        """Bytes that a layer reads of a tensor."""
        if read["bytes"] is not None:
            return int(read["bytes"])
        if read["source"] == INPUT:
            return int(self.instance["input_bytes"])
        return int(self.layers[read["source"]]["outputs"][read["part"]])


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
