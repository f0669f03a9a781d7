"""A phase of a split layer and what the fused operation after it gathers: part of the writer, standard library only.

Nothing has to move of what lies where it is gathered. In a longer phase more can lie there, if the other accelerators
can do what is left of the batch.
"""

from __future__ import annotations

from bisect import bisect_left
from functools import lru_cache

from .lengths import GRAIN, Box
from .shortest import Shortest, Table


class Gathering(Shortest):
    """Lengths of accelerators of which the last one is where it is gathered; ``rate``: grains that a sample takes."""

    def __init__(self, pairs: list[tuple[Table, int]], box: Box, batch: int, rate: int) -> None:
        super().__init__(pairs, box, batch)
        self.rate, self.there = rate, dict[int, int]()

    def moved(self, k: int) -> int:
        """Least grains that gathering takes after a length, by its number, in which all can do the batch."""
        if k not in self.there:
            *others, own = self.rooms(self.times[k])
            *_, dealt = self.dealt(others)
            both = zip(own, reversed(dealt), strict=True)  # of all shares those that are not there
            self.there[k] = min(self.batch, max((s for s, rest in both if rest + s >= self.batch), default=0))
        return self.rate * (self.batch - self.there[k])

    def both(self) -> int:
        """Least grains of a length and of gathering after it, together."""
        best, waiting = 1 << 62, [(bisect_left(self.times, self.least(len(self.loads))), len(self.times) - 1)]
        while waiting:
            first, last = waiting.pop()
            least = GRAIN * self.times[first] + self.moved(last)  # of lengths between these; of a single one it is both
            if least < best and first < last:
                middle = (first + last) // 2
                waiting += [(middle + 1, last), (first, middle)]
            elif first == last:
                best = min(best, least)
        return best


@lru_cache(100_000)
def with_gathering(
    tables: tuple[Table, ...], rates: tuple[int, ...], box: Box, batch: int, place: int, rate: int
) -> int:
    """Least grains of a phase and of gathering after it, on any ratio of the box and any places of its shares.

    By accelerator the ticks of 1, 2, … samples and the grains that one takes to come there; ``rate``: the least grains
    that one takes from elsewhere to ``place``, an accelerator.
    """
    pairs = [*zip(tables, rates, strict=True)]
    return Gathering([*pairs[:place], *pairs[place + 1 :], pairs[place]], box, batch, rate).both()
