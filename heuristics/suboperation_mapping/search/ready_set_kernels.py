"""The best assignment of a ready set (Alg. 2, steps 3-6) by branch and bound, as plain enumeration would find it.

The operations of a ready set do not follow each other, so where each of them lies decides neither when another one is
ready nor how long it takes. An assignment has a key of two of the parts below, and the least key wins; of equal keys
the lexicographically first assignment.

``work``
    Sum of the durations, transfers included.
``span``
    Makespan of the partial schedule.
``finish``
    Sum of the ends.

A depth-first walk visits the assignments in lexicographic order. A prefix is cut where every completion has a key
that is not less than one already found, so nothing is cut that enumeration would choose:

(1) Each part of the key only grows: ``work`` and ``finish`` by at least what each operation left adds where it adds
    least, ``span`` to at least the end of each operation left where it ends first.
(2) For weights ``w_a >= 0`` that add up to one no span is less than ``sum_a w_a free_a + sum_i min_a w_a ticks_ia``,
    the weighted mean of the loads. Weights: equal, and by the speeds of the accelerators.
(3) Prefixes that leave the accelerators free at the same moments have the same completions; so have those that differ
    by accelerators that are equal for all operations left. After the first of them the walk enters only one that
    has less work or an earlier sum of ends, where the key counts them.
(4) With a binding DRAM, prefixes that exceed it whatever follows are cut, and (3) is not used, because what is stored
    depends on the whole assignment.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mapgap.kernels import Flag, Flags, Integer, Integers, Integers2, kernel
from mapgap.problems.suboperation_mapping.lowered.timing import Storage, Timing, operation_ticks

UNMAPPED = -1
WORK, SPAN, FINISH, NONE = 0, 1, 2, 3  #: parts of a key
SLOTS = 1 << 14  #: prefixes that (3) remembers; a full table takes no more, which costs time only
PROBES = 8  #: slots that a prefix may lie in
WEIGHTS = 1 << 20  #: sum of the integer weights of (2)
ENDLESS = 1 << 62


class Rule(NamedTuple):
    """What an assignment is chosen by.

    Attributes
    ----------
    first, second : int
        The parts of the key.
    limit : int
        Prefixes that are looked at before the best assignment so far is taken.
    checked : bool
        Whether the DRAM can bind.
    """

    first: Integer
    second: Integer
    limit: Integer
    checked: Flag


class Memory(NamedTuple):
    """Prefixes that have been entered; a slot counts if its stamp is that of the search.

    Attributes
    ----------
    stamp, work, finish : (SLOTS,)
    prefix : (SLOTS, N + 1)
        Depth, and when each accelerator is free.
    search : (1,)
        The stamp of the present search.
    """

    stamp: Integers
    work: Integers
    finish: Integers
    prefix: Integers2
    search: Integers


class Choice(NamedTuple):
    """The data of one search over ``k`` operations and ``N`` accelerators, and the walk.

    Attributes
    ----------
    ticks, ready : (k, N), (k,)
    equal : (k + 1, N)
        The first accelerator that takes as long for every operation from ``i`` on.
    left : (k + 1,)
        Least work of the operations from ``i`` on.
    soonest : (k + 1,)
        The first moment at which one of them is ready.
    weight : (2, N)
    weighted : (2, k + 1)
        Least weighted work of the operations from ``i`` on.
    free : (k + 1, N)
        When the accelerators are free at each depth.
    key : (k + 1, 3)
        Work, span and finish of each prefix.
    canonical : (N,)
    """

    ticks: Integers2
    ready: Integers
    equal: Integers2
    left: Integers
    soonest: Integers
    weight: Integers2
    weighted: Integers2
    free: Integers2
    key: Integers2
    canonical: Integers


@kernel("b1(Storage,i8[::1],i8[::1],i8[::1],b1[::1])", Storage)
def could_fit(storage: Storage, location: Integers, start: Integers, end: Integers, pending: Flags) -> bool:
    """Whether a partial schedule respects the DRAM budget, if the pending operations released what they can at once.

    Other operations with location -1 hold nothing, and a tensor whose WU is among them stays stored for ever. Where
    nothing is pending, a complete schedule that fits is feasible.
    """
    owners, releases, units = storage.item_owner, storage.item_release, storage.item_units
    count, items = len(storage.capacity), len(owners)
    present = np.zeros((count, len(storage.weight_units)), np.int64)
    base = np.zeros(count, np.int64)
    for o in range(len(storage.layer)):
        a = location[o]
        if a >= 0 and present[a, storage.layer[o]] == 0:
            present[a, storage.layer[o]] = 1
            base[a] += storage.weight_units[storage.layer[o]]
    upper = base.copy()
    for i in range(items):
        if location[owners[i]] >= 0 and not pending[releases[i]]:
            upper[location[owners[i]]] += units[i]
    for a in range(count):
        if base[a] > storage.capacity[a]:
            return False
        if upper[a] <= storage.capacity[a]:  # fits even if nothing is ever released
            continue
        for i in range(items):
            if location[owners[i]] != a:
                continue
            moment, stored = start[owners[i]], base[a]
            for j in range(items):
                owner, release = owners[j], releases[j]
                held = not pending[release] and (location[release] < 0 or moment < end[release])
                if location[owner] == a and start[owner] <= moment and held:
                    stored += units[j]
            if stored > storage.capacity[a]:
                return False
    return True


@kernel("i8(Timing,i8,i8,i8[::1])", Timing)
def earliest(timing: Timing, o: int, moment: int, end: Integers) -> int:
    """The first moment from ``moment`` on at which all predecessors of ``o`` have ended."""
    for e in range(timing.pred_ptr[o], timing.pred_ptr[o + 1]):
        moment = max(moment, end[timing.pred[e]])
    return moment


@kernel("Choice(Timing,i8[::1],i8,i8[::1],i8[::1],i8[::1])", Timing, Choice)
def prepare(
    timing: Timing, block: Integers, makespan: int, available: Integers, location: Integers, end: Integers
) -> Choice:
    """Everything about the operations ``block`` that does not depend on the assignment."""
    k, count = len(block), timing.compute.shape[1]
    choice = Choice(
        np.empty((k, count), np.int64),
        np.empty(k, np.int64),
        np.zeros((k + 1, count), np.int64),
        np.zeros(k + 1, np.int64),
        np.zeros(k + 1, np.int64),
        np.empty((2, count), np.int64),
        np.zeros((2, k + 1), np.int64),
        np.empty((k + 1, count), np.int64),
        np.zeros((k + 1, 3), np.int64),
        np.empty(count, np.int64),
    )
    choice.free[0] = available
    choice.key[0, SPAN] = makespan
    pace = np.zeros(count)
    for i in range(k):
        choice.ready[i] = earliest(timing, block[i], 0, end)
        for a in range(count):
            choice.ticks[i, a] = operation_ticks(timing, block[i], a, location)
            pace[a] += choice.ticks[i, a]
    speed = 0.0
    for a in range(count):
        speed += 1.0 / max(1.0, pace[a])
    for a in range(count):
        choice.weight[0, a] = WEIGHTS // count
        choice.weight[1, a] = int(WEIGHTS / max(1.0, pace[a]) / speed)
    choice.soonest[k] = ENDLESS
    for i in range(k - 1, -1, -1):
        choice.left[i] = choice.left[i + 1] + choice.ticks[i].min()
        choice.soonest[i] = min(choice.soonest[i + 1], choice.ready[i])
        for w in range(2):
            least = choice.weight[w, 0] * choice.ticks[i, 0]
            for a in range(1, count):
                least = min(least, choice.weight[w, a] * choice.ticks[i, a])
            choice.weighted[w, i] = choice.weighted[w, i + 1] + least
    for i in range(k + 1):
        for a in range(count):
            choice.equal[i, a] = a
            for b in range(a - 1, -1, -1):
                same = True
                for j in range(i, k):
                    if choice.ticks[j, a] != choice.ticks[j, b]:
                        same = False
                        break
                if same:
                    choice.equal[i, a] = b
    return choice


@kernel("void(Choice,i8,i8)", Choice)
def place(choice: Choice, i: int, a: int) -> None:
    """Extend the prefix of the first ``i`` operations by operation ``i`` on ``a``."""
    free, key = choice.free, choice.key
    for b in range(free.shape[1]):
        free[i + 1, b] = free[i, b]
    finish = max(free[i, a], choice.ready[i]) + choice.ticks[i, a]
    free[i + 1, a] = finish
    key[i + 1, WORK] = key[i, WORK] + choice.ticks[i, a]
    key[i + 1, SPAN] = max(key[i, SPAN], finish)
    key[i + 1, FINISH] = key[i, FINISH] + finish


@kernel("i8(Choice,i8,i8)", Choice)
def least(choice: Choice, depth: int, part: int) -> int:
    """A part of the key that no completion of the prefix goes below: (1) and (2)."""
    if part == NONE:
        return 0
    value: int = choice.key[depth, part]
    k, count = choice.ticks.shape
    if part == WORK:
        return value + int(choice.left[depth])
    for i in range(depth, k):
        soonest = ENDLESS
        for a in range(count):
            soonest = min(soonest, max(choice.free[depth, a], choice.ready[i]) + choice.ticks[i, a])
        value = value + soonest if part == FINISH else max(value, soonest)
    if part == SPAN and depth < k:
        for w in range(2):
            load, total = choice.weighted[w, depth], 0
            for a in range(count):
                load += choice.weight[w, a] * max(choice.free[depth, a], choice.soonest[depth])
                total += choice.weight[w, a]
            value = max(value, -(-load // max(1, total)))
    return value


@kernel("void(Choice,i8)", Choice)
def sort_equals(choice: Choice, depth: int) -> None:
    """Write to ``canonical`` when the accelerators are free, sorted among those that are equal from here on."""
    canonical, equal = choice.canonical, choice.equal[depth]
    for a in range(choice.ticks.shape[1]):
        canonical[a] = max(choice.free[depth, a], choice.soonest[depth])
        here = a
        for b in range(a - 1, -1, -1):
            if equal[b] == equal[a]:
                if canonical[b] <= canonical[here]:
                    break
                canonical[b], canonical[here] = canonical[here], canonical[b]
                here = b


@kernel("b1(Choice,Rule,Memory,i8)", Choice, Rule, Memory)
def entered(choice: Choice, rule: Rule, memory: Memory, depth: int) -> bool:
    """(3): whether a prefix with the same completions, and no worse, was entered before; else remember this one."""
    count, canonical = choice.ticks.shape[1], choice.canonical
    sort_equals(choice, depth)
    # The span of a prefix follows from what is compared: it is the latest free moment, or that of all prefixes.
    work = choice.key[depth, WORK] if rule.first == WORK or rule.second == WORK else 0
    finish = choice.key[depth, FINISH] if rule.second == FINISH else 0
    mark = np.uint64(depth + 1)
    for a in range(count):
        mark = (mark ^ np.uint64(canonical[a])) * np.uint64(0x9E3779B97F4A7C15)
        mark ^= mark >> np.uint64(29)
    for probe in range(PROBES):
        slot = np.int64((mark + np.uint64(probe)) & np.uint64(SLOTS - 1))
        if memory.stamp[slot] != memory.search[0]:
            memory.stamp[slot], memory.work[slot], memory.finish[slot] = memory.search[0], work, finish
            memory.prefix[slot, count] = depth
            memory.prefix[slot, :count] = canonical
            return False
        same = memory.prefix[slot, count] == depth
        for a in range(count):
            same = same and memory.prefix[slot, a] == canonical[a]
        if same and memory.work[slot] <= work and memory.finish[slot] <= finish:
            return True
    return False


@kernel("void(Choice,Rule,i8[::1])", Choice, Rule)
def quick(choice: Choice, rule: Rule, best: Integers) -> None:
    """A good assignment: each operation where it is done soonest, or with the least work."""
    k, count = choice.ticks.shape
    for i in range(k):
        chosen, value, tie = 0, ENDLESS, ENDLESS
        for a in range(count):
            ticks = choice.ticks[i, a]
            finish = max(choice.free[i, a], choice.ready[i]) + ticks
            main, other = (ticks, finish) if rule.first == WORK else (finish, ticks)
            if main < value or (main == value and other < tie):
                chosen, value, tie = a, main, other
        best[i] = chosen
        place(choice, i, chosen)


@kernel(
    "i8(Timing,Storage,Rule,Memory,i8[::1],i8,i8[::1],i8[::1],i8[::1],i8[::1],i8[::1])", Timing, Storage, Rule, Memory
)
def choose(
    timing: Timing,
    storage: Storage,
    rule: Rule,
    memory: Memory,
    block: Integers,
    makespan: int,
    available: Integers,
    location: Integers,
    start: Integers,
    end: Integers,
    best: Integers,
) -> int:
    """Steps 3-6: write the best assignment of a block to ``best``.

    Returns 1 if it is the best of all, 2 if the limit came first, 0 if no assignment fits the DRAM, and -1 if none was
    found that fits before the limit.
    """
    k, count = len(block), timing.compute.shape[1]
    choice = prepare(timing, block, makespan, available, location, end)
    memory.search[0] += 1
    pending = np.zeros(len(location), np.bool_)
    top_first, top_second, found = ENDLESS, ENDLESS, False  # a prefix must stay below this key
    quick(choice, rule, best)
    if not rule.checked:
        top_first = choice.key[k, rule.first]
        top_second = choice.key[k, rule.second] + 1 if rule.second != NONE else 1
        found = True
    for i in range(k):
        pending[block[i]] = True
    walk = np.full(k, -1, np.int64)
    depth, nodes = 0, 0
    while depth >= 0:
        walk[depth] += 1
        a, o = walk[depth], block[depth]
        if a == count:
            walk[depth], location[o], pending[o] = -1, UNMAPPED, True
            depth -= 1
            continue
        nodes += 1
        if nodes > rule.limit:
            for i in range(k):
                location[block[i]] = UNMAPPED
            return 2 if found else -1
        place(choice, depth, a)
        first = least(choice, depth + 1, rule.first)
        if first > top_first or (first == top_first and least(choice, depth + 1, rule.second) >= top_second):
            continue
        if rule.checked:  # step 4
            location[o], end[o], pending[o] = a, choice.free[depth + 1, a], False
            start[o] = end[o] - choice.ticks[depth, a]
            if not could_fit(storage, location, start, end, pending):
                continue
        if depth + 1 < k:
            if rule.checked or not entered(choice, rule, memory, depth + 1):
                depth += 1
        else:  # step 6
            found, top_first = True, choice.key[k, rule.first]
            top_second = choice.key[k, rule.second] if rule.second != NONE else 0
            best[:k] = walk
    return 1 if found else 0
