"""The parts that the documentation site is made of: charts, the ledger's table, links, placeholders, coverage."""

import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from collections import Counter
from inspect import signature
from pathlib import Path

import pytest

import mapgap
from mapgap.catalogue import registry
from mapgap.core import GanttBar, GanttLane
from mapgap.evidence.ledger import default_path, glance
from mapgap.interface import functions

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
if not (DOCS / "_ext").is_dir():
    pytest.skip("the pages are not part of a wheel", allow_module_level=True)
pytest.importorskip("sphinx")
sys.path.insert(0, str(DOCS / "_ext"))

import site_checker  # noqa: E402
import site_commands  # noqa: E402
import site_files  # noqa: E402
import site_ledger  # noqa: E402
import site_lessons  # noqa: E402
import site_links  # noqa: E402
import site_listing  # noqa: E402
import site_math  # noqa: E402
import site_player  # noqa: E402
import site_prose  # noqa: E402
import site_results  # noqa: E402
import site_runner  # noqa: E402
import site_slides  # noqa: E402
import timetable  # noqa: E402

from mapgap.evidence.ledger import Ledger  # noqa: E402

SVG = "{http://www.w3.org/2000/svg}"


def chart(*lanes):
    """The chart as XML."""
    text = timetable.drawn(lanes, "a plan").split("<p class")[0]
    return ElementTree.fromstring(text.replace("<svg", '<svg xmlns="http://www.w3.org/2000/svg"', 1))


def bars(root):
    """``(left, width, share that is moved, label)`` of every bar, in percent."""
    found = []
    for bar in root.findall(f"{SVG}svg"):
        moved = [each for each in bar.findall(f"{SVG}rect") if each.get("class") == "moved"]
        text = bar.find(f"{SVG}text")
        share = float(moved[0].get("width").rstrip("%")) if moved else 0
        place = [float(bar.get(name).rstrip("%")) for name in ("x", "width")]
        found.append((*place, share, None if text is None else text.text))
    return found


class TestChart:
    def test_bars_lie_where_their_times_are(self):
        # The plan ends at 4 s. The second bar begins after a quarter, lasts 3 s, and moves data for one of them.
        first, second = GanttBar(0, 1, "a", "FP"), GanttBar(1, 4, "b", "BP", transfer=1)
        assert bars(chart(GanttLane("Acc1", (first, second)))) == [
            (0, 25, 0, "a"),
            (25, 75, pytest.approx(100 / 3, abs=0.01), "b"),
        ]

    def test_all_lanes_have_one_time_axis(self):
        root = chart(GanttLane("Acc1", (GanttBar(0, 8, "a", "FP"),)), GanttLane("Acc2", (GanttBar(0, 4, "b", "FP"),)))
        assert [(left, width) for left, width, *_ in bars(root)] == [(0, 100), (0, 50)]
        assert [each.text for each in root.findall(f"{SVG}text") if each.get("class") == "time"] == [
            *("0", "2 s", "4 s", "6 s", "8 s")
        ]

    def test_a_label_that_does_not_fit_is_left_to_hovering(self):
        root = chart(GanttLane("Acc1", (GanttBar(0, 1, "an operation with a name", "FP"), GanttBar(1, 100, "b", "FP"))))
        assert [label for *_, label in bars(root)] == [None, "b"]
        assert root.findall(f"{SVG}svg/{SVG}title")[0].text == "an operation with a name: 0 s to 1 s"

    def test_names_are_text(self):
        bar = GanttBar(0, 1, "</svg><script>", "g")
        assert bars(chart(GanttLane("a & b", (bar,))))[0][3] == "</svg><script>"

    def test_a_plan_without_bars_is_an_empty_chart(self):
        assert bars(chart(GanttLane("Acc1", ()))) == []
        assert bars(chart(GanttLane("Acc1", (GanttBar(0, 0, "a", "g"),)))) == [(0, 0, 0, None)]


