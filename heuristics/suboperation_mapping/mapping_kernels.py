"""Compiled loops of the three procedures of MTrain-Mapping (Alg. 2); the interpretation is pinned in ``mtrain``."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mapgap.kernels import Integers, kernel
from mapgap.problems.suboperation_mapping.shared.timing import Storage, Timing, operation_ticks, run_timetable

UNMAPPED = -1


class Schedule(NamedTuple):
    """What the procedures fill and change; ``n`` operations.

    Attributes
    ----------
    location : (n,)
        Accelerator of every operation, or ``UNMAPPED``.
    sequence : (n,)
        Operations in the order of mapping, which is the order of execution.
    start, end : (n,)
    """

    location: Integers
    sequence: Integers
    start: Integers
    end: Integers


@kernel("b1(Storage,i8[::1],i8[::1],i8[::1])", Storage)
def fits(storage: Storage, location: Integers, start: Integers, end: Integers) -> bool:
    """Whether a partial schedule respects the DRAM budget.

    Operations with location -1 are not mapped yet: they hold nothing, and a tensor whose WU is not mapped stays
    stored for ever. A complete schedule that fits is therefore feasible.
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
        if location[owners[i]] >= 0:
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
                held = location[release] < 0 or moment < end[release]
                if location[owner] == a and start[owner] <= moment and held:
                    stored += units[j]
            if stored > storage.capacity[a]:
                return False
    return True


@kernel("b1(Storage)", Storage)
def roomy(storage: Storage) -> bool:
    """Whether every accelerator could hold everything, so that no schedule needs a check."""
    return bool(storage.weight_units.sum() + storage.item_units.sum() <= storage.capacity.min())


@kernel("i8(Timing,i8[::1],i8[::1])", Timing)
def ready_set(timing: Timing, location: Integers, ready: Integers) -> int:
    """Step 2: write the unmapped operations without unmapped predecessors to ``ready``, by number; their count."""
    count = 0
    for o in range(len(location)):
        if location[o] >= 0:
            continue
        blocked = False
        for e in range(timing.pred_ptr[o], timing.pred_ptr[o + 1]):
            blocked = blocked or location[timing.pred[e]] < 0
        if not blocked:
            ready[count] = o
            count += 1
    return count


@kernel("i8(Timing,i8,i8,i8[::1])", Timing)
def earliest(timing: Timing, o: int, moment: int, end: Integers) -> int:
    """The first moment from ``moment`` on at which all predecessors of ``o`` have ended."""
    for e in range(timing.pred_ptr[o], timing.pred_ptr[o + 1]):
        moment = max(moment, end[timing.pred[e]])
    return moment


@kernel("b1(Timing,Storage,b1,i8,i8[::1],i8,i8[::1],i8[::1],Schedule)", Timing, Storage, Schedule)
def choose(
    timing: Timing,
    storage: Storage,
    free_of_checks: bool,
    tie: int,
    block: Integers,
    makespan: int,
    available: Integers,
    best: Integers,
    schedule: Schedule,
) -> bool:
    """Steps 3-6: write the best assignment of a block to ``best``; False if none fits the DRAM.

    A depth-first walk enumerates the assignments in lexicographic order. A prefix whose key already reaches the best
    key is cut, which cannot change the result because both parts of the key only grow.
    """
    location, start, end = schedule.location, schedule.start, schedule.end
    count, k = timing.compute.shape[1], len(block)
    choice = np.full(k, -1, np.int64)
    span, second = np.zeros(k + 1, np.int64), np.zeros(k + 1, np.int64)  # key of each prefix
    free = np.zeros((k + 1, count), np.int64)
    span[0], free[0] = makespan, available
    found, depth = False, 0
    best_span, best_second = np.int64(0), np.int64(0)
    while depth >= 0:
        choice[depth] += 1
        a, o = choice[depth], block[depth]
        if a == count:
            location[o], choice[depth] = UNMAPPED, -1
            depth -= 1
            continue
        moment = earliest(timing, o, free[depth, a], end)
        ticks = operation_ticks(timing, o, a, location)
        location[o], start[o], end[o] = a, moment, moment + ticks
        span[depth + 1] = max(span[depth], end[o])  # step 5
        second[depth + 1] = second[depth] + (ticks if tie == 0 else end[o] if tie == 1 else 0)
        if found and (
            span[depth + 1] > best_span or (span[depth + 1] == best_span and second[depth + 1] >= best_second)
        ):
            continue
        if depth + 1 < k:
            free[depth + 1] = free[depth]
            free[depth + 1, a] = end[o]
            depth += 1
        elif free_of_checks or fits(storage, location, start, end):  # step 4
            found, best_span, best_second = True, span[k], second[k]  # step 6
            best[:k] = choice
    return found


