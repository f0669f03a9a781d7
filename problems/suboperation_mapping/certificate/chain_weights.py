"""Weights of labels of a chain; see :mod:`~.chain`. Part of the writer, standard library only.

*Weights*, counted in 4096ths, say what a label leads to: the makespan is at least the sum of ``w[j]`` times its
``j``-th number and of ``R(state)``, the least sum of what the moves that follow cost with weights, those after each
move. In this no weight falls outwards, that of ``D`` is 1, and those of ``E`` add up to 1 at most in the end: ``E``
after a move is no less than its sum with the cost, and not negative. In the tail all add up to 1 at most, and starts
have none. Where it ends, ``E`` is at least the work less the largest ``D``: so weights of work are at most those of
``E`` after it, and those of the ``D`` add up to what they leave of 1.

Where nothing is fused, ``F`` have weights, too: after a move they are no less than their sums with the cost.

Where shares are counted, equal accelerators have equal weights, and so have alike shares: then states that differ in
names only lead to the same sums.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import mul

from .chain import Chain
from .chain_costs import NEVER, Label, State

UNIT = 1 << 12  #: of weights


def weighted(weights: Label, label: Label) -> int:
    return sum(map(mul, weights, label))


def by_step(chain: Chain, first: int, runs: Sequence[Sequence[int]]) -> list[Label]:
    """The weights of every step from the first one on; refuses those that prove nothing."""
    last, n = len(chain.steps), len(chain.places)
    starts = [run[0] for run in runs]
    if starts[0] != first or starts != sorted({*starts}) or starts[-1] > last:
        raise ValueError("weights of a step are missing")
    ends = zip(runs, [*starts[1:], last + 1], strict=True)
    rows = [w for run, end in ends for w in [tuple(run[1:])] * (end - run[0])]
    for k, w in enumerate(rows, first):
        if k > first and k - 1 != chain.fold and w is rows[k - first - 1]:  # of the same run
            continue
        if len(w) != (chain.weighed if chain.inner(k) else 1 + n) or min(w) < 0 or {*map(type, w)} != {int}:
            raise ValueError("weights of another length, or no whole numbers")
        for j in range(len(chain.shares) if chain.inner(k) else 1, len(w), len(chain.like)):
            if any(w[j + a] != w[j + q] for a, q in enumerate(chain.like)):
                raise ValueError("equal accelerators of different weights")
        of_shares = [(b, b + 1) for b in chain.alike_shares] if chain.counted and chain.inner(k) else []
        if chain.waits:
            few = len(chain.shares) + 2 * n
            of_shares += [(few + b * n + a, few + c * n + a) for b, c in of_shares for a in chain.places]
        if any(w[i] != w[j] for i, j in of_shares):
            raise ValueError("alike shares of different weights")
        if not chain.inner(k) and w[0] != UNIT:
            raise ValueError("a weight of D that is not 1")
        if k > first and (k - 1 == chain.fold or any(x > y for x, y in zip(rows[k - first - 1], w, strict=True))):
            before = rows[k - first - 1]
            if k - 1 != chain.fold or sum(before) > UNIT or any(map(int.__gt__, before[-n:], w[-n:])):
                raise ValueError("a weight that falls")
    if sum(rows[-1]) > UNIT * (1 if chain.fold is None else 2):
        raise ValueError("weights of a sum above 1")
    return rows


class Weights:
    """What labels of a state lead to, from a step on; refuses weights that prove nothing."""

    def __init__(self, chain: Chain, first: int, runs: Sequence[Sequence[int]]) -> None:
        self.first, last = first, len(chain.steps)
        self.rows = dict(enumerate(by_step(chain, first, runs), first))
        self.lists = chain.reachable()
        self.states = [chain.lists[number] for number in self.lists]
        self.least = {last: [0] * len(self.states[last])}  # of the states
        self.known: dict[int, dict[State, int]] = {}
        for k in reversed(range(first, last)):
            sums = chain.sums(k, *self.lists[k : k + 2])
            # Without a move it leads nowhere.
            self.least[k] = sums.least(self.rows[k + 1], self.least[k + 1], UNIT * NEVER)

    def rest(self, k: int) -> dict[State, int]:
        """The least sums of the moves that follow a state."""
        if k not in self.known:
            self.known[k] = dict(zip(self.states[k], self.least[k], strict=True))
        return self.known[k]
