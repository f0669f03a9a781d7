"""Compiled loops of the label dynamic programme; see ``label_dp`` for the recursion and its proof.

A *position* is an index into ``cuts``, the layers where stages may begin or end (all of them, or a coarse selection).
A *node* is a position with the group of devices used behind it, the number of stages behind it and, where links
differ, the group of the first stage behind it; it holds the Pareto set of labels (D, A, G).
"""

from __future__ import annotations

import numpy as np
from numba import njit

_TABLES = "i8[:,:,::1],i8[:,:,::1],i8[:,:,::1],i8[::1],i8[::1],i8[::1]"  # forward, backward, both, state, act, room


@njit("i8(i8[::1],i8[::1],i8,i8)", cache=True)
def largest(begin, end, limit, cap):  # type: ignore[no-untyped-def]
    """Largest share up to ``cap`` whose time ``end - begin`` is within the limit; no share takes no time."""
    low, high = 0, cap
    while low < high:
        middle = (low + high + 1) >> 1
        if end[middle] - begin[middle] <= limit:
            low = middle
        else:
            high = middle - 1
    return low


@njit(f"b1({_TABLES},i8[::1],i8,i8,i8,i8,i8[::1])", cache=True)
def memory_caps(forward, backward, both, state, act, room, group, batch, i, j, kept, caps):  # type: ignore[no-untyped-def]
    """Eq. (3): fills the largest share per class; whether they add up to a micro-batch."""
    held, stored, total = state[j] - state[i], kept * (act[j] - act[i]), 0
    for c in range(len(group)):
        if group[c] == 0:
            continue
        left = room[c] - held
        if left < 0:
            return False
        caps[c] = batch if stored == 0 else min(batch, left // stored)
        total += group[c] * caps[c]
    return total >= batch


@njit("b1(i8[:,:,::1],i8[::1],i8[::1],i8,i8,i8,i8)", cache=True)
def enough(both, group, caps, batch, i, j, limit):  # type: ignore[no-untyped-def]
    """Whether the group takes a micro-batch with no member above the limit."""
    total = 0
    for c in range(len(group)):
        if group[c] > 0:
            total += group[c] * largest(both[c, i], both[c, j], limit, caps[c])
    return total >= batch


@njit("i8(i8[:,:,::1],i8[::1],i8[::1],i8,i8,i8)", cache=True)
def fastest(both, group, caps, batch, i, j):  # type: ignore[no-untyped-def]
    """Eq. (7): the smallest limit that is enough; it is the time of some class at some share."""
    best = np.int64(2**62)
    for c in range(len(group)):
        if group[c] == 0:
            continue
        low, high = np.int64(0), caps[c]
        if not enough(both, group, caps, batch, i, j, both[c, j, high] - both[c, i, high]):
            continue
        while low < high:
            middle = (low + high) >> 1
            if enough(both, group, caps, batch, i, j, both[c, j, middle] - both[c, i, middle]):
                high = middle
            else:
                low = middle + 1
        best = min(best, both[c, j, low] - both[c, i, low])
    return best


@njit("i8(i8[:,:,::1],i8[::1],i8[::1],i8,i8,i8,i8[::1])", cache=True)
def shrink(table, group, caps, slack, i, j, smaller):  # type: ignore[no-untyped-def]
    """Push the largest time of ``table`` one value down; the slack that is left, or -1 if there is not enough.

    ``caps`` holds the largest shares now; ``smaller`` is filled with those after.
    """
    top = np.int64(-1)
    for c in range(len(group)):
        if group[c] > 0:
            top = max(top, table[c, j, caps[c]] - table[c, i, caps[c]])
    if top <= 0:
        return np.int64(-1)
    for c in range(len(group)):
        smaller[c] = caps[c]
        if group[c] > 0 and table[c, j, caps[c]] - table[c, i, caps[c]] == top:
            smaller[c] = largest(table[c, i], table[c, j], top - 1, caps[c])
            slack -= group[c] * (caps[c] - smaller[c])
    return slack if slack >= 0 else np.int64(-1)


@njit("i8(i8[:,:,::1],i8[::1],i8[::1],i8,i8)", cache=True)
def peak(table, group, caps, i, j):  # type: ignore[no-untyped-def]
    """Largest time of a member at the given shares."""
    top = np.int64(0)
    for c in range(len(group)):
        if group[c] > 0:
            top = max(top, table[c, j, caps[c]] - table[c, i, caps[c]])
    return top


@njit(f"UniTuple(i8,2)({_TABLES},i8[::1],i8,i8,i8,i8,i8[:,::1])", cache=True)
def stage_cost(forward, backward, both, state, act, room, group, batch, i, j, kept, work):  # type: ignore[no-untyped-def]
    """Eqs. (7), (8): ``(E_f, E_b)``, with ties as rule 6 has them; (-1, -1) where memory does not suffice.

    ``work`` is scratch of shape (4, C).
    """
    caps = work[0]
    if not memory_caps(forward, backward, both, state, act, room, group, batch, i, j, kept, caps):
        return np.int64(-1), np.int64(-1)
    classes, only = 0, 0
    for c in range(len(group)):
        if group[c] > 0:
            classes, only = classes + 1, c
    if classes == 1:  # equal devices: the largest share is ceil(B / members)
        y = -(-batch // group[only])
        return forward[only, j, y] - forward[only, i, y], backward[only, j, y] - backward[only, i, y]
    limit = fastest(both, group, caps, batch, i, j)
    slack = -batch
    for c in range(len(group)):
        if group[c] > 0:
            caps[c] = largest(both[c, i], both[c, j], limit, caps[c])
            slack += group[c] * caps[c]
    best_f, best_b = np.int64(2**61), np.int64(2**61)
    while slack >= 0:  # every value of E_f that is enough, descending; for each the smallest E_b
        low, next_low = work[1], work[2]
        for c in range(len(group)):
            low[c] = caps[c]
        left = slack
        while True:
            after = shrink(backward, group, low, left, i, j, next_low)
            if after < 0:
                break
            left = after
            for c in range(len(group)):
                low[c] = next_low[c]
        f, b = peak(forward, group, caps, i, j), peak(backward, group, low, i, j)
        if f + b <= best_f + best_b:
            best_f, best_b = f, b
        slack = shrink(forward, group, caps, slack, i, j, work[3])
        for c in range(len(group)):
            caps[c] = work[3, c]
    return best_f, best_b


@njit(f"i8({_TABLES},i8[::1],i8,i8,i8,i8[:,::1])", cache=True)
def stage_bound(forward, backward, both, state, act, room, group, batch, i, j, work):  # type: ignore[no-untyped-def]
    """T of Eq. (7) with one stored micro-batch, -1 where memory does not suffice; never falls as the stage grows."""
    if not memory_caps(forward, backward, both, state, act, room, group, batch, i, j, 1, work[0]):
        return np.int64(-1)
    return fastest(both, group, work[0], batch, i, j)


@njit(f"i8[:,::1]({_TABLES},i8[:,::1],i8,i8[::1],i8,i8)", cache=True)
def windows(forward, backward, both, state, act, room, groups, batch, cuts, factor, upper):  # type: ignore[no-untyped-def]
    """Per position and group the last position up to which a stage may reach with factor * T < upper.

    T never falls as a stage grows at either end, so two pointers suffice.
    """
    last, count = len(cuts) - 1, len(groups)
    work = np.zeros((4, groups.shape[1]), np.int64)
    window = np.zeros((last + 1, count), np.int64)
    for g in range(1, count):
        end = last
        for p in range(last - 1, -1, -1):
            while end > p:
                total = stage_bound(
                    forward, backward, both, state, act, room, groups[g], batch, cuts[p], cuts[end], work
                )
                if total >= 0 and factor * total < upper:
                    break
                end -= 1
            window[p, g] = end
    return window


@njit("i8[::1](i8[:,::1],b1[:,::1],b1[::1])", cache=True)
def reaches(window, compatible, allowed):  # type: ignore[no-untyped-def]
    """Per group the last position up to which its devices can cover the network from the front."""
    count = window.shape[1]
    reach = np.zeros(count, np.int64)
    for u in range(1, count):
        for g in range(1, u + 1):
            if not compatible[count - 1 - u, g]:
                continue
            end = window[reach[u - g], g]
            while end > 0 and not allowed[end]:
                end -= 1
            reach[u] = max(reach[u], end)
    return reach


@njit("i8[:,::1](i8[:,::1])", cache=True)
def grown(pool):  # type: ignore[no-untyped-def]
    """A pool of labels with twice the room."""
    larger = np.zeros((2 * len(pool), pool.shape[1]), np.int64)
    larger[: len(pool)] = pool
    return larger


#: Columns of the pool of labels: the three criteria, the label behind, position, group, next label of the node.
_D, _A, _G, _BEHIND, _POSITION, _GROUP, _NEXT = range(7)


@njit("b1(i8[:,::1],i8[::1],i8,i8,i8,i8)", cache=True)
def admit(pool, head, node, d, a, g):  # type: ignore[no-untyped-def]
    """Drop the labels of a node that (d, a, g) dominates; False if one of them dominates it."""
    previous, label = np.int64(-1), head[node]
    while label >= 0:
        following = pool[label, _NEXT]
        if pool[label, _D] <= d and pool[label, _A] <= a and pool[label, _G] <= g:
            return False
        if d <= pool[label, _D] and a <= pool[label, _A] and g <= pool[label, _G]:
            if previous < 0:
                head[node] = following
            else:
                pool[previous, _NEXT] = following
        else:
            previous = label
        label = following
    return True


@njit(f"b1({_TABLES},i8[:,::1],i8,i8[::1],i8[:,::1],i8)", cache=True)
def memory_binds(forward, backward, both, state, act, room, groups, batch, cuts, window, kept):  # type: ignore[no-untyped-def]
    """Whether a whole micro-batch in one member exceeds its memory in some stage inside the windows."""
    for g in range(1, len(groups)):
        for p in range(len(cuts) - 1):
            i, j = cuts[p], cuts[window[p, g]]
            need = state[j] - state[i] + kept * batch * (act[j] - act[i])
            for c in range(len(room)):
                if groups[g, c] > 0 and need > room[c]:
                    return True
    return False


@njit(
    f"Tuple((i8,i8[:,::1],i8[::1]))({_TABLES},i8[:,::1],i8,i8[::1],b1[:,::1],i8[:,::1],i8[:,::1],i8[::1],"
    "i8[::1],i8[::1],i8[:,:,::1],i8[:,::1],i8[:,::1],i8,i8,b1,i8)",
    cache=True,
)
def search(  # type: ignore[no-untyped-def]
    forward, backward, both, state, act, room, groups, batch, cuts, compatible, comm, level,
    reduce_num, reduce_den, weights, move, before, before_f, micro_batches, rounds, everyone, upper,
):  # fmt: skip
    """Best objective below ``upper`` (or ``upper``), its stages (start, stop, group), and counts for the notes.

    ``before`` and ``before_f`` bound the sums of E and E_f of all stages in front of a layer, by the group that is
    left for them.
    """
    last, count, full = len(cuts) - 1, len(groups), len(groups) - 1
    everything = 2 * int(groups[full].sum()) - 1
    window = windows(
        forward, backward, both, state, act, room, groups, batch, cuts, micro_batches * rounds, upper
    )
    allowed = np.ones(last + 1, np.bool_)
    for p in range(1, last):
        allowed[p] = 2 * micro_batches * rounds * comm[-1, cuts[p]] < upper
    reach = reaches(window, compatible, allowed)
    deep = min(everything, micro_batches)
    behind_matters = memory_binds(
        forward, backward, both, state, act, room, groups, batch, cuts, window, deep
    )
    stages = min((everything + 1) // 2, last) if behind_matters else 1
    heads = 1 if level.shape[0] == 1 else count
    head = np.full((last + 1) * count * stages * heads, -1, np.int64)  # first label of every node
    first = np.full(last + 1, -1, np.int64)  # first node of every position
    node_next = np.full(len(head), -1, np.int64)
    listed = np.zeros(len(head), np.bool_)
    pool = np.zeros((1 << 12, 7), np.int64)
    used, costs, best = 0, 0, np.int64(-1)
    work = np.zeros((4, groups.shape[1]), np.int64)
    known_f, known_b = np.zeros((count, stages + 1), np.int64), np.zeros((count, stages + 1), np.int64)
    known_at = np.full((count, stages + 1), -1, np.int64)  # the stage (p, r) whose costs are known
    ta_at, ta, mv = np.full(count, -1, np.int64), np.zeros(count, np.int64), np.zeros(count, np.int64)
    targets = np.zeros(count, np.int64)
    for p in range(last - 1, -1, -1):
        if not allowed[p]:
            continue
        i, band = cuts[p], 0
        for u in range(1, count):  # devices that may be used from p on
            rest = full - u
            if (p > 0 and rest > 0 and p <= reach[rest]) or (p == 0 and (rest == 0 or not everyone)):
                targets[band] = u
                band += 1
        farthest = window[p].max()
        for r in range(p + 1, farthest + 1):
            if not allowed[r]:
                continue
            j, stamp = cuts[r], p * (last + 1) + r
            node = first[r] if r < last else np.int64(-2)
            while node != -1:
                if node == -2:  # nothing behind
                    u_behind, q, h, start = np.int64(0), np.int64(0), np.int64(0), np.int64(-2)
                    node = np.int64(-1)
                else:
                    h = node % heads
                    q = node // heads % stages + 1
                    u_behind = node // heads // stages % count
                    start = head[node]
                    node = node_next[node]
                slot = q if behind_matters else np.int64(0)
                for k in range(band):
                    u = targets[k]
                    g = u - u_behind
                    if g <= 0 or not compatible[u_behind, g] or r > window[p, g]:
                        continue
                    rest = full - u
                    if ta_at[g] != stamp:
                        ta_at[g] = stamp
                        ta[g] = -(-(weights[j] - weights[i]) * reduce_num[g] // reduce_den[g])
                        mv[g] = 0
                        if move.shape[1] > 1:
                            for c in range(groups.shape[1]):
                                if groups[g, c] > 0:
                                    mv[g] = max(mv[g], move[c, i, j])
                    if known_at[g, slot] != stamp:
                        known_at[g, slot] = stamp
                        kept = min(2 * q + 1, micro_batches) if behind_matters else deep
                        known_f[g, slot], known_b[g, slot] = stage_cost(
                            forward, backward, both, state, act, room, groups[g], batch, i, j, kept, work
                        )
                        costs += 1
                    ef, eb = known_f[g, slot], known_b[g, slot]
                    e = ef + eb
                    if ef < 0 or rounds * (micro_batches * e + before[rest, i]) >= upper:
                        continue
                    label, one_way = start, np.int64(0)
                    if label >= 0:
                        one_way = comm[level[g, h] if heads > 1 else level[0, 0], j]
                    fixed = max(micro_batches * e, e + 2 * micro_batches * one_way)
                    while label != -1:
                        if label == -2:
                            d, a, m, behind = micro_batches * e, ta[g], mv[g], np.int64(-1)
                            label = np.int64(-1)
                        else:
                            d = max(fixed, e + 2 * one_way + pool[label, _D])
                            a = max(ta[g], pool[label, _A] - eb - one_way)
                            m = max(mv[g], pool[label, _G])
                            behind, label = label, pool[label, _NEXT]
                        if rounds * max(d + before[rest, i], d + a + before_f[rest, i]) + m >= upper:
                            continue
                        target = np.int64(-1)
                        if p > 0:
                            depth = q if behind_matters else np.int64(0)
                            target = ((p * count + u) * stages + depth) * heads + (g if heads > 1 else 0)
                            if not admit(pool, head, target, d, a, m):
                                continue
                            if not listed[target]:
                                listed[target] = True
                                node_next[target], first[p] = first[p], target
                        else:
                            upper = rounds * (d + a) + m
                            best = np.int64(used)
                        if used == len(pool):
                            pool = grown(pool)
                        pool[used, _D], pool[used, _A], pool[used, _G] = d, a, m
                        pool[used, _BEHIND], pool[used, _POSITION], pool[used, _GROUP] = behind, p, g
                        if target >= 0:
                            pool[used, _NEXT], head[target] = head[target], used
                        used += 1
    length, label = 0, best
    while label >= 0:
        length, label = length + 1, pool[label, _BEHIND]
    path = np.zeros((length, 3), np.int64)
    label = best
    for k in range(length):
        path[k, 0], path[k, 2] = cuts[pool[label, _POSITION]], pool[label, _GROUP]
        label = pool[label, _BEHIND]
        path[k, 1] = cuts[pool[label, _POSITION]] if label >= 0 else cuts[last]
    return upper, path, np.array([used, costs, int(behind_matters)], np.int64)
