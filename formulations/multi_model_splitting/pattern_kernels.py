"""The heaviest pattern of an accelerator: a knapsack with several dimensions, by depth-first branch and bound."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mapgap.kernels import Integer, Integers, Integers2, kernel

DIMENSIONS = 6
"""Weights, bias and layers; ticks of radio, processor and accelerator."""
UNKNOWN = -1
UNBOUNDED = 1e300
INFLATED = 1.0 + 1e-9


class Items(NamedTuple):
    """Segments that a device may hold, in the order in which they are tried.

    Attributes
    ----------
    value : (n,)
        Positive integers.
    demand : (n, 6)
    group : (n,)
        The model that it is a segment of.
    """

    value: Integers
    demand: Integers2
    group: Integers


class Room(NamedTuple):
    """What there is of every dimension ``free`` (6,), and how many segments of a group ``most`` (G,)."""

    free: Integers
    most: Integers


@kernel("i8(Items, Room, i8, i8[::1])", Items, Room)
def heaviest(items: Items, room: Room, nodes: Integer, chosen: Integers) -> Integer:
    """Largest sum of values of segments that fit together, each as often as its group allows.

    ``UNKNOWN`` after so many ``nodes``. ``chosen`` (n,) gets how often each segment is in the best pattern found.

    Pruned is by the best value per unit of a dimension among the items left, for each dimension. These quotients are
    doubles; they are inflated by far more than their error, and a whole number below a bound is at most its floor.
    """
    n = items.value.size
    deepest = room.most.sum() + 1
    density = np.empty((n + 1, DIMENSIONS))
    density[n] = 0.0
    for t in range(n - 1, -1, -1):
        for r in range(DIMENSIONS):
            demand = items.demand[t, r]
            own = UNBOUNDED if demand == 0 else items.value[t] / demand
            density[t, r] = max(own, density[t + 1, r])
    left = np.empty((deepest + 1, DIMENSIONS), np.int64)
    worth = np.zeros(deepest + 1, np.int64)
    at = np.zeros(deepest + 1, np.int64)
    count = np.zeros(room.most.size, np.int64)
    left[0] = room.free
    chosen[:] = 0
    best = depth = t = seen = 0
    while True:
        found = False
        while t < n:
            bound = UNBOUNDED
            for r in range(DIMENSIONS):
                if density[t, r] < UNBOUNDED:
                    bound = min(bound, left[depth, r] * density[t, r])
            if bound * INFLATED < best + 1 - worth[depth]:
                break
            found = count[items.group[t]] < room.most[items.group[t]]
            for r in range(DIMENSIONS):
                found = found and items.demand[t, r] <= left[depth, r]
            if found:
                break
            t += 1
        if found:
            seen += 1
            if seen > nodes:
                return UNKNOWN
            at[depth] = t
            left[depth + 1] = left[depth] - items.demand[t]
            worth[depth + 1] = worth[depth] + items.value[t]
            count[items.group[t]] += 1
            depth += 1
            if worth[depth] > best:
                best = worth[depth]
                chosen[:] = 0
                for k in range(depth):
                    chosen[at[k]] += 1
            continue
        if depth == 0:
            return best
        depth -= 1
        t = at[depth]
        count[items.group[t]] -= 1
        t += 1