class TestLedger:
    def test_the_table_has_every_entry_under_its_status(self):
        book = Ledger.load()
        table = ElementTree.fromstring(site_ledger.table(list(book.entries.values())).replace("<wbr>", ""))
        rows = table.findall(".//tbody/tr")
        assert [row.find("th/a").text for row in rows] == list(glance())
        # The file itself says which entries are checked; of the others the optimal ones are solver-proven.
        lines = default_path().read_text().splitlines()
        known = glance().values()
        optimal = sum(each.plan is not None and each.plan == each.bound for each in known)
        checked = lines.count("  certificate: checked")
        found = Counter(row.find("td").get("data-value") for row in rows)
        assert found == {"certified": checked, "solver-proven": optimal - checked, "open": len(known) - optimal}

    def test_rows_are_sorted_by_numbers_and_not_by_their_text(self):
        book = Ledger.load()
        entry = next(each for each in book.entries.values() if each.plan and each.plan.value > 9999)
        values = dict(zip(site_ledger.COLUMNS, site_ledger.row(entry), strict=True))
        assert values["best plan"] == (f"{entry.plan.value:,}", str(entry.plan.value))

    @pytest.mark.parametrize("name", ["mtrain_example_fig5", "elfish_lenet_straggler1", "synergy_w1_any@latency"])
    def test_a_page_has_values_plan_and_commands(self, name):
        book = Ledger.load()
        page = site_ledger.body(book, book.entries[name])
        assert f"{book.entries[name].plan.value:,}" in page
        assert f"mapgap verify {name}" in page
        assert 'class="timetable"' in page

    def test_pages_of_two_objectives_are_two(self):
        assert site_ledger.page_of("a@latency") == "ledger/a__latency" != site_ledger.page_of("a")


class TestFiles:
    @pytest.mark.parametrize(
        ("page", "target", "found"),
        [
            ("certificates", "../mapgap/evidence/check.py", "mapgap/evidence/check.py"),
            ("certificates", "../mapgap/evidence/check.py#L3", "mapgap/evidence/check.py"),
            ("problems/index", "../../README.md", "README.md"),
            ("problems/index", "../python.md", None),  # a page
            ("certificates", "../mapgap/evidence/chek.py", None),  # nothing is there: Sphinx says so
            ("certificates", "../../../etc/passwd", None),
            ("certificates", "https://example.org/a.py", None),
            ("certificates", "#check-one-yourself", None),
        ],
    )
    def test_what_lies_beside_the_pages(self, page, target, found):
        assert site_files.outside(DOCS, page, target) == found

    def test_a_report_leads_to_its_committed_page(self):
        assert site_files.page_of("reports/overview/report.md") == "reports/overview/report"
        assert site_files.page_of("reports/overview/report.html") == "reports/overview/report"
        assert site_files.page_of("mapgap/evidence/check.py") == "files/mapgap/evidence/check.py"

    @pytest.mark.in_turn
    def test_a_folder_shows_its_files(self):
        shown = site_files.shown(ROOT, "examples/gpu_placement")
        assert "pyproject.toml</h2>" in shown
        assert "pycache" not in shown


def test_links_and_anchors_that_lead_nowhere_are_found(tmp_path):
    good = ["b.html", "b.html#there", "#here", "sub/c.html", "https://example.org/x.html", "a%20b.txt", "data:,x"]
    bad = ["d.html", "b.html#gone", "#gone", "sub"]
    links = "".join(f'<a href="{each}">x</a>' for each in [*good, *bad])
    pages = {
        "a.html": f'<h1 id="here">{links}</h1><img src="no.svg">',
        "b.html": '<a name="there"></a>',
        "sub/c.html": '<a href="../a.html#here">x</a>',
        "a b.txt": "",
        "reports/r/report.html": '<a href="no.html">a file of its own</a>',
    }
    for name, text in pages.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    assert list(site_links.broken(tmp_path)) == [("a.html", each) for each in [*bad, "no.svg"]]


