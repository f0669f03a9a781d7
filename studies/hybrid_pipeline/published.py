"""Tables 2, 4 and 6: printed numbers next to those of the library's instances; what Tables 1 and 4 say together."""

from __future__ import annotations

from typing import Any

from mapgap.records.runs import Runs
from mapgap.reporting.tables import Column, Rows, Table, header, tabulated
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


def table_4(runs: Runs) -> Table:
    """Speedups of Asteroid over one device, DP and PP under both readings of an AllReduce, and the optimum."""
    printed, rows = published(), []
    for environment, mbps in ENVIRONMENTS:
        for network, title in NETWORKS.items():
            name = library_name(environment, network, mbps)
            if runs.objective(name, ASTEROID) is None:
                continue
            row: dict[str, Any] = {"network": title, "environment": environment.upper(), "mbps": mbps}
            row["kind"] = pays(runs, name)
            for method, key in CONVENTIONAL.items():
                row[f"{key}_printed"] = printed[f"t4_{network}_{environment}_{mbps}_{key}"]
                other = {"gpipe": f"{name}+memory", "data_parallel": f"{name}+medium"}.get(method, name)
                row[key] = ratio(runs, f"{name}+memory" if method == "gpipe" else name, method, ASTEROID, name)
                row[f"{key}_medium"] = ratio(runs, other, method, ASTEROID, f"{name}+medium")
            row["pp_fits"] = "" if runs.objective(name, "gpipe") else "out of memory"
            row["optimum"] = ratio(runs, name, ASTEROID, EXACT)
            rows.append(row)
    columns = header("network | environment: env. | mbps: Mbit/s")
    for key, title in (("dev", "device"), ("dp", "DP"), ("pp", "PP")):
        columns += [Column(f"{key}_printed", f"over {title}, printed", "g"), Column(key, f"over {title}", ".2f")]
        columns.append(Column(f"{key}_medium", "shared medium", ".2f"))
    columns += header("pp_fits: PP | optimum: Asteroid / optimum; .3f | kind: trains best")
    note = (
        "Ratios of HPP-round latencies. Shared medium: an AllReduce of m boards takes m times Eq. (5), and all "
        "planners know it. PP without regard to memory; out of memory: its plan exceeds it by Eq. (3)."
    )
    return Table("table_4", "Table 4: speedup of Asteroid", columns, rows, note)


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
    minutes = {
        "efficientnet_b1": (printed["t1_efficientnet_b1_nano"], printed["t1_efficientnet_b1_tx2"]),
        "mobilenetv2": (printed["t1_mobilenetv2_nano"], printed["t1_mobilenetv2_tx2"]),
        "resnet50": (60 * printed["t1_resnet50_nano"], 60 * printed["t1_resnet50_tx2"]),
    }
    slower = printed["t8_tx2"] / printed["t8_nx"]  # TX2 against NX, which Table 1 does not have
    for environment, mbps in ENVIRONMENTS:
        for network, position in PARAMETERS_MB.items():
            nano, tx2 = minutes[network]
            fastest, together = (nano, 5.0) if environment == "a" else (tx2 / slower, 3 + 2 / slower)
            batch = printed["gbs_rn50" if network == "resnet50" else "gbs_small"]
            alone = batch * 60 * fastest / 50_000
            dev, dp = (printed[f"t4_{network}_{environment}_{mbps}_{key}"] for key in ("dev", "dp"))
            needed = dp * alone / dev - alone / together
            by_equation = 2 * 4 / 5 * printed["params_mb"][position] / (mbps / 8)
            yield {
                "network": NETWORKS[network],
                "environment": environment.upper(),
                "mbps": mbps,
                "equation": by_equation,
                "needed": needed,
                "factor": needed / by_equation,
            }


def table_2(runs: Runs) -> Table:
    """Communication volumes of HDP (Eq. 1) and HPP (Eq. 2) on five Nano."""
    printed, rows = published(), []
    for network in PARAMETERS_MB:
        name = library_name("a", network)
        if runs.objective(name, ASTEROID) is None:
            continue
        hdp, hpp = runs.note(name, "hetpipe", "hdp_volume_mb"), runs.term(name, ASTEROID, "communication_mb")
        rows.append(
            {
                "network": NETWORKS[network],
                "hdp_printed": printed[f"t2_{network}_hdp"],
                "hdp": hdp,
                "hpp_printed": printed[f"t2_{network}_hpp"],
                "hpp": hpp,
                "optimum": runs.term(name, EXACT, "communication_mb"),
                "ratio": hdp / hpp if hdp and hpp else None,
            }
        )
    columns = [Column("network", "network")]
    for key, title in (("hdp", "HDP"), ("hpp", "HPP")):
        columns += [Column(f"{key}_printed", f"{title} printed", "g"), Column(key, title, ".1f")]
    columns += header("optimum: HPP, optimum; .1f | ratio: HDP / HPP; .2f")
    note = "HDP: HetPipe's placement. HPP: Asteroid's plan. The mini-batch behind the printed volumes is not stated."
    return Table("table_2", "Table 2: communication volume of a mini-batch [MB], environment A", columns, rows, note)


@tabulated(
    "table_6",
    "Table 6: environments",
    "environment: env. | printed | library | memory: memory for training [GB]",
    "Memory: Table 5 less 1.2 GB for the system (assumed).",
)
def table_6() -> Rows:
    """The environments: printed boards next to those of the library's instances."""
    printed = published()
    for environment in "abcd":
        made = instance(library_name(environment, "efficientnet_b1"))
        counts: dict[str, int] = {}
        for device in made.devices:
            kind = made.types[device.type].name
            counts[kind] = counts.get(kind, 0) + 1
        text = ", ".join(f"{number} {kind}" for kind, number in counts.items())
        memory = [f"{kind.name} {kind.memory * made.memory_unit_bytes / 1e9:.1f}" for kind in made.types]
        yield {
            "environment": environment.upper(),
            "printed": printed[f"env_{environment}"],
            "library": text,
            "memory": ", ".join(memory),
        }
