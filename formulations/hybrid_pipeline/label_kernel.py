"""Compiled loops of the label dynamic programme; see ``label_dp`` for the recursion and its proof.

A *position* is an index into ``cuts``, the layers where stages may begin or end (all of them, or a coarse selection).
A *node* is a position with the group of devices used behind it, the number of stages behind it and, where links
differ, the group of the first stage behind it; it holds the Pareto set of labels (D, A, G).

From bottom to top: costs of a stage (Eqs. 3, 7, 8), what prunes (windows, cheap cuts, reach), labels and their pool,
one stage in front of one node, the search. All is in one file because the compiler's cache of a function follows
changes of its own file only. Times and labels are read element by element: array views in the loops take a third more.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mapgap.formulations.hybrid_pipeline.first_plan import Engine, Path, front_sums
from mapgap.formulations.hybrid_pipeline.lowered import Lowered
from mapgap.kernels import Flag, Flags2, Integer, Integers, Integers2, Integers3, kernel

Array = NDArray[Any]
"""int numbers of 64 bits; in a kernel NumPy's and Python's are one type."""


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
    """What lies between stages and what follows the last backward pass, with a failure also what precedes all."""

    compatible: Flags2
    comm: Integers2
    level: Integers2
    reduce_num: Integers
    reduce_den: Integers
    weights: Integers
    move: Integers3


class Round(NamedTuple):
    """The objective and what bounds it.

    ``before`` and ``before_f`` bound the sums of E and E_f of all stages in front of a layer, (G, L + 1) by the devices
    left for them; ``everyone``: every device has a stage.
    """

    before: Integers2
    before_f: Integers2
    micro_batches: Integer
    rounds: Integer
    everyone: Flag


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


@kernel("i8(Stages,i8[::1],i8,i8,i8[:,::1])", Stages)
def stage_bound(stages: Stages, group: Array, i: int, j: int, work: Array) -> int:
    """T of Eq. (7) with one stored micro-batch, -1 where memory does not suffice; never falls as the stage grows."""
    if not memory_caps(stages, group, i, j, 1, work[0]):
        return -1
    return fastest(stages.both, group, work[0], stages.batch, i, j)


@kernel("i8[:,::1](Stages,i8[::1],i8,i8)", Stages)
def windows(stages: Stages, cuts: Array, factor: int, upper: int) -> Array:
    """Per position and group the last position up to which a stage may reach with factor * T < upper.

    T never falls as a stage grows at either end, so two pointers suffice.
    """
    groups = stages.groups
    last, count = len(cuts) - 1, len(groups)
    work = np.zeros((4, groups.shape[1]), np.int64)
    window = np.zeros((last + 1, count), np.int64)
    for g in range(1, count):
        end = last
        for p in range(last - 1, -1, -1):
            while end > p:
                total = stage_bound(stages, groups[g], cuts[p], cuts[end], work)
                if total >= 0 and factor * total < upper:
                    break
                end -= 1
            window[p, g] = end
    return window


@kernel("b1[::1](i8[:,::1],i8[::1],i8,i8)")
def cheap_cuts(comm: Array, cuts: Array, factor: int, upper: int) -> NDArray[np.bool_]:
    """Positions whose transfers alone, over the fastest link, do not reach the bound."""
    allowed = np.ones(len(cuts), np.bool_)
    for p in range(1, len(cuts) - 1):
        allowed[p] = factor * comm[-1, cuts[p]] < upper
    return allowed


@kernel("i8[::1](i8[:,::1],b1[:,::1],b1[::1])")
def reaches(window: Array, compatible: NDArray[np.bool_], allowed: NDArray[np.bool_]) -> Array:
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


@kernel("b1(i8[:,::1],i8[::1],i8,i8,i8,i8)")
def admit(pool: Array, head: Array, node: int, d: int, a: int, g: int) -> bool:
    """Drop the labels of a node that (d, a, g) dominates; False if one of them dominates it."""
    previous, label = _END, head[node]
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


@kernel("i8[:,::1](i8[:,::1],i8,i8,i8,i8,i8,i8,i8)")
def stored(pool: Array, used: int, d: int, a: int, g: int, behind: int, position: int, group: int) -> Array:
    """The pool with a label in row ``used``; a pool that is full is copied into one with twice the room."""
    if used == len(pool):
        larger = np.zeros((2 * len(pool), pool.shape[1]), np.int64)
        larger[: len(pool)] = pool
        pool = larger
    pool[used, _D], pool[used, _A], pool[used, _G] = d, a, g
    pool[used, _BEHIND], pool[used, _POSITION], pool[used, _GROUP], pool[used, _NEXT] = behind, position, group, _END
    return pool


@kernel("i8[:,::1](i8[:,::1],i8,i8[::1])")
def stages_of(pool: Array, best: int, cuts: Array) -> Array:
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


@kernel("b1(Stages,i8[::1],i8[:,::1],i8)", Stages)
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


@kernel("i8(i8,i8,b1,i8[::1],i8[::1])")
def targets_at(p: int, full: int, everyone: bool, reach: Array, targets: Array) -> int:
    """Fill the groups that may be used from a position on: those left must cover the layers in front; their number."""
    found = 0
    for used in range(1, full + 1):
        rest = full - used
        if (p > 0 and rest > 0 and p <= reach[rest]) or (p == 0 and (rest == 0 or not everyone)):
            targets[found] = used
            found += 1
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


class Front(NamedTuple):
    """A stage and the communication step behind it (c ticks each way), to be put in front of labels.

    ``before`` and ``before_f`` bound the sums of E and E_f of all stages in front of the stage itself.
    """

    position: Integer
    group: Integer
    forward: Integer
    backward: Integer
    allreduce: Integer
    migration: Integer
    c: Integer
    before: Integer
    before_f: Integer


@kernel("Tuple((i8[:,::1],i8,i8,i8))(i8[:,::1],i8,i8[::1],i8,i8,Front,i8,i8,i8,i8)", Front, inline="always")
def prepended(
    pool: Array,
    used: int,
    head: Array,
    label: int,
    target: int,
    front: Front,
    micro_batches: int,
    rounds: int,
    upper: int,
    best: int,
) -> tuple[Array, int, int, int]:
    """Put a stage (and c ticks each way) before ``label`` and those after it; keep what is not dominated.

    New labels go to the node ``target``; without one the pipeline is complete and the best is kept. Returns the pool,
    the labels in it, the upper bound and the best label.
    """
    c, ta, eb = front.c, front.allreduce, front.backward
    e = front.forward + eb
    alone = max(micro_batches * e, e + 2 * micro_batches * c)
    while label != _END:
        behind = label
        if label == _NOTHING:
            d, a, m, behind, label = micro_batches * e, ta, front.migration, _END, _END
        else:
            d, a = max(alone, e + 2 * c + pool[label, _D]), max(ta, pool[label, _A] - eb - c)
            m, label = max(front.migration, pool[label, _G]), pool[label, _NEXT]
        if rounds * max(d + front.before, d + a + front.before_f) + m >= upper:
            continue
        if target == _END:
            upper, best = rounds * (d + a) + m, used
        elif not admit(pool, head, target, d, a, m):
            continue
        pool = stored(pool, used, d, a, m, behind, front.position, front.group)
        if target != _END:
            pool[used, _NEXT], head[target] = head[target], used
        used += 1
    return pool, used, upper, best


@kernel("Tuple((i8,i8[:,::1],i8[::1]))(Stages,Links,Round,i8[::1],i8)", Stages, Links, Round)
def search(stages: Stages, links: Links, round_: Round, cuts: Array, upper: int) -> tuple[int, Array, Array]:
    """Best objective below ``upper`` (or ``upper``), its stages (start, stop, group), and counts for the notes."""
    groups, compatible, comm, level = stages.groups, links.compatible, links.comm, links.level
    reduce_num, reduce_den, weights, move = links.reduce_num, links.reduce_den, links.weights, links.move
    before, before_f, everyone = round_.before, round_.before_f, round_.everyone
    micro_batches, rounds = round_.micro_batches, round_.rounds

    # Where stages may begin and end, and which devices can cover the layers in front.
    last, count, full = len(cuts) - 1, len(groups), len(groups) - 1
    window = windows(stages, cuts, micro_batches * rounds, upper)
    allowed = cheap_cuts(comm, cuts, 2 * micro_batches * rounds, upper)
    reach = reaches(window, compatible, allowed)

    # Nodes: position, devices used, stages (where memory can bind, else 1 slot), head group (where links differ).
    most = int(groups[full].sum())
    deep = min(2 * most - 1, micro_batches)
    by_stages = memory_binds(stages, cuts, window, deep)
    slots = min(most, last) if by_stages else 1
    heads = 1 if level.shape[0] == 1 else count
    head = np.full((last + 1) * count * slots * heads, _END, np.int64)  # first label of every node
    first = np.full(last + 1, _END, np.int64)  # first node of every position
    following = np.full(len(head), _END, np.int64)  # next node of the same position
    listed = np.zeros(len(head), np.bool_)
    pool, used, costs, best = np.zeros((1 << 12, 7), np.int64), 0, 0, _END

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
            node = first[r] if r < last else _NOTHING
            while node != _END:
                # What is behind the stage: devices, stages, head group, the first label; then the node after this.
                behind, q, h, start = 0, 0, 0, _NOTHING
                if node == _NOTHING:
                    node = _END
                else:
                    h, q = node % heads, node // heads % slots + 1
                    behind, start = node // heads // slots % count, head[node]
                    node = following[node]
                slot = q if by_stages else 0
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
                        known_f[g, slot], known_b[g, slot] = stage_cost(stages, groups[g], i, j, kept, work)
                        costs += 1
                    ef, eb = known_f[g, slot], known_b[g, slot]
                    if ef < 0 or rounds * (micro_batches * (ef + eb) + before[rest, i]) >= upper:
                        continue
                    c = comm[level[g, h] if heads > 1 else level[0, 0], j] if start >= 0 else 0
                    target = _END  # complete pipelines have no node
                    if p > 0:
                        depth = q if by_stages else 0
                        target = ((p * count + targets[k]) * slots + depth) * heads + (g if heads > 1 else 0)
                    front = Front(p, g, ef, eb, known_ta[g], known_move[g], c, before[rest, i], before_f[rest, i])
                    pool, used, upper, best = prepended(
                        pool, used, head, start, target, front, micro_batches, rounds, upper, best
                    )
                    if target != _END and not listed[target] and head[target] != _END:
                        listed[target] = True
                        following[target], first[p] = first[p], target
    return upper, stages_of(pool, best, cuts), np.array([used, costs, int(by_stages)], np.int64)


def compiled(low: Lowered, everyone: bool) -> Engine:
    """The search as machine code."""
    stages = Stages(low.forward, low.backward, low.both, low.state, low.activation, low.room, low.groups, low.batch)
    links = Links(low.compatible, low.comm, low.level, low.reduce_num, low.reduce_den, low.weights, low.move)
    before, before_f = front_sums(low, low.both), front_sums(low, low.forward)
    round_ = Round(before, before_f, low.micro_batches, low.rounds, everyone)

    def engine(cuts: list[int], upper: int) -> tuple[int, Path, dict[str, int]]:
        value, path, counts = search(stages, links, round_, np.array(cuts, np.int64), upper)
        names = ("labels", "stage_costs", "memory_binds")
        return int(value), [tuple(row) for row in path.tolist()], dict(zip(names, counts.tolist(), strict=True))

    return engine
