"""Statistics over few seeds: Student's interval and test, and Holm's correction for many tests."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import mean, stdev

LEVEL = 0.05  #: of a claim, over all tests of a table together
#: Upper 2.5 % points of Student's t with 1, 2, ... degrees of freedom.
STUDENT = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131)


def interval(values: Sequence[float]) -> tuple[float, float | None]:
    """Mean and half-width of its 95 % interval (Student); ``None`` for fewer than two values or more than 16."""
    if not 2 <= len(values) <= len(STUDENT) + 1:
        return mean(values), None
    return mean(values), STUDENT[len(values) - 2] * stdev(values) / math.sqrt(len(values))


def two_sided(t: float, freedom: int) -> float:
    """Probability that Student's t is at least ``|t|`` away from 0 (Abramowitz and Stegun, 26.7.3 and 26.7.4)."""
    angle = math.atan(abs(t) / math.sqrt(freedom))
    odd = freedom % 2
    term = math.cos(angle) if odd else 1.0
    total = 0.0
    for k in range(1 + odd, freedom, 2):  # the series ends with the power freedom - 2 of the cosine
        total += term
        term *= k / (k + 1) * math.cos(angle) ** 2
    inside = 2 / math.pi * (angle + math.sin(angle) * total) if odd else math.sin(angle) * total
    return max(0.0, 1.0 - inside)


def p_value(differences: Sequence[float]) -> float | None:
    """Of the hypothesis that paired differences have mean 0 (two-sided t-test); ``None`` for fewer than two."""
    if len(differences) < 2:
        return None
    centre, error = mean(differences), stdev(differences) / math.sqrt(len(differences))
    if error == 0.0:
        return 0.0 if centre else 1.0
    return two_sided(centre / error, len(differences) - 1)


def holm(values: Sequence[float | None]) -> list[float | None]:
    """Adjusted p-values (Holm 1979): claiming those up to a level errs at all with no more than that probability.

    The smallest of ``m`` is multiplied by ``m``, the next by ``m - 1``, …; none may fall below a smaller one's.
    """
    tested = sorted((value, place) for place, value in enumerate(values) if value is not None)
    found: list[float | None] = [None] * len(values)
    least = 0.0
    for passed, (value, place) in enumerate(tested):
        least = max(least, min(1.0, (len(tested) - passed) * value))
        found[place] = least
    return found
