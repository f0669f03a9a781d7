"""Non-dominated rows of an integer matrix; smaller is better in every column."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mapgap.core import Budget, OutOfTime
from mapgap.kernels import kernel

Array = NDArray[np.int64]

BLOCK = 10_000_000
"""Pairs of rows that are compared between two looks at the clock."""


@kernel("i8(i8[:,::1],i8[::1],i8,i8,i8)")
def sift(rows: Array, kept: Array, found: int, first: int, last: int) -> int:
    """Append to the ``found`` rows in ``kept`` those of ``first..last - 1`` that no earlier row is nowhere worse than.

    ``rows`` are in lexicographic order.
    """
    width = rows.shape[1]
    for i in range(first, last):
        beaten = False
        for k in range(found):
            j = kept[k]
            beaten = True
            for c in range(width):
                if rows[j, c] > rows[i, c]:
                    beaten = False
                    break
            if beaten:
                # A row that beats one neighbour usually beats the next one too.
                swap = k // 2
                kept[k], kept[swap] = kept[swap], j
                break
        if not beaten:
            kept[found] = i
            found += 1
    return found


def nondominated(rows: Array, budget: Budget | None = None, chunk: int = 100_000) -> Array:
    """Indices of the rows that are not dominated; of equal rows the first.

    In lexicographic order a row is dominated only by rows before it, so one pass over the rows kept is enough.

    Parameters
    ----------
    rows : (n, d) int64
    chunk : int
        Rows that are sorted at once; more are thinned out chunk by chunk first.

    Returns
    -------
    (k,) int64, ascending

    Raises
    ------
    OutOfTime
        The budget, if one is given, ended.
    """
    if len(rows) <= 1:
        return np.arange(len(rows), dtype=np.int64)
    if len(rows) > chunk:  # what no chunk keeps is dominated; of equal rows the first chunk's stays the first
        chunks = range(0, len(rows), chunk)
        some = np.concatenate([first + nondominated(rows[first : first + chunk], budget) for first in chunks])
        if len(some) < len(rows):
            kept_of_some: Array = some[nondominated(rows[some], budget, chunk)]
            return kept_of_some
    order = np.lexsort(rows.T[::-1])
    kept = np.empty(len(rows), np.int64)
    ordered = np.ascontiguousarray(rows[order])
    found = first = 0
    while first < len(rows):
        if budget is not None and budget.exhausted:
            raise OutOfTime
        last = min(len(rows), first + max(1, BLOCK // (found + 1)))
        found = sift(ordered, kept, found, first, last)
        first = last
    return np.sort(order[kept[:found]]).astype(np.int64)
