"""The audit of a checkout: nothing to say of an honest one, and every lie that is planted is found."""

import gzip
import importlib.util
import json
import re
import shutil

import pytest
from cli_support import wide
from records import changed, record

from mapgap.catalogue.files import load_instance
from mapgap.core import Budget, InputError
from mapgap.evidence.audit import RunAudit, allowed, of_trace
from mapgap.evidence.ledger import Ledger
from mapgap.execution.run import run_method
from mapgap.records.files import append, pack, packed, read_runs
from mapgap.records.record import RunRecord
from mapgap.reporting import committed
from mapgap.reporting.committed import Checkout
from mapgap.reporting.overview import page_of_file, write_report
from mapgap.reporting.study import find_study, page_of

EXAMPLE = "mtrain_example_fig5"
README = """# A project

It knows <!-- fig: ledger count -->1<!-- /fig --> instance.
It proves <!-- fig: ledger[proven=True] count -->1<!-- /fig -->.

The paper prints 1.3 times. <!-- source: its Table 4 -->
"""


@pytest.fixture(scope="module")
def run():
    """The optimum by enumeration, 36 ticks, as from a clean revision."""
    found = run_method(load_instance(EXAMPLE), "enumerate", Budget(300.0), isolate=False)
    return changed(found, revision="0123456789ab")


@pytest.fixture(scope="module")
def honest(tmp_path_factory, run):
    """One report with one run, a ledger that knows it, a README with two figures."""
    root = tmp_path_factory.mktemp("honest")
    ledger = Ledger.load(root / "instances" / "best_known.yaml")
    ledger.update([run], {run.instance_hash: EXAMPLE})
    (root / "instances").mkdir()
    ledger.write()
    (root / "reports" / "study").mkdir(parents=True)
    append(runs_of(root), run)
    write_report(runs_of(root), root / "reports" / "study", ledger)
    (root / "README.md").write_text(README)
    (root / "docs").mkdir()
    assert Checkout(root).accept() == ["README.md", "reports/study/runs.jsonl"]
    return root


@pytest.fixture
def checkout(tmp_path, honest):
    """A copy of the honest checkout, to lie in."""
    return shutil.copytree(honest, tmp_path / "checkout")


def runs_of(checkout):
    return checkout / "reports" / "study" / "runs.jsonl"


def faults(checkout, accepted=False):
    """What does not hold; that a file is not as it was accepted only where a test asks for that."""
    return [fault for fault in Checkout(checkout).audit() if accepted or fault.kind != "changed"]


def test_an_honest_checkout_has_no_faults(checkout):
    assert faults(checkout, accepted=True) == []


@pytest.mark.in_turn
@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("README.md", "1.3 times", "1.4 times"),  # a number that somebody typed
        ("README.md", "It knows", "It proves"),  # a word
        ("reports/study/runs.jsonl", '"wall_s": ', '"wall_s": 1'),  # what no table can contradict
    ],
)
def test_what_cannot_be_remade_is_as_it_was_accepted(checkout, file, old, new):
    path, honest = checkout / file, Checkout(checkout)
    if not path.exists():
        path.write_bytes(gzip.decompress(packed(path).read_bytes()))
        packed(path).unlink()
    text = path.read_text()
    assert text.count(old) == 1
    path.write_text(text.replace(old, new))
    found = [fault for fault in faults(checkout, accepted=True) if fault.kind == "changed"]
    assert [fault.place for fault in found] == [str(path)]
    assert [fault.kind for fault in honest.faults_of(path)][-1] == "changed"
    assert Checkout(checkout).accept() == [file]
    assert [fault for fault in faults(checkout, accepted=True) if fault.kind == "changed"] == []
    path.unlink()
    assert [fault.words for fault in faults(checkout, accepted=True) if fault.kind == "changed"] == [
        "was accepted, found no file"
    ]


def test_figures_that_data_make_and_packing_need_no_acceptance(checkout):
    page = checkout / "README.md"
    page.write_text(README.replace("-->1<", "-->2<"))
    assert {fault.kind for fault in faults(checkout, accepted=True)} == {"figure"}
    page.write_text(README)
    plain = runs_of(checkout)
    if plain.exists():
        pack(plain)
    else:
        plain.write_bytes(gzip.decompress(packed(plain).read_bytes()))
        packed(plain).unlink()
    assert faults(checkout, accepted=True) == []


