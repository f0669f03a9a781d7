"""Hybrid pipelines: Asteroid and its rivals next to the certified optimum (Tables 2, 4, 7; Figs. 13, 15a, 16-18).

All plans are of the library's instances, whose time tables are derived (a roofline scaled to Table 1), so absolute
numbers are not the authors'. Ratios between methods are compared with the printed ones, each with a verdict.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import cache
from typing import Any

from mapgap import figures
from mapgap.analysis import Record, verdict
from mapgap.bench import Job
from mapgap.report import Page, Picture, Section, instance_table, method_table, picture, run_table
from mapgap.studies._hybrid_pipeline_figures import memory_figure, plan_figure, waterfall
from mapgap.study import Phase, Study
from mapgap.tables import Column, Table

PROBLEM = "hybrid_pipeline"
NETWORKS = {
    "efficientnet_b1": "EfficientNet-B1",
    "mobilenetv2": "MobileNetV2",
    "resnet50": "ResNet50",
    "bert_small": "BERT-small",
}
ENVIRONMENTS = (("a", 100), ("b", 100), ("b", 1000))
EXACT, ASTEROID = "label_dp", "asteroid"
CONVENTIONAL = {"on_device": "dev", "data_parallel": "dp", "gpipe": "pp"}
SYSTEMS = ("eddl", "pipedream", "dapple", "hetpipe")
ABLATIONS = ("asteroid_naive", "asteroid_inter_stage")
REPLANNING = ("flops_recut", "cuts_only", "heavy_rescheduling", EXACT)
PLANNING = {"efficientnet_b1": "t7_effnet", "mobilenetv2": "t7_mobilenet", "resnet50": "t7_resnet"}
PLANNING |= {"bert_small": "t7_bert"}
PARAMETERS_MB = {"efficientnet_b1": 0, "mobilenetv2": 1, "resnet50": 2}
SLOWEST = {"ties": "slowest_first"}
FAILED = ("tx2", "nano1", "nano2", "nano3")


def library_name(environment: str, network: str, mbps: int = 100) -> str:
    """Library name of an experiment of Table 4."""
    return f"asteroid_{environment}_{network}_{mbps}mbps"


@cache
def _instance(name: str) -> Any:
    """A library instance; with ``+all`` behind the name, the one that forbids idle devices."""
    from mapgap.loading import load_instance

    if not name.endswith("+all"):
        return load_instance(name)
    return load_instance(name.removesuffix("+all")).model_copy(update={"all_devices": True, "name": name})


def _jobs(names: Iterable[str], methods: Iterable[str], options: dict[str, str] | None = None) -> list[Job]:
    chosen = tuple(methods)
    return [Job(_instance(name), method, 60.0, options=options or {}) for name in names for method in chosen]


def phases(quick: bool) -> list[Phase]:
    """The runs; the quick version has environments A and C at 100 Mbit/s, two networks and one failure."""
    networks = ("efficientnet_b1", "resnet50") if quick else tuple(NETWORKS)
    conventional = [library_name(e, n, b) for e, b in (ENVIRONMENTS[:1] if quick else ENVIRONMENTS) for n in networks]
    systems = [library_name(e, n) for e in ("c" if quick else "bc") for n in networks]
    nanos = [f"asteroid_nano{k}_{n}_100mbps" for k in range(1, 9) for n in tuple(NETWORKS)[:2]]
    failures = [f"{library_name('d', 'efficientnet_b1')}_without_{d}" for d in (FAILED[:1] if quick else FAILED)]
    main = list(dict.fromkeys([*conventional, *systems]))
    found = [
        Phase("Exact and Asteroid", _jobs(main, (EXACT, ASTEROID)), parallel=2),
        Phase("Other tie rule", _jobs(main, (ASTEROID,), SLOWEST), parallel=2),
        Phase("No idle devices", _jobs([f"{name}+all" for name in systems], (EXACT,)), parallel=2),
        Phase("Conventional training", _jobs(conventional, CONVENTIONAL), parallel=2),
        Phase("Volumes", _jobs([library_name("a", n) for n in networks], ("hetpipe",)), parallel=2),
        Phase("Other systems", _jobs(systems, (*SYSTEMS, *ABLATIONS)), parallel=2),
        Phase("Failures", _jobs(failures, REPLANNING), parallel=2),
    ]
    if not quick:
        found.append(Phase("Scalability", _jobs(nanos, (EXACT, ASTEROID, "data_parallel", "gpipe")), parallel=2))
    return found


class Runs:
    """Records by instance, method and tie rule."""

    def __init__(self, records: list[Record]) -> None:
        self.by = {
            (r["instance"], r["method"], (r.get("options") or {}).get("ties") == SLOWEST["ties"]): r
            for r in records
            if not r.get("error")
        }

    def get(self, name: str, method: str, slowest: bool = False) -> Record | None:
        return self.by.get((name, method, slowest))

    def ticks(self, name: str, method: str, slowest: bool = False) -> int | None:
        record = self.get(name, method, slowest)
        return record["objective"] if record else None

    def term(self, name: str, method: str, term: str) -> Any:
        record = self.get(name, method)
        return record["terms"].get(term) if record and record["objective"] is not None else None

    def note(self, name: str, method: str, note: str) -> Any:
        record = self.get(name, method)
        return record["notes"].get(note) if record else None

    def ratio(self, name: str, method: str, reference: str) -> float | None:
        """Latency of a method over that of another."""
        top, bottom = self.ticks(name, method), self.ticks(name, reference)
        return top / bottom if top and bottom else None


def published() -> dict[str, Any]:
    """Printed numbers by identifier."""
    from instances.published import load_published

    return load_published("asteroid")


def table_4(runs: Runs) -> Table:
    """Speedups of Asteroid over one device, DP and PP, and of the optimum over Asteroid."""
    printed, rows = published(), []
    for environment, mbps in ENVIRONMENTS:
        for network, title in NETWORKS.items():
            name = library_name(environment, network, mbps)
            if runs.ticks(name, ASTEROID) is None:
                continue
            row: dict[str, Any] = {"network": title, "environment": environment.upper(), "mbps": mbps}
            for method, key in CONVENTIONAL.items():
                value = printed[f"t4_{network}_{environment}_{mbps}_{key}"]
                ours = runs.ratio(name, method, ASTEROID)
                row |= {f"{key}_printed": value, key: ours}
                missing = "out of memory" if runs.get(name, method) else "not run"
                row[f"{key}_verdict"] = verdict(value, ours) if ours else missing
            row["optimum"] = runs.ratio(name, ASTEROID, EXACT)
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
        Column("network", "network"), Column("t4", "implied by Table 4 [ms]", ".1f"),
        Column("t1", "Table 1 [ms]", ".1f"), Column("factor", "ratio", ".1f"),
    ]  # fmt: skip
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
        if runs.ticks(name, ASTEROID) is None:
            continue
        hdp, hpp = runs.note(name, "hetpipe", "hdp_volume_mb"), runs.term(name, ASTEROID, "communication_mb")
        rows.append(
            {
                "network": NETWORKS[network],
                "hdp_printed": printed[f"t2_{network}_hdp"], "hdp": hdp,
                "hdp_verdict": verdict(printed[f"t2_{network}_hdp"], hdp),
                "hpp_printed": printed[f"t2_{network}_hpp"], "hpp": hpp,
                "hpp_verdict": verdict(printed[f"t2_{network}_hpp"], hpp),
                "optimum": runs.term(name, EXACT, "communication_mb"),
            }
        )  # fmt: skip
    columns = [Column("network", "network")]
    for key, title in (("hdp", "HDP"), ("hpp", "HPP")):
        columns += [Column(f"{key}_printed", f"{title} printed", "g"), Column(key, title, ".1f")]
        columns.append(Column(f"{key}_verdict", "verdict"))
    columns.append(Column("optimum", "HPP, optimum", ".1f"))
    note = "HDP: HetPipe's placement. HPP: Asteroid's plan. The mini-batch behind the printed volumes is not stated."
    return Table("table_2", "Table 2: communication volume of a mini-batch [MB], environment A", columns, rows, note)


def table_7(runs: Runs) -> Table:
    """Planning time on environment C."""
    printed, rows = published(), []
    for network, key in PLANNING.items():
        name = library_name("c", network)
        if runs.ticks(name, ASTEROID) is not None:
            rows.append(
                {
                    "network": NETWORKS[network],
                    "layers": len(_instance(name).layers),
                    "printed": printed[key],
                    "asteroid": runs.note(name, ASTEROID, "cpu_s"),
                    "exact": runs.note(name, EXACT, "search_s"),
                }
            )
    columns = [
        Column("network", "network"), Column("layers", "L"), Column("printed", "printed, on an NX [s]", "g"),
        Column("asteroid", "Algorithm 2, compiled [s]", ".3f"), Column("exact", "label_dp [s]", ".3f"),
    ]  # fmt: skip
    note = "Process CPU time of a single run in a fresh process; the machines differ, so there is no verdict."
    return Table("table_7", "Table 7: planning time, environment C", columns, rows, note)


def comparison(runs: Runs, key: str, title: str, methods: tuple[str, ...]) -> tuple[Table, list[Picture]]:
    """Throughput of methods on environments B and C; a missing value is out of memory."""
    rows: list[dict[str, Any]] = []
    pictures = []
    shown = (*methods, ASTEROID, EXACT)
    for environment in "bc":
        names = {NETWORKS[n]: library_name(environment, n) for n in NETWORKS}
        names = {label: name for label, name in names.items() if runs.get(name, methods[0])}
        for label, name in names.items():
            row: dict[str, Any] = {"environment": environment.upper(), "network": label}
            rows.append(row | {m: runs.ratio(name, m, EXACT) for m in shown})
        if names:
            series = {}
            for m in shown:
                best = [runs.term(name, EXACT, "samples_per_s") for name in names.values()]
                own = [runs.term(name, m, "samples_per_s") for name in names.values()]
                series[m] = [100 * x / y if x and y else None for x, y in zip(own, best, strict=True)]
            bars = figures.grouped_bars(list(names), series, ylabel="throughput, optimum = 100")
            text = f"Environment {environment.upper()}, 100 Mbit/s; an empty place is out of memory."
            pictures.append(picture(f"{key}_{environment}", bars, text))
    columns = [Column("environment", "env."), Column("network", "network"), *(Column(m, m, ".3f") for m in shown)]
    return Table(key, title, columns, rows, "Latency over the certified optimum; blank: out of memory."), pictures


def losses(runs: Runs) -> tuple[Table, list[Picture]]:
    """Where Asteroid's latency above the optimum comes from, one cause after the other."""
    rows, pictures = [], []
    for environment in "bc":
        for network, title in NETWORKS.items():
            name = library_name(environment, network)
            first, other = runs.ticks(name, ASTEROID), runs.ticks(name, ASTEROID, slowest=True)
            everyone, best = runs.ticks(f"{name}+all", EXACT), runs.ticks(name, EXACT)
            if first is None or everyone is None or best is None:
                continue
            record = runs.get(name, ASTEROID, slowest=other is not None and other < first)
            assert record is not None
            tied = min(first, other) if other is not None else first
            nested = max(everyone, min(tied, record["terms"]["nested_ticks"]))
            names = ("Asteroid", "tie rule", "allocation", "order and\nsubstructure", "idle devices", "optimum")
            values = [100 * v / best for v in (first, tied, nested, everyone, best, best)]
            rows.append(
                {"environment": environment.upper(), "network": title, "total": values[0] - 100}
                | {key: values[k] - values[k + 1] for k, key in enumerate(("ties", "shares", "order", "idle"))}
            )
            steps = list(zip(names, values, strict=True))
            text = f"Loss of Asteroid, {title}, environment {environment.upper()}, 100 Mbit/s."
            pictures.append(picture(f"loss_{environment}_{network}", waterfall(steps, title), text))
    columns = [
        Column("environment", "env."), Column("network", "network"), Column("total", "total", ".2f"),
        Column("ties", "tie rule", ".2f"), Column("shares", "allocation", ".2f"),
        Column("order", "order and substructure", ".2f"), Column("idle", "idle devices", ".2f"),
    ]  # fmt: skip
    note = (
        "Percent of the optimum. Tie rule: fastest-first against the better one. Allocation: Algorithm 1 against Eq. "
        "(7) in the same stages. Order and substructure: against the optimum that uses all devices. Idle devices: "
        "against the optimum that need not."
    )
    return Table("losses", "What Asteroid loses, and why", columns, rows, note), pictures


