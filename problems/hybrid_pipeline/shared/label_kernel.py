"""Compiled loops of the label search; ``mapgap.formulations.hybrid_pipeline.label_dp`` has the recursion and its proof.

A *position* is an index into ``cuts``, the layers where stages may begin or end (all of them, or a coarse selection).
A *node* is a position with the state of the devices (``groups.Moves``), the number of stages behind it as far as K of
Eq. (3) depends on it, and, where links differ, the group of the first stage behind it; it holds the Pareto set of
labels (D, A, G).

Nodes are worked off from the last position to the first: when a position has its turn, no label is added to its nodes
any more, and each move of each node puts stages in front that end there. Only nodes with labels cost anything, and the
memory of labels that others drove out is used again, for none of them has a label in front of it.

From bottom to top: costs of a stage (Eqs. 3, 7, 8), what prunes (sums, windows, reach), nodes and labels, one move, the
search. All is in one file because the compiler's cache of a function follows changes of its own file only. Times and
labels are read element by element: array views in the loops take a third more.
"""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mapgap.kernels import Flags, Integer, Integers, Integers2, Integers3, kernel

Array = NDArray[Any]
"""Whole numbers; in a kernel NumPy's and Python's are one type."""
Small = Annotated[NDArray[np.int32], "i4[::1]"]
Small2 = Annotated[NDArray[np.int32], "i4[:,::1]"]
Levels = Annotated[NDArray[np.int16], "i2[:,::1]"]


class Stages(NamedTuple):
    """What the cost of a stage depends on; fields as in ``lowered.Lowered``."""

    forward: Integers3
    backward: Integers3
    both: Integers3
    state: Integers
    activation: Integers
    room: Integers
    groups: Integers2
    batch: Integer


class Links(NamedTuple):
    """What lies between stages, what a stage pays besides, and what follows or precedes the round.

    ``every_step``: an AllReduce is part of E_b, not of T_a; other fields as in ``lowered.Lowered``.
    """

    comm: Integers2
    level: Levels
    load: Integers
    reduce_num: Integers
    reduce_den: Integers
    weights: Integers
    move: Integers3
    every_step: Integer


class Round(NamedTuple):
    """The objective (``lowered.Form``) and the numbers of rounds R and of K's that differ."""

    busy: Integer
    aligned: Integer
    ways: Integer
    excess: Integer
    drain: Integer
    rounds: Integer
    micro_batches: Integer
    slots: Integer


class Steps(NamedTuple):
    """``groups.Moves``, the states that a pipeline may end in, and sums that no stages go below.

    ``asked`` (G,): groups of some move; ``least`` and ``least_f`` (G, L + 1): least E and E_f of the layers before a
    cut on devices of a group.
    """

    first: Integers
    group: Small
    target: Small
    left: Integers
    complete: Flags
    asked: Flags
    least: Small2
    least_f: Small2


class Space(NamedTuple):
    """Where stages may lie below the upper bound.

    ``window`` and ``nearest`` (P + 1, G): last end of a stage from a position on, first begin of a stage up to it;
    ``open``: positions that may be cuts; ``reach`` (S,): how far the devices left come from the front.
    """

    cuts: Integers
    window: Small2
    nearest: Small2
    open: Flags
    reach: Integers


class Store(NamedTuple):
    """Labels and nodes; rows of ``pool`` as below. ``table`` finds a node by its key, ``costs`` holds those of stages
    that end at the position at work (E_f, E_b, that position), from ``place`` on by group."""

    pool: Small2
    head: Integers
    key: Integers
    following: Integers
    first: Integers
    table: Integers
    costs: Small2
    place: Integers


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


