"""The program along a chain of layers and the prices of its limits, compiled; values are 64-bit integers.

Notation: layer i of I has the counts ``box.lower[i]..box.upper[i]`` and the entries ``start[i] + n`` of every table, n
from 0 to N_i. With multipliers of work and memory, scaled by 2^shift like the values, the Lagrangian of a mask is

    sum_i  value[start[i] + n_i]  -  pair[i] n_{i-1} n_i  -  single[i] n_i,     pair[0] = 0.
"""

from __future__ import annotations

from typing import Annotated, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mapgap.kernels import Flag, Integer, Integers, Integers2, kernel

LEAST = -(2**62)

Reals2 = Annotated[NDArray[np.float64], "f8[:,::1]"]


class Worth(NamedTuple):
    """Scaled worth of every count of every layer.

    Attributes
    ----------
    value : (entries,)
        ``value[start[i] + n]`` is what n kept neurons of layer i are worth, times 2^shift.
    start : (I,)
        First entry of every layer.
    shift : int
    """

    value: Integers
    start: Integers
    shift: Integer


class Box(NamedTuple):
    """Counts ``lower[i]..upper[i]`` of every layer, both (I,)."""

    lower: Integers
    upper: Integers


class Prices(NamedTuple):
    """Scaled integer prices as costs of the chain, and C(A, B).

    Attributes
    ----------
    pair, single : (I,)
        Price of a pair of neurons of layers i - 1 and i, and of a neuron of layer i; ``pair[0]`` is 0.
    support : int
    """

    pair: Integers
    single: Integers
    support: Integer


class Limits(NamedTuple):
    """Costs of the chain and the limits of Eq. (5).

    Attributes
    ----------
    coefficients : (3, I)
        Rows of work and of weights per pair (per neuron in the first layer, which reads the input), and of features.
    work, memory, time : int
        Limits.
    hard : bool
        Memory is.
    transfer_ticks, transfer_per, spill_ticks, spill_per : int
        Rates of main and secondary memory.
    """

    coefficients: Integers2
    work: Integer
    memory: Integer
    time: Integer
    hard: Flag
    transfer_ticks: Integer
    transfer_per: Integer
    spill_ticks: Integer
    spill_per: Integer


@kernel("i8(Worth,Box,Prices,i8[::1],i8[::1],i8[::1])", Worth, Box, Prices)
def run_program(worth: Worth, box: Box, prices: Prices, prefix: Integers, choice: Integers, kept: Integers) -> int:
    """Largest Lagrangian of a mask in the box; fills ``kept`` with such a mask.

    ``prefix[start[i] + n]`` becomes the largest Lagrangian of layers 0..i with n_i = n, ``choice`` the n_{i-1} in it.
    The best n_{i-1} falls as n_i rises (the cross term is -pair n_{i-1} n_i with pair >= 0), so divide and conquer
    needs O(N log N) steps per layer.
    """
    value, start, lower, upper, pair, single = (
        worth.value,
        worth.start,
        box.lower,
        box.upper,
        prices.pair,
        prices.single,
    )
    count = len(lower)
    stack = np.empty((128, 4), np.int64)
    for n in range(lower[0], upper[0] + 1):
        prefix[start[0] + n] = value[start[0] + n] - single[0] * n
    for i in range(1, count):
        stack[0, 0], stack[0, 1], stack[0, 2], stack[0, 3] = lower[i], upper[i], lower[i - 1], upper[i - 1]
        top = 1
        while top > 0:
            top -= 1
            first, last, low, high = stack[top, 0], stack[top, 1], stack[top, 2], stack[top, 3]
            n = (first + last) // 2
            best, winner = LEAST, low
            for m in range(low, high + 1):
                candidate = prefix[start[i - 1] + m] - pair[i] * m * n
                if candidate > best:
                    best, winner = candidate, m
            prefix[start[i] + n] = best + value[start[i] + n] - single[i] * n
            choice[start[i] + n] = winner
            if first < n:
                stack[top, 0], stack[top, 1], stack[top, 2], stack[top, 3] = first, n - 1, winner, high
                top += 1
            if n < last:
                stack[top, 0], stack[top, 1], stack[top, 2], stack[top, 3] = n + 1, last, low, winner
                top += 1
    best = LEAST
    for n in range(lower[count - 1], upper[count - 1] + 1):
        if prefix[start[count - 1] + n] > best:
            best = prefix[start[count - 1] + n]
            kept[count - 1] = n
    for i in range(count - 1, 0, -1):
        kept[i - 1] = choice[start[i] + kept[i]]
    return best


@kernel("f8(f8[:,::1],f8[:,::1],f8,f8)")
def master_value(cuts: Reals2, corners: Reals2, a: float, b: float) -> float:
    """Upper envelope of the known masks (value, work, memory) plus the support function of the limits' corners."""
    best = -np.inf
    for r in range(len(cuts)):
        best = max(best, cuts[r, 0] - a * cuts[r, 1] - b * cuts[r, 2])
    support = 0.0
    for c in range(len(corners)):
        support = max(support, a * corners[c, 0] + b * corners[c, 1])
    return best + support


