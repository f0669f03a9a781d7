"""DFS versus converting, with the optimum beside them (MTrain, Table III and Figs. 8-12).

The paper calls DFS over all ratios "optimal", but maps every ratio with its own heuristic. Here DFS, MTrain-Converting
and the exact method run on the same instances; every gap is measured against a proven bound.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from statistics import median
from typing import Any

from mapgap import figures
from mapgap.analysis import Record, facts, relative, verdict
from mapgap.bench import Job
from mapgap.report import Page, Section, instance_table, method_table, picture, run_table
from mapgap.study import Phase, Study
from mapgap.tables import Column, Table

PROBLEM = "suboperation_mapping"
TITLES = {
    "alexnet": "AlexNet",
    "vgg16": "VGG-16",
    "resnet18": "ResNet-18",
    "tinyyolov3": "TinyYOLOv3",
    "resnet56": "ResNet-56",
}
TABLE_3 = ("alexnet", "vgg16", "resnet18", "tinyyolov3")
BANDWIDTHS = {"0p125": 0.125, "0p5": 0.5, "1": 1.0, "3": 3.0, "7p5": 7.5, "15": 15.0}
EXACT, DFS, CONVERTING = "stage_mip", "mtrain_dfs", "mtrain_converting"
STEPS = ("mtrain_mapping_step1", "mtrain_mapping_step2", "mtrain_mapping_step3", CONVERTING)
RIVALS = ("single_accelerator", "alpa_sharding", "hap_sharding", "heft", "mtrain_converting_fallback")


def library_name(cluster: int, network: str, bandwidth: str) -> str:
    """Library name of an instance of Sec. VI-A."""
    return f"mtrain_c{cluster}_{network}_{bandwidth}gbs"


@cache
def _instance(name: str) -> Any:
    from mapgap.loading import load_instance

    return load_instance(name)


def _jobs(names: Iterable[str], methods: Iterable[str], time_s: float, workers: int = 1) -> list[Job]:
    chosen = tuple(methods)
    return [Job(_instance(name), method, time_s, workers=workers) for name in names for method in chosen]


def phases(quick: bool) -> list[Phase]:
    """The runs; the quick version is Table III's eight cases with a short exact search and one ablation."""
    table_3 = [library_name(c, network, "3") for network in TABLE_3 for c in (1, 2)]
    if quick:
        ablation = [library_name(1, "resnet18", bandwidth) for bandwidth in ("0p125", "3", "15")]
        return [
            Phase("DFS and converting", _jobs(table_3, (DFS, CONVERTING), 60.0), parallel=2),
            Phase("Steps of MTrain", _jobs(ablation, (*STEPS, "single_accelerator"), 60.0), parallel=2),
            Phase("Exact, 25 s each", _jobs(table_3, (EXACT,), 25.0), parallel=2),
        ]
    # The LP bound of every ratio is too slow for cluster 3 (374 ratios) and impossible for more accelerators.
    few = [library_name(c, network, b) for c in (1, 2) for network in TITLES for b in BANDWIDTHS]
    every = [library_name(c, network, b) for c in (1, 2, 3) for network in TITLES for b in BANDWIDTHS]
    third = [library_name(3, network, "3") for network in TABLE_3]
    scale = [f"mtrain_scale_{n}fpga_resnet18_{b}gbs" for n in (2, 4, 6, 8) for b in ("0p5", "3", "15")]
    return [
        Phase("DFS and converting", _jobs([*table_3, *third], (DFS, CONVERTING), 300.0), parallel=1),
        Phase("Steps and rivals", _jobs(every, (*STEPS, *RIVALS, "fluid_bound"), 300.0), parallel=2),
        Phase("Bounds", _jobs(few, ("area_bound",), 300.0), parallel=2),
        Phase("Scaling", _jobs(scale, (CONVERTING, "single_accelerator", "fluid_bound"), 600.0), parallel=2),
        Phase("Exact", _jobs([*table_3, *third], (EXACT,), 300.0, workers=2), parallel=1),
    ]


