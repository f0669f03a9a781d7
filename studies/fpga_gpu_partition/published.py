"""Table I and Fig. 4 of the FPGA-GPU paper next to the calibrated cost model. No run is needed: plans are priced."""

from __future__ import annotations

from typing import Any

from mapgap.instances.fpga_gpu_partition.cost_model import load_fit
from mapgap.instances.published_numbers import load_published
from mapgap.records.runs import Runs
from mapgap.reporting import figures
from mapgap.reporting.report import Picture, picture
from mapgap.reporting.tables import Rows, Table, header, tabulated
from mapgap.studies.fpga_gpu_partition.constants import load_share
from mapgap.studies.fpga_gpu_partition.experiments import fits, module_instance, module_names
from mapgap.studies.fpga_gpu_partition.gains import (
    PUBLISHED,
    TARGETS,
    fold_of,
    gains,
    module_cost,
    modules_of,
    pattern,
)
from mapgap.studies.fpga_gpu_partition.plans import gain, terms_of

TITLES = {"fire": "SqueezeNet's Fire", "bottleneck": "MobileNetV2's bottleneck", "unit": "ShuffleNetV2's unit"}
QUANTITIES = {"e": "energy gain", "l": "latency speed-up"}
CLAIMS = {
    "fire": {"e": "abs_sq_e", "l": "abs_sq_l"},
    "bottleneck": {"e": "abs_mb_e", "l": "abs_mb_l"},
    "unit": {"e": "abs_sh_e", "l": "abs_sh_l"},
}


def published() -> dict[str, Any]:
    """Printed numbers by identifier."""
    return load_published("dhm")


def table_1() -> Table:
    """The six gains of Table I under every fit."""
    printed, rows = published(), []
    found = {name: gains(load_fit(name), load_share(name)) for name in fits()}
    for index, key in enumerate(TARGETS):
        kind = next(k for k, stem in PUBLISHED.items() if key.startswith(stem))
        values = {name: float(values[index]) for name, values in found.items()}
        residuals = [100 * (value / printed[key] - 1) for value in values.values()]
        row = {"module": TITLES[kind], "quantity": QUANTITIES[key[-1]], "printed": printed[key]} | values
        rows.append(row | {"worst": max(residuals, key=abs)})
    columns = "".join(f"{name}; .2f | " for name in fits())
    return Table(
        "table_1",
        "Table I: heterogeneous over GPU only",
        header(f"module | quantity | printed; .2f | {columns} worst: worst residual [%]; +.1f"),
        rows,
        "Eleven constants are fitted to these six numbers: agreement is no confirmation, and there is no verdict. The "
        "residuals show how far even a free fit stays away. Every module is priced alone with the whole fabric and as "
        "many folds as it needs.",
    )


def reductions() -> dict[tuple[str, str], dict[str, tuple[float, float]]]:
    """Per module type and quantity: smallest and largest reduction in percent over the modules, by fit."""
    found: dict[tuple[str, str], dict[str, tuple[float, float]]] = {}
    for kind in TITLES:
        for name in fits():
            costs = _costs(kind, name)
            for key, position in (("l", 0), ("e", 1)):
                values = [100 * (1 - mixed[position] / alone[position]) for alone, mixed in costs]
                found.setdefault((kind, key), {})[name] = (min(values), max(values))
    return found


def _costs(kind: str, fit: str) -> list[tuple[tuple[float, float], tuple[float, float]]]:
    """Latency (µs) and energy (µJ) of every module of a type: on the GPU, and by the pattern."""
    model, share = load_fit(fit), load_share(fit)
    graph, blocks = modules_of(kind)
    found = []
    for block in blocks:
        shapes = graph.shapes_of(block)
        channels = pattern(shapes, kind, share)
        mixed = module_cost(model, graph, block, channels, fold_of(shapes, channels))
        alone = module_cost(model, graph, block, [0] * len(shapes), 1)
        found.append(((float(alone[0]), float(alone[1])), (float(mixed[0]), float(mixed[1]))))
    return found


