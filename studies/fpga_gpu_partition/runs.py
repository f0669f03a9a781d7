"""Instances and runs of the FPGA-GPU study."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any

from mapgap.catalogue.files import library_files, load_instance
from mapgap.execution.sweep import Job, MethodJob
from mapgap.instances.fpga_gpu_partition import LIBRARY
from mapgap.instances.fpga_gpu_partition.compact import build
from mapgap.instances.fpga_gpu_partition.cost_model import fabric, fit_names, load_fit
from mapgap.problems.fpga_gpu_partition import PROBLEM as SPECIFICATION
from mapgap.problems.fpga_gpu_partition import Instance
from mapgap.reporting.study import Phase

PROBLEM = SPECIFICATION.name
NETWORKS = {
    "squeezenet": ("SqueezeNet", "squeezenet1_0"),
    "mobilenetv2_x0_5": ("MobileNetV2 0.5", "mobilenetv2_x0_5"),
    "shufflenetv2_x0_5": ("ShuffleNetV2 0.5", "shufflenetv2_x0_5"),
}
OTHERS = {"resnet18": ("ResNet-18", "resnet18"), "vgg16": ("VGG-16", "vgg16")}
FOLDS = (1, 4)
RULES = ("paper_rule", "paper_rule_folded", "greedy")
EXACT, FRONT = "mip", "pareto_front"
BANDWIDTHS = (0.05, 0.25, 0.5, 1.0, 2.5, 10.0)
SETUPS = (0.25, 0.5, 1.0, 1.5, 2.0)
"""Multiples of the fitted time of a transfer before its first byte."""
SIZES = (0.03125, 0.125, 0.5, 1.0, 2.0, 8.0)
"""Multiples of the Cyclone 10 GX's multipliers and M20K blocks."""
BASE = {"bandwidth": 2.5, "setup": 1.0, "fabric": 1.0}
"""What the library's instances have; no run of its own."""
QUICK_POINTS = {"bandwidth": (0.05, 0.5, 10.0), "setup": (0.5, 2.0), "fabric": (0.03125, 0.125, 8.0)}
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
def instance_of(network: str, fold: int, variant: str = "") -> Instance:
    """A whole network; variants are ``fit3``, ``bandwidth_0.5``, ``setup_2`` and ``fabric_0.125``."""
    kind, _, amount = variant.partition("_")
    fields: dict[str, Any] = {}
    if variant in fits():
        fields = {"cost_model": variant}
    elif kind == "bandwidth":
        fields = {"bandwidth_gbs": float(amount)}
    elif kind == "setup":
        fields = {"link_us": load_fit("fit1").link_us * float(amount)}
    elif kind == "fabric":
        size = fabric()
        fields = {"multipliers": int(size.multipliers * float(amount)), "m20k": int(size.m20k * float(amount))}
    table = {**NETWORKS, **OTHERS}[network][1]
    return build(table, fold, name=library_name(network, fold, variant), **fields)


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
        Phase("Fronts", _jobs(whole, (FRONT,), 300.0), parallel=2),
        Phase("Sensitivity", _jobs(sweep, (EXACT,)), parallel=2),
        Phase("Other fits", _jobs(other_fits, (FRONT,), 300.0), parallel=2),
    ]
    if not quick:
        found.append(Phase("Rule on single modules", _jobs(modules, ("paper_rule",)), parallel=2))
    return found
