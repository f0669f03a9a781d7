"""Compiled annealing over the accelerator of every operation and the order of execution, for one ratio.

A solution is a pair ``(location, sequence)`` as ``problems/suboperation_mapping/lowered/timing.py`` reads it. A move
changes the accelerators of some operations or shifts one operation among those of its accelerator. Only what stands
behind the first change is timed again, and a move is refused as soon as one operation ends too late for it.

Where transfers share ports or a medium, a move that is not refused so is timed as a whole: nothing is sooner done there
than on links of its own, but a delay can pass to any operation.
"""

from __future__ import annotations

from typing import Annotated, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mapgap.heuristics.suboperation_mapping.search.incremental import (
    Change,
    Relatives,
    State,
    extent,
    forget,
    no_change,
    relocate,
    settle,
    stand,
    trial_makespan,
    undo,
)
from mapgap.kernels import Flag, Integer, Integers, kernel
from mapgap.problems.suboperation_mapping.lowered.timing import (
    ENDLESS,
    LINKS,
    Storage,
    Timing,
    run_memory_excess,
    run_queued,
)

Float = Annotated[float, "f8"]
Floats = Annotated[NDArray[np.float64], "f8[::1]"]


class Labels(NamedTuple):
    """What operations are, all of shape (n,): layer, phase (0 FP, 1 BP, 2 WU) and share (-1 for fused operations)."""

    layer: Integers
    phase: Integers
    share: Integers


class Cooling(NamedTuple):
    """How long and how warm a walk is.

    Attributes
    ----------
    steps, seed : int
    hot, cold : float
        First and last temperature in ticks.
    checked : bool
        Whether the DRAM can bind; then ``penalty`` is the price in ticks of a memory unit above capacity.
    """

    steps: Integer
    seed: Integer
    hot: Float
    cold: Float
    checked: Flag
    penalty: Float


class Walk(NamedTuple):
    """Where a walk stands, and the best solution that fits the DRAM; all of shape (n,)."""

    location: Integers
    sequence: Integers
    best_location: Integers
    best_sequence: Integers


@kernel("void(Timing,Relatives,Labels,State,Change,i8)", Timing, Relatives, Labels, State, Change)
def draw_relocation(
    timing: Timing, relatives: Relatives, labels: Labels, state: State, change: Change, step: int
) -> None:
    """Choose operations and a new accelerator for them: one, two exchanged, a layer, or a share along layers."""
    n, count = timing.compute.shape
    location, layer, phase, share = state.location, labels.layer, labels.phase, labels.share
    o = np.random.randint(n)
    kind = np.random.random()
    if kind < 0.4:
        relocate(timing, relatives, state, change, o, (location[o] + 1 + np.random.randint(count - 1)) % count, step)
    elif kind < 0.6:  # exchange two operations of a layer and phase
        q = np.random.randint(n)
        for _ in range(n):
            if layer[q] == layer[o] and phase[q] == phase[o] and location[q] != location[o]:
                a, b = location[o], location[q]
                relocate(timing, relatives, state, change, o, b, step)
                relocate(timing, relatives, state, change, q, a, step)
                break
            q = (q + 1) % n
    elif kind < 0.75:  # a whole layer, in one phase or in all
        target, every = np.random.randint(count), np.random.random() < 0.5
        for q in range(n):
            if layer[q] == layer[o] and (every or phase[q] == phase[o]):
                relocate(timing, relatives, state, change, q, target, step)
    else:  # a share through some layers
        target, width = np.random.randint(count), np.random.randint(1, 6)
        scope = np.random.randint(5)  # FP, BP, WU, BP and WU, all
        for q in range(n):
            near = layer[o] <= layer[q] < layer[o] + width
            if near and share[q] == share[o] and (scope == 4 or phase[q] == scope or (scope == 3 and phase[q] > 0)):
                relocate(timing, relatives, state, change, q, target, step)


@kernel("b1(Timing,Relatives,State,i8[::1])", Timing, Relatives, State)
def draw_shift(timing: Timing, relatives: Relatives, state: State, shift: Integers) -> bool:
    """Choose an operation and a place among others of its accelerator: ``shift`` holds the old and new position."""
    location, sequence, position = state.location, state.sequence, state.position
    n = len(location)
    o = np.random.randint(n)
    here, passing = position[o], 1 + int(np.random.random() ** 3 * 8)
    place = here
    if np.random.random() < 0.5:
        last = -1
        for e in range(timing.pred_ptr[o], timing.pred_ptr[o + 1]):
            last = max(last, position[timing.pred[e]])
        q = here - 1
        while q > last and passing > 0:
            if location[sequence[q]] == location[o]:
                place = q
                passing -= 1
            q -= 1
    else:
        last = n
        for s in range(relatives.succ_ptr[o], relatives.succ_ptr[o + 1]):
            last = min(last, position[relatives.succ[s]])
        q = here + 1
        while q < last and passing > 0:
            if location[sequence[q]] == location[o]:
                place = q
                passing -= 1
            q += 1
    shift[0], shift[1] = here, place
    return bool(place != here)


