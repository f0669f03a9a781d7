"""Compiled loops of the three procedures of MTrain-Mapping (Alg. 2); the interpretation is pinned in ``mtrain``."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mapgap.heuristics.suboperation_mapping.search.incremental import (
    Change,
    Relatives,
    State,
    forget,
    no_change,
    relocate,
    stand,
)
from mapgap.heuristics.suboperation_mapping.search.ready_set_kernels import (
    SLOTS,
    UNMAPPED,
    Memory,
    Rule,
    choose,
    could_fit,
    earliest,
)
from mapgap.heuristics.suboperation_mapping.search.shortening import (
    Visit,
    arrive,
    begin,
    leave,
    moved,
    shortens,
    visits,
)
from mapgap.kernels import Flags, Integers, kernel
from mapgap.problems.suboperation_mapping.lowered.timing import (
    ENDLESS,
    LINKS,
    Storage,
    Timing,
    operation_ticks,
    roomy,
    run_queued,
)


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
    return could_fit(storage, location, start, end, np.zeros(len(location), np.bool_))


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


@kernel("i8(Timing,Storage,i8,i8,i8,Schedule)", Timing, Storage, Schedule)
def greedy(timing: Timing, storage: Storage, first: int, second: int, limit: int, schedule: Schedule) -> int:
    """Procedure (1), steps 1-9: fill the schedule; return the number of ready sets whose search met its limit.

    The number is -1 when no candidate of a set fits the DRAM, and -2 when none was found within the limit.
    """
    location, sequence, start, end = schedule
    n, count = timing.compute.shape
    rule = Rule(first, second, limit, not roomy(storage))
    memory = Memory(
        np.zeros(SLOTS, np.int64),
        np.empty(SLOTS, np.int64),
        np.empty(SLOTS, np.int64),
        np.empty((SLOTS, count + 1), np.int64),
        np.zeros(1, np.int64),
    )
    location[:] = UNMAPPED
    ready, best, free = np.empty(n, np.int64), np.empty(n, np.int64), np.zeros(count, np.int64)
    mapped, makespan, limited = 0, 0, 0
    while mapped < n:
        waiting = ready_set(timing, location, ready)
        found = choose(timing, storage, rule, memory, ready[:waiting], makespan, free, location, start, end, best)
        if found <= 0:
            return found - 1
        limited += found - 1
        for i in range(waiting):  # steps 8-9
            o, a = ready[i], best[i]
            location[o], start[o] = a, earliest(timing, o, free[a], end)
            end[o] = start[o] + operation_ticks(timing, o, a, location)
            free[a] = end[o]
            makespan = max(makespan, end[o])
            sequence[mapped] = o
            mapped += 1
    return limited


@kernel("b1(Timing,Storage,Relatives,State,Change,Visit,i8,i8)", Timing, Storage, Relatives, State, Change, Visit)
def move_if_fitting(
    timing: Timing,
    storage: Storage,
    relatives: Relatives,
    state: State,
    change: Change,
    visit: Visit,
    o: int,
    target: int,
) -> bool:
    """Move ``o`` to ``target`` if the ends under trial fit the DRAM."""
    source = state.location[o]
    relocate(timing, relatives, state, change, o, target, 0)
    fitting = roomy(storage) or fits(storage, state.location, visit.trial - state.duration, visit.trial)
    if fitting:
        moved(timing, relatives, state, visit)
    else:
        relocate(timing, relatives, state, change, o, source, 0)
        visit.trial[:] = state.end
    forget(change)
    return fitting


@kernel(
    "b1(Timing,Storage,Relatives,State,Change,Visit,i8,i8)",
    *(Timing, Storage, Relatives, State, Change, Visit),
    makes_arrays=False,
)
def attempt(
    timing: Timing,
    storage: Storage,
    relatives: Relatives,
    state: State,
    change: Change,
    visit: Visit,
    o: int,
    target: int,
) -> bool:
    """Steps 15-18, 24-26: move ``o`` to ``target`` if that is strictly faster and fits the DRAM."""
    if shortens(timing, relatives, state, visit, o, target):
        return move_if_fitting(timing, storage, relatives, state, change, visit, o, target)
    return False


@kernel("void(State,Schedule)", State, Schedule)
def write_back(state: State, schedule: Schedule) -> None:
    """Write a state back to the schedule."""
    schedule.location[:] = state.location
    schedule.end[:] = state.end
    schedule.start[:] = state.end - state.duration


@kernel("void(Timing,Relatives,i8[::1],i8,b1[::1])", Timing, Relatives, makes_arrays=False)
def neighbours(timing: Timing, relatives: Relatives, location: Integers, o: int, beside: Flags) -> None:
    """Mark the accelerators of all operations that ``o`` exchanges data with (Sec. V-B, in both directions)."""
    for a in range(len(beside)):
        beside[a] = False
    for e in range(timing.pred_ptr[o], timing.pred_ptr[o + 1]):
        beside[location[timing.pred[e]]] = True
    for e in range(relatives.succ_ptr[o], relatives.succ_ptr[o + 1]):
        beside[location[relatives.succ[e]]] = True
    for e in range(timing.holder_ptr[o], timing.holder_ptr[o + 1]):
        beside[location[timing.holder[e]]] = True
    for e in range(relatives.fed_ptr[o], relatives.fed_ptr[o + 1]):
        beside[location[relatives.fed[e]]] = True


@kernel("i8(Timing,Storage,Relatives,i8[::1],Schedule)", Timing, Storage, Relatives, Schedule)
def remap_queued(timing: Timing, storage: Storage, relatives: Relatives, balanced: Integers, schedule: Schedule) -> int:
    """Procedure (2), or (3) where nothing is ``balanced``, on shared links: every move is timed as a whole.

    Returns the accepted moves. The schedule becomes that on shared links.
    """
    location, sequence, start, end = schedule
    n, count = timing.compute.shape
    beside, everywhere = np.zeros(count, np.bool_), roomy(storage)
    began, ended = np.empty(n, np.int64), np.empty(n, np.int64)
    makespan = run_queued(timing, location, sequence, ENDLESS, start, end)
    accepted = idle = 0
    while idle < n:
        for position in range(n):
            o = sequence[position]
            if len(balanced) > 0:
                beside[:] = False
                beside[balanced[o]] = True
            else:
                neighbours(timing, relatives, location, o, beside)
            idle += 1
            for target in range(count):
                source = location[o]
                if not beside[target] or target == source:
                    continue
                location[o] = target
                found = run_queued(timing, location, sequence, makespan - 1, began, ended)
                if found >= 0 and (everywhere or fits(storage, location, began, ended)):
                    makespan, accepted, idle = found, accepted + 1, 0
                    start[:], end[:] = began, ended
                else:
                    location[o] = source
            if idle == n:
                break
    return accepted


@kernel("i8(Timing,Storage,Relatives,i8[::1],Schedule)", Timing, Storage, Relatives, Schedule)
def balance(timing: Timing, storage: Storage, relatives: Relatives, balanced: Integers, schedule: Schedule) -> int:
    """Procedure (2), steps 12-20: move operations to their accelerator in ``balanced``; return the accepted moves."""
    if timing.medium != LINKS:
        return int(remap_queued(timing, storage, relatives, balanced, schedule))
    n, count = timing.compute.shape
    state, change = stand(timing, relatives, schedule.location, schedule.sequence), no_change(n, count)
    visit = visits(timing, state)
    accepted = idle = 0
    sequence, location = state.sequence, state.location
    while idle < n:  # step 20: no operation moves any more, wherever the pass began
        begin(state, visit)
        for position in range(n):  # step 13
            o = sequence[position]
            arrive(state, visit, o)
            idle += 1
            target = balanced[o]
            if target != location[o] and attempt(timing, storage, relatives, state, change, visit, o, target):
                accepted += 1
                idle = 0
            leave(state, visit, o)
            if idle == n:
                break
    write_back(state, schedule)
    return accepted


@kernel("i8(Timing,Storage,Relatives,Schedule)", Timing, Storage, Relatives, Schedule)
def locality(timing: Timing, storage: Storage, relatives: Relatives, schedule: Schedule) -> int:
    """Procedure (3), steps 21-28: move operations to accelerators of neighbours; return the accepted moves."""
    if timing.medium != LINKS:
        return int(remap_queued(timing, storage, relatives, np.empty(0, np.int64), schedule))
    n, count = timing.compute.shape
    state, change = stand(timing, relatives, schedule.location, schedule.sequence), no_change(n, count)
    visit, beside = visits(timing, state), np.zeros(count, np.bool_)
    accepted = idle = 0
    sequence, location = state.sequence, state.location
    while idle < n:  # step 28: no operation moves any more, wherever the pass began
        begin(state, visit)
        for position in range(n):  # step 22
            o = sequence[position]
            arrive(state, visit, o)
            neighbours(timing, relatives, location, o, beside)
            idle += 1
            for target in range(count):  # step 23
                if not beside[target] or target == location[o]:
                    continue
                if attempt(timing, storage, relatives, state, change, visit, o, target):
                    accepted += 1
                    idle = 0
            leave(state, visit, o)
            if idle == n:
                break
    write_back(state, schedule)
    return accepted