@kernel("i8(Timing,Storage,i8,i8,Schedule)", Timing, Storage, Schedule)
def greedy(timing: Timing, storage: Storage, cap: int, tie: int, schedule: Schedule) -> int:
    """Procedure (1), steps 1-9: fill the schedule; return the number of operations mapped.

    Fewer than n operations are mapped when no candidate of a block fits the DRAM.
    """
    location, sequence, start, end = schedule
    n, count = timing.compute.shape
    free_of_checks = roomy(storage)
    location[:] = UNMAPPED
    size = 1  # operations whose assignments are enumerated together
    while size < n and float(count) ** (size + 1) <= cap:
        size += 1
    ready, best, free = np.empty(n, np.int64), np.empty(n, np.int64), np.zeros(count, np.int64)
    mapped = 0
    while mapped < n:
        waiting = ready_set(timing, location, ready)
        for first in range(0, waiting, size):
            block = ready[first : min(first + size, waiting)]
            makespan = end[sequence[:mapped]].max() if mapped else 0
            if not choose(timing, storage, free_of_checks, tie, block, makespan, free, best, schedule):
                return mapped
            for i in range(len(block)):  # steps 8-9
                o, a = block[i], best[i]
                location[o], start[o] = a, earliest(timing, o, free[a], end)
                end[o] = start[o] + operation_ticks(timing, o, a, location)
                free[a] = end[o]
                sequence[mapped] = o
                mapped += 1
    return mapped


@kernel("b1(Timing,Storage,b1,i8,i8,Schedule,i8[::1],i8[::1])", Timing, Storage, Schedule)
def attempt(
    timing: Timing,
    storage: Storage,
    free_of_checks: bool,
    o: int,
    target: int,
    schedule: Schedule,
    trial_start: Integers,
    trial_end: Integers,
) -> bool:
    """Steps 15-18, 24-26: move ``o`` to ``target`` if that is strictly faster and fits the DRAM."""
    location, sequence, start, end = schedule
    source, makespan = location[o], end.max()
    location[o] = target
    run_timetable(timing, location, sequence, trial_start, trial_end)
    if trial_end.max() < makespan and (free_of_checks or fits(storage, location, trial_start, trial_end)):
        start[:] = trial_start
        end[:] = trial_end
        return True
    location[o] = source
    return False


@kernel("i8(Timing,Storage,i8[::1],Schedule)", Timing, Storage, Schedule)
def balance(timing: Timing, storage: Storage, balanced: Integers, schedule: Schedule) -> int:
    """Procedure (2), steps 12-20: move operations to their accelerator in ``balanced``; return the accepted moves."""
    location, sequence, start, end = schedule
    free_of_checks = roomy(storage)
    trial_start, trial_end = np.empty_like(start), np.empty_like(end)
    accepted = 0
    while True:
        before = accepted
        for position in range(len(sequence)):  # step 13
            o = sequence[position]
            if location[o] != balanced[o] and attempt(
                timing, storage, free_of_checks, o, balanced[o], schedule, trial_start, trial_end
            ):
                accepted += 1
        if accepted == before:  # step 20
            return accepted


@kernel("i8(Timing,Storage,Schedule)", Timing, Storage, Schedule)
def locality(timing: Timing, storage: Storage, schedule: Schedule) -> int:
    """Procedure (3), steps 21-28: move operations to accelerators of neighbours; return the accepted moves."""
    location, sequence, start, end = schedule
    n, count = timing.compute.shape
    free_of_checks = roomy(storage)
    trial_start, trial_end = np.empty_like(start), np.empty_like(end)
    near = np.zeros((n, n), np.bool_)  # every data transfer of Sec. V-B, in both directions
    for o in range(n):
        for e in range(timing.pred_ptr[o], timing.pred_ptr[o + 1]):
            near[o, timing.pred[e]] = near[timing.pred[e], o] = True
        for h in range(timing.holder_ptr[o], timing.holder_ptr[o + 1]):
            near[o, timing.holder[h]] = near[timing.holder[h], o] = True
    beside = np.zeros(count, np.bool_)
    accepted = 0
    while True:
        before = accepted
        for position in range(n):  # step 22
            o = sequence[position]
            beside[:] = False
            for p in range(n):
                if near[o, p]:
                    beside[location[p]] = True
            for target in range(count):  # step 23
                wanted = beside[target] and target != location[o]
                if wanted and attempt(timing, storage, free_of_checks, o, target, schedule, trial_start, trial_end):
                    accepted += 1
        if accepted == before:  # step 28
            return accepted
