"""Figures of a report: SVG text that reads on light and dark pages. Pure functions of run records."""

from __future__ import annotations

import io
import math
from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from mapgap.core import printable
from mapgap.records.runs import Runs
from mapgap.reporting.analysis import profile
from mapgap.reporting.theme import COLOURS as COLOURS
from mapgap.reporting.theme import themed

mpl.use("Agg")

STYLES = ("-", "--", "-.", ":")
SECONDS = (0, 1, 3, 10, 30, 100, 300, 1000, 3000, 10000)  #: marks of a time axis
ONE_SIZE = 4  #: values are of one size if the largest is so many times the least
ROOM = 1.03  #: common ordinates of small pictures go up to so many times the largest value, for labels
WORDY = 24  #: characters below a small picture
MOST_LINES = 7  #: lines that a reader tells apart
FEW_GROUPS = 4  #: groups of bars whose names stand upright
FEW_TICKS = 10  #: counts that an axis shows one by one
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
WIDE, PANEL = 5.4, 2.9  #: inches of a picture and of one of several small ones; on a page 96 pixels are an inch
NARROWEST, WIDEST, STEP = 1.2, 4.8, 0.6  #: widths of lines in one picture, so that lines that coincide are all seen


def style(index: int) -> dict[str, Any]:
    """Colour and dash of the ``index``-th series; no two of the first forty are alike."""
    return {"color": COLOURS[index % len(COLOURS)], "linestyle": STYLES[index // len(COLOURS) % len(STYLES)]}


def svg(figure: Figure) -> str:
    """The figure as SVG text for a page (:mod:`mapgap.reporting.theme`), deterministic for equal data."""
    figure.patch.set_alpha(0)
    for ax in figure.axes:
        ax.patch.set_alpha(0)
    with mpl.rc_context({"svg.hashsalt": "mapgap", "svg.fonttype": "none", "font.family": "sans-serif"}):
        stream = io.StringIO()
        figure.savefig(stream, format="svg", metadata={"Date": None}, bbox_inches="tight", pad_inches=0.03)
    return themed(stream.getvalue())


def literal(text: Any) -> str:
    """Data in a picture: Matplotlib reads what stands between two dollar signs as mathematics."""
    return printable(str(text)).replace("$", r"\$")


def axes(width: float = 5.4, height: float = 3.2) -> tuple[Figure, Axes]:
    """A figure with one plain pair of axes."""
    figure = Figure(figsize=(width, height), layout="constrained")
    ax = figure.add_subplot()
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(alpha=0.3, linewidth=0.5)
    return figure, ax


def legend(ax: Axes, **more: Any) -> None:
    """A legend below the axes, so that it hides no line and the picture stays narrow."""
    handles, labels = ax.get_legend_handles_labels()
    if handles:
        figure = ax.get_figure(root=True)
        columns = _columns(labels, figure.get_figwidth() if figure is not None else WIDE)
        place = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.2), "frameon": False, "fontsize": 8}
        ax.legend(**(place | {"ncols": columns, "columnspacing": 1.2, "handlelength": 1.8} | more))


def _columns(labels: Sequence[str], inches: float) -> int:
    """Columns of a legend that fit into a width."""
    each = 0.075 * max(map(len, labels)) + 0.5
    return max(1, min(len(labels), int(inches / each)))


def small_multiples(drawn: Sequence[Figure]) -> list[str]:
    """Figures of one kind as small pictures with one common legend, which comes last; SVG texts.

    Each figure has one pair of axes, and is changed. The page sets them side by side as far as its width goes. They
    have one ordinate where their values are of one size.
    """
    handles: dict[str, Any] = {}
    for figure in drawn:
        for label, handle in _legend_of(figure.axes[0]).items():
            handles.setdefault(label, handle)
        _shrink(figure)
    limits = [figure.axes[0].get_ylim() for figure in drawn]
    tops = [high for _, high in limits]
    alike = len({figure.axes[0].get_ylabel() for figure in drawn}) == 1 and all(low < high for low, high in limits)
    if alike and max(tops) <= ONE_SIZE * min(tops):
        for figure in drawn:
            low = min(low for low, _ in limits)
            figure.axes[0].set_ylim(low, max(tops) if figure.axes[0].get_yscale() == "log" else ROOM * max(tops))
    found = [svg(figure) for figure in drawn]
    if handles:
        figure = Figure(figsize=(WIDE, 0.2))
        columns = _columns(list(handles), WIDE)
        figure.legend(handles.values(), handles, loc="center", ncols=columns, frameon=False, fontsize=8)
        found.append(svg(figure).replace("<svg ", '<svg class="legend" ', 1))
    return found


