"""The audit of a checkout: nothing to say of an honest one, and every lie that is planted is found."""

import json

import pytest
from cli_support import mapgap
from records import changed

from mapgap.catalogue.files import load_instance
from mapgap.core import Budget, InputError
from mapgap.evidence.audit import allowed
from mapgap.evidence.ledger import Ledger
from mapgap.execution.run import run_method
from mapgap.records.files import append
from mapgap.reporting.committed import Checkout

EXAMPLE = "mtrain_example_fig5"
README = """# A project

It knows <!-- fig: ledger count -->1<!-- /fig --> instance.
It proves <!-- fig: ledger[proven=True] count -->1<!-- /fig -->.

The paper prints 1.3 times. <!-- source: its Table 4 -->
"""


@pytest.fixture(scope="module")
def run():
    """The optimum by enumeration, 36 ticks, as from a clean revision."""
    found = run_method(load_instance(EXAMPLE), "enumerate", Budget(30.0), isolate=False)
    return changed(found, revision="0123456789ab")


@pytest.fixture
def checkout(tmp_path, run):
    """One report with one run, a ledger that knows it, a README with two figures."""
    ledger = Ledger.load(tmp_path / "instances" / "best_known.yaml")
    ledger.update([run], {run.instance_hash: EXAMPLE})
    (tmp_path / "instances").mkdir()
    ledger.save()
    (tmp_path / "reports" / "study").mkdir(parents=True)
    append(runs_of(tmp_path), run)
    (tmp_path / "README.md").write_text(README)
    (tmp_path / "docs").mkdir()
    return tmp_path


def runs_of(checkout):
    return checkout / "reports" / "study" / "runs.jsonl"


def faults(checkout):
    return Checkout(checkout).audit()


def test_an_honest_checkout_has_no_faults(checkout):
    assert faults(checkout) == []


LIES = {
    "another objective than the plan's": (
        lambda run: {"objective": 35, "bound": 35},
        {"plan", "contradiction", "withheld"},
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
    "infeasible beside a plan": (
        lambda run: {"plan": None, "objective": None, "bound": None, "status": "INFEASIBLE"},
        {"contradiction"},
    ),
    "a modified revision": (lambda run: {"revision": "0123456789ab-dirty"}, {"revision"}),
    "no revision": (lambda run: {"revision": None}, {"revision"}),
    "a banned version": (lambda run: {"versions": {**run.versions, "highspy": "1.14.0"}}, {"version"}),
}


@pytest.mark.parametrize("lie", LIES)
def test_a_run_that_lies_is_found(checkout, run, lie):
    changes, kinds = LIES[lie]
    append(runs_of(checkout), changed(run, **changes(run)))
    found = faults(checkout)
    assert {fault.kind for fault in found} == kinds
    assert all(str(runs_of(checkout)) in fault.place for fault in found)


def test_a_better_plan_that_is_withheld_from_the_ledger_is_found(checkout, run):
    # The ledger forgets the optimum and keeps the plan of one accelerator only, which is worse.
    single = run_method(load_instance(EXAMPLE), "single_accelerator", Budget(5.0), isolate=False)
    assert single.objective > run.objective
    book = checkout / "instances" / "best_known.yaml"
    book.unlink()
    ledger = Ledger.load(book)
    ledger.update([single], {single.instance_hash: EXAMPLE})
    ledger.save()
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
    assert [fault.kind for fault in faults(checkout)] == ["file"]


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


def test_figures_are_written_anew_and_a_lie_is_an_exit_code(checkout):
    page = checkout / "README.md"
    page.write_text(README.replace("-->1<", "-->7<"))
    done = mapgap("audit", str(checkout), "--json")
    assert (done.returncode, len(json.loads(done.stdout)["faults"])) == (5, 2)
    assert mapgap("audit", str(checkout), "--fill").returncode == 0
    assert page.read_text() == README


def test_versions_are_judged_by_what_the_package_asks_for():
    assert allowed("highspy", "1.13.1")
    assert not allowed("highspy", "1.14.0")
    assert not allowed("ortools", "9.15.6755")
    assert not allowed("ortools", "latest")
    assert allowed("python", "3.11.9")


def test_a_folder_without_reports_is_no_checkout(tmp_path):
    with pytest.raises(InputError, match="expected a checkout with a folder reports"):
        Checkout(tmp_path)
