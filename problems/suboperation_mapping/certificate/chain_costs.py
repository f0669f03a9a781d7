"""What the steps of a chain need to know of costs; see :mod:`~.chain`. Part of the writer, standard library only."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from .chain_shares import CHAIN, ELSEWHERE, Limits, Shares, Sizes

State = tuple[Any, ...]
Label = tuple[int, ...]
Move = tuple[State, Label, tuple[tuple[int, int], ...]]  # the state after it, what it adds, shares on accelerators
NEVER = 1 << 60  #: the start of nothing


class Costs(Shares):
    """Steps are functions from a state to its moves, ``None`` in the place of those that :meth:`rising` does without.

    States are pairs of places, of FP and of BP.
    """

    def __init__(
        self, instance: dict[str, Any], ratio: Sizes, kind: str = CHAIN, most: Sizes = (), out: Limits = ()
    ) -> None:
        super().__init__(instance, ratio, kind, most, out)
        self.sizes = {(o, p): size for o in self.operations for p, size in self.before[o]}
        # What depends on little of a state: times of shares in BP, WU, what a fused BP reads, FP in the tail.
        self.shares_known: dict[Any, list[int]] = {}
        self.updates_known: dict[Any, list[tuple[Label, tuple[tuple[int, int], ...]]]] = {}
        self.loads_known: dict[Any, list[list[int]]] = {}
        self.joins_known: dict[Any, list[tuple[int, Label]]] = {}
        self.spreads_known: dict[Any, list[Label | None]] = {}

    def compute(self, o: Any, a: int) -> int:
        """The least that it takes, with any number of samples that it can have."""
        if o[2] < 0:
            return super().compute(o, a)
        return self.least(o[0], o[1], a, self.ratio[o[2]], self.most[o[2]])

    def moved(self, o: Any, p: Any, i: int, a: int) -> int:
        """The transfer of an operation on ``a`` from its predecessor on ``i``, or the least from elsewhere."""
        size = self.sizes.get((o, p), 0)
        return self.ticks(size, i, a) if i != ELSEWHERE else min(self.ticks(size, j, a) for j in self.places if j != a)

    def alone(self, where: int, ticks: int, since: int = 0) -> Label:
        """What a fused operation of BP adds to a label, and time in FP: on all other accelerators work is done."""
        return (since + ticks, *(0 if a == where else -ticks for a in self.places))

    def on(self, where: Sequence[int], ticks: Sequence[int]) -> list[int]:
        """Loads of all accelerators."""
        loads = [0 for _ in self.places]
        for a, t in zip(where, ticks, strict=True):
            loads[a] += t
        return loads

    def same(self, *state: Any) -> Iterator[Move]:
        yield state, (), ()

    def work(self, *state: Any, o: Any) -> Iterator[Move]:
        """An operation beside the path."""
        for a in self.places:
            yield state, (0, *self.on([a], [self.compute(o, a)])), ()

    def spared(self, layer: int, *state: Any, phase: str, low: int, high: int) -> Iterator[Move]:
        """BP or WU of a share that is left out."""
        for a in self.places:
            yield state, (0, *self.on([a], [self.least(phase, layer, a, low, high)])), ()

    def update(self, here: int, inner: int | None, c: Any, c2: Any, b: int) -> Iterator[Move]:
        """The WU of a share; ``c2`` is where its loss comes from."""
        apart, weights = inner is None or self.split(inner), self.layers[here]["weight_bytes"]
        loss = c2
        if inner is not None and apart:
            loss = frozenset(c2[j] for run in self.runs if b in run for j in run) if self.counted else c2[b]
        key = here, inner, b, c[b], frozenset(c), loss
        if key not in self.updates_known:
            found = self.updates_known[key] = []
            for a in self.places:
                sent = sum(self.ticks(weights, a, h) for h in {*c})
                source = (a if a in loss else ELSEWHERE) if isinstance(loss, frozenset) else loss
                took = self.on([a], [self.reading(("WU", here, b), inner, c[b], source, a) + sent])
                found.append(((*(0 for _ in c), *took, *(0 for _ in took)), ((b, a),)) if apart else ((0, *took), ()))
        for added, pairs in self.updates_known[key]:
            yield (c, c2), added, pairs

    def reading(self, o: Any, inner: int | None, i: int, loss: Any, a: int) -> int:
        """The time of a BP or WU of a share, with what it reads from its FP and, as its loss, from the next layer."""
        ticks = self.compute(o, a) + self.moved(o, ("FP", *o[1:]), i, a)
        if inner is not None:
            ticks += self.moved(o, ("BP", inner, o[2] if self.split(inner) else -1), loss, a)
        return ticks

    def backward(self, here: int, inner: int | None, c: Any, c2: Any) -> Iterator[tuple[Any, list[int]] | None]:
        """Places of BP, and the time of each share there; they rise unless the next layer has places of shares, too."""
        apart = inner is not None and self.split(inner)
        times = [] if self.counted else [self.share(here, inner, b, i, c2[b] if apart else c2) for b, i in enumerate(c)]
        for own in self.spreads if apart else self.rising(c):
            if own is None:
                yield None
                continue
            if self.counted:
                losses = self.sources(c2, own) if apart else [c2 for _ in own]
                both = enumerate(zip(self.sources(c, own), losses, strict=True))
                times = [self.share(here, inner, b, i, loss) for b, (i, loss) in both]
            yield own, [time[a] for time, a in zip(times, own, strict=True)]

    def share(self, here: int, inner: int | None, b: int, i: int, loss: Any) -> list[int]:
        """The time of a share in BP, on every accelerator."""
        key = here, inner, b, i, loss
        if key not in self.shares_known:
            self.shares_known[key] = [self.reading(("BP", here, b), inner, i, loss, a) for a in self.places]
        return self.shares_known[key]

    def gathered(self, fused: int, inner: int, c2: Any, a: int) -> int:
        """A fused BP without what it reads of its own FP."""
        o = ("BP", fused, -1)
        return self.compute(o, a) + sum(self.moved(o, ("BP", inner, b), i, a) for b, i in enumerate(c2))