def _legend_of(ax: Axes) -> dict[str, Any]:
    """What the legend of axes explains; it is taken away."""
    shown = ax.get_legend()
    if shown is None:
        return {}
    found = {text.get_text(): each for text, each in zip(shown.get_texts(), shown.legend_handles, strict=True)}
    shown.remove()
    return found


def _shrink(figure: Figure) -> None:
    """A figure in the size of one of several."""
    ax = figure.axes[0]
    width, height = figure.get_size_inches()
    figure.set_size_inches(PANEL, PANEL * max(0.62, min(0.9, height / width)))
    ax.title.set_fontsize(9)
    for label in (ax.xaxis.label, ax.yaxis.label, *ax.get_xticklabels(), *ax.get_yticklabels()):
        label.set_fontsize(7.5)
    words = [label.get_text() for label in ax.get_xticklabels()]
    if sum(map(len, words)) > WORDY and not all(word.replace(".", "").isdigit() for word in words if word):
        for label in ax.get_xticklabels():
            label.set(rotation=35, ha="right", fontsize=6.5)
    for text in ax.texts:
        text.set_fontsize(6.5)
    for line in ax.lines:
        line.set_linewidth(0.7 * line.get_linewidth())
        line.set_markersize(0.7 * line.get_markersize())


def performance_profile(records: Runs) -> Figure:
    """Share of instances on which a method is within a factor of the best plan known (Dolan and Moré 2002)."""
    figure, ax = axes()
    curves = {method: ratios for method, ratios in profile(records).items() if ratios}
    finite = [x for ratios in curves.values() for x in ratios if math.isfinite(x)]
    limit = max(1.01, min(max(finite, default=1.0), 4.0)) * 1.02
    named = _named(curves, limit, {record.method for record in records if record.kind == "published"})
    for method, ratios in curves.items():
        xs, ys = [1.0], [0.0]
        for count, ratio in enumerate(ratios, 1):
            if math.isfinite(ratio):
                xs += [ratio, ratio]
                ys += [ys[-1], count / len(ratios)]
        if method in named:
            look: dict[str, Any] = {"label": literal(method), "linewidth": 1.7, **style(named.index(method))}
        else:
            look = {"label": "others" if len(named) < len(curves) else None, "linewidth": 0.7, "color": "#999999"}
        ax.plot([*xs, limit], [*ys, ys[-1]], zorder=3 if method in named else 1, **look)
    handles, labels = ax.get_legend_handles_labels()
    shown = dict(zip(labels, handles, strict=True))
    ax.set(xlim=(1.0, limit), ylim=(0, 1.03), xlabel="objective / best plan known", ylabel="share of instances")
    legend(ax, handles=list(shown.values()), labels=list(shown))
    return figure


