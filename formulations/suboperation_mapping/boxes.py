"""Boxes of ratios: how many shares there are, and between which numbers of samples each of them has."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice, pairwise

from mapgap.formulations.suboperation_mapping.located_frame import Box, Frame, Group, lower_hull
from mapgap.problems.suboperation_mapping.lowered.ratios import Ratio


def roots(batch: int, parts: int) -> list[Box]:
    """One box for every number of shares; together they have all ratios."""
    return [tightened((Group(1, batch, k),), batch) or () for k in range(1, min(batch, parts) + 1)]


def tightened(box: Box, batch: int) -> Box | None:
    """The box with the limits that the sum of all shares implies, largest shares first; ``None`` if it is empty."""
    low = sum(g.low * g.number for g in box)
    high = sum(g.high * g.number for g in box)
    found = []
    for g in box:
        least, most = max(g.low, batch - (high - g.high)), min(g.high, batch - (low - g.low))
        if least > most:
            return None
        found.append(Group(least, most, g.number))
    if not low <= batch <= high:
        return None
    done = tuple(sorted(found, reverse=True))
    return done if done == tuple(sorted(box, reverse=True)) else tightened(done, batch)


def single(box: Box) -> bool:
    """Whether only one ratio is left."""
    return all(g.low == g.high for g in box)


def ratios(box: Box, batch: int, parts: int) -> Iterator[Ratio]:
    """All ratios of a box, each padded with zeros; the intervals of a box are apart from each other."""

    def extend(left: tuple[Group, ...], rest: int) -> Iterator[tuple[int, ...]]:
        if not left:
            if rest == 0:
                yield ()
            return
        (low, high, number), *others = left
        if not sum(g.low * g.number for g in left) <= rest <= sum(g.high * g.number for g in left):
            return
        for size in range(high, low - 1, -1):
            smaller = (Group(low, size, number - 1),) if number > 1 else ()
            for tail in extend((*smaller, *others), rest - size):
                yield (size, *tail)

    for ratio in extend(box, batch):
        yield ratio + (0,) * (parts - len(ratio))


def contains(box: Box, ratio: Ratio) -> bool:
    """Whether a ratio lies in a box, largest shares first."""
    sizes = [size for size in ratio if size]
    if len(sizes) != sum(g.number for g in box):
        return False
    limits = (g for g in box for _ in range(g.number))
    return all(g.low <= size <= g.high for g, size in zip(limits, sizes, strict=True))


def few_ratios(box: Box, batch: int, parts: int, most: int) -> list[Ratio] | None:
    """The ratios of a box if they are at most ``most``."""
    found = list(islice(ratios(box, batch, parts), most + 1))
    return found if len(found) <= most else None


def of_ratio(ratio: Ratio) -> Box:
    """The box of one ratio."""
    return tuple(Group(s, s, ratio.count(s)) for s in sorted(set(ratio), reverse=True) if s)


class Cutter:
    """Divides boxes where the tables of an instance, summed over the network, are worst met by their envelopes."""

    def __init__(self, frame: Frame) -> None:
        self.batch, self.width = frame.instance.batch, frame.params.width
        split = [frame.phases.table(n) for n in frame.split]
        self.tables = [
            [sum(table[a][s] for table in split) for s in range(self.batch)] for a in range(frame.orbits.count)
        ]
        self.errors: dict[tuple[int, int], float] = {}

    def error(self, low: int, high: int) -> float:
        """Distance of the summed tables from what bounds them on an interval, plus a little for the width."""
        if (low, high) not in self.errors:
            total = self.width * ((high - low) / self.batch) ** 2
            for table in self.tables:
                total += self.distance(table, low, high) / max(1, table[-1])
            self.errors[low, high] = total
        return self.errors[low, high]

    def distance(self, table: list[int], low: int, high: int) -> float:
        """Largest distance of ``table[s - 1]`` from its lower convex envelope over ``low <= s <= high``."""
        worst = 0.0
        for (a, u), (b, v) in pairwise(lower_hull((s, table[s - 1]) for s in range(low, high + 1))):
            for s in range(a + 1, b):
                worst = max(worst, table[s - 1] - (u + (v - u) * (s - a) / (b - a)))
        return worst

    def split(self, box: Box) -> list[Box]:
        """Two or more boxes with all ratios of the box, which has more than one."""
        open_groups = [k for k, g in enumerate(box) if g.low < g.high]
        k = max(open_groups, key=lambda k: box[k].number * self.error(box[k].low, box[k].high))
        (low, high, number), others = box[k], box[:k] + box[k + 1 :]
        cut = min(
            range(low, high), key=lambda c: (self.error(low, c) + self.error(c + 1, high), abs(2 * c - low - high))
        )
        found = []
        for below in range(number + 1):
            parts = [Group(cut + 1, high, number - below), Group(low, cut, below)]
            found.append(tightened((*others, *(g for g in parts if g.number)), self.batch))
        return [child for child in found if child is not None]


class LowCutter(Cutter):
    """Divides boxes where tables rise most above what shares take at least."""

    def distance(self, table: list[int], low: int, high: int) -> float:
        """The sum of what ``table[s - 1]`` is above its least over ``low <= s <= high``."""
        return sum(table[low - 1 : high]) - (high - low + 1) * table[low - 1]
