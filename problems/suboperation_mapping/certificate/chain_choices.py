"""Choices of moves of a chain, for the two halves of its schedules; see :mod:`~.chain`. Standard library only.

One half has a move in a step, the other one has not. In every schedule accelerators that are equal (:mod:`~.alike`) can
be exchanged, in all places, and shares be sorted again, as long as no choice tells them apart. The first fused FP does
so, which is tried on the first of them only; where shares are counted none is exchanged. So where a move gives places
to fused operations, the half without it has none of the moves either that an exchange makes of it: a schedule with one
of these is as long as another one of the half with the move. That half tells the accelerators of the move apart, the
half without it none. Choices of any other move tell all of them apart, in both halves.
"""

from __future__ import annotations

from copy import copy
from itertools import product
from typing import Any, Self

from .chain_shares import CHAIN, Limits, Sizes
from .chain_shortcuts import Shortcuts


class Choices(Shortcuts):
    """The steps of a chain, and which moves are chosen.

    Attributes
    ----------
    chosen : dict of int to tuple of (int, bool)
        By step the moves that it has, or has not.
    untold : frozenset of int
        Accelerators that can still be exchanged with those that are equal and untold as well.
    """

    def __init__(
        self, instance: dict[str, Any], ratio: Sizes, kind: str = CHAIN, most: Sizes = (), out: Limits = ()
    ) -> None:
        super().__init__(instance, ratio, kind, most, out)
        self.chosen: dict[int, tuple[tuple[int, bool], ...]] = {}
        self.untold = frozenset(() if self.first_fused is None or self.counted else self.places) - {*self.firsts}

    def narrowed(self, k: int, number: int, yes: bool) -> Self:
        """With the move of this number as the only one of a step, or without it and those that it becomes."""
        found, where = copy(self), self.fused(k, number)
        those = [number] if yes or where is None else self.becomes(where)
        found.chosen = {**self.chosen, k: (*self.chosen.get(k, ()), *((n, yes) for n in those))}
        if yes or where is None:
            found.untold = self.untold - {*(self.places if where is None else where)}
        return found

    def fused(self, k: int, number: int) -> tuple[int, ...] | None:
        """The places that a move gives to fused operations; ``None`` if it is one of others."""
        if not 0 <= k < len(self.steps):
            return None
        kind, n = self.steps[k].func, len(self.places)
        if kind is Choices.meet:
            return divmod(number, n)
        return (number,) if kind in (Choices.reach, Choices.close, Choices.join, Choices.begin) else None

    def becomes(self, where: tuple[int, ...]) -> list[int]:
        """The numbers of the moves that exchanges of accelerators make of one."""
        found = []
        for number, other in enumerate(product(self.places, repeat=len(where))):
            pairs = [*zip(where, other, strict=True)]
            if all(self.exchanged(a, b) for a, b in pairs) and len({*where}) == len({*other}):
                found.append(number)
        return found

    def exchanged(self, a: int, b: int) -> bool:
        """Whether an exchange can bring one accelerator to the other."""
        return a == b or ({a, b} <= self.untold and self.firsts[a] == self.firsts[b])
