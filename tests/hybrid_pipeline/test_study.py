"""The study of hybrid pipelines: its runs exist, its tables are the arithmetic they claim."""

import pytest

from mapgap.catalogue.registry import methods
from mapgap.problems.hybrid_pipeline import Instance, Plan, Stage
from mapgap.problems.hybrid_pipeline.evaluate import evaluate
from mapgap.records.record import RunRecord
from mapgap.records.runs import Runs
from mapgap.studies.hybrid_pipeline import study
from mapgap.studies.hybrid_pipeline.claims import claims, hetpipe_s, over, ranges, table_8
from mapgap.studies.hybrid_pipeline.costs import cost, cost_pictures, nano_name, scalability, scaling_claims
from mapgap.studies.hybrid_pipeline.experiments import VARIANTS, instance, library_name
from mapgap.studies.hybrid_pipeline.failures import failure_figures, failure_name, failures, recovery
from mapgap.studies.hybrid_pipeline.figures import waterfall
from mapgap.studies.hybrid_pipeline.gaps import apart, gaps, readings, sensitivity, whole_name
from mapgap.studies.hybrid_pipeline.losses import CAUSES, loss_pictures, losses
from mapgap.studies.hybrid_pipeline.published import implied, table_4, table_6
from mapgap.studies.hybrid_pipeline.schedules import as_hpp, comparison, policies, policy_name


def record(name, method, objective, options=None, notes=None, plan=None, **terms):
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
        plan=plan,
    )


@pytest.mark.parametrize("quick", [True, pytest.param(False, marks=pytest.mark.nightly)])  # half a gigabyte
def test_runs_exist_once(quick):
    jobs = [job for phase in study.phases(quick) for job in phase.jobs]
    assert {job.method for job in jobs} <= set(methods("hybrid_pipeline"))
    assert len({(job.instance.name, job.method, str(job.options)) for job in jobs}) == len(jobs)


def test_speedups_are_ratios_of_latencies():
    """PP counts without memory limits, and says that it does not fit; the second reading has Asteroid's own plan."""
    name = library_name("a", "resnet50")
    values = {"asteroid": 200, "label_dp": 160, "data_parallel": 720, "gpipe": None}
    rows = [record(name, method, value) for method, value in values.items()]
    rows.append(record(f"{name}+memory", "gpipe", 1000))
    rows += [record(f"{name}+medium", "asteroid", 400), record(f"{name}+medium", "data_parallel", 2000)]
    (row,) = table_4(Runs(rows)).rows
    assert (row["dp"], row["dp_medium"]) == pytest.approx((3.6, 5.0))
    assert (row["pp"], row["pp_medium"], row["pp_fits"]) == (5.0, 2.5, "out of memory")
    assert row["optimum"] == pytest.approx(1.25)
    assert row["dev"] is None


def plan(*groups):
    """A plan whose stages have these devices."""
    return {"micro_batch": 1, "stages": [{"devices": list(group)} for group in groups]}


def solved(name, optimum, single, groups, asteroid=None, best=None):
    """Runs of an instance whose optimum has these groups, and whose best plan of one stage has the first one."""
    return [
        record(name, "label_dp", optimum, plan=plan(*groups)),
        record(whole_name(name), "label_dp", single, plan=plan(groups[0])),
        record(name, "asteroid", asteroid),
        record(name, "asteroid", best, {"ties": "best"}),
    ]


