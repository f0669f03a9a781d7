"""Compiled: what a stage costs (Eqs. 3, 7, 8), and what leaves stages out (sums, windows, reach).

Times are read element by element: array views in the loops take a third more.
"""

from __future__ import annotations

import numpy as np

from mapgap.formulations.hybrid_pipeline.label.tables import Array, Links, Round, Stages, Steps
from mapgap.kernels import kernel


@kernel("i8(i8[::1],i8[::1],i8,i8)")
def largest(begin: Array, end: Array, limit: int, cap: int) -> int:
    """Largest share up to ``cap`` whose time ``end - begin`` is within the limit; no share takes no time."""
    low, high = 0, cap
    while low < high:
        middle = (low + high + 1) >> 1
        if end[middle] - begin[middle] <= limit:
            low = middle
        else:
            high = middle - 1
    return low


@kernel("i8(Stages,Links,i8,i8)", Stages, Links)
def nearest_link(stages: Stages, links: Links, g: int, others: int) -> int:
    """Bandwidth level that no link between a group and a stage on some devices of another group exceeds.

    The bandwidth between two groups is that of the slowest pair, so it is at most that of any one device of the stage.
    """
    best = 0
    if len(links.comm) == 1:
        return best
    for c in range(len(links.near)):
        if stages.groups[others, c] > 0:
            best = max(best, links.near[c, g])
    return best


@kernel("i8(Stages,Links,i8,i8)", Stages, Links)
def link_between(stages: Stages, links: Links, g: int, h: int) -> int:
    """Bandwidth level between two groups."""
    if links.level.shape[0] > 1:
        table: int = links.level[g, h]
        return table
    slowest = len(links.comm) - 1
    for c in range(len(links.near)):
        if stages.groups[g, c] > 0:
            slowest = min(slowest, links.near[c, h])
    return slowest


