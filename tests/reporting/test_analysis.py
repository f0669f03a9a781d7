"""Gaps, means and profiles, by hand."""

import math
from dataclasses import replace

import pytest
from records import changed, record

from mapgap.core import TracePoint
from mapgap.records.record import relative
from mapgap.records.runs import Runs, facts
from mapgap.reporting.analysis import (
    duels,
    per_method,
    per_run,
    primal_integral,
    profile,
    shifted_geometric_mean,
)
from mapgap.reporting.run_tables import instance_table, method_table
from mapgap.reporting.tables import Column, Table

RUNS = Runs(
    [
        record("i1", "exact", 100, 100, kind="exact"),
        record("i1", "greedy", 120, kind="published"),
        record("i2", "exact", 210, 190, kind="exact"),
        record("i2", "greedy", 200, kind="published"),
        record("i3", "greedy", 50, kind="published"),
        record("i3", "exact", kind="exact"),
    ]
)


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


def test_a_method_with_options_is_a_row_of_its_own():
    """Options in which the runs of a method do not differ are not shown; ``True`` is shown as the name."""
    runs = Runs(
        [
            record("i1", "dp", 100, 100, kind="exact", options={"engine": "own"}),
            record("i1", "dp", 149, kind="exact", options={"engine": "own", "order": "memory"}),
            record("i1", "dp", 100, kind="exact", options={"engine": "own", "simulate": True}),
            record("i1", "greedy", 120, options={"seeds": 3}),
        ]
    )
    assert {row["method"]: row["worst_gap_percent"] for row in method_table(runs).rows} == {
        "dp": 0,
        "dp (order=memory)": pytest.approx(49),
        "dp (simulate)": 0,
        "greedy": pytest.approx(20),
    }
    assert [r.method for r in runs.labelled.labelled] == [r.method for r in runs.labelled]
    assert [row["best_by"] for row in instance_table(runs).rows] == ["dp"]


def test_failed_runs_count_neither_as_plan_nor_as_bound():
    known = facts([record("i", "bad", 10, 9, error="beats a proven bound"), record("i", "good", 20, 15)])
    assert (known["i"].best, known["i"].bound) == (20, 15)


def test_the_word_of_an_engine_proves_nothing_and_counts_where_there_is_no_other_bound():
    """A plan of 20 by one method and an unconfirmed bound of 20 by another are no proof."""
    word = record("i", "mip", None, 20, kind="exact", notes={"unconfirmed": ["mip (HiGHS) claims bound 20"]})
    known = facts([record("i", "good", 20), word])["i"]
    assert (known.bound, known.bound_by, known.proven) == (20, "mip, unconfirmed", False)
    known = facts([record("i", "good", 20, 15, kind="exact"), word])["i"]
    assert (known.bound, known.bound_by, known.proven) == (15, "good", False)
    own = replace(word, notes={**word.notes, "recomputed": 17})
    assert facts([record("i", "good", 20, 15, kind="exact"), own])["i"].bound == 17


def test_maximisation_takes_the_largest_plan_and_the_smallest_bound():
    known = facts([record("i", "a", 10, 14, sense="max"), record("i", "b", 12, 13, sense="max")])
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


def test_a_plan_that_is_worth_nothing_is_infinitely_far():
    worthless = [record("i1", "swarm", 0, sense="max"), record("i1", "exact", 100, sense="max")]
    assert profile(Runs(worthless)) == {"exact": [1.0], "swarm": [math.inf]}


def test_duels():
    assert duels(RUNS)["exact", "greedy"] == (1, 0, 1)
    assert duels(RUNS)["greedy", "exact"] == (1, 0, 1)
    assert duels(RUNS)["greedy", "greedy"] == (0, 3, 0)


def test_relative_and_mean_edge_cases():
    assert relative(0, 0, 1) == 0.0
    assert relative(5, 0, 1) is None
    assert relative(None, 3, 1) is None
    assert shifted_geometric_mean([], 1.0) is None
    assert shifted_geometric_mean([3.0, 3.0], 1.0) == pytest.approx(3.0)


def test_table_writes_blank_cells_and_escapes_bars():
    table = Table(
        "t", "T", [Column("a", "a"), Column("b", "b", ".1f")], [{"a": "x|y", "b": None}, {"a": "z", "b": 1.25}]
    )
    assert "| x\\|y |  |" in table.markdown()
    assert table.csv() == "a,b\nx|y,\nz,1.25\n"


def test_primal_integral_of_a_run():
    """Nothing for 2 s (gap 1), 200 instead of 100 for 3 s (gap 0.5), the best for 5 s: (2 + 1.5) / 10."""
    trace = [TracePoint(2.0, objective=200), TracePoint(5.0, objective=100)]
    run = record("i1", "exact", 100, wall_s=6.0, trace=trace)
    assert primal_integral(run, 100) == pytest.approx(0.35)
    assert primal_integral(changed(run, objective=None, trace=[]), 100) == 1.0
    assert primal_integral(changed(run, trace=[]), 100) == pytest.approx(0.6)  # known at the end of the run only
    assert primal_integral(run, None) is None
    assert primal_integral(changed(run, kind="bound"), 100) is None


def test_means_are_over_instances_that_all_compared_methods_solved():
    """Ten instances; one method fails on the first, another on two and is not compared."""
    runs = [record(f"i{k}", "good", 100 + k, 100, kind="exact") for k in range(10)]
    runs += [record(f"i{k}", "nine", None if k == 0 else 110) for k in range(10)]
    runs += [record(f"i{k}", "eight", None if k < 2 else 110) for k in range(10)]
    rows = {row["method"]: row for row in per_method(Runs(runs))}
    assert {name: row["over"] for name, row in rows.items()} == {"good": 9, "nine": 9, "eight": None}
    assert rows["good"]["gap_percent"] == pytest.approx(math.prod(range(2, 11)) ** (1 / 9) - 1)  # 1 to 9 %, shifted
    assert rows["nine"]["gap_percent"] == pytest.approx(10.0)
    assert rows["eight"]["gap_percent"] is None
    assert rows["eight"]["plans"] == 8


def test_a_method_that_is_for_other_instances_has_not_failed():
    runs = [record("i1", "fix", 110), record("i2", "fix", reason="the instance has no failure, so no old plan")]
    runs += [record("i1", "all", 100, 100), record("i2", "all", 300, 200)]
    rows = {row["method"]: row for row in per_method(Runs(runs))}
    assert (rows["fix"]["runs"], rows["fix"]["plans"], rows["fix"]["gap_percent"]) == (1, 1, pytest.approx(10.0))
    assert rows["all"]["over"] == 2  # nobody else has run on the same instances


def test_references_set_best_plan_and_bound_and_are_no_runs():
    known = [record("i1", "exact*", 100, kind="reference"), record("i1", "exact*", bound=90, kind="reference")]
    records = Runs([record("i1", "greedy", 120, kind="published"), *known])
    (row,) = per_run(records)
    assert (row["method"], row["best_known"], row["best_bound"]) == ("greedy", 100, 90)
    assert row["gap_to_best"] == pytest.approx(0.2)
    assert [row["method"] for row in per_method(records)] == ["greedy"]
    assert profile(records) == {"greedy": [1.2]}
    assert set(duels(records)) == {("greedy", "greedy")}
