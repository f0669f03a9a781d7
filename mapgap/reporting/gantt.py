"""Gantt charts of plans: one lane per device, colour by group, moved data lighter and hatched."""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from mapgap.core import GanttBar, GanttLane, InputError, InstanceBase, PlanBase, Problem
from mapgap.core.storage import replace_file
from mapgap.reporting.figures import literal
from mapgap.reporting.theme import COLOURS, INK, PAPER

SUFFIXES = (".svg", ".png", ".pdf")
FONT_PT = 7.0
LANE_INCH, WIDTH_INCH = 0.75, 11.0
MOST_NAMED = 12
"""Groups that a legend below the axes names."""
_CHARACTER = 0.62  # mean width of a character over the font size
_SEVERAL = 0.6  # height of a lane where there are several charts over that of one
_BAR = 0.8  # height of a bar over the height of a lane


def chart(lanes: Sequence[GanttLane], title: str = "") -> Figure:
    """Draw lanes from top to bottom.

    Parameters
    ----------
    lanes : sequence of GanttLane
        Times in seconds; the axis is in s, ms or µs, whichever keeps the numbers readable.
    title : str
    """
    return charts([(title, lanes)])


def charts(plans: Sequence[tuple[str, Sequence[GanttLane]]], width: float = WIDTH_INCH) -> Figure:
    """Several plans with their titles, one above the other, on one time axis and with one legend.

    Parameters
    ----------
    width : float
        Inches.
    """
    every = [bar for _, lanes in plans for lane in lanes for bar in lane.bars]
    end = max((bar.end for bar in every), default=0.0)
    unit, scale = _unit(end)
    colours = _colours(every)
    counts = [max(len(lanes), 1) for _, lanes in plans]
    height = LANE_INCH * sum(counts) * (1 if len(plans) == 1 else _SEVERAL) + 0.8 + 0.4 * len(plans)
    figure = Figure(figsize=(width, height), layout="constrained")
    points = width * 72 * 0.82 / (end * scale or 1.0)  # per unit of time, less margins and legend
    found = figure.subplots(len(plans), 1, sharex=True, squeeze=False, height_ratios=counts)[:, 0]
    for ax, (title, lanes) in zip(found, plans, strict=True):
        for row, lane in enumerate(lanes):
            for bar in lane.bars:
                _draw(ax, row, bar, colours[bar.group], scale, points)
        ax.set_xlim(0, end * scale or 1.0)
        ax.set_ylim(max(len(lanes), 1) - 0.5, -0.5)
        ax.set_yticks(range(len(lanes)), [literal(lane.name) for lane in lanes])
        ax.tick_params(axis="y", length=0)
        ax.xaxis.set_major_locator(MaxNLocator(10 if width > WIDTH_INCH / 2 else 5))
        ax.grid(axis="x", alpha=0.3, linewidth=0.5)
        ax.set_axisbelow(True)
        ax.spines[["top", "right", "left"]].set_visible(False)
        if title:
            ax.set_title(literal(title), loc="left", fontsize=10)
    found[-1].set_xlabel(f"time ({unit})")
    _legend(found[-1], every, colours, narrow=len(plans) > 1)
    return figure


def _colours(bars: Iterable[GanttBar]) -> dict[str, str]:
    """A colour per group; charts of two plans of one instance agree in theirs, if there are enough."""
    by_time = sorted(bars, key=lambda bar: (bar.start, bar.end))
    groups = list(dict.fromkeys(bar.group for bar in by_time))
    if len(groups) <= len(COLOURS):
        groups.sort()
    return {group: COLOURS[i % len(COLOURS)] for i, group in enumerate(groups)}


