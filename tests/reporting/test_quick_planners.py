"""The study of the quick planners: its table by hand."""

import pytest

from mapgap.records.record import RunRecord
from mapgap.records.runs import Runs
from mapgap.studies.quick_planners import bars, compared, gap_percent, phases


def record(instance, method, objective, wall_s=0.05, problem="neuron_masking", sense="max"):
    return RunRecord(
        instance=f"{problem}:{instance}" if "elfish" not in instance else instance,
        instance_hash=instance,
        problem=problem,
        sense=sense,
        method=method,
        kind="exact" if method == "lagrangian" else "baseline",
        objective=objective,
        status="UNKNOWN" if objective is None else "FEASIBLE",
        wall_s=wall_s,
    )


def runs():
    """Seed 0: 80, 95 and 100; seed 1: 60, 90, 100; seed 2 has a plan of the planner only; one file of the library."""
    return Runs(
        [
            record("small_0", "elfish_greedy", 80),
            record("small_0", "priced_layers", 95, wall_s=0.2),
            record("small_0", "lagrangian", 100),
            record("small_1", "elfish_greedy", 60, wall_s=0.3),
            record("small_1", "priced_layers", 90, wall_s=0.25),
            record("small_1", "lagrangian", 100),
            record("small_2", "elfish_greedy", None),
            record("small_2", "priced_layers", 7),
            record("elfish_x", "elfish_greedy", 50),
            record("elfish_x", "priced_layers", 40),
        ]
    )


def test_gaps_times_and_counts_of_a_row():
    small, library = compared(runs(), known=[]).rows
    assert (small["suite"], small["instances"], small["only_planner"], small["worse"]) == ("small", 3, 1, 0)
    assert (small["mean_published"], small["mean_planner"]) == (30.0, 7.5)  # (20 + 40) / 2, (5 + 10) / 2
    assert (small["worst_published"], small["worst_planner"]) == (40.0, 10.0)
    assert small["late"] == 1  # 0.2 s on seed 0; on seed 1 the published heuristic took longer
    assert small["halved"] == "yes"
    assert (library["suite"], library["worse"], library["halved"]) == ("library", 1, "no")


def test_what_is_known_of_an_instance_is_its_reference():
    known = [record("elfish_x", "reference", 200)]
    library = compared(runs(), known).rows[1]
    assert (library["mean_published"], library["mean_planner"]) == (75.0, 80.0)


def test_bars_name_what_is_not_halved():
    row = next(r for r in bars(compared(runs(), known=[])).rows if r["problem"] == "neuron_masking")
    assert (row["rows"], row["halved"], row["worse"], row["late"]) == (2, 1, 1, 1)
    assert row["not_halved"] == "library (elfish_greedy)"


@pytest.mark.parametrize(("objective", "best", "gap"), [(12, 10, 20.0), (0, 0, 0.0), (5, 0, 100.0)])
def test_gap_of_a_minimum(objective, best, gap):
    assert gap_percent(record("small_0", "paper_rule", objective, sense="min"), best) == gap


@pytest.mark.in_turn
def test_the_small_version_has_every_problem_twice():
    names = [phase.name for phase in phases(quick=True)]
    assert len(names) == len(set(names)) == 10
