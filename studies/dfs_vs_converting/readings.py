"""What depends on how the delta latency of MTrain-Mapping is read; its cost against accelerators and bandwidth."""

from __future__ import annotations

from collections.abc import Callable
from statistics import mean
from typing import Any

from mapgap.records.runs import Runs
from mapgap.reporting import figures
from mapgap.reporting.report import Picture, picture
from mapgap.reporting.tables import Column, Table, header
from mapgap.studies.dfs_vs_converting.experiments import (
    BANDWIDTHS,
    CONVERTING,
    DFS,
    FPGAS,
    QUICK,
    READINGS,
    SCALE_BANDWIDTHS,
    SINGLE,
    TITLES,
    gflops,
    library_name,
    scale_name,
    seconds,
)

SUM, GROWTH = range(2)
NAMES = ("literal sum", "growth of the makespan")


def _over_best(runs: Runs, name: str, method: str) -> float | None:
    """Percent by which a plan takes longer than the best one known."""
    fact, ours = runs.fact(name), runs.get(name, method)
    if fact is None or not fact.best or ours is None or ours.objective is None:
        return None
    return 100 * (ours.objective / fact.best - 1)


def cases(runs: Runs, method: str) -> list[str]:
    """Instances on which both readings of a method have a plan."""
    return [
        name
        for name in sorted({run.instance for run in runs})
        if all(gflops(runs, name, m) is not None for m in READINGS[method])
    ]


def what_changes(runs: Runs) -> Table:
    """Statements that depend on the reading, with what each reading makes of them."""
    rows: list[dict[str, object]] = []

    def row(statement: str, names: list[str], values: Callable[[int], float | None]) -> None:
        both = [values(SUM), values(GROWTH)]
        if names and None not in both:
            rows.append({"statement": statement, "cases": len(names), "sum": both[SUM], "growth": both[GROWTH]})

    for method, title in ((CONVERTING, "converting"), (DFS, "DFS")):
        names = cases(runs, method)
        over = [[_over_best(runs, name, m) for name in names] for m in READINGS[method]]
        known = [[value for value in values if value is not None] for values in over]
        if not all(known):
            continue
        row(f"{title}: mean over the best plan known [%]", names, lambda r, known=known: mean(known[r]))  # type: ignore[misc]
        row(f"{title}: worst over the best plan known [%]", names, lambda r, known=known: max(known[r]))  # type: ignore[misc]
        faster = [[gflops(runs, name, m) or 0.0 for name in names] for m in READINGS[method]]
        row(
            f"{title}: cases in which this reading is faster",
            names,
            lambda r, faster=faster: float(sum(a > b for a, b in zip(faster[r], faster[1 - r], strict=True))),  # type: ignore[misc]
        )
    names = [name for name in cases(runs, CONVERTING) if gflops(runs, name, SINGLE) is not None]
    row(
        "converting: cases slower than the best single accelerator",
        names,
        lambda r: float(
            sum((gflops(runs, n, READINGS[CONVERTING][r]) or 0) < (gflops(runs, n, SINGLE) or 0) for n in names)
        ),
    )
    both = [name for name in cases(runs, CONVERTING) if name in cases(runs, DFS)]
    row(
        "converting: cases with the throughput of DFS or more",
        both,
        lambda r: float(
            sum(
                (gflops(runs, n, READINGS[CONVERTING][r]) or 0) >= (gflops(runs, n, READINGS[DFS][r]) or 0)
                for n in both
            )
        ),
    )
    columns = [*header("statement | cases"), Column("sum", NAMES[SUM], ".1f")]
    note = (
        "Delta latency in step 5 of MTrain-Mapping. Literal sum: computation and transfers of the ready set, the words "
        "of Sec. V-B; the makespan decides ties. Growth of the makespan: of the partial schedule; the sum decides ties."
    )
    return Table("readings", "What changes by reading", [*columns, Column("growth", NAMES[GROWTH], ".1f")], rows, note)


