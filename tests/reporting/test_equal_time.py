"""The study of equal time: what is raced, and its counts by hand."""

import pytest

from mapgap.catalogue import registry
from mapgap.core import TracePoint
from mapgap.evidence.races import entrants
from mapgap.records.record import RunRecord
from mapgap.records.runs import Runs
from mapgap.studies.equal_time import (
    HARD,
    LATER,
    LONG_S,
    MIDDLE_S,
    SHORT_S,
    jobs,
    owed,
    page,
    phases,
    races,
    suite_of,
    suites,
    totals,
)

PROBLEM = "multi_model_splitting"
KINDS = {"cpsat": "exact", "joint": "exact", "synergy": "published", "ruin_and_recreate": "baseline"}


def record(method, objective, name=f"{PROBLEM}:mixed_4x4_500", time_s=1.0, **changes):
    given = {"status": "UNKNOWN" if objective is None else "FEASIBLE", "wall_s": 0.4, "bound": None, **changes}
    return RunRecord(
        instance=name,
        instance_hash=name,
        problem=PROBLEM,
        sense="min",
        method=method,
        kind=KINDS[method],
        objective=objective,
        time_limit_s=time_s,
        **given,
    )


def runs():
    """For 1 s cpsat is worse and joint late; for 10 s cpsat has no plan and joint forgets its bound; a file is fine."""
    return Runs(
        [
            record("cpsat", 90),
            record("joint", 70, wall_s=2.5, trace=[TracePoint(0.1, 70)]),
            record("synergy", 80),
            record("ruin_and_recreate", 80),
            record("cpsat", None, time_s=10.0),
            record("joint", 70, time_s=10.0, trace=[TracePoint(0.1, 70), TracePoint(0.2, bound=60)]),
            record("synergy", 80, time_s=10.0),
            record("ruin_and_recreate", 85, time_s=10.0),
            record("cpsat", 5, "synergy_w1_any"),
            record("synergy", 5, "synergy_w1_any"),
        ]
    )


def test_debts_are_counted_by_problem_and_time():
    short, middle = totals(races(runs())).rows
    assert (short["time"], short["races"], short["exact"]) == (1.0, 2, 3)
    assert {k: short[k] for k in ("worse", "late", "no plan", "bound forgotten")} == {
        "worse": 1,
        "late": 1,
        "no plan": 0,
        "bound forgotten": 0,
    }
    assert (middle["time"], middle["races"], middle["no plan"], middle["bound forgotten"]) == (10.0, 1, 1, 1)
    assert middle["planner worse"] == 1  # 85, and synergy has 80


def test_families_and_library_stand_apart_and_every_debt_has_words():
    assert [(row["suite"], row["time"], row["worse"]) for row in suites(races(runs())).rows] == [
        ("mixed_4x4", 1.0, 1),
        ("library", 1.0, 0),
        ("mixed_4x4", 10.0, 0),
    ]
    words = [(row["method"], row["kind"], row["words"]) for row in owed(races(runs())).rows]
    assert ("cpsat", "worse", "90, and synergy has 80") in words
    assert ("joint", "over time by more than 1 s", "2.50 s, of 1") in words
    assert len(words) == 5


@pytest.mark.parametrize("time_s", [SHORT_S, MIDDLE_S, LONG_S])
def test_every_method_of_every_problem_is_raced_on_every_family_and_ten_files(time_s):
    assert set(HARD) == set(registry.problems()) - {"layer_flow"}  # the races are of the first five papers
    problem = "neuron_masking"
    listed = list(jobs(problem, time_s))
    names = list(dict.fromkeys(job.instance.name for job in listed))
    assert {suite_of(problem, name) for name in names} == {*registry.library(problem).families, "library"}
    assert sum(suite_of(problem, name) == "library" for name in names) == 10
    assert len(listed) == len(names) * len([method for method in entrants(problem) if method.name not in LATER])
    assert len({job.key for job in listed}) == len(listed)


def test_a_family_whose_name_begins_like_another_is_told_apart():
    assert suite_of("multi_model_splitting", "multi_model_splitting:large_models_30x20_500") == "large_models_30x20"
    assert suite_of("multi_model_splitting", "synergy_w1_any") == "library"


def test_the_small_version_has_three_instances_per_problem():
    for phase in phases(quick=True):
        assert len({job.instance.name for job in phase.jobs}) == 3
    assert page(runs(), quick=True).title == "Equal time"
