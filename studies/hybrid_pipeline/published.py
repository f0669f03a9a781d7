"""Tables 2, 4, 6 and 7 and the ranges of Sec. 5.3 and 5.6: printed numbers next to those of the library's instances."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from mapgap.records.runs import Runs
from mapgap.reporting.tables import Column, Table
from mapgap.reporting.verdicts import verdict
from mapgap.studies.hybrid_pipeline.experiments import (
    ASTEROID,
    EXACT,
    NETWORKS,
    instance,
    library_name,
    published,
    ratio,
)

ENVIRONMENTS = (("a", 100), ("b", 100), ("b", 1000))
CONVENTIONAL = {"on_device": "dev", "data_parallel": "dp", "gpipe": "pp"}
PLANNING = {"efficientnet_b1": "t7_effnet", "mobilenetv2": "t7_mobilenet", "resnet50": "t7_resnet"}
PLANNING |= {"bert_small": "t7_bert"}
PARAMETERS_MB = {"efficientnet_b1": 0, "mobilenetv2": 1, "resnet50": 2}
SYSTEMS = ("eddl", "pipedream", "dapple", "hetpipe")


def table_4(runs: Runs) -> Table:
    """Speedups of Asteroid over one device, DP and PP, and of the optimum over Asteroid."""
    printed, rows = published(), []
    for environment, mbps in ENVIRONMENTS:
        for network, title in NETWORKS.items():
            name = library_name(environment, network, mbps)
            if runs.objective(name, ASTEROID) is None:
                continue
            row: dict[str, Any] = {"network": title, "environment": environment.upper(), "mbps": mbps}
            for method, key in CONVENTIONAL.items():
                value = printed[f"t4_{network}_{environment}_{mbps}_{key}"]
                ours = ratio(runs, name, method, ASTEROID)
                row |= {f"{key}_printed": value, key: ours}
                missing = "out of memory" if runs.get(name, method) else "not run"
                row[f"{key}_verdict"] = verdict(value, ours, kind="gain") if ours else missing
            row["optimum"] = ratio(runs, name, ASTEROID, EXACT)
            rows.append(row)
    columns = [Column("network", "network"), Column("environment", "env."), Column("mbps", "Mbit/s")]
    for key, title in (("dev", "device"), ("dp", "DP"), ("pp", "PP")):
        columns += [Column(f"{key}_printed", f"over {title}, printed", "g"), Column(key, f"over {title}", ".2f")]
        columns.append(Column(f"{key}_verdict", "verdict"))
    columns.append(Column("optimum", "Asteroid / optimum", ".3f"))
    return Table("table_4", "Table 4: speedup of Asteroid", columns, rows, "Ratios of HPP-round latencies.")


def implied(runs: Runs) -> Table:
    """What Table 4 says of a Jetson Nano if Eq. (5) holds, next to Table 1.

    With T the latency of Asteroid on N equal devices, DP takes ``r_dp T = r_dev T / N + T_a``; hence T, and with it the
    time of a sample on one device, ``r_dev T / mini-batch``.
    """
    printed, rows = published(), []
    epochs = {"efficientnet_b1": 26.7 * 60, "mobilenetv2": 22 * 60, "resnet50": 3.48 * 3600}
    for network, position in PARAMETERS_MB.items():
        dev, dp = printed[f"t4_{network}_a_100_dev"], printed[f"t4_{network}_a_100_dp"]
        reduce = 2 * 4 / 5 * printed["params_mb"][position] / 12.5
        latency = reduce / (dp - dev / 5)
        batch = printed["gbs_rn50" if network == "resnet50" else "gbs_small"]
        from_4, from_1 = 1000 * dev * latency / batch, 1000 * epochs[network] / 50_000
        rows.append({"network": NETWORKS[network], "t4": from_4, "t1": from_1, "factor": from_1 / from_4})
    columns = [
        Column("network", "network"),
        Column("t4", "implied by Table 4 [ms]", ".1f"),
        Column("t1", "Table 1 [ms]", ".1f"),
        Column("factor", "ratio", ".1f"),
    ]
    note = (
        "Time of a sample on a Jetson Nano. Environment A: 5 Nano at 12.5 MB/s; AllReduce by Eq. (5); DP scales "
        "linearly (launch times would widen the gap). Mini-ImageNet with 50000 images (assumed). The library follows "
        "Table 1, so computation weighs more in it than in the experiments of Table 4."
    )
    return Table("implied", "Tables 1 and 4 contradict each other under Eq. (5)", columns, rows, note)


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
                "hdp_verdict": verdict(printed[f"t2_{network}_hdp"], hdp),
                "hpp_printed": printed[f"t2_{network}_hpp"],
                "hpp": hpp,
                "hpp_verdict": verdict(printed[f"t2_{network}_hpp"], hpp),
                "optimum": runs.term(name, EXACT, "communication_mb"),
            }
        )
    columns = [Column("network", "network")]
    for key, title in (("hdp", "HDP"), ("hpp", "HPP")):
        columns += [Column(f"{key}_printed", f"{title} printed", "g"), Column(key, title, ".1f")]
        columns.append(Column(f"{key}_verdict", "verdict"))
    columns.append(Column("optimum", "HPP, optimum", ".1f"))
    note = "HDP: HetPipe's placement. HPP: Asteroid's plan. The mini-batch behind the printed volumes is not stated."
    return Table("table_2", "Table 2: communication volume of a mini-batch [MB], environment A", columns, rows, note)


def table_6() -> Table:
    """The environments: printed boards next to those of the library's instances."""
    printed, rows = published(), []
    for environment in "abcd":
        made = instance(library_name(environment, "efficientnet_b1"))
        counts: dict[str, int] = {}
        for device in made.devices:
            kind = made.types[device.type].name
            counts[kind] = counts.get(kind, 0) + 1
        text = ", ".join(f"{number} {kind}" for kind, number in counts.items())
        memory = [f"{kind.name} {kind.memory * made.memory_unit_bytes / 1e9:.1f}" for kind in made.types]
        expected = printed[f"env_{environment}"]
        rows.append(
            {
                "environment": environment.upper(),
                "printed": expected,
                "library": text,
                "memory": ", ".join(memory),
                "verdict": "reproduced" if text == expected else "differs",
            }
        )
    columns = [
        Column("environment", "env."),
        Column("printed", "printed"),
        Column("library", "library"),
        Column("verdict", "verdict"),
        Column("memory", "memory for training [GB]"),
    ]
    note = "Memory: Table 5 less 1.2 GB for the system (assumed)."
    return Table("table_6", "Table 6: environments", columns, rows, note)


