"""What the shares of a chain have in common; see :mod:`~.chain`. Part of the writer, standard library only."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, combinations_with_replacement, groupby, product, starmap
from typing import Any

from .alike import firsts
from .graph import Graph

CHAIN = " chain"  #: kinds of chains, as names of cases end
SHORTCUTS = " shortcuts"
COUNTED = " counted"
HEADED = " headed"
CHAINS = (CHAIN, SHORTCUTS, COUNTED, HEADED)
ELSEWHERE = -1  #: the place of a share that is on another accelerator than the one that reads it


Sizes = Sequence[int]  #: samples of shares
Limits = Sequence[tuple[int, int]]  #: the least and the most that they can be


class Shares(Graph):
    """Shares have the samples of ``ratio`` at least and of ``most`` at most.

    Attributes
    ----------
    out : sequence of (int, int)
        The limits of shares that only have work of BP and WU.
    counted, headed : bool
        Alike shares are counted on every accelerator, and equal accelerators are told apart by what they have only; or
        the first ones of these from the others all the same.
    firsts, like : list of int
        Of every accelerator the first equal one, and in ``like`` the first one that it is not told apart from.
    runs : list of list of int
        Shares that are alike.
    ways, spreads : list
        Places of shares that are counted, which rise, by class, by run; and of all shares.
    """

    def __init__(
        self, instance: dict[str, Any], ratio: Sizes, kind: str = CHAIN, most: Sizes = (), out: Limits = ()
    ) -> None:
        super().__init__(instance, tuple(ratio))
        self.most, self.out = tuple(most) or self.ratio, out
        self.counted, self.headed = kind in (COUNTED, HEADED), kind == HEADED
        self.firsts = firsts(instance)
        self.like = self.firsts if self.counted else [*self.places]
        if self.headed:
            self.like = [a if a == f else self.firsts.index(f, f + 1) for a, f in enumerate(self.firsts)]
        order = sorted(self.places, key=lambda a: (self.like[a], a))
        self.rank = [order.index(a) for a in self.places]
        limits = list(zip(self.ratio, self.most, strict=True))
        self.runs = [list(those) for _, those in groupby(self.shares, limits.__getitem__)]
        self.alike_shares = [b for run in self.runs for b in run[:-1]]  # the next one is alike
        self.ways = [[*combinations_with_replacement(order, len(run))] for run in self.runs]
        rising = product(*self.ways)
        every = product(self.places, repeat=len(self.shares))
        self.spreads = [tuple(chain.from_iterable(those)) for those in rising] if self.counted else list(every)
        self.names: dict[Any, tuple[Any, ...]] = {}
        self.sources_known: dict[Any, list[int]] = {}
        self.rising_known: dict[Any, list[tuple[int, ...] | None]] = {}

    def least(self, phase: str, layer: int, a: int, low: int, high: int) -> int:
        """What a phase of a share takes, with as many samples as that."""
        return int(min(self.layers[layer][phase.lower()][a][low - 1 : high]))

    def rising(self, c: Any = None) -> list[tuple[int, ...] | None]:
        """Places of shares, of FP or with those ``c`` of FP of BP; ``None`` where alike shares have falling ones.

        Those of BP may fall where those of FP rise. Those that are counted all rise.
        """
        ties = tuple(b for b in self.alike_shares if not self.counted and (c is None or c[b] == c[b + 1]))
        if ties not in self.rising_known:
            self.rising_known[ties] = [x if all(x[b] <= x[b + 1] for b in ties) else None for x in self.spreads]
        return self.rising_known[ties]

    def sources(self, before: Sequence[int], own: Sequence[int]) -> Sequence[int]:
        """Where shares on places ``own`` were before; of those that are counted as many were there as can be."""
        if not self.counted:
            return before
        key = *before, *own
        if key not in self.sources_known:
            both = (([before[b] for b in run], [own[b] for b in run]) for run in self.runs)
            self.sources_known[key] = [*chain.from_iterable(starmap(self.nearest, both))]
        return self.sources_known[key]

    def nearest(self, before: Sequence[int], own: Sequence[int]) -> list[int]:
        """The same of a run alone."""
        there, found = [*before], []
        for a in own:
            found.append(a if a in there else ELSEWHERE)
            if a in there:
                there.remove(a)
        return found

    def named(self, state: tuple[Any, ...]) -> tuple[Any, ...]:
        """With accelerators of a class in falling order of what they have: of FP first, of larger shares first."""
        if state not in self.names:
            order = sorted(self.places, key=lambda a: self.held(state, a), reverse=True)
            name: dict[Any, Any] = {None: None}
            for q in {*self.like}:
                own = [a for a in order if self.like[a] == q]
                name |= zip(own, sorted(own), strict=True)
            self.names[state] = tuple(
                tuple(a for run in self.runs for a in sorted((name[part[b]] for b in run), key=self.rank.__getitem__))
                if isinstance(part, tuple)
                else name[part]
                for part in state
            )
        return self.names[state]

    def held(self, state: tuple[Any, ...], a: int) -> list[int]:
        """How many shares of each run lie on an accelerator, and whether fused operations do."""
        found: list[int] = []
        for part in state:
            found += [[part[b] for b in run].count(a) for run in self.runs] if isinstance(part, tuple) else [part == a]
        return found
