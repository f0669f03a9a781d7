"""The study of MTrain's Table III: its runs exist, and its page says what the committed runs say."""

from functools import cache
from pathlib import Path

import pytest

from mapgap.catalogue import registry
from mapgap.records.files import read_runs
from mapgap.reporting.study import studies
from mapgap.studies.dfs_vs_converting.figures import ablation, comparison, scaling
from mapgap.studies.dfs_vs_converting.runs import BANDWIDTHS, CONVERTING, DFS, LISTED, TABLE_3, TITLES
from mapgap.studies.dfs_vs_converting.study import STUDY, page
from mapgap.studies.dfs_vs_converting.tables import table_3, table_3_published

ROOT = Path(__file__).parents[2]
COMMITTED = ROOT / "reports" / "dfs_vs_converting" / "runs.jsonl"
needs_runs = pytest.mark.skipif(not COMMITTED.is_file(), reason="the committed runs are not part of a wheel")


@cache
def runs():
    """The committed runs."""
    return read_runs(COMMITTED)


def test_study_is_found_and_its_runs_exist():
    assert studies()["dfs_vs_converting"] is STUDY
    phases = STUDY.phases(True)
    assert {job.method for job in phases[0].jobs} == {DFS, CONVERTING, LISTED}
    assert {job.method for phase in phases for job in phase.jobs} <= set(registry.methods(STUDY.problem))


@needs_runs
def test_table_3_orders_bounds_and_plans():
    rows = table_3(runs()).rows
    assert len(rows) == 3 * len(TABLE_3)
    for row in rows:
        assert max(row["dfs"], row["converting"], row["listed"]) <= row["best"] * (1 + 1e-9)
        assert row["best"] <= row["limit"] * (1 + 1e-9)
        assert row["converting"] <= row["dfs"]  # converting's ratios are some of all
        assert row["best_gap"] <= row["dfs_gap"] <= row["converting_gap"]
    few = [row for row in rows if row["cluster"] < 3]
    # The sentence of the README.
    assert [sum(row["listed"] > row["dfs"] for row in some) for some in (few, rows)] == [6, 8]
    assert "in six of these eight cases (eight of twelve with cluster 3)" in (ROOT / "README.md").read_text()
    assert table_3_published(table_3(runs())).rows


@needs_runs
def test_figures_cover_what_was_run():
    steps, pictures = ablation(runs())
    assert len(steps.rows) == 3 * len(TITLES) * len(BANDWIDTHS)
    assert {p.name for p in pictures} == {f"fig8_cluster{c}" for c in (1, 2, 3)}
    # Of the rivals one network only: every instance has to be expanded to turn bounds into throughput.
    rivals, pictures = comparison(runs().where(lambda run: run.instance.startswith("mtrain_c1_alexnet")))
    assert [row["bandwidth"] for row in rivals.rows] == list(BANDWIDTHS.values())
    assert [p.name for p in pictures] == ["fig9_alexnet"]
    for row in rivals.rows:
        assert row["mtrain_converting"] <= row["limit"] * (1 + 1e-9)
    _, pictures = scaling(runs().where(lambda run: "_2fpga_" in run.instance))
    assert [p.name for p in pictures] == ["fig12_throughput", "fig12_time"]


@needs_runs
def test_page_says_how_many_cases_list_scheduling_wins():
    quick = runs().where(lambda run: run.method in (DFS, CONVERTING, LISTED))
    assert "in 8 of 12 cases" in " ".join(page(quick, quick=True).lead)
    assert "heft_dfs" not in " ".join(page(quick.where(lambda run: run.method != LISTED), quick=True).lead)
