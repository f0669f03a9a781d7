"""Instances and runs of the FPGA-GPU study."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any

from mapgap.catalogue.files import library_files, load_instance
from mapgap.execution.sweep import Job, MethodJob
from mapgap.instances.fpga_gpu_partition import LIBRARY
from mapgap.instances.fpga_gpu_partition.compact import build
from mapgap.instances.fpga_gpu_partition.cost_model import fabric, load_fit
from mapgap.problems.fpga_gpu_partition import PROBLEM as SPECIFICATION
from mapgap.problems.fpga_gpu_partition import Instance
from mapgap.reporting.study import Phase
from mapgap.studies.fpga_gpu_partition.constants import extremes, fit_names
from mapgap.studies.fpga_gpu_partition.patterns import within_patterns

PROBLEM = SPECIFICATION.name
NETWORKS = {
    "squeezenet": ("SqueezeNet", "squeezenet1_0"),
    "mobilenetv2_x0_5": ("MobileNetV2 0.5", "mobilenetv2_x0_5"),
    "shufflenetv2_x0_5": ("ShuffleNetV2 0.5", "shufflenetv2_x0_5"),
}
OTHERS = {
    "resnet18": ("ResNet-18", "resnet18"),
    "vgg16": ("VGG-16", "vgg16"),
    "resnet50": ("ResNet-50", "resnet50"),
    "mobilenetv2": ("MobileNetV2 1.0", "mobilenetv2"),
    "squeezenet1_1": ("SqueezeNet 1.1", "squeezenet1_1"),
    "efficientnet_b1": ("EfficientNet-B1", "efficientnet_b1"),
}
"""Networks that are not in the paper; all that can be cut into modules of the paper's kinds, or of residual blocks."""
FOLDS = (1, 4)
SHUFFLENET = "shufflenetv2_x0_5"
RULES = ("paper_rule", "paper_rule_folded", "greedy")
EXACT, FRONT, LABELS = "mip", "pareto_front", "label_setting"
BANDWIDTHS = (0.05, 0.25, 0.5, 1.0, 2.5, 10.0)
SETUPS = (0.25, 0.5, 1.0, 1.5, 2.0)
"""Multiples of the fitted time of a transfer before its first byte."""
SIZES = (0.03125, 0.125, 0.5, 1.0, 2.0, 8.0)
"""Multiples of the Cyclone 10 GX's multipliers and M20K blocks."""
BASE = {"bandwidth": 2.5, "setup": 1.0, "fabric": 1.0}
"""What the library's instances have; no run of its own."""
QUICK_POINTS = {"bandwidth": (0.05, 0.5, 10.0), "setup": (0.5, 2.0), "fabric": (0.03125, 0.125, 8.0)}
EXTREME_VARIANTS = ("bandwidth_0.05", "fabric_0.125", "fabric_8")
"""Variants whose optimum is sought under every set of constants."""
PATTERNS = {"": "1x1 on the FPGA", "depthwise": "V-B: depthwise in parallel"}
"""How units with spatial reduction are read, and the infix of the library's instances."""
POINTS = {"bandwidth": BANDWIDTHS, "setup": SETUPS, "fabric": SIZES}


def library_name(network: str, fold: int, variant: str = "") -> str:
    """Name of a whole network of the library, or of a variant of it."""
    return f"dhm_{network}_fold{fold}" + (f"_{variant}" if variant else "")


def variant_name(axis: str, value: float) -> str:
    """Variant of an instance with one quantity changed; empty for the library's own value."""
    return "" if value == BASE[axis] else f"{axis}_{value:g}"


@cache
def fits() -> tuple[str, ...]:
    """Names of the equally good fits of the cost model."""
    return tuple(fit_names())


@cache
def extreme_sets(network: str) -> tuple[str, ...]:
    """Names of the sets of constants at which some gain of a network is least or most."""
    return tuple(name for name, words in extremes().items() if f"{network} fold" in words)


def sets(network: str) -> tuple[str, ...]:
    """Sets of constants under which changes of a network are looked at: the fits, the best first, and its extremes."""
    return (*fits(), *extreme_sets(network))


@cache
def all_sets() -> tuple[str, ...]:
    """All sets of constants under which every network is looked at as it is: the fits, and the extremes of all."""
    return (*fits(), *extremes())


def variant_of(constants: str, change: str = "") -> str:
    """Variant with other constants and one quantity changed; empty for the library's own."""
    return "_".join(part for part in ("" if constants == fits()[0] else constants, change) if part)


