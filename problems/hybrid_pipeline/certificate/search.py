"""The search for a plan below the bound: part of the checker, standard library only.

**Labels.** By the package's docstring ``latency = D + A``, where D is the largest aligned step and A the largest
excess of an AllReduce, at least 0 as the first step has a ``Ta >= 0``. A stage with ``E = Ef + Eb`` and ``Ta``, put
in front of the stages from layer j on, with c ticks each way over the cut, turns their D and A (0 if there are none)
and the migration G into

    D' = max(M E, E + 2 M c, E + 2 c + D),    A' = max(Ta, A - Eb - c),    G' = max(G, migration of the stage).

None of them falls as D, A, G grow, nor does the objective ``R (D + A) + G`` (R = 1, G = 0 without a failure). What may
be put in front, and at what cost, depends on the cut, the devices left, the number of stages behind (it gives K), and
the slowest link from each device left to the first group behind. Of two labels that agree in these, one that is no
smaller in D, A and G is not needed: each plan that it leads to has a counterpart that is no worse.

**Left out** is what leads to no plan below the bound:

1.  As ``D >= M E``, ``A >= 0`` and E is at least F + B of each member, the members of a stage hold B samples with the
    memory of K = 1 and ``F + B <= (bound - 1) / (R M)``, rounded down. Members that do not, do not hold more layers
    either. So there is a last cut that devices *reach*, up to which such stages of theirs can cover the layers from
    the first one on; by induction over the stages it is the best of: as far as the others reach, then one group.
2.  Every stage in front adds its E to D, leaves ``A >= 0``, and adds at least its Ef to ``D + A``. If k devices are
    left, a stage has k at most, so some member has ``ceil(B / k)`` samples or more. So E and Ef of all stages in front
    add up to at least the sum over their layers of the least time of a device left for so many samples.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from functools import cache
from itertools import accumulate
from typing import Any

from .stages import Stages
from .transfers import Group, parts

Stage = tuple[int, int, Group]  # first layer, cut behind the last one
Label = tuple[int, int, int]  # D, A, G


def keep(labels: list[Label], new: Label) -> None:
    """Add a label unless another one makes it needless, and drop those that it makes needless."""
    if not any(d <= new[0] and a <= new[1] and g <= new[2] for d, a, g in labels):
        labels[:] = [old for old in labels if any(x < y for x, y in zip(old, new, strict=True))] + [new]


class Search(Stages):
    """Plans of one micro-batch size with an objective below the bound."""

    def __init__(self, instance: dict[str, Any], batch: int, bound: int) -> None:
        super().__init__(instance, batch, bound)
        for method in (self.reach, self.front):
            setattr(self, method.__name__, cache(method))

    def reach(self, devices: Group) -> int:
        """The last cut that the devices reach (1)."""
        best = 0
        for group, others in parts(devices):
            i = self.reach(others)
            longer = range(i + 1, self.last + 1)
            best = max(best, i + bisect_left(longer, True, key=lambda j: not self.holds(i, j, group)))
        return best

    def front(self, devices: Group) -> tuple[list[int], list[int]]:
        """By cut, least sums of E and of Ef of all stages in front of it (2)."""
        if not any(devices):
            return [0], [0]  # only in front of nothing
        share = -(-self.batch // sum(devices))
        found = []
        for tables in (self.both, self.forward):
            columns = [[row[share] for row in table] for table, n in zip(tables, devices, strict=True) if n]
            steps = [min(column[k + 1] - column[k] for column in columns) for k in range(self.last)]
            found.append(list(accumulate(steps, initial=0)))
        return found[0], found[1]

    def better(self) -> int | None:
        """The objective of a plan below the bound; ``None`` if there is none."""
        nodes: list[dict[tuple[Group, int, tuple[int, ...]], list[Label]]] = [{} for _ in range(self.last + 1)]
        nodes[self.last][self.size, 1, ()] = [(0, 0, 0)]  # by devices left, K of the next stage in front, links
        for j in range(self.last, 0, -1):
            for (devices, kept, links), labels in nodes[j].items():
                for group, left in parts(devices):
                    c = self.crossing(j, min(link for link, n in zip(links, group, strict=True) if n)) if links else 0
                    if 2 * c > self.limit:
                        continue  # D is at least M times that
                    key = (left, min(kept + 2, self.micro_batches), self.links(group, left))
                    for i in range(self.first(j, group), min(j - 1, self.reach(left)) + 1):
                        if i == 0 and any(left) and self.instance["all_devices"]:
                            continue
                        for d, a, g in self.extended(labels, (i, j, group), kept, c, left):
                            if i == 0:
                                return self.rounds * (d + a) + g
                            keep(nodes[i].setdefault(key, []), (d, a, g))
        return None

    def extended(self, labels: list[Label], stage: Stage, kept: int, c: int, left: Group) -> Iterator[Label]:
        """The labels with a stage in front that may lead to a plan below the bound."""
        i, j, group = stage
        m, ta, moved = self.micro_batches, self.allreduce(*stage), self.migration(*stage)
        both, forward = (least[i] for least in self.front(left))

        def aligned(e: int, d: int) -> int:
            return max(m * e, e + 2 * m * c, e + 2 * c + d)

        def promising(d: int, a: int, g: int) -> bool:
            return self.rounds * max(d + both, d + a + forward) + g < self.bound

        own, _ = self.front(group)
        e = own[j] - own[i]  # at least; A' is Ta at least (this saves most calls of ``times``)
        labels = [(d, a, g) for d, a, g in labels if promising(aligned(e, d), ta, max(g, moved))]
        times = self.times(*stage, kept) if labels else None
        if times is not None:
            e, eb = sum(times), times[1]
            for d, a, g in labels:
                new = aligned(e, d), max(ta, a - eb - c), max(g, moved)
                if promising(*new):
                    yield new
