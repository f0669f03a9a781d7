"""Throughput against the number of devices (Fig. 18), and what planning costs against layers and devices."""

from __future__ import annotations

from typing import Any

from mapgap.records.runs import Runs
from mapgap.reporting import figures
from mapgap.reporting.report import Picture, picture
from mapgap.reporting.tables import Column, Table
from mapgap.studies.hybrid_pipeline.experiments import ASTEROID, EXACT, NETWORKS, instance, library_name, published
from mapgap.studies.hybrid_pipeline.figures import cost_figure

SCALED = tuple(NETWORKS)[:2]
SHOWN = (EXACT, ASTEROID, "data_parallel", "gpipe")
REPEAT = {"repeat": 20}
BY_LAYERS = tuple(f"scaling_{seed}" for seed in (0, 1, 2, 3, 4))
"""53 to 1065 layers on 1 + 2 + 3 devices of three types."""
BY_DEVICES = tuple(f"scaling_{seed}" for seed in (5, 2, 6, 7, 8))
"""4, 6, 8, 12 and 16 devices of three types, 213 layers."""
UNEVEN = "scaling_9"
"""Six devices, no two alike because all links differ."""
TIMED = (
    *(library_name("c", network) for network in NETWORKS),
    *BY_LAYERS,
    *(name for name in BY_DEVICES if name not in BY_LAYERS),
    UNEVEN,
)


def nano_name(count: int, network: str) -> str:
    """Library name of some Jetson Nano of Fig. 18."""
    return f"asteroid_nano{count}_{network}_100mbps"


def scalability(runs: Runs) -> tuple[Table, list[Picture]]:
    """Fig. 18: throughput over the number of Nano; what Sec. 5.6 says of it, and whether that holds here."""
    pictures = []
    for network in SCALED:
        series: dict[str, list[tuple[float, float]]] = {}
        for method in SHOWN:
            for count in range(1, 9):
                value = runs.term(nano_name(count, network), method, "samples_per_s")
                if value is not None:
                    series.setdefault(method, []).append((count, value))
        if series:
            figure = figures.lines(series, xlabel="Jetson Nano", ylabel="samples per second", title=NETWORKS[network])
            figure.axes[0].set_xticks(range(1, 9))
            text = "Fig. 18: throughput; a missing point is out of memory; Asteroid's line hides an equal label_dp."
            pictures.append(picture(f"fig18_{network}", figure, text))
    columns = [Column("network", "network"), Column("claim", "claim"), Column("printed", "printed")]
    columns += [Column("here", "here"), Column("verdict", "verdict")]
    rows = [row for network in SCALED for row in _scaling_claims(runs, network)]
    return Table("fig18", "Sec. 5.6: what the paper says of Fig. 18", columns, rows), pictures


def _scaling_claims(runs: Runs, network: str) -> list[dict[str, Any]]:
    """PP out of memory, PP slower on four devices than on two, linear scaling."""
    printed = published()
    pipeline = {count: runs.term(nano_name(count, network), "gpipe", "samples_per_s") for count in range(1, 9)}
    speed = {count: runs.term(nano_name(count, network), ASTEROID, "samples_per_s") for count in (1, 8)}
    if None in speed.values():
        return []
    failed = [count for count, value in pipeline.items() if value is None]
    first = f"from {failed[0]} devices" if failed else "never"
    kept = all(pipeline[count] for count in (2, 4)) and pipeline[4] / pipeline[2]
    linear = speed[8] / speed[1] / 8
    claims = [
        ("PP out of memory", f"from {printed['scal_oom']} devices", first, failed[:1] == [printed["scal_oom"]]),
        ("PP on 4 devices over 2", printed["scal_pp"], f"{kept:.2f}" if kept else "out of memory", 0 < kept < 1),
    ]
    if network == "mobilenetv2":
        near = f"{100 * linear:.0f} % of linear on 8 devices"
        claims.append(("Asteroid scales", printed["scal_linear"], near, linear >= 0.9))
    return [
        {
            "network": NETWORKS[network],
            "claim": claim,
            "printed": text,
            "here": here,
            "verdict": "reproduced" if holds else "differs",
        }
        for claim, text, here, holds in claims
    ]


