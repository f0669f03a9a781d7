"""The checker of neuron masking for certificates; rules as in the package's docstring. Standard library only.

Given the cycle time the devices are independent, so bounds of single devices add up. A single device is a chain of
counts ``n_1 .. n_I``. Its limits give rows ``a W + b M <= c`` (what is rounded up is dropped, so no mask is lost). With
multipliers ``y >= 0`` and a scale D > 0, every mask within the limits has

    D value(n)  <=  D value(n) + sum_k y_k (c_k - a_k W(n) - b_k M(n)).

The right-hand side couples neighbouring layers only. So its maximum over a box of counts, also with one ``n_i`` fixed,
follows from a recursion along the chain, in which ``n_{i-1}`` gives every ``n_i`` a line. A mask of a value above the
bound needs a maximum of at least D (bound + 1); counts that do not reach it are none of such a mask.

Proof per device: its bound, and steps that visit boxes depth first, all layers from ``least`` to ``neurons`` first.

- ``["s", i, v]`` splits the box at ``n_i <= v`` and ``n_i >= v + 1``; the first half comes next.
- ``["m", D, y, …]`` narrows every layer to the span of the counts that reach the maximum that is needed.
- ``["e", D, y, …]`` lists all masks of the box that reach it; each breaks a limit or has no larger value.

A box is done when it is empty, when its masks are listed, or when its least mask breaks a limit: costs grow with every
count.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from operator import add, mul
from typing import Any

SENSE = "max"
SHARE = 10_000
MS_PER_HOUR = 3_600_000
LISTED = 4_000_000  # counts that one listing may look at

Box = tuple[list[int], list[int]]


def check(instance: dict[str, Any], bound: int, proof: Sequence[Any]) -> str | None:
    """Why the proof fails; ``None`` if no plan has an objective above ``bound``.

    ``proof`` has one entry per cycle time: per device ``[bound, steps]``, or the index of a cycle time with a larger
    index whose limits are no tighter, so that its bounds serve. Where no mask exists, or for the objective
    ``smallest_share``, it is not looked at.
    """
    known: dict[int, int] = {}
    for cycle in reversed(range(len(instance["cycle_ms"]))):
        chains = [Chain(instance, d, cycle) for d in range(len(instance["devices"]))]
        if not all(chain.fits(chain.lower) for chain in chains):
            continue
        if instance["objective"] == "smallest_share":
            if all(chain.reaches(bound + 1) for chain in chains):
                return f"cycle {cycle}: every device has a mask of share {bound + 1}"
            continue
        if type(given := proof[cycle]) is int:
            if given not in known or not no_tighter(instance, given, cycle):
                return f"cycle {cycle}: cycle {given} bounds nothing"
            known[cycle] = known[given]
        else:
            for chain, (limit, steps) in zip(chains, given, strict=True):
                if (reason := chain.bounded(limit, steps)) is not None:
                    return f"cycle {cycle}: {reason}"
            known[cycle] = sum(limit for limit, _ in given)
        value = known[cycle]
        if instance["objective"] == "rate":
            value = MS_PER_HOUR * value // instance["cycle_ms"][cycle]
        if value > bound:
            return f"cycle {cycle}: only {value} is proven"
    return None


def no_tighter(instance: dict[str, Any], one: int, other: int) -> bool:
    """Does cycle ``one`` allow every mask of cycle ``other``?"""
    names = ("time_limit", "work_limit")
    return all(device[name][one] >= device[name][other] for device in instance["devices"] for name in names)


class Chain:
    """One device under one cycle time."""

    def __init__(self, instance: dict[str, Any], device: int, cycle: int) -> None:
        layers, facts = instance["layers"], instance["devices"][device]
        self.inputs = instance["inputs"]
        self.lower, self.upper = ([layer[key] for layer in layers] for key in ("least", "neurons"))
        self.work, self.weights, self.features = ([x[key] for x in layers] for key in ("work", "weights", "features"))
        gains = [[1] * n for n in self.upper]
        if instance["objective"] in ("contribution", "rate"):
            gains = [sorted(row, reverse=True) for row in facts["contributions"]]
        self.value = [[0, *accumulate(row)] for row in gains]
        self.hard = instance["memory_mode"] == "hard"
        self.work_limit, self.time_limit = facts["work_limit"][cycle], facts["time_limit"][cycle] - facts["overhead"]
        self.memory_limit, self.transfer, self.spill = (facts[key] for key in ("memory_limit", "transfer", "spill"))
        (move, per), (more, each) = ((rate["ticks"], rate["per"]) for rate in (self.transfer, self.spill))
        self.rows = [(1, 0, self.work_limit), (per, move, per * self.time_limit)]
        if self.hard:
            self.rows.append((0, 1, self.memory_limit))
        else:  # W + transfer M + spill (M - b_M) <= b_T - overhead, which also holds where nothing spills
            limit = per * (each * self.time_limit + more * self.memory_limit)
            self.rows.append((per * each, move * each + more * per, limit))

    def fits(self, kept: Sequence[int]) -> bool:
        """Eqs. (1) to (5)."""
        pairs = list(map(mul, [self.inputs, *kept], kept))
        work = sum(map(mul, self.work, pairs))
        memory = sum(map(mul, self.weights, pairs)) + sum(map(mul, self.features, kept))
        if work > self.work_limit or (self.hard and memory > self.memory_limit):
            return False
        over = 0 if self.hard else max(0, memory - self.memory_limit)
        moved = -(-self.transfer["ticks"] * memory // self.transfer["per"])
        return bool(work + moved - (-self.spill["ticks"] * over // self.spill["per"]) <= self.time_limit)

    def reaches(self, share: int) -> bool:
        """Is there a mask whose smallest share is at least this? The least counts that reach it decide."""
        kept = [max(low, -(-share * n // SHARE)) for low, n in zip(self.lower, self.upper, strict=True)]
        return all(k <= n for k, n in zip(kept, self.upper, strict=True)) and self.fits(kept)

    def bounded(self, limit: int, steps: Iterable[Any]) -> str | None:
        """Why the steps do not show that no mask has a value above ``limit``."""
        if type(limit) is not int:
            return "a bound that is no integer"
        boxes: list[Box] = [(self.lower, self.upper)]
        following: Iterator[Any] = iter(steps)
        while boxes:
            lower, upper = boxes.pop()
            if any(low > high for low, high in zip(lower, upper, strict=True)) or not self.fits(lower):
                continue
            step: list[Any] = next(following, ["?"])
            kind, numbers = step[0], step[1:]
            if not all(type(n) is int and n >= 0 for n in numbers):
                return "a step with something else than natural numbers"
            if kind == "s":
                i, v = numbers
                below, above = upper[:], lower[:]
                below[i], above[i] = min(upper[i], v), max(lower[i], v + 1)
                boxes += [(above, upper), (lower, below)]
            elif kind in ("m", "e") and numbers[0] > 0 and len(numbers) == 1 + len(self.rows):
                lagrangian = Lagrangian(self, (lower, upper), limit, numbers[0], numbers[1:])
                if kind == "m":
                    boxes += lagrangian.narrowed()
                elif (reason := lagrangian.exception()) is not None:
                    return reason
            else:
                return "a step that is none, or a box that is not done"
        return None if next(following, None) is None else "steps are left"


class Lagrangian:
    """The Lagrangian over a box: what each count adds by itself, and what each pair of neighbouring ones costs."""

    def __init__(self, chain: Chain, box: Box, limit: int, scale: int, y: list[int]) -> None:
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