@kernel("void(State,i8,i8)", State)
def displace(state: State, here: int, place: int) -> None:
    """Move the operation at position ``here`` to ``place``."""
    sequence, position = state.sequence, state.position
    o = sequence[here]
    step = 1 if place > here else -1
    for q in range(here, place, step):
        sequence[q] = sequence[q + step]
        position[sequence[q]] = q
    sequence[place] = o
    position[o] = place


@kernel(
    "b1(Timing,Storage,Relatives,State,Change,Cooling,i8,i8,f8,f8[::1])",
    Timing,
    Storage,
    Relatives,
    State,
    Change,
    Cooling,
)
def accept(
    timing: Timing,
    storage: Storage,
    relatives: Relatives,
    state: State,
    change: Change,
    cooling: Cooling,
    first: int,
    last: int,
    limit: float,
    cost: Floats,
) -> bool:
    """Time a move, and make it if it costs no more than ``limit``; ``cost`` (2,) becomes makespan and price of DRAM."""
    makespan = trial_makespan(timing, relatives, state, change, first, last, limit)
    if makespan < 0:
        return False
    price = 0.0
    if timing.medium != LINKS:
        n = len(state.location)
        start, end = np.empty(n, np.int64), np.empty(n, np.int64)
        makespan = run_queued(timing, state.location, state.sequence, int(limit), start, end)
        if makespan < 0:
            return False
        if cooling.checked:
            price = cooling.penalty * run_memory_excess(storage, state.location, start, end)
    elif cooling.checked:
        excess = run_memory_excess(storage, state.location, change.trial - state.duration, change.trial)
        price = cooling.penalty * excess
    if cooling.checked and makespan + price > limit:
        return False
    cost[0], cost[1] = makespan, price
    settle(timing, relatives, state, first)
    forget(change)
    return True


@kernel("i8(Timing,Storage,Relatives,Labels,Cooling,i8,i8,i8,Walk)", Timing, Storage, Relatives, Labels, Cooling, Walk)
def anneal(
    timing: Timing,
    storage: Storage,
    relatives: Relatives,
    labels: Labels,
    cooling: Cooling,
    begin: int,
    stop: int,
    best: int,
    walk: Walk,
) -> int:
    """Steps ``begin`` to ``stop`` of a walk from where it stands; the best makespan that fits the DRAM, or -1.

    The makespan plus a price for DRAM above capacity is annealed by a geometric schedule.
    """
    np.random.seed((cooling.seed + begin) % 2**31)
    n, count = timing.compute.shape
    state, change = stand(timing, relatives, walk.location, walk.sequence), no_change(n, count)
    shift, cost = np.zeros(2, np.int64), np.zeros(2)
    cost[0] = state.latest[n]
    if timing.medium != LINKS:
        start, end = np.empty(n, np.int64), np.empty(n, np.int64)
        cost[0] = run_queued(timing, state.location, state.sequence, ENDLESS, start, end)
        if cooling.checked:
            cost[1] = cooling.penalty * run_memory_excess(storage, state.location, start, end)
    elif cooling.checked:
        cost[1] = cooling.penalty * run_memory_excess(storage, state.location, state.end - state.duration, state.end)
    for step in range(begin, stop):
        if cost[1] == 0.0 and (best < 0 or cost[0] < best):
            best = int(cost[0])
            walk.best_location[:] = state.location
            walk.best_sequence[:] = state.sequence
        temperature = cooling.hot * (cooling.cold / cooling.hot) ** (step / cooling.steps)
        limit = cost[0] + cost[1] - temperature * np.log(1.0 - np.random.random())
        if count == 1 or np.random.random() < 0.5:
            if draw_shift(timing, relatives, state, shift):
                displace(state, shift[0], shift[1])
                first, last = min(shift[0], shift[1]), max(shift[0], shift[1])
                if not accept(timing, storage, relatives, state, change, cooling, first, last, limit, cost):
                    displace(state, shift[1], shift[0])
        else:
            draw_relocation(timing, relatives, labels, state, change, step)
            if change.counts[0] > 0:
                first = extent(state, change)
                last = change.counts[2]
                if not accept(timing, storage, relatives, state, change, cooling, first, last, limit, cost):
                    undo(state, change)
    if cost[1] == 0.0 and (best < 0 or cost[0] < best):
        best = int(cost[0])
        walk.best_location[:] = state.location
        walk.best_sequence[:] = state.sequence
    walk.location[:] = state.location
    walk.sequence[:] = state.sequence
    return best
