"""Closing the ledger: plans and bounds go where they help, contradictions are found; the committed one is closed."""

import shutil

import pytest
import yaml
from cli_support import inside

from mapgap.core import PlanError
from mapgap.evidence.closing import Step, close
from mapgap.evidence.ledger import Ledger

BOOK = Ledger.load()
#: One network on one cluster at two bandwidths, whose DRAM holds everything: the slower one is no better, so that it
#: takes the other one's bound; plans of either are plans of the other. Both are open.
SLOW, FAST = "mtrain_c1_alexnet_0p5gbs", "mtrain_c1_alexnet_1gbs"
PROVEN, WHOLE = "synergy_fig11b_1pipelines", "synergy_fig11b_2pipelines"


@pytest.fixture
def book(tmp_path):
    """A ledger of some committed entries with their plans, without certificates and what has been closed before."""
    names = (SLOW, FAST, PROVEN, WHOLE)
    bare = {"history": [], "checked_bound": None}
    entries = {name: BOOK.entries[name].model_copy(deep=True, update=bare) for name in names}
    found = Ledger(tmp_path / "best.yaml", entries)
    found.write()
    (tmp_path / "best").mkdir()
    for name in names:
        shutil.copy(BOOK.plan_path(name), found.plan_path(name))
    return found


def held(book, name):
    entry = Ledger.load(book.path).entries[name]
    return entry.plan.value, entry.bound.value


def weaken(book, name, **values):
    """Forget the best plan or bound of an entry; the plan's file is left out with it."""
    entry = book.entries[name]
    for what, value in values.items():
        found = getattr(entry, what)
        setattr(entry, what, None if value is None else found.model_copy(update={"value": value}))
    entry.certificate = None
    book.write()


def test_a_bound_goes_to_the_slower_instance_and_says_where_it_comes_from(book):
    known = book.entries[FAST].bound.value
    weaken(book, SLOW, bound=known - 1000)
    before = held(book, SLOW)[1]
    steps = [step for step in close(book.path) if step.what == "bound"]
    assert steps == [Step(SLOW, "bound", before, held(book, SLOW)[1], FAST)]
    # Both count ticks of 10 ns, so nothing is lost by rounding.
    assert held(book, SLOW)[1] == known
    last = Ledger.load(book.path).entries[SLOW].history[-1]
    assert (last.what, last.value, last.by) == ("bound", known, f"close from {FAST}")


def test_no_bound_goes_to_the_faster_instance(book):
    weaken(book, FAST, bound=1)
    steps = close(book.path)
    assert not [step for step in steps if step.instance == FAST and step.what == "bound"]


def test_a_missing_plan_is_carried_over_evaluated_and_written(book):
    weaken(book, FAST, plan=None)
    book.plan_path(FAST).unlink()
    step = next(step for step in close(book.path) if step.what == "plan")
    assert (step.instance, step.before, step.source) == (FAST, None, SLOW)
    # Its own bound holds, and so does the plan file: the entry is whole again.
    assert Ledger.load(book.path).problems_of(FAST) == []


def test_what_is_closed_stays(book):
    close(book.path)
    before = book.path.read_bytes()
    assert close(book.path) == []
    assert book.path.read_bytes() == before


def test_check_changes_nothing_and_exits_with_5(book):
    weaken(book, SLOW, bound=1)
    before = book.path.read_bytes()
    found = inside("ledger", "close", "--check", "--ledger", book.path)
    assert found.returncode == 5, found.stderr
    assert f"{SLOW}: bound 1 -> " in found.stdout
    assert book.path.read_bytes() == before
    assert inside("ledger", "close", "--ledger", book.path).returncode == 0
    assert inside("ledger", "close", "--check", "--ledger", book.path).returncode == 0


def test_a_checked_optimum_is_never_touched(book):
    close(book.path)
    assert Ledger.load(book.path).entries[PROVEN] == BOOK.entries[PROVEN].model_copy(update={"history": []})


def test_a_bound_that_a_plan_of_another_instance_refutes_is_an_error(book):
    # A plan for two pipelines serves one of them in no more time; so a larger bound on the one is wrong.
    weaken(book, PROVEN, plan=None, bound=book.entries[WHOLE].plan.value + 1)
    with pytest.raises(PlanError, match=rf"{PROVEN}: .* contradict each other: .* \(passed on from {WHOLE}\)"):
        close(book.path)


@pytest.mark.nightly
def test_the_committed_ledger_is_closed():
    assert close(check=True) == []


def test_entries_without_a_history_are_written_without_one(book):
    entries = yaml.safe_load(book.path.read_text())["entries"]
    assert all("history" not in entry for entry in entries)
