"""Labels of a chain, and when they prove a bound: part of the writer, standard library only; see :mod:`~.chain`.

A proof is ``{"weights": [[first step, [[from step, w, …], …]], …], "grid": [g, …]}``. Labels for which some weights
(:mod:`~.chain_weights`) reach the bound are dropped; all numbers of others but the first are rounded down to a multiple
of the grid of the step; then dominated ones are dropped. It holds if every label that is left in the end has the bound.
Where shares are counted none may be left of the first step.

Or it is a list of such proofs, the leaves of a tree, and of choices ``[step, number]`` before those of both halves: any
schedule has that move in that step, which are numbered from 0 for each state, or it has not.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from operator import le
from typing import Any

from .chain import Chain
from .chain_after import folded, makespan, moved
from .chain_costs import Label, State
from .chain_weights import UNIT, Weights, weighted


def undominated(labels: Iterable[Label]) -> list[Label]:
    """One by one in rising order, so that what dominates a label comes before it."""
    found: list[Label] = []
    stairs: list[tuple[int, int]] = []  # of the last two numbers of three, the first one rising, the second one falling
    for label in sorted({*labels}):
        if len(label) == 3:
            x, y = label[1:]
            k = bisect_right(stairs, (x, y))
            if k and stairs[k - 1][1] <= y:
                continue
            end = next((j for j in range(k, len(stairs)) if stairs[j][1] < y), len(stairs))
            stairs[k:end] = [(x, y)]
        elif len(label) == 4:
            _, x, y, z = label
            if any(a <= x and b <= y and c <= z for _, a, b, c in found):
                continue
        elif any(all(map(le, other, label)) for other in found):
            continue
        found.append(label)
    return found


def outlived(chain: Chain, bound: int, proof: Any) -> str | None:
    """Why a proof does not hold; ``None`` if it does."""
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
        for state, those in labels.items():
            for move in chain.moves(k, state):
                limits = [(row, UNIT * bound - rest[move[0]]) for row, rest in ready]
                for label in those:
                    new = folded(chain, label) if k == chain.fold else moved(chain, label, move)
                    if all(weighted(w, new) < limit for w, limit in limits):
                        found.setdefault(move[0], []).append((new[0], *(x // g * g for x in new[1:])))
        if chain.counted and found:
            return "a label is left where shares are counted"
        labels = {state: undominated(those) for state, those in found.items()}
    for label in (label for those in labels.values() for label in those):
        if makespan(chain, label) < bound:
            return f"a label is left: {label}"
    return None
