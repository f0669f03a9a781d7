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
from mapgap.records.record import relative
from mapgap.records.runs import Runs
from mapgap.reporting.analysis import profile

mpl.use("Agg")

#: Colours that stay apart in print and for the colour-blind (Okabe and Ito), without the pale yellow.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#555555", "#8B5A2B", "#6A3D9A", "#B22222")
STYLES = ("-", "--", "-.", ":")
SECONDS = (0, 1, 3, 10, 30, 100, 300, 1000, 3000, 10000)  #: marks of a time axis
FEW_TICKS = 10  #: counts that an axis shows one by one
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
NARROWEST, WIDEST, STEP = 1.2, 4.8, 0.6  #: widths of lines in one picture, so that lines that coincide are all seen


def style(index: int) -> dict[str, Any]:
    """Colour and dash of the ``index``-th series; no two of the first forty are alike."""
    return {"color": COLOURS[index % len(COLOURS)], "linestyle": STYLES[index // len(COLOURS) % len(STYLES)]}


def svg(figure: Figure) -> str:
    """The figure as SVG text without XML prolog, deterministic for equal data."""
    with mpl.rc_context({"svg.hashsalt": "mapgap", "svg.fonttype": "none", "font.family": "sans-serif"}):
        stream = io.StringIO()
        figure.savefig(stream, format="svg", metadata={"Date": None}, bbox_inches="tight")
    text = stream.getvalue()
    return text[text.index("<svg") :]


def literal(text: Any) -> str:
    """Data in a picture: Matplotlib reads what stands between two dollar signs as mathematics."""
    return printable(str(text)).replace("$", r"\$")


def axes(width: float = 7.0, height: float = 3.6) -> tuple[Figure, Axes]:
    """A figure with one plain pair of axes."""
    figure = Figure(figsize=(width, height), layout="constrained")
    ax = figure.add_subplot()
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(alpha=0.3, linewidth=0.5)
    return figure, ax


def legend(ax: Axes, **more: Any) -> None:
    """A legend outside the axes, so that it never hides a line."""
    if ax.get_legend_handles_labels()[0]:
        ax.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0), frameon=False, fontsize=8, **more)


def performance_profile(records: Runs) -> Figure:
    """Share of instances on which a method is within a factor of the best plan known (Dolan and Moré 2002)."""
    figure, ax = axes()
    curves = profile(records)
    finite = [x for ratios in curves.values() for x in ratios if math.isfinite(x)]
    limit = max(1.01, min(max(finite, default=1.0), 4.0)) * 1.02
    for index, (method, ratios) in enumerate(curves.items()):
        if not ratios:
            continue
        xs, ys = [1.0], [0.0]
        for count, ratio in enumerate(ratios, 1):
            if math.isfinite(ratio):
                xs += [ratio, ratio]
                ys += [ys[-1], count / len(ratios)]
        ax.plot([*xs, limit], [*ys, ys[-1]], label=literal(method), linewidth=1.6, **style(index))
    ax.set(xlim=(1.0, limit), ylim=(0, 1.03), xlabel="objective / best plan known", ylabel="share of instances")
    legend(ax)
    return figure


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


def gap_per_method(records: Runs) -> Figure:
    """Every plan's gap to the best proven bound, one dot per instance, a bar at the median."""
    known = records.facts
    groups: dict[str, list[float]] = {}
    for record in records.measured:
        gap = relative(record.objective, known[record.instance_hash].bound, record.sign)
        if gap is not None and not record.error:
            groups.setdefault(record.method, []).append(100 * gap)
    order = sorted(groups, key=lambda m: sorted(groups[m])[len(groups[m]) // 2], reverse=True)
    figure, ax = axes(7.0, 0.9 + 0.34 * max(1, len(order)))
    for y, method in enumerate(order):
        values = sorted(groups[method])
        ax.plot(values, [y] * len(values), "o", color=COLOURS[0], alpha=0.45, markersize=4)
        ax.plot([values[len(values) // 2]], [y], "|", color=COLOURS[1], markersize=16, markeredgewidth=2)
    ax.set_yticks(range(len(order)), [literal(method) for method in order])
    ax.set(xscale="symlog", xlabel="gap to the best proven bound [%] (bar: median)")
    ax.set_xlim(left=-0.05)
    return figure


def losses(rows: Sequence[Mapping[str, Any]]) -> Figure:
    """Rows of :func:`mapgap.reporting.analysis.glance`: per heuristic the interval of its mean loss, and the worst
    instance."""
    shown = [row for row in rows if row["at_least"] is not None]
    figure, ax = axes(7.6, 0.9 + 0.26 * max(1, len(shown)))
    problems = list(dict.fromkeys(row["problem"] for row in shown))
    for y, row in enumerate(reversed(shown)):
        colour = COLOURS[problems.index(row["problem"]) % len(COLOURS)]
        low, high = row["at_least"], row["at_most"] if row["at_most"] is not None else row["at_least"]
        ax.plot([low, high], [y, y], "-", color=colour, linewidth=4, solid_capstyle="round")
        ax.plot([low], [y], "o", color=colour, markersize=5, label=None)
        if row["worst"] is not None:
            ax.plot([row["worst"]], [y], "x", color=colour, markersize=5)
        if row["nothing"]:
            text = f"nothing on {row['nothing']} of {row['instances']}"
            ax.annotate(text, (max(high, row["worst"] or 0.0), y), (6, -3), textcoords="offset points", fontsize=7)
    ax.set_yticks(range(len(shown)), [literal(row["method"]) for row in reversed(shown)], fontsize=8)
    for problem in problems:
        ax.plot([], [], "o-", color=COLOURS[problems.index(problem) % len(COLOURS)], label=literal(problem))
    ax.plot([], [], "kx", label="worst instance")
    ax.set(xscale="symlog", xlabel="mean loss [%], from the best plan known to the best proven bound")
    ax.set_xlim(left=-0.05)
    ax.margins(x=0.12, y=0.02)
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
    figure, ax = axes(6.4, 3.4)
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
    figure, ax = axes(max(5.0, 0.9 * len(groups) + 2.5), 3.4)
    shown = [(index, label, values) for index, (label, values) in enumerate(series.items()) if any(values)]
    width = 0.8 / max(1, len(shown))
    for place, (index, label, values) in enumerate(shown):
        places = [g - 0.4 + width * (place + 0.5) for g in range(len(groups))]
        ax.bar(places, [v or 0.0 for v in values], width, label=label, color=COLOURS[index % len(COLOURS)])
    ax.set_xticks(
        range(len(groups)), groups, rotation=30 if len(groups) > 4 else 0, ha="right" if len(groups) > 4 else "center"
    )
    ax.set(ylabel=ylabel, title=title)
    legend(ax)
    return figure
