"""The study of sizes: its tables by hand, the sizes of its ladder, and the page that quotes them."""

from pathlib import Path

import pytest

from mapgap.records.record import RunRecord
from mapgap.records.runs import Runs
from mapgap.studies.scale import ladder
from mapgap.studies.scale.ladder import LADDERS, roles
from mapgap.studies.scale.study import page, phases
from mapgap.studies.scale.tables import breaks, cause, sizes

SMALL, LARGE = (LADDERS["fpga_gpu_partition"].rungs[k].names("fpga_gpu_partition") for k in (0, 1))


def record(instance, method, objective=None, bound=None, wall_s=1.0, status="FEASIBLE", stop="time", **more):
    return RunRecord(
        instance=instance,
        instance_hash=instance,
        problem="fpga_gpu_partition",
        sense="min",
        method=method,
        kind="published" if method == "paper_rule" else "exact",
        objective=objective,
        bound=bound,
        wall_s=wall_s,
        status=status if objective is not None else "UNKNOWN",
        stop=stop,
        **more,
    )


def runs():
    """Two sizes of two instances.

    Small: the optima 100 and 200 are proven; the rule has 110 and 200. Large: label setting has a plan of 120 and the
    bound 100 on the first, and no bound on the second; CP-SAT has no plan of the first and no memory for the second.
    """
    a, b = SMALL.values()
    c, d = LARGE.values()
    return Runs(
        [
            record(a, "paper_rule", 110, wall_s=0.2, stop="finished"),
            record(b, "paper_rule", 200, wall_s=0.4, stop="finished"),
            record(a, "label_setting", 100, 100, wall_s=1.0, status="OPTIMAL", stop="proved", peak_mb=80.0),
            record(b, "label_setting", 200, 200, wall_s=4.0, status="OPTIMAL", stop="proved", peak_mb=90.0),
            record(a, "cpsat", 105, 90),
            record(b, "cpsat", 200, 200, status="OPTIMAL", stop="proved"),
            record(c, "label_setting", 120, 100),
            record(d, "label_setting", 300),
            record(c, "cpsat", None, 60),
            record(d, "cpsat", 310, 50, stop="memory"),
        ]
    )


def rows_of(table, **fields):
    return [row for row in table.rows if all(row[name] == value for name, value in fields.items())]


def test_time_memory_and_gap_of_a_size():
    (rule,) = rows_of(sizes("fpga_gpu_partition", runs()), method="paper_rule")
    assert (rule["size"], rule["runs"], rule["optimal"], rule["feasible"], rule["none"]) == ("16", 2, 0, 2, 0)
    assert rule["time"] == pytest.approx(0.3)
    assert (rule["gap"], rule["worst"]) == (5.0, 10.0)  # 110 to 100, and 200 to 200; the rule proves nothing itself
    assert (rule["own"], rule["memory"], rule["breaks"]) == (None, None, "")
    first = rows_of(sizes("fpga_gpu_partition", runs()), method="label_setting")[0]
    assert (first["optimal"], first["time"], first["memory"], first["gap"]) == (2, 2.5, 90.0, 0.0)


def test_gaps_are_to_the_best_bound_of_any_method_and_to_the_own_one():
    first = rows_of(sizes("fpga_gpu_partition", runs()), method="cpsat", size="16")[0]
    assert first["worst"] == 5.0  # 105 to the bound 100 of label setting
    assert first["own"] == pytest.approx((100 * 15 / 90 + 0) / 2)


def test_where_methods_break():
    found = {row["method"]: row for row in breaks({"fpga_gpu_partition": sizes("fpga_gpu_partition", runs())}).rows}
    assert [found["label_setting"][key] for key in ("proven", "breaks", "how")] == ["16", "63", "no bound"]
    assert [found["cpsat"][key] for key in ("proven", "breaks", "how")] == [None, "63", "no plan"]
    assert [found["paper_rule"][key] for key in ("proven", "breaks", "how", "largest")] == [None, None, None, "16"]