@kernel("i4[:,::1](i8[:,:,::1],i8[:,::1],i8)")
def least_sums(table: Array, groups: Array, batch: int) -> Array:
    """(G, L + 1): a bound on the sum of a time table over stages on devices of a group, by the layers before a cut.

    Let ``z_d`` be shares with ``sum (z_d - 1) < B``. In a stage on some of the devices one at least has ``y_d >= z_d``
    and takes no less than the smallest time of all at ``z_d``, layer by layer. The shares here make the times of the
    devices for the whole network as equal as can be.
    """
    classes, layers = table.shape[0], table.shape[1] - 1
    found = np.zeros((len(groups), layers + 1), np.int32)
    caps, share = np.full(classes, batch, np.int64), np.zeros(classes, np.int64)
    for g in range(1, len(groups)):
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
    return found


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
    ticks: int = -(-(links.weights[j] - links.weights[i]) * links.reduce_num[g] // links.reduce_den[g])
    return ticks


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


@kernel("UniTuple(i4[:,::1],2)(Stages,Links,Round,b1[::1],i8[::1],i8)", Stages, Links, Round)
def windows(stages: Stages, links: Links, round_: Round, asked: Array, cuts: Array, upper: int) -> tuple[Array, Array]:
    """``window`` and ``nearest`` of :class:`Space`, by two pointers per group."""
    count, last = len(stages.groups), len(cuts) - 1
    tried = np.zeros((3, stages.groups.shape[1]), np.int64)
    window, nearest = np.zeros((last + 1, count), np.int32), np.zeros((last + 1, count), np.int32)
    for g in range(1, count):
        if not asked[g]:
            continue
        end = last
        tried[:] = -1
        for p in range(last, -1, -1):
            while end > p and not passes(stages, links, round_, g, cuts[p], cuts[end], upper, tried):
                end -= 1
                nearest[end + 1, g] = p + 1
            window[p, g] = max(end, p)
    return window, nearest


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


#: Columns of the pool of labels: the three criteria, the label behind, position, group, next label of the node.
D, A, G, BEHIND, POSITION, GROUP, NEXT = range(7)

#: In place of a node or a label: the list ends; the pipeline ends, nothing is behind; the position has its turn.
END, NOTHING, FRESH = -1, -2, -3

#: Where the search is and what it holds, by place: position, node, move; labels and nodes in the store, first label
#: free again and how many are; upper bound, its label; stages priced, labels made; of the node at work its first label,
#: least D and D + A, number of labels.
R, NODE, MOVE, USED, NODES, FREE, FREED, UPPER, BEST, PRICED, MADE, LABEL, LEAST_D, LEAST_DA, HELD = range(15)

#: Why a call ended.
DONE, PAUSED, FULL = 0, 1, 2


@kernel("i8(Store,i8[::1],i8,i8)", Store)
def node_of(store: Store, at: Array, key: int, position: int) -> int:
    """The node with a key, made if there is none; open addressing."""
    mask = len(store.table) - 1
    k = (key * 0x9E3779B97F4A7C1 >> 20) & mask
    while store.table[k] >= 0:
        known: int = store.table[k]
        if store.key[known] == key:
            return known
        k = (k + 1) & mask
    node: int = at[NODES]
    at[NODES] += 1
    store.table[k], store.key[node], store.head[node] = node, key, END
    store.following[node], store.first[position] = store.first[position], node
    return node


@kernel("void(Store)", Store)
def index(store: Store) -> None:
    """Enter all nodes into an empty table."""
    mask = len(store.table) - 1
    for position in range(len(store.first)):
        node = store.first[position]
        while node != END:
            k = (store.key[node] * 0x9E3779B97F4A7C1 >> 20) & mask
            while store.table[k] >= 0:
                k = (k + 1) & mask
            store.table[k] = node
            node = store.following[node]


@kernel("void(i4[:,::1],i8[::1],i8)")
def release(pool: Array, at: Array, label: int) -> None:
    """The row of a label may be used again."""
    pool[label, NEXT] = at[FREE]
    at[FREE] = label
    at[FREED] += 1


@kernel("i8(i4[:,::1],i8[::1])")
def row_for(pool: Array, at: Array) -> int:
    """A row for a new label."""
    at[MADE] += 1
    if at[FREED] > 0:
        again: int = at[FREE]
        at[FREE] = pool[again, NEXT]
        at[FREED] -= 1
        return again
    new: int = at[USED]
    at[USED] += 1
    return new


@kernel("b1(i4[:,::1],i8[::1],i8[::1],i8,i8,i8,i8)")
def admit(pool: Array, head: Array, at: Array, node: int, d: int, a: int, g: int) -> bool:
    """Drop the labels of a node that (d, a, g) dominates; False if one of them dominates it."""
    previous, label = END, head[node]
    while label >= 0:
        following = pool[label, NEXT]
        if pool[label, D] <= d and pool[label, A] <= a and pool[label, G] <= g:
            return False
        if d <= pool[label, D] and a <= pool[label, A] and g <= pool[label, G]:
            if previous < 0:
                head[node] = following
            else:
                pool[previous, NEXT] = following
            release(pool, at, label)
        else:
            previous = label
        label = following
    return True


@kernel("void(Steps,Links,Round,Space,Store,i8[::1],i8)", Steps, Links, Round, Space, Store)
def begin_node(steps: Steps, links: Links, round_: Round, space: Space, store: Store, at: Array, state: int) -> None:
    """Drop labels of the node at work that the upper bound has overtaken, and fill what its moves ask for."""
    at[HELD], at[LEAST_D], at[LEAST_DA] = 1, 0, 0
    at[MOVE] = steps.first[state]
    at[LABEL] = NOTHING
    if at[NODE] == NOTHING:
        return
    pool, i, cut = store.pool, space.cuts[at[R]], links.comm[len(links.comm) - 1, space.cuts[at[R]]]
    rest = steps.left[state]
    ahead = round_.aligned * (steps.least[rest, i] + round_.ways * cut)
    ahead_f = max(round_.aligned, round_.drain) * (steps.least_f[rest, i] + cut)
    previous, label = END, store.head[at[NODE]]
    at[HELD], at[LEAST_D], at[LEAST_DA] = 0, 2**61, 2**61
    while label >= 0:
        following, d, a = pool[label, NEXT], pool[label, D], pool[label, A]
        if round_.rounds * max(d + ahead, d + a + ahead_f) + pool[label, G] >= at[UPPER]:
            if previous < 0:
                store.head[at[NODE]] = following
            else:
                pool[previous, NEXT] = following
            release(pool, at, label)
        else:
            at[HELD] += 1
            at[LEAST_D], at[LEAST_DA] = min(at[LEAST_D], d), min(at[LEAST_DA], d + a)
            previous = label
        label = following
    at[LABEL] = store.head[at[NODE]]


@kernel("void(Stages,Links,Round,i4[:,::1],i8[::1],i8[:,::1],i8,i8,i8,i8,i8)", Stages, Links, Round)
def price(
    stages: Stages,
    links: Links,
    round_: Round,
    costs: Array,
    at: Array,
    work: Array,
    entry: int,
    g: int,
    i: int,
    j: int,
    behind: int,
) -> None:
    """Enter E_f and E_b of a stage, -1 where memory does not suffice."""
    kept = min(2 * behind + 1, round_.micro_batches) if round_.ways == 2 else 1
    ef, eb = stage_cost(stages, stages.groups[g], i, j, kept, work)
    if ef >= 0:
        moved = links.load[i] + links.load[j]
        ef += moved
        eb += moved * (round_.ways - 1) + (exchange(links, g, i, j) if links.every_step else 0)
    costs[entry, 0], costs[entry, 1], costs[entry, 2] = ef, eb, at[R]
    at[PRICED] += 1


@kernel(
    "void(Stages,Links,Round,Steps,Space,Store,i8[::1],i8[:,::1],i8,i8,i8,i8,i8)",
    Stages,
    Links,
    Round,
    Steps,
    Space,
    Store,
)
def step(
    stages: Stages,
    links: Links,
    round_: Round,
    steps: Steps,
    space: Space,
    store: Store,
    at: Array,
    work: Array,
    k: int,
    slot: int,
    h: int,
    lowest: int,
    highest: int,
) -> None:
    """Put the stages of move ``k`` that begin at positions ``lowest`` to ``highest`` in front of the node at work."""
    g, t, r = steps.group[k], steps.target[k], at[R]
    busy, aligned, ways, excess, drain = round_.busy, round_.aligned, round_.ways, round_.excess, round_.drain
    rounds, slots, passing = round_.rounds, round_.slots, max(aligned, drain)
    cuts, opened, least, least_f, load = space.cuts, space.open, steps.least, steps.least_f, links.load
    comm, pool, head, costs = links.comm, store.pool, store.head, store.costs
    heads, states = 1 if links.level.shape[0] == 1 else len(stages.groups), len(steps.left)
    j, rest, complete, place = cuts[r], steps.left[t], steps.complete[t], store.place[g]
    upper, least_d, least_da, first = at[UPPER], at[LEAST_D], at[LEAST_DA], at[LABEL]
    last = first == NOTHING
    c = 0 if last else comm[links.level[g, h] if heads > 1 else 0, j]
    fastest_link, with_reduce, every_step = len(comm) - 1, links.reduce_num[g] > 0, links.every_step > 0
    least_j, least_fj, load_j = least[g, j], least_f[g, j], load[j]
    for p in range(highest, lowest - 1, -1):
        i = cuts[p]
        if not opened[p] or (p == 0 and not complete):
            continue
        cut = comm[fastest_link, i]
        ahead, ahead_f = aligned * (least[rest, i] + ways * cut), passing * (least_f[rest, i] + cut)
        # No price is asked of a stage that cannot be part of a plan below the bound.
        e = least_j - least[g, i] + ways * (load[i] + load_j)
        d = max(busy * e, busy * ways * c + aligned * e, aligned * (e + ways * c) + least_d)
        da = least_da + passing * (least_fj - least_f[g, i] + c)
        if rounds * max(d + ahead, da + ahead_f) >= upper:
            continue
        ta = 0
        if with_reduce:
            reduced = exchange(links, g, i, j)
            if every_step:
                d = max(d, busy * (e + reduced))
            elif excess > 0:
                ta = reduced
            if rounds * max(d + ahead, d + ta + ahead_f) >= upper:
                continue
        entry = (place + r - 1 - p) * slots + slot
        if costs[entry, 2] != r:
            price(stages, links, round_, costs, at, work, entry, g, i, j, slot)
        if costs[entry, 0] < 0:
            continue
        eb = costs[entry, 1]
        e = costs[entry, 0] + eb
        alone = busy * e if last else max(busy * e, busy * ways * c + aligned * e)
        if rounds * max(alone + ahead, alone + ta + ahead_f) >= upper:
            continue
        moved = migration(links.move, stages.groups, g, i, j)
        node = END
        label = first
        while label != END:
            behind, m = label, moved
            if last:
                d, a, behind, label = alone, ta + drain * e, END, END
            else:
                d = max(alone, aligned * (e + ways * c) + pool[label, D])
                a = max(ta, pool[label, A] - excess * (eb + c)) + drain * (e + ways * c)
                m, label = max(moved, pool[label, G]), pool[label, NEXT]
            if rounds * max(d + ahead, d + a + ahead_f) + m >= upper:
                continue
            if p > 0:
                if node == END:
                    depth = min(slot + 1, slots - 1)
                    key = ((p * states + t) * slots + depth) * heads + (g if heads > 1 else 0)
                    node = node_of(store, at, key, p)
                if not admit(pool, head, at, node, d, a, m):
                    continue
            new = row_for(pool, at)
            pool[new, D], pool[new, A], pool[new, G], pool[new, BEHIND] = d, a, m, behind
            pool[new, POSITION], pool[new, GROUP], pool[new, NEXT] = p, g, END
            if p > 0:
                pool[new, NEXT], head[node] = head[node], new
            else:
                upper = rounds * (d + a) + m
                at[UPPER], at[BEST] = upper, new


@kernel("i8(Stages,Links,Round,Steps,Space,Store,i8[::1],i8)", Stages, Links, Round, Steps, Space, Store)
def search(
    stages: Stages, links: Links, round_: Round, steps: Steps, space: Space, store: Store, at: Array, work_limit: int
) -> int:
    """Work off nodes from where the search is; ends when it is done, has worked enough or the store is full."""
    work, spent, priced_before = np.zeros((4, stages.groups.shape[1]), np.int64), 0, at[PRICED]
    last, slots = len(space.cuts) - 1, round_.slots
    heads, states = 1 if links.level.shape[0] == 1 else len(stages.groups), len(steps.left)
    group, target, nearest, reach = steps.group, steps.target, space.nearest, space.reach
    while at[R] > 0:
        r = at[R]
        if at[NODE] == FRESH:
            total = 0
            for g in range(len(stages.groups)):
                store.place[g] = total
                if steps.asked[g]:
                    total += max(0, r - space.nearest[r, g])
            at[NODE] = NOTHING if r == last else store.first[r]
            at[MOVE] = FRESH
        while at[NODE] != END:
            state, slot, h = 0, 0, 0
            if at[NODE] != NOTHING:
                key = store.key[at[NODE]]
                h, slot, state = key % heads, key // heads % slots, key // heads // slots % states
            if at[MOVE] == FRESH:
                begin_node(steps, links, round_, space, store, at, state)
            end = steps.first[state + 1] if at[HELD] > 0 else 0
            while at[MOVE] < end:
                k = at[MOVE]
                lowest, highest = nearest[r, group[k]], min(r - 1, reach[target[k]])
                spent += 1
                if lowest <= highest:
                    room = len(store.pool) - at[USED] + at[FREED]
                    stages_here = highest - lowest + 1
                    if room < at[HELD] * stages_here or at[NODES] + stages_here > len(store.key):
                        return FULL
                    step(stages, links, round_, steps, space, store, at, work, k, slot, h, lowest, highest)
                    spent += stages_here + 20 * (at[PRICED] - priced_before)
                    priced_before = at[PRICED]
                at[MOVE] += 1
                if spent >= work_limit:
                    return PAUSED
            at[NODE] = END if at[NODE] == NOTHING else store.following[at[NODE]]
            at[MOVE] = FRESH
        at[R] -= 1
        at[NODE] = FRESH
    return DONE


@kernel("i8(Links,Round,Steps,Space,Store,i8[::1])", Links, Round, Steps, Space, Store)
def bound_left(links: Links, round_: Round, steps: Steps, space: Space, store: Store, at: Array) -> int:
    """No plan is better than this and the upper bound: the least value of labels that still have moves."""
    heads, states = 1 if links.level.shape[0] == 1 else -1, len(steps.left)
    pool = store.pool
    found: int = at[UPPER]
    for r in range(min(at[R], len(space.cuts) - 2), 0, -1):
        i, cut = space.cuts[r], links.comm[len(links.comm) - 1, space.cuts[r]]
        node = store.first[r]
        while node != END:
            key = store.key[node]
            count = heads if heads > 0 else len(links.reduce_num)
            rest = steps.left[key // count // round_.slots % states]
            ahead = round_.aligned * (steps.least[rest, i] + round_.ways * cut)
            ahead_f = max(round_.aligned, round_.drain) * (steps.least_f[rest, i] + cut)
            label = store.head[node]
            while label >= 0:
                d, a = pool[label, D], pool[label, A]
                found = min(found, round_.rounds * max(d + ahead, d + a + ahead_f) + pool[label, G])
                label = pool[label, NEXT]
            node = store.following[node]
    return found


@kernel("i8[:,::1](i4[:,::1],i8,i8[::1])")
def stages_of(pool: Array, best: int, cuts: Array) -> Array:
    """Rows (start, stop, group) of the pipeline whose first label is ``best``; none for ``END``."""
    length, label = 0, best
    while label >= 0:
        length, label = length + 1, pool[label, BEHIND]
    path = np.zeros((length, 3), np.int64)
    label = best
    for k in range(length):
        path[k, 0], path[k, 2] = cuts[pool[label, POSITION]], pool[label, GROUP]
        label = pool[label, BEHIND]
        path[k, 1] = cuts[pool[label, POSITION]] if label >= 0 else cuts[len(cuts) - 1]
    return path
