"""The compiled loop of the neighbourhood search: ruin, recreate, accept; see :mod:`.neighbourhood_kernels`.

References
----------
Schrimpf, Schneider, Stamm-Wilbrandt, Dueck, "Record breaking optimization results using the ruin and recreate
principle", Journal of Computational Physics 159 (2000), 139-171. Places skipped at random ("blinks"): Christiaens,
Vanden Berghe, "Slack induction by string removals for vehicle routing problems", Transportation Science 54 (2020),
417-433. Weights that grow while something is not placed: Nagata, Bräysy, "A powerful route minimization heuristic for
the vehicle routing problem with time windows", Operations Research Letters 37 (2009), 333-338.
"""

from __future__ import annotations

from math import exp

from mapgap.heuristics.multi_model_splitting.search.neighbourhood_kernels import (
    ACCELERATOR,
    MCU,
    NEVER,
    NOTHING,
    RADIO,
    SENSOR,
    Aim,
    Pipelines,
    Scratch,
    State,
    absent,
    copy,
    cost,
    draw,
    end,
    end_price,
    medium_price,
    objective,
    occupy,
    pick,
    price,
    visited,
)
from mapgap.kernels import kernel

STEP = 60
"""Segments that could be looked at in the time of what else a step does."""


@kernel("UniTuple(i8,3)(Pipelines,Aim,State,i8,Scratch,f8)", Pipelines, Aim, State, Scratch)
def shortest(
    pipelines: Pipelines, aim: Aim, state: State, p: int, scratch: Scratch, blink: float
) -> tuple[int, int, int]:
    """The cheapest path of a pipeline: cut where its last segment begins, device of it, and target; -1 for none.

    A label per (cut, device) keeps the best path alone, and extends it to devices that it has not visited; so the
    path is the cheapest of those that the labels can make, not of all.
    """
    row, last, n = pipelines.first[p], scratch.known[p] - 1, pipelines.sensing.shape[1]
    finish = pipelines.first[p + 1] - 1
    scratch.value[: last + 1] = NEVER
    source, target = end(pipelines, aim, state, p, -1, False), end(pipelines, aim, state, p, -1, True)
    source_2, target_2 = -1, -1
    if source < 0 or target < 0:
        return -1, -1, -1
    source_2, target_2 = end(pipelines, aim, state, p, source, False), end(pipelines, aim, state, p, target, True)
    best, best_k, best_d, best_target = NEVER, -1, -1, -1
    for k in range(last):
        i = row + scratch.cuts[p, k]
        for d in range(n):
            if state.free[2, d] < 1 or (k > 0 and pipelines.receive[i, d] > aim.longest):
                continue
            if blink > 0 and draw(scratch) < blink:
                continue
            other = target_2 if d == target else target
            leaving = NEVER if other < 0 else end_price(pipelines, aim, state, p, other, True)
            for way in range(2 if k == 0 else 1):
                begin, into, by, origin = NEVER, 0, -1, -1
                if k > 0:
                    for e in range(n):
                        if e != d and scratch.value[k, e] < begin and not visited(scratch, k, e, d):
                            begin, by = scratch.value[k, e], e
                    into = pipelines.receive[i, d]
                    if by >= 0:
                        origin = scratch.origin[k, by]
                elif way == 0:
                    if pipelines.sources[p, d]:
                        begin, origin = price(aim, state.busy[SENSOR, d], pipelines.sensing[p, d]), d
                else:
                    origin = source_2 if d == source else source
                    if origin >= 0:
                        begin, into = end_price(pipelines, aim, state, p, origin, False), pipelines.receive[i, d]
                if begin >= best:
                    continue
                for m in range(k + 1, last + 1):
                    j = row + scratch.cuts[p, m]
                    if (
                        pipelines.need[j, 0] - pipelines.need[i, 0] > state.free[0, d]
                        or pipelines.need[j, 1] - pipelines.need[i, 1] > state.free[1, d]
                        or pipelines.need[j, 2] - pipelines.need[i, 2] > state.free[2, d]
                    ):
                        break
                    scratch.counters[1] += 1
                    running = pipelines.running[j, d] - pipelines.running[i, d]
                    worth = begin + price(aim, state.busy[ACCELERATOR, d], running)
                    if worth >= best:
                        break
                    worth += price(aim, state.busy[MCU, d], pipelines.load[i, d] + pipelines.unload[j, d])
                    if m < last:
                        if pipelines.transmit[j, d] > aim.longest:
                            continue
                        worth += price(aim, state.busy[RADIO, d], into + pipelines.transmit[j, d])
                        worth += medium_price(aim, state, pipelines.transmit[j, d])
                        if worth < scratch.value[m, d]:
                            scratch.value[m, d] = worth
                            scratch.before[m, d], scratch.by[m, d], scratch.origin[m, d] = k, by, origin
                        continue
                    if pipelines.targets[p, d]:
                        here = worth + price(aim, state.busy[RADIO, d], into)
                        if here < best:
                            best, best_k, best_d, best_target = here, k, d, d
                            scratch.before[last, d], scratch.by[last, d], scratch.origin[last, d] = k, by, origin
                    away = worth + price(aim, state.busy[RADIO, d], into + pipelines.transmit[finish, d]) + leaving
                    away += medium_price(aim, state, pipelines.transmit[finish, d])
                    if away < best:
                        best, best_k, best_d, best_target = away, k, d, other
                        scratch.before[last, d], scratch.by[last, d], scratch.origin[last, d] = k, by, origin
    return best_k, best_d, best_target


