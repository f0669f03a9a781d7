"""Names and instances of the study of hybrid pipelines, and what its tables and figures ask of the runs."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from typing import Any

from mapgap.catalogue.files import load_instance
from mapgap.catalogue.registry import library
from mapgap.instances.published_numbers import load_published
from mapgap.problems.hybrid_pipeline import PROBLEM, Execution, Instance, Plan
from mapgap.records.runs import Runs

NETWORKS = {
    "efficientnet_b1": "EfficientNet-B1",
    "mobilenetv2": "MobileNetV2",
    "resnet50": "ResNet50",
    "bert_small": "BERT-small",
}
FAST = (("b", 100), ("c", 100))
"""Environments whose boards differ in speed, at 100 Mbit/s."""
EXACT, ASTEROID = "label_dp", "asteroid"
BEST_TIES: Mapping[str, Any] = {"ties": "best"}
"""Asteroid along the best of the orders that descending memory permits."""
ROOM = 2**50
"""Memory units of a board without a limit."""


def _fewer_bytes(instance: Instance, divisor: int) -> dict[str, Any]:
    """Every cut carries so many times fewer bytes (rounded up); memory stays as it is."""
    return {
        "layers": tuple(
            layer.model_copy(update={"output_bytes": -(-layer.output_bytes // divisor)}) for layer in instance.layers
        )
    }


def _one_layer(instance: Instance) -> dict[str, Any]:
    """All layers in one, so that every plan is a single stage: one board, or one group."""
    layers, whole = instance.layers, instance.layers[-1]
    sums = {
        field: sum(getattr(layer, field) for layer in layers)
        for field in ("weight_bytes", "state_memory", "activation_memory", "flops")
    }
    kinds = [
        kind.model_copy(
            update={
                direction: (tuple(map(sum, zip(*getattr(kind, direction), strict=True))),)
                for direction in ("forward", "backward")
            }
        )
        for kind in instance.types
    ]
    return {"layers": (whole.model_copy(update={"name": "all", **sums}),), "types": tuple(kinds)}


VARIANTS: Mapping[str, Callable[[Instance], dict[str, Any]]] = {
    "all": lambda instance: {"all_devices": True},
    "bytes2": lambda instance: _fewer_bytes(instance, 2),
    "bytes4": lambda instance: _fewer_bytes(instance, 4),
    "links": lambda instance: {"execution": Execution(transfers="parallel")},
    "medium": lambda instance: {"execution": Execution(medium="shared")},
    "whole": _one_layer,
    "memory": lambda instance: {"types": tuple(kind.model_copy(update={"memory": ROOM}) for kind in instance.types)},
}
"""What ``+word`` behind a name changes: no idle devices; fewer bytes over cuts; min(members) links between groups; an
AllReduce on one shared medium; no cuts; memory without limit."""


def library_name(environment: str, network: str, mbps: int = 100) -> str:
    """Library name of an experiment of Table 4."""
    return f"asteroid_{environment}_{network}_{mbps}mbps"


def cases(environments: Iterable[tuple[str, int]]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every network in environments with their Mbit/s: library name, and the cells that say where it is."""
    for environment, mbps in environments:
        for network, title in NETWORKS.items():
            place = {"environment": environment.upper(), "network": title, "mbps": mbps}
            yield library_name(environment, network, mbps), place


@cache
def instance(name: str) -> Instance:
    """A library instance, with ``+word`` behind its name for each variant; or ``scaling_K`` of the generator."""
    base, *words = name.split("+")
    if base.startswith("scaling_"):
        found = library(PROBLEM.name).generate("scaling", int(base.removeprefix("scaling_")))
    else:
        found = load_instance(base)
    assert isinstance(found, Instance)
    for word in words:
        found = found.model_copy(update=VARIANTS[word](found))
    return found.model_copy(update={"name": name}) if words else found


@cache
def published() -> dict[str, Any]:
    """Printed numbers by identifier."""
    return load_published("asteroid")


def ratio(runs: Runs, name: str, method: str, reference: str, other: str | None = None) -> float | None:
    """Latency of a method's plan over that of another's (on ``other``); ``None`` where one has no plan."""
    top, bottom = runs.objective(name, method), runs.objective(other or name, reference)
    return top / bottom if top and bottom else None


def plan_of(runs: Runs, name: str, method: str) -> Plan | None:
    """The plan of a run, or ``None``."""
    record = runs.get(name, method)
    return Plan.model_validate_json(json.dumps(record.plan)) if record is not None and record.plan else None


def schedule(
    runs: Runs, name: str, method: str, policy: str = "ours", duplex: str = "half"
) -> Mapping[str, Any] | None:
    """The simulated execution of a plan under a policy, of a run with ``simulate``."""
    rows = runs.note(name, method, "schedules", simulate=True) or []
    return next((row for row in rows if (row["policy"], row["duplex"]) == (policy, duplex)), None)
