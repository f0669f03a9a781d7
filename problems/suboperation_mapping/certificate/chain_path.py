"""Which steps a chain has; see :mod:`~.chain`. Part of the writer, standard library only."""

from __future__ import annotations

from functools import partial
from itertools import product
from typing import Any

from .chain_costs import NEVER
from .chain_inside import Inside
from .chain_shares import CHAIN, Limits, Sizes


class Path(Inside):
    """``steps``, outwards, along ``path``, which begins with the last layer.

    Attributes
    ----------
    fold : int or None
        The step that ends the tail; ``None`` if nothing is fused.
    first_fused : int or None
        The step in which the first fused FP gets its place; ``None`` if that may be any of equal accelerators.
    """

    def __init__(
        self, instance: dict[str, Any], ratio: Sizes, kind: str = CHAIN, most: Sizes = (), out: Limits = ()
    ) -> None:
        super().__init__(instance, ratio, kind, most, out)
        if min(ratio) < 1 or any(low < 1 for low, _ in out):
            raise ValueError("a share of no samples")
        self.steps: list[Any] = []
        self.fold: int | None = None
        self.path = self.longest()
        if not self.split(self.path[-1]):
            raise ValueError("a path that begins with a fused layer")
        if self.serial() * (1 + len(out)) >= NEVER:
            raise ValueError("times that are too large")
        self.seen = {*self.path}
        rest = self.tail()
        while rest:
            rest = self.pair(rest) if len(rest) > 1 and self.split(rest[1]) else self.meeting(rest)
        placed = [k for k, step in enumerate(self.steps) if step.func in (Path.reach, Path.begin, Path.meet)]
        self.first_fused = placed[-1] if placed and self.headed >= self.counted else None

    def longest(self) -> list[int]:
        """A path of most layers, the last one first."""
        best: list[list[int]] = []
        for k, layer in enumerate(self.layers):
            before = [best[edge["source"]] for edge in layer["inputs"]]
            best.append([k, *max(before, key=lambda path: (len(path), path), default=[])])
        return max(best, key=lambda path: (len(path), path))

    def tail(self) -> list[int]:
        """Steps of the split layers after the last fused one; the path from this on."""
        inner, rest = None, self.path
        while rest and self.split(rest[0]):
            here, *rest = rest
            self.steps.append(partial(Path.spread_alone, self, here, inner))
            self.updates(here, inner)
            if rest:
                self.steps.append(partial(Path.back_alone, self, here, inner))
            inner = here
        if rest:
            self.steps.append(partial(Path.reach, self, rest[0], inner))
            self.fold = len(self.steps)
            self.steps += [partial(Path.same, self), partial(Path.close, self, rest[0], inner)]
            self.beside(rest[0])
        return rest

    def updates(self, layer: int, inner: int | None) -> None:
        self.steps += [partial(Path.update, self, layer, inner, b=b) for b in self.shares]

    def beside(self, layer: int) -> None:
        """Work of split layers beside the path that one of it reads."""
        for source in sorted({edge["source"] for edge in self.layers[layer]["inputs"]} - self.seen):
            self.seen.add(source)
            for phase, b in product(("WU", "BP"), self.shares):
                if self.split(source) and (phase, source, b) in self.before:
                    self.steps.append(partial(Path.work, self, o=(phase, source, b)))
            if self.split(source):
                self.left_out(source)

    def left_out(self, layer: int) -> None:
        """Work of the shares that are left out."""
        for phase, (low, high) in product(("WU", "BP"), self.out):
            if (phase, layer, 0) in self.before:
                self.steps.append(partial(Path.spared, self, layer, phase=phase, low=low, high=high))

    def pair(self, path: list[int]) -> list[int]:
        """Steps of a split layer and the fused one before it; ``path`` begins with the one after it."""
        after, here, *rest = path
        self.steps.append(partial(Path.spread, self, here, after))
        self.updates(here, after)
        self.left_out(here)
        self.beside(here)
        if not rest:
            self.steps.append(partial(Path.head, self, here))
            return []
        if self.split(rest[0]):
            raise ValueError("split layers in a row")
        self.steps += [partial(Path.back, self, here, after), partial(Path.join, self, rest[0], here)]
        self.steps.append(partial(Path.begin, self, rest[0], here))
        self.beside(rest[0])
        return rest

    def meeting(self, path: list[int]) -> list[int]:
        """Steps of a fused layer that the next one of the path reads, which is fused as well."""
        after, *rest = path
        if rest:
            self.steps.append(partial(Path.meet, self, rest[0], after))
            self.beside(rest[0])
        return rest
