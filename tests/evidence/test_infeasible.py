"""That there is no plan is certified, for every problem; brute force is the judge."""

import json
from itertools import product

import pytest
from cli_support import inside

from mapgap.catalogue import registry
from mapgap.catalogue.files import save_expanded
from mapgap.contract.seeds import samples
from mapgap.core import Budget, PlanError, Status
from mapgap.evidence import check, journal
from mapgap.evidence import prove as proving
from mapgap.evidence.ledger import Ledger, glance
from mapgap.evidence.prove import prove, prove_all
from mapgap.evidence.verify import verify, verify_all
from mapgap.records.record import RunRecord


def has_plan(instance):
    found = registry.methods(instance.problem)["enumerate"].solve(instance, Budget(300.0).start())
    return found.plan is not None


@pytest.mark.in_turn
@pytest.mark.parametrize("sample", samples(8, 400))
@pytest.mark.parametrize("problem", registry.house())
def test_an_instance_without_a_plan_is_certified_and_no_other(problem, sample, tmp_path):
    certified, by_day = 0, len(sample) < 100
    for seed in sample:
        instance = registry.library(problem).generate("tiny", 5000 + seed)
        file = tmp_path / f"{seed}.cert.json.gz"
        planned = has_plan(instance)
        made = prove(instance, None, Budget(0.5 if planned and by_day else 20.0), file)
        assert (made.file is None) == planned, seed
        if made.file is not None:
            assert "there is no plan" in check.check(check.read(file), instance.to_json())
            assert (found := verify(file, Ledger.load())).holds, found.reason
            assert found.infeasible
            certified += 1
    assert certified or by_day


def test_a_proof_of_another_instance_does_not_serve():
    """The proof that one instance has no plan, put into the file of another one that has some."""
    library = registry.library("suboperation_mapping")
    instances = [library.generate("tiny", seed) for seed in range(5000, 5040)]
    some, none = ([each for each in instances if has_plan(each) == yes] for yes in (True, False))
    proofs = [library.prove(each.to_json(), check.NONE["min"], Budget(60.0).start()) for each in none]
    assert some
    assert proofs
    for instance, proof in product(some, proofs):
        assert proof is not None
        with pytest.raises(check.Refused):
            check.check({"schema": 1, "instance": instance.to_json(), "bound": None, "proof": proof})


def test_the_commands_know_it(tmp_path):
    library = registry.library("multi_model_splitting")
    instance = next(each for each in (library.generate("tiny", s) for s in range(60)) if not has_plan(each))
    path = save_expanded(instance, tmp_path / "none.yaml")
    done = inside("solve", path, "--json", "--time-limit", 20)
    told = json.loads(done.stdout)
    assert (done.returncode, told["status"], told["word"]) == (3, "INFEASIBLE", "certified")
    file = tmp_path / "none.cert.json.gz"
    done = inside("certify", path, "--infeasible", "-o", file)
    assert done.returncode == 0
    assert "there is no plan" in done.stdout
    assert "there is no plan" in inside("verify", file).stdout


@pytest.mark.in_turn
def test_the_ledger_holds_it_and_takes_no_plan_beside_it(tmp_path, monkeypatch):
    library = registry.library("multi_model_splitting")
    instance = next(each for each in (library.generate("tiny", s) for s in range(60)) if not has_plan(each))
    path, name = save_expanded(instance, tmp_path / "none.yaml"), instance.name
    book = tmp_path / "best.yaml"
    told = {"infeasible": True, "update": True, "ledger": book}
    with pytest.raises(Exception, match="expected an instance of the library"):
        prove_all([str(path)], Budget(20.0), **told)
    monkeypatch.setattr(proving, "library_names", lambda hashes: dict.fromkeys(hashes, name))
    (made,) = prove_all([str(path)], Budget(20.0), **told)
    held = Ledger.load(book)
    assert made.file == held.certificate_path(name)
    entry = held.entries[name]
    assert (entry.infeasible, entry.word, entry.plan, entry.bound) == (True, "certified", None, None)
    assert [step.what for step in entry.history] == ["infeasible"]
    assert held.problems_of(name, instance) == []
    assert held.behind() == []
    assert glance(book)[name].status == "infeasible (checked)"
    (verdict,) = verify_all((), ledger=book)
    assert verdict.holds, verdict.reason
    assert verdict.infeasible

    # Entered once more nothing changes; a run that has a plan, in this book or in another one, is a contradiction.
    (again,) = prove_all([str(path)], Budget(20.0), **told)
    assert again.kept
    assert Ledger.load(book).view() == held.view()
    keys = ("problem", "unit", "sense", "instance_hash")
    known = {key: getattr(entry, key) for key in keys} | {"instance": name, "started": "2026-01-01T00:00:00+00:00"}
    planned = RunRecord(**known, method="m", kind="baseline", status=Status.FEASIBLE, objective=5)
    with pytest.raises(PlanError, match="claims INFEASIBLE, but m has a plan of objective 5"):
        held.enter(name, planned)
    said = RunRecord(**known, method="m", kind="exact", status=Status.INFEASIBLE)
    assert held.enter(name, said) == []

    # Who loses the file, or has one of a bound in its place, is told.
    proof = check.read(made.file)["proof"]
    made.file.write_bytes(proving.pack(instance, 7, proof))
    assert ["no plan is checked" in each for each in held.problems_of(name, instance)] == [True]
    made.file.unlink()
    assert ["no plan is checked" in each for each in held.problems_of(name, instance)] == [True]


def test_a_plan_and_a_proof_that_there_is_none_do_not_come_together(tmp_path):
    """Entered at the same time from two books, the second is refused; and the order of lines does not matter."""
    known = {"instance": "x", "instance_hash": "0" * 16, "problem": "suboperation_mapping", "unit": "ticks"}
    known |= {"sense": "min", "started": "2026-01-01T00:00:00+00:00"}
    nothing = RunRecord(**known, method="certificate", kind="bound", status=Status.INFEASIBLE)
    bound = RunRecord(**known, method="m", kind="bound", bound=7)
    first, second = Ledger.load(tmp_path / "best.yaml"), Ledger.load(tmp_path / "best.yaml")
    assert first.enter_certificate("x", nothing) == ["x: there is no plan, checked"]
    second.enter("x", bound)
    first.save()
    second.save()
    lines = list(journal.read(first.journal_path).values())
    assert len(lines) == 2
    entries = [journal.entries_of(order)[0]["x"] for order in (lines, lines[::-1])]
    assert entries[0] == entries[1]
    assert (entries[0].infeasible, entries[0].bound.value) == (True, 7)
    late = Ledger.load(tmp_path / "late.yaml")
    late.enter("x", bound)
    plan = late.facts[0].model_copy(update={"bound": None, "plan": 9, "witness": {}})
    second.facts = [plan]
    with pytest.raises(PlanError, match="a certificate says that there is no plan, but m has one of objective 9"):
        second.save()
    assert len(journal.read(first.journal_path)) == 2
