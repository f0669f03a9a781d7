"""The shortest path of a pipeline under integer prices of all units and memory rows, in O(K^2 N) for K blocks.

Prices are any integers of at least 0. The path may come back to a device that it left before its last segment, which a
plan may not; so its length is at most that of the path of any plan.
"""

from __future__ import annotations

from typing import Annotated, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mapgap.formulations.multi_model_splitting.dual_feasible import share
from mapgap.kernels import Flags, Integers, Integers2, kernel

Flags3 = Annotated[NDArray[np.bool_], "b1[:,:,::1]"]

SENSOR, MCU, ACCELERATOR, RADIO = range(4)
NEVER = 2**62


class Route(NamedTuple):
    """One pipeline of ``K`` blocks on ``N`` devices, as a chain has it.

    Attributes
    ----------
    segments : (K + 1, K + 1, N)
    running, load, unload, transmit, receive : (K + 1, N)
    need : (3, K + 1)
    sensing, sources, targets : (N,)
    capacity : (3, N)
    """

    segments: Flags3
    running: Integers2
    load: Integers2
    unload: Integers2
    transmit: Integers2
    receive: Integers2
    need: Integers2
    sensing: Integers
    sources: Flags
    targets: Flags
    capacity: Integers2


class Prices(NamedTuple):
    """What a tick and a memory row cost.

    Attributes
    ----------
    unit : (4, N)
        Per tick.
    begin : (N + 1,)
        The memory rows of device d are ``begin[d]`` up to ``begin[d + 1]``.
    resource, kind, parameter, price : (R,)
        Of each memory row: the resource, its dual feasible function, and the price of one of its value.
    """

    unit: Integers2
    begin: Integers
    resource: Integers
    kind: Integers
    parameter: Integers
    price: Integers


class Room(NamedTuple):
    """Room: ``length`` (K + 1, N) of the best path to a cut on a device, the ``cut`` and the device (``by``) before."""

    length: Integers2
    cut: Integers2
    by: Integers2


@kernel("i8(Route,Prices,i8,i8,i8)", Route, Prices)
def memory(route: Route, prices: Prices, i: int, j: int, d: int) -> int:
    """What the blocks ``i..j-1`` cost in the memory of a device."""
    found = 0
    for row in range(prices.begin[d], prices.begin[d + 1]):
        r = prices.resource[row]
        demand = route.need[r, j] - route.need[r, i]
        found += prices.price[row] * share(prices.kind[row], prices.parameter[row], route.capacity[r, d], demand)
    return found


@kernel("UniTuple(i8,2)(Route,Prices,i8)", Route, Prices)
def source(route: Route, prices: Prices, d: int) -> tuple[int, int]:
    """Cheapest sensing and transfer of the input to a device: cost and source, -1 if there is none."""
    best, found = NEVER, -1
    for s in range(len(route.sensing)):
        if route.sources[s]:
            cost = prices.unit[SENSOR, s] * route.sensing[s]
            if s != d:
                cost += prices.unit[RADIO, s] * route.transmit[0, s] + prices.unit[RADIO, d] * route.receive[0, d]
            if cost < best:
                best, found = cost, s
    return best, found


@kernel("UniTuple(i8,2)(Route,Prices,i8)", Route, Prices)
def target(route: Route, prices: Prices, d: int) -> tuple[int, int]:
    """Cheapest transfer of the output from a device: cost and target, -1 if there is none."""
    best, found, last = NEVER, -1, len(route.running) - 1
    for t in range(len(route.sensing)):
        if route.targets[t]:
            cost = 0
            if t != d:
                cost = prices.unit[RADIO, d] * route.transmit[last, d] + prices.unit[RADIO, t] * route.receive[last, t]
            if cost < best:
                best, found = cost, t
    return best, found


@kernel("i8(Route,Prices,Room)", Route, Prices, Room)
def fill(route: Route, prices: Prices, room: Room) -> int:
    """Lengths of the best paths to all cuts and devices; the device that the shortest whole path ends on, or -1."""
    last, n, unit = len(route.running) - 1, len(route.sensing), prices.unit
    room.length[:] = NEVER
    for i in range(last):
        first, second, by, by_2 = NEVER, NEVER, -1, -1
        for e in range(n):
            if room.length[i, e] < first:
                first, second, by, by_2 = room.length[i, e], first, e, by
            elif room.length[i, e] < second:
                second, by_2 = room.length[i, e], e
        for d in range(n):
            if i == 0:
                begin, origin = source(route, prices, d)[0], -1
            else:
                begin, origin = (second, by_2) if by == d else (first, by)
                if begin < NEVER:
                    begin += unit[RADIO, d] * route.receive[i, d]
            if begin >= NEVER:
                continue
            for j in range(i + 1, last + 1):
                if not route.segments[i, j, d]:
                    continue
                length = begin + unit[MCU, d] * (route.load[i, d] + route.unload[j, d])
                length += unit[ACCELERATOR, d] * (route.running[j, d] - route.running[i, d])
                length += memory(route, prices, i, j, d)
                if j < last:
                    length += unit[RADIO, d] * route.transmit[j, d]
                if length < room.length[j, d]:
                    room.length[j, d], room.cut[j, d], room.by[j, d] = length, i, origin
    best, found = NEVER, -1
    for d in range(n):
        if room.length[last, d] < NEVER:
            leave, t = target(route, prices, d)
            if t >= 0 and room.length[last, d] + leave < best:
                best, found = room.length[last, d] + leave, d
    return found


def shortest(route: Route, prices: Prices) -> tuple[int, list[tuple[int, int, int]], int, int] | None:
    """Length, segments ``(i, j, d)`` in blocks, source and target of a shortest path; ``None`` if there is none."""
    shape = route.running.shape
    room = Room(*(np.zeros(shape, np.int64) for _ in range(3)))
    d = int(fill(route, prices, room))
    if d < 0:
        return None
    j, segments = shape[0] - 1, []
    leave, t = target(route, prices, d)
    length = int(room.length[j, d]) + int(leave)
    while d >= 0:
        i = int(room.cut[j, d])
        segments.append((i, j, d))
        j, d = i, int(room.by[j, d])
    s = int(source(route, prices, segments[-1][2])[1])
    return length, segments[::-1], s, int(t)
