"""Compiled loops of Asteroid's Algorithms 1 and 2; the interpretation is pinned in ``asteroid``.

All kernels have explicit signatures and are cached, so nothing compiles inside a search. Arrays as in
:class:`mapgap.heuristics.hybrid_pipeline.chain.Chain`; a stage is layers ``[i, j)`` on the places ``[a, b)`` of the
order."""

from __future__ import annotations

import numpy as np
from numba import njit

BALANCED, EQUAL = 0, 1
"""How a stage divides a micro-batch: Algorithm 1, or evenly whatever device and memory."""
NO_PLAN = 2**62


@njit("b1(i8[:,:,::1],i8[::1],i8,i8,i8,i8,i8,i8,i8,i8[::1])", cache=True)
def balance(both, room, i, j, a, b, state, stored, batch, share):  # type: ignore[no-untyped-def]
    """Algorithm 1, phase 1 (MemoryAwareBalancing) into ``share``; False where the memory holds no ``batch``."""
    n = b - a
    cap = np.empty(n, np.int64)
    speed = np.empty(n, np.float64)
    for d in range(n):
        left = room[a + d] - state
        if left < 0:
            return False  # every member holds the weights
        cap[d] = batch if stored == 0 else min(batch, left // stored)  # line 6: bs_d
        speed[d] = 1.0 / max(1, both[a + d, j, batch] - both[a + d, i, batch])  # Eq. (9)
        share[d] = 0
    rest = batch
    quota = np.empty(n, np.int64)
    fraction = np.empty(n, np.float64)
    while rest > 0:  # lines 9-11: once more with what is left and the devices that have memory
        total = 0.0
        for d in range(n):
            if cap[d] > share[d]:
                total += speed[d]
        if total == 0.0:
            return False  # lines 2-3
        given = 0
        for d in range(n):
            quota[d], fraction[d] = 0, -1.0
            if cap[d] > share[d]:
                exact = speed[d] / total * rest
                quota[d] = int(exact)
                fraction[d] = exact - quota[d]
                given += quota[d]
        for _ in range(rest - given):  # whole samples: floor, then largest remainder
            best = -1
            for d in range(n):
                if fraction[d] >= 0.0 and (best < 0 or fraction[d] > fraction[best]):
                    best = d
            if best < 0:
                break
            quota[best] += 1
            fraction[best] = -1.0
        before = rest
        for d in range(n):  # line 7
            more = min(quota[d], cap[d] - share[d])
            share[d] += more
            rest -= more
        if rest == before:
            return False
    return True


@njit("void(i8[:,:,::1],i8[::1],i8,i8,i8,i8,i8,i8,i8,i8,i8[::1])", cache=True)
def offload(both, room, i, j, a, b, state, stored, batch, block, share):  # type: ignore[no-untyped-def]
    """Algorithm 1, phase 2 (StragglerWorkloadOffloading): blocks move while that makes the slowest device faster."""
    n = b - a
    if n == 1:
        return
    while True:
        slow, slowest = 0, np.int64(-1)
        for d in range(n):
            time = both[a + d, j, share[d]] - both[a + d, i, share[d]]
            if time > slowest:
                slow, slowest = d, time
        fast, fastest = -1, np.int64(0)
        for d in range(n):
            left = room[a + d] - state - stored * share[d]
            if d == slow or left < stored:
                continue
            time = both[a + d, j, share[d]] - both[a + d, i, share[d]]
            if fast < 0 or time < fastest:
                fast, fastest = d, time
        if fast < 0:
            return
        moved = min(block, share[slow])
        if stored > 0:
            moved = min(moved, (room[a + fast] - state) // stored - share[fast])
        if moved <= 0:
            return
        share[slow] -= moved
        share[fast] += moved
        straggler = np.int64(0)
        for d in range(n):
            straggler = max(straggler, both[a + d, j, share[d]] - both[a + d, i, share[d]])
        if straggler >= slowest:  # the transfer did not help: undo it
            share[slow] += moved
            share[fast] -= moved
            return


@njit("b1(i8[:,:,::1],i8[::1],i8,i8,i8,i8,i8,i8,i8,i8,i8,i8[::1])", cache=True)
def allocate(both, room, i, j, a, b, state, stored, batch, block, rule, share):  # type: ignore[no-untyped-def]
    """Shares of a stage under a rule; ``state`` and ``stored`` are memory units for weights and per sample."""
    if rule == EQUAL:
        n = b - a
        for d in range(n):
            share[d] = batch // n + (1 if d < batch % n else 0)
        return True
    if not balance(both, room, i, j, a, b, state, stored, batch, share):
        return False
    offload(both, room, i, j, a, b, state, stored, batch, block, share)
    return True


@njit(
    "Tuple((i8,i8,i8[:,::1]))(i8[:,:,::1],i8[:,:,::1],i8[:,:,::1],i8[::1],i8[::1],i8[::1],i8[::1],i8[:,::1],"
    "i8[:,:,::1],i8[:,::1],i8[:,::1],i8,i8,i8,i8)",
    cache=True,
)
def plan(  # type: ignore[no-untyped-def]
    forward,
    backward,
    both,
    room,
    state,
    activation,
    weights,
    comm,
    level,
    reduce_num,
    reduce_den,
    batch,
    micro_batches,
    block,
    rule,
):
    """Algorithm 2: the best latency found, stages evaluated, and rows (first layer, end, first place, end).

    Q(l, n, p) keeps one sub-pipeline, described by ``dominant`` = max_i (M E_i + sum_{j<i} E_j) and ``excess`` =
    max_s (Ta_s - sum_{j<s} Eb_j), whose sum is Eq. (4).
    """
    count, places = forward.shape[1] - 1, forward.shape[0]
    most = min(count, places)
    dominant = np.full((most + 1, places + 1, count + 1), NO_PLAN, np.int64)
    excess = np.zeros((most + 1, places + 1, count + 1), np.int64)
    parent_n = np.zeros((most + 1, places + 1, count + 1), np.int64)
    parent_l = np.zeros((most + 1, places + 1, count + 1), np.int64)
    share = np.zeros(places, np.int64)
    evaluated = 0
    for p in range(1, most + 1):  # line 1
        kept = min(2 * p - 1, micro_batches)  # K of the new first stage, with p - 1 stages behind it
        for n in range(1, places + 1):  # line 2
            for l in range(1, count + 1):  # line 3  # noqa: E741
                if (n == places) != (l == count):
                    continue  # never part of a longer pipeline, nor a complete one
                best = np.int64(NO_PLAN)
                i, a = count - l, places - n
                for n2 in range(0 if p == 1 else p - 1, 1 if p == 1 else n):  # line 4
                    for l2 in range(0 if p == 1 else p - 1, 1 if p == 1 else l):  # line 5
                        j, b = count - l2, places - n2
                        c = np.int64(0)
                        if p > 1:
                            if dominant[p - 1, n2, l2] == NO_PLAN:
                                continue
                            c = comm[level[a, b, places - parent_n[p - 1, n2, l2]], j]
                            if dominant[p - 1, n2, l2] + excess[p - 1, n2, l2] + c >= best:
                                continue  # no stage in front makes up for that
                        evaluated += 1
                        stored = kept * (activation[j] - activation[i])
                        held = state[j] - state[i]
                        if not allocate(both, room, i, j, a, b, held, stored, batch, block, rule, share):
                            continue  # T(i -> j, G) is infinite
                        ef, eb = np.int64(0), np.int64(0)
                        for d in range(b - a):  # line 6: Eq. (8)
                            ef = max(ef, forward[a + d, j, share[d]] - forward[a + d, i, share[d]])
                            eb = max(eb, backward[a + d, j, share[d]] - backward[a + d, i, share[d]])
                        reduce = -((-(weights[j] - weights[i]) * reduce_num[a, b]) // reduce_den[a, b])  # Eq. (5)
                        large, late = micro_batches * (ef + eb), reduce
                        if p > 1:  # line 7: Eq. (11)
                            large = max(large, 2 * micro_batches * c + ef + eb)
                            large = max(large, dominant[p - 1, n2, l2] + 2 * c + ef + eb)
                            late = max(late, excess[p - 1, n2, l2] - eb - c)
                        if large + late < best:  # lines 8-10: Eqs. (4)-(6), (10)
                            best = large + late
                            dominant[p, n, l], excess[p, n, l] = large, late
                            parent_n[p, n, l], parent_l[p, n, l] = n2, l2
    value, stages = np.int64(NO_PLAN), 0
    for p in range(1, most + 1):
        if dominant[p, places, count] != NO_PLAN and dominant[p, places, count] + excess[p, places, count] < value:
            value, stages = dominant[p, places, count] + excess[p, places, count], p
    path = np.zeros((stages, 4), np.int64)
    n, l = places, count  # noqa: E741
    for k in range(stages):
        p = stages - k
        n2, l2 = parent_n[p, n, l], parent_l[p, n, l]
        path[k, 0], path[k, 1], path[k, 2], path[k, 3] = count - l, count - l2, places - n, places - n2
        n, l = n2, l2  # noqa: E741
    return value, evaluated, path
