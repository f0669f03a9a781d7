"""Compiled parts of ``lagrangian.py``: what is left of a box, and all masks near its bound. All values are exact.

Notation as in :mod:`mapgap.formulations.neuron_masking.price_kernels`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mapgap.formulations.neuron_masking.price_kernels import Box, Limits, Prices, Worth, allowed
from mapgap.kernels import Integers, kernel


class Tables(NamedTuple):
    """Largest Lagrangians, entry by entry.

    Attributes
    ----------
    prefix, suffix : (entries,)
        Of layers 0..i, and of layers i..I-1, with n_i = n; both count the layer itself.
    choice : (entries,)
        The n_{i-1} (in a reversed chain n_{i+1}) in it.
    """

    prefix: Integers
    suffix: Integers
    choice: Integers


@kernel("void(Worth,Box,Prices,Tables,i8,Box)", Worth, Box, Prices, Tables)
def run_hull(worth: Worth, box: Box, prices: Prices, tables: Tables, least: int, hull: Box) -> None:
    """Fill ``hull`` with the extreme counts of every layer in masks of a Lagrangian of ``least`` or more.

    ``prefix`` and ``suffix`` are those of :func:`run_program` on the chain and on the reversed chain. A layer in which
    no count reaches ``least`` gets ``lower > upper``.
    """
    value, prefix, suffix, single = worth.value, tables.prefix, tables.suffix, prices.single
    for i in range(len(box.lower)):
        low, high = box.upper[i] + 1, box.lower[i] - 1
        for n in range(box.lower[i], box.upper[i] + 1):
            k = worth.start[i] + n
            if prefix[k] + suffix[k] - value[k] + single[i] * n >= least:
                low, high = min(low, n), n
        hull.lower[i], hull.upper[i] = low, high


@kernel("i8(Worth,Box,Prices,i8[::1],Limits,i8,i8,i8[::1])", Worth, Box, Prices, Limits)
def run_enumeration(
    worth: Worth,
    box: Box,
    prices: Prices,
    prefix: Integers,
    limits: Limits,
    target: int,
    steps: int,
    kept: Integers,
) -> int:
    """Every mask of the box whose Lagrangian plus the support reaches ``target`` (scaled), after :func:`run_program`.

    A mask that meets the limits and is worth the target is among them. Goes from the last layer to the first with
    ``prefix`` as an exact completion. Each mask found that meets the limits raises the target above its worth and is
    put into ``kept``.

    Returns the steps left, -1 if they did not suffice.
    """
    value, start, lower, upper, pair, single = (
        worth.value,
        worth.start,
        box.lower,
        box.upper,
        prices.pair,
        prices.single,
    )
    coefficients = limits.coefficients
    count = len(lower)
    now = np.zeros(count + 1, np.int64)  # now[count] = 0: nothing behind the last layer
    tail, gained = np.zeros(count + 1, np.int64), np.zeros(count + 1, np.int64)
    work, memory = np.zeros(count + 1, np.int64), np.zeros(count + 1, np.int64)
    i = count - 1
    now[i] = lower[i] - 1
    while i < count:
        slope = pair[i + 1] * now[i + 1] if i + 1 < count else 0
        rest = tail[i + 1] + prices.support - target
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
        gained[i] = gained[i + 1] + value[start[i] + n]
        work[i], memory[i] = work[i + 1], memory[i + 1] + coefficients[2, i] * n
        if i + 1 < count:
            work[i] += coefficients[0, i + 1] * n * now[i + 1]
            memory[i] += coefficients[1, i + 1] * n * now[i + 1]
        if i > 0:
            i -= 1
            now[i] = lower[i] - 1
        elif gained[0] >= target and allowed(
            limits, work[0] + coefficients[0, 0] * n, memory[0] + coefficients[1, 0] * n
        ):
            target = gained[0] + (1 << worth.shift)
            for k in range(count):
                kept[k] = now[k]
    return steps
