"""Compiled timing of changes to a mapping: only what stands behind the first change is timed again.

A change is dropped as soon as one operation ends too late for it to be accepted.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mapgap.kernels import Integers, Integers2, kernel
from mapgap.problems.suboperation_mapping.lowered.timing import Timing, operation_ticks


class Relatives(NamedTuple):
    """The precedences the other way round; ``n`` operations.

    Attributes
    ----------
    succ_ptr, succ : (n + 1,), (E,)
        Operations that follow ``o`` are ``succ[succ_ptr[o]:succ_ptr[o + 1]]``, once per tensor that they read.
    tensor : (E,)
        Which precedence an entry of ``succ`` is.
    fed_ptr, fed : (n + 1,), (...)
        For an FP the WU that send dW to its accelerator.
    tail : (n,)
        Ticks that pass after ``o`` in every plan: the longest chain of operations that follow, each where it is
        fastest, without transfers.
    """

    succ_ptr: Integers
    succ: Integers
    tensor: Integers
    fed_ptr: Integers
    fed: Integers
    tail: Integers


class State(NamedTuple):
    """The solution that the walk stands at, with its timetable.

    Attributes
    ----------
    location, sequence, position, duration, end : (n,)
        ``position`` is the inverse of ``sequence``.
    free : (n + 1, N)
        When each accelerator is free before the operation at a position starts.
    latest : (n + 1,)
        The last end of all operations before a position.
    rest : (n,)
        Ticks that pass after an operation until the last one behind it has ended, if nobody waits for others.
    """

    location: Integers
    sequence: Integers
    position: Integers
    duration: Integers
    end: Integers
    free: Integers2
    latest: Integers
    rest: Integers


class Change(NamedTuple):
    """Operations that a move touches, and what they were before.

    Attributes
    ----------
    moved, moved_from : (n,)
    timed, timed_from : (n,)
        Operations of a new duration.
    less : (n,)
        Ticks that an operation takes less than before, if it does.
    stamp : (n,)
        Number of the step in which an operation was last entered in ``timed``.
    trial : (n,)
        Ends under trial.
    free : (N,)
        When accelerators are free, under trial.
    counts : (3,)
        Operations in ``moved`` and in ``timed``; the last position of one in ``moved``.
    """

    moved: Integers
    moved_from: Integers
    timed: Integers
    timed_from: Integers
    less: Integers
    stamp: Integers
    trial: Integers
    free: Integers
    counts: Integers


@kernel("void(i8[::1],i8[::1],i8[::1],i8[::1],i8[::1])")
def invert(pointer: Integers, member: Integers, inverse_pointer: Integers, inverse: Integers, place: Integers) -> None:
    """Write the inverse of a relation in rows: who has ``o`` as a member, in rising order, and at which place."""
    n = len(pointer) - 1
    inverse_pointer[:] = 0
    for m in member:
        inverse_pointer[m + 1] += 1
    for o in range(n):
        inverse_pointer[o + 1] += inverse_pointer[o]
    filled = inverse_pointer.copy()
    for o in range(n):
        for e in range(pointer[o], pointer[o + 1]):
            inverse[filled[member[e]]] = o
            place[filled[member[e]]] = e
            filled[member[e]] += 1


@kernel("Relatives(Timing,i8[::1])", Timing, Relatives)
def relate(timing: Timing, sequence: Integers) -> Relatives:
    """The relatives of all operations; the sequence respects the precedences."""
    n = len(sequence)
    found = Relatives(
        np.empty(n + 1, np.int64),
        np.empty(len(timing.pred), np.int64),
        np.empty(len(timing.pred), np.int64),
        np.empty(n + 1, np.int64),
        np.empty(len(timing.holder), np.int64),
        np.zeros(n, np.int64),
    )
    invert(timing.pred_ptr, timing.pred, found.succ_ptr, found.succ, found.tensor)
    invert(timing.holder_ptr, timing.holder, found.fed_ptr, found.fed, np.empty_like(timing.holder))
    for q in range(n - 1, -1, -1):
        o = sequence[q]
        chain = found.tail[o] + timing.compute[o].min()
        for e in range(timing.pred_ptr[o], timing.pred_ptr[o + 1]):
            found.tail[timing.pred[e]] = max(found.tail[timing.pred[e]], chain)
    return found


@kernel("void(Timing,Relatives,State)", Timing, Relatives, State)
def look_ahead(timing: Timing, relatives: Relatives, state: State) -> None:
    """Fill ``rest``."""
    n, count = timing.compute.shape
    sequence, location, duration, rest = state.sequence, state.location, state.duration, state.rest
    succ_ptr, succ = relatives.succ_ptr, relatives.succ
    following = np.zeros(count, np.int64)  # ticks from the start of the next operation of an accelerator
    for q in range(n - 1, -1, -1):
        o = sequence[q]
        a = location[o]
        longest = following[a]
        for s in range(succ_ptr[o], succ_ptr[o + 1]):
            p = succ[s]
            longest = max(longest, duration[p] + rest[p])
        rest[o] = longest
        following[a] = duration[o] + longest


@kernel("void(Timing,Relatives,State,i8)", Timing, Relatives, State, makes_arrays=False)
def settle(timing: Timing, relatives: Relatives, state: State, first: int) -> None:
    """Time everything from position ``first`` on and write what later moves start from."""
    location, sequence, position, duration, end, free, latest, _ = state
    n, count = timing.compute.shape
    pred_ptr, pred = timing.pred_ptr, timing.pred
    for q in range(first, n):
        o = sequence[q]
        position[o] = q
        a = location[o]
        ready = free[q, a]
        for e in range(pred_ptr[o], pred_ptr[o + 1]):
            ready = max(ready, end[pred[e]])
        end[o] = ready + duration[o]
        for b in range(count):
            free[q + 1, b] = free[q, b]
        free[q + 1, a] = end[o]
        latest[q + 1] = max(latest[q], end[o])
    look_ahead(timing, relatives, state)


@kernel("State(Timing,Relatives,i8[::1],i8[::1])", Timing, Relatives, State)
def stand(timing: Timing, relatives: Relatives, location: Integers, sequence: Integers) -> State:
    """The state of a mapping, of which it takes a copy."""
    n, count = timing.compute.shape
    state = State(
        location.copy(),
        sequence.copy(),
        np.empty(n, np.int64),
        np.empty(n, np.int64),
        np.empty(n, np.int64),
        np.zeros((n + 1, count), np.int64),
        np.zeros(n + 1, np.int64),
        np.zeros(n, np.int64),
    )
    for o in range(n):
        state.duration[o] = operation_ticks(timing, o, location[o], location)
    settle(timing, relatives, state, 0)
    return state


@kernel("Change(i8,i8)", Change)
def no_change(n: int, count: int) -> Change:
    """Room for the changes of a search."""
    return Change(
        np.empty(n, np.int64),
        np.empty(n, np.int64),
        np.empty(n, np.int64),
        np.empty(n, np.int64),
        np.zeros(n, np.int64),
        np.full(n, -1, np.int64),
        np.empty(n, np.int64),
        np.empty(count, np.int64),
        np.zeros(3, np.int64),
    )


@kernel("i8(Timing,Relatives,State,Change,i8,i8,f8)", Timing, Relatives, State, Change, makes_arrays=False)
def trial_makespan(
    timing: Timing, relatives: Relatives, state: State, change: Change, first: int, last: int, limit: float
) -> int:
    """The makespan when everything from position ``first`` on is timed anew; -1 as soon as it exceeds ``limit``.

    No operation behind position ``last`` was moved. A chain of operations behind it is as long as before, but for those
    that take less time now, so what comes behind an operation is at least ``rest`` less these ticks.
    """
    location, sequence, duration, rest = state.location, state.sequence, state.duration, state.rest
    free, trial, ticks_less = change.free, change.trial, change.less
    pred_ptr, pred, tail = timing.pred_ptr, timing.pred, relatives.tail
    n, count = timing.compute.shape
    for o in range(n):
        trial[o] = state.end[o]
    for b in range(count):
        free[b] = state.free[first, b]
    makespan, less = state.latest[first], 0
    for i in range(change.counts[1]):
        less += change.less[change.timed[i]]
    for q in range(first, n):
        o = sequence[q]
        a = location[o]
        ready = free[a]
        for e in range(pred_ptr[o], pred_ptr[o + 1]):
            ready = max(ready, trial[pred[e]])
        ready += duration[o]
        less -= ticks_less[o]
        if ready + (rest[o] - less if q > last else tail[o]) > limit:
            return -1
        trial[o] = ready
        free[a] = ready
        makespan = max(makespan, ready)
    return makespan if makespan <= limit else -1


@kernel("void(i8[::1],i8[::1],i8[::1],i8[::1],i8[::1],i8,i8,i8)", makes_arrays=False)
def lengthen(
    duration: Integers,
    timed: Integers,
    timed_from: Integers,
    stamp: Integers,
    counts: Integers,
    o: int,
    ticks: int,
    step: int,
) -> None:
    """Let ``o`` take so many ticks more, and remember what it took before the step."""
    if ticks != 0:
        if stamp[o] != step:
            stamp[o] = step
            timed[counts[1]] = o
            timed_from[counts[1]] = duration[o]
            counts[1] += 1
        duration[o] += ticks


@kernel("void(Timing,Relatives,State,Change,i8,i8,i8)", Timing, Relatives, State, Change, makes_arrays=False)
def relocate(
    timing: Timing, relatives: Relatives, state: State, change: Change, o: int, target: int, step: int
) -> None:
    """Put ``o`` on ``target``, with all that this does to durations; the step tells changes from each other.

    Tables are taken apart first: each look into one costs more than the sum it is for.
    """
    location, duration, source = state.location, state.duration, state.location[o]
    if source == target:
        return
    timed, timed_from, stamp, counts = change.timed, change.timed_from, change.stamp, change.counts
    change.moved[counts[0]] = o
    change.moved_from[counts[0]] = source
    counts[0] += 1
    more = -operation_ticks(timing, o, source, location)
    location[o] = target
    more += operation_ticks(timing, o, target, location)
    lengthen(duration, timed, timed_from, stamp, counts, o, more, step)
    succ, tensor, pred_ticks = relatives.succ, relatives.tensor, timing.pred_ticks
    for s in range(relatives.succ_ptr[o], relatives.succ_ptr[o + 1]):
        q, e = succ[s], tensor[s]
        a = location[q]
        more = pred_ticks[e, target, a] - pred_ticks[e, source, a]
        lengthen(duration, timed, timed_from, stamp, counts, q, more, step)
    fed, first, last = relatives.fed, relatives.fed_ptr[o], relatives.fed_ptr[o + 1]
    if last > first:  # dW goes once to each accelerator with an FP of the layer; the WU have the same holders
        leaves, joins, some = True, True, fed[first]
        holder, gradient_ticks = timing.holder, timing.gradient_ticks
        for h in range(timing.holder_ptr[some], timing.holder_ptr[some + 1]):
            if holder[h] != o:
                leaves = leaves and location[holder[h]] != source
                joins = joins and location[holder[h]] != target
        for f in range(first, last):
            q = fed[f]
            more = 0
            if joins:
                more += gradient_ticks[q, location[q], target]
            if leaves:
                more -= gradient_ticks[q, location[q], source]
            lengthen(duration, timed, timed_from, stamp, counts, q, more, step)


@kernel("i8(State,Change)", State, Change, makes_arrays=False)
def extent(state: State, change: Change) -> int:
    """Complete a change; the first position from which the timetable may differ."""
    first, last = len(state.location), -1
    position, duration, counts = state.position, state.duration, change.counts
    moved, timed, timed_from, less = change.moved, change.timed, change.timed_from, change.less
    for i in range(counts[0]):
        q = position[moved[i]]
        first, last = min(first, q), max(last, q)
    for i in range(counts[1]):
        o = timed[i]
        first = min(first, position[o])
        less[o] = max(0, timed_from[i] - duration[o])
    counts[2] = last
    return first


@kernel("void(Change)", Change, makes_arrays=False)
def forget(change: Change) -> None:
    """Empty the change: it was made or taken back."""
    timed, less, counts = change.timed, change.less, change.counts
    for i in range(counts[1]):
        less[timed[i]] = 0
    for i in range(3):
        counts[i] = 0


@kernel("void(State,Change)", State, Change, makes_arrays=False)
def undo(state: State, change: Change) -> None:
    """Take back all relocations of a move."""
    location, duration, counts = state.location, state.duration, change.counts
    moved, moved_from, timed, timed_from = change.moved, change.moved_from, change.timed, change.timed_from
    for i in range(counts[0] - 1, -1, -1):  # an operation may have moved twice
        location[moved[i]] = moved_from[i]
    for i in range(counts[1]):
        duration[timed[i]] = timed_from[i]
    forget(change)
