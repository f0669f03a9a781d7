"""Folders of reports: what is kept, what goes, and that a second time changes nothing."""

import json
import re

import pytest
from cli_support import wide
from records import record

from mapgap.core import InputError
from mapgap.records.files import append, locked, read_runs
from mapgap.reporting.figures import lines
from mapgap.reporting.overview import write_report
from mapgap.reporting.packing import pack_reports
from mapgap.reporting.report import Page, Section, picture
from mapgap.reporting.tables import HUGE, Column, Table


def fill(folder):
    """A run file with a heuristic and what it is measured against."""
    folder.mkdir(parents=True)
    for run in (record("i1", "exact", 100, 100, kind="exact"), record("i1", "greedy", 120, kind="published")):
        append(folder / "runs.jsonl", run)
    return folder / "runs.jsonl"


def contents(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_report_beside_its_runs_packs_them_and_others_stay(tmp_path):
    runs = fill(tmp_path / "a")
    write_report(runs, tmp_path / "elsewhere")
    assert runs.exists()
    write_report(runs, tmp_path / "a")
    assert not runs.exists()
    assert [run.method for run in read_runs(runs)] == ["exact", "greedy"]
    first = contents(tmp_path / "a")
    assert {"report.html", "report.md", "runs.jsonl.gz", "glance.csv"} <= first.keys()
    assert not any(name.endswith((".svg", ".parquet")) for name in first)
    write_report(runs, tmp_path / "a")
    assert contents(tmp_path / "a") == first


def test_packing_reports_is_idempotent_and_leaves_foreign_files_alone(tmp_path):
    """A folder as it was written before: a picture per figure, and all runs as two more tables."""
    old = tmp_path / "old"
    fill(old)
    fill(tmp_path / "bare")
    (old / "report.html").write_text("<html></html>")
    (old / "report.md").write_text("# t\n\n![Losses.](losses.svg)\n![x](../bare/runs.jsonl.svg)\n")
    for name in ("losses.svg", "runs.csv", "runs.parquet", "instances.csv", "mine.svg", "mine.csv"):
        (old / name).write_text("x")
    with pytest.raises(InputError, match="expected a folder with run files"):
        pack_reports(tmp_path / "nothing", None)
    pack_reports(tmp_path, None)
    found = contents(tmp_path)
    assert {
        "old/runs.jsonl.gz",
        "bare/runs.jsonl.gz",
        "old/mine.svg",
        "old/mine.csv",
        "old/instances.csv",
    } <= found.keys()
    assert not {"old/losses.svg", "old/runs.csv", "old/runs.parquet", "old/runs.jsonl"} & found.keys()
    assert found["old/instances.csv"] != b"x"
    assert not (tmp_path / "bare" / "report.html").exists()
    done = wide("pack", str(tmp_path), "--json")
    assert done.returncode == 0
    fields = json.loads(done.stdout)["folders"]
    assert [each["folder"] for each in fields] == [str(tmp_path / "bare"), str(old)]
    assert all(each["before"] == each["after"] for each in fields)


def test_a_report_can_be_made_while_a_sweep_goes_on(tmp_path):
    runs = fill(tmp_path / "a")
    with locked(runs):
        write_report(runs, tmp_path / "a")
        with pytest.raises(InputError, match="no other sweep"):
            pack_reports(tmp_path, None)
    assert runs.exists()


@pytest.mark.in_turn
@pytest.mark.parametrize("name", ["", "..", "runs.jsonl.gz", "sub", "../mine.csv", "sub/mine.csv"])
def test_a_page_takes_nothing_away_that_is_not_its_own(tmp_path, name):
    """A page that somebody has written by hand names the files that came with it."""
    folder = tmp_path / "report"
    runs = fill(folder)
    write_report(runs, folder)
    (tmp_path / "mine.csv").write_text("x")
    (folder / "sub").mkdir()
    (folder / "sub" / "mine.csv").write_text("x")
    page = folder / "report.html"
    text = re.sub(r'(name="mapgap-files" content=")[^"]*', rf"\1{name}", page.read_text())
    page.write_text(text)
    before = contents(tmp_path)
    write_report(runs, folder)
    assert contents(tmp_path).keys() == before.keys()


def test_files_of_an_earlier_page_go_with_its_tables(tmp_path):
    tables = [Table(name, name, [Column("a", "a")], [{"a": 1}]) for name in ("one", "two")]
    Page("t", [], [Section("s", tables=tables)]).write(tmp_path)
    assert (tmp_path / "two.csv").exists()
    Page("t", [], [Section("s", tables=tables[:1])]).write(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"report.html", "report.md", "one.csv"}


@pytest.mark.in_turn
def test_parts_are_files_of_their_own(tmp_path):
    runs = fill(tmp_path / "a")
    done = wide("report", runs, "-o", tmp_path / "page", "--figures", tmp_path / "parts", "--no-ledger")
    assert done.returncode == 0
    names = {path.name for path in (tmp_path / "parts").iterdir()}
    assert {"losses_p.svg", "times_p.svg", "profile_p.svg", "runs.csv", "glance.csv"} <= names
    for name in ("losses_p.svg", "profile_p.svg"):
        text = (tmp_path / "parts" / name).read_text()
        assert 'xmlns="http://www.w3.org/2000/svg"' in text
        assert "prefers-color-scheme: dark" in text
        assert "#000000" not in text.split("</style>", 1)[1]
    assert not list((tmp_path / "page").glob("*.svg"))
    assert wide("report", runs, "--figures", runs).returncode == 2


def small(name, height):
    series = {"a": [(1, height), (2, height)], "b": [(1, 0)]}
    return picture(name, lines(series, xlabel="x", ylabel="y"), f"Of {name} here.")


def test_a_figure_that_repeats_is_one_figure_with_one_legend():
    pictures = [small("f_one", 3), small("g_other", 3), small("f_two", 4), small("f_three", 5)]
    family, other = Section("s", figures=pictures).blocks
    assert len(family.svgs) == 4  # three panels and their legend
    assert family.caption == "Of … here."
    assert family.svgs[-1].startswith('<svg class="legend"')
    assert [">b<" in svg for svg in family.svgs] == [False, False, False, True]
    assert (len(other.svgs), other.caption) == (1, "Of g_other here.")


def test_a_page_says_the_same_with_and_without_its_pictures():
    def words(text):
        return re.sub(r"<[^>]*>", " ", re.sub(r"<(svg|style|script)\b.*?</\1>", " ", text, flags=re.DOTALL)).split()

    section = Section("s", figures=[small(f"{name}_x", 3) for name in "fgf"] + [small("f_y", 2)])
    page = Page("t", ["l"], [section])
    assert words(page.files(drawn=False)["report.html"]) == words(page.files()["report.html"])
    assert page.files().keys() == page.files(drawn=False).keys()


def test_long_tables_are_folded_and_huge_ones_are_made_by_the_page():
    def table(count):
        rows = [{"a": f"</script><b>{k}", "b": k + 0.123, "c": None} for k in range(count)]
        return Table("t", "T", [Column("a", "a"), Column("b", "b", ".1f"), Column("c", "c")], rows)

    html = Page("t", [], [Section("s", tables=[table(HUGE + 1)])]).html()
    assert "<details" in html
    assert "</script><b>" not in html
    data = json.loads(html.split('<script type="application/json">')[1].split("</script>")[0])
    assert data["digits"] == [None, 1, None]
    assert data["rows"][2] == ["</script><b>2", 2.1, ""]
    assert "<details" not in Page("t", [], [Section("s", tables=[table(3)])]).html()
    page = Page("t", [], [Section("s", tables=[table(30)])])
    assert "| 2.1 |" not in page.markdown()
    assert "T: 30 rows ([CSV](t.csv))" in page.markdown()


@pytest.mark.in_turn
def test_a_picture_alone_is_the_same_before_and_after_its_page_is_drawn():
    def made():
        return Section("s", figures=[small(f"f_{k}", k + 2) for k in range(3)])

    before, after = made(), made()
    alone = [each.alone for each in before.figures]
    blocks = after.blocks
    assert [each.alone for each in after.figures] == alone
    assert before.blocks == blocks
    assert len(blocks) == 1
