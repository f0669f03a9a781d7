"""That there is no plan is certified, for every problem; brute force is the judge."""

import json

import pytest
from cli_support import inside

from mapgap.catalogue import registry
from mapgap.catalogue.files import save_expanded
from mapgap.contract.seeds import samples
from mapgap.core import Budget
from mapgap.evidence import check
from mapgap.evidence.ledger import Ledger
from mapgap.evidence.prove import prove
from mapgap.evidence.verify import verify


def has_plan(instance):
    found = registry.methods(instance.problem)["enumerate"].solve(instance, Budget(300.0).start())
    return found.plan is not None


@pytest.mark.parametrize("sample", samples(8, 400))
@pytest.mark.parametrize("problem", registry.house())
def test_an_instance_without_a_plan_is_certified_and_no_other(problem, sample, tmp_path):
    certified = 0
    for seed in sample:
        instance = registry.library(problem).generate("tiny", 5000 + seed)
        file = tmp_path / f"{seed}.cert.json.gz"
        made = prove(instance, None, Budget(20.0), file)
        assert (made.file is None) == has_plan(instance), seed
        if made.file is not None:
            assert "there is no plan" in check.check(check.read(file), instance.to_json())
            assert (found := verify(file, Ledger.load())).holds, found.reason
            assert found.infeasible
            certified += 1
    assert certified or len(sample) < 100


def test_a_proof_of_another_instance_does_not_serve():
    """The proof that one instance has no plan, put into the file of another one that has some."""
    library, tried = registry.library("suboperation_mapping"), 0
    instances = [library.generate("tiny", seed) for seed in range(5000, 5040)]
    proofs = [library.prove(each.to_json(), check.NONE["min"], Budget(20.0).start()) for each in instances]
    for instance in [each for each, proof in zip(instances, proofs, strict=True) if proof is None]:
        for proof in filter(None, proofs):
            with pytest.raises(check.Refused):
                check.check({"schema": 1, "instance": instance.to_json(), "bound": None, "proof": proof})
            tried += 1
    assert tried


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
