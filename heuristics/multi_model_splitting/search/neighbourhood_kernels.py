"""Compiled steps of the neighbourhood search: take some pipelines out, put each back where it costs least.

What a state costs is ``sum phi(busy[u, d])``, plus ``missing`` times a weight per pipeline that is not placed, with

    phi(x) = max(0, x / goal - 1) + spread (x / goal)^2,

so that loads above the goal are dear and loads below it are evened out a little; for total latency (``total``) it is
``sum busy / goal`` instead. A pipeline is put back by a shortest path over (cut, device). A segment costs what it adds
to its device, sensing and the transfers of the ends are charged to the first and the last segment. Where one device
gets several of these parts (it is source or target and runs a segment in the middle as well) their sum is less than
what they cost together; the state is costed anew after every step, so this can only mislead, not lie.
"""

from __future__ import annotations

from typing import Annotated, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mapgap.kernels import Flag, Flags2, Integers, Integers2, kernel

Number = Annotated[float, "f8"]
Numbers = Annotated[NDArray[np.float64], "f8[::1]"]
Numbers2 = Annotated[NDArray[np.float64], "f8[:,::1]"]

SENSOR, MCU, ACCELERATOR, RADIO, MEDIUM = range(5)
NEVER = 1e30
NOTHING = 2**60
"""Objective where there is no plan."""


class Pipelines(NamedTuple):
    """``P`` pipelines on ``N`` devices; the boundaries of all pipelines lie one after the other (``B`` rows).

    Attributes
    ----------
    first : (P + 1,)
        Row of boundary 0.
    running : (B, N)
        Inference of the layers before a boundary.
    need : (B, 3)
        Weights, bias and number of the layers before a boundary.
    load, unload, transmit, receive : (B, N)
    sensing : (P, N)
    sources, targets : (P, N)
    capacity : (3, N)
    """

    first: Integers
    running: Integers2
    need: Integers2
    load: Integers2
    unload: Integers2
    transmit: Integers2
    receive: Integers2
    sensing: Integers2
    sources: Flags2
    targets: Flags2
    capacity: Integers2


class State(NamedTuple):
    """Execution plans, and what they occupy.

    Attributes
    ----------
    busy : (4, N) or (5, N)
        The fifth row, on one medium, has what is sent in its first place.
    free : (3, N)
    parts : (P,)
        Number of segments; 0 if the pipeline is not placed.
    source, target : (P,)
    device, begin : (P, M)
        Per segment its device and first layer.
    """

    busy: Integers2
    free: Integers2
    parts: Integers
    source: Integers
    target: Integers
    device: Integers2
    begin: Integers2


class Aim(NamedTuple):
    """What is looked for.

    Attributes
    ----------
    goal, spread, missing : float
        See the module.
    heavier : float
        By what a weight grows with every step in which its pipeline is still not placed.
    hot : float
        Temperature: a step that costs c more is taken with probability exp(-c / hot).
    longest : int
        No cut is made whose transmission or reception takes longer.
    total : bool
    """

    goal: Number
    spread: Number
    missing: Number
    heavier: Number
    hot: Number
    longest: Annotated[int, "i8"]
    total: Flag


class Scratch(NamedTuple):
    """Room for one shortest path and for what a step takes out.

    Attributes
    ----------
    cuts : (P, largest L + 1)
        Layers before each allowed cut of a pipeline, from 0 to L;  ``known`` (P,) how many.
    value : (largest L + 1, N)
        Cost of the best path that ends at a cut on a device; ``before``, ``by``, ``origin`` the cut and device that it
        comes from, and its source.
    order : (P,)
    weight : (P,)
        What it costs that a pipeline is not placed, as a multiple of ``missing``; grows with every step of it.
    counters : (3,)
        State of the random numbers, segments looked at, steps made.
    """

    cuts: Integers2
    known: Integers
    value: Numbers2
    before: Integers2
    by: Integers2
    origin: Integers2
    order: Integers
    weight: Numbers
    counters: Integers


@kernel("f8(Scratch)", Scratch)
def draw(scratch: Scratch) -> float:
    """A random number from 0 to 1 (linear congruences modulo 2^64, Knuth's MMIX)."""
    scratch.counters[0] = scratch.counters[0] * 6364136223846793005 + 1442695040888963407
    high = (scratch.counters[0] >> 32) & 0x7FFFFFFF
    return float(high) / 2147483648.0


@kernel("i8(Scratch,i8)", Scratch)
def pick(scratch: Scratch, count: int) -> int:
    """A random number below ``count``."""
    return min(int(draw(scratch) * count), count - 1)


@kernel("f8(Aim,i8,i8)", Aim)
def price(aim: Aim, load: int, more: int) -> float:
    """What ``more`` ticks cost on a unit that has ``load``."""
    if aim.total:
        return more / aim.goal
    before, after = load / aim.goal, (load + more) / aim.goal
    return max(0.0, after - 1) - max(0.0, before - 1) + aim.spread * (after * after - before * before)


@kernel("f8(Aim,State,Scratch)", Aim, State, Scratch)
def cost(aim: Aim, state: State, scratch: Scratch) -> float:
    """What a state costs."""
    found = 0.0
    for unit in range(MEDIUM if aim.total else state.busy.shape[0]):
        for d in range(state.busy.shape[1]):
            found += price(aim, 0, state.busy[unit, d])
    for p in range(len(state.parts)):
        if state.parts[p] == 0:
            found += aim.missing * scratch.weight[p]
    return found


