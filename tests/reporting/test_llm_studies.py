"""Tables of the studies of language models, from runs made by hand."""

from pathlib import Path

import pytest

from mapgap.catalogue import registry
from mapgap.catalogue.files import load_instance
from mapgap.core import Certificate
from mapgap.evidence.certified import CertifiedJob
from mapgap.execution.sweep import MethodJob
from mapgap.importing.cluster import load
from mapgap.importing.source import located
from mapgap.instances.facts import load_devices
from mapgap.instances.hybrid_pipeline.importing import HOMES, library
from mapgap.records.record import RunRecord
from mapgap.records.runs import Runs
from mapgap.studies.helix import study as helix
from mapgap.studies.llm_placement import pairs, study


def test_the_library_has_clusters_of_cited_boards():
    files = {path.stem for path in located(Path("clusters/everything.yaml")).parent.glob("*.yaml")}
    assert files == set(pairs.CLUSTERS)
    assert len(pairs.CLUSTERS) >= 20
    assert len(pairs.MODELS) == 6
    known = {board.name for board in library()}
    used = set()
    for name in pairs.CLUSTERS:
        cluster = load(located(Path("clusters", f"{name}.yaml")))
        assert sum(board.count for board in cluster.boards.values()) > 1
        assert {board.board for board in cluster.boards.values()} <= known  # numbers stand in one place
        used |= {board.board for board in cluster.boards.values()}
    homes = load_devices(HOMES)
    assert set(homes.names()) <= used
    for fact in homes.facts:
        assert fact.seen in ("read", "calc")
        assert fact.status in ("published", "measured", "derived")
        assert len(fact.src) > 10
    items = {name: set(homes.of(name)) for name in homes.names()}
    assert all({"peak", "mem_bw", "mem"} <= found for found in items.values())


@pytest.mark.in_turn
@pytest.mark.parametrize(("memory", "status"), [(10**9, "OPTIMAL"), (0, "INFEASIBLE")])
def test_what_a_run_proves_is_certified_at_once(memory, status):
    made = registry.library("hybrid_pipeline").generate("tiny", 3)
    made = made.changed(types=tuple(kind.model_copy(update={"memory": memory}) for kind in made.types))
    record = CertifiedJob(made, "label_dp", 20.0).execute()
    assert (record.status, record.certificate, record.word) == (status, Certificate.CHECKED, "certified")
    assert record.key == MethodJob(made, "label_dp", 20.0).key
    plain = CertifiedJob(made, "on_device", 20.0).execute()  # proves nothing
    assert plain.certificate is None


def run(pair, condition, method, objective, **more):
    name = ":".join((*pair, condition))
    kind = "exact" if method == study.EXACT else "baseline"
    return RunRecord(name, name, "hybrid_pipeline", "min", method, kind, objective=objective, **more)


PAIRS = (("mac_and_gpu", "llama_3_2_3b"), ("three_macs", "llama_3_1_8b"), ("jetsons", "llama_3_1_70b"))


def records():
    proven = {"status": "OPTIMAL", "certificate": Certificate.CHECKED, "wall_s": 0.1}
    yield run(PAIRS[0], "decode", study.EXACT, 100, **proven)
    yield run(PAIRS[0], "decode", "exo", 100)
    yield run(PAIRS[0], "decode", "petals", 104)
    yield run(PAIRS[1], "decode", study.EXACT, 200, **proven | {"wall_s": 0.3})
    yield run(PAIRS[1], "decode", "exo", 250)
    yield run(PAIRS[1], "decode", "petals", None)
    yield run(PAIRS[2], "decode", study.EXACT, None, **proven | {"status": "INFEASIBLE", "wall_s": 0.2})
    yield run(PAIRS[2], "decode", "exo", None)


def test_losses_are_counted_where_there_is_a_plan():
    rows = {row["rule"]: row for row in study.rules(Runs(records())).rows if row["condition"] == "decode"}
    exo = {"instances": 2, "optimal": 1, "near": 1, "median": 12.5, "worst": 25.0, "missing": 0}
    assert rows["exo"] == {"condition": "decode", "rule": "exo", "worst_on": "three_macs llama_3_1_8b"} | exo
    assert (rows["petals"]["missing"], rows["petals"]["near"], rows["petals"]["optimal"]) == (1, 1, 0)
    assert rows["exo_ring"]["missing"] == 2
    assert "median" not in rows["exo_ring"]


