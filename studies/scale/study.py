"""Size against time, memory and gap: published heuristics, quick planners and exact methods on growing instances."""

from __future__ import annotations

from matplotlib.figure import Figure

from mapgap.records.runs import Runs
from mapgap.reporting import figures
from mapgap.reporting.report import Page, Picture, Section
from mapgap.reporting.study import Phase, Study
from mapgap.reporting.tables import Table
from mapgap.studies.scale import workers
from mapgap.studies.scale.ladder import LADDERS, MEMORY_MB, TIME_S, jobs, roles
from mapgap.studies.scale.tables import breaks, sizes

LEAST_S = 0.001
"""Shorter times are drawn as this."""
TICKS_S = (0.001, 0.01, 0.1, 1.0, 10.0)


def phases(quick: bool) -> list[Phase]:
    """All runs; the small version has one instance of the first size of every problem and no cluster."""
    found = [Phase(problem, list(jobs(problem, *((1, 1) if quick else ())))) for problem in LADDERS]
    return found if quick else [Phase("dask", workers.jobs()), *found]


def page(records: Runs, quick: bool) -> Page:
    """A table and a picture per problem, where each method breaks, and the runs on a cluster."""
    tables = {problem: sizes(problem, records) for problem in LADDERS}
    lead = [
        f"Generated instances of growing size, fresh seeds, {TIME_S:g} s, {MEMORY_MB} MB and one thread per run: the "
        "published heuristic, the quick planner, the strongest exact method, CP-SAT and MIP of every problem.",
        "A time limit is that of a clock on a wall, on a machine that did other things as well: methods that do not "
        "end by themselves would get further on a quiet one.",
    ]
    if quick:
        lead.append("The small version: one instance per problem.")
    sections = [
        Section("Where each method breaks", tables=[breaks(tables)]),
        Section("Sizes", tables=list(tables.values()), figures=[_picture(*item) for item in tables.items()]),
    ]
    if not quick:
        sections.append(Section("On a cluster", tables=[workers.table(records)]))
    return Page("Scale", lead, sections)


def _picture(problem: str, table: Table) -> Picture:
    """Median time by size, a line per role, over the sizes of the first series."""
    first = LADDERS[problem].rungs[0].series
    labels = [rung.size for rung in LADDERS[problem].rungs if rung.series == first]
    places = {size: float(place) for place, size in enumerate(labels)}
    lines: dict[str, list[tuple[float, float]]] = {role: [] for role in roles(problem)}
    for row in table.rows:
        if row["series"] == first:
            lines[row["role"]].append((places[row["size"]], max(row["time"], LEAST_S)))
    return Picture(f"time_{problem}", _drawn(problem, lines, labels), f"Median time of {problem} by size.")


def _drawn(problem: str, lines: dict[str, list[tuple[float, float]]], labels: list[str]) -> Figure:
    figure = figures.lines(lines, xlabel=LADDERS[problem].unit, ylabel="seconds", title=problem)
    ax = figure.axes[0]
    ax.set_yscale("log")
    ax.set_ylim(LEAST_S / 2, 2 * TIME_S)
    ax.set_yticks(TICKS_S, [f"{tick:g}" for tick in TICKS_S])
    ax.set_xticks(range(len(labels)), labels)
    ax.minorticks_off()
    return figure


STUDY = Study(
    name="scale",
    title="Size against time, memory and gap",
    problem="",
    phases=phases,
    page=page,
    headline=["breaks"],
)
