"""What random plans and random instances are drawn of: parts, shares, orders, and numbers as large as real ones.

Real numbers are 10^3 to 10^7 ticks, zeros, ties and extremes.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Collection
from itertools import pairwise
from typing import Any, TypeVar

from pydantic import ValidationError

from mapgap.core import InstanceBase

Made = TypeVar("Made", bound=InstanceBase)
Stretch = Callable[[int], int]

LEAST, LARGEST = 10**3, 10**7


def generated(family: str, seed: int | str) -> dict[str, Any]:
    """Name, source and tags of an instance of a family."""
    return {
        "name": f"{family}_{seed}",
        "source": f"generated: family {family}",
        "tags": ("generated", family),
    }


def enlarged(small: Made, seed: int, change: Callable[[random.Random, int], dict[str, Any]]) -> Made:
    """The instance of the family ``realistic``: a small one with numbers as large as its sums allow.

    Parameters
    ----------
    small : InstanceBase
    seed : int
    change : callable
        ``change(rng, largest)``: the fields with numbers up to ``largest``.
    """

    def make(largest: int) -> Made:
        changes = change(random.Random(f"realistic-{seed}"), largest)
        return small.changed(**generated("realistic", seed), **changes)

    return largest_valid(make)


def stretched(rng: random.Random, most: int, largest: int) -> Stretch:
    """A random map of the integers up to ``most`` that never falls; 0 stays 0.

    Magnitudes are spread over the logarithm from ``LEAST`` to ``largest``; in a third of the cases they are few, in a
    third many of them are 1 or ``largest``. Equal values stay equal, so that what an instance shares stays shared.
    """
    kind = rng.choice(("spread", "ties", "extremes"))
    top = math.log10(max(largest, LEAST))
    drawn = [int(10 ** rng.uniform(math.log10(LEAST), top)) for _ in range(most)]
    if kind == "ties":
        drawn = rng.choices(drawn[: max(1, most // 3)], k=most)
    if kind == "extremes":
        drawn = [rng.choice((1, ticks, largest)) for ticks in drawn]
    table = (0, *sorted(drawn))
    return lambda value: table[value]


def largest_valid(make: Callable[[int], Made]) -> Made:
    """``make(largest)`` for the largest magnitude whose sums an instance allows."""
    largest = LARGEST
    while True:
        try:
            return make(largest)
        except ValidationError:
            if largest <= LEAST:
                raise
            largest = max(LEAST, largest // 3)


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
