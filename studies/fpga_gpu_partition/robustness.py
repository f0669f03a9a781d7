"""What holds under all sets of constants that explain Table I: ranges of gains, conclusions that are decided."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mapgap.instances.fpga_gpu_partition.cost_model import CostModel, load_fit
from mapgap.records.runs import Runs
from mapgap.reporting import figures
from mapgap.reporting.report import Picture, picture
from mapgap.reporting.tables import Rows, Table, header, tabulated
from mapgap.studies.fpga_gpu_partition.constants import extremes, load_reading, load_share
from mapgap.studies.fpga_gpu_partition.experiments import (
    EXACT,
    EXTREME_VARIANTS,
    FOLDS,
    FRONT,
    LABELS,
    NETWORKS,
    all_sets,
    fits,
    instance_of,
    library_name,
    sets,
    variant_of,
)
from mapgap.studies.fpga_gpu_partition.gains import Reading, gains, published_gains
from mapgap.studies.fpga_gpu_partition.plans import chosen_options, front_of, gain, repriced, terms_of

RULE = "paper_rule_folded"
READINGS: tuple[Reading, ...] = ("sequential", "parallel")
VARIANTS = {"rule_e": ("setup_2", "bandwidth_0.25"), "best_e": EXTREME_VARIANTS}
"""Changes under which a quantity is looked at again. The rule's plan, which does not depend on the link, is priced
anew."""
CHANGES = {
    "": "",
    "setup_2": "set-up x 2",
    "bandwidth_0.25": "0.25 GB/s",
    "bandwidth_0.05": "0.05 GB/s",
    "fabric_0.125": "fabric / 8",
    "fabric_8": "fabric x 8",
}
QUANTITIES = {
    "rule_e": "rule (folded), energy gain",
    "rule_l": "rule (folded), speed-up",
    "best_e": "optimum, energy gain",
    "best_l": "optimum, speed-up",
    "gap": "rule above optimum [%]",
}
SOUGHT = {"rule_e", "rule_l", "best_e", "gap"}
"""Those whose least and most were sought by optimisation (:mod:`~mapgap.studies.fpga_gpu_partition.extremes`)."""


@dataclass(frozen=True)
class Comparison:
    """What the conclusions are about, for one network under one set of constants.

    Attributes
    ----------
    quantities : mapping
        By the keys of :data:`QUANTITIES`; the optimum is the plan of least energy.
    fused : int
        Modules of several layers that the optimum runs wholly on the FPGA.
    rule : tuple of int
        Energy and latency of the rule's plan.
    front : list of tuple or None
        The exact front; ``None`` without its run.
    """

    quantities: Mapping[str, float]
    fused: int
    rule: tuple[int, int]
    front: list[tuple[int, int]] | None


@dataclass(frozen=True)
class Claim:
    """A conclusion: its test (``None`` where runs are missing), and the quantity with the threshold that decides it,
    where there is one."""

    holds: Callable[[Comparison], Any]
    quantity: str = ""
    threshold: float = 0.0


def _beyond(quantity: str, threshold: float) -> Claim:
    return Claim(lambda x: x.quantities[quantity] >= threshold, quantity, threshold)


CLAIMS: Mapping[str, Claim] = {
    "the optimum saves at least 5 % energy over GPU only": _beyond("best_e", 1 / 0.95),
    "its latency is lower than GPU only's, too": Claim(lambda x: x.quantities["best_l"] > 1, "best_l", 1.0),
    "the rule (folded) saves energy over GPU only": Claim(lambda x: x.quantities["rule_e"] > 1, "rule_e", 1.0),
    "the rule (folded) needs at least 2 % more energy than the optimum": _beyond("gap", 2.0),
    "the optimum runs at least one module wholly on the FPGA": Claim(lambda x: x.fused > 0),
    "the rule (folded) is not on the front": Claim(lambda x: None if x.front is None else x.rule not in x.front),
    "one plan has both the least energy and the least latency": Claim(
        lambda x: None if x.front is None else len(x.front) == 1
    ),
}


def compare(runs: Runs, network: str, fold: int, constants: str) -> Comparison | None:
    """Rule and optimum of one network under one set of constants."""
    variant = variant_of(constants)
    name, instance = library_name(network, fold, variant), instance_of(network, fold, variant)
    method = FRONT if variant else EXACT  # the plan of a front is its point of least energy
    best, options = terms_of(runs, name, method), chosen_options(runs, name, method)
    rule = repriced(runs, library_name(network, fold), RULE, instance)
    if best is None or options is None or rule is None:
        return None
    fused = first = 0
    for module in instance.modules:
        chosen = options[first : first + len(module.layers)]
        fused += len(chosen) > 1 and all(option.startswith("fpga") for option in chosen)
        first += len(module.layers)
    found = {"gap": 100 * (rule["energy"] / best["energy"] - 1)}
    for key, plan in (("rule", rule), ("best", best)):
        found |= {f"{key}_e": gain(instance, plan, "energy"), f"{key}_l": gain(instance, plan, "latency")}
    return Comparison(found, fused, (rule["energy"], rule["latency"]), front_of(runs, name))


def comparisons(runs: Runs, network: str, fold: int) -> dict[str, Comparison]:
    """By set of constants; empty unless all fits have their runs."""
    known = {name: compare(runs, network, fold, name) for name in all_sets()}
    found = {name: each for name, each in known.items() if each is not None}
    return found if set(fits()) <= set(found) else {}


def _compared(runs: Runs) -> Iterator[tuple[dict[str, Any], dict[str, Comparison]]]:
    """Every network and fold that has its runs, as cells of a row, and what is known of it."""
    for network, (title, _) in NETWORKS.items():
        for fold in FOLDS:
            if known := comparisons(runs, network, fold):
                yield {"network": title, "fold": fold}, known


def fits_table(runs: Runs) -> Table:
    """Gains under every fit."""
    rows = [head | {fit: known[fit].quantities["best_e"] for fit in fits()} for head, known in _compared(runs)]
    columns = header("network | fold: largest fold" + "".join(f" | {fit}; .3f" for fit in fits()))
    note = "Six sets of constants that explain Table I equally well; docs/fpga_gpu_calibration.md."
    return Table("fits", "Energy gain of the optimum under every fit", columns, rows, note)


@tabulated(
    "robustness",
    "Conclusions across all sets of constants",
    "network | fold: largest fold | claim: conclusion | count: sets | sought: extremes sought "
    "| nearest: nearest to its threshold; .3f | threshold; .3f | verdict",
    "Sets: the fits, and those at which some gain of some network is least or most. Decided (it holds, or it fails) is "
    "a conclusion only if it is alike under all and about a quantity whose least and most were sought; where nobody "
    "sought what could refute it, it held, or failed, at all sets looked at. Undecided: both occur. Counts are no "
    "probabilities. Local searches may miss an extreme: a value near its threshold is a warning.",
)
def conclusions(runs: Runs) -> Rows:
    """Which conclusions hold under all sets of constants."""
    for head, known in _compared(runs):
        for words, claim in CLAIMS.items():
            answers = [claim.holds(found) for found in known.values()]
            if None in answers:
                continue
            count, sought = sum(map(bool, answers)), claim.quantity in SOUGHT
            row = head | {"claim": words, "count": f"{count} of {len(known)}", "sought": "yes" if sought else "no"}
            if claim.quantity:
                values = [found.quantities[claim.quantity] for found in known.values()]
                row["nearest"] = min((abs(value - claim.threshold), value) for value in values)[1]
                row["threshold"] = claim.threshold
            row["verdict"] = _verdict(count, len(known), sought)
            yield row


def _verdict(count: int, sets: int, sought: bool) -> str:
    if 0 < count < sets:
        return "undecided"
    if sought:
        return "holds" if count else "fails"
    return "held at all" if count else "failed at all"


@tabulated(
    "ranges",
    "Gains over all sets of constants that explain Table I",
    "network | fold: largest fold | title: quantity | change: changed | first: first fit; .3f | low: least; .3f "
    "| high: most; .3f | gain: above 1 (gap: above 0) | sought: ends sought | sets | low_set: least at "
    "| high_set: most at",
    "Over the fits and the extreme sets of constants (root mean square residual on Table I within the tolerance, "
    "base power 1 W): the range over a level set of the residual, no confidence interval, since nothing is known of "
    "the errors in the six numbers. Where the ends were sought it was by optimisation from several starts; they are "
    "attained, and the true range may be wider. Where not, they are the ends over sets found for other quantities. "
    "Undecided: Table I allows both signs.",
)
def ranges(runs: Runs) -> Rows:
    """Every gain from its least to its most over all sets of constants that explain Table I."""
    for network, fold in ((network, fold) for network in NETWORKS for fold in FOLDS):
        for key, change, values in _values(runs, network, fold):
            low, high = min(values, key=values.__getitem__), max(values, key=values.__getitem__)
            zero = 0.0 if key == "gap" else 1.0
            row = {"network": NETWORKS[network][0], "fold": fold, "quantity": key, "title": QUANTITIES[key]}
            row |= {"change": CHANGES[change], "first": values[fits()[0]], "low": values[low], "high": values[high]}
            row |= {"low_set": low, "high_set": high, "sets": len(values), "sought": "yes" if key in SOUGHT else "no"}
            yield row | {"gain": "yes" if values[low] > zero else "no" if values[high] <= zero else "undecided"}


def _values(runs: Runs, network: str, fold: int) -> Iterator[tuple[str, str, dict[str, float]]]:
    """Quantity, change and values by set of constants; quantities without all their runs are left out."""
    known = comparisons(runs, network, fold)
    if not known:
        return
    for key in QUANTITIES:
        yield key, "", {name: found.quantities[key] for name, found in known.items()}
    changes = [(key, change) for key, every in VARIANTS.items() for change in every]
    for key, change in changes if fold == FOLDS[-1] else ():
        values = {}
        for variant, name in ((variant_of(name, change), name) for name in sets(network)):
            instance = instance_of(network, fold, variant)
            if key == "rule_e":
                plan = repriced(runs, library_name(network, fold), RULE, instance)
            else:
                plan = terms_of(runs, library_name(network, fold, variant), LABELS)
            if plan is not None:
                values[name] = gain(instance, plan, "energy")
        if len(values) == len(sets(network)):
            yield key, change, values


def range_picture(table: Table) -> Picture:
    """Ranges of the energy gains; the first fit is a dot."""
    rows = [row for row in table.rows if row["quantity"].endswith("_e")]
    figure, ax = figures.axes(7.2, 0.9 + 0.22 * max(1, len(rows)))
    for y, row in enumerate(reversed(rows)):
        colour = figures.COLOURS[0 if row["quantity"] == "best_e" else 1]
        ax.plot([row["low"], row["high"]], [y, y], "-", color=colour, linewidth=4, solid_capstyle="round", alpha=0.6)
        ax.plot([row["first"]], [y], "o", color=colour, markersize=5)
    labels = [", ".join(filter(None, (r["network"], f"fold {r['fold']}", r["change"]))) for r in reversed(rows)]
    ax.set_yticks(range(len(rows)), labels, fontsize=8)
    for colour, label in zip(figures.COLOURS, ("optimum", "rule (folded)"), strict=False):
        ax.plot([], [], "o-", color=colour, label=label)
    ax.set(xscale="log", xlabel="energy gain over GPU only")
    marks = [1, 1.5, 2, 3, 5, 8, 12]
    ax.set_xticks(marks, [f"{mark:g}" for mark in marks])
    ax.minorticks_off()
    ax.axvline(1.0, color="#888888", linewidth=0.8)
    figures.legend(ax)
    caption = "Least to most over all sets of constants that explain Table I; dot: first fit."
    return picture("ranges", figure, caption)


@tabulated(
    "readings",
    "ShuffleNetV2's units read in two ways",
    "reading: reading of units with reduction | fits_e: fits: energy gain | fits_l: fits: speed-up "
    "| sets: sets fitted to it | rms: least residual (rms); .4f | e: their energy gain | l: their speed-up "
    "| setup_low: set-up over launch, least; .2f | setup_high: most; .2f | launch_low: launch [µs], least; .0f "
    "| launch_high: most; .0f",
    "Printed: 1.39 and 1.35. Sequential: every 1x1 on the FPGA. Parallel (Sec. V-B): a unit with reduction as a "
    "Fire module with depthwise 3x3. The six fits were made under the sequential reading; constants fitted to the "
    "parallel one explain Table I alike, so that Table I does not tell the readings apart.",
)
def readings_table() -> Rows:
    """Both readings of ShuffleNetV2's units: gains under the fits, and how well constants fitted to either explain."""
    for reading in READINGS:
        under = [gains(load_fit(name), load_share(name), reading)[-2:] for name in fits()]
        own = _fitted(reading)
        found = [gains(load_fit(name), load_share(name), reading) for name in own]
        row: dict[str, Any] = {"reading": reading, "sets": len(own), "rms": min(map(_rms, found), default=None)}
        for key, place in (("e", 0), ("l", 1)):
            row |= {
                f"fits_{key}": _span([each[place] for each in under]),
                key: _span([each[place - 2] for each in found]),
            }
        for key, ratio in (("setup", RATIOS["setup"]), ("launch", RATIOS["launch"])):
            values = [ratio[1](load_fit(name)) for name in own]
            row |= {f"{key}_low": min(values, default=None), f"{key}_high": max(values, default=None)}
        yield row


