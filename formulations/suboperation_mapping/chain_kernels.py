"""Compiled loops over the labels and moves of a chain, for :mod:`~.chain_diagram`."""

from __future__ import annotations

from typing import Annotated, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mapgap.kernels import Integers, Integers2, kernel
from mapgap.problems.suboperation_mapping.certificate.chain_costs import NEVER

Whole = NDArray[np.int64]
Small = Annotated[NDArray[np.int32], "i4[::1]"]
LANES = 32  #: labels that are compared at a time
ODD = 0x61C8864680B583EB  #: spreads the sums of rows over all numbers of 64 bits


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


@kernel("void(i8[:,:,::1],i8[:,:,::1],i8[:,::1],i8[:,:,:,::1])")
def deal(first: NDArray[np.int64], second: NDArray[np.int64], spreads: Whole, added: NDArray[np.int64]) -> None:
    """Fill in what BP adds, zeros so far: the longest load of an accelerator, and by how much others are shorter.

    A share takes the sum of ``first``, by share, spread of FP and own spread, and ``second``, by share, state of BP and
    own spread.
    """
    shares, fronts, many = first.shape
    for i in range(fronts):
        for j in range(second.shape[1]):
            for own in range(many):
                here = added[i, j, own]
                for b in range(shares):
                    here[1 + spreads[own, b]] += first[b, i, own] + second[b, j, own]
                for a in range(1, len(here)):
                    here[0] = max(here[0], here[a])
                for a in range(1, len(here)):
                    here[a] -= here[0]


@kernel("i8(i8[:,::1],i4[::1],i4[::1],i4[::1])")
def group(rows: Whole, slots: Small, first: Small, which: Small) -> int:
    """Number different rows as they come; how many there are.

    ``slots`` are -1, more than there are rows, by a power of 2; ``first`` gets a row of each number, ``which`` the
    number of each row.
    """
    count, mask = 0, len(slots) - 1
    for i in range(len(rows)):
        code = np.int64(0)
        for j in range(rows.shape[1]):
            code = (code ^ rows[i, j]) * ODD
            code ^= code >> 29
        slot = code & mask
        while True:
            known = slots[slot]
            if known < 0:
                slots[slot] = which[i] = count
                first[count] = i
                count += 1
                break
            equal = True
            for j in range(rows.shape[1]):
                if rows[first[known], j] != rows[i, j]:
                    equal = False
                    break
            if equal:
                which[i] = known
                break
            slot = (slot + 1) & mask
    return count


@kernel("i8(i8[:,::1],i8[::1],i8,i8,Table,i8[:,::1])", Table, makes_arrays=False)
def advance(labels: Whole, starts: Whole, first: int, offset: int, moves: Table, new: Whole) -> int:
    """Labels ``(state, numbers …)`` after all moves of a step that are not left out; how many there are.

    ``starts`` are by state, from the ``first`` move of the step on; states after it are numbered from ``offset`` on.
    """
    count = 0
    for i in range(len(labels)):
        state = labels[i, 0]
        for move in range(first + starts[state], first + starts[state + 1]):
            price = moves.price[move]
            if price < len(moves.rows):
                new[count, 0] = moves.to[move] - offset
                for j in range(1, labels.shape[1]):
                    new[count, j] = max(0, labels[i, j] + moves.costs[price, j - 1])
                count += 1
    return count


@kernel("void(i8[:,::1],b1[::1])")
def mark(labels: Whole, kept: NDArray[np.bool_]) -> None:
    """Rows of ``(state, numbers …)``, sorted, that no other one of the state dominates.

    A row is compared with ``LANES`` others at a time, without a branch; the first numbers of these are no larger.
    """
    numbers = labels.shape[1] - 2
    known = np.full((len(labels) // LANES + 1, numbers, LANES), NEVER)
    less = np.empty(LANES, np.int64)
    count = 0
    for i in range(len(labels)):
        if i == 0 or labels[i, 0] != labels[i - 1, 0]:
            known[: count // LANES + 1] = NEVER + NEVER
            count = 0
        kept[i] = True
        for n in range(count // LANES + 1):
            less[:] = 1
            some = 1
            for m in range(numbers):
                some = 0
                for j in range(LANES):
                    less[j] &= known[n, m, j] <= labels[i, 2 + m]
                    some |= less[j]
                if not some:
                    break
            if some:
                kept[i] = False
                break
        if kept[i]:
            for m in range(numbers):
                known[count // LANES, m, count % LANES] = labels[i, 2 + m]
            count += 1


@kernel("void(i8[:,::1],i8[::1],i8[::1],i8[::1])")
def gather(labels: Whole, order: Whole, begins: Whole, found: Whole) -> None:
    """Fill in ``found``, labels state by state, else in their order; ``begins`` are where those of a state begin."""
    for i in order:
        state = labels[i, 0]
        found[begins[state]] = i
        begins[state] += 1


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
