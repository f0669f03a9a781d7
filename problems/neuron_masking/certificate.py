"""The checker of neuron masking for certificates; rules as in the package's docstring. Standard library only.

Given the cycle time the devices are independent, so bounds of single devices add up. A single device is a chain of
counts ``n_1 .. n_I``. Its limits give rows ``a W + b M <= c`` (what is rounded up is dropped, so no mask is lost). With
multipliers ``y >= 0`` over a common denominator D, the Lagrangian

    D value(n) + sum_k y_k (c_k - a_k W(n) - b_k M(n))

is at least ``D value(n)`` on every mask. Its maximum follows from a recursion along the chain: given ``n_{i-1}`` the
layers from i on are independent of the ones before, and every ``n_i`` is a line in ``n_{i-1}``. Masks on which it
exceeds the bound are enumerated, and each has to break a limit. Boxes of counts may have multipliers of their own.
"""

from __future__ import annotations

from itertools import accumulate
from typing import Any

SENSE = "max"
SHARE = 10_000
MS_PER_HOUR = 3_600_000
ENUMERATED = 200_000  # masks of one box at most


def check(instance: dict[str, Any], bound: int, proof: dict[str, Any]) -> str | None:
    """Why the proof fails; ``None`` if no plan has an objective above ``bound``.

    ``proof["cycles"]`` holds, by index of the cycle time, per device ``{"bound": u, "boxes": steps}``, or the index of
    a cycle time whose limits are no tighter and whose bounds serve.
    """
    known: dict[int, int] = {}
    for cycle in range(len(instance["cycle_ms"])):
        chains = [Chain(instance, d, cycle) for d in range(len(instance["devices"]))]
        if any(not chain.fits(chain.lower) for chain in chains):
            continue  # costs grow with every count: no mask at all
        if instance["objective"] == "smallest_share":
            if all(chain.reaches(bound + 1) for chain in chains):
                return f"cycle {cycle}: every device has a mask of share {bound + 1}"
            continue
        given = proof["cycles"][str(cycle)]
        if type(given) is int:
            if given not in known or not no_tighter(instance, given, cycle):
                return f"cycle {cycle}: cycle {given} bounds nothing"
            known[cycle] = known[given]
        else:
            for chain, part in zip(chains, given, strict=True):
                reason = chain.bounded(part["bound"], part["boxes"])
                if reason is not None:
                    return f"cycle {cycle}: {reason}"
            known[cycle] = sum(part["bound"] for part in given)
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
        self.lower = [layer["least"] for layer in layers]
        self.upper = [layer["neurons"] for layer in layers]
        self.work, self.weights, self.features = ([x[key] for x in layers] for key in ("work", "weights", "features"))
        gains = [[1] * n for n in self.upper]
        if instance["objective"] in ("contribution", "rate"):
            gains = [sorted(row, reverse=True) for row in facts["contributions"]]
        self.value = [[0, *accumulate(row)] for row in gains]
        self.hard = instance["memory_mode"] == "hard"
        self.work_limit, self.time_limit = facts["work_limit"][cycle], facts["time_limit"][cycle] - facts["overhead"]
        self.memory_limit = facts["memory_limit"]
        self.transfer, self.spill = (facts[name] for name in ("transfer", "spill"))
        move, per = self.transfer["ticks"], self.transfer["per"]
        rows = [(1, 0, self.work_limit), (per, move, per * self.time_limit)]
        if self.hard:
            rows.append((0, 1, self.memory_limit))
        else:  # W + transfer M + spill (M - b_M) <= b_T - overhead, which also holds where nothing spills
            both, over = per * self.spill["per"], per * self.spill["ticks"]
            rows.append((both, move * self.spill["per"] + over, both * self.time_limit + over * self.memory_limit))
        self.rows = rows

    def costs(self, kept: list[int]) -> tuple[int, int]:
        """W and M (Eqs. 1 and 2)."""
        work = memory = 0
        for i, (before, n) in enumerate(zip([self.inputs, *kept], kept, strict=False)):
            work += self.work[i] * before * n
            memory += self.weights[i] * before * n + self.features[i] * n
        return work, memory

    def fits(self, kept: list[int]) -> bool:
        """Eq. (5)."""
        work, memory = self.costs(kept)
        if work > self.work_limit or (self.hard and memory > self.memory_limit):
            return False
        over = 0 if self.hard else max(0, memory - self.memory_limit)
        moved = -(-self.transfer["ticks"] * memory // self.transfer["per"])
        return bool(work + moved - (-self.spill["ticks"] * over // self.spill["per"]) <= self.time_limit)

    def reaches(self, share: int) -> bool:
        """Is there a mask whose smallest share is at least this? The least counts that reach it decide."""
        kept = [max(low, -(-share * n // SHARE)) for low, n in zip(self.lower, self.upper, strict=True)]
        return all(k <= n for k, n in zip(kept, self.upper, strict=True)) and self.fits(kept)

    def bounded(self, limit: int, boxes: list[Any]) -> str | None:
        """Follow the boxes depth first: ``["s", layer, v]`` splits at ``n <= v``, ``["m", D, y…]`` closes one."""
        open_boxes, steps = [(self.lower[:], self.upper[:])], iter(boxes)
        while open_boxes:
            lower, upper = open_boxes.pop()
            kind, *numbers = next(steps)
            if not all(type(n) is int and n >= 0 for n in numbers):
                return "a step with something else than natural numbers"
            if kind == "s":
                i, v = numbers
                above, below = lower[:], upper[:]
                above[i], below[i] = max(lower[i], v + 1), min(upper[i], v)
                open_boxes += [(above, upper), (lower, below)]
            elif any(low > high for low, high in zip(lower, upper, strict=True)):
                continue
            elif not self.closed(limit, lower, upper, numbers[0], numbers[1:]):
                return "a box holds a mask of a larger value, or too many to look at"
        return None if next(steps, None) is None else "steps are left"

    def closed(self, limit: int, lower: list[int], upper: list[int], scale: int, y: list[int]) -> bool:
        """Has no mask of the box that fits a value above ``limit``?"""
        if scale < 1 or len(y) != len(self.rows):
            return False
        tails, single, pair = self.tails(lower, upper, scale, y)
        spare = sum(k * row[2] for k, row in zip(y, self.rows, strict=True))
        needed = scale * (limit + 1) - spare
        if tails[0][0] < needed:
            return True
        looked, stack = 0, [([], needed)]
        while stack:
            kept, left = stack.pop()
            looked += 1
            if looked > ENUMERATED:
                return False
            i, before = len(kept), kept[-1] if kept else self.inputs
            if i == len(lower):
                if self.fits(kept) and sum(row[n] for row, n in zip(self.value, kept, strict=True)) > limit:
                    return False
                continue
            after = tails[i + 1]
            for k, n in enumerate(range(lower[i], upper[i] + 1)):
                own = single[i][k] - pair[i] * before * n
                if own + (after[k] if i + 1 < len(lower) else 0) >= left:
                    stack.append(([*kept, n], left - own))
        return True

    def tails(self, lower: list[int], upper: list[int], scale: int, y: list[int]) -> Any:
        """``tails[i][k]``: the most that layers i, i + 1, … add to the Lagrangian if layer i - 1 keeps its k-th count.

        Also what a count adds by itself, and what a pair of neighbouring counts costs.
        """
        count = len(lower)
        both = [sum(k * row[c] for k, row in zip(y, self.rows, strict=True)) for c in (0, 1)]
        pair = [both[0] * w + both[1] * m for w, m in zip(self.work, self.weights, strict=True)]
        single = [
            [scale * self.value[i][n] - both[1] * self.features[i] * n for n in range(lower[i], upper[i] + 1)]
            for i in range(count)
        ]
        tails: list[list[int]] = [[] for _ in range(count + 1)]
        after = [0] * len(single[-1])
        for i in reversed(range(count)):
            lines = [(-pair[i] * n, single[i][k] + after[k]) for k, n in enumerate(range(lower[i], upper[i] + 1))]
            asked = range(lower[i - 1], upper[i - 1] + 1) if i else [self.inputs]
            tails[i] = after = upper_envelope(lines, asked)
        return tails, single, pair


def upper_envelope(lines: list[tuple[int, int]], asked: Any) -> list[int]:
    """Largest of ``slope x + height`` at rising x; the lines come by falling slope.

    A line goes from the hull if where its neighbours cross it is no higher than they are.
    """
    hull: list[tuple[int, int]] = []
    for slope, height in lines:
        if hull and hull[-1][0] == slope:
            if hull[-1][1] >= height:
                continue
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
