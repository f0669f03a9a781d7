"""Throughput against the number of devices (Fig. 18), and what planning costs against layers and devices."""

from __future__ import annotations

from typing import Any

from mapgap.records.runs import Runs
from mapgap.reporting import figures
from mapgap.reporting.report import Picture, picture
from mapgap.reporting.tables import Rows, Table, tabulated
from mapgap.studies.hybrid_pipeline.experiments import ASTEROID, EXACT, NETWORKS, instance, library_name, published
from mapgap.studies.hybrid_pipeline.figures import cost_figure

SCALED = tuple(NETWORKS)[:2]
COUNTS = range(1, 9)
"""Jetson Nano of Fig. 18."""
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


@tabulated(
    "fig18",
    "Sec. 5.6: what the paper says of Fig. 18",
    "network | claim | printed | value: here; .2f | margin; +.2f | words: in words",
    "Margin: below 0 where the paper says that four boards are slower than two; above 0 where scaling reaches nine "
    "tenths of linear. Out of memory: the first number of boards, 0 for none.",
)
def scaling_claims(runs: Runs) -> Rows:
    """PP out of memory, PP on four devices against two, linear scaling."""
    printed = published()
    for network in SCALED:
        pipeline, speed = (_speeds(runs, network, method) for method in ("gpipe", ASTEROID))
        if not {1, 8} <= speed.keys():
            continue
        row: dict[str, Any] = {"network": NETWORKS[network], "margin": None}
        first = min(set(COUNTS) - pipeline.keys(), default=0)
        claim = {"claim": "PP out of memory", "printed": f"from {printed['scal_oom']} devices", "value": first}
        yield row | claim | {"words": f"from {first} devices" if first else "never"}
        if {2, 4} <= pipeline.keys():
            kept = pipeline[4] / pipeline[2]
            claim = {"claim": "PP on 4 devices over 2", "printed": printed["scal_pp"], "value": kept}
            yield row | claim | {"words": "slower" if kept < 1 else "faster", "margin": kept - 1}
        if network == "mobilenetv2":
            linear = speed[8] / speed[1] / 8
            claim = {"claim": "Asteroid scales", "printed": printed["scal_linear"], "value": linear}
            yield row | claim | {"margin": linear - 0.9, "words": f"{100 * linear:.0f} % of linear on 8 devices"}


def _speeds(runs: Runs, network: str, method: str) -> dict[int, float]:
    """Samples per second by the number of Nano on which a method has a plan."""
    found = {count: runs.term(nano_name(count, network), method, "samples_per_s") for count in COUNTS}
    return {count: value for count, value in found.items() if value is not None}


def scalability(runs: Runs) -> list[Picture]:
    """Fig. 18: throughput over the number of Nano."""
    pictures = []
    for network in SCALED:
        series = {method: list(found.items()) for method in SHOWN if (found := _speeds(runs, network, method))}
        if series:
            figure = figures.lines(series, xlabel="Jetson Nano", ylabel="samples per second", title=NETWORKS[network])
            figure.axes[0].set_xticks(COUNTS)
            text = "Fig. 18: throughput; a missing point is out of memory; Asteroid's line hides an equal label_dp."
            pictures.append(picture(f"fig18_{network}", figure, text))
    return pictures


def planner_s(runs: Runs, name: str, method: str) -> float | None:
    """Median process CPU time of tables, search and plan; no plan is evaluated in it."""
    value: float | None = runs.note(name, method, "planner_median_s", **REPEAT)
    return value


@tabulated(
    "cost",
    "Cost of planning: the optimum and Algorithm 2",
    "instance | layers: L | devices: N | types: by type | links | exact: label_dp [ms]; .1f "
    "| asteroid: Algorithm 2 [ms]; .1f | ratio: Algorithm 2 / label_dp; .2f "
    "| loss: latency, Asteroid / optimum; .3f",
    "Like for like: median process CPU time of tables, search and plan of 20 runs (or 10 s of them) in a warm "
    "process; no plan is evaluated in it, and both planners are compiled. label_dp ends with a certified optimum. "
    "Scaling instances are generated (family scaling), three types of devices.",
)
def cost(runs: Runs) -> Rows:
    """Process CPU time of ``label_dp`` and of the compiled Algorithm 2 on the same instances."""
    for name in TIMED:
        exact, heuristic = (planner_s(runs, name, method) for method in (EXACT, ASTEROID))
        if exact is None or heuristic is None:
            continue
        made = instance(name)
        counts = [sum(device.type == t for device in made.devices) for t in range(len(made.types))]
        ours, best = (runs.objective(name, method, **REPEAT) for method in (ASTEROID, EXACT))
        row = {"instance": name, "layers": len(made.layers), "devices": len(made.devices)}
        row |= {"types": " + ".join(str(number) for number in counts if number)}
        row |= {"links": "differ" if name == UNEVEN else "equal", "exact": 1000 * exact, "asteroid": 1000 * heuristic}
        yield row | {"ratio": heuristic / exact, "loss": ours / best if ours and best else None}


def cost_pictures(table: Table) -> list[Picture]:
    """Cost of planning against layers, and against devices."""
    pictures = []
    for key, names, rest in (
        ("layers", BY_LAYERS, "6 devices of three types"),
        ("devices", BY_DEVICES, "213 layers, three types"),
    ):
        chosen = [row for row in table.rows if row["instance"] in names]
        if len(chosen) > 1:
            series = {m: [(row[key], row[k]) for row in chosen] for m, k in ((EXACT, "exact"), (ASTEROID, "asteroid"))}
            text = f"Cost of planning against the number of {key} ({rest})."
            pictures.append(picture(f"cost_{key}", cost_figure(series, f"{key} ({rest})"), text))
    return pictures
