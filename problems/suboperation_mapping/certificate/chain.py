"""The makespan of one ratio along a chain of layers: part of the writer, standard library only.

Take a path of the network, from an input to an output, of most layers, and of the largest numbers among these; leave
out all other layers but for what is said below. Look at a schedule from the inside out: first at the layers after the
last fused one (the *tail*), then, layer by layer towards the input, at what encloses them. A *label*
``(D, E[0], E[1], …)`` bounds what is inside:

- between the start of FP and the end of BP of its outermost layer lies a time of ``D`` at least;
- after that, so much work is left on accelerator ``a`` that it cannot be done in less than ``E[a]``.

A fused operation separates what comes before it from what comes after it. So ``D`` grows by the time of FP, which is
that of the accelerator with most to do in it, and by that of BP; ``E[a]`` grows by the work of BP and WU on ``a``,
which cannot start before, and falls by the time of BP, but not below 0. No makespan is below ``D + max E``. In the tail
shares do not wait for each other: a label has a ``D`` for each, then the work on each accelerator, then the time before
which nothing starts there, counted for every operation from the start of FP of its own share. Nothing at all starts at
2^60, and later as this is passed on outwards; so no makespan may be that large. Where nothing is fused, all is tail.
Then work and start of BP and WU are counted apart as well: they come after all FP of their own share, so an accelerator
that did its FP may have to wait for them.

A step decides a place or some, which are part of the *state* as long as a cost depends on them. Costs are those of
:mod:`~.graph`, with all transfers along the path; others are left out. A layer beside the path whose output the path
reads has the work of its BP and WU, wherever these lie, as they follow the BP of the layer that reads it.

:mod:`~.chain_labels` says what proves a bound.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from operator import add
from typing import Any

from .chain_costs import NEVER, Label, Move, State
from .chain_path import Path


class Chain(Path):
    """The moves of a ratio, ``moves(k, state)`` for the ``k``-th step."""

    def __init__(self, instance: dict[str, Any], ratio: Sequence[int]) -> None:
        super().__init__(instance, ratio)
        self.known: dict[Any, list[Move]] = {}
        self.chosen: dict[int, list[tuple[int, bool]]] = {}  # by step the numbers of moves that it has, or has not
        self.first: dict[int, int] = {}
        self.numbered: dict[str, int] = {}
        self.late = len(self.places) if self.fold is None else 0  # numbers of a label for the work after FP
        self.timed = len(self.places) + self.late  # its starts

    def inner(self, k: int) -> bool:
        """Whether labels before a step are those of the tail."""
        return self.fold is None or k <= self.fold

    def start(self) -> Label:
        """The label of nothing, in the tail."""
        return (*(0 for _ in self.shares), *(0 for _ in range(self.timed)), *(NEVER for _ in range(self.timed)))

    def moves(self, k: int, state: State) -> list[Move]:
        key = self.twin(k), state
        if key not in self.known:
            found = self.steps[k](*state)
            self.known[key] = [self.with_late(*move) for move in found] if self.late else list(found)
        if k not in self.chosen:
            return self.known[key]
        chosen = self.chosen[k]
        return [move for j, move in enumerate(self.known[key]) if all((j == n) == yes for n, yes in chosen)]

    def narrowed(self, k: int, number: int, yes: bool) -> Chain:
        """With the move of this number as the only one of a step, or without it."""
        found = copy(self)
        found.chosen = {**self.chosen, k: [*self.chosen.get(k, ()), (number, yes)]}
        return found

    def with_late(self, after: State, added: Label, pairs: tuple[tuple[int, int], ...]) -> Move:
        """A move that adds to the work after FP as well; one of FP has no pairs."""
        d, n = len(self.shares), len(self.places)
        time, work, since = added[:d], added[d : d + n], added[d + n :]
        late, later = (work, 0) if pairs else ([0 for _ in work], min(time))
        both = *pairs, *((b, n + a) for b, a in pairs)
        return after, (*time, *work, *late, *since, *(later for _ in work)), both

    def cost(self, k: int, added: Label) -> Label:
        """What a move adds to the numbers that have weights."""
        if not self.inner(k + 1):
            return added
        few = len(self.shares) + len(self.places)
        return (*added[:few], *map(add, added[few:][: self.late], added[len(added) - self.late :]))

    def weighed(self, k: int, label: Label) -> Label:
        """The numbers of a label that have weights; the work after FP begins no sooner than what is added to it."""
        if not self.late or not self.inner(k):
            return label
        few, soonest = len(self.shares) + len(self.places), min(label[: len(self.shares)])
        starts = (min(start, soonest) for start in label[-self.late :])
        return (*label[:few], *map(add, label[few:], starts))

    def twin(self, k: int) -> int:
        """The first step with the same moves: that of other layers with the same numbers."""
        if k not in self.first:
            step = self.steps[k]
            layers = [self.layers[i] for i in step.args[1:] if i is not None]
            facts = [[layer[key] for key in ("kind", "fp", "bp", "wu", "weight_bytes")] for layer in layers]
            those = [o for i in step.args[1:] for o in self.operations if o[1] == i]
            sizes = [self.sizes.get((o, p)) for o in those for p in those]
            found = repr((step.func.__name__, [i is None for i in step.args], step.keywords, facts, sizes))
            self.first[k] = self.numbered.setdefault(found, k)
        return self.first[k]

    def states(self) -> list[list[State]]:
        """Those that can be reached, before each step and in the end."""
        found: list[list[State]] = [[(None, None)]]
        for k in range(len(self.steps)):
            found.append([*dict.fromkeys(after for state in found[-1] for after, *_ in self.moves(k, state))])
        return found
