"""Compiled Eqs. (7) and (8) of a stage along an order of devices, with ties as the problem has them (rule 6).

``begin`` and ``end`` are time tables ``(members, B + 1)``, summed up to the first layer of a stage and up to its end.
"""

from __future__ import annotations

import numpy as np
from numba import njit

NEVER = 2**61
_STAGE = "i8[:,:],i8[:,:],i8[::1]"


@njit(f"i8({_STAGE})", cache=True)
def peak(begin, end, share):  # type: ignore[no-untyped-def]
    """Largest time of a member at its share."""
    top = np.int64(0)
    for d in range(len(share)):
        top = max(top, end[d, share[d]] - begin[d, share[d]])
    return top


@njit(f"i8({_STAGE})", cache=True)
def lower(begin, end, share):  # type: ignore[no-untyped-def]
    """Reduce the shares of the slowest members to the largest that take less; the samples they give up."""
    top, given = peak(begin, end, share), np.int64(0)
    if top == 0:
        return np.int64(NEVER)
    for d in range(len(share)):
        low, high = np.int64(0), share[d]
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


@njit(f"i8({_STAGE},i8)", cache=True)
def lowest(begin, end, share, slack):  # type: ignore[no-untyped-def]
    """Lower the shares as far as ``slack`` samples may be given up; the slack that is left."""
    trial = share.copy()
    while True:
        left = slack - lower(begin, end, trial)
        if left < 0:
            return slack
        slack = left
        share[:] = trial


@njit("UniTuple(i8,3)(i8[:,:,::1],i8[:,:,::1],i8[:,:,::1],i8[::1],i8,i8,i8,i8,i8,i8,i8)", cache=True)
def stage(forward, backward, both, room, i, j, a, b, state, stored, batch):  # type: ignore[no-untyped-def]
    """``(T, E_f, E_b)`` of layers ``[i, j)`` on the places ``[a, b)``; -1 where memory does not suffice."""
    share = np.empty(b - a, np.int64)
    slack = -batch
    for d in range(b - a):
        left = room[a + d] - state
        if left < 0:
            return np.int64(-1), np.int64(-1), np.int64(-1)
        share[d] = batch if stored == 0 else min(batch, left // stored)
        slack += share[d]
    if slack < 0:
        return np.int64(-1), np.int64(-1), np.int64(-1)
    slack = lowest(both[a:b, i], both[a:b, j], share, slack)  # Eq. (7)
    total = peak(both[a:b, i], both[a:b, j], share)
    best_f, best_b = np.int64(NEVER), np.int64(NEVER)
    while slack >= 0:  # every E_f that is enough, descending; for each the smallest E_b
        kept = share.copy()
        lowest(backward[a:b, i], backward[a:b, j], kept, slack)
        ef, eb = peak(forward[a:b, i], forward[a:b, j], share), peak(backward[a:b, i], backward[a:b, j], kept)
        if ef + eb <= best_f + best_b:
            best_f, best_b = ef, eb
        slack -= lower(forward[a:b, i], forward[a:b, j], share)
    return total, best_f, best_b
