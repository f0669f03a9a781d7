"""Throughput against the number of devices (Fig. 18), and what planning costs against layers and devices."""

from __future__ import annotations

from typing import Any

from mapgap.records.runs import Runs
from mapgap.reporting import figures
from mapgap.reporting.report import Picture, picture
from mapgap.reporting.tables import Table, header
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
    """Fig. 18: throughput over the number of Nano; and what Sec. 5.6 says of it, next to what is so here."""
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
    columns = header("network | claim | printed")
    columns += header("value: here; .2f | margin; +.2f | words: in words")
    rows = [row for network in SCALED for row in _scaling_claims(runs, network)]
    note = (
        "Margin: below 0 where the paper says that four boards are slower than two; above 0 where scaling reaches nine "
        "tenths of linear. Out of memory: the first number of boards, 0 for none."
    )
    return Table("fig18", "Sec. 5.6: what the paper says of Fig. 18", columns, rows, note), pictures


def _scaling_claims(runs: Runs, network: str) -> list[dict[str, Any]]:
    """PP out of memory, PP on four devices against two, linear scaling."""
    printed = published()
    pipeline = {count: runs.term(nano_name(count, network), "gpipe", "samples_per_s") for count in range(1, 9)}
    speed = {count: runs.term(nano_name(count, network), ASTEROID, "samples_per_s") for count in (1, 8)}
    if None in speed.values():
        return []
    failed = [count for count, value in pipeline.items() if value is None]
    first = failed[0] if failed else 0
    rows: list[dict[str, Any]] = [
        {
            "claim": "PP out of memory",
            "printed": f"from {printed['scal_oom']} devices",
            "value": first,
            "words": f"from {first} devices" if first else "never",
        }
    ]
    if pipeline[2] and pipeline[4]:
        kept = pipeline[4] / pipeline[2]
        words = "slower" if kept < 1 else "faster"
        rows.append({"claim": "PP on 4 devices over 2", "printed": printed["scal_pp"], "value": kept, "words": words})
        rows[-1]["margin"] = kept - 1
    linear = speed[8] / speed[1] / 8
    if network == "mobilenetv2":
        rows.append({"claim": "Asteroid scales", "printed": printed["scal_linear"], "value": linear})
        rows[-1] |= {"margin": linear - 0.9, "words": f"{100 * linear:.0f} % of linear on 8 devices"}
    return [{"network": NETWORKS[network], "margin": None, **row} for row in rows]


def planner_s(runs: Runs, name: str, method: str) -> float | None:
    """Median process CPU time of tables, search and plan; no plan is evaluated in it."""
    value: float | None = runs.note(name, method, "planner_median_s", **REPEAT)
    return value


def cost(runs: Runs) -> tuple[Table, list[Picture]]:
    """Process CPU time of ``label_dp`` and of the compiled Algorithm 2 on the same instances."""
    rows: list[dict[str, Any]] = []
    for name in TIMED:
        exact, heuristic = (planner_s(runs, name, method) for method in (EXACT, ASTEROID))
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
    columns = header(
        "instance | layers: L | devices: N | types: by type | links | exact: label_dp [ms]; .1f "
        "| asteroid: Algorithm 2 [ms]; .1f | ratio: Algorithm 2 / label_dp; .2f "
        "| loss: latency, Asteroid / optimum; .3f"
    )
    note = (
        "Like for like: median process CPU time of tables, search and plan of 20 runs (or 10 s of them) in a warm "
        "process; no plan is evaluated in it, and both planners are compiled. label_dp ends with a certified optimum. "
        "Scaling instances are generated (family scaling), three types of devices."
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
