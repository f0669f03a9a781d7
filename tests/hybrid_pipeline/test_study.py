"""The study of hybrid pipelines: its runs exist, its tables are the arithmetic they claim."""

import pytest

from mapgap.catalogue.registry import methods
from mapgap.records.record import RunRecord
from mapgap.records.runs import Runs
from mapgap.studies.hybrid_pipeline import study
from mapgap.studies.hybrid_pipeline.costs import cost, nano_name, planners, scalability
from mapgap.studies.hybrid_pipeline.experiments import instance, library_name
from mapgap.studies.hybrid_pipeline.failures import failure_figures, failure_name, failures, recovery
from mapgap.studies.hybrid_pipeline.figures import waterfall
from mapgap.studies.hybrid_pipeline.losses import CAUSES, losses
from mapgap.studies.hybrid_pipeline.published import implied, table_4, table_6
from mapgap.studies.hybrid_pipeline.schedules import policies, policy_name


def record(name, method, objective, options=None, notes=None, **terms):
    return RunRecord(
        instance=name,
        instance_hash=name,
        problem="hybrid_pipeline",
        sense="min",
        method=method,
        kind=methods("hybrid_pipeline")[method].kind,
        options=options or {},
        objective=objective,
        terms=terms,
        notes=notes or {},
    )


@pytest.mark.parametrize("quick", [True, False])
def test_runs_exist_once(quick):
    jobs = [job for phase in study.phases(quick) for job in phase.jobs]
    assert {job.method for job in jobs} <= set(methods("hybrid_pipeline"))
    assert len({job.key for job in jobs}) == len(jobs)


def test_speedups_are_ratios_of_latencies():
    name = library_name("a", "resnet50")
    values = {"asteroid": 200, "label_dp": 160, "data_parallel": 720, "gpipe": None}
    rows = [record(name, method, value) for method, value in values.items()]
    (row,) = table_4(Runs(rows)).rows
    assert row["dp"] == pytest.approx(3.6)
    assert row["dp_verdict"].startswith("reproduced")  # Table 4 prints 3.6
    assert row["optimum"] == pytest.approx(1.25)
    assert (row["pp_verdict"], row["dev_verdict"]) == ("out of memory", "not run")


def test_losses_add_up():
    """130 -> Pareto sets 129 -> Eq. (7) 127 -> slowest first 120 -> any groups 110 -> idle devices 100."""
    name = library_name("c", "resnet50")
    rows = [
        record(name, "asteroid", 130),
        record(name, "asteroid_pareto", 129),
        record(name, "label_dp", 127, {"order": "fastest_first"}),
        record(name, "label_dp", 120, {"order": "slowest_first"}),
        record(name, "label_dp", 100),
        record(f"{name}+all", "label_dp", 110),
    ]
    tick = instance(name).seconds_per_tick
    for method, model, simulated in (("asteroid", 130, 143), ("label_dp", 100, 104)):
        notes = {"schedules": [{"policy": "ours", "duplex": "half", "latency_s": simulated * tick}]}
        rows.append(record(name, method, model, {"simulate": True}, notes))
    table, pictures = losses(Runs(rows))
    (row,) = table.rows
    assert [row[key] for key in CAUSES] == pytest.approx([1, 2, 7, 10, 10])
    assert row["total"] == pytest.approx(30)
    assert (row["model_asteroid"], row["model"]) == pytest.approx((10, 4))
    assert row["simulated"] == pytest.approx(100 * (143 / 104 - 1))
    assert len(pictures) == 1
    assert losses(Runs(rows[1:]))[0].rows == []


def test_table_4_contradicts_table_1_under_equation_5():
    """EfficientNet-B1: T_a = 1.6 * 26.104 / 12.5 s, T = T_a / (2.1 - 4.4 / 5), and 4.4 T / 2048 per sample."""
    row = implied(Runs([])).rows[0]
    latency = 1.6 * 26.104 / 12.5 / (2.1 - 0.88)
    assert row["t4"] == pytest.approx(1000 * 4.4 * latency / 2048)
    assert row["t1"] == pytest.approx(1000 * 1602 / 50000)
    assert row["factor"] > 5


def test_waterfall_shows_every_step():
    axes = waterfall([("a", 120.0), ("b", 110.0), ("c", 110.0)], {0, 2}, "t").axes[0]
    assert [text.get_text() for text in axes.texts] == ["120.0", "-10.0", "110.0"]


def test_environments_are_table_6():
    assert [row["verdict"] for row in table_6().rows] == ["reproduced"] * 4


