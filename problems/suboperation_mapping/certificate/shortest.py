"""What a phase of a split layer lasts at least on some ratio of a box: part of the writer, standard library only.

A length is possible only if what accelerators can do in it, for some numbers of shares on each, adds up to the batch.
Of many groups one is made, which has all ratios of the box.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from functools import lru_cache
from itertools import accumulate, pairwise, product
from math import prod
from operator import add, le, sub

from .chain_sums import Pick, picked
from .lengths import GRAIN, Box, quickest

COUNTED = 16  #: numbers of shares, by group, up to which groups are kept apart
NONE = -(1 << 62)  #: samples of shares that cannot be done
Table = tuple[int, ...]
Load = list[tuple[list[int], list[int]]]  # by numbers of shares, that of the last group changing fastest
Room = list[int]  # likewise


def merged(box: Box) -> Box:
    """The box, or one of a single group with all of its ratios."""
    if prod(number + 1 for *_, number in box) <= COUNTED:
        return box
    return ((min(low for low, *_ in box), max(high for _, high, _ in box), sum(number for *_, number in box)),)


@lru_cache(100_000)
def load(table: Table, rate: int, box: Box) -> Load:
    """What an accelerator can do, by numbers of shares: times, rising, and the most samples until each of them."""
    found: Load = []
    for own in quickest(table, box).values():
        ends = sorted((t + s * rate // GRAIN, s) for s, t in own.items())
        found.append(([t for t, _ in ends], [*accumulate((s for _, s in ends), max)]))
    return found


@lru_cache(1_000)
def parted(whole: tuple[int, ...]) -> list[tuple[Pick, Pick]]:
    """For all numbers of shares up to these those that two parts of them can have."""
    every = [*product(*(range(number + 1) for number in whole))]
    place, found = {numbers: k for k, numbers in enumerate(every)}, list[tuple[Pick, Pick]]()
    for both in every:
        pairs = [(place[c], place[(*map(sub, both, c),)]) for c in every if all(map(le, c, both))]
        found.append((picked([i for i, _ in pairs]), picked([j for _, j in pairs])))
    return found


class Shortest:
    """Lengths of accelerators, given as tables and rates (grains that a sample takes to come there), in their order."""

    def __init__(self, pairs: list[tuple[Table, int]], box: Box, batch: int) -> None:
        box = merged(box)
        self.loads, self.batch = [load(*pair, box) for pair in pairs], batch
        self.parted = parted(tuple(number for *_, number in box))
        self.times = sorted({t for each in self.loads for ends, _ in each for t in ends})
        self.known: dict[int, int] = {}

    def rooms(self, length: int) -> list[Room]:
        """What each accelerator can do in a length: the most samples, by numbers of shares."""
        found: dict[int, Room] = {}
        for each in self.loads:
            if id(each) not in found:  # equal accelerators have one load
                ways = ((bisect_right(ends, length), most) for ends, most in each)
                found[id(each)] = [most[k - 1] if k else NONE for k, most in ways]
        return [found[id(each)] for each in self.loads]

    def dealt(self, rooms: list[Room]) -> Iterator[Room]:
        """What none of some accelerators, the first one, the first two, … can do."""
        dealt = [0, *(NONE for _ in self.parted[1:])]
        yield dealt
        for each in rooms:
            dealt = [max(map(add, first(dealt), second(each))) for first, second in self.parted]
            yield dealt

    def needed(self, length: int) -> int:
        """How many of the first accelerators can do the batch in a length; one more than there are if all cannot."""
        if length not in self.known:
            dealt = enumerate(self.dealt(self.rooms(length)))
            enough = (count for count, done in dealt if done[-1] >= self.batch)
            self.known[length] = next(enough, 1 + len(self.loads))
        return self.known[length]

    def least(self, count: int) -> int:
        """Ticks in which the first accelerators can do the batch; of a box without ratios any."""
        return self.times[bisect_left(self.times[:-1], -count, key=lambda length: -self.needed(length))]


@lru_cache(100_000)
def least_length(tables: tuple[Table, ...], rates: tuple[int, ...], box: Box, batch: int) -> int:
    """On no ratio of the box and no places of its shares all accelerators end earlier, in ticks."""
    return Shortest([*zip(tables, rates, strict=True)], box, batch).least(len(tables))


@lru_cache(100_000)
def by_holders(tables: tuple[Table, ...], rates: tuple[int, ...], box: Box, batch: int, most: int) -> tuple[int, ...]:
    """The same if all shares lie on one accelerator, on two, … on ``most``, whichever these are.

    The first ones are best if each is at least as quick as the next one. Otherwise all have the least ticks of any.
    """
    pairs = sorted(zip(tables, rates, strict=True))
    if not all(r <= q and all(map(le, t, u)) for (t, r), (u, q) in pairwise(pairs)):
        quick = tuple(map(min, *tables))
        pairs = [(quick, rate) for rate in sorted(rates)]
    shortest = Shortest(pairs, box, batch)
    return tuple(shortest.least(count) for count in range(1, most + 1))
