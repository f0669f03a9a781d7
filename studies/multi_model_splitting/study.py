"""Synergy and its seven baselines against the joint optimum (Figs. 6 and 9-13, Table 1).

Synergy decides pipeline by pipeline. Here the same instances are solved jointly to proven optimality, so the loss of
deciding in sequence is separated from the gain over the baselines. What the paper prints stands next to what these
instances give, with a verdict; sensing times and most source and target devices are not printed.
"""

from __future__ import annotations

import json
from typing import Any

from matplotlib.figure import Figure

from mapgap.catalogue import registry
from mapgap.records.runs import Runs
from mapgap.reporting import figures
from mapgap.reporting.gantt import plan_chart
from mapgap.reporting.report import Page, Picture, Section, picture
from mapgap.reporting.run_tables import instance_table, method_table, run_table
from mapgap.reporting.study import Phase, Study
from mapgap.reporting.tables import Column, Table
from mapgap.studies.multi_model_splitting.changes import change_jobs, changes
from mapgap.studies.multi_model_splitting.claims import claims, mean_gain, oor_pattern, thresholds
from mapgap.studies.multi_model_splitting.experiments import (
    ABLATIONS,
    BASELINES,
    EVERY,
    EXACT,
    FIG_6,
    FIG_11A,
    FIG_11B,
    FIG_12,
    FIG_13,
    HARD,
    LONGEST_MS,
    LOSSES,
    MAPPINGS,
    ORDER_RULES,
    PAPER,
    PROBLEM,
    QUICK,
    SENSING_MS,
    SHORT,
    SYNERGY,
    TITLES,
    WORKLOADS,
    Results,
    instance,
    jobs,
)
from mapgap.studies.multi_model_splitting.facts import figure_7, table_1
from mapgap.studies.multi_model_splitting.gaps import (
    ORIGINS,
    counts,
    gap_bars,
    gaps,
    sensing,
    sensing_counts,
    sensing_lines,
)

METHODS = (SYNERGY, *BASELINES)
MISSING = "No bar: out of resource."
THROUGHPUT = "throughput_per_s"


def phases(quick: bool) -> list[Phase]:
    """The runs; the quick version leaves out latency, most orders and the instances the paper does not print."""
    if quick:
        few = (SYNERGY, "pri_min_dev", "joint_model", "ind_model", "ind_best")
        found = {
            "Exact": jobs((*QUICK, *HARD), (EXACT,), 10.0),
            "Synergy and rivals": jobs(QUICK, few, 10.0) + jobs(HARD, (SYNERGY,), 10.0),
            "Orders": [job for rule in ORDER_RULES for job in jobs(LOSSES, (SYNERGY,), 20.0, order=rule)],
            "Ablations": jobs(FIG_6, (SYNERGY, *ABLATIONS, EXACT), 10.0),
            "Sensing": jobs(LOSSES, (EXACT, SYNERGY), 10.0, sensing_ms=LONGEST_MS),
            "Changes": change_jobs(10.0),
        }
    else:
        sensed = [job for ms in SENSING_MS[1:] for job in jobs(EVERY, (EXACT, SYNERGY), 120.0, sensing_ms=ms)]
        found = {
            "Exact": jobs(EVERY, (EXACT,), 120.0),
            "Synergy, baselines, ablations": jobs(EVERY, (*METHODS, *ABLATIONS), 120.0),
            "Orders": [job for rule in ORDER_RULES for job in jobs(EVERY, (SYNERGY,), 120.0, order=rule)],
            "Latency": jobs(EVERY, ("joint", SYNERGY), 120.0, objective="latency"),
            "Sensing": sensed + jobs(PAPER, tuple(BASELINES), 120.0, sensing_ms=LONGEST_MS),
            "Changes": change_jobs(60.0),
            "Second engine": jobs(EVERY, ("mip",), 120.0),
        }
    return [Phase(name, runs, parallel=2) for name, runs in found.items()]