def table_7(runs: Runs) -> Table:
    """Planning time on environment C."""
    printed, rows = published(), []
    for network, key in PLANNING.items():
        name = library_name("c", network)
        if runs.objective(name, ASTEROID) is not None:
            rows.append(
                {
                    "network": NETWORKS[network],
                    "layers": len(instance(name).layers),
                    "printed": printed[key],
                    "asteroid": runs.note(name, ASTEROID, "cpu_s"),
                    "exact": runs.note(name, EXACT, "search_s"),
                }
            )
    columns = [
        Column("network", "network"),
        Column("layers", "L"),
        Column("printed", "printed, on an NX [s]", "g"),
        Column("asteroid", "Algorithm 2, compiled [s]", ".3f"),
        Column("exact", "label_dp [s]", ".3f"),
    ]
    note = "Process CPU time of a single run in a fresh process; the machines differ, so there is no verdict."
    return Table("table_7", "Table 7: planning time, environment C", columns, rows, note)


def ranges(runs: Runs) -> Table:
    """Sec. 5.3: how much faster than other systems Asteroid is on environments B and C, all networks; and Sec. 5.6."""
    printed = published()
    compared = [library_name(environment, network) for environment in "bc" for network in NETWORKS]
    rows = [_range_row(system, "5.3", printed[system], _ratios(runs, compared, system)) for system in SYSTEMS]
    nanos = [f"asteroid_nano{count}_efficientnet_b1_100mbps" for count in range(2, 9)]
    rows.append(
        _range_row("data_parallel (2 to 8 Nano)", "5.6", printed["scal_effb1"], _ratios(runs, nanos, "data_parallel"))
    )
    columns = [
        Column("system", "over"),
        Column("where", "section"),
        Column("low_printed", "least, printed", "g"),
        Column("low", "least", ".2f"),
        Column("low_verdict", "verdict"),
        Column("high_printed", "most, printed", "g"),
        Column("high", "most", ".2f"),
        Column("high_verdict", "verdict"),
    ]
    note = (
        "Throughput of Asteroid over that of another system: least and most over the instances on which the other one "
        "has a plan (environments B and C, 100 Mbit/s; EfficientNet-B1 in Sec. 5.6)."
    )
    return Table("ranges", "Secs. 5.3 and 5.6: Asteroid over other systems", columns, rows, note)


def _ratios(runs: Runs, names: Iterable[str], method: str) -> list[float]:
    found = [ratio(runs, name, method, ASTEROID) for name in names]
    return [ratio for ratio in found if ratio is not None]


def _range_row(system: str, where: str, printed: list[float], found: list[float]) -> dict[str, Any]:
    low, high = (min(found), max(found)) if found else (None, None)
    return {
        "system": system,
        "where": where,
        "low_printed": printed[0],
        "low": low,
        "low_verdict": verdict(printed[0], low, kind="gain"),
        "high_printed": printed[1],
        "high": high,
        "high_verdict": verdict(printed[1], high, kind="gain"),
    }