def test_instances_without_a_pipeline_stand_apart():
    """101 of 100 is 1 %: there a pipeline pays, as where no plan of one stage fits. Else one board or one group."""
    rows = [
        *solved(library_name("b", "resnet50"), 100, 101, [(0,), (1, 2)], 120, 110),
        *solved(library_name("b", "bert_small"), 1000, 1000, [(4,)], 1200, 1200),
        *solved(library_name("c", "resnet50"), 1000, 1009, [(0, 1), (2,)], 1000, 1000),
        *solved(library_name("c", "bert_small"), 100, None, [(0, 1), (2,)], 103, 102),
    ]
    runs = Runs(rows)
    paying, other = gaps(runs), apart(runs)
    assert [(row["environment"], row["network"], row["best"], row["default"]) for row in paying.rows] == [
        ("B", "ResNet50", pytest.approx(10), pytest.approx(20)),
        ("C", "BERT-small", pytest.approx(2), pytest.approx(3)),
    ]
    assert [(row["network"], row["kind"]) for row in other.rows] == [
        ("BERT-small", "one board"),
        ("ResNet50", "one group"),
    ]
    (row,) = readings(runs).rows
    assert (row["pipeline_count"], row["pipeline_optimal"], row["pipeline_median"]) == (2, 0, pytest.approx(6))
    assert (row["board_max"], row["group_max"]) == (pytest.approx(20), 0)
    paying_words, other_words = study.headline(paying, other)
    assert "On 2 instances a pipeline pays" in paying_words
    assert "optimal on 0. On the others it is 6.0 % above the optimum in the median and 10.0 % at most" in paying_words
    assert "On 2 other instances no pipeline pays; they stand apart. 1 of them train best on one board" in other_words


def test_another_reading_may_change_what_pays():
    name = library_name("b", "bert_small")
    rows = [
        *solved(name, 100, 100, [(0,)], 130, 130),
        *solved(f"{name}+bytes4", 60, 100, [(0,), (1,)], 66, 63),
        *solved(f"{name}+medium", 100, 100, [(0,)], 200, 200),
    ]
    (row,) = sensitivity(Runs(rows)).rows
    assert (row["derived_kind"], row["bytes4_kind"], row["medium_kind"]) == ("one board", "pipeline", "one board")
    assert (row["derived"], row["bytes4"], row["medium"]) == pytest.approx((30, 5, 100))


def test_variants_are_what_their_names_say():
    """Every variant is a valid instance; the one without cuts has the times, weights and memory of all layers."""
    name = library_name("c", "bert_small")
    made = instance(name)
    for word in VARIANTS:
        other = instance(f"{name}+{word}")
        assert Instance.model_validate(other.model_dump()) == other
        assert other.content_hash != made.content_hash
    quarter, whole = instance(f"{name}+bytes4"), instance(f"{name}+whole")
    assert all(0 <= 4 * b.output_bytes - a.output_bytes < 4 for a, b in zip(made.layers, quarter.layers, strict=True))
    (layer,) = whole.layers
    assert layer.weight_bytes == sum(each.weight_bytes for each in made.layers)
    assert whole.types[0].backward[0][3] == sum(row[3] for row in made.types[0].backward)
    board = Stage(start=0, stop=len(made.layers), devices=(0,), shares=made.micro_batch_sizes)
    alone = Plan(micro_batch=made.micro_batch_sizes[0], stages=(board,))
    merged = Plan(micro_batch=made.micro_batch_sizes[0], stages=(board.model_copy(update={"stop": 1}),))
    assert evaluate(whole, merged).objective == evaluate(made, alone).objective


def test_losses_add_up():
    """130 -> best order 123 -> Pareto sets 122 -> Eq. (7) 120 -> any groups 110 -> idle devices 100."""
    name = library_name("c", "resnet50")
    rows = [
        *solved(name, 100, 150, [(0,), (1,)], 130, 123),
        record(name, "asteroid_pareto", 122, {"ties": "best"}),
        record(name, "label_dp", 120, {"order": "best"}),
        record(f"{name}+all", "label_dp", 110),
    ]
    tick = instance(name).seconds_per_tick
    for method, model, simulated in (("asteroid", 130, 143), ("label_dp", 100, 104)):
        notes = {"schedules": [{"policy": "ours", "duplex": "half", "latency_s": simulated * tick}]}
        rows.append(record(name, method, model, {"simulate": True}, notes))
    table, pictures = losses(Runs(rows)), loss_pictures(Runs(rows))
    (row,) = table.rows
    assert [row[key] for key in CAUSES] == pytest.approx([7, 1, 2, 10, 10])
    assert row["total"] == pytest.approx(30)
    assert (row["model_asteroid"], row["model"]) == pytest.approx((10, 4))
    assert row["simulated"] == pytest.approx(100 * (143 / 104 - 1))
    assert len(pictures) == 1
    assert losses(Runs(rows[1:])).rows == []