def test_proofs_are_counted():
    (row, *_) = study.proofs(Runs(records())).rows
    assert (row["instances"], row["optimal"], row["infeasible"], row["certified"]) == (3, 2, 1, 3)
    assert (row["median_s"], row["longest_s"]) == (0.2, 0.3)


def test_what_the_best_plan_of_one_objective_loses_on_the_other():
    pair = ("spark_and_studio", "llama_3_1_8b")
    layers = len(pairs.instance(*pair, "decode").layers)

    def whole(device):
        stage = {"start": 0, "stop": layers, "devices": [device], "shares": [1]}
        plan = {"micro_batch": 1, "stages": [stage]}
        return plan, [
            study.PROBLEM.evaluate(pairs.instance(*pair, each), study.Plan.model_validate(plan, strict=False)).objective
            for each in ("decode", "prefill")
        ]

    (spark, (slow, short)), (studio, (quick, long)) = whole(0), whole(1)
    assert quick < slow  # the Studio has three times the memory bandwidth,
    assert short < long  # the Spark twice the operations
    rows = study.both(
        Runs(
            [run(pair, "decode", study.EXACT, quick, plan=studio), run(pair, "prefill", study.EXACT, short, plan=spark)]
        )
    ).rows
    (row,) = rows
    assert row["same"] == "no"
    assert row["prompt"] == pytest.approx(100 * (long / short - 1))
    assert row["token"] == pytest.approx(100 * (slow / quick - 1))
    assert study.counted(rows).rows[0]["different"] == 1


def flow(name, method, value, **more):
    scale = load_instance(name).scale
    found = {"objective": None if value is None else round(value * scale)} | more
    return RunRecord(name, name, "layer_flow", "max", method, "published", **found)


def test_helix_beside_bounds_and_gurobis_logs():
    name, twin = "helix_llama30b_l4_single", "helix_llama30b_l4_single_monotone"
    open_one = "helix_llama70b_geo"
    bounds = {"certificate": Certificate.CHECKED}
    known = helix.known_of(
        Runs(
            [
                flow(name, "helix_placement", 214.98),
                flow(name, "swarm", 252.65),
                flow(name, "cover_bound", None, bound=2526500, **bounds),
                flow(twin, "swarm", 168.09),
                flow(twin, "one_pipeline", 214.98),
                flow(twin, "cover_bound", None, bound=2149800),
                flow(open_one, "helix_placement", 1212.18),
                flow(open_one, "stages", 1754.38),
                flow(open_one, "cover_bound", None, bound=20456400, **bounds),
            ]
        )
    )
    first, second, third = helix.gaps(known).rows
    assert (first["nodes"], first["layers"], first["proof"], second["proof"]) == (8, 60, "certified", "solver-proven")
    assert first["published_below"] == pytest.approx(100 * (1 - 214.98 / 252.65))
    assert first["gap"] == second["gap"] == 0
    assert third["gap"] == pytest.approx(100 * (2045.64 / 1754.38 - 1))
    rows = {row["rule"]: row for row in helix.rules(known).rows}
    assert (rows["swarm"]["optimal"], rows["swarm"]["instances"], rows["swarm"]["worst_on"]) == (1, 2, twin)
    assert rows["helix_placement"]["worst_least"] == pytest.approx(100 * (1 - 1212.18 / 1754.38))
    assert [row["folder"] for row in helix.logs(known).rows] == [
        "distributed_clusters/layout_llama70b/ilp",
        "ablation/layouts/raw_24",
    ]
    assert helix.logs(known).rows[0]["gap"] == pytest.approx(3737.7873, abs=1e-4)  # as the log prints it
    printed, repaired = helix.tables(known).rows
    assert (printed["eight"], printed["nine"], printed["ten"]) == pytest.approx((214.98, 168.10, 252.65), abs=0.01)
    assert repaired["ten"] == repaired["nine"] == pytest.approx(168.10, abs=0.01)
    assert printed["lost"] == pytest.approx(14.91, abs=0.01)
    assert repaired["lost"] == 0


def test_gaps_of_the_logs_are_those_that_gurobi_printed():
    found = [100 * (log["bound"] / log["objective"] - 1) for log in helix.LOGS]
    printed = [0.0, 5953.4361, 3737.7873, 3669.8480, 7211.4127, 2122.3541, 2122.3541, 5522.6441]
    assert found == pytest.approx(printed, abs=2e-4)