@kernel("i8(Aim,State)", Aim, State)
def objective(aim: Aim, state: State) -> int:
    """Cycle time or total latency of the pipelines that are placed."""
    return int(state.busy[:MEDIUM].sum()) if aim.total else int(state.busy.max())


@kernel("i8(State)", State)
def absent(state: State) -> int:
    """Pipelines that are not placed."""
    found = 0
    for p in range(len(state.parts)):
        if state.parts[p] == 0:
            found += 1
    return found


@kernel("void(State,State)", State)
def copy(state: State, into: State) -> None:
    """Make one state the same as the other."""
    into.busy[:] = state.busy
    into.free[:] = state.free
    into.parts[:] = state.parts
    into.source[:] = state.source
    into.target[:] = state.target
    into.device[:] = state.device
    into.begin[:] = state.begin


@kernel("f8(Aim,State,i8)", Aim, State)
def medium_price(aim: Aim, state: State, ticks: int) -> float:
    """What sending costs on one medium; nothing where there is none."""
    if state.busy.shape[0] <= MEDIUM or aim.total:
        return 0.0
    return price(aim, state.busy[MEDIUM, 0], ticks)


@kernel("void(State,i8,i8)", State)
def send(state: State, d: int, ticks: int) -> None:
    """Add what a device sends."""
    state.busy[RADIO, d] += ticks
    if state.busy.shape[0] > MEDIUM:
        state.busy[MEDIUM, 0] += ticks


@kernel("void(Pipelines,State,i8,i8)", Pipelines, State)
def occupy(pipelines: Pipelines, state: State, p: int, sign: int) -> None:
    """Add (``sign`` 1) or take away (-1) what the execution plan of a pipeline occupies."""
    row, last = pipelines.first[p], pipelines.first[p + 1] - 1
    busy, here = state.busy, state.source[p]
    busy[SENSOR, here] += sign * pipelines.sensing[p, here]
    for k in range(state.parts[p]):
        d, i = state.device[p, k], row + state.begin[p, k]
        j = row + state.begin[p, k + 1] if k + 1 < state.parts[p] else last
        if d != here:
            send(state, here, sign * pipelines.transmit[i, here])
            busy[RADIO, d] += sign * pipelines.receive[i, d]
        busy[MCU, d] += sign * (pipelines.load[i, d] + pipelines.unload[j, d])
        busy[ACCELERATOR, d] += sign * (pipelines.running[j, d] - pipelines.running[i, d])
        for r in range(3):
            state.free[r, d] -= sign * (pipelines.need[j, r] - pipelines.need[i, r])
        here = d
    if here != state.target[p]:
        send(state, here, sign * pipelines.transmit[last, here])
        busy[RADIO, state.target[p]] += sign * pipelines.receive[last, state.target[p]]


@kernel("void(Pipelines,Aim,Scratch)", Pipelines, Aim, Scratch)
def allow(pipelines: Pipelines, aim: Aim, scratch: Scratch) -> None:
    """Find the cuts of every pipeline that some device can send and some device can receive in time."""
    for p in range(len(pipelines.first) - 1):
        row, layers = pipelines.first[p], pipelines.first[p + 1] - pipelines.first[p] - 1
        known = 0
        for b in range(layers + 1):
            ends = b == 0 or b == layers
            if ends or max(pipelines.transmit[row + b].min(), pipelines.receive[row + b].min()) <= aim.longest:
                scratch.cuts[p, known] = b
                known += 1
        scratch.known[p] = known


@kernel("b1(Scratch,i8,i8,i8)", Scratch)
def visited(scratch: Scratch, k: int, d: int, device: int) -> bool:
    """The best path that ends at cut ``k`` on ``d`` has a segment on ``device``."""
    while d >= 0:
        if d == device:
            return True
        k, d = scratch.before[k, d], scratch.by[k, d]
    return False


@kernel("f8(Pipelines,Aim,State,i8,i8,b1)", Pipelines, Aim, State)
def end_price(pipelines: Pipelines, aim: Aim, state: State, p: int, d: int, target: bool) -> float:
    """What a source that sends, or a target that receives, costs its device."""
    if target:
        return price(aim, state.busy[RADIO, d], pipelines.receive[pipelines.first[p + 1] - 1, d])
    ticks = pipelines.transmit[pipelines.first[p], d]
    sending = price(aim, state.busy[RADIO, d], ticks)
    return price(aim, state.busy[SENSOR, d], pipelines.sensing[p, d]) + sending + medium_price(aim, state, ticks)


@kernel("i8(Pipelines,Aim,State,i8,i8,b1)", Pipelines, Aim, State)
def end(pipelines: Pipelines, aim: Aim, state: State, p: int, apart: int, target: bool) -> int:
    """The cheapest source (or target) of a pipeline on another device than ``apart``; -1 if there is none."""
    best, found = NEVER, -1
    for d in range(pipelines.sensing.shape[1]):
        if d == apart or not (pipelines.targets[p, d] if target else pipelines.sources[p, d]):
            continue
        worth = end_price(pipelines, aim, state, p, d, target)
        if worth < best:
            best, found = worth, d
    return found
