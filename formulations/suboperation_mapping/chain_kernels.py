"""Compiled loops over the labels and moves of a chain, for :mod:`~.chain_diagram`."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mapgap.kernels import Flags, Integers, Integers2, kernel
from mapgap.problems.suboperation_mapping.certificate.chain_costs import NEVER

Whole = NDArray[np.int64]


class Table(NamedTuple):
    """The moves of all states of all steps, one after the other; states are numbered over all steps.

    Attributes
    ----------
    begins : (states before the last step + 1,) int64
        First move of a state.
    rows : (states before the last step,) int64
        Row of weights that its moves are weighed by; -1 where they cost nothing.
    to : (moves,) int64
        The state after a move.
    costs : (moves, numbers) int64
        What it adds to the numbers that have weights.
    barred : (moves,) bool
        Whether it is left out.
    """

    begins: Integers
    rows: Integers
    to: Integers
    costs: Integers2
    barred: Flags


@kernel("i8(Table,i8[:,::1],i8[::1],i8,i8)", Table, makes_arrays=False)
def weighed_move(moves: Table, weights: Whole, rest: Whole, row: int, move: int) -> int:
    """What a move and all that follows it cost."""
    if moves.barred[move]:
        return NEVER
    cost: int = rest[moves.to[move]]
    if row >= 0:
        for j in range(weights.shape[1]):
            cost += moves.costs[move, j] * weights[row, j]
    return cost


@kernel("void(Table,i8[:,::1],i8[::1])", Table, makes_arrays=False)
def shortest(moves: Table, weights: Whole, rest: Whole) -> None:
    """Fill in ``rest``, the least cost from a state on, 0 after the last step."""
    for state in range(len(moves.rows) - 1, -1, -1):
        best = NEVER
        for move in range(moves.begins[state], moves.begins[state + 1]):
            best = min(best, weighed_move(moves, weights, rest, moves.rows[state], move))
        rest[state] = best


@kernel("void(Table,i8[:,::1],i8[::1],i8[::1])", Table, makes_arrays=False)
def follow(moves: Table, weights: Whole, rest: Whole, path: Whole) -> None:
    """The moves of a shortest path."""
    state = 0
    for k in range(len(path)):
        path[k] = moves.begins[state]
        best = weighed_move(moves, weights, rest, moves.rows[state], path[k])
        for move in range(moves.begins[state] + 1, moves.begins[state + 1]):
            cost = weighed_move(moves, weights, rest, moves.rows[state], move)
            if cost < best:
                best, path[k] = cost, move
        state = moves.to[path[k]]


@kernel("void(i8[:,::1],b1[::1])")
def mark(labels: Whole, kept: NDArray[np.bool_]) -> None:
    """Rows of ``(state, numbers …)``, sorted, that no other one of the state dominates."""
    first = 0
    for i in range(len(labels)):
        if labels[i, 0] != labels[first, 0]:
            first = i
        kept[i] = True
        for j in range(first, i):
            if kept[j]:
                less = True
                for m in range(1, labels.shape[1]):
                    if labels[j, m] > labels[i, m]:
                        less = False
                        break
                if less:
                    kept[i] = False
                    break
