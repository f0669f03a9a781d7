"""Compiled Eqs. (7) and (8) of a stage along an order of devices, with ties as the problem has them (rule 6).

``begin`` and ``end`` are time tables ``(members, B + 1)``, summed up to the first layer of a stage and up to its end.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mapgap.heuristics.hybrid_pipeline.chain import Chain, Row, Span
from mapgap.kernels import kernel

NEVER = 2**61
Array = NDArray[Any]
"""Whole numbers of 64 bits; in a kernel NumPy's and Python's are one type."""


@kernel("i8(i8[:,:],i8[:,:],i8[::1])")
def peak(begin: Array, end: Array, share: Array) -> int:
    """Largest time of a member at its share."""
    top = 0
    for d in range(len(share)):
        top = max(top, end[d, share[d]] - begin[d, share[d]])
    return top


@kernel("i8(i8[:,:],i8[:,:],i8[::1])")
def lower(begin: Array, end: Array, share: Array) -> int:
    """Reduce the shares of the slowest members to the largest that take less; the samples they give up."""
    top, given = peak(begin, end, share), 0
    if top == 0:
        return NEVER
    for d in range(len(share)):
        low, high = 0, share[d]
        if end[d, high] - begin[d, high] < top:
            continue
        while low < high:
            middle = (low + high + 1) >> 1
            if end[d, middle] - begin[d, middle] < top:
                low = middle
            else:
                high = middle - 1
        given += share[d] - low
        share[d] = low
    return given


@kernel("i8(i8[:,:],i8[:,:],i8[::1],i8)")
def lowest(begin: Array, end: Array, share: Array, slack: int) -> int:
    """Lower the shares as far as ``slack`` samples may be given up; the slack that is left."""
    trial = share.copy()
    while True:
        left = slack - lower(begin, end, trial)
        if left < 0:
            return slack
        slack = left
        share[:] = trial


@kernel("UniTuple(i8,3)(i8[:,:,::1],i8[:,:,::1],i8[:,:,::1],i8[::1],Span)", Span)
def stage(forward: Array, backward: Array, both: Array, room: Array, span: Span) -> tuple[int, int, int]:
    """``(T, E_f, E_b)`` of a stage; -1 where memory does not suffice."""
    i, j, a, b, state, stored, batch = span
    share = np.empty(b - a, np.int64)
    slack = -batch
    for d in range(b - a):
        left = room[a + d] - state
        if left < 0:
            return -1, -1, -1
        share[d] = batch if stored == 0 else min(batch, left // stored)
        slack += share[d]
    if slack < 0:
        return -1, -1, -1
    slack = lowest(both[a:b, i], both[a:b, j], share, slack)  # Eq. (7)
    total = peak(both[a:b, i], both[a:b, j], share)
    best_f, best_b = NEVER, NEVER
    while slack >= 0:  # every E_f that is enough, descending; for each the smallest E_b
        shrunk = share.copy()
        lowest(backward[a:b, i], backward[a:b, j], shrunk, slack)
        ef, eb = peak(forward[a:b, i], forward[a:b, j], share), peak(backward[a:b, i], backward[a:b, j], shrunk)
        if ef + eb <= best_f + best_b:
            best_f, best_b = ef, eb
        slack -= lower(forward[a:b, i], forward[a:b, j], share)
    return total, best_f, best_b


def times(seen: Chain, row: Row, kept: int) -> tuple[int, int, int] | None:
    """``(T, E_f, E_b)`` of a stage that stores ``kept`` micro-batches; ``None`` where memory does not suffice."""
    tables = seen.tables
    total, ef, eb = stage(tables.forward, tables.backward, tables.both, tables.room, seen.span(row, kept))
    return None if total < 0 else (total, ef, eb)
