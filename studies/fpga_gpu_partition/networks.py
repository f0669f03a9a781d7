"""Whole networks: rule against optimum, fronts, sensitivity, and what holds across the fits."""

from __future__ import annotations

from typing import Any

from mapgap.records.runs import Runs
from mapgap.reporting import figures
from mapgap.reporting.report import Picture, picture
from mapgap.reporting.tables import Column, Rows, Table, header, tabulated
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
from mapgap.studies.fpga_gpu_partition.plans import front_of, gain, reference, repriced, terms_of

TITLES = {"paper_rule": "rule", "paper_rule_folded": "rule, folded", "greedy": "greedy", EXACT: "optimum"}
AXES = {
    "bandwidth": ("GB/s", "Energy gain over the link's bandwidth (paper: 2.5 GB/s)."),
    "setup": ("multiple of the fitted set-up time", "Energy gain over the time of a transfer before its bytes."),
    "fabric": ("multiple of the Cyclone 10 GX", "Energy gain over multipliers and M20K blocks."),
}


def networks_table(runs: Runs) -> Table:
    """Energy gain of the rule, of greedy and of the optimum on every network."""
    rows = []
    for network, (title, _) in {**NETWORKS, **OTHERS}.items():
        for fold in FOLDS:
            name = library_name(network, fold)
            best = terms_of(runs, name, EXACT)
            if best is None:
                continue
            instance = instance_of(network, fold)
            row: dict[str, Any] = {"network": title, "fold": fold, "speedup": gain(instance, best, "latency")}
            for method in (*RULES, EXACT):
                plan = terms_of(runs, name, method)
                row[method] = None if plan is None else gain(instance, plan, "energy")
            rules = [terms for method in RULES[:2] if (terms := terms_of(runs, name, method)) is not None]
            rule = min((terms["energy"] for terms in rules), default=None)
            row["gap"] = None if rule is None else 100 * (rule / best["energy"] - 1)
            row["on_front"] = _on_front(runs, name)
            if runs.get(name, "fpga_only") is not None:
                row["fits"] = "no" if terms_of(runs, name, "fpga_only") is None else "yes"
            rows.append(row)
    columns = header("network | fold: largest fold")
    columns += [Column(method, f"{TITLES[method]}, energy gain", ".3f") for method in (*RULES, EXACT)]
    columns += header(
        "speedup: optimum, speed-up; .3f | gap: better rule above optimum [%]; .1f "
        "| on_front: a rule is on the front | fits: whole network on the FPGA"
    )
    note = (
        "Gains over GPU only, least energy, first fit. Fold 1 is direct hardware mapping as published. The rule is "
        "Fig. 2's patterns in module order; the paper gives patterns, not an algorithm."
    )
    return Table("networks", "Whole networks: the paper's rule against the optimum", columns, rows, note)


def _on_front(runs: Runs, name: str) -> str | None:
    front = front_of(runs, name)
    if front is None:
        return None
    points = [(t["energy"], t["latency"]) for t in (terms_of(runs, name, m) for m in RULES[:2]) if t is not None]
    return "yes" if any(point in front for point in points) else "no"


def front_pictures(runs: Runs) -> list[Picture]:
    """The exact front of every network with the heuristics' points in it."""
    found = []
    for network, (title, _) in {**NETWORKS, **OTHERS}.items():
        for fold in FOLDS if network in NETWORKS else FOLDS[-1:]:
            name = library_name(network, fold)
            front = front_of(runs, name)
            if front is None:
                continue
            figure, ax = figures.axes(6.4, 3.6)
            xs = [energy / 1000 for energy, _ in front]
            ys = [latency / 1000 for _, latency in front]
            label = f"exact front ({len(front)})"
            ax.plot(xs, ys, "o-", drawstyle="steps-post", color=figures.COLOURS[0], label=label, markersize=4)
            points: dict[str, tuple[int, int]] = {"GPU only": reference(instance_of(network, fold))}
            for method in (*RULES, "fpga_only"):
                terms = terms_of(runs, name, method)
                if terms is not None:
                    points[TITLES.get(method, method)] = (terms["energy"], terms["latency"])
            for index, (label, (energy, latency)) in enumerate(points.items(), 1):
                ax.plot(
                    [energy / 1000],
                    [latency / 1000],
                    "sDv^P"[index - 1],
                    color=figures.COLOURS[index],
                    label=label,
                    markersize=7,
                    fillstyle="none",
                )
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
    for network, (title, _) in {**NETWORKS, **OTHERS}.items():
        for fold in FOLDS:
            front = front_of(runs, library_name(network, fold))
            if front is None:
                continue
            energies, latencies = [e for e, _ in front], [lat for _, lat in front]
            yield {
                "network": title,
                "fold": fold,
                "points": len(front),
                "least_e": min(energies) / 1000,
                "least_l": min(latencies) / 1000,
                "spread_e": 100 * (max(energies) / min(energies) - 1),
                "spread_l": 100 * (max(latencies) / min(latencies) - 1),
            }


