"""Pooled differences, equivalence, random signs, power: against SciPy, enumeration, simulation and textbooks."""

import itertools
import math
from statistics import mean

import numpy as np
import pytest
from scipy import stats

from mapgap.studies.neuron_masking.statistics import (
    across,
    equivalence_power,
    flipped_p,
    holm,
    interval,
    pooled,
)

#: Upper 2.5 % points of Student's t with 1, 2, ... degrees of freedom, as textbooks print them.
STUDENT = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131)
FIRST, SECOND = [1.0, 2.5, 2.0, 4.0, 3.0], [-0.5, 0.5, 7.0]


def test_intervals_are_students():
    # n = 4, mean 2.5, s = 1.29099: 3.182 * 1.29099 / 2 = 2.054.
    centre, half = interval([1.0, 2.0, 3.0, 4.0])
    assert (centre, half) == (2.5, pytest.approx(2.054, abs=1e-3))
    assert interval([1.0]) == (1.0, None)
    for freedom, quantile in enumerate(STUDENT, 1):
        # One value 0 among ones: mean n / (n + 1), standard deviation 1 / sqrt(n + 1), its error 1 / (n + 1).
        values = [0.0] + [1.0] * freedom
        assert interval(values)[1] * (freedom + 1) == pytest.approx(quantile, abs=5e-4)
        assert pooled([values]).half() * (freedom + 1) == pytest.approx(quantile, abs=5e-4)


def test_one_fleet_is_the_paired_t_test():
    found = pooled([FIRST])
    assert (found.mean, found.freedom) == (pytest.approx(2.5), pytest.approx(4))
    assert found.p == pytest.approx(stats.ttest_1samp(FIRST, 0.0).pvalue)
    # By hand, one degree of freedom (Cauchy): P(|t| >= 2) = 2 / pi * atan(1 / 2).
    assert pooled([[1.0, 3.0]]).p == pytest.approx(2 / math.pi * math.atan(0.5))
    assert pooled([[-1.0, 1.0]]).p == pytest.approx(1.0)


def test_two_fleets_have_the_error_of_welchs_test():
    # The mean of a and -b is half the difference of a and b: the same ratio to its error, the same freedom.
    found = pooled([FIRST, [-value for value in SECOND]])
    assert found.p == pytest.approx(stats.ttest_ind(FIRST, SECOND, equal_var=False).pvalue)
    # By hand: variances 5/3, each mean has 5/12; error sqrt(10/12) / 2; equal variances and sizes: freedom 3 + 3.
    same = pooled([[1.0, 2.0, 3.0, 4.0], [3.0, 4.0, 5.0, 6.0]])
    assert (same.mean, same.freedom) == (pytest.approx(3.5), pytest.approx(6))
    assert same.error == pytest.approx(math.sqrt(10 / 12) / 2)


def test_fleets_weigh_the_same_whatever_their_seeds():
    assert pooled([[0.0, 2.0], [5.0] * 10]).mean == pytest.approx(3.0)


def test_runs_that_share_images_say_less():
    """Nadeau and Bengio, Eq. 8: variance (1/n + test/train), here of 4 and of 2 x 4 values of variance 4/3."""
    values = [-1.0, 1.0, -1.0, 1.0]
    assert pooled([values], 0.25).error == pytest.approx(math.sqrt(4 / 3 * (1 / 4 + 1 / 4)))
    assert pooled([values, values], 0.25).error == pytest.approx(math.sqrt(4 / 3 * (1 / 8 + 1 / 4)))


def test_nothing_is_pooled_from_single_values():
    assert pooled([]) is None
    assert pooled([FIRST, [1.0]]) is None


def test_equal_values_need_no_test():
    assert (pooled([[2.0, 2.0]]).p, pooled([[0.0, 0.0]]).p) == (0.0, 1.0)
    assert (pooled([[0.5, 0.5]]).equivalence_p(1.0), pooled([[1.0, 1.0]]).equivalence_p(1.0)) == (0.0, 1.0)


@pytest.mark.parametrize("shift", [-2.0, 0.0, 0.3, 1.5])
def test_equivalence_is_two_one_sided_tests(shift):
    values = [value - 2.5 + shift for value in FIRST]
    below = stats.ttest_1samp(values, 2.0, alternative="less").pvalue
    above = stats.ttest_1samp(values, -2.0, alternative="greater").pvalue
    found = pooled([values])
    assert found.equivalence_p(2.0) == pytest.approx(max(below, above))
    # The same decision by the 90 % interval (Schuirmann 1987).
    inside = abs(found.mean) + found.half(0.9) < 2.0
    assert (found.equivalence_p(2.0) < 0.05) == inside


def test_random_signs_approach_all_signs():
    groups = [[1.0, 2.0, -0.5], [0.5, 3.0]]
    weighted = [value / len(group) for group in groups for value in group]
    sums = [
        abs(sum(s * w for s, w in zip(signs, weighted, strict=True))) for signs in itertools.product((-1, 1), repeat=5)
    ]
    exact = sum(value >= abs(sum(weighted)) - 1e-9 for value in sums) / 32
    assert flipped_p(groups) == pytest.approx(exact, abs=0.02)
    assert flipped_p([[1.0] * 30], draws=99) == 0.01  # no draw of 99 is as extreme: (1 + 0) / 100
    assert flipped_p([[0.0, 0.0]]) == 1.0


def test_fleets_as_the_sample():
    assert across([[1.0, 3.0], [4.0]]) == pytest.approx(interval([2.0, 4.0])[1])
    assert across([FIRST]) is None


def test_holm_by_hand():
    # Sorted 0.005, 0.01, 0.03, 0.04 times 4, 3, 2, 1: 0.02, 0.03, 0.06, and 0.04, which may not fall below 0.06.
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.9, 0.8]) == [1.0, 1.0]
    assert holm([]) == []


@pytest.mark.in_turn
@pytest.mark.parametrize(("size", "true"), [(4, 0.0), (8, 0.25)])
def test_power_is_the_share_of_simulated_studies(size, true):
    rng = np.random.default_rng(5)
    shown = [pooled(list(rng.normal(true, 1.5, (3, size)))).equivalence_p(1.0) <= 0.05 for _ in range(2000)]
    # Half-width of the simulation's own 99.7 % interval: 3 * sqrt(0.25 / 2000) = 0.034.
    assert equivalence_power(1.5, 3, size, true, 1.0, 0.05) == pytest.approx(mean(shown), abs=0.05)
    assert equivalence_power(1.5, 3, 2, 0.0, 0.01, 0.05) == 0.0  # hopeless, and not negative
