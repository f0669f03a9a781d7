"""Gaps, means, profiles and verdicts, by hand."""

import math

import pytest

from mapgap.reporting.analysis import (
    duels,
    facts,
    glance,
    per_method,
    per_run,
    primal_integral,
    profile,
    relative,
    shifted_geometric_mean,
    verdict,
)
from mapgap.reporting.tables import Column, Table


def run(instance, method, objective, bound=None, status="FEASIBLE", wall=1.0, **more):
    return {
        "instance": instance,
        "instance_hash": instance,
        "problem": "p",
        "method": method,
        "objective": objective,
        "bound": bound,
        "status": status,
        "stop": "done",
        "wall_s": wall,
        **more,
    }


RUNS = [
    run("i1", "exact", 100, 100, "OPTIMAL"),
    run("i1", "greedy", 120),
    run("i2", "exact", 210, 190),
    run("i2", "greedy", 200),
    run("i3", "greedy", 50),
    run("i3", "exact", None, None, "UNKNOWN"),
]


def test_facts_take_best_plan_and_bound_from_different_methods():
    known = facts(RUNS)
    assert (known["i2"].best, known["i2"].best_by, known["i2"].bound, known["i2"].bound_by) == (
        200,
        "greedy",
        190,
        "exact",
    )
    assert known["i1"].proven
    assert not known["i2"].proven
    assert known["i3"].bound is None
    assert known["i3"].gap is None  # blank where no bound exists, never 0 or infinity


def test_failed_runs_count_neither_as_plan_nor_as_bound():
    known = facts([run("i", "bad", 10, 9, error="beats a proven bound"), run("i", "good", 20, 15)])
    assert (known["i"].best, known["i"].bound) == (20, 15)


def test_maximisation_takes_the_largest_plan_and_the_smallest_bound():
    known = facts([run("i", "a", 10, 14, sense="max"), run("i", "b", 12, 13, sense="max")])
    assert (known["i"].best, known["i"].bound) == (12, 13)


def test_gap_to_bound_and_to_best_plan_are_different_columns():
    greedy = next(row for row in per_method(RUNS) if row["method"] == "greedy")
    gaps = [20.0, 100 * (200 / 190 - 1)]  # i3 has no bound and is left out
    assert greedy["gap_percent"] == pytest.approx(math.exp(sum(math.log(g + 1) for g in gaps) / 2) - 1)
    away = [20.0, 0.0, 0.0]
    assert greedy["gap_to_best_percent"] == pytest.approx(math.exp(sum(math.log(g + 1) for g in away) / 3) - 1)
    assert greedy["worst_instance"] == "i1"
    assert greedy["plans"] == 3


def test_profile_counts_missing_plans_as_infinite():
    curves = profile(RUNS)
    assert curves["greedy"] == [1.0, 1.0, 1.2]
    assert curves["exact"] == [1.0, 1.05, math.inf]


def test_duels():
    assert duels(RUNS)["exact", "greedy"] == (1, 0, 1)
    assert duels(RUNS)["greedy", "exact"] == (1, 0, 1)
    assert duels(RUNS)["greedy", "greedy"] == (0, 3, 0)


def test_relative_and_mean_edge_cases():
    assert relative(0, 0) == 0.0
    assert relative(5, 0) is None
    assert relative(None, 3) is None
    assert shifted_geometric_mean([], 1.0) is None
    assert shifted_geometric_mean([3.0, 3.0], 1.0) == pytest.approx(3.0)


@pytest.mark.parametrize(
    ("published", "reproduced", "word"),
    [
        (100, 109, "reproduced"),
        (100, 125, "close"),
        (100, 131, "differs"),
        (100, 60, "differs"),
        (None, 3, "not comparable"),
    ],
)
def test_verdict(published, reproduced, word):
    assert verdict(published, reproduced).startswith(word)


def test_table_writes_blank_cells_and_escapes_bars():
    table = Table(
        "t", "T", [Column("a", "a"), Column("b", "b", ".1f")], [{"a": "x|y", "b": None}, {"a": "z", "b": 1.25}]
    )
    assert "| x\\|y |  |" in table.markdown()
    assert table.csv() == "a,b\nx|y,\nz,1.25\n"


def test_primal_integral_of_a_run():
    """Nothing for 2 s (gap 1), 200 instead of 100 for 3 s (gap 0.5), the best for 5 s: (2 + 1.5) / 10."""
    trace = [{"time_s": 2.0, "objective": 200, "bound": None}, {"time_s": 5.0, "objective": 100, "bound": None}]
    record = run("i1", "exact", 100, wall=6.0, time_limit_s=10.0, trace=trace)
    assert primal_integral(record, 100) == pytest.approx(0.35)
    assert primal_integral({**record, "objective": None, "trace": []}, 100) == 1.0
    assert primal_integral({**record, "trace": []}, 100) == pytest.approx(0.6)  # known at the end of the run only
    assert primal_integral(record, None) is None
    assert primal_integral({**record, "kind": "bound"}, 100) is None


def test_a_glance_says_what_a_heuristic_loses_for_certain():
    runs = [{**r, "kind": "published" if r["method"] == "greedy" else "exact"} for r in RUNS]
    runs.append({**run("i2", "lazy", None), "kind": "baseline"})
    greedy, lazy = glance(runs)
    # i1: 20 % above 100 (plan and bound); i2: the best plan, 200 over the bound 190; i3: the only plan, no bound.
    assert (greedy["instances"], greedy["nothing"], greedy["optimal"]) == (3, 0, 0)
    assert greedy["at_least"] == pytest.approx((21 * 1 * 1) ** (1 / 3) - 1)
    assert greedy["at_most"] == pytest.approx((21 * (100 * 10 / 190 + 1)) ** 0.5 - 1)
    assert (greedy["worst"], greedy["worst_instance"]) == (pytest.approx(20.0), "i1")
    assert (lazy["instances"], lazy["nothing"], lazy["at_least"]) == (1, 1, None)


def test_references_set_best_plan_and_bound_and_are_no_runs():
    known = {"instance": "i1", "instance_hash": "i1", "problem": "p", "kind": "reference", "method": "exact*"}
    greedy = {**run("i1", "greedy", 120), "kind": "published"}
    records = [greedy, {**known, "objective": 100}, {**known, "bound": 90}]
    (row,) = per_run(records)
    assert (row["method"], row["best_known"], row["best_bound"]) == ("greedy", 100, 90)
    assert row["gap_to_best"] == pytest.approx(0.2)
    assert [row["method"] for row in per_method(records)] == ["greedy"]
    assert profile(records) == {"greedy": [1.2]}
    assert set(duels(records)) == {("greedy", "greedy")}