@kernel("b1(Stages,i8[::1],i8,i8,i8,i8[::1])", Stages)
def memory_caps(stages: Stages, group: Array, i: int, j: int, kept: int, caps: Array) -> bool:
    """Eq. (3): fills the largest share per class; whether they add up to a micro-batch."""
    room, batch, total = stages.room, stages.batch, 0
    held, stored = stages.state[j] - stages.state[i], kept * (stages.activation[j] - stages.activation[i])
    for c in range(len(group)):
        if group[c] == 0:
            continue
        left = room[c] - held
        if left < 0:
            return False
        caps[c] = batch if stored == 0 else min(batch, left // stored)
        total += group[c] * caps[c]
    return total >= batch


@kernel("b1(i8[:,:,::1],i8[::1],i8[::1],i8,i8,i8,i8)")
def enough(both: Array, group: Array, caps: Array, batch: int, i: int, j: int, limit: int) -> bool:
    """Whether the group takes a micro-batch with no member above the limit."""
    total = 0
    for c in range(len(group)):
        if group[c] > 0:
            total += group[c] * largest(both[c, i], both[c, j], limit, caps[c])
    return total >= batch


@kernel("i8(i8[:,:,::1],i8[::1],i8[::1],i8,i8,i8)")
def fastest(both: Array, group: Array, caps: Array, batch: int, i: int, j: int) -> int:
    """Eq. (7): the smallest limit that is enough; it is the time of some class at some share."""
    best = 2**62
    for c in range(len(group)):
        if group[c] == 0:
            continue
        low, high = 0, caps[c]
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


@kernel("i8(i8[:,:,::1],i8[::1],i8[::1],i8,i8,i8,i8[::1])")
def shrink(table: Array, group: Array, caps: Array, slack: int, i: int, j: int, smaller: Array) -> int:
    """Push the largest time of ``table`` one value down; the slack that is left, or -1 if there is not enough.

    ``caps`` holds the largest shares now; ``smaller`` is filled with those after.
    """
    top = -1
    for c in range(len(group)):
        if group[c] > 0:
            top = max(top, table[c, j, caps[c]] - table[c, i, caps[c]])
    if top <= 0:
        return -1
    for c in range(len(group)):
        smaller[c] = caps[c]
        if group[c] > 0 and table[c, j, caps[c]] - table[c, i, caps[c]] == top:
            smaller[c] = largest(table[c, i], table[c, j], top - 1, caps[c])
            slack -= group[c] * (caps[c] - smaller[c])
    return slack if slack >= 0 else -1


@kernel("i8(i8[:,:,::1],i8[::1],i8[::1],i8,i8)")
def peak(table: Array, group: Array, caps: Array, i: int, j: int) -> int:
    """Largest time of a member at the given shares."""
    top = 0
    for c in range(len(group)):
        if group[c] > 0:
            top = max(top, table[c, j, caps[c]] - table[c, i, caps[c]])
    return top


@kernel("UniTuple(i8,2)(Stages,i8[::1],i8,i8,i8,i8[:,::1])", Stages)
def stage_cost(stages: Stages, group: Array, i: int, j: int, kept: int, work: Array) -> tuple[int, int]:
    """Eqs. (7), (8): ``(E_f, E_b)``, with ties as rule 6 has them; (-1, -1) where memory does not suffice.

    ``work`` is scratch of shape (4, C).
    """
    forward, backward, both, batch, caps = stages.forward, stages.backward, stages.both, stages.batch, work[0]
    if not memory_caps(stages, group, i, j, kept, caps):
        return -1, -1
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
    best_f, best_b = 2**61, 2**61
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


@kernel("UniTuple(i8,2)(Stages,i8[::1],i8,i8,i8,i8[:,::1])", Stages)
def least_cost(stages: Stages, group: Array, i: int, j: int, kept: int, work: Array) -> tuple[int, int]:
    """Least E_f, and what T of Eq. (7) leaves for E_b: both the sum and the first never fall when times grow."""
    if not memory_caps(stages, group, i, j, kept, work[0]):
        return -1, -1
    f = fastest(stages.forward, group, work[0], stages.batch, i, j)
    return f, fastest(stages.both, group, work[0], stages.batch, i, j) - f


@kernel("void(i8[:,:,::1],i8[:,::1],i8,i4[:,::1],i8,i8)")
def least_sums(table: Array, groups: Array, batch: int, found: Array, begin: int, end: int) -> None:
    """A bound on the sum of a time table over stages on devices of a group, by the layers before a cut.

    Fills ``found`` (G, L + 1) for the groups ``[begin, end)``.

    Let ``z_d`` be shares with ``sum (z_d - 1) < B``. In a stage on some of the devices one at least has ``y_d >= z_d``
    and takes no less than the smallest time of all at ``z_d``, layer by layer. The shares here make the times of the
    devices for the whole network as equal as can be.
    """
    classes, layers = table.shape[0], table.shape[1] - 1
    caps, share = np.full(classes, batch, np.int64), np.zeros(classes, np.int64)
    for g in range(max(1, begin), end):
        limit = fastest(table, groups[g], caps, batch, 0, layers)
        members = 0
        for c in range(classes):
            members += groups[g, c]
            if groups[g, c] > 0:
                share[c] = 0 if limit == 0 else largest(table[c, 0], table[c, layers], limit - 1, batch) + 1
        if limit == 0:
            continue
        total = 0
        for l in range(layers):  # noqa: E741
            low = 2**62
            for c in range(classes):
                if groups[g, c] > 0:
                    low = min(low, table[c, l + 1, share[c]] - table[c, l, share[c]])
            total += low
            found[g, l + 1] = total


@kernel("i8(i8[:,:,::1],i8[:,::1],i8,i8,i8)")
def migration(move: Array, groups: Array, g: int, i: int, j: int) -> int:
    """Migration of the slowest member of a stage; 0 without a failure."""
    slowest = 0
    if move.shape[1] > 1:
        for c in range(groups.shape[1]):
            if groups[g, c] > 0:
                slowest = max(slowest, move[c, i, j])
    return slowest


@kernel("i8(Links,i8,i8,i8)", Links)
def exchange(links: Links, g: int, i: int, j: int) -> int:
    """Ticks of one AllReduce (Eq. 5)."""
    weights = links.weights[j] - links.weights[i]
    ticks: int = -(-(weights * links.reduce_num[g] + links.reduce_add[g]) // links.reduce_den[g])
    return ticks if weights > 0 else 0


@kernel("b1(Stages,Links,Round,i8,i8,i8,i8,i8[:,::1])", Stages, Links, Round)
def passes(stages: Stages, links: Links, round_: Round, g: int, i: int, j: int, upper: int, tried: Array) -> bool:
    """Whether a plan below ``upper`` may have the stage: its least value, with one stored micro-batch, is below.

    The value never falls as the stage grows at either end. ``tried`` holds shares that were enough for the last stage
    of the group that passed, and one sample more each than was allowed for the last one that did not (-1: none yet):
    they often decide, and spare the search for shares.
    """
    group, both, room, batch = stages.groups[g], stages.both, stages.room, stages.batch
    limit = upper - 1 - migration(links.move, stages.groups, g, i, j)
    if round_.rounds > 1:
        limit //= round_.rounds
    reduced = exchange(links, g, i, j) if links.reduce_num[g] > 0 else 0
    if not links.every_step and round_.excess > 0:
        limit -= reduced
    limit = limit // (round_.busy + round_.drain) - (reduced if links.every_step else 0)
    if limit < 0:
        return False
    held, stored = stages.state[j] - stages.state[i], stages.activation[j] - stages.activation[i]
    yes, no = True, True
    for c in range(len(group)):
        if group[c] == 0:
            continue
        left = room[c] - held
        if left < 0:
            return False
        good, bad = tried[0, c], tried[1, c]
        if good < 0 or stored * good > left or both[c, j, good] - both[c, i, good] > limit:
            yes = False
        if bad < 0 or (stored * bad <= left and both[c, j, bad] - both[c, i, bad] <= limit):
            no = False
    if yes or no:
        return yes
    total = 0
    for c in range(len(group)):
        if group[c] > 0:
            cap = batch if stored == 0 else min(batch, (room[c] - held) // stored)
            tried[2, c] = largest(both[c, i], both[c, j], limit, cap)
            total += group[c] * tried[2, c]
    for c in range(len(group)):
        if total >= batch:
            tried[0, c] = tried[2, c]
        else:
            tried[1, c] = tried[2, c] + 1
    return total >= batch


@kernel("void(Stages,Links,Round,b1[::1],i8[::1],i8,i4[:,::1],i4[:,::1],i8,i8)", Stages, Links, Round)
def windows(
    stages: Stages,
    links: Links,
    round_: Round,
    asked: Array,
    cuts: Array,
    upper: int,
    window: Array,
    nearest: Array,
    begin: int,
    end: int,
) -> None:
    """``window`` and ``nearest`` of :class:`Space` for the groups ``[begin, end)``, by two pointers per group."""
    last = len(cuts) - 1
    tried = np.zeros((3, stages.groups.shape[1]), np.int64)
    for g in range(max(1, begin), end):
        if not asked[g]:
            continue
        stop = last
        tried[:] = -1
        for p in range(last, -1, -1):
            while stop > p and not passes(stages, links, round_, g, cuts[p], cuts[stop], upper, tried):
                stop -= 1
                nearest[stop + 1, g] = p + 1
            window[p, g] = max(stop, p)


@kernel("i8[::1](Steps,i4[:,::1],b1[::1])", Steps)
def reaches(steps: Steps, window: Array, opened: Array) -> Array:
    """``reach`` of :class:`Space`: the best group comes last, the others reach as far as they can."""
    states = len(steps.left)
    reach = np.zeros(states, np.int64)
    for s in range(states - 1, -1, -1):
        for k in range(steps.first[s], steps.first[s + 1]):
            reach[s] = max(reach[s], window[reach[steps.target[k]], steps.group[k]])
        while reach[s] > 0 and not opened[reach[s]]:
            reach[s] -= 1
    return reach


@kernel("b1(Stages,i8[::1],i4[:,::1],i8)", Stages)
def memory_binds(stages: Stages, cuts: Array, window: Array, kept: int) -> bool:
    """Whether a whole micro-batch in one member exceeds its memory in some stage inside the windows."""
    groups, room, state, activation = stages.groups, stages.room, stages.state, stages.activation
    for g in range(1, len(groups)):
        for p in range(len(cuts) - 1):
            i, j = cuts[p], cuts[window[p, g]]
            need = state[j] - state[i] + kept * stages.batch * (activation[j] - activation[i])
            for c in range(len(room)):
                if groups[g, c] > 0 and need > room[c]:
                    return True
    return False
