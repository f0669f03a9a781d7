"""The ledger only improves, refuses contradictions and regressions, and every committed entry holds."""

import json

import pytest
from records import changed

from mapgap.catalogue import registry
from mapgap.catalogue.files import load_instance
from mapgap.core import Budget, Certificate, InputError, PlanError
from mapgap.evidence.ledger import Ledger, library_hashes
from mapgap.execution.run import run_method

EXAMPLE = "mtrain_example_fig5"


@pytest.fixture(scope="module")
def record():
    instance = load_instance(EXAMPLE)
    return run_method(instance, "enumerate", Budget(30.0), isolate=False)


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
    assert Certificate.CLAIMED.rank < Certificate.AGREED.rank < Certificate.ENUMERATED.rank
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


def test_the_library_has_one_name_per_instance_and_objective():
    hashes = library_hashes()
    assert hashes[load_instance(EXAMPLE).content_hash] == EXAMPLE
    several = [p for p in registry.problems().values() if p.objectives]
    assert all(any(name.endswith(f"@{p.objectives[-1]}") for name in hashes.values()) for p in several)


LEDGER = Ledger.load()


@pytest.mark.parametrize("name", sorted(LEDGER.entries))
def test_committed_entry_holds(name):
    assert LEDGER.problems_of(name) == []


def test_references_hold_what_is_known_of_the_instances_of_some_runs(record, tmp_path):
    ledger, _ = entered(tmp_path, record)
    ledger.save()
    other = changed(record, instance_hash="0" * 16)
    plan, bound = Ledger.load(tmp_path / "best.yaml").references([record, record, other])
    assert {plan.kind, bound.kind} == {"reference"}
    assert (plan.objective, plan.plan, bound.bound) == (36, record.plan, 36)
    assert plan.instance_hash == bound.instance_hash == record.instance_hash