def test_policies_are_judged_by_throughput_and_memory():
    """Ours 100 samples per second and 2 units; (a) and (c) no faster, (b) slower with less memory."""
    name = policy_name(100)
    found = {"ours": (100.0, 2), "a": (101.0, 3), "b": (80.0, 1), "c": (100.0, 4), "gpipe": (90.0, 16)}
    rows = [
        {"policy": policy, "duplex": duplex, "samples_per_s": speed, "peak_memory": {"TX2 1": units}, "fits": True}
        for policy, (speed, units) in found.items()
        for duplex in ("half", "full")
    ]
    run = record(name, "gpipe", 5, {"simulate": True}, {"schedules": rows})
    state = sum(layer.state_memory for layer in instance(name).layers)
    whole = record(name, "data_parallel", 5, peak_memory={"TX2 1": state + 1})
    (table, left, claims), pictures = policies(Runs([run, whole]))
    assert [row["relative"] for row in table.rows] == pytest.approx([1.0, 1.01, 0.8, 1.0, 0.9])
    assert [row["memory_relative"] for row in table.rows] == pytest.approx([1.0, 1.5, 0.5, 2.0, 8.0])
    assert len(left.rows) == len(pictures) == 1
    assert left.rows[0]["dp_whole"] - left.rows[0]["dp"] == pytest.approx(15 * 1024 / 1e9)  # M = 16
    assert [row["verdict"] for row in claims.rows] == [
        "much smaller than without 1F1B, much smaller than DP by micro-batches, much smaller than DP at once",
        "reproduced",
        "reproduced against (a) and (c), not against (b)",
    ]


def test_recovery_is_compared_with_the_printed_factors():
    """Outages 1 + 0.1 + 0.4 and 1 + 0.5 + 3 s; with half of Table 7's stages planning takes 240 s."""
    name, rows = failure_name("nano1"), []
    cases = (("flops_recut", 0.1, 0.4, 90.0), ("heavy_rescheduling", 0.5, 3.0, 100.0))
    for method, planning, transport, speed in cases:
        resumed = 101 + planning + transport
        corners = [[0.0, 150.0], [100.0, 150.0], [100.0, 0.0], [resumed, 0.0], [resumed, speed], [200.0, speed]]
        replay = {"detection_s": 1.0, "planning_s": planning, "transport_s": transport, "corners": corners}
        notes = {"replay": replay, "stages_evaluated": 50}
        rows.append(record(name, method, 5, notes=notes, samples_per_s=speed))
    rows.append(record(library_name("c", "efficientnet_b1"), "asteroid", 5, notes={"stages_evaluated": 100}))
    runs = Runs(rows)
    (row,) = recovery(runs).rows
    assert (row["kept"], row["kept_verdict"]) == (pytest.approx(90), "reproduced (+0%)")
    assert (row["faster"], row["planning"]) == pytest.approx((4.5 / 1.5, 240))
    assert row["paced"] == pytest.approx(244 / 1.5)
    assert row["needed"] == pytest.approx(14 * 1.5 - 4)
    assert [row["outage"] for row in failures(runs).rows] == pytest.approx([1.5, 4.5])
    assert [item.name for item in failure_figures(runs)] == ["fig16_outage", "fig16_after", "fig17_nano1"]


def test_costs_are_medians_of_the_same_instances():
    rows = []
    for name in ("scaling_2", "scaling_5"):
        for method, median, value in (("label_dp", 0.01, 100), ("asteroid", 0.05, 110)):
            rows.append(record(name, method, value, {"repeat": 20}, {"median_s": median}))
    table, pictures = cost(Runs(rows))
    assert [(row["layers"], row["devices"], row["types"]) for row in table.rows] == [
        (213, 6, "1 + 2 + 3"),
        (213, 4, "1 + 1 + 2"),
    ]
    assert [(row["ratio"], row["loss"]) for row in table.rows] == [pytest.approx((5, 1.1))] * 2
    assert [item.name for item in pictures] == ["cost_devices"]


def test_planners_are_compared_without_evaluations():
    rows = [
        record("scaling_2", method, 100, {"repeat": 20}, {"median_s": 1.0, "planner_median_s": median})
        for method, median in (("label_dp", 0.01), ("asteroid", 0.05))
    ]
    (row,) = planners(Runs(rows)).rows
    assert (row["exact"], row["asteroid"], row["ratio"]) == pytest.approx((10, 50, 5))
    assert planners(Runs([])).rows == []


def test_scalability_is_judged_by_what_section_5_6_says():
    """PP: 150 samples per second on two devices, 120 on four, nothing on six; Asteroid at 95 % of linear."""
    rows = []
    for count in range(1, 9):
        name, speed = nano_name(count, "mobilenetv2"), {1: 100, 2: 150, 3: 140, 4: 120, 5: 130}.get(count)
        rows.append(record(name, "gpipe", 1 if speed else None, samples_per_s=speed))
        rows.append(record(name, "asteroid", 1, samples_per_s=100.0 if count == 1 else 95.0 * count))
    table, pictures = scalability(Runs(rows))
    assert [(row["here"], row["verdict"]) for row in table.rows] == [
        ("from 6 devices", "reproduced"),
        ("0.80", "reproduced"),
        ("95 % of linear on 8 devices", "reproduced"),
    ]
    assert [item.name for item in pictures] == ["fig18_mobilenetv2"]