def rivals(results: Results, key: str, title: str, names: dict[str, str], term: str = THROUGHPUT) -> Table:
    """One row per method, one column per instance; OOR where the plan exceeds a device."""
    rows: list[dict[str, Any]] = []
    if term == THROUGHPUT:
        best = {name: results.best_throughput(name) for name in names}
        rows.append({"method": "joint optimum"} | {n: None if v is None else f"{v:.4g}" for n, v in best.items()})
    for method in (*METHODS, *ABLATIONS):
        cells = {name: results.cell(name, method, term) for name in names}
        if any(cells.values()) and (method not in ABLATIONS or set(names) <= set(FIG_6)):
            rows.append({"method": TITLES[method]} | cells)
    return Table(key, title, [Column("method", "method"), *(Column(n, label) for n, label in names.items())], rows)


def curves(results: Results, names: dict[int, str], xlabel: str, per_pipeline: bool = False) -> Figure:
    """Throughput of every method over a count, logarithmic; points out of resource are missing."""
    shares = {name: len(instance(name).pipelines) if per_pipeline else 1 for name in names.values()}
    values = {TITLES[m]: {name: results.term(name, m) for name in shares} for m in METHODS}
    values["joint optimum"] = {name: results.best_throughput(name) for name in shares}
    series = {
        title: [(float(count), value / shares[name]) for count, name in names.items() if (value := found[name])]
        for title, found in values.items()
    }
    figure = figures.lines(series, xlabel=xlabel, ylabel="inferences/s")
    logarithmic(figure, [y for points in series.values() for _, y in points])
    figure.axes[0].set_xticks(sorted({int(x) for points in series.values() for x, _ in points}))
    return figure


def bars(results: Results, names: dict[str, str], term: str = THROUGHPUT, ylabel: str = "inferences/s") -> Figure:
    """A term of every method on some instances, logarithmic; a missing bar is out of resource."""
    series = {TITLES[m]: [results.term(n, m, term) for n in names] for m in METHODS}
    figure = figures.grouped_bars(list(names.values()), series, ylabel=ylabel)
    logarithmic(figure, [value for values in series.values() for value in values if value])
    return figure


def logarithmic(figure: Figure, values: list[float]) -> None:
    """A logarithmic ordinate that begins below the least value."""
    if values:
        figure.axes[0].set_yscale("log")
        figure.axes[0].set_ylim(min(values) / 2, 2 * max(values))


def plan_pictures(results: Results, name: str) -> list[Picture]:
    """The plan of Synergy and the best plan of one instance, one lane per unit, the bottleneck marked."""
    problem = registry.problems()[PROBLEM]
    found = []
    for method, title in ((SYNERGY, "Synergy"), (EXACT, "joint optimum")):
        record = results.record(name, method)
        if record is not None and record.plan:
            plan = problem.plan_type.model_validate_json(json.dumps(record.plan))
            value = record.terms["throughput_per_s"]
            figure = plan_chart(problem, instance(name), plan, f"{title}: {value:.3g} inferences/s")
            caption = f"{SHORT[name]}, {title}: load of every unit in one cycle; numbers are layers."
            found.append(picture(f"plan_{method}", figure, caption))
    return found


def lead(table: Table, times: Table) -> list[str]:
    """What the page says first; ``table`` counts optima by origin, ``times`` by sensing time."""
    found = [
        "Synergy plans pipeline by pipeline. Here every instance of its paper is also solved jointly; the difference "
        "is what deciding in sequence costs."
    ]
    for row in table.rows:
        if row["origin"] in ORIGINS:
            found.append(
                f"Of {row['instances']} {ORIGINS[row['origin']]} Synergy is optimal on {row['optimal']} "
                f"({row['optimal_cases']} of {row['cases']} cases); its worst cycle time is {row['worst']:.2f} times "
                "the optimum."
            )
    worst = {row["sensing"]: row["worst"] for row in times.rows if row["origin"] == "all"}
    if len(worst) > 1:
        last = max(worst)
        found.append(
            "Sensing takes no time in these instances, because the paper does not print it, and the loss depends on "
            f"that: the worst factor falls from {worst[0]:.2f} to {worst[last]:.2f} where sensing takes {last} ms."
        )
    found.append(
        "Absolute throughputs of plans that send nothing are far above the paper's for the same reason, while plans "
        "that a radio limits are comparable."
    )
    return found