class TestProse:
    def test_a_bar_in_a_placeholder_does_not_end_a_cell(self):
        page = "| a | <!-- fig: t[n=1].gap | .1f -->18.9<!-- /fig --> |\n| b | <!-- source: Table 1 -->2 |\n"
        assert site_prose.plain(page) == "| a | 18.9 |\n| b | 2 |\n"

    def test_lines_keep_their_numbers(self):
        assert site_prose.plain("one <!-- fig: t.x\nmax -->2<!-- /fig --> end\nthree") == "one \n2 end\nthree"

    def test_code_stays(self):
        code = "```text\n<!-- fig: SPEC -->1<!-- /fig -->\n```\n"
        assert site_prose.plain(code) == code


RESULTS = re.compile(r"^```\{results\} (\S+)\n(?::where: ([^\n]*)\n)?(.*?)^```$", re.MULTILINE | re.DOTALL)
LISTINGS = re.compile(r"^```\{listing\} (\S+)$", re.MULTILINE)


class TestResults:
    def test_every_table_of_the_pages_has_its_columns_and_rows(self):
        asked = [found for page in DOCS.rglob("*.md") for found in RESULTS.findall(page.read_text(encoding="utf-8"))]
        assert len(asked) > 10
        for name, where, lines in asked:
            head, body = site_results.cells(ROOT / "reports" / f"{name}.csv", where, lines.splitlines())
            assert all(len(row) == len(head) for row in body)

    def test_formats_templates_conditions_and_missing_values(self, tmp_path):
        path = tmp_path / "t.csv"
        path.write_text("n,kind,low,high\na,x,1.26,2\nb,x,,3\nc,y,0,0\n")
        head, body = site_results.cells(path, "kind=x", ["n = name", "low | .1f", "{low:.1f} to {high} = range"])
        assert head == ["name", "low", "range"]
        assert body == [["a", "1.3", "1.3 to 2"], ["b", "–", "–"]]

    @pytest.mark.parametrize(("where", "lines"), [("", ["m"]), ("m=1", ["n"]), ("n=z", ["n"]), ("", ["n n"])])
    def test_what_is_not_there_is_an_error(self, tmp_path, where, lines):
        path = tmp_path / "t.csv"
        path.write_text("n\na\n")
        with pytest.raises((KeyError, ValueError)):
            site_results.cells(path, where, lines)


def test_every_listing_has_a_file():
    patterns = [found for page in DOCS.rglob("*.md") for found in LISTINGS.findall(page.read_text(encoding="utf-8"))]
    assert [pattern for pattern in patterns if not site_listing.files(ROOT, pattern)] == []
    with pytest.raises(ValueError, match="found none"):
        site_listing.files(ROOT, "heuristics/nothing*.py")


def test_commands_of_the_guide_are_those_of_the_command_line():
    guide = (DOCS / "command_line.md").read_text(encoding="utf-8").partition("\n\n|")[2].partition("\n\n")[0]
    names = {f"mapgap {name}" for name in re.findall(r"`(\w+)`", guide)}
    shown = [context for _, context in site_commands.all_commands() if not context.command.hidden]
    assert names == {" ".join(context.command_path.split()[:2]) for context in shown}


def test_every_option_has_help():
    missing = [
        (context.command_path, names)
        for command, context in site_commands.all_commands()
        for names, text in site_commands.parameters(command, context)
        if names.startswith("-") and not text
    ]
    assert missing == []


def test_the_reference_has_every_public_name():
    page = (DOCS / "reference" / "python.md").read_text(encoding="utf-8")
    named = dict(re.findall(r"^\.\. auto\w+:: (\w+)(\(.*\))?$", page, re.MULTILINE))
    assert set(named) == set(mapgap.__all__) - {"__version__"}
    # Packages that can be called have their signatures written down.
    for name, written in named.items():
        if written:
            parameters = signature(getattr(functions, name)).parameters.values()
            assert written == f"({', '.join(f'{each.name}={each.default!r}' for each in parameters)})"