@kernel("Tuple((f8,f8,f8))(f8[:,::1],f8[:,::1],f8,f8)")
def solve_master(cuts: Reals2, corners: Reals2, most_a: float, most_b: float) -> tuple[float, float, float]:
    """``(a, b, value)`` that minimise :func:`master_value`, by golden sections in a golden section.

    The function is convex. Any multipliers give a valid bound; precision only makes it better.
    """
    ratio = 0.6180339887498949

    low_a, high_a = 0.0, most_a
    points_a = np.array([high_a - ratio * (high_a - low_a), low_a + ratio * (high_a - low_a)])
    found = np.empty((2, 2))
    fresh = np.array([True, True])
    best_a, best_b, best = 0.0, 0.0, np.inf
    for _ in range(60):
        for side in range(2):
            if not fresh[side]:
                continue
            a = points_a[side]
            low, high = 0.0, most_b
            x, y = high - ratio * (high - low), low + ratio * (high - low)
            at_x, at_y = master_value(cuts, corners, a, x), master_value(cuts, corners, a, y)
            for _ in range(60):
                if at_x <= at_y:
                    high, y, at_y = y, x, at_x
                    x = high - ratio * (high - low)
                    at_x = master_value(cuts, corners, a, x)
                else:
                    low, x, at_x = x, y, at_y
                    y = low + ratio * (high - low)
                    at_y = master_value(cuts, corners, a, y)
            at_zero = master_value(cuts, corners, a, 0.0)
            found[side, 0], found[side, 1] = (x, at_x) if at_x < at_zero else (0.0, at_zero)
            if found[side, 1] < best:
                best_a, best_b, best = a, found[side, 0], found[side, 1]
        if found[0, 1] <= found[1, 1]:
            high_a = points_a[1]
            points_a[1], points_a[0] = points_a[0], high_a - ratio * (high_a - low_a)
            found[1] = found[0]
            fresh[0], fresh[1] = True, False
        else:
            low_a = points_a[0]
            points_a[0], points_a[1] = points_a[1], low_a + ratio * (high_a - low_a)
            found[0] = found[1]
            fresh[0], fresh[1] = False, True
    return best_a, best_b, best


@kernel("b1(Limits,i8,i8)", Limits)
def allowed(limits: Limits, work: int, memory: int) -> bool:
    """Eq. (5)."""
    if work > limits.work or (limits.hard and memory > limits.memory):
        return False
    over = 0 if limits.hard else max(0, memory - limits.memory)
    transfer = -(-limits.transfer_ticks * memory // limits.transfer_per)
    spill = -(-limits.spill_ticks * over // limits.spill_per)
    return work + transfer + spill <= limits.time


@kernel("void(Limits,i8[::1],i8,i8[::1])", Limits)
def price_neuron(limits: Limits, kept: Integers, i: int, used: Integers) -> None:
    """Fill ``used`` with the work and the memory of one neuron of layer i beside its neighbours."""
    costs, last = limits.coefficients, len(kept) - 1
    before = kept[i - 1] if i > 0 else 1
    work, memory = costs[0, i] * before, costs[1, i] * before + costs[2, i]
    if i < last:
        work += costs[0, i + 1] * kept[i + 1]
        memory += costs[1, i + 1] * kept[i + 1]
    used[0], used[1] = work, memory


@kernel("void(Worth,Box,Limits,i8[::1],i8[::1])", Worth, Box, Limits)
def exchange(worth: Worth, box: Box, limits: Limits, kept: Integers, totals: Integers) -> None:
    """Give neurons of one layer for neurons of another while that is worth it.

    Layer i falls by 1, 2, 4, … neurons, or to the bottom of its box, and layer j rises as far as the limits allow.
    ``totals`` are work and memory of ``kept``; both change.
    """
    count, value, start = len(kept), worth.value, worth.start
    unit = np.zeros(2, np.int64)
    found = True
    while found:
        found = False
        for i in range(count):
            size = 1
            while kept[i] > box.lower[i]:
                fall = min(size, kept[i] - box.lower[i])
                old = kept[i]
                lost = value[start[i] + old] - value[start[i] + old - fall]
                price_neuron(limits, kept, i, unit)
                work, memory = totals[0] - fall * unit[0], totals[1] - fall * unit[1]
                kept[i] = old - fall
                best, winner, top = lost, -1, 0
                for j in range(count):
                    if j == i or kept[j] == box.upper[j]:
                        continue
                    price_neuron(limits, kept, j, unit)
                    low, high = 0, box.upper[j] - kept[j] + 1
                    while high - low > 1:
                        middle = (low + high) // 2
                        if allowed(limits, work + middle * unit[0], memory + middle * unit[1]):
                            low = middle
                        else:
                            high = middle
                    gain = value[start[j] + kept[j] + low] - value[start[j] + kept[j]]
                    if gain > best:
                        best, winner, top = gain, j, low
                if winner >= 0:
                    price_neuron(limits, kept, winner, unit)
                    totals[0], totals[1] = work + top * unit[0], memory + top * unit[1]
                    kept[winner] += top
                    found = True
                else:
                    kept[i] = old
                    if fall < size or fall == old - box.lower[i]:
                        break
                    size *= 2