def failures(runs: Runs) -> Table:
    """Figs. 16 and 17: re-planning after a device left environment D."""
    rows = []
    for device in FAILED:
        name = f"{library_name('d', 'efficientnet_b1')}_without_{device}"
        for method in REPLANNING:
            if runs.ticks(name, method) is not None:
                old = _instance(name).replanning.old_latency * _instance(name).seconds_per_tick
                rows.append(
                    {
                        "device": _instance(name).replanning.failed, "method": method,
                        "before": _instance(name).mini_batch / old,
                        "after": runs.term(name, method, "samples_per_s"),
                        "migration": runs.term(name, method, "migration_s"),
                        "ratio": runs.ratio(name, method, EXACT),
                    }
                )  # fmt: skip
    columns = [
        Column("device", "failed"), Column("method", "method"), Column("before", "before [1/s]", ".1f"),
        Column("after", "after [1/s]", ".1f"), Column("migration", "migration [s]", ".2f"),
        Column("ratio", "objective / exact", ".3f"),
    ]  # fmt: skip
    return Table("failures", "Figs. 16 and 17: re-planning, environment D, 100 rounds", columns, rows)


def scalability(runs: Runs) -> list[Picture]:
    """Fig. 18: throughput over the number of Nano; and the cost of planning."""
    pictures = []
    cost: dict[str, list[tuple[float, float]]] = {}
    for network in tuple(NETWORKS)[:2]:
        series: dict[str, list[tuple[float, float]]] = {}
        for method in (EXACT, ASTEROID, "data_parallel", "gpipe"):
            for count in range(1, 9):
                name = f"asteroid_nano{count}_{network}_100mbps"
                value = runs.term(name, method, "samples_per_s")
                if value is not None:
                    series.setdefault(method, []).append((count, value))
                seconds = runs.note(name, method, "search_s" if method == EXACT else "cpu_s")
                if seconds is not None and method in (EXACT, ASTEROID):
                    label = f"{method}, L = {len(_instance(name).layers)}"
                    cost.setdefault(label, []).append((count, 1000 * seconds))
        figure = figures.lines(series, xlabel="Jetson Nano", ylabel="samples per second", title=NETWORKS[network])
        pictures.append(picture(f"fig18_{network}", figure, "Throughput; a missing point is out of memory."))
    figure = figures.lines(cost, xlabel="devices (one type)", ylabel="planning [ms CPU]")
    return [*pictures, picture("planning_cost", figure, "Cost of planning against devices and layers.")]