def _legend(ax: Axes, bars: Iterable[GanttBar], colours: Mapping[str, str], *, narrow: bool) -> None:
    """Groups and the hatching; beside the axes, or below them where there is no room."""
    handles = [Patch(facecolor=colour, label=literal(group)) for group, colour in colours.items()]
    if any(bar.transfer > 0 for bar in bars):
        handles.append(Patch(facecolor="#dddddd", edgecolor="#777777", hatch="////", label="data transfer"))
    if not handles:
        return
    if narrow and len(handles) > MOST_NAMED:  # the labels on the bars say it
        return
    if narrow:
        figure = ax.get_figure(root=True)
        assert figure is not None
        figure.legend(handles=handles, loc="outside lower center", ncols=6, frameon=False, fontsize=8)
    else:
        ax.legend(handles=handles, loc="upper left", bbox_to_anchor=(1.005, 1.0), frameon=False, fontsize=8)


def _unit(seconds: float) -> tuple[str, float]:
    if seconds >= 1.0:
        return "s", 1.0
    return ("ms", 1e3) if seconds >= 1e-3 else ("µs", 1e6)


def _draw(ax: Axes, row: int, bar: GanttBar, colour: str, scale: float, points: float) -> None:
    """One bar, its transfer part first; the label on its computing part: across, else upright, else none."""
    start, length, moved = bar.start * scale, (bar.end - bar.start) * scale, bar.transfer * scale
    edge = min(0.4, 0.15 * length * points)  # hair lines must not hide hair-thin bars
    ax.barh(row, length - moved, _BAR, start + moved, color=colour, edgecolor=PAPER, linewidth=edge)
    if moved > 0:
        hatch = "////" if moved * points > 3 else None
        with mpl.rc_context({"hatch.linewidth": 0.5}):
            ax.barh(row, moved, _BAR, start, color=_light(colour), edgecolor=colour, linewidth=edge / 2, hatch=hatch)
    label = bar.label.removeprefix(f"{bar.group}/")
    text_pt = len(label) * FONT_PT * _CHARACTER + 2
    width = (length - moved) * points
    upright = text_pt > width
    if upright and (width < FONT_PT or text_pt > LANE_INCH * 72 * _BAR):
        return
    text = ax.text(
        start + (length + moved) / 2, row, literal(label), ha="center", va="center", fontsize=FONT_PT, clip_on=True
    )
    text.set_rotation(90 if upright else 0)
    text.set_color(PAPER if _is_dark(colour) else INK)


def _light(colour: str) -> tuple[float, float, float]:
    red, green, blue = mpl.colors.to_rgb(colour)
    return (0.65 + 0.35 * red, 0.65 + 0.35 * green, 0.65 + 0.35 * blue)


def _is_dark(colour: str) -> bool:
    red, green, blue = mpl.colors.to_rgb(colour)
    return 0.299 * red + 0.587 * green + 0.114 * blue < 0.5


def plan_chart(problem: Problem, instance: InstanceBase, plan: PlanBase, title: str = "") -> Figure:
    """The chart of a plan.

    Raises
    ------
    InputError
        The problem has no chart, or the plan has no timetable.
    """
    if problem.gantt is None:
        raise InputError(f"--gantt: expected a problem with a chart, {problem.name} has none")
    lanes = problem.gantt(instance, plan)
    if not lanes:
        raise InputError("--gantt: expected a plan with a timetable; this one has none")
    return chart(lanes, title)


def check_suffix(path: Path, flag: str = "--gantt") -> None:
    """Refuse a file name whose suffix is no picture format.

    Raises
    ------
    InputError
    """
    if path.suffix.lower() not in SUFFIXES:
        raise InputError(f"{flag} {path}: expected a file name in {', '.join(SUFFIXES)}")


def save(figure: Figure, path: Path) -> Path:
    """Write a chart as SVG, PNG or PDF by its suffix; equal plans make equal files."""
    check_suffix(path)
    metadata = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}.get(path.suffix.lower(), {})
    stream = io.BytesIO()
    with mpl.rc_context({"svg.hashsalt": "mapgap", "svg.fonttype": "none"}):
        form = path.suffix.lower().removeprefix(".")
        figure.savefig(stream, format=form, dpi=150, metadata=metadata, bbox_inches="tight")
    replace_file(path, stream.getvalue(), parents=False)
    return path
