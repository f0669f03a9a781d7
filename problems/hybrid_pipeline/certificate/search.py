"""The search for a plan below the bound: part of the checker, standard library only.

Plans are built from the last stage to the first; :mod:`~.labels` compares unfinished ones. **Left out** is what leads
to no plan below the bound:

1.  As ``D >= busy E``, ``A >= drain E`` and E is at least F + B of each member, the members of a stage hold B samples
    with the memory of K = 1 and ``F + B <= (bound - 1) / (R (busy + drain))``, rounded down. Members that do not, do
    not hold more layers either. So there is a last cut that devices *reach*, up to which such stages of theirs can
    cover the layers from the first one on; by induction over the stages it is the best of: as far as the others reach,
    then one group. For the same reason w c is within that limit.
2.  If k devices are left, a stage has k at most, so some member has ``ceil(B / k)`` samples or more (B without
    replication). So E and Ef of all stages in front add up to at least the sum over their layers of the least time of a
    device left for so many samples. Each stage in front adds its E to D if aligned and to A if drained; where A may
    fall (aligned), each adds at least its Ef to D + A. One of these stages, k at most, has a k-th of the sum of all E
    or more, and D is at least ``busy`` times that.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any

from .labels import Label, keep
from .links import Link, worst
from .stages import Stages
from .transfers import Group, parts

Stage = tuple[int, int, Group]  # first layer, cut behind the last one


class Search(Stages):
    """Plans of one micro-batch size with an objective below the bound."""

    def __init__(self, instance: dict[str, Any], batch: int, bound: int) -> None:
        super().__init__(instance, batch, bound)
        for name in ("reach", "front", "hopeful"):
            setattr(self, name, cache(getattr(self, name)))

    def reach(self, devices: Group) -> int:
        """The last cut that the devices reach (1)."""
        best = 0
        for group, others in parts(devices, self.most):
            i = self.reach(others)
            longer = range(i + 1, self.last + 1)
            best = max(best, i + bisect_left(longer, True, key=lambda j: not self.holds(i, j, group)))
        return best

    def fronts(self, j: int, group: Group, left: Group) -> Iterable[int]:
        """First cuts of the stages before cut j that the members hold; those that lead to nothing left out."""
        if self.cuts is None:
            return range(self.first(j, group), min(j - 1, self.reach(left)) + 1)
        return [i for i in self.before(j, group) if self.hopeful(left)[i]] if any(left) else [0]

    def hopeful(self, left: Group) -> list[bool]:
        """By cut, whether the devices left may do the work in front of it (2)."""
        sums = zip(*self.front(left), strict=True)
        return [self.form.least((0, 0, 0, 0), *each, sum(left)) < self.bound for each in sums]

    def front(self, devices: Group) -> tuple[list[int], list[int]]:
        """By cut, least sums of E and of Ef of all stages in front of it (2)."""
        if not any(devices):
            return [0], [0]  # only in front of nothing
        share = -(-self.batch // min(self.most, sum(devices)))
        found, kinds = [], [self.instance["types"][k] for k, n in zip(self.kinds, devices, strict=True) if n]
        for counted in (("forward", "backward")[: self.form.ways], ("forward",)):
            layers = range(len(self.instance["layers"]))
            steps = [[min(sum(kind[phase][k][share - 1] for phase in counted) for kind in kinds)] for k in layers]
            found.append([row[0] for row in self.sums(steps)])
        return found[0], found[1]

    def better(self) -> int | None:
        """The objective of a plan below the bound; ``None`` if there is none."""
        crosses, parallel = self.rules["communication"] == "step", self.rules["transfers"] == "parallel"
        # By devices left, K of the next stage in front, members of the first group behind and links to it.
        nodes: list[dict[tuple[Group, int, int, tuple[Link, ...]], list[Label]]] = [{} for _ in range(self.last + 1)]
        nodes[self.last][self.size, self.kept, 1, ()] = [(0, 0, 0, 0)]
        for j in range(self.last, 0, -1):
            for (devices, kept, members, links), labels in nodes[j].items():
                for group, left in parts(devices, self.most):
                    c = 0
                    if links:
                        between = worst(link for link, n in zip(links, group, strict=True) if n)
                        c = self.crossing(j, between, min(members, sum(group)))
                    if self.form.ways * c > self.limit:
                        continue
                    behind = self.links(group, left) if crosses else ()
                    stored = min(kept + self.step, self.micro_batches)
                    key = (left, stored, sum(group) if crosses and parallel else 1, behind)
                    for i in self.fronts(j, group, left):
                        if i == 0 and any(left) and self.instance["all_devices"]:
                            continue
                        for new in self.extended(labels, (i, j, group), kept, c, left):
                            if i == 0:
                                return self.form.value(new)
                            keep(nodes[i].setdefault(key, []), new)
        return None

    def extended(self, labels: list[Label], stage: Stage, kept: int, c: int, left: Group) -> Iterator[Label]:
        """The labels with a stage in front that may lead to a plan below the bound."""
        i, j, group = stage
        reduced, moved = self.allreduce(*stage), self.migration(*stage)
        load, taken = self.load(*stage), self.taken(*stage)
        ta, extra = (reduced * self.form.aligned, 0) if self.rules["allreduce"] == "round" else (0, reduced)
        both, forward = (least[i] for least in self.front(left))

        def promising(label: Label) -> bool:
            return self.form.least(label, both, forward, sum(left)) < self.bound

        own, _ = self.front(group)
        e = own[j] - own[i]  # at least; A' is least for the largest Eb (this saves most calls of ``times``)
        labels = [old for old in labels if promising(self.form.ahead(e, self.bound, ta, moved, c, taken, old))]
        times = self.times(*stage, kept) if labels else None
        if times is not None:
            ef, eb = times[0] + load[0], times[1] + load[1] + extra
            for new in (self.form.ahead(ef + eb, eb, ta, moved, c, taken, old) for old in labels):
                if promising(new := new if i else self.form.whole(ef + eb, new)):
                    yield new
