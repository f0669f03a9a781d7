"""The ledger only improves, refuses contradictions and regressions, and every committed entry holds."""

import json
import os
import subprocess
import sys

import pytest
from records import changed

from mapgap.catalogue import registry
from mapgap.catalogue.files import load_instance
from mapgap.contract.seeds import samples
from mapgap.core import Budget, Certificate, InputError, MapgapError, PlanError
from mapgap.evidence import ledger as books
from mapgap.evidence.ledger import Ledger, library_hashes, library_names
from mapgap.execution.run import run_method
from mapgap.records.files import append

EXAMPLE = "mtrain_example_fig5"


@pytest.fixture(scope="module")
def record():
    instance = load_instance(EXAMPLE)
    return run_method(instance, "enumerate", Budget(300.0), isolate=False)


def entered(tmp_path, *records):
    ledger = Ledger.load(tmp_path / "best.yaml")
    changes = ledger.update(records, {record.instance_hash: EXAMPLE for record in records})
    return ledger, changes


def test_a_proven_run_enters_plan_bound_and_certificate_and_survives_the_file(record, tmp_path):
    ledger, changes = entered(tmp_path, record)
    assert len(changes) == 2
    ledger.save()
    again = Ledger.load(tmp_path / "best.yaml")
    entry = again.entries[EXAMPLE]
    # 36 ticks by brute force over all plans.
    assert (entry.plan.value, entry.bound.value, entry.certificate, entry.gap) == (36, 36, "enumerated", 0.0)
    assert again.problems_of(EXAMPLE) == []
    assert again.update([record], {record.instance_hash: EXAMPLE}) == []  # nothing improves twice


def test_a_certificate_is_only_raised(record, tmp_path):
    ranks = [Certificate(word).rank for word in ("claimed", "agreed", "enumerated", "checked")]
    assert ranks == sorted(set(ranks))
    ledger, _ = entered(tmp_path, changed(record, certificate="agreed"))
    for given, held in (("claimed", "agreed"), ("enumerated", "enumerated"), ("agreed", "enumerated")):
        ledger.update([changed(record, certificate=given)], {record.instance_hash: EXAMPLE})
        assert ledger.entries[EXAMPLE].certificate == held


def test_a_changed_plan_file_is_found(record, tmp_path):
    ledger, _ = entered(tmp_path, record)
    ledger.save()
    path = ledger.plan_path(EXAMPLE)
    plan = json.loads(path.read_text())
    plan["order"] = [order[::-1] for order in plan["order"]]
    path.write_text(json.dumps(plan))
    assert "the ledger says 36" in ledger.problems_of(EXAMPLE)[0]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"objective": 35, "bound": None}, r"enumerate\* claims bound 36, but enumerate has a plan of objective 35"),
        ({"objective": None, "bound": 37}, r"claims bound 37, but enumerate\* has a plan of objective 36"),
        ({"objective": None, "bound": None, "status": "INFEASIBLE"}, r"claims INFEASIBLE, but enumerate\* has a plan"),
        ({"objective": None, "bound": 30, "status": "UNKNOWN"}, "has proven 36 before"),
    ],
)
def test_contradictions_and_regressions_are_errors(record, tmp_path, changes, words):
    ledger, _ = entered(tmp_path, record)
    with pytest.raises(PlanError, match=words):
        ledger.update([changed(record, **changes)], {record.instance_hash: EXAMPLE})
    assert ledger.entries[EXAMPLE].bound.value == 36


@pytest.mark.parametrize("changes", [{"time_limit_s": 1.0}, {"method": "other"}, {"bound": 36}])
def test_a_weaker_bound_of_a_smaller_budget_or_another_method_is_no_regression(record, tmp_path, changes):
    ledger, _ = entered(tmp_path, record)
    weaker = changed(record, **{"bound": 30, "status": "FEASIBLE", **changes})
    assert ledger.update([weaker], {record.instance_hash: EXAMPLE}) == []


def broken(plan):
    return {**plan, "order": [order[::-1] for order in plan["order"]]}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"plan": {"x": 1}}, "no plan of suboperation_mapping"),
        ({"plan": "BROKEN"}, "has a plan that breaks"),
        ({"objective": 37, "bound": None, "status": "FEASIBLE"}, "says objective 37, but its plan has 36"),
        ({"objective": 20, "bound": 20}, "says objective 20, but its plan has 36"),
        ({"certificate": "checked"}, "never of a run"),
    ],
)
def test_a_forged_run_is_refused_and_changes_nothing(record, tmp_path, changes, words):
    if changes.get("plan") == "BROKEN":
        changes = {"plan": broken(record.plan)}
    ledger = Ledger.load(tmp_path / "best.yaml")
    with pytest.raises(PlanError, match=words):
        ledger.update([changed(record, **changes)], {record.instance_hash: EXAMPLE})
    assert ledger.entries == {}
    assert ledger.plans == {}


def test_a_full_disk_leaves_the_old_ledger_and_no_crumbs(record, tmp_path, monkeypatch):
    ledger, _ = entered(tmp_path, changed(record, bound=None, status="FEASIBLE"))
    ledger.save()
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    ledger.update([record], {record.instance_hash: EXAMPLE})

    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(MapgapError, match="No space left"):
        ledger.save()
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


