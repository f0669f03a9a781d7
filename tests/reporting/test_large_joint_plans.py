"""The study of large joint plans: its table by hand."""

import pytest

from mapgap.records.record import RunRecord
from mapgap.records.runs import Runs
from mapgap.studies.large_joint_plans import FAMILIES, counted, each, page, phases


def record(seed, method, objective, bound=None, limit=10.0, wall_s=None):
    gap = None if objective is None or bound is None else objective / bound - 1
    return RunRecord(
        instance=f"mixed_20x16_{seed}",
        instance_hash=str(seed),
        problem="multi_model_splitting",
        sense="min",
        method=method,
        kind="exact" if method == "portfolio" else "baseline",
        objective=objective,
        bound=bound,
        gap=gap,
        status="UNKNOWN" if objective is None else "OPTIMAL" if gap == 0 else "FEASIBLE",
        time_limit_s=limit,
        wall_s=limit if wall_s is None else wall_s,
    )


def runs():
    """Proven; 4 % and worse than what ended in time; 8 % beside one that took longer; without plan, and too late."""
    return Runs(
        [
            record(200, "portfolio", 100, 100, wall_s=2.0),
            record(200, "synergy", 120, wall_s=0.1),
            record(201, "portfolio", 104, 100),
            record(201, "synergy", 103, wall_s=9.0),
            record(202, "portfolio", 108, 100),
            record(202, "synergy", 101, limit=60.0, wall_s=30.0),
            record(203, "portfolio", None, 100, wall_s=11.5),
            record(203, "synergy", 130, wall_s=0.1),
        ]
    )


def test_counts_by_hand():
    (row,) = counted(runs()).rows
    assert (row["instances"], row["plans"], row["worse"], row["proven"], row["late"]) == (4, 3, 2, 1, 1)
    assert (row["close"], row["near"], row["far"]) == (1, 2, 3)
    assert row["mean"] == pytest.approx(4.0)  # (0 + 4 + 8) / 3
    assert row["worst"] == pytest.approx(8.0)


def test_every_instance_names_its_best_heuristic():
    rows = each(runs()).rows
    assert [(row["plan"], row["heuristic"], row["heuristic_plan"]) for row in rows] == [
        (100, "synergy", 120),
        (104, "synergy", 103),
        (108, "synergy", 101),
        (None, "synergy", 130),
    ]


@pytest.mark.in_turn
def test_the_small_version_has_an_instance_of_every_family():
    found = phases(quick=True)
    assert [phase.name for phase in found] == list(FAMILIES)
    assert all(len({job.instance.name for job in phase.jobs}) == 1 for phase in found)
    assert page(runs(), quick=True).sections