class Runs:
    """Records by instance name and method, and the throughput of a makespan."""

    def __init__(self, records: list[Record]) -> None:
        self.records = records
        self.by = {(r["instance"], r["method"]): r for r in records if not r.get("error")}
        self.facts = {fact.name: fact for fact in facts(records).values()}

    def gflops(self, instance: str, method: str) -> float | None:
        record = self.by.get((instance, method))
        return record["terms"].get("throughput_gflops") if record and record.get("objective") is not None else None

    def gflops_of(self, instance: str, ticks: int | None) -> float | None:
        """Throughput of a makespan (or of a bound on it) of this instance."""
        data = _instance(instance)
        return None if not ticks else float(data.flops / (ticks * data.seconds_per_tick) / 1e9)

    def synchronous(self, instance: str, method: str) -> float | None:
        """Throughput of a sharding rival as Sec. III-B executes it: on all devices, gather and scatter everywhere."""
        record = self.by.get((instance, method))
        return self.gflops_of(instance, record["notes"].get("synchronous_ticks_on_all_devices")) if record else None

    def gap(self, instance: str, method: str) -> float | None:
        """Percent above the best proven bound."""
        record, fact = self.by.get((instance, method)), self.facts.get(instance)
        gap = relative(record["objective"], fact.bound) if record and fact else None
        return None if gap is None else 100 * gap

    def seconds(self, instance: str, method: str) -> float | None:
        record = self.by.get((instance, method))
        return record["wall_s"] if record else None


def published() -> dict[str, Any]:
    """Printed numbers by identifier."""
    from instances.published import load_published

    return load_published("mtrain")


def table_3(runs: Runs) -> Table:
    """Table III regenerated: DFS, converting and the optimum on one instance per row."""
    printed = published()
    rows = []
    for network in TABLE_3:
        for cluster in (1, 2, 3):
            name = library_name(cluster, network, "3")
            fact = runs.facts.get(name)
            if fact is None:
                continue
            key = f"t3_{network}_c{cluster}"
            dfs, converting = runs.gflops(name, DFS), runs.gflops(name, CONVERTING)
            ratio = converting / dfs if dfs and converting else None
            rows.append(
                {
                    "network": TITLES[network],
                    "cluster": cluster,
                    "dfs": dfs,
                    "converting": converting,
                    "best": runs.gflops_of(name, fact.best),
                    "limit": runs.gflops_of(name, fact.bound),
                    "dfs_gap": runs.gap(name, DFS),
                    "converting_gap": runs.gap(name, CONVERTING),
                    "best_gap": None if fact.gap is None else 100 * fact.gap,
                    "dfs_s": runs.seconds(name, DFS),
                    "converting_s": runs.seconds(name, CONVERTING),
                    "exact_s": runs.seconds(name, EXACT),
                    "printed_dfs": printed.get(f"{key}_dfs"),
                    "printed_converting": printed.get(f"{key}_mt"),
                    "printed_dfs_s": printed.get(f"{key}_dfs_t"),
                    "printed_converting_s": printed.get(f"{key}_mt_t"),
                    "verdict": verdict(printed.get(f"{key}_mt"), converting)
                    if f"{key}_mt" in printed
                    else "not printed",
                    "ratio": ratio,
                    "printed_ratio": printed.get(f"{key}_qr"),
                    "ratio_verdict": verdict(printed.get(f"{key}_qr"), ratio, same=0.03, close=0.1),
                }
            )
    columns = [
        Column("network", "network"),
        Column("cluster", "cl."),
        Column("dfs", "DFS", ".1f"),
        Column("converting", "converting", ".1f"),
        Column("best", "best plan", ".1f"),
        Column("limit", "proven limit", ".1f"),
        Column("dfs_gap", "DFS gap [%]", ".2f"),
        Column("converting_gap", "conv. gap [%]", ".2f"),
        Column("best_gap", "best gap [%]", ".2f"),
        Column("dfs_s", "DFS [s]", ".2f"),
        Column("converting_s", "conv. [s]", ".2f"),
        Column("exact_s", "exact [s]", ".0f"),
    ]
    return Table(
        "table_3",
        "Table III regenerated: throughput in GFLOPS at 3 GB/s, gap to the proven bound, search time",
        columns,
        rows,
        "Proven limit: no mapping can be faster. Gaps are of the makespan, against that limit.",
    )


