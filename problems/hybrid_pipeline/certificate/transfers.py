"""Groups of devices, and what is moved between them: part of the checker, standard library only."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from itertools import accumulate, product
from operator import add, sub
from typing import Any

from .cuts import Cuts
from .facts import FACTS, alike, branches, holdings, rules
from .links import Link, in_turn, link, worst

Group = tuple[int, ...]  # devices by class


def sums(rows: Sequence[Sequence[int]]) -> list[list[int]]:
    """Sums of the rows before each row, and of all rows."""
    return list(accumulate(rows, lambda total, row: list(map(add, total, row)), initial=[0] * len(rows[0])))


def parts(devices: Group, most: int) -> Iterator[tuple[Group, Group]]:
    """Every group of at least one and at most so many of the devices, and the others."""
    for group in product(*(range(min(n, most) + 1) for n in devices)):
        if 0 < sum(group) <= most:
            yield group, tuple(map(sub, devices, group))


class Transfers:
    """Of micro-batches of one size, weights and gradients."""

    def __init__(self, instance: dict[str, Any], batch: int) -> None:
        self.instance, self.batch, self.tick = instance, batch, int(instance["tick_ns"])
        self.held, self.classes, self.rules = holdings(instance), alike(instance), rules(instance)
        self.turns, self.every_step = in_turn(instance), bool(self.rules["allreduce"] != "round")
        self.kinds = [int(instance["devices"][same[0]]["type"]) for same in self.classes]
        self.cuts = Cuts(instance) if branches(instance) else None
        self.sums = sums if self.cuts is None else self.cuts.sums
        layers = instance["layers"]
        self.last = len(layers) if self.cuts is None else len(self.cuts.sets) - 1
        self.state, self.stored, self.weights, _ = zip(
            *self.sums([[layer[x] for x in FACTS] for layer in layers]), strict=True
        )
        # By cut, bytes per sample.
        self.behind = (
            [0, *(layer["output_bytes"] for layer in layers)]
            if self.cuts is None
            else list(map(self.cuts.known, self.cuts.sets))
        )
        for method in (self.allreduce, self.fetching, self.links, self.paid):
            setattr(self, method.__name__, cache(method))

    def ticks(self, size: int, bandwidth: int, parts: int = 1, late: int = 0) -> int:
        """Ticks of a transfer of ``size / parts`` bytes and so many nanoseconds, rounded up; 0 of no bytes."""
        return -(-(size * 10**9 + late * parts * bandwidth) // (parts * bandwidth * self.tick)) if size else 0

    def crossing(self, cut: int, over: Link, links: int = 1) -> int:
        """Ticks of a micro-batch over a cut, one way (rule 2), in equal parts over so many links (rule 12)."""
        return self.ticks(self.batch * self.behind[cut], over[0], links, over[1])

    def load(self, i: int, j: int, group: Group) -> tuple[int, int]:
        """Ticks that transfers add to Ef and to Eb of a stage (rules 12, 16); all links are equal then."""
        how = self.rules["communication"]
        if how not in ("load", "tensors") or len(self.instance["devices"]) < 2:
            return 0, 0
        over = link(self.instance, 0, 1)
        if how == "load":
            both = [sum(self.crossing(cut, over) for cut in (i, j) if 0 < cut < self.last)] * 2
        else:
            hosts = (self.instance.get("graph") or {}).get("hosts", [])
            pays = all(self.kinds[c] not in hosts for c, n in enumerate(group) if n)
            both = [pays * self.ticks(self.batch * size, over[0]) for size in self.paid(i, j)]
        return both[0], both[1] * self.rules["training"]

    def paid(self, i: int, j: int) -> list[int]:
        """Bytes per sample of tensors and of gradients that a stage makes for others or reads from them (rule 16)."""
        assert self.cuts is not None
        inside = self.cuts.sets[j] & ~self.cuts.sets[i]
        return [self.cuts.known(inside, way) for way in range(2)]

    def allreduce(self, i: int, j: int, group: Group) -> int:
        """Ticks of one AllReduce (Eq. 5, rule 12); none in inference."""
        members = [d for c, n in enumerate(group) for d in self.classes[c][:n]]
        m = len(members)
        if m == 1 or not self.rules["training"]:
            return 0
        slowest, late = worst(link(self.instance, d, e) for d in members for e in members if d != e)
        weights = int(self.weights[j] - self.weights[i])
        among = m ** ((not self.turns and self.rules["medium"] == "links") + (self.rules["allreduce"] == "rotating"))
        moved: int = self.rules["allreduce_factor"] * (m - 1) * (weights * 10**9 + m * late * slowest)
        return -(-moved // (among * slowest * self.tick)) if weights else 0

    def taken(self, i: int, j: int, group: Group) -> int:
        """Ticks of one medium that a micro-batch takes for a stage, but for the step behind it (rule 18)."""
        crossing = sum(self.load(j, self.last, group)) if j < self.last else 0
        return crossing * self.turns + self.allreduce(i, j, group) * (self.turns and self.every_step)

    def migration(self, i: int, j: int, group: Group) -> int:
        """Ticks until all members hold the weights of a stage (rule 11); 0 without a failure."""
        return max(self.fetching(i, j, c) for c, n in enumerate(group) if n) if self.instance["replanning"] else 0

    def fetching(self, i: int, j: int, c: int) -> int:
        """Ticks of one member."""
        device, links = self.classes[c][0], self.instance["bandwidth"]
        received: dict[int, int] = {}
        for layer in set(range(i, j)) - self.held[device]:
            source = max((d for d, held in enumerate(self.held) if layer in held), key=lambda d: (links[d][device], -d))
            received[source] = received.get(source, 0) + self.instance["layers"][layer]["weight_bytes"]
        return max((self.ticks(size, links[d][device]) for d, size in received.items()), default=0)

    def links(self, group: Group, left: Group) -> tuple[Link, ...]:
        """Worst link to the group from a device left, by class; no link if none is left."""
        members = [d for c, n in enumerate(group) if n for d in self.classes[c][-n:]]
        firsts = [others[0] for others in self.classes]
        return tuple(
            worst(link(self.instance, first, d) for d in members) if n else (0, 0)
            for first, n in zip(firsts, left, strict=True)
        )