@tabulated(
    "figure_4_ranges",
    "Fig. 4 and abstract: reductions over the modules",
    "module | quantity: reduction of | printed: abstract [%] | implied: Table I implies [%]; .1f "
    "| inside: abstract holds it | ours: modules, first fit [%] | all: modules, all fits [%] | verdict: ranges",
    "The paper contradicts itself: Table I's 1.55x for MobileNetV2 is 35.5 %, the abstract says at most 30 %; the "
    "abstract gives ShuffleNetV2 25 % energy and 21 % latency, Sec. V-B has the two the other way round.",
)
def ranges_table() -> Rows:
    """Ranges of the abstract next to the ranges over the modules of a network."""
    printed = published()
    for (kind, key), values in reductions().items():
        claim = printed[CLAIMS[kind][key]]
        low, high = claim if isinstance(claim, list) else (claim, claim)
        least, most = values[fits()[0]]
        outer = (min(v[0] for v in values.values()), max(v[1] for v in values.values()))
        implied = 100 * (1 - 1 / float(printed[f"{PUBLISHED[kind]}_{key}"]))
        yield {
            "module": TITLES[kind],
            "quantity": "energy" if key == "e" else "latency",
            "printed": f"{low:g}" if low == high else f"{low:g} to {high:g}",
            "implied": implied,
            "low": least,
            "high": most,
            "ours": f"{least:.0f} to {most:.0f}",
            "all": f"{outer[0]:.0f} to {outer[1]:.0f}",
            "inside": "yes" if low - 1 <= implied <= high + 1 else "no",
            "verdict": "overlaps" if least <= high and low <= most else "differs",
        }


def figure_4() -> Picture:
    """Energy and latency of every module, GPU only and heterogeneous, under the first fit."""
    figure, ax = figures.axes(6.4, 3.8)
    for colour, kind in zip(figures.COLOURS, TITLES, strict=False):
        costs = _costs(kind, fits()[0])
        for position, (label, marker) in enumerate((("GPU only", "o"), ("FPGA-GPU", "^"))):
            ys, xs = ([pair[position][k] / 1000 for pair in costs] for k in (0, 1))
            look: dict[str, Any] = {"color": colour, "fillstyle": "full" if position else "none"}
            ax.plot(xs, ys, marker, alpha=0.35, markersize=4, **look)
            centre = [sum(xs) / len(xs)], [sum(ys) / len(ys)]
            ax.plot(*centre, marker, markersize=9, label=f"{TITLES[kind]}, {label}", **look)
    ax.set(xlabel="energy [mJ]", ylabel="latency [ms]")
    figures.legend(ax)
    return picture("figure_4", figure, "Modules alone (small) and their means (large) as in Fig. 4; first fit.")


@tabulated(
    "modules",
    "Single modules",
    "instance | rule_e: rule, energy gain; .2f | rule_l: rule, speed-up; .2f | best_e: optimum, energy gain; .2f "
    "| best_l: optimum, speed-up; .2f | gap: rule above optimum [%]; .1f | multipliers: multipliers of the optimum",
    "Least energy; up to 32 folds, so that the pattern of every module fits.",
)
def modules_table(runs: Runs) -> Rows:
    """Single modules: the pattern, and the optimum when the module owns the fabric."""
    for name in module_names():
        instance = module_instance(name)
        rule, best = terms_of(runs, name, "paper_rule"), terms_of(runs, name, "mip")
        if rule is not None and best is not None:
            row = {"instance": name, "gap": 100 * (rule["energy"] / best["energy"] - 1)}
            row |= {"rule_e": gain(instance, rule, "energy"), "rule_l": gain(instance, rule, "latency")}
            row |= {"best_e": gain(instance, best, "energy"), "best_l": gain(instance, best, "latency")}
            yield row | {"multipliers": best["multipliers"]}
