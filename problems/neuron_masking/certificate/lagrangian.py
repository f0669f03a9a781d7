"""The Lagrangian of a device over a box of counts: part of the checker, standard library only.

With multipliers ``y >= 0`` and a scale D > 0, every mask within the limits has

    D value(n)  <=  D value(n) + sum_k y_k (c_k - a_k W(n) - b_k M(n)).

The right-hand side couples neighbouring layers only. So its maximum over a box of counts, also with one ``n_i`` fixed,
follows from a recursion along the chain, in which ``n_{i-1}`` gives every ``n_i`` a line. A mask of a value above the
bound needs a maximum of at least D (bound + 1); counts that do not reach it are none of such a mask.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import add
from typing import Any

LISTED = 4_000_000  # counts that one listing may look at

Box = tuple[list[int], list[int]]


class Lagrangian:
    """The Lagrangian over a box: what each count adds by itself, and what each pair of neighbouring ones costs."""

    def __init__(self, chain: Any, box: Box, limit: int, scale: int, y: list[int]) -> None:
        self.chain, self.limit = chain, limit
        self.counts = [range(low, high + 1) for low, high in zip(*box, strict=True)]
        a, b, c = (sum(k * row[part] for k, row in zip(y, chain.rows, strict=True)) for part in range(3))
        self.needed = scale * (limit + 1) - c
        self.pair = [a * w + b * m for w, m in zip(chain.work, chain.weights, strict=True)]
        costs = [b * features for features in chain.features]
        costs[0] += self.pair[0] * chain.inputs
        self.pair[0] = 0
        rows = zip(self.counts, chain.value, costs, strict=True)
        self.single = [[scale * value[n] - cost * n for n in counts] for counts, value, cost in rows]
        #: ``before[i][k]``: the most that layers 0 to i reach if layer i keeps the k-th of its counts.
        self.before = recursion(self.counts, self.single, self.pair)

    def narrowed(self) -> list[Box]:
        """The box of the counts that reach what is needed, or none."""
        if max(self.before[-1]) < self.needed:
            return []
        after = recursion(self.counts[::-1], self.single[::-1], [0, *self.pair[:0:-1]])[::-1]
        spans = []
        for counts, *parts in zip(self.counts, self.before, after, self.single, strict=True):
            reached = [n for n, x, y, own in zip(counts, *parts, strict=True) if x + y - own >= self.needed]
            spans.append((reached[0], reached[-1]))
        return [([low for low, _ in spans], [high for _, high in spans])]

    def exception(self) -> str | None:
        """List all masks that reach what is needed, from the last layer to the first."""
        looked, last = 0, len(self.counts) - 1
        stack: list[tuple[list[int], int]] = [([], self.needed)]
        while stack:
            kept, left = stack.pop()
            if (i := last - len(kept)) < 0:
                value = sum(row[n] for row, n in zip(self.chain.value, kept, strict=True))
                if value > self.limit and self.chain.fits(kept):
                    return f"a mask of a value above {self.limit}"
                continue
            slope = self.pair[i + 1] * kept[0] if kept else 0
            looked += len(self.counts[i])
            if looked > LISTED:
                return "too many masks to list"
            rows = zip(self.counts[i], self.before[i], self.single[i], strict=True)
            stack += [([n, *kept], left - own + slope * n) for n, most, own in rows if most - slope * n >= left]
        return None


def recursion(counts: Sequence[range], single: Sequence[list[int]], pair: Sequence[int]) -> list[list[int]]:
    """Per layer and count the most that this and all earlier layers reach."""
    found = [list(single[0])]
    for i in range(1, len(counts)):
        lines = [(-pair[i] * n, height) for n, height in zip(counts[i - 1], found[-1], strict=True)]
        found.append(list(map(add, upper_envelope(lines, counts[i]), single[i])))
    return found


def upper_envelope(lines: Sequence[tuple[int, int]], asked: Iterable[int]) -> list[int]:
    """Largest of ``slope x + height`` at rising x >= 0; the lines come by falling slope.

    A line leaves the hull if it is nowhere above both of its neighbours.
    """
    hull: list[tuple[int, int]] = []
    for slope, height in lines:
        while hull and hull[-1][1] <= height and hull[-1][0] == slope:
            hull.pop()
        while len(hull) > 1:
            (s1, h1), (s2, h2) = hull[-2:]
            if (h2 - h1) * (s1 - slope) > (height - h1) * (s1 - s2):
                break
            hull.pop()
        hull.append((slope, height))
    found, k = [], len(hull) - 1
    for x in asked:
        while k > 0 and hull[k - 1][0] * x + hull[k - 1][1] >= hull[k][0] * x + hull[k][1]:
            k -= 1
        found.append(hull[k][0] * x + hull[k][1])
    return found