def test_an_allreduce_that_tables_1_and_4_imply():
    """EfficientNet-B1 on five Nano: 2048 samples take 65.6 s on one, T = 65.6 / 4.4, T_a = 2.1 T - 65.6 / 5."""
    row = implied(Runs([])).rows[0]
    alone = 2048 * 26.7 * 60 / 50_000
    assert row["equation"] == pytest.approx(1.6 * 26.104 / 12.5)
    assert row["needed"] == pytest.approx(2.1 * alone / 4.4 - alone / 5)
    assert 5 < row["factor"] < 6


def test_waterfall_shows_every_step():
    axes = waterfall([("a", 120.0), ("b", 110.0), ("c", 110.0)], {0, 2}, "t").axes[0]
    assert [text.get_text() for text in axes.texts] == ["120.0", "-10.0", "110.0"]


def test_environments_are_table_6():
    assert [row["library"] for row in table_6().rows] == [row["printed"] for row in table_6().rows]


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
    (table, left, said), pictures = policies(Runs([run, whole]))
    assert [row["relative"] for row in table.rows] == pytest.approx([1.0, 1.01, 0.8, 1.0, 0.9])
    assert [row["memory_relative"] for row in table.rows] == pytest.approx([1.0, 1.5, 0.5, 2.0, 8.0])
    assert len(left.rows) == len(pictures) == 1
    assert left.rows[0]["dp_whole"] - left.rows[0]["dp"] == pytest.approx(15 * 1024 / 1e9)  # M = 16
    # 2 units against 16 without 1F1B; of the better of (a) and (c), 101 samples per second.
    assert said.rows[0]["margin"] == pytest.approx(2 / 16 - 1)
    assert [row["margin"] < 0 for row in said.rows[:3]] == [True] * 3
    assert said.rows[3]["margin"] == pytest.approx(100 / 101 - 0.95)


def test_a_policy_that_is_much_faster_shows():
    name = policy_name(1000)
    rows = [
        {"policy": policy, "duplex": duplex, "samples_per_s": speed, "peak_memory": {"TX2 1": 1}, "fits": True}
        for policy, speed in {"ours": 90.0, "a": 100.0, "b": 80.0, "c": 100.0, "gpipe": 90.0}.items()
        for duplex in ("half", "full")
    ]
    said = policies(Runs([record(name, "gpipe", 5, {"simulate": True}, {"schedules": rows})]))[0][2]
    assert [row["margin"] for row in said.rows] == [pytest.approx(-0.05)]


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
    assert row["kept"] == pytest.approx(90)
    assert (row["faster"], row["planning"]) == pytest.approx((4.5 / 1.5, 240))
    assert row["paced"] == pytest.approx(244 / 1.5)
    assert row["needed"] == pytest.approx(14 * 1.5 - 4)
    assert [row["outage"] for row in failures(runs).rows] == pytest.approx([1.5, 4.5])
    assert [item.name for item in failure_figures(runs)] == ["fig16_outage", "fig16_after", "fig17_nano1"]


def test_costs_are_medians_of_the_same_instances():
    rows = []
    for name in ("scaling_2", "scaling_5"):
        for method, median, value in (("label_dp", 0.01, 100), ("asteroid", 0.05, 110)):
            notes = {"median_s": 1.0, "planner_median_s": median}  # the first contains evaluations
            rows.append(record(name, method, value, {"repeat": 20}, notes))
    table = cost(Runs(rows))
    pictures = cost_pictures(table)
    assert [(row["layers"], row["devices"], row["types"]) for row in table.rows] == [
        (213, 6, "1 + 2 + 3"),
        (213, 4, "1 + 1 + 2"),
    ]
    assert [(row["ratio"], row["loss"]) for row in table.rows] == [pytest.approx((5, 1.1))] * 2
    assert [item.name for item in pictures] == ["cost_devices"]


