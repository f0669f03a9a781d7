"""Compiled parts of ``lagrangian.py``; all values are 64-bit integers, so that every bound is exact.

Notation: layer i of I has the counts ``lower[i]..upper[i]`` and the entries ``start[i] + n`` of every table, n from 0
to N_i. With multipliers of work and memory, scaled by 2^shift like the values, the Lagrangian of a mask is

    sum_i  value[start[i] + n_i]  -  pair[i] n_{i-1} n_i  -  single[i] n_i,     pair[0] = 0.
"""

from __future__ import annotations

import numpy as np
from numba import njit

LEAST = -(2**62)


@njit("i8(i8[::1],i8[::1],i8[::1],i8[::1],i8[::1],i8[::1],i8[::1],i8[::1],i8[::1])", cache=True)
def run_program(value, start, lower, upper, pair, single, prefix, choice, kept):  # type: ignore[no-untyped-def]
    """Largest Lagrangian of a mask in the box; fills ``kept`` with such a mask.

    ``prefix[start[i] + n]`` becomes the largest Lagrangian of layers 0..i with n_i = n, ``choice`` the n_{i-1} in it.
    The best n_{i-1} falls as n_i rises (the cross term is -pair n_{i-1} n_i with pair >= 0), so divide and conquer
    needs O(N log N) steps per layer.
    """
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


@njit("void(i8[::1],i8[::1],i8[::1],i8[::1],i8[::1],i8[::1],i8[::1],i8,i8[::1],i8[::1])", cache=True)
def run_hull(value, start, lower, upper, single, prefix, suffix, least, low, high):  # type: ignore[no-untyped-def]
    """Fill ``low`` and ``high`` with the extreme counts of every layer in masks of a Lagrangian of ``least`` or more.

    ``prefix`` and ``suffix`` are the tables of :func:`run_program` on the chain and on the reversed chain; both count
    the layer itself. A layer in which no count reaches ``least`` gets ``low > high``.
    """
    for i in range(len(lower)):
        low[i], high[i] = upper[i] + 1, lower[i] - 1
        for n in range(lower[i], upper[i] + 1):
            k = start[i] + n
            if prefix[k] + suffix[k] - value[k] + single[i] * n >= least:
                low[i], high[i] = min(low[i], n), n


@njit("f8(f8[:,::1],f8[:,::1],f8,f8)", cache=True)
def master_value(cuts, corners, a, b):  # type: ignore[no-untyped-def]
    """Upper envelope of the known masks (value, work, memory) plus the support function of the limits' corners."""
    best = -np.inf
    for r in range(len(cuts)):
        best = max(best, cuts[r, 0] - a * cuts[r, 1] - b * cuts[r, 2])
    support = 0.0
    for c in range(len(corners)):
        support = max(support, a * corners[c, 0] + b * corners[c, 1])
    return best + support


@njit("Tuple((f8,f8,f8))(f8[:,::1],f8[:,::1],f8,f8)", cache=True)
def solve_master(cuts, corners, most_a, most_b):  # type: ignore[no-untyped-def]
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


@njit("b1(i8[::1],i8,i8)", cache=True)
def allowed(limits, work, memory):  # type: ignore[no-untyped-def]
    """Eq. (5); ``limits`` are work, memory, time, hard, transfer ticks and per, spill ticks and per."""
    if work > limits[0] or (limits[3] == 1 and memory > limits[1]):
        return False
    over = 0 if limits[3] == 1 else max(0, memory - limits[1])
    return work - (-limits[4] * memory // limits[5]) - (-limits[6] * over // limits[7]) <= limits[2]


@njit("i8(i8[::1],i8[::1],i8[::1],i8[::1],i8[::1],i8[::1],i8[::1],i8[:,::1],i8[::1],i8,i8,i8,i8,i8[::1])", cache=True)
def run_enumeration(  # type: ignore[no-untyped-def]
    value, start, lower, upper, pair, single, prefix, coefficients, limits, support, shift, target, steps, kept
):
    """Every mask of the box whose Lagrangian plus ``support`` reaches ``target`` (scaled), after :func:`run_program`.

    A mask that meets the limits and is worth the target is among them. Goes from the last layer to the first with
    ``prefix`` as an exact completion. Each mask found that meets the limits raises the target above its worth and is
    put into ``kept``. ``coefficients`` are rows of work and weights per pair (per neuron in the first layer, which
    reads the input) and of features.

    Returns the steps left, -1 if they did not suffice.
    """
    count = len(lower)
    now = np.zeros(count + 1, np.int64)  # now[count] = 0: nothing behind the last layer
    tail, worth = np.zeros(count + 1, np.int64), np.zeros(count + 1, np.int64)
    work, memory = np.zeros(count + 1, np.int64), np.zeros(count + 1, np.int64)
    i = count - 1
    now[i] = lower[i] - 1
    while i < count:
        slope = pair[i + 1] * now[i + 1] if i + 1 < count else 0
        rest = tail[i + 1] + support - target
        n = now[i] + 1
        first = n
        while n <= upper[i] and prefix[start[i] + n] - slope * n + rest < 0:
            n += 1
        steps -= n - first + 1
        if steps < 0:
            return -1
        if n > upper[i]:
            i += 1
            continue
        now[i] = n
        tail[i] = tail[i + 1] + value[start[i] + n] - (slope + single[i]) * n
        worth[i] = worth[i + 1] + value[start[i] + n]
        work[i], memory[i] = work[i + 1], memory[i + 1] + coefficients[2, i] * n
        if i + 1 < count:
            work[i] += coefficients[0, i + 1] * n * now[i + 1]
            memory[i] += coefficients[1, i + 1] * n * now[i + 1]
        if i > 0:
            i -= 1
            now[i] = lower[i] - 1
        elif worth[0] >= target and allowed(
            limits, work[0] + coefficients[0, 0] * n, memory[0] + coefficients[1, 0] * n
        ):
            target = worth[0] + (1 << shift)
            for k in range(count):
                kept[k] = now[k]
    return steps
