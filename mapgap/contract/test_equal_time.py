"""At equal time no exact method is worse than a heuristic, and the fast planner is not worse than the published one.

By day, when the machine may do other things as well, the strongest exact method of one problem has time to end, on
one instance; another with another commit.
``pytest -m nightly -k equal_time`` takes every exact method, fresh seeds of every family (``MAPGAP_RACE_SEEDS`` of
each, 1, from ``MAPGAP_RACE_FIRST`` on, 200) and ten instances of the library, for every time in ``MAPGAP_RACE_TIMES``
(``1 10 60`` seconds).
``MAPGAP_CONTRACT_SLACK`` says by how many seconds a run may be late. Every race is kept in the file
``MAPGAP_RACE_FILE``, if one is named, and none that it holds is run again.
"""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

import pytest

from mapgap.catalogue import registry
from mapgap.contract.races import Races, instances, lost
from mapgap.contract.seeds import some
from mapgap.core import Budget, InstanceBase
from mapgap.evidence.races import entrants
from mapgap.execution.run import run_method

PROBLEMS = list(registry.problems())
FIRST_SEED = int(os.environ.get("MAPGAP_RACE_FIRST", "200"))
SEEDS = int(os.environ.get("MAPGAP_RACE_SEEDS", "1"))
TIMES = [float(each) for each in os.environ.get("MAPGAP_RACE_TIMES", "1 10 60").split()]
QUICK_S, EXACT_S = 0.5, 60.0
"""Of a heuristic and of the exact method by day."""
FAMILIES = ("small", "tiny")
LIBRARY = 10
FILE = os.environ.get("MAPGAP_RACE_FILE")


@cache
def field(problem: str) -> list[InstanceBase]:
    return list(instances(problem, range(FIRST_SEED, FIRST_SEED + SEEDS), LIBRARY))


@pytest.mark.in_turn
@pytest.mark.parametrize("problem", some(1, PROBLEMS))
def test_the_strongest_exact_method_loses_to_no_heuristic(problem: str) -> None:
    library = registry.library(problem)
    family = next(name for name in FAMILIES if name in library.families)
    instance = library.generate(family, FIRST_SEED)
    records = {
        method.name: run_method(instance, method, Budget(EXACT_S if method.kind == "exact" else QUICK_S))
        for method in entrants(problem, every=False)
    }
    assert lost(records, EXACT_S) == []


@pytest.mark.nightly
@pytest.mark.parametrize("time_s", TIMES)
@pytest.mark.parametrize("problem", PROBLEMS)
def test_no_exact_method_loses_to_a_heuristic(problem: str, time_s: float) -> None:
    races = Races(Path(FILE) if FILE else None)
    found = {each.name: texts for each in field(problem) if (texts := races.lost(each, time_s))}
    assert found == {}