@pytest.mark.parametrize("name", registry.house())
def test_every_problem_has_a_page_and_a_drawing_that_reads_in_the_dark(name):
    page = (DOCS / "problems" / f"{name}.md").read_text(encoding="utf-8")
    assert f"{{methods}} {name}\n" in page
    assert f"](../images/problems/{name}.svg)" in page
    root = ElementTree.parse(DOCS / "images" / "problems" / f"{name}.svg").getroot()
    assert root.get("fill") == "currentColor"  # what says nothing has the colour of the text
    assert root.get("aria-label")
    assert "prefers-color-scheme: dark" in root.find(f"{SVG}style").text


LESSONS = sorted(path for path in (DOCS / "lessons").glob("*.md") if path.name != "index.md")


@pytest.mark.parametrize("path", LESSONS, ids=lambda path: path.stem)
def test_a_lesson_is_a_notebook_with_exercises_and_stands_in_the_index(path):
    text = path.read_text(encoding="utf-8")
    nothing, header, rest = text.split("---\n", 2)
    assert (nothing, rest[:3]) == ("", "\n# ")
    assert "format_name: myst" in header
    assert "name: python3" in header
    assert "{admonition} Exercise 1" in text
    assert f"]({path.name})" in (DOCS / "lessons" / "index.md").read_text(encoding="utf-8")


def test_a_lesson_may_take_a_minute_of_processor_time():
    assert site_lessons.too_slow(59) == ""
    assert "61 s" in site_lessons.too_slow(61)


def test_kernels_are_compiled_of_methods_that_lessons_name_and_of_no_others():
    found = site_lessons.modules('mapgap.solve(instance, "mtrain_dfs")')
    assert "mapgap.heuristics.suboperation_mapping.mtrain" in found
    assert not any("fpga_gpu_partition" in each or "neuron_masking" in each for each in found)


def test_processes_that_have_ended_count():
    before = site_lessons.used()
    subprocess.run([sys.executable, "-c", "sum(range(10**7))"], check=True)
    assert site_lessons.used() > before


def test_several_lines_are_aligned():
    from docutils import nodes

    found = site_math.mathml(nodes.math_block("", r"a &\le b \\ c &\le d"), block=True)
    assert found.count("<mtr>") == 2


class TestChecker:
    def test_another_archive_than_the_pinned_one_is_not_unpacked(self, tmp_path):
        (tmp_path / "pyodide.tgz").write_bytes(b"something else")
        with pytest.raises(ValueError, match="expected an archive of SHA-512"):
            site_checker.unpack(tmp_path / "pyodide.tgz", tmp_path / "out")
        assert not (tmp_path / "out").exists()

    def test_without_npm_there_is_a_site_all_the_same(self, tmp_path, monkeypatch):
        monkeypatch.setenv("PATH", "")
        assert site_checker.vendored(tmp_path) is None

    def test_what_is_packed_checks_a_certificate_with_nothing_else(self, tmp_path):
        site_checker.packed(ROOT, tmp_path / "checkout.zip")
        shutil.unpack_archive(tmp_path / "checkout.zip", tmp_path / "checkout")
        file = ROOT / "instances" / "best_known" / "mtrain_example_fig5.cert.json.gz"
        command = [
            sys.executable,
            "-I",
            "-S",
            str(tmp_path / "checkout" / "mapgap" / "evidence" / "check.py"),
            str(file),
        ]
        said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        assert "no plan has an objective below 36" in said
        assert "the library's mtrain_example_fig5" in said


@pytest.mark.in_turn
def test_the_player_shows_what_the_answers_of_its_lesson_say():
    trail = site_player.recorded("mtrain_example_fig5")
    steps = {by: [each for each in trail["steps"] if each["by"] == by] for by in ("Converting", "DFS", "The optimum")}
    tried = {by: [each["words"].partition(":")[0] for each in found] for by, found in steps.items()}
    assert set(tried["DFS"]) == {"ratio 3/0", "ratio 2/1"}  # the partitions of 3, larger part first
    assert steps["Converting"][-1]["words"].startswith("ratio 0/3")
    assert steps["Converting"][-1]["best"] < steps["DFS"][-1]["best"]
    end = steps["The optimum"][-1]
    assert (end["best"], end["bound"]) == (36, 36)  # as the certificate proves
    assert steps["The optimum"][-2]["best"] == 36 > steps["The optimum"][-2]["bound"]
    for step in trail["steps"]:  # no plan is drawn that ends elsewhere than it says
        value = step.get("value", step["best"])
        assert value == max(bar[2] for bar in step["bars"])


