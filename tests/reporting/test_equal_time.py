"""The study of equal time: what is raced, and its counts by hand."""

from itertools import cycle, islice

import pytest

from mapgap.catalogue import registry
from mapgap.core import TracePoint
from mapgap.evidence.races import entrants
from mapgap.records.record import RunRecord
from mapgap.records.runs import Runs
from mapgap.studies.equal_time import FEW, families, family_of, jobs, owed, page, phases, races, totals

PROBLEM = "multi_model_splitting"
KINDS = {"portfolio": "exact", "synergy": "published", "ruin_and_recreate": "baseline"}


def record(method, objective, seed, family="mixed_4x4", **changes):
    name = f"{PROBLEM}:{family}_{seed}"
    given = {"status": "UNKNOWN" if objective is None else "FEASIBLE", "wall_s": 0.4, "bound": None, **changes}
    return RunRecord(
        instance=name,
        instance_hash=name,
        problem=PROBLEM,
        sense="min",
        method=method,
        kind=KINDS[method],
        objective=objective,
        time_limit_s=2.0,
        **given,
    )


def runs():
    """The portfolio wins a race and is late, loses one, has no plan and forgets its bound, and proves one."""
    return Runs(
        [
            record("portfolio", 70, 1, wall_s=2.11, trace=[TracePoint(0.1, 70)]),  # 5 % of 2 s are 0.1 s
            record("synergy", 80, 1),
            record("ruin_and_recreate", 80, 1),
            record("portfolio", 90, 2, wall_s=2.09, trace=[TracePoint(0.1, 90)]),
            record("synergy", 80, 2),
            record("ruin_and_recreate", 85, 2),
            record("portfolio", None, 3, trace=[TracePoint(0.2, bound=60)]),
            record("synergy", 80, 3),
            record("portfolio", 5, 4, "large_models_20x16", status="OPTIMAL", bound=5),
            record("synergy", 5, 4, "large_models_20x16"),
        ]
    )


def test_debts_are_counted_by_problem():
    (row,) = totals(races(runs())).rows
    assert row == {
        "problem": PROBLEM,
        "races": 4,
        "better": 1,
        "proven": 1,
        "worse": 1,
        "no plan": 1,
        "late": 1,
        "first plan late": 0,
        "bound forgotten": 1,
        "error": 0,
        "planner worse": 1,  # 85, and synergy has 80
    }


def test_families_stand_apart_and_every_debt_has_words():
    assert [(row["family"], row["races"], row["worse"]) for row in families(races(runs())).rows] == [
        ("mixed_4x4", 3, 1),
        ("large_models_20x16", 1, 0),
    ]
    words = [(row["method"], row["kind"], row["words"]) for row in owed(races(runs())).rows]
    assert ("portfolio", "worse", "90, and synergy has 80") in words
    assert ("portfolio", "late by more than 5 %", "2.11 s, of 2") in words
    assert len(words) == 5


@pytest.mark.parametrize("problem", registry.problems())
def test_the_portfolio_and_all_heuristics_are_raced_on_one_family_after_the_other(problem):
    listed = list(jobs(problem, quick=True))
    names = list(dict.fromkeys(job.instance.name for job in listed))
    methods = {method.name for method in entrants(problem, every=False)}
    assert {job.method for job in listed} == methods
    assert "portfolio" in methods
    assert len(listed) == len({job.key for job in listed}) == FEW * len(methods)
    assert {job.method for job in listed if job.keeps_plan} == {"portfolio"}
    drawn = [family_of(problem, name) for name in names]
    assert drawn == list(islice(cycle(registry.library(problem).families), FEW))


def test_the_small_version_has_six_instances_per_problem():
    for phase in phases(quick=True):
        assert len({job.instance.name for job in phase.jobs}) == FEW == 6
    assert page(runs(), quick=True).title == "Equal time"
