"""Whole networks: rule against optimum, fronts, sensitivity, and what holds across the fits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mapgap.records.runs import Runs
from mapgap.reporting import figures
from mapgap.reporting.report import Picture, picture
from mapgap.reporting.tables import Rows, Table, tabulated
from mapgap.studies.fpga_gpu_partition.experiments import (
    EXACT,
    FOLDS,
    LABELS,
    NETWORKS,
    OTHERS,
    PATTERNS,
    POINTS,
    RULES,
    SHUFFLENET,
    depthwise_instance,
    instance_of,
    library_name,
    patterns_instance,
    variant_name,
)
from mapgap.studies.fpga_gpu_partition.plans import Terms, front_of, gain, reference, repriced, terms_of

TITLES = {"paper_rule": "rule", "paper_rule_folded": "rule, folded", "greedy": "greedy", EXACT: "optimum"}
ALL = {**NETWORKS, **OTHERS}
AXES = {
    "bandwidth": ("GB/s", "Energy gain over the link's bandwidth (paper: 2.5 GB/s)."),
    "setup": ("multiple of the fitted set-up time", "Energy gain over the time of a transfer before its bytes."),
    "fabric": ("multiple of the Cyclone 10 GX", "Energy gain over multipliers and M20K blocks."),
}


def _cases(networks: Mapping[str, tuple[str, str]] = ALL) -> list[tuple[str, str, int]]:
    """Key and title of every network, and its largest fold."""
    return [(network, title, fold) for network, (title, _) in networks.items() for fold in FOLDS]


def rule_above(runs: Runs, name: str, best: Terms) -> float | None:
    """Percent by which the energy of the better rule's plan is above that of the optimum."""
    rules = [terms["energy"] for method in RULES[:2] if (terms := terms_of(runs, name, method)) is not None]
    return 100 * (min(rules) / best["energy"] - 1) if rules else None


@tabulated(
    "networks",
    "Whole networks: the paper's rule against the optimum",
    "network | fold: largest fold | "
    + " | ".join(f"{method}: {title}, energy gain; .3f" for method, title in TITLES.items())
    + "| speedup: optimum, speed-up; .3f | gap: better rule above optimum [%]; .1f | on_front: a rule is on the front "
    "| fits: whole network on the FPGA",
    "Gains over GPU only, least energy, first fit. Fold 1 is direct hardware mapping as published. The rule is "
    "Fig. 2's patterns in module order; the paper gives patterns, not an algorithm.",
)
def networks_table(runs: Runs) -> Rows:
    """Energy gain of the rule, of greedy and of the optimum on every network."""
    for network, title, fold in _cases():
        name, instance = library_name(network, fold), instance_of(network, fold)
        best = terms_of(runs, name, EXACT)
        if best is None:
            continue
        plans = {method: terms_of(runs, name, method) for method in TITLES}
        row: dict[str, Any] = {m: p and gain(instance, p, "energy") for m, p in plans.items()}
        if runs.get(name, "fpga_only") is not None:
            row["fits"] = "no" if terms_of(runs, name, "fpga_only") is None else "yes"
        row |= {"network": title, "fold": fold, "speedup": gain(instance, best, "latency")}
        front = front_of(runs, name)
        points = [(plan["energy"], plan["latency"]) for m in RULES[:2] if (plan := plans[m]) is not None]
        on_front = None if front is None else "yes" if any(point in front for point in points) else "no"
        yield row | {"gap": rule_above(runs, name, best), "on_front": on_front}


def front_pictures(runs: Runs) -> list[Picture]:
    """The exact front of every network with the heuristics' points in it."""
    found = []
    for network, title, fold in _cases():
        name = library_name(network, fold)
        front = front_of(runs, name)
        if front is None or (network in OTHERS and fold != FOLDS[-1]):
            continue
        points = {"GPU only": reference(instance_of(network, fold))}
        for method in (*RULES, "fpga_only"):
            if (terms := terms_of(runs, name, method)) is not None:
                points[TITLES.get(method, method)] = (terms["energy"], terms["latency"])
        figure, ax = figures.axes(6.4, 3.6)
        look: dict[str, Any] = {"label": f"exact front ({len(front)})", "drawstyle": "steps-post", "markersize": 4}
        xs, ys = ([point[k] / 1000 for point in front] for k in (0, 1))
        ax.plot(xs, ys, "o-", color=figures.COLOURS[0], **look)
        for index, (label, (energy, latency)) in enumerate(points.items(), 1):
            look = {"label": label, "markersize": 7, "fillstyle": "none", "color": figures.COLOURS[index]}
            ax.plot([energy / 1000], [latency / 1000], "sDv^P"[index - 1], **look)
        ax.set(xlabel="energy [mJ]", ylabel="latency [ms]", title=f"{title}, largest fold {fold}")
        figures.legend(ax)
        found.append(picture(f"front_{network}_fold{fold}", figure, "Every point of the front is proven."))
    return found


