"""Lies that are planted to try the audit: each changes what its kind says, and nothing else."""

import random

import pytest

from mapgap.reporting import mutation

PAGE = """# A page

It is longer: <!-- fig: a/b.c max | .1f -->12.5<!-- /fig --> % in 7 cases. See [this](x-3.md).

```
code 12
```
"""
LEDGER = "- instance: a\n  plan:\n    value: 36\n  bound:\n    value: 35\n  certificate: claimed\n- instance: b\n"
RUNS = (
    '{"instance": "a", "objective": 36, "bound": 35, "wall_s": 1.25}\n{"instance": "b", "objective": 7, "wall_s": 3}\n'
)
CERTIFICATE = '{"instance":{"a":12,"b":[345],"c":7},"bound":98,"proof":76}'
SVG = '<path d="M 1.0 2.0 L 1.0 50.0 z" style="stroke: var(--c0,#000)"/>'


def lied(change, text):
    return {change(random.Random(seed), text) for seed in range(20)}


@pytest.mark.parametrize(
    ("kind", "text", "wanted"),
    [
        ("figure of a page", PAGE, {PAGE.replace("12.5", "22.5")}),
        ("number of a page", PAGE, {PAGE.replace("7 cases", "8 cases")}),
        ("word of a page", PAGE, {PAGE.replace("longer", "shorter")}),
        ("cell of a table", "name,x\na,1\nb,9\n", {"name,x\na,2\nb,9\n", "name,x\na,1\nb,1\n"}),
        ("names of two rows", "name,x\na,1\nb,9\n", {"name,x\nb,1\na,9\n"}),
        ("picture of a page", SVG, {SVG.replace("1.0 50.0", "1.0 65")}),
        ("colour of a page", SVG, {SVG.replace("--c0", "--c1")}),
        ("plan of the ledger", LEDGER, {LEDGER.replace("36", "46")}),
        ("bound of the ledger", LEDGER, {LEDGER.replace("35", "45")}),
        ("grade of the ledger", LEDGER, {LEDGER.replace("claimed", "checked")}),
        (
            "instance of a certificate",
            CERTIFICATE,
            {CERTIFICATE.replace("12", "22"), CERTIFICATE.replace("345", "445")},
        ),
        ("number of a paper", "- [ba, what, 32, bit]", {"- [ba, what, 42, bit]"}),
        ("run that is gone", RUNS, set(RUNS.splitlines(keepends=True))),
        ("objective of a run", RUNS, {RUNS.replace("36", "46"), RUNS.replace('"objective": 7', '"objective": 8')}),
        ("bound of a run", RUNS, {RUNS.replace("35", "45")}),
        ("seconds of a run", RUNS, {RUNS.replace("1.25", "2.25"), RUNS.replace('"wall_s": 3', '"wall_s": 4')}),
    ],
)
def test_a_lie_of_a_kind(kind, text, wanted):
    assert lied(mutation.KINDS[kind][1], text) == wanted


def test_where_there_is_no_place_for_a_lie_there_is_none():
    assert lied(mutation.figure, "no figure") == {None}
    assert lied(mutation.label, "name,x\na,1\n") == {None}


def test_lies_are_counted_by_kind():
    said = [(True, True), (False, False), (True, False)]
    found = [mutation.Planted("word of a page", "README.md", *each) for each in said]
    assert mutation.table(found) == [{"kind": "word of a page", "planted": 3, "found": 2, "by_data": 1}]
