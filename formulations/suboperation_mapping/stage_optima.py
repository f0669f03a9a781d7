"""Least lengths of one stage: shares on unrelated machines, exactly, by dynamic programming over subsets.

A stage is given by what every share costs on every accelerator; its length is the largest sum over an accelerator
(R||Cmax). With at most eight shares all subsets are few: 3^k pairs of a set and a part of it.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

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