@cache
def instance_of(network: str, fold: int, variant: str = "") -> Instance:
    """A whole network.

    Variants are ``fit3``, ``extreme7``, ``bandwidth_0.5``, ``setup_2``, ``fabric_0.125``, or a set of constants with
    one of the others (``extreme7_setup_2``).
    """
    head, _, rest = variant.partition("_")
    known = head in (*fits(), *extremes())
    constants, change = (head, rest) if known else (fits()[0], variant)
    fields: dict[str, Any] = {} if constants == fits()[0] else {"cost_model": constants}
    kind, _, amount = change.partition("_")
    if kind == "bandwidth":
        fields["bandwidth_gbs"] = float(amount)
    elif kind == "setup":
        fields["link_us"] = load_fit(constants).link_us * float(amount)
    elif kind == "fabric":
        size = fabric()
        fields |= {"multipliers": int(size.multipliers * float(amount)), "m20k": int(size.m20k * float(amount))}
    table = {**NETWORKS, **OTHERS}[network][1]
    return build(table, fold, name=library_name(network, fold, variant), **fields)


@cache
def patterns_instance(network: str, fold: int, reading: str = "") -> Instance:
    """A whole network with the options of the paper's patterns; ``reading`` is a key of :data:`PATTERNS`."""
    whole = depthwise_instance(fold) if reading else instance_of(network, fold)
    return within_patterns(whole, f"{whole.name}_patterns", parallel=bool(reading))


@cache
def depthwise_instance(fold: int) -> Instance:
    """ShuffleNetV2 of the library whose depthwise layers may be split."""
    found = load_instance(f"dhm_{SHUFFLENET}_depthwise_fold{fold}")
    assert isinstance(found, Instance)
    return found


@cache
def module_names() -> tuple[str, ...]:
    """Single modules of the library."""
    folder = LIBRARY.folder
    return tuple(n for n, path in library_files().items() if path.parent == folder and "_fold" not in n)


@cache
def module_instance(name: str) -> Instance:
    """A single module of the library."""
    found = load_instance(name)
    assert isinstance(found, Instance)
    return found


def _jobs(instances: Iterable[Instance], methods: Iterable[str], time_s: float = 120.0) -> list[Job]:
    chosen = tuple(methods)
    return [MethodJob(instance, method, time_s) for instance in instances for method in chosen]


def phases(quick: bool) -> list[Phase]:
    """All runs; the quick version has one network for the sensitivities and the other fits with fold 4 only."""
    whole = [instance_of(network, fold) for network in NETWORKS for fold in FOLDS]
    others = [] if quick else [instance_of(network, fold) for network in OTHERS for fold in FOLDS]
    modules = [] if quick else [module_instance(name) for name in module_names()]
    swept = ("mobilenetv2_x0_5",) if quick else tuple(NETWORKS)
    points = QUICK_POINTS if quick else POINTS
    variants = [variant_name(axis, value) for axis, values in points.items() for value in values]
    sweep = [instance_of(network, 4, variant) for network in swept for variant in variants if variant]
    folds = (4,) if quick else FOLDS
    other_fits = [instance_of(n, fold, fit) for n in NETWORKS for fold in folds for fit in fits()[1:]]
    found = [
        Phase("Rules and baselines", _jobs([*whole, *others], RULES if quick else (*RULES, "fpga_only")), parallel=2),
        Phase("Optima", _jobs([*whole, *others, *modules], (EXACT,)), parallel=2),
        Phase("Fronts", _jobs([*whole, *others], (FRONT,), 300.0), parallel=2),
        Phase("Sensitivity", _jobs(sweep, (LABELS,)), parallel=2),
        Phase("Other fits", _jobs(other_fits, (FRONT,), 300.0), parallel=2),
        Phase("Patterns", _jobs(_patterns(folds), (LABELS,)), parallel=2),
    ]
    if not quick:
        found.append(Phase("Rule on single modules", _jobs(modules, ("paper_rule",)), parallel=2))
        found.append(Phase("Extreme constants", _extreme_jobs(), parallel=2))
    return found


def _patterns(folds: Iterable[int]) -> list[Instance]:
    """Networks within the paper's patterns, and ShuffleNetV2 with depthwise layers that may be split."""
    found = []
    for fold in folds:
        found += [patterns_instance(network, fold) for network in NETWORKS]
        found += [patterns_instance(SHUFFLENET, fold, "depthwise"), depthwise_instance(fold)]
    return found


def _extreme_jobs() -> list[Job]:
    """Fronts under the extreme sets of constants; the optima of variants under all sets."""
    fronts = [instance_of(n, fold, name) for n in NETWORKS for fold in FOLDS for name in extremes()]
    changed = [
        instance_of(network, 4, variant_of(name, change))
        for network in NETWORKS
        for change in EXTREME_VARIANTS
        for name in sets(network)
        if name != fits()[0]
    ]
    return _jobs(fronts, (FRONT,), 300.0) + _jobs(changed, (LABELS,))
