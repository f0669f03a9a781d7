"""Names and instances of the study of hybrid pipelines, and what its tables and figures ask of the runs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from typing import Any

from mapgap.catalogue.files import load_instance
from mapgap.catalogue.registry import library
from mapgap.instances.published_numbers import load_published
from mapgap.problems.hybrid_pipeline import PROBLEM, Instance, Plan
from mapgap.records.runs import Runs

NETWORKS = {
    "efficientnet_b1": "EfficientNet-B1",
    "mobilenetv2": "MobileNetV2",
    "resnet50": "ResNet50",
    "bert_small": "BERT-small",
}
EXACT, ASTEROID = "label_dp", "asteroid"


def library_name(environment: str, network: str, mbps: int = 100) -> str:
    """Library name of an experiment of Table 4."""
    return f"asteroid_{environment}_{network}_{mbps}mbps"


@cache
def instance(name: str) -> Instance:
    """A library instance (``+all`` behind the name forbids idle devices), or ``scaling_K`` of the generator."""
    if name.startswith("scaling_"):
        found = library(PROBLEM.name).generate("scaling", int(name.removeprefix("scaling_")))
    else:
        found = load_instance(name.removesuffix("+all"))
    assert isinstance(found, Instance)
    return found.model_copy(update={"all_devices": True, "name": name}) if name.endswith("+all") else found


@cache
def published() -> dict[str, Any]:
    """Printed numbers by identifier."""
    return load_published("asteroid")


def ratio(runs: Runs, name: str, method: str, reference: str) -> float | None:
    """Latency of a method's plan over that of another's; ``None`` where one has no plan."""
    top, bottom = runs.objective(name, method), runs.objective(name, reference)
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
