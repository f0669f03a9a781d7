"""What random plans and random instances are drawn of: contiguous parts, shares, orders."""

from __future__ import annotations

import random
from collections.abc import Callable, Collection
from itertools import pairwise


def spans(rng: random.Random, length: int, count: int) -> list[tuple[int, int]]:
    """``0 .. length`` cut into so many parts ``(start, stop)``, none of them empty."""
    cuts = [0, *sorted(rng.sample(range(1, length), count - 1)), length]
    return list(pairwise(cuts))


def shares(rng: random.Random, total: int, count: int) -> tuple[int, ...]:
    """So many whole numbers from 0 on that add up to ``total``."""
    ends = sorted(rng.randint(0, total) for _ in range(count - 1))
    return tuple(b - a for a, b in zip([0, *ends], [*ends, total], strict=True))


def sequence(rng: random.Random, count: int, before: Callable[[int], Collection[int]]) -> list[int]:
    """``0 .. count - 1`` in an order in which everything comes after what is ``before`` it."""
    found: list[int] = []
    waiting = set(range(count))
    ahead = [set(before(item)) for item in range(count)]
    while waiting:
        found.append(rng.choice(sorted(item for item in waiting if not ahead[item] & waiting)))
        waiting.remove(found[-1])
    return found
