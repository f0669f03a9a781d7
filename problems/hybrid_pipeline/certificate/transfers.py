"""Groups of devices, and what is moved between them: part of the checker, standard library only."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from itertools import accumulate, product
from operator import add, sub
from typing import Any

from .facts import FACTS, alike, holdings, rules

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
        rows = sums([[layer[x] for x in FACTS] for layer in instance["layers"]])
        self.state, self.stored, self.weights, _ = zip(*rows, strict=True)
        for method in (self.allreduce, self.fetching, self.links):
            setattr(self, method.__name__, cache(method))

    def ticks(self, size: int, bandwidth: int, parts: int = 1) -> int:
        """Ticks of a transfer of ``size / parts`` bytes, rounded up."""
        return -(-size * 10**9 // (parts * bandwidth * self.tick))

    def crossing(self, cut: int, bandwidth: int, links: int = 1) -> int:
        """Ticks of a micro-batch over a cut, one way (rule 2), in equal parts over so many links (rule 12)."""
        return self.ticks(self.batch * self.instance["layers"][cut - 1]["output_bytes"], bandwidth, links)

    def load(self, i: int, j: int) -> int:
        """Ticks each way that transfers add to the work of a stage (rule 12); all links are equal then."""
        if self.rules["communication"] != "load":
            return 0
        cuts = [cut for cut in (i, j) if 0 < cut < len(self.instance["layers"])]
        return sum(self.crossing(cut, self.instance["bandwidth"][0][1]) for cut in cuts)

    def allreduce(self, i: int, j: int, group: Group) -> int:
        """Ticks of one AllReduce (Eq. 5, rule 12); none in inference."""
        members = [d for c, n in enumerate(group) for d in self.classes[c][:n]]
        m = len(members)
        if m == 1 or not self.rules["training"]:
            return 0
        slowest = min(self.instance["bandwidth"][d][e] for d in members for e in members if d != e)
        moved = self.rules["allreduce_factor"] * (m - 1) * (self.weights[j] - self.weights[i])
        among = (1 if self.rules["medium"] == "shared" else m) * (m if self.rules["allreduce"] == "rotating" else 1)
        return self.ticks(moved, slowest, among)

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

    def links(self, group: Group, left: Group) -> tuple[int, ...]:
        """Slowest link to the group from a device left, by class; 0 if none is left."""
        members = [d for c, n in enumerate(group) if n for d in self.classes[c][-n:]]
        rows = [self.instance["bandwidth"][others[0]] for others in self.classes]
        return tuple(min(row[d] for d in members) if n else 0 for row, n in zip(rows, left, strict=True))
