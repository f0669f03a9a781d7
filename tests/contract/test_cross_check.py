"""Exact methods agree on random tiny instances, from a file through loading, solving and checking of every claim.

``MAPGAP_CROSSCHECK=1000`` widens the sample.
"""

import os

import pytest

from mapgap.catalogue import registry
from mapgap.catalogue.files import load_instance, save_expanded
from mapgap.core import Budget
from mapgap.execution.run import run_method

COUNT = int(os.environ.get("MAPGAP_CROSSCHECK", "40"))
CASES = [(problem, seed) for problem in registry.problems() for seed in range(COUNT)]


@pytest.mark.parametrize(("problem", "seed"), CASES)
def test_engines_and_brute_force_agree(problem, seed, tmp_path):
    sign = 1 if registry.problems()[problem].sense == "min" else -1
    made = registry.library(problem).generate("tiny", seed)
    instance = load_instance(save_expanded(made, tmp_path / "instance.yaml"))
    assert instance.content_hash == made.content_hash
    exact = [m for m in registry.methods(problem).values() if m.kind == "exact" and m.name != "mip_cbc"]
    records = {m.name: run_method(instance, m, Budget(time_s=60.0, seed=seed), isolate=False) for m in exact}
    assert not [r.error for r in records.values() if r.error]
    truth = records["enumerate"]
    assert truth.certificate == "enumerated" or truth.status == "INFEASIBLE"
    for name, record in records.items():
        assert (record.status, record.objective) == (truth.status, truth.objective), name
        if truth.status == "OPTIMAL":
            assert record.bound == truth.objective, name
    for method in registry.methods(problem).values():
        if method.kind in ("published", "baseline", "bound"):
            record = run_method(instance, method, Budget(time_s=60.0, seed=seed), isolate=False)
            assert not record.error
            if record.objective is not None:
                assert sign * record.objective >= sign * truth.objective, method.name
            if record.bound is not None and truth.objective is not None:
                assert sign * record.bound <= sign * truth.objective, method.name
