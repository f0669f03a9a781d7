"""Figures of the study of hybrid pipelines: plans as in Asteroid's Fig. 12, memory, waterfalls."""

from __future__ import annotations

from typing import Any

from matplotlib.figure import Figure

from mapgap.problems.hybrid_pipeline import Instance, Plan
from mapgap.reporting import figures


def plan_figure(instance: Instance, plan: Plan, title: str) -> Figure:
    """Stages over the layers, one row per device, with the device's share of a micro-batch."""
    figure, ax = figures.axes(8.0, 1.0 + 0.36 * len(instance.devices))
    for p, stage in enumerate(plan.stages):
        for device, share in zip(stage.devices, stage.shares, strict=True):
            ax.barh(device, stage.stop - stage.start, left=stage.start, height=0.7, color=figures.COLOURS[p % 6])
            narrow = stage.stop - stage.start < 0.04 * len(instance.layers)  # the number stands beside the bar
            place, side = (stage.start, "right") if narrow else ((stage.start + stage.stop) / 2, "center")
            colour = "black" if narrow else "white"
            text = f"{share} " if narrow else str(share)
            ax.text(place, device, text, ha=side, va="center", fontsize=8, color=colour)
    ax.set_yticks(range(len(instance.devices)), [device.name for device in instance.devices])
    ax.set_ylim(len(instance.devices) - 0.5, -0.5)  # idle devices have a row, too
    ax.set(xlim=(0, len(instance.layers)), xlabel="layer (colour: stage; number: samples)", title=title)
    return figure


def memory_figure(instance: Instance, peaks: dict[str, dict[str, int]]) -> Figure:
    """Peak memory per device and method against the capacity (grey)."""
    names = [device.name for device in instance.devices]
    unit = instance.memory_unit_bytes / 1e9
    figure, ax = figures.axes(max(5.0, 0.9 * len(names) + 2.5), 3.2)
    capacity = [instance.device_type(d).memory * unit for d in range(len(names))]
    ax.bar(range(len(names)), capacity, 0.9, color="#bbbbbb", alpha=0.5, label="capacity")
    width = 0.8 / max(1, len(peaks))
    for k, (method, peak) in enumerate(peaks.items()):
        places = [g - 0.4 + width * (k + 0.5) for g in range(len(names))]
        ax.bar(places, [peak.get(n, 0) * unit for n in names], width, label=method, color=figures.COLOURS[k])
    ax.set_xticks(range(len(names)), names)
    ax.set(ylabel="GB")
    figures.legend(ax)
    return figure


def policy_figure(rows: list[dict[str, Any]]) -> Figure:
    """Throughput (half and full duplex) and peak memory of 1F1B policies side by side, as in Fig. 15(b), right."""
    figure = Figure(figsize=(8.0, 3.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    places = range(len(rows))
    labels = [f"{row['policy']}\n{row['kept']}" for row in rows]
    for k, (key, name) in enumerate((("half", "half duplex"), ("full", "full duplex"))):
        left.bar([g - 0.2 + 0.4 * k for g in places], [r[key] for r in rows], 0.4, label=name, color=figures.COLOURS[k])
    right.bar(places, [row["memory"] for row in rows], 0.5, color=figures.COLOURS[2])
    left.set_ylim(top=1.25 * max(row["full"] for row in rows))
    left.legend(loc="upper center", ncols=2, frameon=False, fontsize=8)
    for ax, text in ((left, "samples per second"), (right, "peak memory [GB]")):
        ax.set_xticks(places, labels, fontsize=7)
        ax.set(ylabel=text)
        ax.spines[["top", "right"]].set_visible(False)
        ax.grid(alpha=0.3, linewidth=0.5, axis="y")
        ax.set_axisbelow(True)
    return figure


def cost_figure(series: dict[str, list[tuple[float, float]]], xlabel: str) -> Figure:
    """Milliseconds of planning against a size, both logarithmic."""
    figure = figures.lines(series, xlabel=xlabel, ylabel="planning [ms CPU]", logx=True)
    ax = figure.axes[0]
    lowest = min(y for points in series.values() for _, y in points)
    ax.set_ylim(bottom=0.5 * lowest)
    ax.set_yscale("log")
    return figure


def outage_figure(corners: dict[str, list[list[float]]], title: str) -> Figure:
    """Throughput over time around a failure, one line per way of re-planning."""
    figure, ax = figures.axes(8.0, 3.2)
    stop = next(iter(corners.values()))[1][0]
    resumed = max(points[3][0] for points in corners.values())
    for index, (name, points) in enumerate(corners.items()):
        xs, ys = zip(*points, strict=True)
        ax.plot(xs, ys, label=name, linewidth=1.6, color=figures.COLOURS[index], linestyle=figures.STYLES[index % 4])
    ax.set(xlim=(stop - 3, resumed + 4), xlabel="seconds", ylabel="samples per second", title=title)
    ax.set_ylim(bottom=0)
    figures.legend(ax)
    return figure


def _signed(value: float) -> str:
    return f"{value:+.1f}" if abs(value) >= 0.05 else "0"


def waterfall(steps: list[tuple[str, float]], totals: set[int], title: str) -> Figure:
    """Bars from 0 for the positions in ``totals``; every other step shows what it removes or adds, in percent."""
    figure, ax = figures.axes(8.0, 3.4)
    level = steps[0][1]
    for k, (_, value) in enumerate(steps):
        total = k in totals
        bottom = 0.0 if total else min(level, value)
        height = value if total else abs(level - value)
        ax.bar(k, height, 0.6, bottom=bottom, color=figures.COLOURS[0 if total else 1])
        ax.text(k, bottom + height, f"{value:.1f}" if total else _signed(value - level), ha="center", va="bottom")
        level = value
    ax.set_xticks(range(len(steps)), [name.replace(" and ", " and\n") for name, _ in steps], fontsize=7)
    low = min(value for _, value in steps)
    ax.set(ylim=(max(0.0, low - 10), max(v for _, v in steps) + 4), title=title)
    ax.set_ylabel("latency, optimum = 100 (axis cut)")
    return figure
