"""Compiled loops of the label search; ``mapgap.formulations.hybrid_pipeline.label_dp`` has the recursion and its proof.

A *position* is an index into ``cuts``, the layers where stages may begin or end (all of them, or a coarse selection).
A *node* is a position with the state of the devices (``groups.Moves``), the number of stages behind it as far as K of
Eq. (3) depends on it, and, where links differ, the group of the first stage behind it; it holds the Pareto set of
labels (D, A, G).

Nodes are worked off from the last position to the first: when a position has its turn, no label is added to its nodes
any more, and each move of each node puts stages in front that end there. Only nodes with labels cost anything, and the
memory of labels that others drove out is used again, for none of them has a label in front of it.

From bottom to top: tables (:mod:`.label_tables`), costs of a stage and what prunes (:mod:`.label_stages`), nodes and
labels (:mod:`.label_nodes`); here one move, and the search. Machine code holds that of the functions it calls, and the
compiler's cache follows a function's own file only: who edits a lower file removes the cached code of this one.
"""

from __future__ import annotations

import numpy as np

from mapgap.formulations.hybrid_pipeline.label.nodes import (
    BEHIND,
    BEST,
    DONE,
    END,
    FREED,
    FRESH,
    FULL,
    GROUP,
    HELD,
    LABEL,
    LEAST_D,
    LEAST_DA,
    MOVE,
    NEXT,
    NODE,
    NODES,
    NOTHING,
    PAUSED,
    POSITION,
    PRICED,
    UPPER,
    USED,
    A,
    D,
    G,
    R,
    W,
    admit,
    node_of,
    release,
    row_for,
)
from mapgap.formulations.hybrid_pipeline.label.stages import (
    exchange,
    least_cost,
    link_between,
    migration,
    nearest_link,
    stage_cost,
)
from mapgap.formulations.hybrid_pipeline.label.tables import Array, Links, Round, Space, Stages, Steps, Store
from mapgap.kernels import kernel


@kernel("void(Stages,Steps,Links,Round,Space,Store,i8[::1],i8,i8)", Stages, Steps, Links, Round, Space, Store)
def begin_node(
    stages: Stages,
    steps: Steps,
    links: Links,
    round_: Round,
    space: Space,
    store: Store,
    at: Array,
    state: int,
    h: int,
) -> None:
    """Drop labels of the node at work that the upper bound has overtaken, and fill what its moves ask for."""
    at[HELD], at[LEAST_D], at[LEAST_DA] = 1, 0, 0
    at[MOVE] = steps.first[state]
    at[LABEL] = NOTHING
    if at[NODE] == NOTHING:
        return
    pool, i, rest = store.pool, space.cuts[at[R]], steps.left[state]
    cut = links.comm[nearest_link(stages, links, h, rest) if h > 0 else len(links.comm) - 1, i]
    ahead = round_.aligned * (steps.front[rest, i] + round_.ways * cut)
    ahead_f = max(round_.aligned, round_.drain) * (steps.front_f[rest, i] + cut)
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
    kept = min(round_.kept + round_.more * behind, round_.micro_batches)
    if round_.relaxed > 0:
        ef, eb = least_cost(stages, stages.groups[g], i, j, kept, work)
    else:
        ef, eb = stage_cost(stages, stages.groups[g], i, j, kept, work)
    if ef >= 0:
        moved = links.load[i] + links.load[j]
        ef += moved
        eb += moved * (round_.ways - 1) + (exchange(links, g, i, j) if links.every_step else 0)
    costs[entry, 0], costs[entry, 1], costs[entry, 2] = ef, eb, at[R]
    at[PRICED] += 1


