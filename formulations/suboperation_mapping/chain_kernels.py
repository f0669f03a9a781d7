"""Compiled loops over the labels and moves of a chain, for :mod:`~.chain_diagram`."""

from __future__ import annotations

from typing import Annotated, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mapgap.kernels import Integers, Integers2, kernel
from mapgap.problems.suboperation_mapping.certificate.chain_costs import NEVER

Whole = NDArray[np.int64]
Small = Annotated[NDArray[np.int32], "i4[::1]"]


class Table(NamedTuple):
    """The moves of all states of all steps, one after the other; states are numbered over all steps.

    Many moves of a step cost the same, so weights are applied to different costs only.

    Attributes
    ----------
    begins : (states before the last step + 1,) int64
        First move of a state.
    to : (moves,) int32
        The state after a move.
    price : (moves,) int32
        Which cost it has; as many as there are for one that is left out.
    costs : (costs, numbers) int64
        What it adds to the numbers that have weights.
    rows : (costs,) int64
        Row of weights by which a cost is weighed.
    """

    begins: Integers
    to: Small
    price: Small
    costs: Integers2
    rows: Integers


@kernel("void(Table,i8[:,::1],i8[::1])", Table, makes_arrays=False)
def weigh(moves: Table, weights: Whole, prices: Whole) -> None:
    """Fill in ``prices``, what costs are by weights; one more, of moves that are left out."""
    for cost in range(len(moves.rows)):
        prices[cost] = 0
        for j in range(weights.shape[1]):
            prices[cost] += moves.costs[cost, j] * weights[moves.rows[cost], j]
    prices[len(moves.rows)] = NEVER


@kernel("void(Table,i8[::1],i8[::1])", Table, makes_arrays=False)
def shortest(moves: Table, prices: Whole, rest: Whole) -> None:
    """Fill in ``rest``, the least cost from a state on, 0 after the last step."""
    for state in range(len(moves.begins) - 2, -1, -1):
        best = NEVER
        for move in range(moves.begins[state], moves.begins[state + 1]):
            best = min(best, rest[moves.to[move]] + prices[moves.price[move]])
        rest[state] = best


@kernel("void(Table,i8[::1],i8[::1],i8[::1])", Table, makes_arrays=False)
def follow(moves: Table, prices: Whole, rest: Whole, path: Whole) -> None:
    """The moves of a shortest path."""
    state = 0
    for k in range(len(path)):
        best = NEVER
        for move in range(moves.begins[state], moves.begins[state + 1]):
            cost = rest[moves.to[move]] + prices[moves.price[move]]
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


@kernel("void(i8[:,::1],i8,i8,b1,b1[::1])")
def thin(labels: Whole, width: int, close: int, inner: bool, kept: NDArray[np.bool_]) -> None:
    """Of rows ``(state, numbers …)``, those of a state one after the other and the best first, at most ``width`` each.

    None of which a kept one is as good: no number is larger by more than ``close``, or, where the makespan is the first
    number and the largest of the others (not ``inner``), what others are larger by is made good by the first.
    """
    known = np.empty(width, np.int64)
    count = 0
    for i in range(len(labels)):
        if i == 0 or labels[i, 0] != labels[i - 1, 0]:
            count = 0
        if count == width:
            continue
        kept[i] = True
        for n in range(count):
            j = known[n]
            more = 0
            for m in range(1 if inner else 2, labels.shape[1]):
                more = max(more, labels[j, m] - labels[i, m])
            if not inner:
                more += labels[j, 1] - labels[i, 1]
            if more <= close:
                kept[i] = False
                break
        if kept[i]:
            known[count] = i
            count += 1
