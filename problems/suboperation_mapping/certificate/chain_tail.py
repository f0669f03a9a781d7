"""What the steps of a chain cost in its tail; see :mod:`~.chain`. Part of the writer, standard library only."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .chain_costs import NEVER, Costs, Label, Move


class Tail(Costs):
    """Steps of labels that have a time for each share."""

    def spread_alone(self, here: int, inner: int | None, c: Any, c2: Any) -> Iterator[Move | None]:
        """FP in the tail, and what the next layer reads of it."""
        if (here, c) not in self.spreads_known:
            these = self.rising() if inner is None else self.spreads
            self.spreads_known[here, c] = [own and self.spread_adds(here, inner, c, own) for own in these]
        for own, added in zip(self.spreads, self.spreads_known[here, c], strict=True):
            yield None if added is None else ((own, c2), added, ())

    def spread_adds(self, here: int, inner: int | None, c: Any, own: Any) -> Label:
        time = [self.compute(("FP", here, b), a) for b, a in enumerate(own)]
        read = [0 for _ in own]
        if inner is not None:
            read = [self.moved(("FP", inner, b), ("FP", here, b), a, c[b]) for b, a in enumerate(self.sources(own, c))]
        work = [x + y for x, y in zip(self.on(own, time), self.on(c or own, read), strict=True)]
        both = [x + y for x, y in zip(time, read, strict=True)]
        since = [-2 * NEVER if a in own else min(time if a in (c or ()) else both) for a in self.places]
        return (*both, *work, *since)

    def back_alone(self, here: int, inner: int | None, c: Any, c2: Any) -> Iterator[Move | None]:
        """BP in the tail."""
        for found in self.backward(here, inner, c, c2):
            if found is None:
                yield None
                continue
            own, time = found
            yield (c, own), (*time, *self.on(own, time), *(0 for _ in self.places)), tuple(enumerate(own))

    def reach(self, fused: int, inner: int | None, c: Any, c2: Any) -> Iterator[Move]:
        """The place of the last fused FP, which the tail reads."""
        for i in self.places:
            if inner is None:
                yield (i, None), (0,) * (len(self.shares) + 2 * len(self.places)), ()
            else:
                read = [self.moved(("FP", inner, b), ("FP", fused, -1), i, a) for b, a in enumerate(c)]
                yield (i, c2), (*read, *self.on(c, read), *(0 if a in c else min(read) for a in self.places)), ()

    def close(self, fused: int, inner: int | None, i: Any, c2: Any) -> Iterator[Move]:
        """The place of the last fused BP, and the times of FP and BP."""
        o = ("BP", fused, -1)
        for a in self.places:
            ticks = self.compute(o, a) if inner is None else self.gathered(fused, inner, c2, a)
            ticks += self.moved(o, ("FP", fused, -1), i, a)
            yield (i, a), self.alone(a, ticks, self.compute(("FP", fused, -1), i)), ()
