"""What shares of a box take at least: part of the writer, standard library only.

A *box* is groups ``(low, high, number)``: so many shares of ``low`` to ``high`` samples each, larger shares first.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise, product
from operator import le

Box = tuple[tuple[int, int, int], ...]
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