@tabulated(
    "fronts",
    "Exact fronts, first fit",
    "network | fold: largest fold | points | least_e: least energy [mJ]; .1f | least_l: least latency [ms]; .1f "
    "| spread_e: energy along the front [%]; .1f | spread_l: latency along the front [%]; .1f",
    "A front of one point: nothing to trade.",
)
def front_table(runs: Runs) -> Rows:
    """Points and ends of every front."""
    for network, title, fold in _cases():
        if (front := front_of(runs, library_name(network, fold))) is not None:
            row = {"network": title, "fold": fold, "points": len(front)}
            for key, values in zip("el", zip(*front, strict=True), strict=True):
                row |= {f"least_{key}": min(values) / 1000, f"spread_{key}": 100 * (max(values) / min(values) - 1)}
            yield row


@tabulated(
    "sensitivity",
    "When does the FPGA stop paying?",
    "axis: varied | value; g | network | energy: optimum, energy gain; .3f | speed: its speed-up; .3f "
    "| rule: rule (folded), energy gain; .3f | used: multipliers used | transfers",
    "Bandwidth in GB/s; set-up time and fabric as multiples. Largest fold 4, least energy, first fit. The "
    "rule's plan does not depend on the link; it is priced again, and left out where the fabric changes.",
)
def sensitivity_table(runs: Runs) -> Rows:
    """Energy gain of the optimum over bandwidth, set-up time and fabric."""
    for axis, network in ((axis, network) for axis in AXES for network in NETWORKS):
        for value in POINTS[axis]:
            variant = variant_name(axis, value)
            best = terms_of(runs, library_name(network, 4, variant), LABELS if variant else EXACT)
            if best is None:
                continue
            instance = instance_of(network, 4, variant)
            same = axis != "fabric" or value == 1.0
            ruled = repriced(runs, library_name(network, 4), "paper_rule_folded", instance) if same else None
            row = {"axis": axis, "value": value, "network": NETWORKS[network][0]}
            row |= {"energy": gain(instance, best, "energy"), "speed": gain(instance, best, "latency")}
            row |= {"rule": None if ruled is None else gain(instance, ruled, "energy")}
            yield row | {"used": best["multipliers"], "transfers": best["transfers"]}


def sensitivity(runs: Runs) -> tuple[Table, list[Picture]]:
    """The table, and where the FPGA stops paying as a picture per axis."""
    table, pictures = sensitivity_table(runs), []
    for axis, (label, caption) in AXES.items():
        series: dict[str, list[tuple[float, float]]] = {}
        for row in table.rows:
            for key, title in (("energy", "optimum"), ("rule", "rule")):
                if row["axis"] == axis and row[key] is not None:
                    series.setdefault(f"{row['network']}, {title}", []).append((row["value"], row[key]))
        if series:
            figure = figures.lines(series, xlabel=label, ylabel="energy gain", logx=axis != "setup")
            figure.axes[0].axhline(1.0, color="#888888", linewidth=0.8)
            pictures.append(picture(f"sensitivity_{axis}", figure, caption))
    return table, pictures


@tabulated(
    "patterns",
    "Do the patterns lose, or the rule?",
    "network | fold: largest fold | reading: units with reduction | inside: best within the patterns, energy gain; .3f "
    "| best: optimum, energy gain; .3f | rule_loss: better rule above optimum [%]; .1f "
    "| patterns_loss: best within the patterns above optimum [%]; .1f",
    "Least energy, first fit; all proven. Within the patterns: layers that Fig. 2 puts on the FPGA may go there, "
    "with any fold and share, all others stay on the GPU. What is lost there no rule that keeps to the patterns "
    "can win back. In the last reading depthwise layers may be split by channels.",
)
def patterns_table(runs: Runs) -> Rows:
    """The rule, the best plan within the paper's patterns, and the optimum: do the patterns lose, or the rule?"""
    for network, title, fold in _cases(NETWORKS):
        for reading in PATTERNS if network == SHUFFLENET else ("",):
            whole = depthwise_instance(fold) if reading else instance_of(network, fold)
            inside = terms_of(runs, patterns_instance(network, fold, reading).name, LABELS)
            best = terms_of(runs, whole.name, LABELS if reading else EXACT)
            if inside is not None and best is not None:
                row = {"network": title, "fold": fold, "reading": PATTERNS[reading]}
                row |= {"inside": gain(whole, inside, "energy"), "best": gain(whole, best, "energy")}
                row |= {"rule_loss": None if reading else rule_above(runs, whole.name, best)}
                yield row | {"patterns_loss": 100 * (inside["energy"] / best["energy"] - 1)}
