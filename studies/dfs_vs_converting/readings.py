"""What depends on how MTrain is read: the delta latency, step sizes, orders; its cost against accelerators and
bandwidth."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import inf
from statistics import mean
from typing import Any

from mapgap.records.record import RunRecord
from mapgap.records.runs import Runs
from mapgap.reporting import figures
from mapgap.reporting.report import Picture, picture
from mapgap.reporting.tables import Rows, Table, tabulated
from mapgap.studies.dfs_vs_converting.experiments import (
    BANDWIDTHS,
    CONVERTING,
    DFS,
    FPGAS,
    QUICK,
    READINGS,
    SCALE_BANDWIDTHS,
    SINGLE,
    STEP_SIZES,
    TITLES,
    gflops,
    kindest,
    library_name,
    scale_name,
    seconds,
    speed,
)

SUM, GROWTH = range(2)
NAMES = ("literal sum", "growth of the makespan")
COLUMNS = ("sum", "growth", "kinder", "kindest")
PLANNERS = {"sum": NAMES[SUM], "growth": NAMES[GROWTH], "quick": "quick planner"}


def _over_best(runs: Runs, name: str, method: str) -> float | None:
    """Percent by which a plan takes longer than the best one known."""
    best, ours = _known(runs, name), runs.objective(name, method)
    return None if not best or ours is None else 100 * (ours / best - 1)


def _known(runs: Runs, name: str) -> int | None:
    """Makespan of the best plan known."""
    fact = runs.fact(name)
    return None if fact is None else fact.best


def cases(runs: Runs, method: str) -> list[str]:
    """Instances on which both readings of a method have a plan."""
    return [
        name
        for name in sorted({run.instance for run in runs})
        if all(gflops(runs, name, m) is not None for m in READINGS[method])
    ]


@tabulated(
    "readings",
    "What changes by reading",
    f"statement | cases | sum: {NAMES[SUM]}; .1f | growth: {NAMES[GROWTH]}; .1f | kinder: kinder of both; .1f "
    "| kindest: kindest of all; .1f",
    "Kindest of all: besides, for DFS, every order of the parts of a partition, and for converting the best of the "
    f"step sizes {', '.join(map(str, STEP_SIZES))} (the others: one sample, partitions). "
    "Delta latency in step 5 of MTrain-Mapping. Literal sum: computation and transfers of the ready set, the words "
    "of Sec. V-B; the makespan decides ties. Growth of the makespan: of the partial schedule; the sum decides ties.",
)
def what_changes(runs: Runs) -> Rows:
    """Statements that depend on the reading, with what each reading makes of them."""
    for method, title in ((CONVERTING, "converting"), (DFS, "DFS")):
        names = cases(runs, method)
        over = [
            [100 * (found / best - 1) for name, found in zip(names, each, strict=True) if (best := _known(runs, name))]
            for each in _columns(runs, method, names)
        ]
        if all(over):
            yield from _said(f"{title}: mean over the best plan known [%]", names, map(mean, over))
            yield from _said(f"{title}: worst over the best plan known [%]", names, map(max, over))
            one, other, *_ = _columns(runs, method, names)
            faster = (_wins(one, other), _wins(other, one))
            yield from _said(f"{title}: cases in which this reading is faster", names, faster)
    names = [name for name in cases(runs, CONVERTING) if runs.objective(name, SINGLE) is not None]
    alone = [_makespan(runs.get(name, SINGLE)) for name in names]
    slower = (_wins(alone, each) for each in _columns(runs, CONVERTING, names))
    yield from _said("converting: cases slower than the best single accelerator", names, slower)
    both = [name for name in cases(runs, CONVERTING) if name in cases(runs, DFS)]
    pairs = zip(_columns(runs, CONVERTING, both), _columns(runs, DFS, both), strict=True)
    level = (len(both) - _wins(theirs, ours) for ours, theirs in pairs)
    yield from _said("converting: cases with the throughput of DFS or more", both, level)


def _columns(runs: Runs, method: str, names: Sequence[str]) -> list[list[float]]:
    """Makespan on each instance in either reading of the delta latency, the kinder one, and the kindest of all."""
    pairs = [[_makespan(runs.get(name, m)) for m in READINGS[method]] for name in names]
    best = [_makespan(kindest(runs, name, method)) for name in names]
    return [[one for one, _ in pairs], [other for _, other in pairs], [min(pair) for pair in pairs], best]


def _makespan(record: RunRecord | None) -> float:
    return inf if record is None or record.objective is None else float(record.objective)


def _wins(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """In how many cases the first is faster."""
    return float(sum(a < b for a, b in zip(ours, theirs, strict=True)))


def _said(statement: str, names: Sequence[str], values: Iterable[float]) -> Rows:
    """The row of a statement on some instances, by reading; none without instances."""
    if names:
        yield {"statement": statement, "cases": len(names), **dict(zip(COLUMNS, values, strict=False))}


@tabulated(
    "readings_per_case",
    "Both readings, throughput [GFLOPS]",
    "instance | dfs_sum: DFS, sum; .1f | dfs_growth: DFS, growth; .1f | converting_sum: converting, sum; .1f "
    "| converting_growth: converting, growth; .1f | dfs_kindest: DFS, kindest; .1f "
    "| converting_kindest: converting, kindest; .1f",
)
def per_case(runs: Runs) -> Rows:
    """Throughput of DFS and converting in both readings of the delta latency, and in the kindest reading of all."""
    for name in cases(runs, CONVERTING):
        row: dict[str, object] = {"instance": name}
        for method, key in ((DFS, "dfs"), (CONVERTING, "converting")):
            for reading, each in zip(("sum", "growth"), READINGS[method], strict=True):
                row[f"{key}_{reading}"] = gflops(runs, name, each)
            record = kindest(runs, name, method)
            row[f"{key}_kindest"] = None if record is None else speed(record)
        yield row


@tabulated(
    "against_single",
    "Cases in which MTrain-Converting is slower than the best single accelerator",
    f"bandwidth: GB/s; g | cases | sum: {NAMES[SUM]} | growth: {NAMES[GROWTH]} | both: both readings "
    "| all: with every step size",
    f"With every step size: in both readings with each of the steps {', '.join(map(str, STEP_SIZES))}; elsewhere a "
    "step of one sample. Without the fallback to a single accelerator (mtrain_converting_fallback).",
)
def against_single(runs: Runs) -> Rows:
    """Per bandwidth: on how many of Sec. VI-A's instances converting is slower than the best single accelerator."""
    for label, bandwidth in BANDWIDTHS.items():
        slower: list[list[bool]] = []
        ever = 0
        for name in (library_name(cluster, network, label) for cluster in (1, 2, 3) for network in TITLES):
            alone = gflops(runs, name, SINGLE)
            ours = [gflops(runs, name, method) for method in READINGS[CONVERTING]]
            if alone is not None and None not in ours:
                slower.append([value < alone for value in ours if value is not None])
                record = kindest(runs, name, CONVERTING)
                ever += record is not None and speed(record) < alone
        if slower:
            row = {"bandwidth": bandwidth, "cases": len(slower), "both": sum(map(all, slower)), "all": ever}
            yield row | {key: sum(each[k] for each in slower) for k, key in enumerate(("sum", "growth"))}