def test_the_small_version_of_a_study_claims_nothing(checkout, run):
    runs = checkout / "reports" / "study_quick" / "runs.jsonl"
    runs.parent.mkdir()
    append(runs, changed(run, revision="0123456789ab-dirty"))
    assert faults(checkout, accepted=True) == []


LIES = {
    "another objective than the plan's": (
        lambda run: {"objective": 35, "bound": 35},
        {"plan", "trace", "contradiction", "withheld"},
    ),
    "a plan that breaks rules": (
        lambda run: {"plan": {**run.plan, "order": [each[::-1] for each in run.plan["order"]]}},
        {"plan"},
    ),
    "something that is no plan": (lambda run: {"plan": {"x": 1}}, {"plan"}),
    "an instance that nobody knows": (lambda run: {"instance_hash": "0" * 16}, {"instance"}),
    "a bound beyond the ledger's plan": (
        lambda run: {"bound": 37, "status": "FEASIBLE"},
        {"contradiction", "withheld"},
    ),
    "a bound beyond the ledger's plan that nobody confirmed": (  # the ledger takes none, so none is withheld
        lambda run: {
            "bound": 37,
            "status": "FEASIBLE",
            "notes": {"unconfirmed": ["an engine's word"], "recomputed": 35},
        },
        {"contradiction"},
    ),
    "infeasible beside a plan": (
        lambda run: {"plan": None, "objective": None, "bound": None, "status": "INFEASIBLE"},
        {"contradiction"},
    ),
    "a modified revision": (lambda run: {"revision": "0123456789ab-dirty"}, {"revision"}),
    "no revision": (lambda run: {"revision": None}, {"revision"}),
    "a banned version": (lambda run: {"versions": {**run.versions, "highspy": "1.14.0"}}, {"version"}),
}


MADE = {"table", "picture"}
"""Faults of a page that is not what its runs make."""


@pytest.fixture
def one_study(monkeypatch):
    """Whoever is in no library is looked for in one study, not in all: their instances take two gigabytes."""
    monkeypatch.setattr(committed, "studies", lambda: {"neuron_masking": find_study("neuron_masking")})


@pytest.mark.parametrize("lie", LIES)
def test_a_run_that_lies_is_found(checkout, run, one_study, lie):
    changes, kinds = LIES[lie]
    append(runs_of(checkout), changed(run, **changes(run)))
    found = faults(checkout)
    assert kinds <= {fault.kind for fault in found} <= kinds | MADE  # the report was made before the lie
    assert all(str(runs_of(checkout)) in fault.place for fault in found if fault.kind not in MADE)


def test_a_run_and_its_trace_agree():
    def run(*points, **more):
        trace = [{"time_s": time_s, "objective": plan, "bound": bound} for time_s, plan, bound in points]
        return RunRecord.from_json({**record("i", "m", 36, bound=30, wall_s=5.0).to_json(), "trace": trace, **more})

    assert list(of_trace(run((1.0, 40, None), (2.0, 36, 28), (4.0, 36, 30)))) == []
    assert "best incumbent is 38" in next(of_trace(run((1.0, 38, None))))
    assert "weaker than one before" in next(of_trace(run((1.0, 36, None), (2.0, 37, None))))
    assert "weaker than one before" in next(of_trace(run((1.0, 36, 30), (2.0, 36, 29))))
    assert "announced the bound 31" in next(of_trace(run((1.0, 36, 31))))
    assert "after 9.00 of 5.00 s" in next(of_trace(run((9.0, 36, 30))))


def test_a_better_plan_that_is_withheld_from_the_ledger_is_found(checkout, run):
    # The ledger forgets the optimum and keeps the plan of one accelerator only, which is worse.
    single = run_method(load_instance(EXAMPLE), "single_accelerator", Budget(5.0), isolate=False)
    assert single.objective > run.objective
    book = checkout / "instances" / "best_known.yaml"
    book.unlink()
    ledger = Ledger.load(book)
    ledger.update([single], {single.instance_hash: EXAMPLE})
    ledger.write()
    (checkout / "README.md").write_text("")
    words = [fault.words for fault in faults(checkout) if fault.kind == "withheld"]
    assert words == [
        f"has a plan of {run.objective}, the ledger's best is {single.objective}",
        f"proves the bound {run.bound}, the ledger's best is None",
    ]


