"""How results show themselves, are saved and become tables."""

import builtins
import json
import xml.etree.ElementTree as ET
from html.parser import HTMLParser

import pytest
import rogue_plugin
from cli_support import inside, tiny

import mapgap
from mapgap.records.files import read_runs

ROGUE = {method.name.removeprefix("t_"): method for method in rogue_plugin.METHODS}
NASTY = "<script>alert('x')</script>"


class Reader(HTMLParser):
    """Texts and tags of a page; complains of tags that do not match."""

    def __init__(self):
        super().__init__()
        self.open, self.tags, self.texts = [], set(), []

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        self.tags.add(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)


def read_html(page):
    reader = Reader()
    reader.feed(page)
    assert reader.open == []
    return reader


@pytest.fixture(scope="module")
def nasty():
    return tiny().changed(name=NASTY)


@pytest.fixture(scope="module")
def result(nasty):
    return mapgap.solve(nasty, ROGUE["good"], ledger=False)


@pytest.fixture(scope="module")
def comparison(nasty):
    methods = [ROGUE["good"], ROGUE["bounding"], ROGUE["optimal"]]
    return mapgap.compare(nasty, methods, ledger=False)


def test_html_is_escaped_and_self_contained(result, comparison, nasty):
    broken = mapgap.check(nasty, {"ratio": [4, 0], "order": [[NASTY], []]})
    for shown in (result, comparison, broken, mapgap.methods("suboperation_mapping"), mapgap.problems()):
        page = shown._repr_html_()
        reader = read_html(page)
        assert reader.tags <= {"table", "caption", "thead", "tbody", "tr", "th", "td", "p", "b"}
        assert "http" not in page
    assert NASTY in read_html(result._repr_html_()).texts
    assert any(NASTY in text for text in read_html(broken._repr_html_()).texts)


def test_representations(result, comparison, nasty):
    assert repr(result).startswith(f"<Result t_good on {NASTY}: FEASIBLE, 58 ticks of 1000 ns, stopped by done, ")
    assert "\n" not in repr(result)
    lines = repr(comparison).splitlines()
    assert [line.split()[:5] for line in lines[2:]] == [
        ["t_good", "baseline", "FEASIBLE", "58", "-"],
        ["t_bounding", "bound", "UNKNOWN", "-", "5"],
        ["t_optimal", "exact", "OPTIMAL", "58", "58"],
    ]
    assert repr(mapgap.check(nasty, result)) == f"<Check of a plan of {NASTY}: 58 ticks of 1000 ns, feasible>"


def test_a_frame_has_a_row_per_run_and_keeps_integers(comparison):
    frame = comparison.to_frame()
    assert list(frame.columns) == list(comparison.rows()[0])
    assert frame["objective"].dtype == "Int64"
    assert frame["objective"].isna().tolist() == [False, True, False]
    assert frame["best_bound"].tolist() == [58, 58, 58]
    assert frame.set_index("method")["gap"].dropna().to_dict() == {"t_good": 0.0, "t_optimal": 0.0}


def test_without_pandas_the_error_names_the_extra(comparison, monkeypatch):
    actual = builtins.__import__

    def refuse(name, *more):
        if name == "pandas":
            raise ImportError(name)
        return actual(name, *more)

    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(mapgap.MapgapError, match=r"pip install 'mapgap\[frames\]'"):
        comparison.to_frame()


def test_a_saved_result_is_what_check_reads(result, tmp_path):
    path = result.save(tmp_path / "run.json")
    instance = tmp_path / "tiny.json"
    instance.write_text(json.dumps(result.instance.to_json()))
    assert json.loads(inside("check", instance, path, "--json").stdout)["objective"] == 58
    with pytest.raises(mapgap.InputError, match="expected a file that can be written"):
        result.save(tmp_path / "nowhere" / "run.json")


def test_a_saved_comparison_is_a_run_file(comparison, tmp_path):
    path = comparison.save(tmp_path / "runs.jsonl")
    assert comparison.save(path) == path
    assert [record.method for record in read_runs(path)] == list(comparison.methods)
    with pytest.raises(mapgap.InputError, match=r"\.jsonl"):
        comparison.save(tmp_path / "runs.csv")


def test_a_chart_shows_itself_and_is_saved(result, nasty, tmp_path):
    chart = result.gantt()
    assert ET.fromstring(chart._repr_svg_()).tag.endswith("svg")
    assert chart.figure.axes
    assert chart.save(tmp_path / "c.svg").exists()
    assert mapgap.check(nasty, result).gantt().figure.axes
    with pytest.raises(mapgap.InputError, match=r"in \.svg"):
        chart.save(tmp_path / "c.gif")


def test_no_chart_is_one_message(nasty):
    with pytest.raises(mapgap.InputError, match=r"^gantt: expected a result with a plan"):
        mapgap.solve(nasty, ROGUE["empty"], ledger=False).gantt()
