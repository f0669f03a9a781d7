"""Data on pages: names that are markup, formulas, paths or mathematics stay names."""

import pytest
from records import record

from mapgap.records.runs import Runs
from mapgap.reporting import figures
from mapgap.reporting.overview import overview
from mapgap.reporting.report import Page, Section, picture
from mapgap.reporting.shown import broken_lines, file_name, inert, markdown, presentable
from mapgap.reporting.tables import Column, Table


@pytest.mark.parametrize("text", ["=1+1", "@x", "+cmd()", "-x", "\tx", "\r=x"])
def test_no_cell_is_a_formula(text):
    assert inert(text) == f"'{text}"


@pytest.mark.parametrize("value", [-3, 0.5, None, "-", "-1.5", "+2%", "1/2/3", "a=b", ""])
def test_numbers_and_words_stay_what_they_are(value):
    assert inert(value) == value


def test_no_tag_and_no_link_comes_from_a_cell():
    assert markdown("<script>a</script>") == "&lt;script>a&lt;/script>"
    assert markdown("[x](javascript:a)\n# head") == "[x]\\(javascript:a) # head"
    table = Table("t", "t", [Column("a", "a")], [{"a": "x|y\n| z |"}])
    assert table.markdown().splitlines()[-1] == "| x\\|y \\| z \\| |"


def test_names_of_files_lead_nowhere_and_stay_different():
    assert file_name("trace_synergy_w1_any@latency") == "trace_synergy_w1_any@latency"
    hostile = ["../../etc/x", "a/b", "a_b/", "a\0b", "x" * 300, "x" * 301, ".hidden", "", "é"]
    found = [file_name(name) for name in hostile]
    assert len(set(found)) == len(hostile)
    assert all("/" not in name and "\0" not in name and 0 < len(name) < 150 and name[0] != "." for name in found)


def test_all_files_of_a_page_lie_in_its_folder(tmp_path):
    section = Section("s", tables=[Table("../up", "t", [Column("=a", "a")], [])])
    section.figures.append(picture("/abs/x", figures.axes()[0], "c"))
    Page("p", ["l"], [section]).write(tmp_path / "out")
    assert [each.name for each in tmp_path.iterdir()] == ["out"]
    assert all(each.is_file() for each in (tmp_path / "out").iterdir())


def test_an_instance_that_was_edited_is_a_row_for_each_content():
    runs = presentable(Runs([record("i", "m", 5, instance_hash="aa"), record("i", "m", 6, instance_hash="bb")]))
    assert [run.instance for run in runs] == ["i #aa", "i #bb"]
    same = Runs([record("i", "m", 5), record("j", "m", 6)])
    assert list(presentable(same)) == list(same)


def test_mathematics_and_control_characters_are_drawn_as_they_are():
    names = ["$\\frac", "$a$", "\x1b[2J", "\x00"]
    runs = [record("i", name, 10 + k, 9, problem="p", kind="published") for k, name in enumerate(names)]
    page = overview(presentable(Runs(runs)))
    svg = "".join(item.svg for section in page.sections for item in section.figures)
    assert "$\\frac" in svg
    assert "$a$" in svg
    assert "\\x1b[2J" in svg
    assert "\x1b" not in svg
    assert "\x00" not in svg


def test_lines_that_were_left_out_are_counted_and_named():
    assert broken_lines([]) == []
    assert broken_lines(["f:3: x"]) == ["1 line left out: f:3: x."]
    (text,) = broken_lines([f"f:{k}: x" for k in range(50)])
    assert text.startswith("50 lines left out: f:0: x; ")
    assert text.endswith("; and 30 more.")
