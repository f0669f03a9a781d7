"""Figs. 8 to 12 of MTrain regenerated, each with its table."""

from __future__ import annotations

from typing import Any

from mapgap.records.runs import Runs
from mapgap.reporting import figures
from mapgap.reporting.report import Picture, picture
from mapgap.reporting.tables import Column, Table, header
from mapgap.studies.dfs_vs_converting.experiments import (
    BANDWIDTHS,
    CONVERTING,
    FPGAS,
    SCALE_BANDWIDTHS,
    STEPS,
    TITLES,
    gflops,
    gflops_of,
    kinder,
    library_name,
    scale_name,
    seconds,
    synchronous,
)


def ablation(runs: Runs) -> tuple[Table, list[Picture]]:
    """Fig. 8: throughput after each step, per cluster, network and bandwidth."""
    rows: list[dict[str, Any]] = []
    pictures = []
    for cluster in (1, 2, 3):
        for network in TITLES:
            for label, bandwidth in BANDWIDTHS.items():
                name = library_name(cluster, network, label)
                values = [gflops(runs, name, step) for step in STEPS]
                if values[0] is None or values[-1] is None:
                    continue
                row: dict[str, Any] = {"network": TITLES[network], "cluster": cluster, "bandwidth": bandwidth}
                row |= {f"step{i}": value for i, value in enumerate(values, 1)}
                rows.append(row | {"gain": 100 * (values[-1] / values[0] - 1)})
            series = {
                f"{b:g} GB/s": [(i, row[f"step{i}"]) for i in range(1, 5) if row[f"step{i}"] is not None]
                for b in (0.125, 3.0, 15.0)
                for row in rows
                if (row["cluster"], row["network"], row["bandwidth"]) == (cluster, TITLES[network], b)
            }
            if series:
                title = f"{TITLES[network]}, cluster {cluster}"
                figure = figures.lines(series, xlabel="step", ylabel="GFLOPS", title=title)
                text = "After DRAM-aware mapping, balancing, locality, re-partition."
                pictures.append(picture(f"fig8_cluster{cluster}_{network}", figure, text))
    columns = header("network | cluster: cl. | bandwidth: GB/s; g")
    columns += [Column(f"step{i}", f"step {i}", ".1f") for i in range(1, 5)]
    title = "Throughput after each step, delta latency as the literal sum [GFLOPS]"
    return Table("fig8", title, [*columns, Column("gain", "gain [%]", ".1f")], rows), pictures


def comparison(runs: Runs) -> tuple[Table, list[Picture]]:
    """Figs. 9-11: throughput of MTrain and its rivals over the bandwidth."""
    shown = {
        "mtrain_converting": "MTrain",
        "mtrain_converting_fallback": "MTrain with fallback",
        "hap_sharding": "HAP-style",
        "alpa_sharding": "Alpa-style",
        "single_accelerator": "single accelerator",
        "heft": "HEFT",
    }
    rows, pictures = [], []
    for cluster in (1, 2, 3):
        for network in TITLES:
            series: dict[str, list[tuple[float, float]]] = {title: [] for title in shown.values()}
            limit: list[tuple[float, float]] = []
            for label, bandwidth in BANDWIDTHS.items():
                name = library_name(cluster, network, label)
                fact = runs.fact(name)
                mtrain = kinder(runs, name, CONVERTING)
                if gflops(runs, name, mtrain) is None or gflops(runs, name, "hap_sharding") is None or fact is None:
                    continue
                row: dict[str, Any] = {"network": TITLES[network], "cluster": cluster, "bandwidth": bandwidth}
                for method, title in shown.items():
                    row[method] = gflops(runs, name, mtrain if method == CONVERTING else method)
                    if row[method] is not None:
                        series[title].append((bandwidth, row[method]))
                    if method in ("hap_sharding", "alpa_sharding") and runs.get(name, method) is not None:
                        row[f"{method}_sync"] = synchronous(runs, name, method)
                row["limit"] = gflops_of(name, fact.bound)
                if row["limit"] is not None:
                    limit.append((bandwidth, row["limit"]))
                row["over_hap"] = row[CONVERTING] / row["hap_sharding_sync"] if row.get("hap_sharding_sync") else None
                rows.append(row)
            if any(series.values()):
                series["proven limit"] = limit
                figure = figures.lines(
                    series, xlabel="GB/s", ylabel="GFLOPS", title=f"{TITLES[network]}, cluster {cluster}", logx=True
                )
                pictures.append(
                    picture(f"fig{8 + cluster}_{network}", figure, "Throughput over peer-to-peer bandwidth.")
                )
    columns = header("network | cluster: cl. | bandwidth: GB/s; g")
    columns += [Column(method, title, ".1f") for method, title in shown.items()]
    columns += header(
        "hap_sharding_sync: HAP-style, synchronous; .1f | alpa_sharding_sync: Alpa-style, synchronous; .1f "
        "| limit: proven limit; .1f | over_hap: MTrain over HAP, synchronous; .2f"
    )
    note = (
        "MTrain in the reading of the delta latency that is faster on the instance. "
        "Synchronous: every layer on all devices, gather and scatter after each, as Sec. III-B describes the rivals. "
        "The other two columns let them leave devices idle and execute asynchronously, which flatters them."
    )
    return Table("fig9_to_11", "Throughput [GFLOPS]", columns, rows, note), pictures


def scaling(runs: Runs) -> tuple[Table, list[Picture]]:
    """Fig. 12: throughput and search time from 2 to 8 FPGAs."""
    rows: list[dict[str, Any]] = []
    for label in SCALE_BANDWIDTHS:
        for count in FPGAS:
            name = scale_name(count, label)
            fact = runs.fact(name)
            if fact is None:
                continue
            mtrain = kinder(runs, name, CONVERTING)
            rows.append(
                {
                    "bandwidth": BANDWIDTHS[label],
                    "fpgas": count,
                    "mtrain": gflops(runs, name, mtrain),
                    "single": gflops(runs, name, "single_accelerator"),
                    "limit": gflops_of(name, fact.bound),
                    "seconds": seconds(runs, name, mtrain),
                }
            )
    columns = header(
        "bandwidth: GB/s; g | fpgas: FPGAs | mtrain: MTrain [GFLOPS]; .1f | single: single [GFLOPS]; .1f "
        "| limit: proven limit [GFLOPS]; .1f | seconds: search [s]; .2f"
    )
    if not rows:
        return Table("fig12", "Scaling", columns, rows), []
    throughput = {
        f"{b:g} GB/s": [(r["fpgas"], r["mtrain"]) for r in rows if r["bandwidth"] == b and r["mtrain"] is not None]
        for b in (0.5, 3.0, 15.0)
    }
    times = {"3 GB/s": [(r["fpgas"], r["seconds"]) for r in rows if r["bandwidth"] == 3.0 and r["seconds"] is not None]}
    pictures = [
        picture(
            "fig12_throughput", figures.lines(throughput, xlabel="FPGAs", ylabel="GFLOPS"), "Throughput of MTrain."
        ),
        picture(
            "fig12_time", figures.lines(times, xlabel="FPGAs", ylabel="seconds"), "Search time of MTrain-Converting."
        ),
    ]
    return Table("fig12", "Scaling with pairs of U50 and U30, ResNet-18", columns, rows), pictures