def _named(curves: Mapping[str, Sequence[float]], limit: float, published: set[str]) -> list[str]:
    """The methods that a profile names: most of them published ones, best first by the area below their curves."""

    def area(method: str) -> float:
        return sum(limit - ratio for ratio in curves[method] if ratio < limit) / len(curves[method])

    order = sorted(curves, key=lambda method: (-area(method), method))
    if len(order) <= MOST_LINES:
        return order
    best = [method for method in order if method in published][: MOST_LINES // 2]
    best += [method for method in order if method not in best][: MOST_LINES - len(best)]
    return [method for method in order if method in best]


def gap_over_time(records: Runs, instance: str) -> Figure:
    """Incumbent and bound of every run on one instance over time, relative to the best plan known."""
    figure, ax = axes()
    chosen = [r for r in records if r.instance == instance and r.trace]
    best = next((f.best for f in records.facts.values() if f.name == instance), None)
    for index, record in enumerate(chosen):
        for field, dash in (("objective", "-"), ("bound", ":")):
            points = [(p.time_s, getattr(p, field)) for p in record.trace if getattr(p, field) is not None]
            if points and best:
                xs = [t for t, _ in points] + [max(record.wall_s or 0.0, points[-1][0])]
                ys = [100 * (v / best - 1) for _, v in points]
                label = f"{literal(record.method)} ({'plan' if field == 'objective' else 'bound'})"
                colour = COLOURS[index % len(COLOURS)]
                ax.step(
                    xs,
                    [*ys, ys[-1]],
                    where="post",
                    label=label,
                    linestyle=dash,
                    color=colour,
                    linewidth=1.5,
                    marker=".",
                )
    ax.set(xscale="symlog", xlabel="seconds", ylabel="distance to best plan [%]", title=literal(instance))
    ticks = [t for t in SECONDS if t <= ax.get_xlim()[1]]
    ax.set_xticks(ticks, [f"{t:g}" for t in ticks])
    ax.minorticks_off()
    ax.axhline(0, color="#888888", linewidth=0.6)
    legend(ax)
    return figure


def lines(
    series: Mapping[str, Sequence[tuple[float, float]]],
    *,
    xlabel: str,
    ylabel: str,
    title: str = "",
    logx: bool = False,
    looks: Mapping[str, Mapping[str, Any]] | None = None,
) -> Figure:
    """One line with markers per series of ``(x, y)`` points; later lines are narrower, so that none is hidden.

    An empty series keeps its colour and is not shown. ``looks`` sets colour, dash or marker of a series itself.
    """
    figure, ax = axes()
    step = min(STEP, (WIDEST - NARROWEST) / max(1, len(series) - 1))
    for index, (label, points) in enumerate(series.items()):
        if points:
            xs, ys = zip(*sorted(points), strict=True)
            width = NARROWEST + step * (len(series) - 1 - index)
            look: dict[str, Any] = {"marker": MARKERS[index % len(MARKERS)], "markersize": 3 + width, **style(index)}
            ax.plot(xs, ys, label=label, **(look | {"linewidth": width} | dict((looks or {}).get(label, {}))))
    ax.set(xlabel=xlabel, ylabel=ylabel, title=title)
    ticks = sorted({x for points in series.values() for x, _ in points})
    if logx:
        ax.set_xscale("log")
        ax.set_xticks(ticks, [f"{x:g}" for x in ticks])
        ax.minorticks_off()
    elif len(ticks) <= FEW_TICKS and all(float(x).is_integer() for x in ticks):
        ax.set_xticks(ticks, [f"{x:g}" for x in ticks])  # counts: none in between
    ax.set_ylim(bottom=0)
    legend(ax)
    return figure


def grouped_bars(
    groups: Sequence[str], series: Mapping[str, Sequence[float | None]], *, ylabel: str, title: str = ""
) -> Figure:
    """One group of bars per entry of ``groups``; a missing value leaves its place empty.

    A series without values keeps its colour and is not shown.
    """
    figure, ax = axes(max(4.0, min(WIDE, 0.9 * len(groups) + 2.5)))
    shown = [(index, label, values) for index, (label, values) in enumerate(series.items()) if any(values)]
    width = 0.8 / max(1, len(shown))
    for place, (index, label, values) in enumerate(shown):
        places = [g - 0.4 + width * (place + 0.5) for g in range(len(groups))]
        ax.bar(places, [v or 0.0 for v in values], width, label=label, color=COLOURS[index % len(COLOURS)])
    many = len(groups) > FEW_GROUPS
    ax.set_xticks(range(len(groups)), groups, rotation=30 if many else 0, ha="right" if many else "center")
    ax.set(ylabel=ylabel, title=title)
    legend(ax, **({"bbox_to_anchor": (0.5, -0.38)} if many else {}))
    return figure