def layer_cost(runs: Runs) -> list[Picture]:
    """Cost of planning against the number of layers, environment C."""
    series: dict[str, list[tuple[float, float]]] = {}
    for network in NETWORKS:
        name = library_name("c", network)
        for method, note in ((EXACT, "search_s"), (ASTEROID, "cpu_s")):
            seconds = runs.note(name, method, note)
            if seconds is not None:
                series.setdefault(method, []).append((len(_instance(name).layers), 1000 * seconds))
    figure = figures.lines(series, xlabel="layers (environment C)", ylabel="planning [ms CPU]")
    return [picture("planning_layers", figure, "Cost of planning against the number of layers.")]


def _plan(record: Record | None) -> Any:
    """The plan of a run, or ``None``."""
    from mapgap.registry import problems

    if record is None or not record.get("plan"):
        return None
    return problems()[PROBLEM].plan_type.model_validate_json(json.dumps(record["plan"]))


def plans(runs: Runs) -> list[Picture]:
    """Plans of Asteroid and of the exact method (Figs. 4 and 12), and what they store."""
    from mapgap.gantt import plan_chart
    from mapgap.registry import problems

    pictures = []
    for network in NETWORKS:
        name = library_name("c", network)
        peaks = {}
        for method in (ASTEROID, EXACT):
            record = runs.get(name, method)
            plan = _plan(record)
            if record is None or plan is None:
                continue
            instance = _instance(name)
            text = f"{NETWORKS[network]}, environment C, 100 Mbit/s, {method}"
            figure = plan_figure(instance, plan, method)
            pictures.append(picture(f"plan_{network}_{method}", figure, f"{text}: stages, devices, shares (Fig. 12)."))
            peaks[method] = record["terms"]["peak_memory"]
            if method == EXACT:
                chart = plan_chart(problems()[PROBLEM], instance, plan)
                pictures.append(picture(f"schedule_{network}", chart, f"{text}: simulated 1F1B schedule (Fig. 4)."))
        if peaks:
            text = f"{NETWORKS[network]}: memory by Eq. (3)."
            pictures.append(picture(f"memory_{network}", memory_figure(_instance(name), peaks), text))
    return pictures


