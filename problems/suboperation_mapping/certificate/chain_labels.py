"""Labels of a chain, and when they prove a bound: part of the writer, standard library only; see :mod:`~.chain`.

A proof is ``{"weights": [[first step, [[from step, w, …], …]], …], "grid": [g, …]}``. Labels for which some weights
(:mod:`~.chain_weights`) reach the bound are dropped; all numbers of others but the first are rounded down to a multiple
of the grid of the step; then dominated ones are dropped. It holds if every label that is left in the end has the bound.
Where shares are counted none may be left of the first step. Nor may a step leave more than :data:`MOST`: whatever is in
a file, following it takes no more memory than that.

Or it is a list of such proofs, the leaves of a tree, and of choices ``[step, number]`` before those of both halves: any
schedule has that move in that step, which are numbered from 0 for each state, or it has not (:mod:`~.chain_choices`).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable
from itertools import groupby
from typing import Any

from .chain import Chain
from .chain_after import folded, makespan, moved
from .chain_costs import Label, State
from .chain_weights import UNIT, Weights, weighted

Left = Callable[[Chain, int, Any], str | None]
MOST = 1 << 16
"""Labels that weights may leave of a step, before dominated ones are dropped."""
MANY = f"more than {MOST} labels are left of a step"


def undominated(labels: Iterable[Label]) -> list[Label]:
    """Those that no other one dominates, as it is no larger in any number; in rising order."""
    every = sorted({*labels})
    if every and len(every[0]) == 3:
        return below_stairs(every)
    below = [(1 << len(every)) - 1 for _ in every]  # of each, bits of those that may dominate it
    for numbers in zip(*every, strict=True):
        here = 0
        for _, equal in groupby(sorted(range(len(every)), key=numbers.__getitem__), numbers.__getitem__):
            those = [*equal]
            for i in those:
                here |= 1 << i
            for i in those:
                below[i] &= here
    return [label for i, label in enumerate(every) if below[i] == 1 << i]


def below_stairs(labels: Iterable[Label]) -> list[Label]:
    """The same of three numbers, of which the first one rises: what dominates a label comes before it."""
    found: list[Label] = []
    stairs: list[tuple[int, int]] = []  # of the last two numbers, the first one rising, the second one falling
    for label in labels:
        x, y = label[1:]
        k = bisect_right(stairs, (x, y))
        if k and stairs[k - 1][1] <= y:
            continue
        end = next((j for j in range(k, len(stairs)) if stairs[j][1] < y), len(stairs))
        stairs[k:end] = [(x, y)]
        found.append(label)
    return found


def outlived(chain: Chain, bound: int, proof: Any) -> str | None:
    """Why a proof does not hold; ``None`` if it does."""
    return followed(chain, bound, proof, left)


def followed(chain: Chain, bound: int, proof: Any, left: Left) -> str | None:
    """The same, by what says why a leaf alone does not prove a bound."""
    waiting = [chain]
    for part in proof if isinstance(proof, list) else [proof]:
        if not waiting:
            return "expected nothing after the last leaf"
        here = waiting.pop()
        if isinstance(part, list):
            step, number = part
            if {type(step), type(number)} != {int}:
                return "expected the numbers of a step and of a move"
            waiting += [here.narrowed(step, number, False), here.narrowed(step, number, True)]
        elif reason := left(here, bound, part):
            return reason
    return "a leaf is missing" if waiting else None


def left(chain: Chain, bound: int, proof: Any) -> str | None:
    """Why labels and weights alone do not prove a bound."""
    last = len(chain.steps)
    known = [Weights(chain, first, runs) for first, runs in proof["weights"]]
    grid = proof["grid"]
    if len(grid) != last or any(type(g) is not int or g < 1 for g in grid):
        return "expected a grid of every step"
    labels: dict[State, list[Label]] = {chain.origin: [chain.start()]}
    for k, g in enumerate(grid):
        ready = [(weights.rows[k + 1], weights.rest(k + 1)) for weights in known if weights.first <= k + 1 and labels]
        found: dict[State, list[Label]] = {}
        room = MOST
        for state, those in labels.items():
            for move in chain.moves(k, state):
                limits = [(row, UNIT * bound - rest[move[0]]) for row, rest in ready]
                for label in those:
                    new = folded(chain, label) if k == chain.fold else moved(chain, label, move)
                    if all(weighted(w, new) < limit for w, limit in limits):
                        found.setdefault(move[0], []).append((new[0], *(x // g * g for x in new[1:])))
                        room -= 1
                if room < 0:
                    return MANY
        if chain.counted and found:
            return "a label is left where shares are counted"
        labels = {state: undominated(those) for state, those in found.items()}
    for label in (label for those in labels.values() for label in those):
        if makespan(chain, label) < bound:
            return f"a label is left: {label}"
    return None
