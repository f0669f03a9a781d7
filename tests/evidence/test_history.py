"""The history of an entry: who improved what, bounded, with a revision only where it says what was run."""

import json

import pytest
from cli_support import inside
from records import changed

from mapgap.catalogue.files import load_instance
from mapgap.core import Budget
from mapgap.evidence.entry import HISTORY, Origin
from mapgap.evidence.ledger import Ledger, update_ledger
from mapgap.execution.run import run_method

EXAMPLE = "mtrain_example_fig5"


@pytest.fixture(scope="module")
def record():
    instance = load_instance(EXAMPLE)
    return changed(run_method(instance, "enumerate", Budget(300.0), isolate=False), revision="abc123")


def entry_of(tmp_path, record, **origin):
    book = Ledger.load(tmp_path / "best.yaml")
    book.enter(EXAMPLE, record, Origin(**origin))
    book.save()
    return Ledger.load(tmp_path / "best.yaml").entries[EXAMPLE]


def test_a_run_leaves_method_file_date_and_revision(record, tmp_path):
    update_ledger([record], tmp_path / "best.yaml", "runs/overview.jsonl")
    entry = Ledger.load(tmp_path / "best.yaml").entries[EXAMPLE]
    assert [(step.what, step.value) for step in entry.history] == [("plan", 36), ("bound", 36)]
    for step in entry.history:
        assert (step.by, step.source, step.date) == ("enumerate", "runs/overview.jsonl", record.started)
        assert (step.revision, step.version) == ("abc123", record.versions["mapgap"])


def test_what_improves_nothing_leaves_nothing(record, tmp_path):
    entry_of(tmp_path, record)
    assert len(entry_of(tmp_path, changed(record, method="other")).history) == 2


@pytest.mark.parametrize("revision", [None, "abc123-dirty"])
def test_a_revision_with_local_changes_is_none(record, tmp_path, revision):
    entry = entry_of(tmp_path, changed(record, revision=revision))
    assert {step.revision for step in entry.history} == {None}


def test_the_oldest_steps_are_forgotten(record, tmp_path):
    bounds = range(1, HISTORY + 5)
    for bound in bounds:
        weak = changed(record, objective=None, plan=None, bound=bound, status="UNKNOWN", started=f"{bound:03}")
        entry = entry_of(tmp_path, weak)
    assert [step.value for step in entry.history] == list(bounds)[-HISTORY:]


def test_what_was_held_before_there_was_a_history_is_told_first(record, tmp_path):
    entry = entry_of(tmp_path, record)
    old = entry.model_copy(update={"history": []})
    assert [(step.what, step.value, step.by) for step in old.story()] == [
        ("plan", 36, "enumerate"),
        ("bound", 36, "enumerate"),
    ]
    assert entry.story() == entry.history


def test_the_first_step_keeps_what_was_held_before_there_was_a_history(record, tmp_path):
    weak = changed(record, objective=None, plan=None, bound=30, status="UNKNOWN", method="older")
    entry = entry_of(tmp_path, weak)
    book = Ledger.load(tmp_path / "best.yaml")
    book.entries[EXAMPLE].history = []
    book.save()
    entry = entry_of(tmp_path, record)
    assert [(step.what, step.value, step.by) for step in entry.history] == [
        ("bound", 30, "older"),
        ("plan", 36, "enumerate"),
        ("bound", 36, "enumerate"),
    ]


def test_the_commands_show_it(record, tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")  # so that no text of the table folds
    entry_of(tmp_path, record, by="close from elsewhere")
    path = tmp_path / "best.yaml"
    shown = inside("ledger", "show", EXAMPLE, "--ledger", path)
    assert shown.returncode == 0, shown.stderr
    assert "close from elsewhere" in shown.stdout
    told = json.loads(inside("ledger", "history", "mtrain_*", "--ledger", path, "--json").stdout)
    assert [step["by"] for step in told["instances"][EXAMPLE]] == ["close from elsewhere"] * 2
    data = json.loads(inside("ledger", "show", EXAMPLE, "--ledger", path, "--json").stdout)
    assert (data["plan"]["value"], data["gap"], len(data["history"])) == (36, 0.0, 2)


@pytest.mark.parametrize("command", ["show", "history"])
def test_an_unknown_instance_is_one_clear_error(command, tmp_path):
    found = inside("ledger", command, "mtrain_exampel_fig5")
    assert found.returncode == 2
    assert "mtrain_exampel_fig5: expected an instance of the ledger" in found.stderr
    assert EXAMPLE in found.stderr
