"""The study of multi-model splitting: its runs, and its page as a function of records and printed numbers."""

from functools import cache

import pytest

from mapgap.catalogue import registry
from mapgap.core import Budget
from mapgap.execution.run import run_method
from mapgap.records.runs import Runs
from mapgap.reporting.study import studies
from mapgap.studies.multi_model_splitting import facts as printed_facts
from mapgap.studies.multi_model_splitting.changes import change_jobs, changed, changes
from mapgap.studies.multi_model_splitting.claims import claims, mean_gain, oor_pattern, thresholds
from mapgap.studies.multi_model_splitting.experiments import EVERY, FIG_6, FIG_11A, FIG_11B, QUICK, Results, instance
from mapgap.studies.multi_model_splitting.gaps import counts, gaps, sensing, sensing_counts
from mapgap.studies.multi_model_splitting.study import STUDY

METHODS = registry.methods("multi_model_splitting")
W1, TWO = "synergy_w1_distributed", "synergy_fig11a_2devices"


@cache
def records():
    runs = [(W1, "cpsat"), (TWO, "cpsat"), (FIG_6[0], "synergy_without_joint")]
    runs += [(name, method) for name in (W1, TWO) for method in ("synergy", "pri_min_dev", "ind_model", "ind_best")]
    made = [run_method(instance(n), METHODS[m], Budget(time_s=300.0), isolate=False) for n, m in runs]
    order = run_method(
        instance(TWO), METHODS["synergy"], Budget(time_s=300.0), options={"order": "best"}, isolate=False
    )
    return Runs((*made, order))


def rows(table, key):
    return {row[key]: row for row in table.rows}


@pytest.mark.in_turn
def test_study_is_found_and_its_runs_exist():
    assert studies()["multi_model_splitting"] is STUDY
    for quick in (True, False):
        jobs = [job for phase in STUDY.phases(quick) for job in phase.jobs]
        assert len({job.key for job in jobs}) == len(jobs)
        assert {job.method for job in jobs} <= set(METHODS)
    assert set(QUICK) <= set(EVERY)
    everything = {job.method for phase in STUDY.phases(False) for job in phase.jobs}
    of_the_paper = {name for name, method in METHODS.items() if method.reference.startswith("Gong et al., Synergy")}
    assert len(of_the_paper) == 10
    assert of_the_paper <= everything


def test_gaps_count_from_the_proven_optimum():
    table = rows(gaps(Results(records())), "instance")
    assert table["w1_distributed"]["proven"] == "proven"
    assert table["w1_distributed"]["synergy"] == 1.0
    assert table["fig11a_2devices"]["synergy"] == pytest.approx(445020 / 67198)
    assert table["fig11a_2devices"]["best_order"] == 1.0
    assert table["fig11a_2devices"]["orders"] == 24


def test_claims_stand_next_to_printed_numbers():
    table = rows(claims(Results(records())), "claim")
    assert table["W1 PriMinDev"]["verdict"].startswith("reproduced")
    assert table["W1 Synergy"]["verdict"].startswith("differs")
    assert "sensing" in table["W1 Synergy"]["why"]
    assert "W1 any, Synergy" not in table  # there is no run of it


def test_out_of_resource_is_compared_where_there_are_runs():
    table = oor_pattern(Results(records()))
    assert {(r["instance"], r["method"]): r["ours"] for r in table.rows} == {
        ("w1_distributed", "IndModel"): "OOR",
        ("w1_distributed", "IndBest"): "runs",
        ("fig11a_2devices", "IndModel"): "OOR",
        ("fig11a_2devices", "IndBest"): "OOR",
        ("fig6_distributed", "Synergy w/o Joint"): "OOR",
    }
    assert {row["verdict"] for row in table.rows} == {"reproduced"}


def test_table_1_and_figure_7():
    table = rows(printed_facts.table_1(), "model")
    assert [name for name, row in table.items() if row["verdict"] != "equal to mean cycles"] == [
        "WideNet",
        "ResSimpleNet",
    ]
    assert table["WideNet"]["verdict"] == "total cycles of ResSimpleNet / 14"
    assert table["ResSimpleNet"]["other"] == 11217  # 190,693 cycles of WideNet over 17 layers


def test_figure_7_confirms_nothing_that_constants_were_derived_from():
    """The extremes gave the radio's time per byte and the memory latency that of copies; their ratio 36 is free."""
    found = {row["key"]: row["verdict"].split()[0] for row in printed_facts.figure_7().rows}
    assert {key for key, verdict in found.items() if verdict == "fitted"} == {
        "fig7_mem",
        "fig7_mem_ratio",
        "fig7_min",
        "fig7_max",
    }
    assert found["fig7_inf"] == found["fig7_range"] == found["fig7_comm_inner"] == "reproduced"
    assert found["fig7_comm"] == found["fig7_comm_ratio"] == "close"


