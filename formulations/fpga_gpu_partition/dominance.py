"""Non-dominated rows of an integer matrix; smaller is better in every column."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mapgap.kernels import kernel

Array = NDArray[np.int64]


@kernel("i8(i8[:,::1],i8[::1])")
def sift(rows: Array, kept: Array) -> int:
    """Fill ``kept`` with the rows that no earlier row is nowhere worse than; ``rows`` are in lexicographic order."""
    count, width = rows.shape
    found = 0
    for i in range(count):
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


def nondominated(rows: Array) -> Array:
    """Indices of the rows that are not dominated; of equal rows the first.

    In lexicographic order a row is dominated only by rows before it, so one pass over the rows kept is enough.

    Parameters
    ----------
    rows : (n, d) int64

    Returns
    -------
    (k,) int64, ascending
    """
    if len(rows) <= 1:
        return np.arange(len(rows), dtype=np.int64)
    order = np.lexsort(rows.T[::-1])
    kept = np.empty(len(rows), np.int64)
    found = sift(np.ascontiguousarray(rows[order]), kept)
    return np.sort(order[kept[:found]]).astype(np.int64)
