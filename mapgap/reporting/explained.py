"""The picture of an explanation: two plans on one time axis, what binds in colour, the way from one to the other."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import StrMethodFormatter

from mapgap.core import GanttLane
from mapgap.evidence.explain import Explanation
from mapgap.reporting.figures import COLOURS, literal

BINDS, OTHER, GAIN, LOSS = COLOURS[1], "#b8bec6", COLOURS[2], COLOURS[1]
LANE_INCH, STEP_INCH = 0.3, 0.26
LONGEST = 56  #: characters of a label


def picture(found: Explanation) -> Figure:
    """Charts of the plan and of the best one known, and a waterfall of the decisions between them."""
    charts = []
    if found.problem.gantt is not None:
        told = found.problem.explain
        assert told is not None
        charts.append(
            (f"{found.method}: {found.value:,}", found.problem.gantt(found.instance, found.plan), found.binding.bars)
        )
        if found.steps:
            bars = told.binding(found.instance, found.best).bars
            charts.append((f"best known: {found.optimum:,}", found.problem.gantt(found.instance, found.best), bars))
    charts = [(title, lanes, bars) for title, lanes, bars in charts if lanes]
    heights = [LANE_INCH * len(lanes) + 0.7 for _, lanes, _ in charts]
    if found.steps:
        heights.append(STEP_INCH * (len(found.steps) + 2) + 0.8)
    figure = Figure(figsize=(10.0, sum(heights) or 1.0), layout="constrained")
    axes = figure.subplots(len(heights) or 1, 1, squeeze=False, height_ratios=heights or None)[:, 0]
    end = max((bar.end for _, lanes, _ in charts for lane in lanes for bar in lane.bars), default=0.0)
    for ax, (title, lanes, bars) in zip(axes, charts, strict=False):
        _lanes(ax, title, lanes, bars, end)
    if found.steps:
        _waterfall(axes[-1], found)
    return figure


def _lanes(ax: Axes, title: str, lanes: Sequence[GanttLane], binds: frozenset[tuple[str, str]], end: float) -> None:
    unit, scale = ("s", 1.0) if end >= 1 else ("ms", 1e3) if end >= 1e-3 else ("µs", 1e6)
    for row, lane in enumerate(lanes):
        for colour, meant in ((OTHER, False), (BINDS, True)):
            own = [bar for bar in lane.bars if ((lane.name, bar.label) in binds) is meant]
            spans = [(bar.start * scale, (bar.end - bar.start) * scale) for bar in own]
            ax.broken_barh(spans, (row - 0.4, 0.8), facecolors=colour, edgecolor="white", linewidth=0.2)
    ax.set_xlim(0, end * scale or 1.0)
    ax.set_ylim(max(len(lanes), 1) - 0.5, -0.5)
    ax.set_yticks(range(len(lanes)), [literal(lane.name) for lane in lanes], fontsize=8)
    ax.tick_params(axis="y", length=0)
    ax.tick_params(axis="x", labelsize=8)
    ax.set_xlabel(f"time ({unit})", fontsize=8)
    ax.set_title(literal(f"{title} (what binds is coloured)"), loc="left", fontsize=9)
    ax.spines[["top", "right", "left"]].set_visible(False)


def _waterfall(ax: Axes, found: Explanation) -> None:
    """One bar per decision; those that break a rule on the way have no value and no bar."""
    rows = [("", found.value, found.value)]
    last = found.value
    for step in found.steps:
        rows.append((step.label, last, step.value if step.value is not None else last))
        last = rows[-1][2]
    labels = [found.method, *(label for label, *_ in rows[1:]), "best known"]
    for row, (_, before, after) in enumerate(rows):
        if row:
            better = found.sign * (before - after) >= 0
            ax.barh(row, after - before, 0.7, before, color=GAIN if better else LOSS)
            if before == after:
                ax.plot([after, after], [row - 0.35, row + 0.35], color=OTHER, linewidth=2)
    span = [value for _, *pair in rows for value in pair]
    low, high = min(span), max(span)
    room = 0.15 * (high - low or 1)
    for row, value in ((0, found.value), (len(rows), found.optimum)):
        ax.barh(row, value - low + room, 0.7, low - room, color=OTHER)
    ax.set_xlim(low - room, high + room)
    ax.set_yticks(range(len(labels)), [literal(_cut(label)) for label in labels], fontsize=7)
    ax.invert_yaxis()
    ax.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    ax.tick_params(axis="x", labelsize=8)
    ax.set_xlabel(literal(f"objective ({found.problem.unit(found.instance)})"), fontsize=8)
    ax.set_title("one decision after the other taken from the best plan", loc="left", fontsize=9)
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(axis="x", alpha=0.3, linewidth=0.5)
    ax.set_axisbelow(True)


def _cut(label: str) -> str:
    return label if len(label) <= LONGEST else f"{label[: LONGEST - 1]}…"