def figures_of_the_paper(results: Results) -> list[Section]:
    """Figs. 6 and 9 to 13 again."""
    workloads = {name: f"W{i}" for i, name in enumerate(WORKLOADS, 1)}
    devices = {name: f"{count} devices" for count, name in FIG_11A.items()}
    growth = {name: f"{count}" for count, name in FIG_11B.items() if results.record(name, SYNERGY)}
    fig_12 = dict(zip(FIG_12, ("4 MAX78000", "3 MAX78000 + MAX78002"), strict=True))
    fig_13 = dict(zip(FIG_13, MAPPINGS, strict=True))
    what, latency = "throughput [inferences/s]", "mean_latency_s"
    delays = bars(results, workloads, latency, "mean latency [s]")
    per_pipeline = curves(results, FIG_11B, "pipelines", True)
    return [
        Section(
            "Overall performance (Figs. 9 and 10)",
            [],
            [
                rivals(results, "fig9", f"Fig. 9: {what}", workloads),
                rivals(results, "fig10", "Fig. 10: mean latency of these plans [s]", workloads, latency),
            ],
            [
                picture("fig9", bars(results, workloads), MISSING),
                picture("fig10", delays, f"Lower is better. {MISSING}"),
            ],
        ),
        Section(
            "Devices and pipelines (Fig. 11)",
            [],
            [
                rivals(results, "fig11a", f"Fig. 11 (a): {what}", devices),
                rivals(results, "fig11b", f"Fig. 11 (b): total {what} of 1 to 6 pipelines", growth),
            ],
            [
                picture("fig11a", curves(results, FIG_11A, "devices"), "A missing point is out of resource."),
                picture("fig11b", per_pipeline, "Mean per pipeline, as the paper prints."),
            ],
        ),
        Section(
            "Accelerators and mappings (Figs. 12 and 13)",
            [],
            [
                rivals(results, "fig12", f"Fig. 12: {what}", fig_12),
                rivals(results, "fig13", f"Fig. 13: {what} of workload 1", fig_13),
            ],
            [
                picture("fig12", bars(results, fig_12), f"Four devices. {MISSING}"),
                picture("fig13", bars(results, fig_13), f"Workload 1. {MISSING}"),
            ],
        ),
        Section("Ablations (Fig. 6)", tables=[rivals(results, "fig6", what, {n: SHORT[n] for n in FIG_6})]),
    ]


def page(runs: Runs, quick: bool) -> Page:
    """The page of the study."""
    results = Results(runs)
    table, times = gaps(results), sensing(runs)
    counted, timed = counts(table), sensing_counts(times)
    caption = "Cycle time over the optimum, one group per case in which Synergy is not optimal; * is in the paper."
    alike = "Instances on which Synergy is optimal at every sensing time are left out; equal lines once."
    drawn = [picture("sensing", sensing_lines(times), alike)] if times.rows else []
    numbers = [claims(results), mean_gain(runs), thresholds(results), oor_pattern(results), table_1(), figure_7()]
    sections = [
        Section("Synergy against the joint optimum", [], [counted, table], [picture("gaps", gap_bars(table), caption)]),
        Section("What sensing time does", [], [timed, times], drawn),
        *([] if quick else [Section("Latency as the objective", tables=[gaps(results, "latency")])]),
        Section("Where sequence loses", figures=plan_pictures(results, HARD[0])),
        *figures_of_the_paper(results),
        Section("Devices and pipelines come and go", tables=[changes(runs)]),
        Section("Published numbers", tables=numbers),
        Section("All runs", tables=[method_table(runs), instance_table(runs), run_table(runs)]),
    ]
    return Page("Synergy against the joint optimum", lead(counted, timed), sections)


STUDY = Study(
    name="multi_model_splitting",
    title="Synergy and its baselines against the joint optimum (Figs. 6, 9-13, Table 1)",
    problem=PROBLEM,
    phases=phases,
    page=page,
    headline=("counts", "sensing_counts", "claims"),
)