def test_a_ledger_that_praises_its_plan_is_found(checkout):
    book = checkout / "instances" / "best_known.yaml"
    book.write_text(book.read_text().replace("value: 36", "value: 35"))
    assert {"ledger"} <= {fault.kind for fault in faults(checkout)}


def test_a_broken_run_file_is_found(checkout):
    with runs_of(checkout).open("a") as stream:
        stream.write('{"instance": 1}\n')
    assert {fault.kind for fault in faults(checkout)} == {"file", "table", "unsupported"}


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("instances.csv", ",36,", ",35,"),
        ("methods_suboperation_mapping.csv", "enumerate", "cpsat"),
        ("report.md", "1 instances proven optimal", "2 instances proven optimal"),
        ("report.html", "1 instances proven optimal", "2 instances proven optimal"),
        ("report.html", "</body>", "<p>and one more</p></body>"),
    ],
)
def test_a_page_or_a_table_that_is_not_what_the_runs_make_is_found(checkout, file, old, new):
    path = checkout / "reports" / "study" / file
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    assert [(fault.kind, fault.place.partition(": ")[0]) for fault in faults(checkout)] == [("table", str(path))]


def test_looks_of_a_page_are_no_claims(checkout):
    path = checkout / "reports" / "study" / "report.html"
    path.write_text(path.read_text().replace("<h2>", "<h2 class='other'>").replace("<style>", "<style>p {color: red}"))
    assert faults(checkout) == []


def test_a_bound_that_nobody_proved_is_found(checkout):
    book = Ledger.load(checkout / "instances" / "best_known.yaml")
    entry = book.entries[EXAMPLE]
    audit = RunAudit(book, lambda run: None)
    assert [fault.kind for fault in audit.unwitnessed()] == ["unsupported"]  # no run was read, no certificate is there
    assert list(audit.faults(runs_of(checkout)))  # nobody has the instance, but the bound is one of a run
    assert list(audit.unwitnessed()) == []
    entry.bound = entry.bound.model_copy(update={"value": entry.bound.value + 1})
    assert [fault.kind for fault in audit.unwitnessed()] == ["unsupported"]


def test_colours_and_pictures_of_a_page_are_claims(checkout):
    path = checkout / "reports" / "study" / "report.html"
    text = path.read_text()
    moved = re.sub(r'(<svg\b.*?\bd="M )(\d+)', lambda m: m[1] + str(int(m[2]) + 30), text, count=1, flags=re.DOTALL)
    assert moved != text
    path.write_text(moved)
    assert [fault.kind for fault in faults(checkout)] == ["picture"]


def test_tables_that_are_missing_or_that_no_runs_make_are_found(checkout):
    folder = checkout / "reports" / "study"
    (folder / "instances.csv").rename(folder / "a.csv")
    words = [fault.words for fault in faults(checkout) if fault.kind == "table"]
    assert words == [
        "expected nothing, since its runs make no such table, found a file",
        "expected what its runs make, found no file",
    ]


def test_what_needs_an_extra_that_is_not_installed_is_named_and_not_judged(checkout, run, monkeypatch):
    """Figure and table are wrong, and found so where the extra is."""
    folder, page = checkout / "reports" / "neuron_masking", checkout / "README.md"
    folder.mkdir()
    append(folder / "runs.jsonl", run)
    (folder / "gaps.csv").write_text("case\n")
    page.write_text(f"{README}\nIt has <!-- fig: neuron_masking/gaps count -->9<!-- /fig --> cases.\n")
    Checkout(checkout).accept()
    assert {"table", "figure"} <= {fault.kind for fault in faults(checkout)}
    known = importlib.util.find_spec
    monkeypatch.setattr("importlib.util.find_spec", lambda name, *more: known(name, *more) if name != "scipy" else None)
    without = Checkout(checkout)
    assert without.audit() == []
    assert without.unseen == {
        "neuron_masking": "study neuron_masking: expected the extra mapgap[studies], found no scipy"
    }


