"""What shares of a box take at least: part of the writer, standard library only.

A *box* is groups ``(low, high, number)``: so many shares of ``low`` to ``high`` samples each, larger shares first.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from functools import lru_cache
from itertools import accumulate, pairwise, product
from math import prod
from operator import add, le

Box = tuple[tuple[int, int, int], ...]
COUNTED = 16  #: numbers of shares, by group, up to which least lengths keep groups apart
GRAIN = 1 << 10  #: parts of a tick in which what a sample takes is counted


@lru_cache(100_000)
def lines(table: tuple[int, ...], low: int, high: int) -> tuple[tuple[int, int], ...]:
    """Pairs ``(alpha, beta)``: ``alpha + beta s`` grains are at most ``table[s - 1]`` ticks for ``low <= s <= high``.

    Slopes are those of the lower convex hull, rounded; whatever they are, every alpha is the largest that is valid.
    """
    hull: list[tuple[int, int]] = []
    for s in range(low, high + 1):
        while len(hull) > 1:
            (a, u), (b, v) = hull[-2:]
            if (v - u) * (s - a) < (table[s - 1] - u) * (b - a):
                break
            hull.pop()
        hull.append((s, table[s - 1]))
    slopes = dict.fromkeys([GRAIN * (v - u) // (b - a) for (a, u), (b, v) in pairwise(hull)] or [0])
    return tuple((min(GRAIN * table[s - 1] - beta * s for s in range(low, high + 1)), beta) for beta in slopes)


@lru_cache(10_000)
def quickest(table: tuple[int, ...], box: Box) -> dict[tuple[int, ...], dict[int, int]]:
    """By numbers of shares of every group, and their samples together: least ticks, one after the other."""
    found: dict[tuple[int, ...], dict[int, int]] = {(0,) * len(box): {0: 0}}
    for counts in product(*(range(number + 1) for *_, number in box)):
        g = next((g for g, count in enumerate(counts) if count), None)
        if g is not None:
            fewer = found[(*counts[:g], counts[g] - 1, *counts[g + 1 :])]
            own = found[counts] = {}
            for total, ticks in fewer.items():
                for s in range(box[g][0], box[g][1] + 1):
                    own[total + s] = min(ticks + table[s - 1], own.get(total + s, 1 << 62))
    return found


@lru_cache(100_000)
def least_length(tables: tuple[tuple[int, ...], ...], rates: tuple[int, ...], box: Box, batch: int) -> int:
    """No accelerator ends earlier on some ratio of the box and some places of its shares: least ticks of the longest.

    A length is possible only if what the accelerators can do in it, for some numbers of shares on each, adds up to the
    batch. ``rates`` are grains that a sample takes to come to an accelerator. Of many groups one is made, which has all
    ratios of the box.
    """
    if prod(number + 1 for *_, number in box) > COUNTED:
        box = ((min(low for low, *_ in box), max(high for _, high, _ in box), sum(number for *_, number in box)),)
    loads: list[dict[tuple[int, ...], tuple[list[int], list[int]]]] = []
    for table, rate in zip(tables, rates, strict=True):
        loads.append({})
        for c, own in quickest(table, box).items():
            ends = sorted((t + s * rate // GRAIN, s) for s, t in own.items())
            loads[-1][c] = [t for t, _ in ends], [*accumulate((s for _, s in ends), max)]
    whole = tuple(number for *_, number in box)

    def possible(length: int) -> bool:
        dealt = {(0,) * len(box): 0}
        for load in loads:
            room = [(c, most[k - 1]) for c, (ends, most) in load.items() if (k := bisect_right(ends, length))]
            after: dict[tuple[int, ...], int] = {}
            for c, done in dealt.items():
                for more, s in room:
                    both = (*map(add, c, more),)
                    if all(map(le, both, whole)) and done + s > after.get(both, -1):
                        after[both] = done + s
            dealt = after
        return dealt.get(whole, -1) >= batch

    low, high = 0, max(ends[-1] for load in loads for ends, _ in load.values() if ends)
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if possible(middle) else (middle + 1, high)
    return low


def contains(box: Box, ratio: Sequence[int]) -> bool:
    """Whether the shares of a ratio, largest first, are those of the groups one after the other; 0 are none."""
    least, most = ranges(box)
    if len(ratio) > len(least):
        return False
    return all(map(le, least, ratio)) and all(map(le, ratio, most)) and not any(least[len(ratio) :])


@lru_cache(100_000)
def ranges(box: Box) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Of each share of a box the least and the most samples; what nothing lies between if a group has no share."""
    if any(number < 1 for *_, number in box):
        return (1,), (0,)
    pairs = [(low, high) for low, high, number in box for _ in range(number)]
    return tuple(low for low, _ in pairs), tuple(high for _, high in pairs)


def box(name: str) -> Box:
    """The groups of a box, as its name says."""
    groups = (group.replace("x", "-").replace("w", "-").split("-") for group in name.partition(" ")[0].split(","))
    return tuple((int(low), int(high), int(number)) for low, high, number in groups)


def limits(name: str) -> list[tuple[int, int, bool]]:
    """Of each share of a ratio or a box the least and the most samples, and whether it is left out but for work."""
    if "x" not in name:
        return [(size, size, False) for size in map(int, name.split(","))]
    groups = zip(name.split(","), box(name), strict=True)
    return [(low, high, "w" in group) for group, (low, high, number) in groups for _ in range(number)]
