"""The heaviest pattern of an accelerator: a knapsack with several dimensions, by depth-first branch and bound."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mapgap.kernels import Flags, Integer, Integers, Integers2, kernel

DIMENSIONS = 6
"""Weights, bias and layers; ticks of radio, processor and accelerator."""
UNBOUNDED = 1e300
LARGEST = 1e14
"""A difference of two doubles is looked at only where both are smaller."""
ERROR = 0.5
"""More than sums and products of doubles err by where they decide anything, and less than one."""


class Items(NamedTuple):
    """Segments that a device may hold, in the order in which they are tried.

    Attributes
    ----------
    value : (n,)
        Integers; positive but for items of which one must be chosen.
    demand : (n, m)
        Of every dimension; the last one is the sum of the others by any weights of at least 0.
    group : (n,)
        The model that it is a segment of.
    """

    value: Integers
    demand: Integers2
    group: Integers


class Room(NamedTuple):
    """What a device has room for.

    Attributes
    ----------
    free : (m,)
        Of every dimension.
    most : (G,)
        Segments of a group.
    begin : (S + 1,)
        Exactly one of the items ``begin[s]`` up to ``begin[s + 1]`` is chosen, the first of them worth most; of those
        from ``begin[S]`` on as many as the groups allow.
    """

    free: Integers
    most: Integers
    begin: Integers


@kernel("void(Items, b1[::1])", Items)
def undominated(items: Items, kept: Flags) -> None:
    """Set ``kept`` (n,) where no item before it in its group is worth as much and demands no more of anything."""
    for t in range(items.value.size):
        kept[t] = True
        for u in range(t):
            if not kept[u] or items.group[u] != items.group[t] or items.value[u] < items.value[t]:
                continue
            smaller = True
            for r in range(items.demand.shape[1]):
                smaller = smaller and items.demand[u, r] <= items.demand[t, r]
            if smaller:
                kept[t] = False
                break


@kernel("UniTuple(i8,2)(Items, Room, i8, i8, i8, i8[::1])", Items, Room)
def heaviest(
    items: Items, room: Room, above: Integer, few: Integer, nodes: Integer, chosen: Integers
) -> tuple[Integer, Integer]:
    """Largest sum of values of items that fit together, if it is more than ``above``; else ``above``.

    ``chosen`` (n,) gets how often each item is in the pattern, nothing if none is worth more. The second number is 1
    if no pattern is worth more than the first; 0 if the search ended after so many ``nodes``, or after a ``few`` with
    a pattern.

    Pruned is by the best value per unit of a dimension among the items left, for each dimension. The last dimension,
    with the dual weights of the relaxation, also says what a choice costs that must be made. These quotients are
    doubles; a whole number below a bound in doubles and their ``ERROR`` is at most its floor.
    """
    n, m, must = items.value.size, items.demand.shape[1], room.begin.size - 1
    loose = room.begin[must]
    density = np.zeros((n + 1, m))
    for t in range(n - 1, -1, -1):
        for r in range(m):
            own = 0.0
            if items.value[t] > 0:
                own = UNBOUNDED if items.demand[t, r] == 0 else items.value[t] / items.demand[t, r]
            density[t, r] = max(own, density[t + 1, r])
    dear = density[loose, m - 1]
    priced = dear * room.free[m - 1] < LARGEST
    worthy, net = np.zeros(must + 1), np.zeros(must + 1)
    for s in range(must - 1, -1, -1):
        first, best_net = room.begin[s], -UNBOUNDED
        for t in range(first, room.begin[s + 1]):
            if priced:
                best_net = max(best_net, items.value[t] - dear * items.demand[t, m - 1])
        worthy[s] = worthy[s + 1] + items.value[first]
        net[s] = net[s + 1] + best_net
    deepest = room.most.sum() + must + 1
    left = np.empty((deepest + 1, m), np.int64)
    worth = np.zeros(deepest + 1, np.int64)
    at = np.zeros(deepest + 1, np.int64)
    count = np.zeros(room.most.size, np.int64)
    left[0] = room.free
    chosen[:] = 0
    best, known = above, False
    if must == 0 and best < 0:
        best = 0
    depth = t = seen = 0
    while True:
        found = False
        end = room.begin[depth + 1] if depth < must else n
        while t < end:
            begin = loose if depth < must else t
            bound = UNBOUNDED
            for r in range(m):
                if density[begin, r] < UNBOUNDED:
                    bound = min(bound, left[depth, r] * density[begin, r])
            if depth < must:
                gain = worth[depth] + items.value[t]
                if gain + worthy[depth + 1] + bound + ERROR < best + 1:
                    t = end
                    break
                if priced:
                    spent = dear * (left[depth, m - 1] - items.demand[t, m - 1])
                    if gain + net[depth + 1] + spent + ERROR < best + 1:
                        t += 1
                        continue
            elif worth[depth] + bound + ERROR < best + 1:
                t = end
                break
            found = depth < must or count[items.group[t]] < room.most[items.group[t]]
            for r in range(m):
                found = found and items.demand[t, r] <= left[depth, r]
            if found:
                break
            t += 1
        if found:
            seen += 1
            if seen > nodes or (known and seen > few):
                return best, 0
            at[depth] = t
            left[depth + 1] = left[depth] - items.demand[t]
            worth[depth + 1] = worth[depth] + items.value[t]
            if depth >= must:
                count[items.group[t]] += 1
            depth += 1
            if depth <= must:
                t = room.begin[depth]
            if depth >= must and worth[depth] > best:
                best, known = worth[depth], True
                chosen[:] = 0
                for k in range(depth):
                    chosen[at[k]] += 1
            continue
        if depth == 0:
            return best, 1
        depth -= 1
        t = at[depth]
        if depth >= must:
            count[items.group[t]] -= 1
        t += 1
