"""At equal time no exact method is worse than a heuristic, and the fast planner is not worse than the published one.

The suite holds the strongest exact method to it for a second on one instance. ``pytest -m fuzz`` takes every exact
method, fresh seeds of every family (``MAPGAP_RACE_SEEDS`` of each, 1) and ten instances of the library, for 1, 10 and
60 s.
``MAPGAP_CONTRACT_SLACK`` says by how many seconds a run may be late.
"""

from __future__ import annotations

import os
from functools import cache

import pytest

from mapgap.catalogue import registry
from mapgap.contract.races import SLACK_S, instances, lost, race
from mapgap.core import InstanceBase

PROBLEMS = list(registry.problems())
FIRST_SEED, SEEDS = 200, int(os.environ.get("MAPGAP_RACE_SEEDS", "1"))
BUSY_S = 10.0
"""Slack of the suite, whose machine does other things as well."""
FAMILIES = ("small", "tiny")
LIBRARY = 10


@cache
def field(problem: str) -> list[InstanceBase]:
    return list(instances(problem, range(FIRST_SEED, FIRST_SEED + SEEDS), LIBRARY))


@pytest.mark.parametrize("problem", PROBLEMS)
def test_the_strongest_exact_method_loses_to_no_heuristic(problem: str) -> None:
    library = registry.library(problem)
    family = next(name for name in FAMILIES if name in library.families)
    records = race(library.generate(family, FIRST_SEED), 1.0, every=False)
    assert lost(problem, records, 1.0, BUSY_S) == []


@pytest.mark.fuzz
@pytest.mark.parametrize("time_s", [1.0, 10.0, 60.0])
@pytest.mark.parametrize("problem", PROBLEMS)
def test_no_exact_method_loses_to_a_heuristic(problem: str, time_s: float) -> None:
    found = {}
    for instance in field(problem):
        if texts := lost(problem, race(instance, time_s), time_s, SLACK_S):
            found[instance.name] = texts
    assert found == {}