class TestLessonsInTheBrowser:
    def test_cells_that_need_an_installation_say_so(self):
        for name in site_runner.LESSONS:
            text = (DOCS / "lessons" / f"{name}.md").read_text(encoding="utf-8")
            for cell in re.findall(r"^```{code-cell} ipython3\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
                needs = re.search(r"import (numpy|pandas|ortools|matplotlib)|gantt\(|compare\(", cell)
                assert not needs or "needs-install" in cell, f"{name}: {cell}"

    def test_a_session_has_the_package_and_what_the_lessons_name(self):
        names = {entry["instance"] for entry in site_runner.entries(ROOT)}
        assert {"mtrain_example_fig5", "synergy_w3_distributed"} <= names
        places = [str(place) for _, place in site_runner.sources(ROOT, names)]
        assert len(places) == len(set(places))
        assert {"mapgap/__init__.py", "mapgap/problems/suboperation_mapping/evaluate.py"} <= set(places)
        kept = [place for place in places if place.startswith("mapgap/instances/best_known/")]
        assert "mapgap/instances/best_known/synergy_w3_distributed.cert.json.gz" in kept
        assert len(kept) <= 2 * len(names)

    def test_another_wheel_than_the_pinned_one_is_not_taken(self, tmp_path, monkeypatch):
        def download(command, **_):
            Path(command[command.index("--dest") + 1], "pydantic_core.whl").write_bytes(b"something else")

        monkeypatch.setattr(site_runner.subprocess, "run", download)
        monkeypatch.setattr(site_runner, "version", lambda _: site_runner.CORE[0])
        with pytest.raises(ValueError, match="expected SHA-256"):
            site_runner.core(tmp_path)
        monkeypatch.setattr(site_runner, "version", lambda _: "2.0.0")  # which pydantic would not take
        assert site_runner.core(tmp_path) is None


def test_a_lesson_becomes_slides_and_exercises_with_their_answers():
    from docutils import nodes

    def cell(text, *tags):
        return nodes.container("", nodes.literal_block(text, text), classes=["cell", *tags])

    def texts(several):
        return [node.astext() for node in several]

    question = nodes.admonition("", nodes.title("", "Exercise 1"), nodes.paragraph("", "why?"))
    inner = nodes.section("", nodes.title("", "B"), cell("two"), question, cell("because", "tag_hide-cell"))
    tree = nodes.section(
        "", nodes.title("", "A"), nodes.paragraph("", "text"), cell("one"), nodes.paragraph("", "more")
    )
    tree += inner
    document = nodes.section("", tree, nodes.paragraph("", "end"))
    found = [texts(each) for each in site_slides.slides(document)]
    assert found == [["A", "text", "one"], ["more"], ["B", "two"], ["Exercise 1\n\nwhy?"], ["end"]]
    assert [(q.astext(), texts(a)) for q, a in site_slides.exercises(document)] == [("Exercise 1\n\nwhy?", ["because"])]


def test_tables_of_a_report_lead_to_the_ledger():
    cells = "<td>mtrain_example_fig5</td><td><code>synergy_w1_any@latency</code></td><td>no_entry</td>"
    assert site_files.linked(cells) == (
        '<td><a href="../../ledger/mtrain_example_fig5.html">mtrain_example_fig5</a></td><td><code>'
        '<a href="../../ledger/synergy_w1_any__latency.html">synergy_w1_any@latency</a></code></td><td>no_entry</td>'
    )