def _fitted(reading: Reading) -> list[str]:
    """The sets of constants that were fitted to a reading."""
    return [name for name in (*fits(), *extremes()) if load_reading(name) == reading]


def _launch_uj(model: CostModel) -> float:
    """Base energy of one launch of a layer, in microjoules."""
    return float(model.base_power_w * model.launch_us)


RATIOS: dict[str, tuple[str, Callable[[CostModel], float]]] = {
    "launch": ("launch of a layer on the GPU [µs]", lambda m: m.launch_us),
    "setup": ("set-up of a transfer / launch", lambda m: m.link_us / m.launch_us),
    "dense": ("dense convolution of one launch [MMAC]", lambda m: m.conv_gmacs * m.launch_us / 1e3),
    "pointwise": ("1x1 convolution of one launch [MMAC]", lambda m: m.pointwise_gmacs * m.launch_us / 1e3),
    "depthwise": ("depthwise convolution of one launch [MMAC]", lambda m: m.depthwise_gmacs * m.launch_us / 1e3),
    "pixels": ("pixels of the FPGA in one launch [1000]", lambda m: m.clock_mhz * m.launch_us / 1e3),
    "gpu_power": ("GPU's power / base power", lambda m: m.gpu_power_w / m.base_power_w),
    "gpu_energy": ("GPU's energy of 10^6 MAC / base energy of one launch", lambda m: m.gpu_pj / _launch_uj(m)),
    "fpga_power": ("FPGA's power / base power", lambda m: m.fpga_power_w / m.base_power_w),
    "fpga_energy": ("FPGA's energy of 10^6 MAC / base energy of one launch", lambda m: m.fpga_pj / _launch_uj(m)),
}
"""What is left of the constants without a scale of time and of energy; the launch is the scale of time."""
FIXED, BOUNDED = 2.0, 10.0