@kernel("b1(Pipelines,Aim,State,i8,Scratch,f8)", Pipelines, Aim, State, Scratch)
def insert(pipelines: Pipelines, aim: Aim, state: State, p: int, scratch: Scratch, blink: float) -> bool:
    """Place a pipeline where it costs least; ``False`` if it fits nowhere."""
    k, d, target = shortest(pipelines, aim, state, p, scratch, blink)
    if k < 0:
        return False
    cut, device, count = scratch.known[p] - 1, d, 0
    while device >= 0:
        count += 1
        cut, device = scratch.before[cut, device], scratch.by[cut, device]
    state.parts[p], state.target[p] = count, target
    cut, device = scratch.known[p] - 1, d
    state.source[p] = scratch.origin[cut, device]
    for place in range(count - 1, -1, -1):
        state.device[p, place] = device
        cut, device = scratch.before[cut, device], scratch.by[cut, device]
        state.begin[p, place] = scratch.cuts[p, cut]
    occupy(pipelines, state, p, 1)
    return True


@kernel("b1(State,i8,i8)", State)
def uses(state: State, p: int, d: int) -> bool:
    """A placed pipeline does something on a device."""
    if state.parts[p] == 0:
        return False
    if state.source[p] == d or state.target[p] == d:
        return True
    return bool((state.device[p, : state.parts[p]] == d).any())


@kernel("i8(Pipelines,State,Scratch,i8)", Pipelines, State, Scratch)
def ruin(pipelines: Pipelines, state: State, scratch: Scratch, lost: int) -> int:
    """Take pipelines out; they and the ``lost`` ones, which are out already, are the first of ``order``: how many."""
    count, n = len(state.parts), state.busy.shape[1]
    found = 0
    for p in range(count):
        if state.parts[p] == 0:
            scratch.order[found] = p
            found += 1
    most = min(count, lost + 2 + pick(scratch, 5))
    way = draw(scratch)
    devices = 0
    if way < 0.4:  # what is on the busiest device
        busiest, d = -1, 0
        for e in range(n):
            for unit in range(4):
                if state.busy[unit, e] > busiest:
                    busiest, d = state.busy[unit, e], e
        devices = 1
    elif way < 0.8 or lost > 0:  # what is on one, two or three devices
        d = pick(scratch, n)
        devices = 1 + pick(scratch, 3)
    for _ in range(devices):
        begin = pick(scratch, count)
        for step in range(count):
            p = (begin + step) % count
            if found < most and uses(state, p, d):
                occupy(pipelines, state, p, -1)
                state.parts[p] = 0
                scratch.order[found] = p
                found += 1
        d = pick(scratch, n)
    wanted = max(found, min(most, lost + 1 + pick(scratch, 3)))
    while found < wanted or found == 0:
        p = pick(scratch, count)
        if state.parts[p] > 0:
            occupy(pipelines, state, p, -1)
            state.parts[p] = 0
            scratch.order[found] = p
            found += 1
    return found