def test_hetpipe_counts_by_its_own_execution():
    """Its placement as an HPP takes 300 ticks or does not fit; its own execution takes 1.5 times the optimum."""
    name = library_name("b", "resnet50")
    tick = instance(name).seconds_per_tick
    notes = {"hdp_latency_s": 150 * tick, "workers": 1}
    rows = [
        record(name, "label_dp", 100, latency_s=100 * tick),
        record(name, "asteroid", 120, latency_s=120 * tick),
        record(name, "hetpipe", None, notes=notes),
        record(name, "eddl", 240, latency_s=240 * tick),
    ]
    runs = Runs(rows)
    assert over(runs, name, "hetpipe") == pytest.approx(1.25)
    assert over(runs, name, "eddl") == pytest.approx(2)
    (row,) = as_hpp(runs).rows
    assert (row["own"], row["hpp"], row["workers"]) == (pytest.approx(1.5), None, 1)
    (row,) = comparison(runs, "fig13", "t", ("eddl", "hetpipe"), {"hetpipe": hetpipe_s})[0].rows
    assert (row["eddl"], row["hetpipe"], row["asteroid"]) == pytest.approx((2.4, 1.5, 1.2))
    assert {row["system"]: row["high"] for row in ranges(runs).rows if row["high"]} == pytest.approx(
        {"eddl": 2, "hetpipe": 1.25}
    )


def test_claims_in_sentences():
    """Energy of DP over Asteroid's is the ratio of their latencies; 0.13 J at 100 samples per second are 13 W."""
    name = library_name("d", "efficientnet_b1")
    rows = [record(name, "asteroid", 50, samples_per_s=100.0), record(name, "data_parallel", 75)]
    found = {row["id"]: row for row in claims(Runs(rows)).rows}
    assert found["energy_ratio"]["high"] == pytest.approx(1.5)
    assert found["energy"]["high"] == pytest.approx(13)
    assert found["nano_slow"]["high"] == pytest.approx(22 * 60 / 9.4)  # Table 1, MobileNetV2
    assert (found["dp_range_check_pp"]["low"], found["dp_range_check_pp"]["high"]) == (1, 12.2)  # Table 4
    assert found["params_resnet50"]["high"] == pytest.approx(94.852, abs=0.001)


def test_profiling_times_grow_with_slower_boards():
    rows = {row["board"]: row for row in table_8().rows}
    assert rows["Nano"]["scaled"] == pytest.approx(82)
    assert rows["NX"]["scaled"] < rows["TX2"]["scaled"] < rows["Nano"]["scaled"]
    assert rows["TX2"]["scaled"] / rows["TX2"]["once"] == pytest.approx(82 / rows["Nano"]["once"])


def test_scalability_is_judged_by_what_section_5_6_says():
    """PP: 150 samples per second on two devices, 120 on four, nothing on six; Asteroid at 95 % of linear."""
    rows = []
    for count in range(1, 9):
        name, speed = nano_name(count, "mobilenetv2"), {1: 100, 2: 150, 3: 140, 4: 120, 5: 130}.get(count)
        rows.append(record(name, "gpipe", 1 if speed else None, samples_per_s=speed))
        rows.append(record(name, "asteroid", 1, samples_per_s=100.0 if count == 1 else 95.0 * count))
    table, pictures = scaling_claims(Runs(rows)), scalability(Runs(rows))
    assert [(row["value"], row.get("margin"), row["words"]) for row in table.rows] == [
        (6, None, "from 6 devices"),
        (pytest.approx(0.8), pytest.approx(-0.2), "slower"),
        (pytest.approx(0.95), pytest.approx(0.05), "95 % of linear on 8 devices"),
    ]
    assert [item.name for item in pictures] == ["fig18_mobilenetv2"]