def sensitivity(runs: Runs) -> tuple[Table, list[Picture]]:
    """Energy gain of the optimum over bandwidth, set-up time and fabric; where the FPGA stops paying."""
    rows: list[dict[str, Any]] = []
    pictures = []
    for axis, (label, caption) in AXES.items():
        series: dict[str, list[tuple[float, float]]] = {}
        for network, (title, _) in NETWORKS.items():
            for value in POINTS[axis]:
                variant = variant_name(axis, value)
                best = terms_of(runs, library_name(network, 4, variant), LABELS if variant else EXACT)
                if best is None:
                    continue
                instance = instance_of(network, 4, variant)
                energy, speed = gain(instance, best, "energy"), gain(instance, best, "latency")
                same = axis != "fabric" or value == 1.0
                ruled = repriced(runs, library_name(network, 4), "paper_rule_folded", instance) if same else None
                rule = None if ruled is None else gain(instance, ruled, "energy")
                rows.append(
                    {
                        "axis": axis,
                        "value": value,
                        "network": title,
                        "energy": energy,
                        "speed": speed,
                        "rule": rule,
                        "used": best["multipliers"],
                        "transfers": best["transfers"],
                    }
                )
                series.setdefault(f"{title}, optimum", []).append((value, energy))
                if rule is not None:
                    series.setdefault(f"{title}, rule", []).append((value, rule))
        if series:
            figure = figures.lines(series, xlabel=label, ylabel="energy gain", logx=axis != "setup")
            figure.axes[0].axhline(1.0, color="#888888", linewidth=0.8)
            pictures.append(picture(f"sensitivity_{axis}", figure, caption))
    columns = header(
        "axis: varied | value; g | network | energy: optimum, energy gain; .3f | speed: its speed-up; .3f "
        "| rule: rule (folded), energy gain; .3f | used: multipliers used | transfers"
    )
    note = (
        "Bandwidth in GB/s; set-up time and fabric as multiples. Largest fold 4, least energy, first fit. The "
        "rule's plan does not depend on the link; it is priced again, and left out where the fabric changes."
    )
    return Table("sensitivity", "When does the FPGA stop paying?", columns, rows, note), pictures


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
    for network, (title, _) in NETWORKS.items():
        for fold in FOLDS:
            for reading in PATTERNS if network == SHUFFLENET else ("",):
                whole = depthwise_instance(fold) if reading else instance_of(network, fold)
                inside = terms_of(runs, patterns_instance(network, fold, reading).name, LABELS)
                best = terms_of(runs, whole.name, LABELS if reading else EXACT)
                if inside is None or best is None:
                    continue
                rules = [t for m in RULES[:2] if not reading and (t := terms_of(runs, whole.name, m)) is not None]
                rule = min((terms["energy"] for terms in rules), default=None)
                yield {
                    "network": title,
                    "fold": fold,
                    "reading": PATTERNS[reading],
                    "inside": gain(whole, inside, "energy"),
                    "best": gain(whole, best, "energy"),
                    "rule_loss": None if rule is None else 100 * (rule / best["energy"] - 1),
                    "patterns_loss": 100 * (inside["energy"] / best["energy"] - 1),
                }
