"""Verdicts on published numbers: every kind at its borders, worked out by hand."""

import pytest

from mapgap.core import InputError
from mapgap.reporting.verdicts import judge, of_count, of_difference, of_gain, of_order, of_range, of_value, verdict


@pytest.mark.parametrize(
    ("published", "found", "word"),
    [
        (33, 33, "reproduced"),
        (33, 33.0, "reproduced"),
        (33, 32, "differs"),  # 3 % off is a wrong count
        (385, 374, "differs"),
        (0, 0, "reproduced"),
        (10**7, 10**7 + 1, "differs"),
    ],
)
def test_counts_are_equal_or_differ(published, found, word):
    assert of_count(published, found).word == word


@pytest.mark.parametrize(
    ("published", "found", "word"),
    [
        (100, 110, "reproduced"),
        (100, 90, "reproduced"),
        (100, 110.1, "close"),
        (100, 89.9, "close"),
        (100, 125, "close"),
        (100, 75, "close"),
        (100, 125.1, "differs"),
        (100, 74.9, "differs"),
        (100, -100, "differs"),
        (-100, -110, "reproduced"),
        (0, 0, "reproduced"),
        (0, 1e-6, "differs"),  # there is no scale for a share of nothing
        (1e9, 1.1e9, "reproduced"),
        (1e-9, 1.26e-9, "differs"),
    ],
)
def test_values_by_relative_difference(published, found, word):
    assert of_value(published, found).word == word


@pytest.mark.parametrize(
    ("published", "found", "word"),
    [
        (1.07, 0.97, "differs"),  # 9 % apart as values; but one says faster and the other slower
        (1.1, 1.0, "differs"),  # no gain at all
        (2.0, 2.25, "reproduced"),  # 1.25 of a gain of 1
        (2.0, 2.26, "close"),
        (2.0, 1.5, "close"),
        (2.0, 1.49, "differs"),
        (2.0, 2.5, "close"),
        (2.0, 2.51, "differs"),
        (1.02, 1.03, "reproduced"),  # half as much again, but a point apart
        (1.02, 1.0101, "reproduced"),
        (1.02, 1.031, "differs"),
        (1.0, 1.01, "reproduced"),
        (1.0, 0.99, "reproduced"),
        (1.0, 1.02, "differs"),  # the source says: no gain
        (1.005, 0.999, "differs"),
        (0.95, 0.94, "reproduced"),
        (0.95, 0.93, "close"),
        (0.95, 1.0, "differs"),
    ],
)
def test_ratios_near_one_by_their_gain_and_its_sign(published, found, word):
    assert of_gain(published, found).word == word
    assert of_difference(published - 1, found - 1).word == word


def test_another_sign_is_said():
    assert "sign differs" in str(of_gain(1.07, 0.97))
    assert "sign differs" not in str(of_gain(1.07, 1.0))


@pytest.mark.parametrize(
    ("published", "found", "word"),
    [
        ((10, 20), (15, 25), "reproduced"),  # 5 of 10
        ((10, 20), (15.1, 25.1), "close"),
        ((10, 20), (20, 30), "close"),  # they touch
        ((10, 20), (20.1, 30), "differs"),
        ((10, 20), (12, 13), "reproduced"),  # inside
        ((10, 20), (0, 100), "reproduced"),
        ((10, 20), (19, 21), "reproduced"),  # half of the shorter one
        ((10, 20), (19.5, 21.5), "close"),
        ((10, 20), (15, 15), "reproduced"),  # a point
        ((10, 20), (21, 21), "differs"),
        ((-20, -10), (-15, -25), "reproduced"),  # ends in any order
    ],
)
def test_ranges_by_overlap(published, found, word):
    assert of_range(published, found).word == word
    assert of_range(found, published).word == word


@pytest.mark.parametrize(
    ("sign", "found", "word"),
    [(1, 0.001, "reproduced"), (1, 0, "differs"), (1, -3, "differs"), (-1, -3, "reproduced"), (-1, 2, "differs")],
)
def test_an_order_by_its_sign(sign, found, word):
    assert of_order(sign, found).word == word


def test_the_kinder_verdict_comes_first():
    near, nearer, far = of_value(100, 109), of_value(100, 101), of_value(100, 130)
    assert sorted([far, near, nearer], key=lambda each: each.rank) == [nearer, near, far]


@pytest.mark.parametrize(
    ("published", "found", "kind", "text"),
    [
        (100, 94, "value", "reproduced (-6%)"),
        (33, 30, "count", "differs (-3)"),
        (33, 33, "count", "reproduced"),
        (1.07, 0.97, "gain", "differs (sign differs: -3.0% against +7.0%)"),
        (None, 3, "value", "not comparable"),
        (3, None, "gain", "not comparable"),
    ],
)
def test_a_cell_of_a_table(published, found, kind, text):
    assert verdict(published, found, kind=kind) == text


def test_a_gain_in_percent_is_one_already():
    assert verdict(37, 38, kind="gain", unit="% gain") == "reproduced (+38.0% against +37.0%)"
    assert verdict(25, -3, kind="gain", unit="%").startswith("differs (sign differs")


@pytest.mark.parametrize(
    ("kind", "published", "found", "words"),
    [
        ("valeu", 1, 2, "expected one of count, value, gain, range, order, found 'valeu'; did you mean 'value'"),
        ("range", 1, 2, "published: expected two numbers, found 1"),
        ("range", [1, 2], [1, 2, 3], r"reproduced: expected two numbers, found \[1, 2, 3\]"),
        ("value", [1, 2], 1, r"published: expected a number, found \[1, 2\]"),
        ("value", "OOR", 1, "published: expected a number, found 'OOR'"),
        ("value", 1, "OOR", "reproduced: expected a number, found 'OOR'"),
        ("count", 1, float("nan"), "reproduced: expected a number, found nan"),
    ],
)
def test_what_cannot_be_judged_is_an_error(kind, published, found, words):
    with pytest.raises(InputError, match=words):
        judge(kind, published, found)
