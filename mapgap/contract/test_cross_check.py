"""Exact methods agree on random tiny instances, from a file through loading, solving and checking of every claim.

``MAPGAP_CROSSCHECK=1000`` widens the sample.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from mapgap.catalogue import registry
from mapgap.catalogue.files import load_instance, save_expanded
from mapgap.contract.known import TIME_S, sign, tiny
from mapgap.core import Budget
from mapgap.execution.run import run_method

COUNT = int(os.environ.get("MAPGAP_CROSSCHECK", "40"))
CASES = [(problem, seed) for problem in registry.problems() for seed in range(COUNT)]
SLOW = ("CBC",)
"""Engines that start a process for every solve; :mod:`~.test_contract` covers their methods."""


@pytest.mark.parametrize(("problem", "seed"), CASES)
def test_engines_and_brute_force_agree(problem: str, seed: int, tmp_path: Path) -> None:
    made = tiny(problem, seed)
    instance = load_instance(save_expanded(made, tmp_path / "instance.yaml"))
    assert instance.content_hash == made.content_hash
    methods = [m for m in registry.methods(problem).values() if m.engines != SLOW]
    records = {m.name: run_method(instance, m, Budget(TIME_S, seed=seed), isolate=False) for m in methods}
    assert not [f"{r.method}: {r.error}" for r in records.values() if r.error]
    truth = records["enumerate"]
    assert truth.certificate == "enumerated" or truth.status == "INFEASIBLE"
    for method in methods:
        record = records[method.name]
        if method.kind == "exact":
            assert (record.status, record.objective) == (truth.status, truth.objective), method.name
            if truth.status == "OPTIMAL":
                assert record.bound == truth.objective, method.name
            continue
        if record.objective is not None:
            assert truth.objective is not None, method.name
            assert sign(problem) * record.objective >= sign(problem) * truth.objective, method.name
        if record.bound is not None and truth.objective is not None:
            assert sign(problem) * record.bound <= sign(problem) * truth.objective, method.name