def slower_than_single(table: Table) -> list[str]:
    """The table of :func:`against_single` as a sentence."""
    total = {key: sum(row[key] for row in table.rows) for key in ("cases", "sum", "growth", "both", "all")}
    if not total["growth"] + total["sum"]:
        return []
    widest = max(row["bandwidth"] for row in table.rows if row["both"] or row["sum"] or row["growth"])
    return [
        f"MTrain-Converting is slower than the best single accelerator in {total['all']} of {total['cases']} cases in "
        "both readings of the delta latency with every step size; with steps of one sample in "
        f"{total['sum']} where the delta latency is read as the literal sum, in {total['growth']} where it is read as "
        f"the growth of the makespan, and in {total['both']} in both readings, up to {widest:g} GB/s."
    ]


@tabulated(
    "costs",
    "MTrain-Converting against accelerators and bandwidth, ResNet-18",
    "bandwidth: GB/s; g | fpgas: FPGAs | "
    + " | ".join(f"{key}: {title} [%]; .1f" for key, title in PLANNERS.items())
    + " | "
    + " | ".join(f"{key}_s: {title} [s]; .2f" for key, title in PLANNERS.items()),
    "Percent: makespan over that of the best plan known. Quick planner: annealed_converting, from both readings.",
)
def cost_table(runs: Runs) -> Rows:
    """Time over the best plan known, and search time, against accelerators and bandwidth."""
    for label, count in ((label, count) for label in SCALE_BANDWIDTHS for count in FPGAS):
        name = scale_name(count, label)
        if any(gflops(runs, name, m) is not None for m in READINGS[CONVERTING]):
            row: dict[str, Any] = {"bandwidth": BANDWIDTHS[label], "fpgas": count}
            for key, method in zip(PLANNERS, (*READINGS[CONVERTING], QUICK), strict=True):
                row |= {key: _over_best(runs, name, method), f"{key}_s": seconds(runs, name, method)}
            yield row


def costs(runs: Runs) -> tuple[Table, list[Picture]]:
    """The table of costs, and both readings as a picture."""
    table, series = cost_table(runs), dict[str, list[tuple[float, float]]]()
    for row in table.rows:
        for key in ("sum", "growth"):
            if row[key] is not None:
                label = f"{PLANNERS[key]}, {row['bandwidth']:g} GB/s"
                series.setdefault(label, []).append((row["fpgas"], row[key]))
    if not series:
        return table, []
    figure = figures.lines(series, xlabel="FPGAs", ylabel="over the best plan known [%]")
    return table, [picture("costs", figure, "MTrain-Converting in both readings over the best plan known.")]
