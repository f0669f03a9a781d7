"""Tables 2, 4 and 6: printed numbers next to those of the library's instances; what Tables 1 and 4 say together."""

from __future__ import annotations

from collections import Counter
from typing import Any

from mapgap.records.runs import Runs
from mapgap.reporting.tables import Rows, tabulated
from mapgap.studies.hybrid_pipeline.experiments import (
    ASTEROID,
    EXACT,
    NETWORKS,
    instance,
    library_name,
    published,
    ratio,
)
from mapgap.studies.hybrid_pipeline.gaps import pays

ENVIRONMENTS = (("a", 100), ("b", 100), ("b", 1000))
CONVENTIONAL = {"on_device": "dev", "data_parallel": "dp", "gpipe": "pp"}
PARAMETERS_MB = {"efficientnet_b1": 0, "mobilenetv2": 1, "resnet50": 2}


@tabulated(
    "table_4",
    "Table 4: speedup of Asteroid",
    "network | environment: env. | mbps: Mbit/s | "
    + " | ".join(
        f"{key}_printed: over {title}, printed; g | {key}: over {title}; .2f | {key}_medium: shared medium; .2f"
        for key, title in (("dev", "device"), ("dp", "DP"), ("pp", "PP"))
    )
    + "| pp_fits: PP | optimum: Asteroid / optimum; .3f | kind: trains best",
    "Ratios of HPP-round latencies. Shared medium: an AllReduce of m boards takes m times Eq. (5), and all "
    "planners know it. PP without regard to memory; out of memory: its plan exceeds it by Eq. (3).",
)
def table_4(runs: Runs) -> Rows:
    """Speedups of Asteroid over one device, DP and PP under both readings of an AllReduce, and the optimum."""
    printed = published()
    for environment, mbps, network in ((e, b, n) for e, b in ENVIRONMENTS for n in NETWORKS):
        name = library_name(environment, network, mbps)
        if runs.objective(name, ASTEROID) is None:
            continue
        row: dict[str, Any] = {"network": NETWORKS[network], "environment": environment.upper(), "mbps": mbps}
        row["kind"] = pays(runs, name)
        for method, key in CONVENTIONAL.items():
            row[f"{key}_printed"] = printed[f"t4_{network}_{environment}_{mbps}_{key}"]
            other = {"gpipe": f"{name}+memory", "data_parallel": f"{name}+medium"}.get(method, name)
            row[key] = ratio(runs, f"{name}+memory" if method == "gpipe" else name, method, ASTEROID, name)
            row[f"{key}_medium"] = ratio(runs, other, method, ASTEROID, f"{name}+medium")
        row["pp_fits"] = "" if runs.objective(name, "gpipe") else "out of memory"
        yield row | {"optimum": ratio(runs, name, ASTEROID, EXACT)}


@tabulated(
    "implied",
    "What Tables 1 and 4 say of an AllReduce",
    "network | environment: env. | mbps: Mbit/s | equation: AllReduce by Eq. (5) [s]; .2f "
    "| needed: by Tables 1 and 4 [s]; .2f | factor: ratio; .1f",
    "Computed from printed numbers alone. Five boards; NX is TX2 by the profiling times of Table 8; Mini-ImageNet "
    "with 50000 images (assumed); DP scales linearly. If the boards share one medium, on which bytes follow one "
    "another, the ratio is 5. So the tables need not contradict each other: a network slower than Eq. (5) has it "
    "explains most of both.",
)
def implied(runs: Runs) -> Rows:
    """How long an AllReduce must take for Tables 1 and 4 to agree.

    With t a sample's time on the fastest device and v the speed of all devices over that of the fastest, Asteroid takes
    ``T = mini-batch t / r_dev``, and DP ``r_dp T = mini-batch t / v + T_a``.
    """
    printed = published()
    slower = printed["t8_tx2"] / printed["t8_nx"]  # TX2 against NX, which Table 1 does not have
    for environment, mbps in ENVIRONMENTS:
        for network, position in PARAMETERS_MB.items():
            unit = 60 if network == "resnet50" else 1  # printed in hours there
            nano, tx2 = (unit * printed[f"t1_{network}_{board}"] for board in ("nano", "tx2"))
            fastest, together = (nano, 5.0) if environment == "a" else (tx2 / slower, 3 + 2 / slower)
            batch = printed["gbs_rn50" if network == "resnet50" else "gbs_small"]
            alone = batch * 60 * fastest / 50_000
            dev, dp = (printed[f"t4_{network}_{environment}_{mbps}_{key}"] for key in ("dev", "dp"))
            needed = dp * alone / dev - alone / together
            by_equation = 2 * 4 / 5 * printed["params_mb"][position] / (mbps / 8)
            row = {"network": NETWORKS[network], "environment": environment.upper(), "mbps": mbps}
            yield row | {"equation": by_equation, "needed": needed, "factor": needed / by_equation}


@tabulated(
    "table_2",
    "Table 2: communication volume of a mini-batch [MB], environment A",
    "network | hdp_printed: HDP printed; g | hdp: HDP; .1f | hpp_printed: HPP printed; g | hpp: HPP; .1f "
    "| optimum: HPP, optimum; .1f | ratio: HDP / HPP; .2f",
    "HDP: HetPipe's placement. HPP: Asteroid's plan. The mini-batch behind the printed volumes is not stated.",
)
def table_2(runs: Runs) -> Rows:
    """Communication volumes of HDP (Eq. 1) and HPP (Eq. 2) on five Nano."""
    for network in PARAMETERS_MB:
        name = library_name("a", network)
        if runs.objective(name, ASTEROID) is None:
            continue
        hdp, hpp = runs.note(name, "hetpipe", "hdp_volume_mb"), runs.term(name, ASTEROID, "communication_mb")
        row = {"network": NETWORKS[network], "hdp": hdp, "hpp": hpp, "ratio": hdp / hpp if hdp and hpp else None}
        row |= {f"{key}_printed": published()[f"t2_{network}_{key}"] for key in ("hdp", "hpp")}
        yield row | {"optimum": runs.term(name, EXACT, "communication_mb")}


@tabulated(
    "table_6",
    "Table 6: environments",
    "environment: env. | printed | library | memory: memory for training [GB]",
    "Memory: Table 5 less 1.2 GB for the system (assumed).",
)
def table_6() -> Rows:
    """The environments: printed boards next to those of the library's instances."""
    for environment in "abcd":
        made = instance(library_name(environment, "efficientnet_b1"))
        counts = Counter(made.types[device.type].name for device in made.devices)
        memory = [f"{kind.name} {kind.memory * made.memory_unit_bytes / 1e9:.1f}" for kind in made.types]
        row = {"environment": environment.upper(), "printed": published()[f"env_{environment}"]}
        yield row | {
            "library": ", ".join(f"{number} {kind}" for kind, number in counts.items()),
            "memory": ", ".join(memory),
        }