def table_3_published(table: Table) -> Table:
    """The same rows next to what the paper prints."""
    columns = [
        Column("network", "network"),
        Column("cluster", "cl."),
        Column("printed_dfs", "DFS printed", "g"),
        Column("dfs", "DFS", ".1f"),
        Column("printed_converting", "conv. printed", "g"),
        Column("converting", "converting", ".1f"),
        Column("verdict", "verdict"),
        Column("printed_ratio", "conv./DFS printed", ".2f"),
        Column("ratio", "conv./DFS", ".3f"),
        Column("ratio_verdict", "verdict on the ratio"),
        Column("printed_dfs_s", "DFS printed [s]", "g"),
        Column("printed_converting_s", "conv. printed [s]", "g"),
    ]
    rows = [row for row in table.rows if row["printed_dfs"] is not None]
    note = (
        "Throughput verdict on converting: reproduced within 10 %, close within 30 %; on the ratio 3 % and 10 %. The "
        "accelerator models are calibrated on single-device figures only, never on these numbers."
    )
    return Table("table_3_published", "Published next to reproduced", columns, rows, note)


def ablation(runs: Runs) -> tuple[Table, list[Any]]:
    """Fig. 8: throughput after each step, per cluster, network and bandwidth."""
    rows: list[dict[str, Any]] = []
    pictures = []
    for cluster in (1, 2, 3):
        for network in TITLES:
            for label, bandwidth in BANDWIDTHS.items():
                name = library_name(cluster, network, label)
                values = [runs.gflops(name, step) for step in STEPS]
                if values[0] is None or values[-1] is None:
                    continue
                row: dict[str, Any] = {"network": TITLES[network], "cluster": cluster, "bandwidth": bandwidth}
                row |= {f"step{i}": value for i, value in enumerate(values, 1)}
                rows.append(row | {"gain": 100 * (values[-1] / values[0] - 1)})
        series: dict[str, list[tuple[float, float]]] = {
            f"{TITLES[n]}, {b:g} GB/s": [(i, row[f"step{i}"]) for i in range(1, 5) if row[f"step{i}"] is not None]
            for n in TITLES
            for b in (0.125, 3.0, 15.0)
            for row in rows
            if (row["cluster"], row["network"], row["bandwidth"]) == (cluster, TITLES[n], b)
        }
        if series:
            figure = figures.lines(series, xlabel="step", ylabel="GFLOPS", title=f"Cluster {cluster}")
            figure.axes[0].set_xticks([1, 2, 3, 4])
            pictures.append(
                picture(
                    f"fig8_cluster{cluster}", figure, "After DRAM-aware mapping, balancing, locality, re-partition."
                )
            )
    columns = [Column("network", "network"), Column("cluster", "cl."), Column("bandwidth", "GB/s", "g")]
    columns += [Column(f"step{i}", f"step {i}", ".1f") for i in range(1, 5)]
    return Table(
        "fig8", "Throughput after each step [GFLOPS]", [*columns, Column("gain", "gain [%]", ".1f")], rows
    ), pictures


def comparison(runs: Runs) -> tuple[Table, list[Any]]:
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
                fact = runs.facts.get(name)
                if runs.gflops(name, CONVERTING) is None or runs.gflops(name, "hap_sharding") is None or fact is None:
                    continue
                row: dict[str, Any] = {"network": TITLES[network], "cluster": cluster, "bandwidth": bandwidth}
                for method, title in shown.items():
                    row[method] = runs.gflops(name, method)
                    if row[method] is not None:
                        series[title].append((bandwidth, row[method]))
                    if method in ("hap_sharding", "alpa_sharding") and (name, method) in runs.by:
                        row[f"{method}_sync"] = runs.synchronous(name, method)
                row["limit"] = runs.gflops_of(name, fact.bound)
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
    columns = [Column("network", "network"), Column("cluster", "cl."), Column("bandwidth", "GB/s", "g")]
    columns += [Column(method, title, ".1f") for method, title in shown.items()]
    columns += [
        Column("hap_sharding_sync", "HAP-style, synchronous", ".1f"),
        Column("alpa_sharding_sync", "Alpa-style, synchronous", ".1f"),
        Column("limit", "proven limit", ".1f"),
        Column("over_hap", "MTrain over HAP, synchronous", ".2f"),
    ]
    note = (
        "Synchronous: every layer on all devices, gather and scatter after each, as Sec. III-B describes the rivals. "
        "The other two columns let them leave devices idle and execute asynchronously, which flatters them."
    )
    return Table("fig9_to_11", "Throughput [GFLOPS]", columns, rows, note), pictures


