"""Synergy against the joint optimum: instance by instance, counted by origin, and over the time that sensing takes."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product
from typing import Any

from matplotlib.figure import Figure

from mapgap.records.record import relative
from mapgap.records.runs import Runs
from mapgap.reporting import figures
from mapgap.reporting.tables import Rows, Table, header, tabulated
from mapgap.studies.multi_model_splitting.experiments import EVERY, PAPER, SENSING_MS, SHORT, SYNERGY, Results, instance

OPTIMAL = 1.0005
"""A factor below this is an optimum."""
ORIGINS = {"paper": "instances of the paper", "variant": "variants of ours"}


def gaps(results: Results, objective: str = "throughput") -> Table:
    """Synergy against the joint optimum, instance by instance, and what the order of the pipelines does."""
    rows: list[dict[str, Any]] = []
    cases: dict[Any, str] = {}
    for name in _different(objective):
        best, record = results.best_ticks(name, objective), results.record(name, SYNERGY, objective)
        if record is None or best is None:
            continue
        every, by_ends = (results.record(name, SYNERGY, objective, order) for order in ("best", "io_bytes"))
        notes = every.notes if every is not None else {}
        row: dict[str, Any] = {"instance": SHORT[name], "origin": _origin(name), "best": best}
        row |= {"case": cases.setdefault(_case(name, best, record.objective), SHORT[name])}
        row |= {"proven": "proven" if results.proven(name, objective) else ""}
        row |= {"throughput": results.best_throughput(name) if objective == "throughput" else None}
        row |= {"synergy": _ratio(record.objective, best), "io": _ratio(by_ends.objective if by_ends else None, best)}
        row |= {f"{which}_order": _ratio(notes.get(f"{which}_order_ticks"), best) for which in ("best", "worst")}
        rows.append(row | {"orders": notes.get("orders"), "failed": notes.get("orders_out_of_resource")})
    columns = header(
        "instance | origin | case | best: best plan [ticks] | proven: optimum | throughput: inferences/s; .4g "
        "| synergy: Synergy; .2f | io: ordered by in + out; .2f | best_order: best order; .2f "
        "| worst_order: worst order; .1f | orders | failed: of them OOR"
    )
    if objective != "throughput":
        columns = [column for column in columns if column.key != "throughput"]
    what = "cycle time" if objective == "throughput" else "summed latency"
    note = (
        "Factors above the best plan; 1 is the joint optimum where it is proven. Instances of equal content once. "
        "Instances that differ in the number of devices only, with equal optimum and equal plan value of Synergy, are "
        "one case: further devices change nothing. Paper: printed in Figs. 6 and 9 to 13; variant: the same pipelines "
        "with sources and targets that the paper does not print."
    )
    return Table(f"gaps_{objective}", f"Synergy against the joint optimum: {what}", columns, rows, note)


def _different(objective: str = "throughput") -> list[str]:
    """The instances, those of equal content once."""
    first: dict[str, str] = {}
    for name in EVERY:
        first.setdefault(instance(name, objective).content_hash, name)
    return list(first.values())


def _origin(name: str) -> str:
    return "paper" if name in PAPER else "variant"


def _case(name: str, best: int, synergy: int | None) -> Any:
    """What instances of one case have in common: pipelines with their ends, optimum, and value of Synergy's plan."""
    ends = tuple((pipeline.name, pipeline.source, pipeline.target) for pipeline in instance(name).pipelines)
    return str(ends), best, synergy


def _ratio(value: int | None, best: int | None) -> float | None:
    gap = relative(value, best, 1)
    return None if gap is None else 1 + gap


@tabulated(
    "counts",
    "How often deciding in sequence is optimal",
    "title: instances | instances: proven optima | optimal: Synergy optimal | cases "
    "| optimal_cases: Synergy optimal in | lost_cases: loses in | worst: worst factor; .2f "
    "| best_order: worst factor of the best order; .2f",
    "Sensing takes no time here.",
)
def counts(table: Table) -> Rows:
    """How often Synergy is optimal, by origin, in instances and in cases; ``table`` has the gaps."""
    for origin, title in {**ORIGINS, "": "all"}.items():
        chosen = [row for row in table.rows if origin in ("", row["origin"]) and row["synergy"] and row["proven"]]
        cases = {row["case"]: row for row in chosen}
        if chosen:
            row = {"origin": origin or "all", "title": title, "instances": len(chosen), "optimal": _optimal(chosen)}
            optimal = _optimal(cases.values())
            row |= {"cases": len(cases), "optimal_cases": optimal, "lost_cases": len(cases) - optimal}
            row |= {"worst": max(row["synergy"] for row in chosen)}
            yield row | {"best_order": max((row["best_order"] for row in chosen if row["best_order"]), default=None)}