def per_case(runs: Runs) -> Table:
    """Throughput of DFS and converting in both readings."""
    rows = []
    for name in cases(runs, CONVERTING):
        row: dict[str, object] = {"instance": name}
        for method, key in ((DFS, "dfs"), (CONVERTING, "converting")):
            for reading, each in zip(("sum", "growth"), READINGS[method], strict=True):
                row[f"{key}_{reading}"] = gflops(runs, name, each)
        rows.append(row)
    columns = [Column("instance", "instance")]
    for key, title in (("dfs", "DFS"), ("converting", "converting")):
        columns += header(f"{key}_sum: {title}, sum; .1f | {key}_growth: {title}, growth; .1f")
    return Table("readings_per_case", "Both readings, throughput [GFLOPS]", columns, rows)


def against_single(runs: Runs) -> Table:
    """Per bandwidth: on how many of Sec. VI-A's instances converting is slower than the best single accelerator."""
    rows: list[dict[str, Any]] = []
    for label, bandwidth in BANDWIDTHS.items():
        slower: list[list[bool]] = []
        for name in (library_name(cluster, network, label) for cluster in (1, 2, 3) for network in TITLES):
            alone = gflops(runs, name, SINGLE)
            ours = [gflops(runs, name, method) for method in READINGS[CONVERTING]]
            if alone is not None and None not in ours:
                slower.append([value < alone for value in ours if value is not None])
        if slower:
            row = {"bandwidth": bandwidth, "cases": len(slower), "both": sum(all(each) for each in slower)}
            rows.append(row | {key: sum(each[k] for each in slower) for k, key in enumerate(("sum", "growth"))})
    columns = [*header("bandwidth: GB/s; g | cases"), Column("sum", NAMES[SUM])]
    columns += [Column("growth", NAMES[GROWTH]), Column("both", "both readings")]
    note = "Converting as published, without the fallback to a single accelerator (mtrain_converting_fallback)."
    title = "Cases in which MTrain-Converting is slower than the best single accelerator"
    return Table("against_single", title, columns, rows, note)


def slower_than_single(table: Table) -> list[str]:
    """The table of :func:`against_single` as a sentence."""
    total = {key: sum(row[key] for row in table.rows) for key in ("cases", "sum", "growth", "both")}
    if not total["growth"] + total["sum"]:
        return []
    widest = max(row["bandwidth"] for row in table.rows if row["both"] or row["sum"] or row["growth"])
    return [
        f"MTrain-Converting is slower than the best single accelerator in {total['sum']} of {total['cases']} cases "
        f"where the delta latency is read as the literal sum, in {total['growth']} where it is read as the growth of "
        f"the makespan, and in {total['both']} in both readings; not at narrow bandwidths only, but up to "
        f"{widest:g} GB/s."
    ]


def costs(runs: Runs) -> tuple[Table, list[Picture]]:
    """Time over the best plan known, and search time, against accelerators and bandwidth."""
    rows = []
    for label in SCALE_BANDWIDTHS:
        for count in FPGAS:
            name = scale_name(count, label)
            if not any(gflops(runs, name, m) is not None for m in READINGS[CONVERTING]):
                continue
            row: dict[str, object] = {"bandwidth": BANDWIDTHS[label], "fpgas": count}
            for key, method in zip(("sum", "growth", "quick"), (*READINGS[CONVERTING], QUICK), strict=True):
                row[key] = _over_best(runs, name, method)
                row[f"{key}_s"] = seconds(runs, name, method)
            rows.append(row)
    columns = header("bandwidth: GB/s; g | fpgas: FPGAs")
    titles = {"sum": NAMES[SUM], "growth": NAMES[GROWTH], "quick": "quick planner"}
    columns += [Column(key, f"{title} [%]", ".1f") for key, title in titles.items()]
    columns += [Column(f"{key}_s", f"{title} [s]", ".2f") for key, title in titles.items()]
    note = "Percent: makespan over that of the best plan known. Quick planner: annealed_converting, from both readings."
    table = Table("costs", "MTrain-Converting against accelerators and bandwidth, ResNet-18", columns, rows, note)
    series: dict[str, list[tuple[float, float]]] = {}
    for row in rows:
        for reading, key in zip(NAMES, ("sum", "growth"), strict=True):
            if isinstance(row[key], float):
                point = (float(str(row["fpgas"])), float(str(row[key])))
                series.setdefault(f"{reading}, {row['bandwidth']:g} GB/s", []).append(point)
    if not series:
        return table, []
    figure = figures.lines(series, xlabel="FPGAs", ylabel="over the best plan known [%]")
    return table, [picture("costs", figure, "MTrain-Converting in both readings over the best plan known.")]