def _median_s(runs: Runs, name: str, method: str) -> float | None:
    value: float | None = runs.note(name, method, "median_s", **REPEAT)
    return value


def planners(runs: Runs) -> Table:
    """Like for like: tables, search and plan of both planners, without the evaluation that a heuristic's run contains.

    Without rows where the runs do not have the note ``planner_median_s``.
    """
    rows: list[dict[str, Any]] = []
    for name in TIMED:
        exact, heuristic = (runs.note(name, method, "planner_median_s", **REPEAT) for method in (EXACT, ASTEROID))
        if exact and heuristic:
            ratio = heuristic / exact
            rows.append({"instance": name, "exact": 1000 * exact, "asteroid": 1000 * heuristic, "ratio": ratio})
    columns = [
        Column("instance", "instance"),
        Column("exact", "label_dp [ms]", ".1f"),
        Column("asteroid", "Algorithm 2 [ms]", ".1f"),
        Column("ratio", "Algorithm 2 / label_dp", ".2f"),
    ]
    note = "Median process CPU time of tables, search and plan; no plan is evaluated in it."
    return Table("planners", "Planners alone: the optimum and Algorithm 2", columns, rows, note)


def cost(runs: Runs) -> tuple[Table, list[Picture]]:
    """Process CPU time of ``label_dp`` and of the compiled Algorithm 2 on the same instances."""
    rows: list[dict[str, Any]] = []
    for name in TIMED:
        exact, heuristic = (_median_s(runs, name, method) for method in (EXACT, ASTEROID))
        if exact is None or heuristic is None:
            continue
        made = instance(name)
        counts = [sum(device.type == t for device in made.devices) for t in range(len(made.types))]
        values = runs.objective(name, ASTEROID, **REPEAT), runs.objective(name, EXACT, **REPEAT)
        rows.append(
            {
                "instance": name,
                "layers": len(made.layers),
                "devices": len(made.devices),
                "types": " + ".join(str(number) for number in counts if number),
                "links": "differ" if name == UNEVEN else "equal",
                "exact": 1000 * exact,
                "asteroid": 1000 * heuristic,
                "ratio": heuristic / exact,
                "loss": values[0] / values[1] if values[0] and values[1] else None,
            }
        )
    columns = [
        Column("instance", "instance"),
        Column("layers", "L"),
        Column("devices", "N"),
        Column("types", "by type"),
        Column("links", "links"),
        Column("exact", "label_dp [ms]", ".1f"),
        Column("asteroid", "Algorithm 2 [ms]", ".1f"),
        Column("ratio", "Algorithm 2 / label_dp", ".2f"),
        Column("loss", "latency, Asteroid / optimum", ".3f"),
    ]
    note = (
        "Median process CPU time of 20 runs (or 10 s of them) in a warm process, tables included; both planners are "
        "compiled. label_dp ends with a certified optimum. Scaling instances are generated (family scaling), three "
        "types of devices."
    )
    pictures = []
    for key, names, x in (("layers", BY_LAYERS, "layers"), ("devices", BY_DEVICES, "devices")):
        chosen = [row for row in rows if row["instance"] in names]
        if len(chosen) > 1:
            series = {m: [(row[x], row[k]) for row in chosen] for m, k in ((EXACT, "exact"), (ASTEROID, "asteroid"))}
            rest = "6 devices of three types" if key == "layers" else "213 layers, three types"
            text = f"Cost of planning against the number of {key} ({rest})."
            pictures.append(picture(f"cost_{key}", cost_figure(series, f"{key} ({rest})"), text))
    return Table("cost", "Cost of planning: the optimum and Algorithm 2", columns, rows, note), pictures