def scaling(runs: Runs) -> tuple[Table, list[Any]]:
    """Fig. 12: throughput and search time from 2 to 8 FPGAs."""
    rows: list[dict[str, Any]] = []
    for label in ("0p5", "3", "15"):
        for count in (2, 4, 6, 8):
            name = f"mtrain_scale_{count}fpga_resnet18_{label}gbs"
            fact = runs.facts.get(name)
            if fact is None:
                continue
            rows.append(
                {
                    "bandwidth": BANDWIDTHS[label],
                    "fpgas": count,
                    "mtrain": runs.gflops(name, CONVERTING),
                    "single": runs.gflops(name, "single_accelerator"),
                    "limit": runs.gflops_of(name, fact.bound),
                    "seconds": runs.seconds(name, CONVERTING),
                }
            )
    columns = [
        Column("bandwidth", "GB/s", "g"),
        Column("fpgas", "FPGAs"),
        Column("mtrain", "MTrain [GFLOPS]", ".1f"),
        Column("single", "single [GFLOPS]", ".1f"),
        Column("limit", "proven limit [GFLOPS]", ".1f"),
        Column("seconds", "search [s]", ".2f"),
    ]
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


def claims(runs: Runs) -> Table:
    """Numbers that the paper's prose quotes, next to ours."""
    printed = published()
    rows = []

    def claim(text: str, key: str, ours: float | None, unit: str) -> None:
        if ours is not None and key in printed:
            value = printed[key]
            rows.append({"claim": text, "printed": value, "ours": ours, "unit": unit, "verdict": verdict(value, ours)})

    def best(cluster: int, network: str) -> float | None:
        values = [runs.gflops(library_name(cluster, network, b), CONVERTING) for b in BANDWIDTHS]
        found = [v for v in values if v is not None]
        return max(found) if len(found) == len(values) else None

    for key, network in (("res18", "resnet18"), ("tiny", "tinyyolov3"), ("alex", "alexnet"), ("vgg", "vgg16")):
        claim(f"Cluster 1, {TITLES[network]}: best over all bandwidths", f"c1_{key}_max", best(1, network), "GFLOPS")
    for cluster in (2, 3):
        for key, network in (("vgg", "vgg16"), ("res18", "resnet18"), ("tiny", "tinyyolov3")):
            ours = runs.gflops(library_name(cluster, network, "0p5"), CONVERTING)
            claim(f"Cluster {cluster}, {TITLES[network]} at 0.5 GB/s", f"c{cluster}_{key}_05", ours, "GFLOPS")
    for key, network in (("tiny", "tinyyolov3"), ("vgg", "vgg16")):
        ours = runs.gflops(library_name(3, network, "0p125"), CONVERTING)
        claim(f"Cluster 3, {TITLES[network]} at 0.125 GB/s", f"c3_{key}_0125", ours, "GFLOPS")
    first, last = (runs.gflops(library_name(1, "alexnet", "0p125"), m) for m in (STEPS[0], CONVERTING))
    if first and last:
        claim(
            "Cluster 1, AlexNet at 0.125 GB/s: step 4 over step 1", "c1_alex_step", 100 * (last / first - 1), "% gain"
        )
    wide = runs.gflops(library_name(1, "alexnet", "15"), CONVERTING)
    if wide and last:
        claim("Cluster 1, AlexNet: 15 over 0.125 GB/s", "c1_alex_bw", 100 * (wide / last - 1), "% gain")
    over = []
    for cluster in (1, 2, 3):
        for network in TITLES:
            name = library_name(cluster, network, "15")
            hap = runs.synchronous(name, "hap_sharding")
            ours = runs.gflops(name, CONVERTING)
            if hap and ours:
                over.append(ours / hap)
    if len(over) == 15:
        claim("MTrain over HAP at 15 GB/s, least", "hap_lo", min(over), "x")
        claim("MTrain over HAP at 15 GB/s, most", "hap_hi", max(over), "x")
    for cluster in (1, 2, 3):
        record = runs.by.get((library_name(cluster, "resnet18", "3"), DFS))
        count = record["notes"].get("ratios") if record else None
        claim(f"Cluster {cluster}: feasible ratios", f"ratios_c{cluster}", float(count) if count else None, "")
    columns = [Column("claim", "claim"), Column("printed", "printed", "g"), Column("ours", "ours", ".2f")]
    return Table(
        "claims", "Numbers in the paper's prose", [*columns, Column("unit", "unit"), Column("verdict", "verdict")], rows
    )


