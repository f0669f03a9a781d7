"""Size against time, memory and gap: published heuristics, quick planners and exact methods on growing instances."""

from __future__ import annotations

from collections.abc import Mapping

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from mapgap.records.runs import Runs
from mapgap.reporting import figures
from mapgap.reporting.report import Page, Picture, Section
from mapgap.reporting.study import Phase, Study, load_told
from mapgap.reporting.tables import Table
from mapgap.studies.scale.ladder import LADDERS, MEMORY_MB, TIME_S, jobs, roles
from mapgap.studies.scale.tables import breaks, sizes

LEAST_S = 0.01
"""Shorter times are drawn as this."""
TICKS_S = (0.01, 0.1, 1.0, 10.0)
WORDY = 30
"""Characters of a panel's sizes from which on they are slanted."""


def phases(quick: bool) -> list[Phase]:
    """All runs; the small version has one instance of the first size of every problem."""
    return [Phase(problem, list(jobs(problem, *((1, 1) if quick else ())))) for problem in LADDERS]


def page(records: Runs, quick: bool) -> Page:
    """A table and a picture per problem, and where each method breaks."""
    tables = {problem: sizes(problem, records) for problem in LADDERS}
    lead = [
        f"Generated instances of growing size, fresh seeds, {TIME_S:g} s, {MEMORY_MB} MB and one thread per run: the "
        "published heuristic, the quick planner, the strongest exact method, CP-SAT and MIP of every problem.",
        f"{load_told(records)} A time limit is that of a clock on a wall: methods that do not end by themselves get "
        "further on a quiet machine.",
    ]
    if quick:
        lead.append("The small version: one instance per problem.")
    sections = [
        Section("Where each method breaks", tables=[breaks(tables)]),
        Section("Sizes", tables=list(tables.values()), figures=[_picture(tables)]),
    ]
    return Page("Scale", lead, sections)


def _picture(tables: Mapping[str, Table]) -> Picture:
    """Median time by size, a panel per problem and a line per role, over the sizes of the first series."""
    figure = Figure(figsize=(9.0, 5.6), layout="constrained")
    panels = figure.subplots(2, 3).flat
    for ax, (problem, table) in zip(panels, tables.items(), strict=False):
        _draw(ax, problem, table)
    handles, labels = figure.axes[0].get_legend_handles_labels()
    for ax in figure.axes[len(tables) :]:
        ax.axis("off")
        ax.legend(handles, labels, loc="center", frameon=False, fontsize=9)
    return Picture("time", figure, "Median time by size; hollow markers where a method breaks.")


def _draw(ax: Axes, problem: str, table: Table) -> None:
    """The panel of a problem."""
    first = LADDERS[problem].rungs[0].series
    labels = [rung.size for rung in LADDERS[problem].rungs if rung.series == first]
    for index, role in enumerate(roles(problem)):
        rows = [row for row in table.rows if row["series"] == first and row["role"] == role]
        xs = [labels.index(row["size"]) for row in rows]
        ys = [max(row["time"], LEAST_S) for row in rows]
        look = figures.style(index)
        ax.plot(xs, ys, label=role, linewidth=1.4, **look)
        for x, y, row in zip(xs, ys, rows, strict=True):
            face = "none" if row["breaks"] else look["color"]
            ax.plot(x, y, figures.MARKERS[index], markersize=5, markerfacecolor=face, color=look["color"])
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(alpha=0.3, linewidth=0.5)
    ax.set_yscale("log")
    ax.set(ylim=(LEAST_S / 2, 2 * TIME_S), ylabel="seconds")
    ax.set_title(problem, fontsize=9)
    ax.set_xlabel(LADDERS[problem].unit, fontsize=8)
    ax.set_yticks(TICKS_S, [f"{tick:g}" for tick in TICKS_S], fontsize=8)
    ax.set_xticks(range(len(labels)), labels, fontsize=7.5, rotation=20 if len("".join(labels)) > WORDY else 0)
    ax.minorticks_off()


STUDY = Study(
    name="scale", title="Size against time, memory and gap", problem="", phases=phases, page=page, headline=["breaks"]
)
