"""What the steps of a chain cost between fused layers; see :mod:`~.chain`. Standard library only."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

from .chain_costs import Move
from .chain_tail import Tail


class Inside(Tail):
    """Steps as in the tail, with labels of one time."""

    def spread(self, here: int, after: int, i: Any, i2: Any) -> Iterator[Move | None]:
        """Places of FP, and what the fused operation after it gathers."""
        o = ("FP", after, -1)
        none = [0 for _ in self.places]
        reads = [[self.moved(o, ("FP", here, b), a, i) for a in self.places] for b in self.shares]
        for c in self.rising():
            if c is None:
                yield None
                continue
            yield (c, i2), (sum(read[a] for read, a in zip(reads, c, strict=True)), *none), ()

    def back(self, here: int, after: int, c: Any, i2: Any) -> Iterator[Move | None]:
        """Places of BP."""
        if self.counted:
            parts = [self.loads(here, after, n, tuple(c[b] for b in run), i2) for n, run in enumerate(self.runs)]
            for own, (first, *others) in zip(self.spreads, product(*parts), strict=True):
                loads = [*map(sum, zip(first, *others, strict=True))] if others else first
                longest = max(loads)
                yield (c, own), (longest, *[load - longest for load in loads]), ()
            return
        for found in self.backward(here, after, c, i2):
            if found is None:
                yield None
                continue
            own, time = found
            loads = self.on(own, time)
            longest = max(loads)
            yield (c, own), (longest, *[load - longest for load in loads]), ()

    def loads(self, here: int, after: int, n: int, c: tuple[int, ...], i2: Any) -> list[list[int]]:
        """Of BP of a run of shares that are counted, by their places; ``c`` are those of FP."""
        key = here, n, c, i2
        if key not in self.loads_known:
            self.loads_known[key], b = [], self.runs[n][0]
            for own in self.ways[n]:
                both = zip(own, self.nearest(c, own), strict=True)
                self.loads_known[key].append(self.on(own, [self.share(here, after, b, i, i2)[a] for a, i in both]))
        return self.loads_known[key]

    def join(self, fused: int, inner: int, c: Any, c2: Any) -> Iterator[Move]:
        """The place of the fused BP after it."""
        key = fused, inner, c2
        if key not in self.joins_known:
            self.joins_known[key] = [(a, self.alone(a, self.gathered(fused, inner, c2, a))) for a in self.places]
        for a, added in self.joins_known[key]:
            yield (c, a), added, ()

    def begin(self, fused: int, inner: int, c: Any, i2: Any) -> Iterator[Move]:
        """The place of the fused FP before it, the time of FP, and what the fused BP reads of its own FP."""
        o = ("FP", fused, -1)
        for i in self.places:
            since = self.compute(o, i) + self.forward(inner, fused, c, i)
            own = self.moved(("BP", fused, -1), o, i, i2)
            yield (i, i2), self.alone(i2, own, since), ()

    def forward(self, here: int, fused: int | None, c: Any, i: Any) -> int:
        """The time of FP of a layer that reads from a fused one on ``i``, or from none."""
        time = [self.compute(("FP", here, b), a) for b, a in enumerate(c)]
        if fused is not None:
            time = [t + self.moved(("FP", here, b), ("FP", fused, -1), i, c[b]) for b, t in enumerate(time)]
        return max(self.on(c, time))

    def head(self, here: int, c: Any, i2: Any) -> Iterator[Move]:
        """The time of FP of the first layer, which has no BP."""
        yield (None, None), (self.forward(here, None, c, None), *(0 for _ in self.places)), ()

    def meet(self, fused: int, after: int, i: Any, i2: Any) -> Iterator[Move]:
        """Both places of a fused layer that a fused one reads."""
        for j, a in product(self.places, repeat=2):
            since = self.compute(("FP", fused, -1), j) + self.moved(("FP", after, -1), ("FP", fused, -1), j, i)
            ticks = self.compute(("BP", fused, -1), a) + self.moved(("BP", fused, -1), ("BP", after, -1), i2, a)
            ticks += self.moved(("BP", fused, -1), ("FP", fused, -1), j, a)
            yield (j, a), self.alone(a, ticks, since), ()
