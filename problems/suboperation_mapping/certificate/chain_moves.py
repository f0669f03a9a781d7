"""The moves of all steps of a chain; see :mod:`~.chain`. Part of the writer, standard library only."""

from __future__ import annotations

from typing import Any

from .chain_choices import Choices
from .chain_costs import Label, Move, State
from .chain_shares import CHAIN, Limits, Sizes
from .chain_shortcuts import START


class Moves(Choices):
    """The moves of a ratio, ``moves(k, state)`` for the ``k``-th step."""

    def __init__(
        self, instance: dict[str, Any], ratio: Sizes, kind: str = CHAIN, most: Sizes = (), out: Limits = ()
    ) -> None:
        super().__init__(instance, ratio, kind, most, out)
        self.known: dict[Any, list[Move]] = {}
        self.numbers: dict[Any, list[int]] = {}  # of those moves
        self.first, self.numbered = dict[int, int](), dict[str, int]()
        facts = [[layer[key] for key in ("kind", "fp", "bp", "wu", "weight_bytes")] for layer in self.layers]
        self.kinds = [facts.index(own) for own in facts]  # by layer the first one with the same numbers
        self.operations_of = [[o for o in self.operations if o[1] == i] for i in range(len(self.layers))]
        self.waits = self.fold is None  # shares wait for each other: a label has F, of all and of each
        times = len(self.shares) + len(self.places)
        # How many numbers of a label of the tail have weights.
        self.weighed = times + self.waits * (1 + len(self.shares)) * len(self.places)

    def inner(self, k: int) -> bool:
        """Whether labels before a step are those of the tail."""
        return self.fold is None or k <= self.fold

    def waiting(self, after: State, added: Label, pairs: tuple[tuple[int, int], ...]) -> Move:
        """A move that adds to ``F`` as well: the time of FP, which has no pairs, and work of BP and WU."""
        d, n = len(self.shares), len(self.places)
        time, work, since = added[:d], added[d : d + n], added[d + n :]
        if not pairs:
            every, own = (min(time),) * n, [t for t in time for _ in work]
        else:
            every, own = work, [0] * (d * n)
            for b, a in pairs:
                own[b * n + a] = work[a] if len(pairs) == 1 else time[b]
        return after, (*time, *work, *every, *own, *since), pairs

    def cost(self, k: int, added: Label) -> Label:
        """What a move adds to the numbers that have weights."""
        return added[: self.weighed] if self.inner(k + 1) else added

    def every(self, k: int, state: State) -> list[Move]:
        """The moves of a state, chosen or not."""
        key = self.twin(k), state
        if key not in self.known:
            if len(state) > len(START):
                self.known[key] = [self.remembering(k, state[-1], move) for move in self.every(k, state[:-1])]
                self.numbers[key] = self.numbers[self.twin(k), state[:-1]]
            else:
                found = list(self.steps[k](*state))
                if k == self.first_fused:
                    found = [move if move and move[0][0] in self.firsts else None for move in found]
                moves = [move for move in found if move]
                if self.counted:
                    moves = [(self.names.get(to) or self.named(to), added, pairs) for to, added, pairs in moves]
                self.known[key] = [self.waiting(*move) for move in moves] if self.waits else moves
                self.numbers[key] = [j for j, move in enumerate(found) if move]
        return self.known[key]

    def moves(self, k: int, state: State) -> list[Move]:
        """Those that are chosen."""
        every = self.every(k, state)
        if k not in self.chosen:
            return every
        numbered = zip(self.numbers[self.twin(k), state], every, strict=True)
        return [move for j, move in numbered if all((j == n) == yes for n, yes in self.chosen[k])]

    def twin(self, k: int) -> int:
        """The first step with the same moves: that of other layers with the same numbers."""
        if k not in self.first:
            step = self.steps[k]
            layers = [i for i in step.args[1:] if i is not None]
            facts = [self.kinds[i] for i in layers]
            those = [o for i in layers for o in self.operations_of[i]]
            number = {o: j for j, o in enumerate(those)}
            sizes = [(number[o], number[p], size) for o in those for p, size in self.before[o] if p in number]
            told = k == self.first_fused, [i is None for i in step.args], step.keywords, *self.told(k)
            found = repr((step.func.__name__, told, facts, sizes))
            self.first[k] = self.numbered.setdefault(found, k)
        return self.first[k]