def simulated(runs: Runs) -> Table:
    """Model error: the end of the simulated 1F1B schedule (the last bar of the chart) over the closed form."""
    from mapgap.registry import problems

    draw = problems()[PROBLEM].gantt
    rows: list[dict[str, Any]] = []
    for environment in "bc":
        for network, title in NETWORKS.items():
            name = library_name(environment, network)
            for method in (ASTEROID, EXACT):
                plan, model = _plan(runs.get(name, method)), runs.term(name, method, "latency_s")
                if draw is None or plan is None or not model:
                    continue
                end = max(bar.end for lane in draw(_instance(name), plan) for bar in lane.bars)
                row = {"environment": environment.upper(), "network": title, "method": method}
                rows.append(row | {"model": model, "simulated": end, "ratio": end / model})
    columns = [
        Column("environment", "env."), Column("network", "network"), Column("method", "plan of"),
        Column("model", "model [s]", ".3f"), Column("simulated", "simulated [s]", ".3f"),
        Column("ratio", "simulated / model", ".3f"),
    ]  # fmt: skip
    note = "Event-driven 1F1B, half-duplex links, K_p = 2 (P - p) - 1."
    return Table("simulated", "Model error: simulated round over Eqs. (4)-(6)", columns, rows, note)


def page(records: list[Record], quick: bool) -> Page:
    """The page of the study."""
    runs = Runs(records)
    lost, loss_pictures = losses(runs)
    lead = [
        "Asteroid plans training pipelines over heterogeneous edge devices by a dynamic programme. Here its plans and "
        "those of its baselines stand next to the certified optimum of the same cost model (Eqs. 3-8).",
        "Time tables are derived, not measured: a roofline scaled to the paper's Table 1.",
    ]
    totals = [row["total"] for row in lost.rows]
    if totals:
        lead.append(f"Asteroid ends {min(totals):.1f} % to {max(totals):.1f} % above the optimum here.")
    systems, system_pictures = comparison(runs, "fig13", "Fig. 13: other systems", SYSTEMS)
    ablated, ablation_pictures = comparison(runs, "fig15a", "Fig. 15(a): ablation of the planner", ABLATIONS)
    sections = [
        Section("Conventional training", tables=[table_4(runs), implied(runs), table_2(runs)]),
        Section("What Asteroid loses", tables=[lost], figures=loss_pictures),
        Section("Other systems", tables=[systems, ablated], figures=[*system_pictures, *ablation_pictures]),
        Section("Plans", tables=[simulated(runs)], figures=plans(runs)),
        Section(
            "Planning time and scale",
            tables=[table_7(runs)],
            figures=[*layer_cost(runs), *([] if quick else scalability(runs))],
        ),
        Section("Failures", tables=[failures(runs)]),
        Section("All runs", tables=[method_table(records), instance_table(records), run_table(records)]),
    ]
    return Page("Hybrid pipelines: how far from optimal is Asteroid?", lead, sections)


STUDY = Study(
    name="hybrid_pipeline",
    title="Hybrid pipelines (Asteroid, Tables 2, 4, 7 and Figs. 13, 15a, 16-18)",
    problem=PROBLEM,
    phases=phases,
    page=page,
    headline=("table_4", "losses"),
)
