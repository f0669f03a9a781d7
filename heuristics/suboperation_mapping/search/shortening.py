"""Compiled tests of whether moving one operation makes a schedule shorter; most moves are refused after a few sums.

A longest chain of the schedule is marked: operations of which each starts when the one before it ends. The order of
the operations does not change, so a chain behind the moved operation stays a chain. Its length changes by what its
operations take more or less, and no schedule is shorter than one of its chains.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mapgap.heuristics.suboperation_mapping.search.incremental import Relatives, State, look_ahead
from mapgap.kernels import Flags, Integers, kernel
from mapgap.problems.suboperation_mapping.lowered.timing import Timing, operation_ticks


class Visit(NamedTuple):
    """A visit of all operations in their order, and the longest chain; ``n`` operations, ``N`` accelerators.

    Attributes
    ----------
    marked : (n,)
        The operations of the visit.
    follower : (n,)
        The operation behind each on its accelerator, or -1, when the visit began.
    behind, free : (N,)
        The first operation of each accelerator behind the one that is visited, or -1, and when it could start.
    latest : (1,)
        The last end of all operations before the one that is visited.
    more : (n,)
        Ticks that an operation takes more than before, under trial; 0 outside of a trial.
    totals : (2,)
        Ticks that operations take less in all, and ticks that those of the chain take more, under trial.
    trial : (n,)
        Ends under trial; those of the schedule outside of a trial.
    vacant : (N,)
        When accelerators are free, under trial.
    previous : (n,)
        Room for the operation before each on its accelerator.
    """

    marked: Flags
    follower: Integers
    behind: Integers
    free: Integers
    latest: Integers
    more: Integers
    totals: Integers
    trial: Integers
    vacant: Integers
    previous: Integers


@kernel("void(Timing,State,Visit)", Timing, State, Visit, makes_arrays=False)
def critical(timing: Timing, state: State, visit: Visit) -> None:
    """Mark the operations of a longest chain: each starts when the one before it ends, the last ends last."""
    location, sequence, end, duration = state.location, state.sequence, state.end, state.duration
    previous, marked, before = visit.previous, visit.marked, visit.vacant  # before: the last of each accelerator
    for a in range(len(before)):
        before[a] = -1
    last = sequence[0]
    for q in range(len(sequence)):
        o = sequence[q]
        marked[o] = False
        previous[o] = before[location[o]]
        before[location[o]] = o
        if end[o] > end[last]:
            last = o
    o = last
    while o >= 0:
        marked[o] = True
        start, found = end[o] - duration[o], -1
        if start > 0:
            if previous[o] >= 0 and end[previous[o]] == start:
                found = previous[o]
            else:
                for e in range(timing.pred_ptr[o], timing.pred_ptr[o + 1]):
                    if end[timing.pred[e]] == start:
                        found = timing.pred[e]
        o = found


@kernel("Visit(Timing,State)", Timing, State, Visit)
def visits(timing: Timing, state: State) -> Visit:
    """Room for visits of a schedule; its longest visit."""
    n, count = timing.compute.shape
    visit = Visit(
        np.zeros(n, np.bool_),
        np.empty(n, np.int64),
        np.empty(count, np.int64),
        np.empty(count, np.int64),
        np.zeros(1, np.int64),
        np.zeros(n, np.int64),
        np.zeros(2, np.int64),
        state.end.copy(),
        np.empty(count, np.int64),
        np.empty(n, np.int64),
    )
    critical(timing, state, visit)
    return visit


@kernel("void(State,Visit)", State, Visit, makes_arrays=False)
def begin(state: State, visit: Visit) -> None:
    """Before the first operation."""
    visit.latest[0] = 0
    for a in range(len(visit.free)):
        visit.behind[a], visit.free[a] = -1, 0
    for q in range(len(state.sequence) - 1, -1, -1):
        o = state.sequence[q]
        visit.follower[o] = visit.behind[state.location[o]]
        visit.behind[state.location[o]] = o


@kernel("void(State,Visit,i8)", State, Visit, makes_arrays=False)
def arrive(state: State, visit: Visit, o: int) -> None:
    """At an operation, which has not moved yet."""
    visit.behind[state.location[o]] = visit.follower[o]


@kernel("void(State,Visit,i8)", State, Visit, makes_arrays=False)
def leave(state: State, visit: Visit, o: int) -> None:
    """On to the next."""
    visit.free[state.location[o]] = state.end[o]
    visit.latest[0] = max(visit.latest[0], state.end[o])


@kernel("void(Timing,Relatives,State,Visit,i8,i8)", Timing, Relatives, State, Visit, inline="always")
def weigh(timing: Timing, relatives: Relatives, state: State, visit: Visit, o: int, target: int) -> None:
    """What other operations take more if ``o`` goes to ``target``; ``totals`` becomes the sums."""
    location, more, marked, totals = state.location, visit.more, visit.marked, visit.totals
    source, less, later = location[o], 0, 0
    succ, tensor, pred_ticks = relatives.succ, relatives.tensor, timing.pred_ticks
    for s in range(relatives.succ_ptr[o], relatives.succ_ptr[o + 1]):
        q, e = succ[s], tensor[s]
        ticks = pred_ticks[e, target, location[q]] - pred_ticks[e, source, location[q]]
        less += max(0, -more[q] - ticks) - max(0, -more[q])
        more[q] += ticks
        if marked[q]:
            later += ticks
    first, last = relatives.fed_ptr[o], relatives.fed_ptr[o + 1]
    if last > first:  # dW goes once to each accelerator with an FP of the layer; the WU have the same holders
        holder, gradient_ticks = timing.holder, timing.gradient_ticks
        leaves, joins, some = True, True, relatives.fed[first]
        for h in range(timing.holder_ptr[some], timing.holder_ptr[some + 1]):
            if holder[h] != o:
                leaves = leaves and location[holder[h]] != source
                joins = joins and location[holder[h]] != target
        for f in range(first, last):
            q = relatives.fed[f]
            ticks = 0
            if joins:
                ticks += gradient_ticks[q, location[q], target]
            if leaves:
                ticks -= gradient_ticks[q, location[q], source]
            less += max(0, -more[q] - ticks) - max(0, -more[q])
            more[q] += ticks
            if marked[q]:
                later += ticks
    totals[0], totals[1] = less, later


@kernel("b1(Relatives,State,Visit,i8,i8,i8)", Relatives, State, Visit, inline="always")
def hopeless(relatives: Relatives, state: State, visit: Visit, o: int, target: int, ends: int) -> bool:
    """Whether a chain that follows from what is weighed is too long already, where ``o`` ends at ``ends``."""
    duration, rest, more, limit = state.duration, state.rest, visit.more, state.latest[len(state.latest) - 1]
    less = visit.totals[0]
    if not visit.marked[o] and visit.totals[1] >= 0:
        return True
    p = visit.behind[target]
    late = p >= 0 and ends + duration[p] + max(0, more[p]) + rest[p] - less >= limit
    for s in range(relatives.succ_ptr[o], relatives.succ_ptr[o + 1]):
        q = relatives.succ[s]
        late = late or ends + duration[q] + max(0, more[q]) + rest[q] - less >= limit
    return bool(late)


@kernel("b1(Timing,State,Visit,i8,i8,i8)", Timing, State, Visit, inline="always")
def ends_sooner(timing: Timing, state: State, visit: Visit, o: int, target: int, ends: int) -> bool:
    """Time everything behind ``o`` anew, until something is too late; ``trial`` holds the ends if nothing is."""
    location, sequence, duration, rest, end = state.location, state.sequence, state.duration, state.rest, state.end
    free, trial, more, marked = visit.vacant, visit.trial, visit.more, visit.marked
    pred_ptr, pred = timing.pred_ptr, timing.pred
    n, first = len(sequence), state.position[o]
    limit, less, later = state.latest[n], visit.totals[0], visit.totals[1]
    for a in range(len(free)):
        free[a] = visit.free[a]
    free[target] = trial[o] = ends
    for q in range(first + 1, n):
        p = sequence[q]
        a = location[p]
        ready = free[a]
        for e in range(pred_ptr[p], pred_ptr[p + 1]):
            ready = max(ready, trial[pred[e]])
        ready += duration[p] + more[p]
        less -= max(0, -more[p])
        late = ready + max(0, rest[p] - less) >= limit
        if marked[p]:
            later -= more[p]
            late = late or ready - end[p] + later >= 0
        if late:
            for r in range(first, q):
                trial[sequence[r]] = end[sequence[r]]
            return False
        free[a] = trial[p] = ready
    return True


@kernel("b1(Timing,Relatives,State,Visit,i8,i8)", Timing, Relatives, State, Visit, makes_arrays=False)
def shortens(timing: Timing, relatives: Relatives, state: State, visit: Visit, o: int, target: int) -> bool:
    """Whether the schedule is shorter with ``o`` on ``target``; if so ``trial`` becomes the ends of all operations.

    All before ``o`` stays, so its end there is known. Nothing is changed but ``visit``.
    """
    limit, ends = state.latest[len(state.sequence)], visit.free[target]
    for e in range(timing.pred_ptr[o], timing.pred_ptr[o + 1]):
        ends = max(ends, state.end[timing.pred[e]])
    ends += operation_ticks(timing, o, target, state.location)
    if max(visit.latest[0], ends + relatives.tail[o]) >= limit:
        return False
    weigh(timing, relatives, state, visit, o, target)
    found = False
    if not hopeless(relatives, state, visit, o, target, ends):
        found = ends_sooner(timing, state, visit, o, target, ends)
    for s in range(relatives.succ_ptr[o], relatives.succ_ptr[o + 1]):
        visit.more[relatives.succ[s]] = 0
    for f in range(relatives.fed_ptr[o], relatives.fed_ptr[o + 1]):
        visit.more[relatives.fed[f]] = 0
    return found


@kernel("void(Timing,Relatives,State,Visit)", Timing, Relatives, State, Visit)
def moved(timing: Timing, relatives: Relatives, state: State, visit: Visit) -> None:
    """Make the ends under trial those of the schedule, in which the operation has moved.

    Rows of ``state.free`` and ``state.latest`` but the last are not kept; here nobody asks for them.
    """
    state.end[:] = visit.trial
    state.latest[len(state.end)] = visit.trial.max()
    look_ahead(timing, relatives, state)
    critical(timing, state, visit)
