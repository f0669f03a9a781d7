"""Statistics over few seeds: Student's interval and test, and Holm's correction for many tests."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import mean, stdev

from scipy import stats

LEVEL = 0.05  #: of a claim, over all tests of a table together
CONFIDENCE = 0.95


def interval(values: Sequence[float]) -> tuple[float, float | None]:
    """Mean and half-width of its 95 % interval (Student); ``None`` for fewer than two values."""
    if len(values) < 2:
        return mean(values), None
    quantile = float(stats.t.ppf((1 + CONFIDENCE) / 2, len(values) - 1))
    return mean(values), quantile * stdev(values) / math.sqrt(len(values))


def p_value(differences: Sequence[float]) -> float | None:
    """Of the hypothesis that paired differences have mean 0 (two-sided t-test); ``None`` for fewer than two."""
    if len(differences) < 2:
        return None
    if stdev(differences) == 0.0:  # no test: they all differ, or none does
        return 0.0 if differences[0] else 1.0
    return float(stats.ttest_1samp(differences, 0.0).pvalue)


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