def page(records: list[Record], quick: bool) -> Page:
    """The page of the study."""
    runs = Runs(records)
    main = table_3(runs)
    searched = [row for row in main.rows if row["exact_s"] is not None]
    gaps = [row["dfs_gap"] for row in searched if row["dfs_gap"] is not None]
    closed = [row["best_gap"] for row in searched if row["best_gap"] is not None]
    lead = [
        "MTrain calls depth-first search over all batch ratios optimal, but maps each ratio with its own heuristic. "
        "Here DFS and MTrain-Converting stand next to an exact search and a proven limit on the same instances."
    ]
    if gaps:
        lead.append(
            f"DFS ends {min(gaps):.1f} % to {max(gaps):.1f} % (median {median(gaps):.1f} %) above the proven bound; "
            f"the best plans found here end {min(closed):.2f} % to {max(closed):.2f} % above it. Where the exact "
            "search has not been run, only cheap bounds stand below the plans, and most of the gap may be theirs."
        )
    machines = sorted({str(r.get("cpu") or "unknown processor") for r in records})
    lead.append(f"Search times are single runs on {', '.join(machines)}; the paper's machine is not named.")
    steps, step_figures = ablation(runs)
    rivals, rival_figures = comparison(runs)
    growth, growth_figures = scaling(runs)
    labels = [f"{row['network']}, {row['cluster']}" for row in main.rows]
    bars = figures.grouped_bars(
        labels,
        {
            "MTrain-Converting": [row["converting_gap"] for row in main.rows],
            'DFS ("optimal")': [row["dfs_gap"] for row in main.rows],
            "best plan": [row["best_gap"] for row in main.rows],
        },
        ylabel="gap to the proven bound [%]",
    )
    sections = [
        Section(
            "DFS versus converting",
            tables=[main, table_3_published(main)],
            figures=[
                picture("gaps", bars, "How far above the proven bound each plan lies; 3 GB/s, network and cluster.")
            ],
        ),
        Section("Steps of MTrain (Fig. 8)", tables=[steps], figures=step_figures),
    ]
    if not quick:
        sections += [
            Section("Rivals (Figs. 9-11)", tables=[rivals], figures=rival_figures),
            Section("Scaling (Fig. 12)", tables=[growth], figures=growth_figures),
            Section("Published numbers", tables=[claims(runs)]),
        ]
    traced = [
        name for name in (library_name(c, n, "3") for n in TABLE_3 for c in (1, 2, 3)) if (name, EXACT) in runs.by
    ]
    sections += [
        Section(
            "Exact search over time",
            figures=[
                picture(f"trace_{n}", figures.gap_over_time([runs.by[n, EXACT]], n), "Best plan and bound over time.")
                for n in traced
            ],
        ),
        Section("All runs", tables=[method_table(records), instance_table(records), run_table(records)]),
    ]
    return Page("DFS versus converting: how far from optimal is MTrain?", lead, sections)


STUDY = Study(
    name="dfs_vs_converting",
    title="DFS versus converting (MTrain, Table III and Figs. 8-12)",
    problem=PROBLEM,
    phases=phases,
    page=page,
    headline=("table_3",),
)
