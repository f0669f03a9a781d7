"""Exact methods agree on random tiny instances, from a file through loading, solving and checking of every claim.

By day a few of each, by night more; ``MAPGAP_SCALE=100 pytest -m nightly`` makes a long run of it.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from mapgap.catalogue import registry
from mapgap.catalogue.files import load_instance, save_expanded
from mapgap.contract.fuzz import case, tried
from mapgap.contract.known import TIME_S, sign, tiny
from mapgap.contract.seeds import fresh, seeds
from mapgap.core import Budget
from mapgap.execution.run import run_method

SLOW = "CBC"
"""Starts a process for every solve; :mod:`~.test_contract` covers their methods."""


@pytest.mark.in_turn
@pytest.mark.parametrize("seed", seeds(3, 60))
@pytest.mark.parametrize("problem", list(registry.problems()))
def test_engines_and_brute_force_agree(problem: str, seed: int, tmp_path: Path) -> None:
    made = tiny(problem, seed)
    instance = load_instance(save_expanded(made, tmp_path / "instance.yaml"))
    assert instance.content_hash == made.content_hash
    methods = [m for m in registry.methods(problem).values() if SLOW not in m.engines]
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


def holds(number: int) -> None:
    """Nothing that any method or certificate says of a case is refuted by brute force."""
    _, wrong = tried(*case(number))
    assert not wrong


@pytest.mark.in_turn
@pytest.mark.parametrize("number", seeds(15, 150))
def test_no_engine_is_wrong_at_realistic_size(number: int) -> None:
    holds(number)


@pytest.mark.nightly
@pytest.mark.parametrize("number", fresh(150))
def test_no_engine_is_wrong_on_fresh_instances(number: int) -> None:
    holds(number)