KILLED = """
import json, os, sys
from pathlib import Path
from mapgap.evidence.ledger import Ledger
from mapgap.records.files import read_runs
ledger = Ledger.load(Path(sys.argv[1]))
calls = 0
def count(function):
    def counted(*arguments, **more):
        global calls
        calls += 1
        if calls == int(sys.argv[2]):
            os._exit(9)
        return function(*arguments, **more)
    return counted
os.fsync, os.replace, Path.replace = count(os.fsync), count(os.replace), count(Path.replace)
(record,) = read_runs(Path(sys.argv[3]))
ledger.update([record], {record.instance_hash: record.instance})
ledger.save()
"""


@pytest.mark.in_turn
def test_a_kill_at_any_step_of_writing_leaves_whole_files_and_loses_nothing(record, tmp_path):
    """Each file is the old or the new one, no plan is worse than the file says; the next writer completes them."""
    single = run_method(load_instance(EXAMPLE), "single_accelerator", Budget(5.0), isolate=False)
    append(tmp_path / "runs.jsonl", record)
    values, steps = [], []
    for step in range(1, 20):
        path = tmp_path / str(step) / "best.yaml"
        ledger = Ledger.load(path)
        ledger.update([single], {single.instance_hash: EXAMPLE})
        ledger.save()
        command = [sys.executable, "-c", KILLED, path, str(step), tmp_path / "runs.jsonl"]
        done = subprocess.run(command, capture_output=True, check=False)
        entry, plan = Ledger.load(path).entries[EXAMPLE], json.loads(ledger.plan_path(EXAMPLE).read_text())
        assert entry.plan.value in (single.objective, 36)
        assert plan in (single.plan, record.plan)
        assert entry.plan.value == single.objective or plan == record.plan
        entered = json.loads(ledger.journal_path.read_bytes().splitlines()[-1])["plan"]
        again = Ledger.load(path)
        again.save()
        assert again.problems_of(EXAMPLE) == []
        assert again.behind() == []
        values.append(again.entries[EXAMPLE].plan.value)
        steps.append(entered)
        if done.returncode == 0:
            break
        assert done.returncode == 9, done.stderr
    assert values == steps
    assert (values[-1], len(values) > 6) == (36, True)


def test_failed_runs_and_foreign_instances_are_left_out(record, tmp_path):
    ledger = Ledger.load(tmp_path / "best.yaml")
    assert ledger.update([changed(record, error="boom")], {record.instance_hash: EXAMPLE}) == []
    assert ledger.update([record], {}) == []
    assert ledger.entries == {}


def test_a_broken_ledger_names_the_line(tmp_path):
    path = tmp_path / "best.yaml"
    path.write_text("schema: 1\nentries:\n- {instance: x}\n")
    with pytest.raises(InputError, match=r"best\.yaml:3"):
        Ledger.load(path)


def test_names_by_hash_come_from_the_list_and_from_the_library_where_that_is_no_longer_true(tmp_path, monkeypatch):
    """Every call to the library itself would expand it; here it answers something that no list says."""
    own, other = (load_instance(name).content_hash for name in (EXAMPLE, "dhm_squeezenet_fire4@edp"))
    monkeypatch.setattr(books, "library_hashes", lambda: {own: "from the library"})
    assert library_names([own, other]) == {own: EXAMPLE, other: "dhm_squeezenet_fire4@edp"}
    assert library_names([own, "0" * 16]) == {own: "from the library"}
    stale = tmp_path / "list"
    stale.write_text(f"{own:0<64}  dhm_squeezenet_fire4@edp\n")  # as if the file had changed since
    monkeypatch.setattr(books.check, "beside", lambda name: stale)
    assert library_names([own]) == {own: "from the library"}


@pytest.mark.nightly
def test_the_library_has_one_name_per_instance_and_objective():
    hashes = library_hashes()
    assert hashes[load_instance(EXAMPLE).content_hash] == EXAMPLE
    several = [p for p in registry.problems().values() if p.objectives]
    assert all(any(name.endswith(f"@{p.objectives[-1]}") for name in hashes.values()) for p in several)


@pytest.mark.parametrize("sample", samples(20, 400))
def test_committed_entries_hold(sample):
    """Some of them; ``mapgap audit`` looks at all."""
    ledger = Ledger.load()
    names = sorted(ledger.entries)
    chosen = {names[k % len(names)] for k in sample}
    assert {name: words for name in chosen if (words := ledger.problems_of(name))} == {}


def test_references_hold_what_is_known_of_the_instances_of_some_runs(record, tmp_path):
    ledger, _ = entered(tmp_path, record)
    ledger.save()
    other = changed(record, instance_hash="0" * 16)
    plan, bound = Ledger.load(tmp_path / "best.yaml").references([record, record, other])
    assert {plan.kind, bound.kind} == {"reference"}
    assert (plan.objective, plan.plan, bound.bound) == (36, record.plan, 36)
    assert plan.instance_hash == bound.instance_hash == record.instance_hash
