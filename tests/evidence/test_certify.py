"""Two engines and a case split; what does not agree is an error."""

from dataclasses import replace

import pytest

from mapgap.catalogue import registry
from mapgap.contract.seeds import samples
from mapgap.core import Budget, Certificate, PlanError, Status
from mapgap.evidence import certify
from mapgap.evidence.ledger import Ledger


@pytest.fixture
def quick(monkeypatch):
    """Runs in this process: the isolation of runs is tested elsewhere."""
    plain = certify.run_uninterrupted
    monkeypatch.setattr(certify, "run_uninterrupted", lambda *a, **k: plain(*a, **{**k, "isolate": False}))


@pytest.mark.parametrize("sample", samples(1, 8))
@pytest.mark.parametrize("problem", registry.house())
def test_tiny_instances_are_certified(problem, sample, quick):
    grades = []
    for seed in sample:
        found = certify.certify(registry.library(problem).generate("tiny", seed), Budget(200.0))
        grades.append(found.grade)
        assert found.grade is not None
        assert bool(found.missing) == (found.grade is Certificate.CLAIMED)
    assert len(sample) < 8 or Certificate.AGREED in grades


def test_a_certification_tells_what_it_solves(quick):
    told = []
    instance = registry.library("neuron_masking").generate("tiny", 0)
    found = certify.certify(instance, Budget(200.0), tell=told.append)
    begun = [(event.method, event.instance) for event in told if isinstance(event, certify.Solving)]
    assert begun == [(run.method, run.instance) for run in found.runs]


def test_a_contradiction_is_an_error(quick, monkeypatch):
    problem = "suboperation_mapping"
    library = registry.library(problem)
    seed = next(s for s in range(40) if library.cases(library.generate("tiny", s)))
    plain = certify.run_uninterrupted

    def lying(instance, method, budget, **more):
        record = plain(instance, method, budget, **more)
        if method.name.startswith("mip") and record.status == Status.OPTIMAL:
            return replace(record, objective=record.objective + 1)
        return record

    monkeypatch.setattr(certify, "run_uninterrupted", lying)
    with pytest.raises(PlanError, match="contradict"):
        certify.certify(library.generate("tiny", seed), Budget(200.0))


@pytest.mark.in_turn
def test_a_pattern_certifies_every_match_and_enters_what_it_reaches(tmp_path, monkeypatch):
    """The contradiction on one of two instances is reported; the other one is certified and entered."""
    plain = certify.run_uninterrupted

    def lying(instance, method, budget, **more):
        record = plain(instance, method, budget, **more)
        if method.name == "cpsat" and instance.name == "dhm_squeezenet_fire4":
            return replace(record, objective=record.objective + 1)
        return record

    monkeypatch.setattr(certify, "run_uninterrupted", lying)
    path = tmp_path / "ledger.yaml"
    found = certify.certify_all("dhm_squeezenet_fire[49]", Budget(300.0), ledger=path, update=True)
    assert [each.contradiction for each in found] == [True, False]
    assert "contradict" in found[0].missing[0]
    entries = Ledger.load(path).entries
    assert {name: entry.certificate for name, entry in entries.items()} == {"dhm_squeezenet_fire9": Certificate.AGREED}