@kernel(
    "void(Stages,Links,Round,Steps,Space,Store,i8[::1],i8[:,::1],i8,i8,i8,i8,i8,i8)",
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
    used: int,
    lowest: int,
    highest: int,
) -> None:
    """Put the stages of move ``k`` that begin at positions ``lowest`` to ``highest`` in front of the node at work."""
    g, t, r = steps.group[k], steps.target[k], at[R]
    busy, aligned, ways, excess, drain = round_.busy, round_.aligned, round_.ways, round_.excess, round_.drain
    turns = round_.turns
    rounds, slots, passing = round_.rounds, round_.slots, max(aligned, drain)
    relaxed = round_.relaxed * excess
    cuts, opened, least, least_f, load = space.cuts, space.open, steps.least, steps.least_f, links.load
    front, front_f = steps.front, steps.front_f
    comm, pool, head, costs = links.comm, store.pool, store.head, store.costs
    heads, states = round_.heads, len(steps.left)
    j, rest, complete, place = cuts[r], steps.left[t], steps.complete[t], store.place[g]
    upper, least_d, least_da, first = at[UPPER], at[LEAST_D], at[LEAST_DA], at[LABEL]
    last = first == NOTHING
    c = 0
    if not last:
        c = comm[link_between(stages, links, g, h) if heads > 1 else nearest_link(stages, links, g, used), j]
    fastest_link, with_reduce, every_step = (
        nearest_link(stages, links, g, rest),
        links.reduce_num[g] > 0,
        links.every_step > 0,
    )
    least_j, least_fj, load_j = least[g, j], least_f[g, j], load[j]
    for p in range(highest, lowest - 1, -1):
        i = cuts[p]
        if not opened[p] or (p == 0 and not complete):
            continue
        cut = comm[fastest_link, i]
        ahead, ahead_f = aligned * (front[rest, i] + ways * cut), passing * (front_f[rest, i] + cut)
        # No price is asked of a stage that cannot be part of a plan below the bound.
        e = least_j - least[g, i] + ways * (load[i] + load_j)
        d = max(busy * e, busy * ways * c + aligned * e, aligned * (e + ways * c) + least_d)
        da = least_da + passing * (least_fj - least_f[g, i] + c)
        if rounds * max(d + ahead, da + ahead_f) >= upper:
            continue
        ta, taken = 0, turns * ways * (c + load_j)
        if with_reduce:
            reduced = exchange(links, g, i, j)
            if every_step:
                d = max(d, busy * (e + reduced))
                taken += turns * reduced
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
            behind, m, w = label, moved, taken
            if last:
                d, a, behind, label = alone, ta + drain * e, END, END
            else:
                w += pool[label, W]
                d = max(alone, aligned * (e + ways * c) + pool[label, D])
                if relaxed > 0:
                    a = max(ta, pool[label, D] + pool[label, A] + e - eb + c - d)
                else:
                    a = max(ta, pool[label, A] - excess * (eb + c) + turns * ta) + drain * (e + ways * c)
                m, label = max(moved, pool[label, G]), pool[label, NEXT]
            if turns > 0:
                medium = busy * w + (aligned * e if p == 0 else busy * ways * cut)
                if rounds * medium + m >= upper:
                    continue
                if p == 0:
                    if relaxed > 0:
                        a = max(a, medium - d)
                    else:
                        d = max(d, medium)
            if rounds * max(d + ahead, d + a + ahead_f) + m >= upper:
                continue
            if p > 0:
                if node == END:
                    depth = min(slot + 1, slots - 1)
                    key = ((p * states + t) * slots + depth) * heads + (g if heads > 1 else 0)
                    node = node_of(store, at, key, p)
                if not admit(pool, head, at, node, d, a, m, w, relaxed):
                    continue
            new = row_for(pool, at)
            pool[new, D], pool[new, A], pool[new, G], pool[new, BEHIND] = d, a, m, behind
            pool[new, POSITION], pool[new, GROUP], pool[new, NEXT], pool[new, W] = p, g, END, w
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
    heads, states = round_.heads, len(steps.left)
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
                begin_node(stages, steps, links, round_, space, store, at, state, h)
            end = steps.first[state + 1] if at[HELD] > 0 else 0
            used = len(stages.groups) - 1 - steps.left[state]
            while at[MOVE] < end:
                k = at[MOVE]
                lowest, highest = nearest[r, group[k]], min(r - 1, reach[target[k]])
                spent += 1
                if lowest <= highest:
                    room = len(store.pool) - at[USED] + at[FREED]
                    stages_here = highest - lowest + 1
                    if room < at[HELD] * stages_here or at[NODES] + stages_here > len(store.key):
                        return FULL
                    step(stages, links, round_, steps, space, store, at, work, k, slot, h, used, lowest, highest)
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


@kernel("i8(Stages,Links,Round,Steps,Space,Store,i8[::1])", Stages, Links, Round, Steps, Space, Store)
def bound_left(stages: Stages, links: Links, round_: Round, steps: Steps, space: Space, store: Store, at: Array) -> int:
    """No plan is better than this and the upper bound: the least value of labels that still have moves."""
    count, states = round_.heads, len(steps.left)
    pool = store.pool
    found: int = at[UPPER]
    for r in range(min(at[R], len(space.cuts) - 2), 0, -1):
        i = space.cuts[r]
        node = store.first[r]
        while node != END:
            key = store.key[node]
            rest, h = steps.left[key // count // round_.slots % states], key % count
            cut = links.comm[nearest_link(stages, links, h, rest) if h > 0 else len(links.comm) - 1, i]
            ahead = round_.aligned * (steps.front[rest, i] + round_.ways * cut)
            ahead_f = max(round_.aligned, round_.drain) * (steps.front_f[rest, i] + cut)
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