def test_runs_that_are_deleted_leave_a_report_that_says_too_much(checkout, run):
    worse = run_method(load_instance(EXAMPLE), "single_accelerator", Budget(5.0), isolate=False)
    append(runs_of(checkout), changed(worse, revision=run.revision))
    ledger = Ledger.load(checkout / "instances" / "best_known.yaml")
    write_report(runs_of(checkout), checkout / "reports" / "study", ledger)
    assert faults(checkout) == []
    kept = read_runs(runs_of(checkout))[0]
    packed(runs_of(checkout)).unlink()
    append(runs_of(checkout), kept)
    assert {fault.kind for fault in faults(checkout)} == {*MADE, "unsupported"}  # the ledger's bound was that run's


def test_a_verdict_that_is_edited_or_leads_nowhere_is_found(checkout):
    # A report made from tables of other reports, of which there are none here: none of its verdicts can be recomputed.
    folder = checkout / "reports" / "published_numbers"
    for _ in range(2):  # the words of its faults name the reports that there are: at last, itself
        page_of("published_numbers", folder, Ledger.load(checkout / "none.yaml"), Checkout(checkout).rows).write(folder)
    found = [fault for fault in faults(checkout) if fault.place.startswith(str(folder))]
    assert found
    assert {fault.kind for fault in found} == {"verdict"}
    file = folder / "mtrain.csv"
    file.write_text(file.read_text().replace("cannot be judged", "reproduced", 1))
    assert [fault.place for fault in faults(checkout) if fault.kind == "table"] == [
        f"{file}: line 10"
    ]  # behind the head and eight inputs


@pytest.mark.parametrize(
    ("old", "new", "kind"),
    [
        ("-->1<", "-->2<", "figure"),
        ("ledger count", "lodger count", "figure"),
        ("1.3 times. <!-- source: its Table 4 -->", "1.3 times.", "unsupported"),
    ],
)
def test_a_page_that_says_something_else_is_found(checkout, old, new, kind):
    page = checkout / "README.md"
    page.write_text(README.replace(old, new, 1))
    assert [fault.kind for fault in faults(checkout)] == [kind]


@pytest.mark.in_turn
def test_figures_are_written_anew_and_a_lie_is_an_exit_code(checkout):
    page = checkout / "README.md"
    page.write_text(README.replace("-->1<", "-->7<"))
    done = wide("audit", str(checkout), "--json")
    assert (done.returncode, len(json.loads(done.stdout)["faults"])) == (5, 2)
    assert wide("audit", str(checkout), "--fill").returncode == 0
    assert page.read_text() == README


def test_a_picture_of_a_page_is_what_its_report_draws(checkout):
    page = page_of_file(runs_of(checkout), Ledger.load(checkout / "instances" / "best_known.yaml"))
    pictures = [each for section in page.sections for each in section.figures]
    drawn = next(each for each in pictures if "var(--c" in each.alone and ' d="M ' in each.alone)
    file = checkout / "docs" / "images" / f"study_{drawn.name}.svg"
    file.parent.mkdir(parents=True)
    file.write_text(drawn.alone)
    assert faults(checkout) == []
    # A bar or line that is moved, a colour that is changed, and a word.
    moved = re.sub(r' d="M (\S+) (\S+) ', lambda m: f' d="M {m[1]} {float(m[2]) + 20} ', drawn.alone)
    for lie in (moved, re.sub(r"var\(--c\d", "var(--fg", drawn.alone), drawn.alone.replace("</text>", "!</text>")):
        assert lie != drawn.alone
        file.write_text(lie)
        assert [fault.kind for fault in faults(checkout)] == ["picture"]
    assert Checkout(checkout).fill() == [file]
    assert file.read_text() == drawn.alone
    file.rename(file.with_name("study_of_nobody.svg"))
    assert [fault.words.partition(",")[0] for fault in faults(checkout)] == ["expected a picture of a report"]


def test_versions_are_judged_by_what_the_package_asks_for():
    assert allowed("highspy", "1.13.1")
    assert not allowed("highspy", "1.14.0")
    assert not allowed("ortools", "9.15.6755")
    assert not allowed("ortools", "latest")
    assert allowed("python", "3.11.9")


def test_a_folder_without_reports_is_no_checkout(tmp_path):
    with pytest.raises(InputError, match="expected a checkout with a folder reports"):
        Checkout(tmp_path)
