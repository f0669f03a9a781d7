"""What the steps of a chain need to know of costs; see :mod:`~.chain`. Part of the writer, standard library only."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

from .graph import Graph

State = tuple[Any, ...]
Label = tuple[int, ...]
Move = tuple[State, Label, tuple[tuple[int, int], ...]]  # the state after it, what it adds, shares on accelerators
NEVER = 1 << 60  #: the start of nothing


class Costs(Graph):
    """Steps are functions from a state to its moves. States are pairs of places, of FP and of BP."""

    def __init__(self, instance: dict[str, Any], ratio: Sequence[int]) -> None:
        super().__init__(instance, tuple(ratio))
        self.sizes = {(o, p): size for o in self.operations for p, size in self.before[o]}
        self.spreads = list(product(self.places, repeat=len(self.shares)))
        self.shares_known: dict[Any, int] = {}  # times of shares in BP
        self.spreads_known: dict[Any, list[tuple[Any, Label]]] = {}  # FP in the tail, by what reads it

    def moved(self, o: Any, p: Any, i: int, a: int) -> int:
        """The transfer of an operation on ``a`` from its predecessor on ``i``."""
        return self.ticks(self.sizes.get((o, p), 0), i, a)

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

    def update(self, here: int, inner: int | None, c: Any, c2: Any, b: int) -> Iterator[Move]:
        """The WU of a share; ``c2`` is where its loss comes from."""
        o, weights = ("WU", here, b), self.layers[here]["weight_bytes"]
        loss = None if inner is None else ("BP", inner, b) if self.split(inner) else ("BP", inner, -1)
        for a in self.places:
            ticks = self.compute(o, a) + self.moved(o, ("FP", here, b), c[b], a)
            ticks += sum(self.ticks(weights, a, h) for h in {*c})
            if loss:
                ticks += self.moved(o, loss, c2[b] if self.split(loss[1]) else c2, a)
            took = self.on([a], [ticks])
            if inner is None or self.split(inner):
                yield (c, c2), (*(0 for _ in c), *took, *(0 for _ in took)), ((b, a),)
            else:
                yield (c, c2), (0, *took), ()

    def backward(self, here: int, inner: int | None, c: Any, c2: Any, own: Any) -> list[int]:
        """The time of each share in BP."""
        known, time = self.shares_known, []
        for b, a in enumerate(own):
            loss = c2[b] if inner is not None and self.split(inner) else c2
            key = here, inner, b, c[b], loss, a
            if key not in known:
                o = ("BP", here, b)
                known[key] = self.compute(o, a) + self.moved(o, ("FP", here, b), c[b], a)
                if inner is not None:
                    known[key] += self.moved(o, ("BP", inner, b if self.split(inner) else -1), loss, a)
            time.append(known[key])
        return time

    def gathered(self, fused: int, inner: int, c2: Any, a: int) -> int:
        """A fused BP without what it reads of its own FP."""
        o = ("BP", fused, -1)
        return self.compute(o, a) + sum(self.moved(o, ("BP", inner, b), i, a) for b, i in enumerate(c2))
