"""The page with all published numbers: every number once, judged on committed tables, or a reason why not."""

import pytest

from mapgap.core import InputError, MissingExtra
from mapgap.instances.published_numbers import papers, published_rows
from mapgap.reporting.study import Gathering, find_study, run_study, studies
from mapgap.reporting.verdicts import WORDS
from mapgap.studies.dfs_vs_converting.claims import all_claims
from mapgap.studies.published_numbers.entries import entries_of
from mapgap.studies.published_numbers.study import counts, page, rows_of

WRITTEN = [paper for paper in papers() if entries_of(paper)]


@pytest.mark.parametrize("paper", WRITTEN)
def test_every_number_of_a_paper_has_an_entry_and_every_entry_a_number(paper):
    assert list(entries_of(paper)) == sorted(entries_of(paper), key=[r["id"] for r in published_rows(paper)].index)
    assert set(entries_of(paper)) == {row["id"] for row in published_rows(paper)}


def test_mtrain_is_judged_here_as_in_its_study():
    kinds = {claim.key: claim.kind for claim in all_claims()}
    assert {key: entry.kind for key, entry in entries_of("mtrain").items() if entry.kind} == kinds


NUMBERS = [
    {"id": "ratio", "where": "4", "what": "a ratio", "value": 1.07, "unit": "x", "status": "published", "note": ""},
    {"id": "saved", "where": "4", "what": "energy", "value": 25, "unit": "%", "status": "published", "note": ""},
    {"id": "ends", "where": "4", "what": "a range", "value": [10, 20], "unit": "s", "status": "published", "note": ""},
    {"id": "more", "where": "5", "what": "who wins", "value": "more", "unit": "", "status": "published", "note": ""},
    {"id": "batch", "where": "5", "what": "a batch", "value": 64, "unit": "", "status": "published", "note": ""},
]
ROWS = [
    {"key": "ratio", "sum": 0.97, "growth": 1.06},
    {"key": "saved", "sum": 26.0, "growth": None},
    {"key": "low", "sum": 17, "growth": None},
    {"key": "high", "sum": 40, "growth": None},
    {"key": "word", "sum": "OOR", "growth": None},
]
FILE = """verdicts:
  ratio: {kind: gain, readings: {sum: "s/t[key=ratio].sum", growth: "s/t[key=ratio].growth"}}
  saved: {kind: gain, from: "s/t[key=saved].sum"}
  ends: {kind: range, from: ["s/t[key=low].sum", "s/t[key=high].sum"], why: "two boards"}
  more: {kind: order, from: "s/t[key=saved].sum", sign: positive}
  batch: {none: input}
"""


def tables(name):
    if name != "s/t":
        raise InputError(f"table {name!r}: there is none")
    return ROWS


@pytest.fixture
def rows(tmp_path, monkeypatch):
    """The rows of a paper of five numbers whose entries are a text, and what is wrong with them."""
    monkeypatch.setattr("mapgap.studies.published_numbers.study.published_rows", lambda paper: NUMBERS)

    def of(text):
        (tmp_path / "paper.yaml").write_text(text)
        faults = []
        return {row["id"]: row for row in rows_of("paper", entries_of("paper", tmp_path), tables, faults)}, faults

    return of


def test_numbers_are_judged_on_tables_and_the_kinder_reading_counts(rows):
    found, faults = rows(FILE)
    assert faults == []
    ratio = found["ratio"]
    # As the literal sum the sign flips; the growth of the makespan gains 6 points of 7.
    assert [ratio[key] for key in ("verdict", "reproduced", "reading", "others")] == [
        "reproduced", "1.06", "growth", "sum: 0.97"
    ]  # fmt: skip
    assert (found["saved"]["verdict"], found["saved"]["reproduced"]) == ("reproduced", "26")
    # 17 to 40 and 10 to 20 share 3; half of the shorter one is 5.
    assert (found["ends"]["verdict"], found["ends"]["reproduced"]) == ("close", "17 to 40")
    assert found["ends"]["detail"].endswith("two boards")
    assert found["more"]["verdict"] == "reproduced"
    assert (found["batch"]["verdict"], found["batch"]["reason"]) == ("none", "input")
    (line, total) = counts(list(found.values())).rows
    assert line | {"paper": "all"} == total
    assert {key: total[key] for key in ("numbers", "checkable", "judged", "missing", "input", *WORDS)} == {
        "numbers": 5, "checkable": 4, "judged": 4, "missing": 0, "input": 1, "reproduced": 3, "close": 1, "differs": 0
    }  # fmt: skip


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("s/t[key=saved].sum\"}", "s/other[key=saved].sum\"}", "there is none"),
        ("key=low", "key=lower", "expected one value, found 0"),
        ("s/t[key=saved].sum\"}", "s/t[key=word].sum\"}", "reproduced: expected a number, found 'OOR'"),
        ("kind: gain, from", "kind: range, from", "two specifications"),
        ("  batch: {none: input}\n", "  batch: {none: input}\n  botch: {none: input}\n", "a number of the paper"),
    ],
)  # fmt: skip
def test_an_entry_that_leads_nowhere_is_a_fault(rows, old, new, words):
    assert old in FILE
    if "two" in words:
        with pytest.raises(InputError, match=words):
            rows(FILE.replace(old, new, 1))
        return
    found, faults = rows(FILE.replace(old, new, 1))
    assert len(faults) == 1
    assert words in faults[0]
    assert sum(row["verdict"] == "cannot be judged" for row in found.values()) == ("paper" not in words)


def test_a_number_without_an_entry_is_checkable_and_has_no_verdict(rows):
    found, _ = rows(FILE.replace("  batch: {none: input}\n", ""))
    total = counts(list(found.values())).rows[-1]
    assert (total["checkable"], total["judged"], total["missing"]) == (5, 4, 1)


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ("{}", "either a kind or a reason"),
        ("{kind: gain}", "expected from or readings"),
        ("{none: input, from: x}", "expected from or readings"),
        ("{none: imput}", "input"),
        ("{kind: order, from: x}", "expected a sign"),
        ("{kind: value, from: [x, y]}", "expected two specifications where the kind is range"),
        ("{kind: value, frm: x}", "frm"),
    ],
)
def test_a_file_that_cannot_be_read_is_one_clear_error(tmp_path, entry, words):
    (tmp_path / "paper.yaml").write_text(f"verdicts:\n  a: {entry}\n")
    with pytest.raises(InputError, match=words) as caught:
        entries_of("paper", tmp_path)
    assert "paper.yaml" in str(caught.value)


def test_the_page_counts_all_papers_and_needs_no_runs(tmp_path):
    study = find_study("published_numbers")
    assert isinstance(study, Gathering)
    assert "published_numbers" not in studies()
    assert run_study("published_numbers", out=tmp_path, tables=lambda name: []).is_file()


def _none(name):
    raise InputError("no such table")


def test_where_tables_are_missing_the_page_says_so():
    made = page(_none)
    assert len(made.faults) == sum(entry.kind is not None for paper in WRITTEN for entry in entries_of(paper).values())
    total = made.sections[0].tables[0].rows[-1]
    assert total["numbers"] == sum(len(published_rows(paper)) for paper in papers())
    assert total["judged"] == 0
    assert f"0 of {total['checkable']} checkable rows have a verdict" in made.lead[0]


def test_nothing_is_judged_where_an_extra_lacks():
    def without(name):
        raise MissingExtra(f"{name}: expected an extra")

    with pytest.raises(MissingExtra):
        page(without)
