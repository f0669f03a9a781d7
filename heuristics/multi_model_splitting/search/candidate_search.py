"""Best split of one model into segments on distinct devices: branch and bound that keeps the first best found.

Algorithm 1 of Synergy lists every candidate of a pipeline and takes the best one. The list explodes (666,000 plans of
MobileNetV2 on four devices), but its best entry can be found without it: a candidate is a path over the boundaries
``0..L`` whose edges are segments, and what an edge costs depends on nothing but the segment. Candidates are visited in
the order of the list (devices by number, longer first segment first) and a subtree is skipped if it holds no candidate
that is *strictly* better; so the first of several best candidates is found, as by listing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from mapgap.core import Budget
from mapgap.kernels import Flag, Flags, Integer, Integers, Integers2, Integers3, kernel
from mapgap.problems.multi_model_splitting.lowered.tables import Array, Mask

Path = tuple[tuple[int, int, int], ...]
"""Segments as (device, first, last)."""
FORBIDDEN = 2**40
"""Cost of a segment that is not allowed; sums of 2^20 of them still fit into 64 bits."""
_CACHES = 2**12, 2**20
"""States that are remembered in a short search and in a long one; to forget one repeats work, but changes no result."""
_CHUNK = 2**16
"""Steps between two looks at the clock, and of a short search."""
_MASK = 62
"""Devices that one integer can name; states on more are not remembered."""


class Costs(NamedTuple):
    """What is minimised.

    Attributes
    ----------
    segment : (N, L, L + 1)
        ``segment[d, i, j]`` of the layers ``i..j-1`` on the device that is preferred as the d-th.
    left : (R, N)
        Capacity left per resource and device.
    demand : (R, L + 1)
        Of the layers from a boundary on.
    bound : (K + 1, L + 1)
        No completion from a boundary costs less with so many more segments, or (one row) with any number of them.
    twin : (N,)
        The device before that is like this one in costs and capacity, or -1. A path over this one is not tried while
        its twin is free: the one over the twin came before and costs the same.
    """

    segment: Integers3
    left: Integers2
    demand: Integers2
    bound: Integers2
    twin: Integers


class Walk(NamedTuple):
    """Where a search stands: one entry per level, each a segment that has been begun.

    Attributes
    ----------
    cut, value : (N + 1,)
        Where the path ends, and what it costs.
    device, last : (N + 1,)
        The next candidate to look at.
    used : (N + 1,)
        Devices of the path as a mask;  ``taken`` (N,) the same as flags.
    path : (N, 3)
        The best path;  ``now`` (3,) the level, the best cost, and the length of the best path.
    at, by, least : (C,)
        Cut and mask of states that were seen, and their least cost.
    """

    cut: Integers
    value: Integers
    device: Integers
    last: Integers
    used: Integers
    taken: Flags
    path: Integers2
    now: Integers
    at: Integers
    by: Integers
    least: Integers


@kernel("void(Costs)", Costs)
def relax(costs: Costs) -> None:
    """Fill in ``bound``; there a device may be used again."""
    n, last = costs.segment.shape[0], costs.segment.shape[1]
    rows = costs.bound.shape[0]
    costs.bound[:] = FORBIDDEN
    costs.bound[0, last] = 0
    for k in range(rows):
        if k == 0 and rows > 1:
            continue
        after = max(0, k - 1)
        for i in range(last - 1, -1, -1):
            best = costs.bound[k, i]
            for d in range(n):
                for j in range(i + 1, last + 1):
                    best = min(best, costs.segment[d, i, j] + costs.bound[after, j])
            costs.bound[k, i] = best


@kernel("b1(Costs,Walk,i8,i8,i8,i8)", Costs, Walk)
def enter(costs: Costs, walk: Walk, level: Integer, i: Integer, used: Integer, value: Integer) -> Flag:
    """Begin the completions of a path; ``False`` if none of them can be new, or hold the layers that are left."""
    n, last = costs.segment.shape[0], costs.segment.shape[1]
    if level >= n or (costs.bound.shape[0] > 1 and costs.bound.shape[0] - 1 <= level):
        return False
    for r in range(costs.left.shape[0]):
        free = 0
        for d in range(n):
            if not walk.taken[d]:
                free += costs.left[r, d]
        if free < costs.demand[r, i]:
            return False
    if n <= _MASK:
        slot = ((used * 2654435761 + i * 40503) >> 3) % walk.at.size
        if walk.at[slot] == i and walk.by[slot] == used and walk.least[slot] <= value:
            return False  # the earlier path to this state was no dearer and has seen all its completions
        walk.at[slot], walk.by[slot], walk.least[slot] = i, used, value
    walk.cut[level], walk.value[level], walk.used[level] = i, value, used
    walk.device[level], walk.last[level] = 0, last
    walk.now[0] = level
    return True


@kernel("b1(Costs,Walk,i8)", Costs, Walk)
def search(costs: Costs, walk: Walk, steps: Integer) -> Flag:
    """Go on for so many steps; ``True`` if there is nothing more to see."""
    n, last, rows = costs.segment.shape[0], costs.segment.shape[1], costs.bound.shape[0]
    for _ in range(steps):
        level = walk.now[0]
        i, value, d, j = walk.cut[level], walk.value[level], walk.device[level], walk.last[level]
        after = 0 if rows == 1 else rows - 2 - level
        reached = FORBIDDEN
        while d < n:
            free = not walk.taken[d] and (costs.twin[d] < 0 or walk.taken[costs.twin[d]])
            while free and j > i:
                reached = costs.segment[d, i, j] + value
                if reached + costs.bound[after, j] < walk.now[1]:
                    break
                j -= 1
            if free and j > i:
                break
            d, j = d + 1, last
        if d == n:  # every candidate has been looked at
            if level == 0:
                return True
            walk.now[0] = level - 1
            walk.taken[walk.device[level - 1]] = False
            walk.last[level - 1] -= 1
            continue
        walk.device[level], walk.last[level] = d, j
        if j < last:
            walk.taken[d] = True
            used = walk.used[level] | (1 << d) if n <= _MASK else 0
            if not enter(costs, walk, level + 1, j, used, reached):
                walk.taken[d] = False
                walk.last[level] -= 1
            continue
        walk.now[1], walk.now[2] = reached, level + 1
        for k in range(level + 1):
            end = walk.cut[k + 1] if k < level else last
            walk.path[k, 0], walk.path[k, 1], walk.path[k, 2] = walk.device[k], walk.cut[k], end
        walk.last[level] -= 1
    return False


class Search:
    """Minimise the sum of segment costs.

    Parameters
    ----------
    cost : (N, L, L + 1) int array
        ``cost[d, i, j]`` of the layers ``i..j-1`` on device ``d``, at least 0; ``FORBIDDEN`` or more if not allowed.
    order : sequence of int
        Devices in the order of preference.
    left : (R, N) int array
        Capacity left per resource and device.
    demand : (R, L + 1) int array
        ``demand[r, i]`` of the layers from ``i`` on.
    exactly : int, optional
        Number of segments; any number if absent.
    budget : Budget
        The search stops with what it has when time is up.
    """

    def __init__(
        self,
        cost: Array,
        order: list[int],
        left: Array,
        demand: Array,
        budget: Budget,
        exactly: int | None = None,
    ) -> None:
        self.order, self.budget = order, budget
        bound = np.zeros((1 if exactly is None else exactly + 1, cost.shape[2]), np.int64)
        whole = np.ascontiguousarray
        segment, room = whole(cost[order]), whole(left[:, order])
        twin, like = np.full(len(order), -1, np.int64), dict[tuple[bytes, bytes], int]()
        for d in range(len(order)):
            key = segment[d].tobytes(), room[:, d].tobytes()
            twin[d] = like.get(key, -1)
            like[key] = d
        self.costs = Costs(segment, room, whole(demand), bound, twin)
        relax(self.costs)

    def run(self, floor: int = 0, below: int = FORBIDDEN) -> tuple[int, Path] | None:
        """The first best path that costs less than ``below``; ``floor`` is what every path costs at least."""
        n = len(self.order)
        now = np.array([0, below, 0], np.int64)
        level = np.zeros((5, n + 1), np.int64)
        taken, best = np.zeros(n, np.bool_), np.zeros((n, 3), np.int64)
        walk = Walk(level[0], level[1], level[2], level[3], level[4], taken, best, now, *_nothing_seen(_CACHES[0]))
        if enter(self.costs, walk, 0, 0, 0, floor) and not self.budget.exhausted:
            ended = search(self.costs, walk, _CHUNK)
            if not ended:
                at, by, least = _nothing_seen(_CACHES[1])
                walk = walk._replace(at=at, by=by, least=least)
            while not (ended or self.budget.exhausted):
                ended = search(self.costs, walk, _CHUNK)
        path = tuple((self.order[d], i, j) for d, i, j in walk.path[: now[2]].tolist())
        return (int(now[1]), path) if path else None


def _nothing_seen(size: int) -> tuple[Array, Array, Array]:
    """Room for so many states."""
    return np.full(size, -1, np.int64), np.zeros(size, np.int64), np.zeros(size, np.int64)


def least_largest(cost: Array, floor: int, below: int, fits: Callable[[Mask], bool]) -> int:
    """The least that the dearest segment of a path can cost, or ``floor`` if that is more; ``below`` if it is no less.

    Bisection over the costs. A state counts once below each of them, where a search for the least largest cost would
    come back to it with every better one.

    Parameters
    ----------
    fits : callable
        ``fits(allowed)``: whether the allowed segments (a mask like ``cost``) make a path.
    """
    known = [floor, *np.unique(cost[(cost > floor) & (cost < below)]).tolist()]
    if not fits(cost <= known[-1]):
        return below
    low, high = 0, len(known) - 1
    while low < high:
        middle = (low + high) // 2
        if fits(cost <= known[middle]):
            high = middle
        else:
            low = middle + 1
    return int(known[low])