@tabulated(
    "constants",
    "Which ratios of constants Table I fixes",
    "title: ratio | "
    + " | ".join(f"{reading}_low: {reading}, least; .3g | {reading}_high: most; .3g" for reading in READINGS)
    + " | factor: most over least; .3g | word: by Table I",
    "Over the fits and the extreme sets. Within either reading of the units, fixed: up to a factor of 2; bounded: "
    "up to 10; open: more. The search stopped launches at 5,000 µs and clocks at 200 MHz: those ends are the "
    "ranges', not the paper's.",
)
def constants_table() -> Rows:
    """The least and the most of every ratio of constants over all sets, and over those of either reading."""
    for key, (title, ratio) in RATIOS.items():
        by_reading = {reading: [float(ratio(load_fit(name))) for name in _fitted(reading)] for reading in READINGS}
        ends = {reading: (min(values), max(values)) for reading, values in by_reading.items() if values}
        row: dict[str, Any] = {"key": key, "title": title}
        for reading, (low, high) in ends.items():
            row |= {f"{reading}_low": low, f"{reading}_high": high}
        inside = max(high / low for low, high in ends.values())
        row["factor"] = max(high for _, high in ends.values()) / min(low for low, _ in ends.values())
        yield row | {"word": "fixed" if inside <= FIXED else "bounded" if inside <= BOUNDED else "open"}


def _rms(found: Any) -> float:
    return float(np.sqrt(np.mean((np.log(found) - np.log(published_gains())) ** 2)))


def _span(values: Sequence[float]) -> str:
    return f"{min(values):.2f} to {max(values):.2f}" if values else ""
