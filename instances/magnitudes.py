"""Small instances with the numbers of real ones: 10^3 to 10^7 ticks, zeros, ties and extremes."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from typing import TypeVar

from pydantic import ValidationError

Made = TypeVar("Made")
Stretch = Callable[[int], int]

LEAST, LARGEST = 10**3, 10**7


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
