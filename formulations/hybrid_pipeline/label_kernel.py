"""Compiled loops of the label dynamic programme; see ``label_dp`` for the recursion and its proof.

A *position* is an index into ``cuts``, the layers where stages may begin or end (all of them, or a coarse selection).
A *node* is a position with the group of devices used behind it, the number of stages behind it and, where links
differ, the group of the first stage behind it; it holds the Pareto set of labels (D, A, G).

From bottom to top: costs of a stage (Eqs. 3, 7, 8), what prunes (windows, cheap cuts, reach), labels and their pool,
one stage in front of one node, the search. All is in one file because the compiler's cache of a function follows
changes of its own file only. Times and labels are read element by element: array views in the loops take a third more.
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


@njit("b1[::1](i8[:,::1],i8[::1],i8,i8)", cache=True)
def cheap_cuts(comm, cuts, factor, upper):  # type: ignore[no-untyped-def]
    """Positions whose transfers alone, over the fastest link, do not reach the bound."""
    allowed = np.ones(len(cuts), np.bool_)
    for p in range(1, len(cuts) - 1):
        allowed[p] = factor * comm[-1, cuts[p]] < upper
    return allowed


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


#: Columns of the pool of labels: the three criteria, the label behind, position, group, next label of the node.
_D, _A, _G, _BEHIND, _POSITION, _GROUP, _NEXT = range(7)

#: In place of a node or a label: the list ends; the pipeline ends, nothing is behind.
_END, _NOTHING = -1, -2


@njit("b1(i8[:,::1],i8[::1],i8,i8,i8,i8)", cache=True)
def admit(pool, head, node, d, a, g):  # type: ignore[no-untyped-def]
    """Drop the labels of a node that (d, a, g) dominates; False if one of them dominates it."""
    previous, label = np.int64(_END), head[node]
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


@njit("i8[:,::1](i8[:,::1],i8,i8,i8,i8,i8,i8,i8)", cache=True)
def stored(pool, used, d, a, g, behind, position, group):  # type: ignore[no-untyped-def]
    """The pool with a label in row ``used``; a pool that is full is copied into one with twice the room."""
    if used == len(pool):
        larger = np.zeros((2 * len(pool), pool.shape[1]), np.int64)
        larger[: len(pool)] = pool
        pool = larger
    pool[used, _D], pool[used, _A], pool[used, _G] = d, a, g
    pool[used, _BEHIND], pool[used, _POSITION], pool[used, _GROUP], pool[used, _NEXT] = behind, position, group, _END
    return pool


@njit("i8[:,::1](i8[:,::1],i8,i8[::1])", cache=True)
def stages_of(pool, best, cuts):  # type: ignore[no-untyped-def]
    """Rows (start, stop, group) of the pipeline whose first label is ``best``; none for ``_END``."""
    length, label = 0, best
    while label >= 0:
        length, label = length + 1, pool[label, _BEHIND]
    path = np.zeros((length, 3), np.int64)
    label = best
    for k in range(length):
        path[k, 0], path[k, 2] = cuts[pool[label, _POSITION]], pool[label, _GROUP]
        label = pool[label, _BEHIND]
        path[k, 1] = cuts[pool[label, _POSITION]] if label >= 0 else cuts[len(cuts) - 1]
    return path


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


@njit("i8(i8,i8,b1,i8[::1],i8[::1])", cache=True)
def targets_at(p, full, everyone, reach, targets):  # type: ignore[no-untyped-def]
    """Fill the groups that may be used from a position on: those left must cover the layers in front; their number."""
    found = 0
    for used in range(1, full + 1):
        rest = full - used
        if (p > 0 and rest > 0 and p <= reach[rest]) or (p == 0 and (rest == 0 or not everyone)):
            targets[found] = used
            found += 1
    return found


@njit("i8(i8[:,:,::1],i8[:,::1],i8,i8,i8)", cache=True)
def migration(move, groups, g, i, j):  # type: ignore[no-untyped-def]
    """Migration of the slowest member of a stage; 0 without a failure."""
    slowest = np.int64(0)
    if move.shape[1] > 1:
        for c in range(groups.shape[1]):
            if groups[g, c] > 0:
                slowest = max(slowest, move[c, i, j])
    return slowest


@njit(inline="always")
def prepended(  # type: ignore[no-untyped-def]
    pool,
    used,
    head,
    label,
    target,
    p,
    g,
    ef,
    eb,
    ta,
    moved,
    c,
    before,
    before_f,
    micro_batches,
    rounds,
    upper,
    best,
):
    """Put a stage (and c ticks each way) before ``label`` and those after it; keep what is not dominated.

    New labels go to the node ``target``; without one the pipeline is complete and the best is kept. Returns the pool,
    the labels in it, the upper bound and the best label.
    """
    e = ef + eb
    alone = max(micro_batches * e, e + 2 * micro_batches * c)
    while label != _END:
        behind = label
        if label == _NOTHING:
            d, a, m, behind, label = micro_batches * e, ta, moved, np.int64(_END), np.int64(_END)
        else:
            d, a = max(alone, e + 2 * c + pool[label, _D]), max(ta, pool[label, _A] - eb - c)
            m, label = max(moved, pool[label, _G]), pool[label, _NEXT]
        if rounds * max(d + before, d + a + before_f) + m >= upper:
            continue
        if target == _END:
            upper, best = rounds * (d + a) + m, np.int64(used)
        elif not admit(pool, head, target, d, a, m):
            continue
        pool = stored(pool, used, d, a, m, behind, p, g)
        if target != _END:
            pool[used, _NEXT], head[target] = head[target], used
        used += 1
    return pool, used, upper, best


@njit(
    f"Tuple((i8,i8[:,::1],i8[::1]))({_TABLES},i8[:,::1],i8,i8[::1],b1[:,::1],i8[:,::1],i8[:,::1],i8[::1],"
    "i8[::1],i8[::1],i8[:,:,::1],i8[:,::1],i8[:,::1],i8,i8,b1,i8)",
    cache=True,
)
def search(  # type: ignore[no-untyped-def]
    forward,
    backward,
    both,
    state,
    act,
    room,
    groups,
    batch,
    cuts,
    compatible,
    comm,
    level,
    reduce_num,
    reduce_den,
    weights,
    move,
    before,
    before_f,
    micro_batches,
    rounds,
    everyone,
    upper,
):
    """Best objective below ``upper`` (or ``upper``), its stages (start, stop, group), and counts for the notes.

    ``before`` and ``before_f`` bound the sums of E and E_f of all stages in front of a layer, by the group that is
    left for them.
    """
    # Where stages may begin and end, and which devices can cover the layers in front.
    last, count, full = len(cuts) - 1, len(groups), len(groups) - 1
    window = windows(forward, backward, both, state, act, room, groups, batch, cuts, micro_batches * rounds, upper)
    allowed = cheap_cuts(comm, cuts, 2 * micro_batches * rounds, upper)
    reach = reaches(window, compatible, allowed)

    # Nodes: position, devices used, stages (where memory can bind, else 1 slot), head group (where links differ).
    most = int(groups[full].sum())
    deep = min(2 * most - 1, micro_batches)
    by_stages = memory_binds(forward, backward, both, state, act, room, groups, batch, cuts, window, deep)
    slots = min(most, last) if by_stages else 1
    heads = 1 if level.shape[0] == 1 else count
    head = np.full((last + 1) * count * slots * heads, _END, np.int64)  # first label of every node
    first = np.full(last + 1, _END, np.int64)  # first node of every position
    following = np.full(len(head), _END, np.int64)  # next node of the same position
    listed = np.zeros(len(head), np.bool_)
    pool, used, costs, best = np.zeros((1 << 12, 7), np.int64), 0, 0, np.int64(_END)

    # E_f (-1 without memory), E_b, T_a and migration of the stage [p, r) by group (and stages behind); the last two
    # arrays say of which stage they are.
    known_f, known_b = np.zeros((count, slots + 1), np.int64), np.zeros((count, slots + 1), np.int64)
    known_ta, known_move = np.zeros(count, np.int64), np.zeros(count, np.int64)
    times_of, rest_of = np.full((count, slots + 1), -1, np.int64), np.full(count, -1, np.int64)
    work, targets = np.zeros((4, groups.shape[1]), np.int64), np.zeros(count, np.int64)

    for p in range(last - 1, -1, -1):
        if not allowed[p]:
            continue
        i, band = cuts[p], targets_at(p, full, everyone, reach, targets)
        for r in range(p + 1, window[p].max() + 1):
            if not allowed[r]:
                continue
            j, stamp = cuts[r], p * (last + 1) + r
            node = first[r] if r < last else np.int64(_NOTHING)
            while node != _END:
                # What is behind the stage: devices, stages, head group, the first label; then the node after this.
                behind, q, h, start = np.int64(0), np.int64(0), np.int64(0), np.int64(_NOTHING)
                if node == _NOTHING:
                    node = np.int64(_END)
                else:
                    h, q = node % heads, node // heads % slots + 1
                    behind, start = node // heads // slots % count, head[node]
                    node = following[node]
                slot = q if by_stages else np.int64(0)
                for k in range(band):
                    g, rest = targets[k] - behind, full - targets[k]
                    if g <= 0 or not compatible[behind, g] or r > window[p, g]:
                        continue
                    if rest_of[g] != stamp:
                        rest_of[g] = stamp
                        known_ta[g] = -(-(weights[j] - weights[i]) * reduce_num[g] // reduce_den[g])
                        known_move[g] = migration(move, groups, g, i, j)
                    if times_of[g, slot] != stamp:
                        times_of[g, slot] = stamp
                        kept = min(2 * q + 1, micro_batches) if by_stages else deep
                        known_f[g, slot], known_b[g, slot] = stage_cost(
                            forward, backward, both, state, act, room, groups[g], batch, i, j, kept, work
                        )
                        costs += 1
                    ef, eb = known_f[g, slot], known_b[g, slot]
                    if ef < 0 or rounds * (micro_batches * (ef + eb) + before[rest, i]) >= upper:
                        continue
                    c = comm[level[g, h] if heads > 1 else level[0, 0], j] if start >= 0 else np.int64(0)
                    target = np.int64(_END)  # complete pipelines have no node
                    if p > 0:
                        depth = q if by_stages else np.int64(0)
                        target = ((p * count + targets[k]) * slots + depth) * heads + (g if heads > 1 else 0)
                    pool, used, upper, best = prepended(
                        pool,
                        used,
                        head,
                        start,
                        target,
                        p,
                        g,
                        ef,
                        eb,
                        known_ta[g],
                        known_move[g],
                        c,
                        before[rest, i],
                        before_f[rest, i],
                        micro_batches,
                        rounds,
                        upper,
                        best,
                    )
                    if target != _END and not listed[target] and head[target] != _END:
                        listed[target] = True
                        following[target], first[p] = first[p], target
    return upper, stages_of(pool, best, cuts), np.array([used, costs, int(by_stages)], np.int64)
