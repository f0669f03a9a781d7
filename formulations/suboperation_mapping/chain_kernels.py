"""Compiled loops over the labels and moves of a chain, for :mod:`~.chain_diagram`."""

from __future__ import annotations

from typing import Annotated, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mapgap.kernels import Integers, Integers2, Integers3, kernel
from mapgap.problems.suboperation_mapping.certificate.chain_costs import NEVER

Whole = NDArray[np.int64]
Small = Annotated[NDArray[np.int32], "i4[::1]"]
Flags = NDArray[np.bool_]
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
        Which cost it has; of one that is left out the number of all costs more.
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


class Known(NamedTuple):
    """Some weights, each from a step on.

    Attributes
    ----------
    firsts : (weights,) int64
        The first step that has them.
    rows : (weights, steps + 1, numbers) int64
    rests : (weights, states) int64
        What states lead to, by their number over all steps.
    """

    firsts: Integers
    rows: Integers3
    rests: Integers2


@kernel("void(Table,i8[:,::1],i8[::1])", Table, makes_arrays=False)
def weigh(moves: Table, weights: Whole, prices: Whole) -> None:
    """Fill in ``prices``, what costs are by weights, and as many of moves that are left out."""
    for cost in range(len(moves.rows)):
        prices[cost], prices[len(moves.rows) + cost] = 0, NEVER
        for j in range(weights.shape[1]):
            prices[cost] += moves.costs[cost, j] * weights[moves.rows[cost], j]


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


@kernel("i8(i8[:,::1],i8)", makes_arrays=False)
def coded(rows: Whole, i: int) -> int:
    """A number that rows which are equal have in common."""
    code = 0
    for j in range(rows.shape[1]):
        code = (code ^ rows[i, j]) * ODD
        code ^= code >> 29
    return code


@kernel("i8(i8[:,::1],i8[:,::1],i4[::1],i8,i4[::1])", makes_arrays=False)
def group(rows: Whole, known: Whole, slots: Small, count: int, which: Small) -> int:
    """Number rows as they come, equal ones alike; how many there are then.

    The first ``count`` of ``known`` have numbers, and it has room for others; ``slots`` have these numbers, or -1, and
    are more than twice as many, by a power of 2. ``which`` gets the number of each row.
    """
    mask = len(slots) - 1
    for i in range(len(rows)):
        slot = coded(rows, i) & mask
        while True:
            number = slots[slot]
            if number < 0:
                slots[slot] = which[i] = count
                for j in range(rows.shape[1]):
                    known[count, j] = rows[i, j]
                count += 1
                break
            equal = True
            for j in range(rows.shape[1]):
                equal &= known[number, j] == rows[i, j]
            if equal:
                which[i] = number
                break
            slot = (slot + 1) & mask
    return count


@kernel("Tuple((i8[:,::1],i4[::1]))(i8[:,::1],i8,i8)")
def room(known: Whole, count: int, more: int) -> tuple[Whole, Small]:
    """The first ``count`` rows with room for more, twice as many or ``more``, and their slots."""
    rows = np.empty((count + max(count, more), known.shape[1]), np.int64)
    rows[:count] = known[:count]
    many = 4
    while many <= 2 * len(rows):
        many *= 2
    slots = np.full(many, -1, np.int32)
    for i in range(count):
        slot = coded(rows, i) & (many - 1)
        while slots[slot] >= 0:
            slot = (slot + 1) & (many - 1)
        slots[slot] = i
    return rows, slots


@kernel("i8[:,::1](i8[:,::1],i4[::1])")
def different(rows: Whole, which: Small) -> Whole:
    """The rows that differ, as they come; ``which`` gets which of them each row is."""
    count = 0
    known, slots = room(rows, 0, LANES)
    for begin in range(0, len(rows), LANES):
        end = min(begin + LANES, len(rows))
        if count + LANES > len(known):
            known, slots = room(known, count, LANES)
        count = group(rows[begin:end], known, slots, count, which[begin:end])
    return known[:count].copy()


@kernel("i8[:,::1](i8[:,:,::1],i8[:,:,::1],i8[:,::1],i8,b1[:,::1],i4[:,:,::1])")
def deal(
    first: NDArray[np.int64], second: NDArray[np.int64], spreads: Whole, places: int, here: Flags, which: Small
) -> Whole:
    """What BP adds, rows that differ: the longest load of an accelerator, and by how much those of others are shorter.

    ``which`` gets which of them it is, by spread of FP, state of BP and own spread, of those that are ``here``. A share
    takes the sum of ``first``, by share, spread of FP and own spread, and ``second``, by share, state of BP and own
    spread.
    """
    shares, fronts, many = first.shape
    rows, count = np.empty((many, 1 + places), np.int64), 0
    known, slots = room(rows, 0, many)
    for i in range(fronts):
        for j in range(second.shape[1]):
            if not here[i, j]:
                continue
            rows[:] = 0
            for own in range(many):
                for b in range(shares):
                    rows[own, 1 + spreads[own, b]] += first[b, i, own] + second[b, j, own]
                for a in range(1, 1 + places):
                    rows[own, 0] = max(rows[own, 0], rows[own, a])
                for a in range(1, 1 + places):
                    rows[own, a] -= rows[own, 0]
            if count + many > len(known):
                known, slots = room(known, count, many)
            count = group(rows, known, slots, count, which[i, j])
    return known[:count].copy()


@kernel("i8(i8[:,::1],i8[::1],i8,i8,Table,Known,i8,i8,i8[:,::1])", Table, Known, makes_arrays=False)
def advance(
    labels: Whole, starts: Whole, first: int, offset: int, moves: Table, known: Known, step: int, limit: int, new: Whole
) -> int:
    """Labels ``(state, numbers …)`` after all moves that lead to a step and are not left out; how many there are.

    ``starts`` are by state, from the ``first`` move of the step on; states after it are numbered from ``offset`` on.
    Without those that lead to a limit, in 4096ths, by weights that are known.
    """
    count = 0
    for i in range(len(labels)):
        state = labels[i, 0]
        for move in range(first + starts[state], first + starts[state + 1]):
            price = moves.price[move]
            if price >= len(moves.rows):
                continue
            new[count, 0] = moves.to[move] - offset
            for j in range(1, labels.shape[1]):
                new[count, j] = max(0, labels[i, j] + moves.costs[price, j - 1])
            kept = True
            for w in range(len(known.firsts)):
                value = known.rests[w, moves.to[move]]
                for j in range(1, labels.shape[1]):
                    value += known.rows[w, step, j - 1] * new[count, j]
                if value >= limit and known.firsts[w] <= step:
                    kept = False
                    break
            if kept:
                count += 1
    return count


@kernel("i8(i8[:,::1])", makes_arrays=False)
def sieve(labels: Whole) -> int:
    """Move rows of ``(state, numbers …)`` that no other one of the state dominates to the front; how many there are.

    For a few rows, in any order; of equal ones the first stays.
    """
    count = 0
    for i in range(len(labels)):
        left = 0
        dominated = False
        for n in range(count):
            less = more = labels[n, 0] == labels[i, 0]
            for j in range(1, labels.shape[1]):
                less &= labels[n, j] <= labels[i, j]
                more &= labels[n, j] >= labels[i, j]
            if less:  # then none before was worse than this one, and all are where they were
                dominated = True
                break
            if not more:
                for j in range(labels.shape[1]):
                    labels[left, j] = labels[n, j]
                left += 1
        if not dominated:
            for j in range(labels.shape[1]):
                labels[left, j] = labels[i, j]
            count = left + 1
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
