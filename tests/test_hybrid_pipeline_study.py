"""The study of hybrid pipelines: its runs exist, its tables are the arithmetic they claim."""

import pytest

from mapgap.registry import methods
from mapgap.studies import hybrid_pipeline as study
from mapgap.studies._hybrid_pipeline_figures import waterfall


def record(name, method, objective, options=None, **terms):
    return {
        "instance": name, "instance_hash": name, "problem": "hybrid_pipeline", "method": method,
        "options": options or {}, "objective": objective, "terms": terms, "notes": {}, "error": None, "plan": None,
    }  # fmt: skip


@pytest.mark.parametrize("quick", [True, False])
def test_runs_exist_once(quick):
    jobs = [job for phase in study.phases(quick) for job in phase.jobs]
    assert {job.method for job in jobs} <= set(methods("hybrid_pipeline"))
    assert len({job.key for job in jobs}) == len(jobs)


def test_speedups_are_ratios_of_latencies():
    name = study.library_name("a", "resnet50")
    values = {"asteroid": 200, "label_dp": 160, "data_parallel": 720, "gpipe": None}
    rows = [record(name, method, value) for method, value in values.items()]
    (row,) = study.table_4(study.Runs(rows)).rows
    assert row["dp"] == pytest.approx(3.6)
    assert row["dp_verdict"].startswith("reproduced")  # Table 4 prints 3.6
    assert row["optimum"] == pytest.approx(1.25)
    assert (row["pp_verdict"], row["dev_verdict"]) == ("out of memory", "not run")


def test_losses_add_up():
    """130 -> other tie rule 120 -> Eq. (7) 115 -> all devices 110 -> 100."""
    name = study.library_name("c", "resnet50")
    rows = [
        record(name, "asteroid", 130, nested_ticks=128),
        record(name, "asteroid", 120, {"ties": "slowest_first"}, nested_ticks=115),
        record(name, "label_dp", 100),
        record(f"{name}+all", "label_dp", 110),
    ]
    table, pictures = study.losses(study.Runs(rows))
    (row,) = table.rows
    assert [row[key] for key in ("ties", "shares", "order", "idle")] == pytest.approx([10, 5, 5, 10])
    assert row["total"] == pytest.approx(30)
    assert len(pictures) == 1


def test_table_4_contradicts_table_1_under_equation_5():
    """EfficientNet-B1: T_a = 1.6 * 26.104 / 12.5 s, T = T_a / (2.1 - 4.4 / 5), and 4.4 T / 2048 per sample."""
    row = study.implied(study.Runs([])).rows[0]
    latency = 1.6 * 26.104 / 12.5 / (2.1 - 0.88)
    assert row["t4"] == pytest.approx(1000 * 4.4 * latency / 2048)
    assert row["t1"] == pytest.approx(1000 * 1602 / 50000)
    assert row["factor"] > 5


def test_waterfall_shows_every_step():
    axes = waterfall([("a", 120.0), ("b", 110.0), ("c", 100.0)], "t").axes[0]
    assert [text.get_text() for text in axes.texts] == ["120.0", "-10.0", "100.0"]
