"""Compiled timing of a mapping, and the DRAM that it takes.

Searches need millions of timings; the evaluator is written to be read. The two share no code and are held equal by
property tests. A mapping is a pair ``(location, sequence)``: ``location[o]`` is the accelerator of operation ``o`` and
``sequence`` a permutation of the operations that respects all precedences; each accelerator executes its operations
in the order of the sequence, each as early as possible. Every plan without a cyclic wait can be written this way.
Where transfers share ports or a medium (rule 10), no timetable is earlier than that of links of their own.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mapgap.kernels import Integer, Integers, Integers2, Integers3, kernel

BITS = 62  #: so many accelerators fit one integer as a set
LINKS, PORTS, SHARED = 0, 1, 2  #: media
ENDLESS = 1 << 62
IDLE, WAITING, RUNNING = 0, 1, 2  #: what an accelerator does


class Timing(NamedTuple):
    """What durations and precedences of ``n`` operations on ``N`` accelerators depend on; ``E`` precedences.

    Attributes
    ----------
    compute : (n, N)
        Lat_Comp in ticks.
    pred_ptr, pred : (n + 1,), (E,)
        Predecessors of ``o`` are ``pred[pred_ptr[o]:pred_ptr[o + 1]]``.
    pred_ticks : (E, N, N)
        Ticks to move the tensor of a precedence from the predecessor's accelerator to the operation's.
    holder_ptr, holder : (n + 1,), (…,)
        For a WU the FP sub-operations of its layer (who receive dW); empty for others.
    gradient_ticks : (n, N, N)
        For a WU the ticks to move dW from its accelerator to a holder's; 0 for others.
    medium : int
        What transfers need for themselves (rule 10): nothing (``LINKS``), ``PORTS``, or all the same (``SHARED``).
    """

    compute: Integers2
    pred_ptr: Integers
    pred: Integers
    pred_ticks: Integers3
    holder_ptr: Integers
    holder: Integers
    gradient_ticks: Integers3
    medium: Integer = LINKS


class Storage(NamedTuple):
    """What the DRAM must hold; ``I`` stored tensors.

    Attributes
    ----------
    item_owner, item_release, item_units : (I,)
        Stored tensors: on the owner's accelerator from the owner's start to the end of the releasing WU.
    layer : (n,)
        Layer index of each operation.
    weight_units : (layers,)
        Memory units of weights and gradients, on every accelerator where the layer has an operation.
    capacity : (N,)
    """

    item_owner: Integers
    item_release: Integers
    item_units: Integers
    layer: Integers
    weight_units: Integers
    capacity: Integers


class Lanes(NamedTuple):
    """What ``N`` accelerators do at a moment, each one step of one operation after the other (rule 10).

    Attributes
    ----------
    state, since : (N,)
        ``IDLE``, ``WAITING`` or ``RUNNING``; since when it could go on, or until when it runs.
    step, steps : (N,)
        The step of its operation, and how many that has.
    partner, ticks : (N, steps)
        Of each step: where what it moves comes from, or goes to; -1 for the computation.
    sends : (N,)
        The first step that sends.
    queue : (N,)
        Accelerators that wait, in the order in which they may begin.
    """

    state: Integers
    since: Integers
    step: Integers
    steps: Integers
    partner: Integers2
    ticks: Integers2
    sends: Integers
    queue: Integers


@kernel("void(Timing,Lanes,i8[::1],i8)", Timing, Lanes)
def enter(timing: Timing, lanes: Lanes, location: Integers, o: int) -> None:
    """Write the steps of an operation: it receives by sender, the longest first, computes, and sends dW by receiver."""
    a, k = location[o], 0
    partner, ticks = lanes.partner[a], lanes.ticks[a]
    for e in range(timing.pred_ptr[o], timing.pred_ptr[o + 1]):
        sender = location[timing.pred[e]]
        lasts = timing.pred_ticks[e, sender, a]
        if lasts > 0:
            q = k
            while q > 0 and (partner[q - 1] > sender or (partner[q - 1] == sender and ticks[q - 1] < lasts)):
                partner[q], ticks[q] = partner[q - 1], ticks[q - 1]
                q -= 1
            partner[q], ticks[q] = sender, lasts
            k += 1
    partner[k], ticks[k] = -1, timing.compute[o, a]
    k += 1
    lanes.sends[a] = k
    first, last = timing.holder_ptr[o], timing.holder_ptr[o + 1]
    for target in range(timing.compute.shape[1] if last > first else 0):
        if timing.gradient_ticks[o, a, target] > 0:
            for h in range(first, last):
                if location[timing.holder[h]] == target:
                    partner[k], ticks[k] = target, timing.gradient_ticks[o, a, target]
                    k += 1
                    break
    lanes.step[a], lanes.steps[a] = 0, k


@kernel("i8(Timing,i8[::1],i8[::1],i8,i8[::1],i8[::1])", Timing)
def run_queued(
    timing: Timing, location: Integers, sequence: Integers, limit: int, start: Integers, end: Integers
) -> int:
    """The same where transfers wait for ports or the medium (rule 10), from one end of anything to the next.

    Returns the makespan, or -1 as soon as it exceeds the limit.
    """
    n, count = timing.compute.shape
    after = np.zeros(count + 1, np.int64)  # operations of an accelerator are at after[a] to after[a + 1]
    for o in range(n):
        after[location[o] + 1] += 1
        end[o] = -1
    most = 0
    for o in range(n):
        most = max(most, timing.pred_ptr[o + 1] - timing.pred_ptr[o])
    for a in range(count):
        after[a + 1] += after[a]
    head, order = after[:count].copy(), np.empty(n, np.int64)
    for o in sequence:
        order[head[location[o]]] = o
        head[location[o]] += 1
    head[:] = after[:count]
    lanes = Lanes(
        np.full(count, IDLE, np.int64),
        np.zeros(count, np.int64),
        np.zeros(count, np.int64),
        np.zeros(count, np.int64),
        np.empty((count, most + 1 + count), np.int64),
        np.empty((count, most + 1 + count), np.int64),
        np.zeros(count, np.int64),
        np.empty(count, np.int64),
    )
    state, since, queue, partner = lanes.state, lanes.since, lanes.queue, lanes.partner
    outward, inward = np.zeros(count, np.bool_), np.zeros(count, np.bool_)  # ports that are taken; the medium is one
    waiting, now, over = 0, 0, 0
    while True:
        for a in range(count):
            if state[a] == IDLE and head[a] < after[a + 1]:
                o, ready = order[head[a]], True
                for e in range(timing.pred_ptr[o], timing.pred_ptr[o + 1]):
                    ready = ready and end[timing.pred[e]] >= 0
                if ready:
                    enter(timing, lanes, location, o)
                    start[o], state[a], since[a] = now, WAITING, now
                    queue[waiting] = a
                    waiting += 1
        for q in range(1, waiting):  # those that began to wait together, by number
            a, place = queue[q], q
            while place > 0 and since[queue[place - 1]] == since[a] and queue[place - 1] > a:
                queue[place] = queue[place - 1]
                place -= 1
            queue[place] = a
        left = 0
        for q in range(waiting):
            a = queue[q]
            other, sender, receiver = partner[a, lanes.step[a]], 0, 0
            if other >= 0 and timing.medium == PORTS:
                sender, receiver = (a, other) if lanes.step[a] >= lanes.sends[a] else (other, a)
            if other >= 0 and (outward[sender] or inward[receiver]):
                queue[left] = a
                left += 1
                continue
            if other >= 0:
                outward[sender], inward[receiver] = True, True
            state[a], since[a] = RUNNING, now + lanes.ticks[a, lanes.step[a]]
        waiting = left
        now = ENDLESS
        for a in range(count):
            if state[a] == RUNNING:
                now = min(now, since[a])
        if now == ENDLESS:
            return over
        for a in range(count):
            if state[a] == RUNNING and since[a] == now:
                step = lanes.step[a]
                other, sender, receiver = partner[a, step], 0, 0
                if other >= 0 and timing.medium == PORTS:
                    sender, receiver = (a, other) if step >= lanes.sends[a] else (other, a)
                if other >= 0:
                    outward[sender], inward[receiver] = False, False
                lanes.step[a] = step + 1
                if step + 1 < lanes.steps[a]:
                    state[a] = WAITING
                    queue[waiting] = a
                    waiting += 1
                else:
                    over = now
                    end[order[head[a]]] = now
                    head[a] += 1
                    state[a] = IDLE
        if now > limit:
            return -1


@kernel("void(Timing,i8[::1],i8[::1],i8[::1],i8[::1])", Timing)
def run_timetable(timing: Timing, location: Integers, sequence: Integers, start: Integers, end: Integers) -> None:
    """Fill ``start`` and ``end`` (n,) of every operation; the sequence must respect all precedences."""
    if timing.medium != LINKS:
        run_queued(timing, location, sequence, ENDLESS, start, end)
        return
    count = timing.compute.shape[1]
    free = np.zeros(count, np.int64)
    seen = np.zeros(count, np.int64)
    for position in range(len(sequence)):
        o = sequence[position]
        a = location[o]
        ready = free[a]
        duration = timing.compute[o, a]
        for e in range(timing.pred_ptr[o], timing.pred_ptr[o + 1]):
            p = timing.pred[e]
            if end[p] > ready:
                ready = end[p]
            duration += timing.pred_ticks[e, location[p], a]
        if timing.holder_ptr[o + 1] > timing.holder_ptr[o]:
            seen[:] = 0
            for h in range(timing.holder_ptr[o], timing.holder_ptr[o + 1]):
                target = location[timing.holder[h]]
                if seen[target] == 0:
                    seen[target] = 1
                    duration += timing.gradient_ticks[o, a, target]
        start[o] = ready
        end[o] = ready + duration
        free[a] = end[o]


@kernel("i8(Timing,i8,i8,i8[::1])", Timing, makes_arrays=False)
def operation_ticks(timing: Timing, o: int, a: int, location: Integers) -> int:
    """Lat_Comp + Lat_Comm of ``o`` on ``a``; its predecessors and the holders of its dW are mapped."""
    total: int = timing.compute[o, a]
    pred, pred_ticks = timing.pred, timing.pred_ticks
    for e in range(timing.pred_ptr[o], timing.pred_ptr[o + 1]):
        total += pred_ticks[e, location[pred[e]], a]
    first, last = timing.holder_ptr[o], timing.holder_ptr[o + 1]
    if last > first:  # dW once to every accelerator with an FP of the layer
        count, holder, gradient_ticks = timing.compute.shape[1], timing.holder, timing.gradient_ticks
        if count <= BITS:
            holders = 0
            for h in range(first, last):
                if location[holder[h]] >= 0:
                    holders |= 1 << location[holder[h]]
            for target in range(count):
                if holders >> target & 1:
                    total += gradient_ticks[o, a, target]
        else:
            for target in range(count):
                for h in range(first, last):
                    if location[holder[h]] == target:
                        total += gradient_ticks[o, a, target]
                        break
    return total


@kernel("b1(Storage)", Storage)
def roomy(storage: Storage) -> bool:
    """Whether every accelerator could hold everything, so that no schedule needs a check."""
    return bool(storage.weight_units.sum() + storage.item_units.sum() <= storage.capacity.min())


@kernel("i8(Storage,i8[::1],i8[::1],i8[::1])", Storage)
def run_memory_excess(storage: Storage, location: Integers, start: Integers, end: Integers) -> int:
    """Units above capacity at the peaks, summed over accelerators."""
    owner, release, units = storage.item_owner, storage.item_release, storage.item_units
    count = len(storage.capacity)
    present = np.zeros((count, len(storage.weight_units)), np.int64)
    base = np.zeros(count, np.int64)
    for o in range(len(storage.layer)):
        if present[location[o], storage.layer[o]] == 0:
            present[location[o], storage.layer[o]] = 1
            base[location[o]] += storage.weight_units[storage.layer[o]]
    upper = base.copy()
    for i in range(len(owner)):
        upper[location[owner[i]]] += units[i]
    excess = 0
    for a in range(count):
        if upper[a] <= storage.capacity[a]:
            continue
        peak = base[a]
        for i in range(len(owner)):
            if location[owner[i]] != a:
                continue
            moment = start[owner[i]]
            stored = base[a]
            for j in range(len(owner)):
                if location[owner[j]] == a and start[owner[j]] <= moment and moment < end[release[j]]:
                    stored += units[j]
            peak = max(peak, stored)
        excess += max(0, peak - storage.capacity[a])
    return excess
