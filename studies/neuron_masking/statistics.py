"""Statistics over seeds and fleets: Student's intervals, pooled differences, equivalence, Holm's correction, power.

A pooled difference is the mean of the fleets' mean differences, every fleet with the same weight. Fleets are strata:
the error is that of the seeds within them (Welch and Satterthwaite, unequal variances), and the statement is about
these fleets. Two other views stand beside it: :func:`flipped_p` asks for no normal distribution, and :func:`across`
takes the fleets themselves as the sample, for a statement about fleets like these.

Every run splits the same few images into training and test anew, so runs share images and are not independent. With
``overlap``, images for test by images for training, the variance of a mean gets that part of a single value's variance
besides (Nadeau and Bengio 2003, "Inference for the Generalization Error", Machine Learning 52).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import mean, stdev, variance
from typing import Any

import numpy as np

LEVEL = 0.05  #: of a claim, over all tests of a table together
CONFIDENCE = 0.95
FLIPS = 20_000  #: draws of random signs


def _distributions() -> Any:
    """SciPy's distributions; an installation without the extra has the rest of this module."""
    from scipy import stats

    return stats


def interval(values: Sequence[float]) -> tuple[float, float | None]:
    """Mean and half-width of its 95 % interval (Student); ``None`` for fewer than two values."""
    if len(values) < 2:
        return mean(values), None
    quantile = float(_distributions().t.ppf((1 + CONFIDENCE) / 2, len(values) - 1))
    return mean(values), quantile * stdev(values) / math.sqrt(len(values))


@dataclass(frozen=True)
class Pooled:
    """A mean with its standard error and degrees of freedom."""

    mean: float
    error: float
    freedom: float

    def half(self, confidence: float = CONFIDENCE) -> float:
        """Half-width of the interval of the mean."""
        return float(_distributions().t.ppf((1 + confidence) / 2, self.freedom)) * self.error

    @property
    def p(self) -> float:
        """Of the hypothesis that the mean is 0, two-sided."""
        return min(1.0, 2 * self._beyond(abs(self.mean)))

    def equivalence_p(self, margin: float) -> float:
        """Of the hypothesis that the mean is ``margin`` or more away from 0: two one-sided tests (Schuirmann 1987)."""
        return max(self._beyond(margin - self.mean), self._beyond(margin + self.mean))

    def _beyond(self, distance: float) -> float:
        """Chance of an estimate that is off by ``distance`` or more on one side."""
        if self.error == 0.0:  # no test: all values are equal
            return 0.0 if distance > 0 else 1.0
        return float(_distributions().t.sf(distance / self.error, self.freedom))


def pooled(groups: Sequence[Sequence[float]], overlap: float = 0.0) -> Pooled | None:
    """Mean of the groups' means; ``None`` without groups, or if one has fewer than two values."""
    if not groups or any(len(group) < 2 for group in groups):
        return None
    errors = [variance(group) / len(group) for group in groups]
    total = sum(errors)
    spread = sum(error**2 / (len(group) - 1) for error, group in zip(errors, groups, strict=True))
    freedom = total**2 / spread if spread else float(sum(len(group) - 1 for group in groups))
    error = math.sqrt(total / len(groups) ** 2 + overlap * mean(variance(group) for group in groups))
    return Pooled(mean(mean(group) for group in groups), error, freedom)


def flipped_p(groups: Sequence[Sequence[float]], draws: int = FLIPS) -> float:
    """Two-sided p of the pooled mean under random signs of all differences (Fisher's randomisation test).

    It supposes that a difference is as likely as its negative, and nothing else. The signs are drawn from a fixed seed;
    the observed signs count as a draw, so that no p is below ``1 / (draws + 1)``.
    """
    weighted = np.concatenate([np.asarray(group, dtype=float) / len(group) for group in groups])
    signs = np.random.default_rng(0).choice([-1.0, 1.0], size=(draws, len(weighted)))
    seen = abs(weighted.sum())
    return float((1 + np.count_nonzero(abs(signs @ weighted) >= seen - 1e-9)) / (1 + draws))


def across(groups: Sequence[Sequence[float]]) -> float | None:
    """Half-width of the 95 % interval with the groups' means as the sample; ``None`` for fewer than two groups."""
    return interval([mean(group) for group in groups])[1] if len(groups) > 1 else None


def equivalence_power(spread: float, groups: int, size: int, true: float, margin: float, level: float) -> float:
    """Chance to show equivalence, from below (Bonferroni over the two one-sided tests).

    Parameters
    ----------
    spread : float
        Standard deviation of a difference within a group.
    groups, size : int
        Groups and values in each.
    true : float
        The true mean difference.
    margin, level : float
        Of the test.
    """
    freedom = groups * (size - 1)
    error = spread / math.sqrt(groups * size)
    stats = _distributions()
    quantile = stats.t.ppf(1 - level, freedom)
    missed = sum(float(stats.nct.cdf(quantile, freedom, (margin + way * true) / error)) for way in (-1, 1))
    return max(0.0, 1.0 - missed)


def holm(values: Sequence[float]) -> list[float]:
    """Adjusted p-values (Holm 1979): claiming those up to a level errs at all with no more than that probability.

    The smallest of ``m`` is multiplied by ``m``, the next by ``m - 1``, …; none may fall below a smaller one's.
    """
    found = [0.0] * len(values)
    least = 0.0
    for passed, (value, place) in enumerate(sorted((value, place) for place, value in enumerate(values))):
        least = max(least, min(1.0, (len(values) - passed) * value))
        found[place] = least
    return found