@pytest.mark.parametrize(
    ("run", "words"),
    [
        (record("x", "cpsat", 5, 5, status="OPTIMAL", stop="proved"), ""),
        (record("x", "cpsat", 5), "no bound"),
        (record("x", "paper_rule", 5), ""),  # a heuristic owes no bound
        (record("x", "cpsat", None, 4), "no plan"),
        (record("x", "cpsat", None, stop="error"), "error"),
        (record("x", "cpsat", 5, 4, stop="memory"), "memory"),
    ],
)
def test_why_a_method_breaks(run, words):
    assert cause(run) == words


def test_a_proof_that_there_is_no_plan_is_an_answer():
    run = RunRecord("x", "x", "p", "min", "cpsat", "exact", status="INFEASIBLE", stop="proved")
    assert cause(run) == ""


def test_instances_have_the_sizes_that_tables_say():
    def first(problem):
        return [(rung, rung.make(rung.seeds[0])) for rung in LADDERS[problem].rungs]

    for rung, made in first("hybrid_pipeline"):
        assert rung.size == f"{len(made.layers)} × {len(made.devices)}"
    for rung, made in first("multi_model_splitting"):
        assert rung.size == f"{len(made.pipelines)} × {len(made.devices)}"
    for rung, made in first("fpga_gpu_partition"):
        assert rung.size == str(len(made.layers))
    for rung, made in first("suboperation_mapping"):
        count, accelerators = rung.size.split(" × ")
        assert int(accelerators) == len(made.accelerators)
        assert not count.isdigit() or int(count) == len(made.layers)
    for rung, made in first("neuron_masking"):
        if rung.series == "chain":
            assert f"ladder_{rung.size.replace(' × ', 'x')}_" in made.name
        else:
            assert rung.size == f"{len(made.devices)} devices"


def test_hybrid_pipelines_reach_32_devices_and_everything_runs_on_two_fresh_seeds():
    sizes = {int(rung.size.split(" × ")[1]) for rung in LADDERS["hybrid_pipeline"].rungs}
    assert {8, 12, 14, 20, 32} <= sizes
    for each in LADDERS.values():
        assert all(len(set(rung.seeds)) == 2 and min(rung.seeds) >= 200 for rung in each.rungs)


def test_sizes_of_a_problem_have_names_of_their_own():
    names = [name for p, each in LADDERS.items() for rung in each.rungs for name in rung.names(p).values()]
    assert len(names) == len(set(names))


def test_bandwidths_differ_by_pair_and_seed():
    made = [ladder.fpgas("alexnet", 2, seed) for seed in range(200, 206)]
    assert len({each.bandwidth[0][1] for each in made}) > 1
    assert all(each.bandwidth[0][1] == each.bandwidth[1][0] for each in made)


def test_the_page_of_hand_made_runs():
    made = page(runs(), quick=True)
    tables = {table.name: table for table in made.tables()}
    assert {"breaks", *LADDERS} <= set(tables)
    assert len(rows_of(tables["breaks"], problem="fpga_gpu_partition")) == 3
    assert made.markdown()


def test_the_small_version_has_one_instance_of_every_problem():
    found = phases(quick=True)
    assert [phase.name for phase in found] == list(LADDERS)
    assert all({job.method for job in phase.jobs} == set(roles(phase.name).values()) for phase in found)
    assert all(len({job.instance.name for job in phase.jobs}) == 1 for phase in found)


def test_the_page_on_scale_is_listed_and_linked():
    docs = Path(__file__).parents[2] / "docs"
    if not docs.is_dir():
        pytest.skip("the pages are not part of a wheel")
    assert "\nscale\n" in (docs / "index.md").read_text(encoding="utf-8")
    assert "(scale.md" in (docs / "harness.md").read_text(encoding="utf-8")
    text = (docs / "scale.md").read_text(encoding="utf-8")
    assert all(f"{{results}} scale/{problem}\n" in text for problem in LADDERS)