@pytest.mark.in_turn
def test_equal_plans_on_more_devices_are_one_case():
    """With every source and target on d1, four of its pipelines leave no use for a third device."""
    names = [*(f"synergy_fig11a_{n}devices_overlapped" for n in (2, 3, 4, 5)), TWO, W1]
    made = [
        run_method(instance(n), METHODS[m], Budget(time_s=300.0), isolate=False)
        for n in names
        for m in ("cpsat", "synergy")
    ]
    table = gaps(Results(Runs(made)))
    assert {row["instance"]: row["case"] for row in table.rows} == {
        "w1_distributed": "w1_distributed",
        "fig11a_2devices": "fig11a_2devices",
        **{f"fig11a_{n}devices_overlapped": "fig11a_2devices_overlapped" for n in (2, 3, 4, 5)},
    }
    found = rows(counts(table), "origin")
    assert (found["paper"]["instances"], found["paper"]["optimal"], found["paper"]["cases"]) == (2, 1, 2)
    assert (found["variant"]["instances"], found["variant"]["lost_cases"]) == (4, 1)


def test_longer_sensing_hides_what_sequence_loses():
    """Two devices of Fig. 11a sense two pipelines each: at 170 ms no cycle is below 340,000 ticks, Synergy's is 445,020
    and what it loses to the optimum falls from 445,020 / 67,198 to 445,020 / 340,000."""
    made = [
        run_method(instance(TWO, sensing_ms=ms), METHODS[m], Budget(time_s=300.0), isolate=False)
        for ms in (0, 170)
        for m in ("cpsat", "synergy")
    ]
    table = sensing(Runs(made))
    (row,) = table.rows
    assert row["at_0"] == pytest.approx(445020 / 67198)
    assert row["at_170"] == pytest.approx(445020 / 340000)
    assert row["at_50"] is None
    assert [(r["sensing"], r["optimal"]) for r in sensing_counts(table).rows if r["origin"] == "paper"] == [
        (0, 0),
        (170, 0),
    ]


def test_mean_gain_is_over_baselines_that_run():
    """Two instances: PriMinDev has a plan in both, IndBest in workload 1 only, IndModel in none."""
    table = mean_gain(records()).rows
    assert [(row["over"], row["ratios"]) for row in table] == [("all", 3), ("next best", 2)]
    assert table[0]["mean"] >= table[0]["geometric"] >= 1


def test_saturation_needs_every_point_of_the_figure():
    assert not thresholds(Results(records())).rows
    names = [*FIG_11A.values(), *FIG_11B.values()]
    made = [
        run_method(instance(n), METHODS[m], Budget(time_s=300.0), isolate=False)
        for n in names
        for m in ("synergy", "ind_best")
    ]
    assert {row["key"]: row["ours"] for row in thresholds(Results(Runs(made))).rows} == {
        "ndev_sat": 4,
        "ndev_indbest_ok": 4,
        "npipe_indbest_oor": 5,
    }


@pytest.mark.in_turn
def test_page_of_few_and_of_no_runs(tmp_path):
    for found, quick in ((records(), True), (Runs(), False)):
        page = STUDY.page(found, quick)
        assert "Synergy" in page.write(tmp_path).read_text()
        names = {table.name for section in page.sections for table in section.tables}
        assert set(STUDY.headline) <= names


def test_changes_report_churn():
    """d1 leaves with UNet on it; ConvNet5 stays on d2, ResSimpleNet on d3, so nothing else needs to move.

    UNet needs a device of its own (279,084 bytes; 71,158 of ConvNet5 would fit beside it, but share the accelerator).
    """
    event = "workload 1 anywhere, d1 leaves"
    data = changed(event)
    assert [(old.pipeline, old.device) for old in data.deployed] == [
        ("ConvNet5", "d2"),
        ("ResSimpleNet", "d3"),
        ("UNet", "d1"),
    ]
    found = [run_method(data, METHODS[m], Budget(time_s=300.0), isolate=False) for m in ("synergy", "replan")]
    table = rows(changes(Runs(found)), "method")
    assert table["joint optimum, least churn"]["moved"] == 279.084
    assert table["joint optimum, least churn"]["pipelines"] == 1
    assert table["Synergy"]["throughput"] == table["joint optimum, least churn"]["throughput"]
    assert {job.method for job in change_jobs(1.0)} == {"synergy", "joint", "replan"}