@kernel("void(Pipelines,Scratch,i8)", Pipelines, Scratch)
def arrange(pipelines: Pipelines, scratch: Scratch, found: int) -> None:
    """Put the first ``found`` of ``order`` in a random order; two times in three by falling memory, roughly."""
    for a in range(found - 1, 0, -1):
        b = pick(scratch, a + 1)
        scratch.order[a], scratch.order[b] = scratch.order[b], scratch.order[a]
    if draw(scratch) < 1 / 3:
        return
    resource = pick(scratch, 2)
    for a in range(1, found):
        p, b = scratch.order[a], a
        size = pipelines.need[pipelines.first[p + 1] - 1, resource]
        while b > 0:
            q = scratch.order[b - 1]
            if pipelines.need[pipelines.first[q + 1] - 1, resource] >= size or draw(scratch) < 0.1:
                break
            scratch.order[b] = q
            b -= 1
        scratch.order[b] = p


@kernel("i8(Pipelines,Aim,State,Scratch)", Pipelines, Aim, State, Scratch)
def complete(pipelines: Pipelines, aim: Aim, state: State, scratch: Scratch) -> int:
    """Place every pipeline that is not placed, those with most weights first; how many fit nowhere."""
    found = 0
    for p in range(len(state.parts)):
        if state.parts[p] == 0:
            b = found
            size = pipelines.need[pipelines.first[p + 1] - 1, 0]
            while b > 0:
                q = scratch.order[b - 1]
                if pipelines.need[pipelines.first[q + 1] - 1, 0] >= size:
                    break
                scratch.order[b] = q
                b -= 1
            scratch.order[b] = p
            found += 1
    lost = 0
    for place in range(found):
        if not insert(pipelines, aim, state, scratch.order[place], scratch, 0.0):
            lost += 1
    return lost


@kernel("i8(Pipelines,Aim,State,State,State,Scratch,i8,i8,i8)", Pipelines, Aim, State, Scratch)
def improve(
    pipelines: Pipelines,
    aim: Aim,
    state: State,
    spare: State,
    best: State,
    scratch: Scratch,
    value: int,
    steps: int,
    work: int,
) -> int:
    """Steps from a state until a whole plan reaches the goal, or ``steps`` are made, or ``work`` segments looked at.

    Any plan reaches it where none is known (``value`` is ``NOTHING``); no total does.

    Parameters
    ----------
    state : State
        Where to begin; where the walk ends.
    spare : State
        Room.
    best : State
        Gets every whole plan better than ``value`` and the ones before.

    Returns
    -------
    value : int
        Objective of ``best``, or the one given.
    """
    now, lost = cost(aim, state, scratch), absent(state)
    goal = value if value >= NOTHING else 0 if aim.total else int(aim.goal)
    limit = scratch.counters[1] + work
    for _ in range(steps):
        if scratch.counters[1] >= limit:
            break
        scratch.counters[1] += STEP
        scratch.counters[2] += 1
        if lost:
            for p in range(len(state.parts)):
                if state.parts[p] == 0:
                    scratch.weight[p] *= aim.heavier
            now = cost(aim, state, scratch)
        copy(state, spare)
        found = ruin(pipelines, state, scratch, lost)
        arrange(pipelines, scratch, found)
        blink = 0.0 if draw(scratch) < 0.5 else 0.3 * draw(scratch)
        for place in range(found):
            insert(pipelines, aim, state, scratch.order[place], scratch, blink)
        after = cost(aim, state, scratch)
        if after <= now or draw(scratch) < exp((now - after) / aim.hot):
            now, lost = after, absent(state)
            if lost == 0:
                reached = objective(aim, state)
                if reached < value:
                    value = reached
                    copy(state, best)
                    if reached <= goal:
                        break
        else:
            copy(spare, state)
    return value