def _optimal(rows: Iterable[dict[str, Any]]) -> int:
    return sum(row["synergy"] < OPTIMAL for row in rows)


@tabulated(
    "sensing",
    "Synergy against the joint optimum over sensing time",
    "instance | origin" + "".join(f" | at_{ms}: {ms} ms; .2f" for ms in SENSING_MS),
    "Cycle time of Synergy's plan over the proven optimum of the same instance; all signals take the same time.",
)
def sensing(runs: Runs) -> Rows:
    """Synergy over the joint optimum when every sensing task takes 0 to 170 ms, instance by instance."""
    for name in _different():
        factors: dict[str, float | None] = {}
        for ms in SENSING_MS:
            results = Results(runs, ms)
            record = results.record(name, SYNERGY)
            proven = results.best_ticks(name) if results.proven(name) else None
            factors[f"at_{ms}"] = _ratio(record.objective, proven) if record else None
        if any(factor is not None for factor in factors.values()):
            yield {"instance": SHORT[name], "origin": _origin(name), **factors}


@tabulated(
    "sensing_counts",
    "What the headline owes to sensing that takes no time",
    "sensing: sensing [ms] | origin: instances of | instances: proven optima | optimal: Synergy optimal "
    "| worst: worst factor; .2f",
    "The paper measures sensing times and does not print them. Fig. 13 bounds them: workload 1 placed anywhere "
    "has a cycle of 3 / 16.8 s = 178.6 ms, in which every sensing task of its pipelines must fit.",
)
def sensing_counts(table: Table) -> Rows:
    """How often Synergy is optimal and how far off it is at worst, per sensing time; ``table`` has the factors."""
    for ms, origin in product(SENSING_MS, (*ORIGINS, "")):
        factors = [r[f"at_{ms}"] for r in table.rows if origin in ("", r["origin"]) and r[f"at_{ms}"] is not None]
        if factors:
            row = {"sensing": ms, "origin": origin or "all", "instances": len(factors), "worst": max(factors)}
            yield row | {"optimal": sum(factor < OPTIMAL for factor in factors)}


def sensing_lines(table: Table) -> Figure:
    """Factor over sensing time for all instances on which Synergy loses at some sensing time; equal lines once."""
    lines: dict[tuple[Any, ...], list[str]] = {}
    for row in table.rows:
        factors = tuple(row[f"at_{ms}"] for ms in SENSING_MS)
        if any((factor or 1) >= OPTIMAL for factor in factors):
            lines.setdefault(factors, []).append(row["instance"])
    series = {}
    for factors, names in lines.items():
        label = names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} alike"
        series[label] = [(float(ms), each) for ms, each in zip(SENSING_MS, factors, strict=True) if each is not None]
    return figures.lines(series, xlabel="sensing time [ms]", ylabel="cycle time / optimum")


def gap_bars(table: Table) -> Figure:
    """Factor of Synergy over the optimum where it is above 1, one bar per case."""
    cases = {row["case"]: row for row in reversed(table.rows)}
    rows = sorted((r for r in cases.values() if (r["synergy"] or 1) >= OPTIMAL), key=lambda r: -r["synergy"])
    series = {"Synergy": [r["synergy"] for r in rows]}
    for key, title in (("io", "ordered by in + out"), ("best_order", "best order")):
        if any(r[key] for r in rows):
            series[title] = [r[key] for r in rows]
    labels = [r["instance"] + (" *" if r["origin"] == "paper" else "") for r in rows]
    figure = figures.grouped_bars(labels, series, ylabel="cycle time / optimum")
    figure.axes[0].axhline(1, color="#888888", linewidth=0.8)
    figure.axes[0].tick_params(axis="x", rotation=20, labelsize=8)
    for label in figure.axes[0].get_xticklabels():
        label.set_horizontalalignment("right")
    return figure
