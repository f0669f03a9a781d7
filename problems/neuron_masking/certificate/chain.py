"""A device under one cycle time, a chain of counts, and the steps of its proof: part of the checker, standard library
only.

The limits give rows ``a W + b M <= c``; what is rounded up is dropped, so no mask is lost. Steps visit boxes of counts
depth first, all layers from ``least`` to ``neurons`` first:

- ``["s", i, v]`` splits the box at ``n_i <= v`` and ``n_i >= v + 1``; the first half comes next.
- ``["m", D, y, …]`` narrows every layer to the span of the counts that reach the maximum that is needed.
- ``["e", D, y, …]`` lists all masks of the box that reach it; each breaks a limit or has no larger value.

A box is done when it is empty, when its masks are listed, or when its least mask breaks a limit: costs grow with every
count.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from operator import mul
from typing import Any

from .lagrangian import Box, Lagrangian

SHARE = 10_000


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
