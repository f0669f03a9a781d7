"""Least lengths of one stage: shares on unrelated machines, exactly, by dynamic programming over subsets.

A stage is given by what every share costs on every accelerator; its length is the largest sum over an accelerator
(R||Cmax). With at most eight shares all subsets are few: 3^k pairs of a set and a part of it.
"""

from __future__ import annotations

import itertools
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from mapgap.formulations.suboperation_mapping.located_frame import Box
from mapgap.problems.suboperation_mapping.certificate.chain_costs import NEVER

Costs = NDArray[np.int64]


@lru_cache(maxsize=16)
def _parts(count: int) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Pairs of a set of shares and a part of it, by set: the part, the rest, and where every set begins."""
    parts: list[int] = []
    rests: list[int] = []
    starts: list[int] = []
    for whole in range(1 << count):
        starts.append(len(parts))
        part = whole
        while True:
            parts.append(part)
            rests.append(whole ^ part)
            if part == 0:
                break
            part = (part - 1) & whole
    return np.array(parts), np.array(rests), np.array(starts)


def sums(costs: Costs) -> Costs:
    """Cost of every subset of the shares: ``(accelerators, 2 ** shares)`` of ``(accelerators, shares)``."""
    accelerators, count = costs.shape
    found = np.zeros((accelerators, 1), np.int64)
    for b in range(count):
        found = np.concatenate([found, found + costs[:, b : b + 1]], axis=1)
    return found


def least_lengths(costs: Costs) -> list[int]:
    """Least length with exactly 1, 2, … accelerators in use; at most as many as there are shares.

    Parameters
    ----------
    costs : (accelerators, shares)
        Ticks of a share on an accelerator.
    """
    accelerators, count = costs.shape
    part, rest, starts = _parts(count)
    load = sums(costs)
    used = part > 0
    most = min(accelerators, count)
    best = np.full((most + 1, 1 << count), NEVER, np.int64)
    best[0, 0] = 0
    for a in range(accelerators):
        with_part = np.where(used, load[a][part], NEVER)
        for h in range(most, 0, -1):
            joined = np.maximum(with_part, best[h - 1][rest])
            best[h] = np.minimum(best[h], np.minimum.reduceat(joined, starts))
    return [int(v) for v in best[1:, -1]]


def least_with_gather(costs: Costs, gather: Costs, least: int, thresholds: int) -> int:
    """Least length plus sum of the shares' ``gather`` costs, rounded down to a few thresholds of the length.

    Parameters
    ----------
    costs, gather : (accelerators, shares)
    least : int
        The least length alone.
    thresholds : int
        Most lengths at which the bound is refined.
    """
    load, moved = sums(costs), sums(gather)
    whole = load.shape[1] - 1
    alone = int((load[:, whole] + moved[:, whole]).min())
    best = NEVER
    values = np.unique(load)
    values = values[(values >= least) & (values < alone)]
    if len(values) > thresholds:
        values = values[np.linspace(0, len(values) - 1, thresholds).astype(int)]
    levels = [least, *[int(v) for v in values if v > least], alone]
    for low, high in itertools.pairwise(levels):
        # any assignment of a length in [low, high) moves at least what the best one below high does
        best = min(best, low + _least_moved(load, moved, high - 1))
    return max(least, min(best, alone))


def _least_moved(load: Costs, moved: Costs, longest: int) -> int:
    """Least sum of gather costs among assignments that are not longer than ``longest``."""
    count = load.shape[1].bit_length() - 1
    part, rest, starts = _parts(count)
    best = np.full(1 << count, NEVER, np.int64)
    best[0] = 0
    for a in range(len(load)):
        price = np.where(load[a] <= longest, moved[a], NEVER)
        best = np.minimum.reduceat(np.minimum(price[part] + best[rest], NEVER), starts)
    return int(best[-1])


def least_length_of_box(tables: list[list[int]], moved: list[list[int]], box: Box, batch: int) -> int:
    """Least length of a stage over all ratios of a box and all assignments of their shares.

    By dynamic programming over accelerators; a state counts the shares of every group that are placed so far, and their
    samples. Unlike :func:`least_lengths` it knows that the shares add up to the batch.

    Parameters
    ----------
    tables : per accelerator
        Ticks of a share of 1, 2, … samples.
    moved : per accelerator
        Ticks of the transfer of 0, 1, … samples in one piece: less than in several.
    """
    shape = (*(group.number + 1 for group in box), batch + 1)
    best = np.full(shape, NEVER, np.int64)
    best[(0,) * len(shape)] = 0
    for table, transfer in zip(tables, moved, strict=True):
        load = _least_loads(table, box, shape) + np.array(transfer, np.int64)
        after = best.copy()  # nothing on this accelerator
        for part in zip(*np.nonzero(load < NEVER), strict=True):
            if any(part):
                upper = tuple(slice(p, None) for p in part)
                lower = tuple(slice(0, size - p) for p, size in zip(part, shape, strict=True))
                np.minimum(after[upper], np.maximum(best[lower], load[part]), out=after[upper])
        best = after
    return int(best[(*(group.number for group in box), batch)])


def _least_loads(table: list[int], box: Box, shape: tuple[int, ...]) -> Costs:
    """Least compute of so many shares of every group with so many samples together, on one accelerator."""
    load = np.full(shape, NEVER, np.int64)
    load[(0,) * len(shape)] = 0
    for g, group in enumerate(box):
        for _ in range(group.number):
            added = load.copy()
            into = tuple(slice(1, None) if k == g else slice(None) for k in range(len(box)))
            out = tuple(slice(0, -1) if k == g else slice(None) for k in range(len(box)))
            for s in range(group.low, group.high + 1):
                np.minimum(
                    added[(*into, slice(s, None))],
                    load[(*out, slice(0, shape[-1] - s))] + table[s - 1],
                    out=added[(*into, slice(s, None))],
                )
            load = added
    return np.minimum(load, NEVER)
