"""Names, instances and records of the study of hybrid pipelines, shared by its tables and figures."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

from mapgap.reporting.analysis import RunRecord

PROBLEM = "hybrid_pipeline"
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
def instance(name: str) -> Any:
    """A library instance (``+all`` behind the name forbids idle devices), or ``scaling_K`` of the generator."""
    from mapgap.catalogue.files import load_instance
    from mapgap.catalogue.registry import library

    if name.startswith("scaling_"):
        return library(PROBLEM).generate("scaling", int(name.removeprefix("scaling_")))

    if not name.endswith("+all"):
        return load_instance(name)
    return load_instance(name.removesuffix("+all")).model_copy(update={"all_devices": True, "name": name})


@cache
def published() -> dict[str, Any]:
    """Printed numbers by identifier."""
    from mapgap.instances.published_numbers import load_published

    return load_published("asteroid")


class Runs:
    """Records by instance, method and options."""

    def __init__(self, records: Runs) -> None:
        self.by = {self._key(r.instance, r.method, r.options): r for r in records if not r.error}

    @staticmethod
    def _key(name: str, method: str, options: Any) -> tuple[str, str, str]:
        return name, method, json.dumps(options or {}, sort_keys=True)

    def get(self, name: str, method: str, **options: Any) -> RunRecord | None:
        return self.by.get(self._key(name, method, options))

    def ticks(self, name: str, method: str, **options: Any) -> int | None:
        """Objective of the plan, ``None`` without a run or a plan."""
        record = self.get(name, method, **options)
        return record.objective if record else None

    def term(self, name: str, method: str, term: str, **options: Any) -> Any:
        record = self.get(name, method, **options)
        return record.terms.get(term) if record and record.objective is not None else None

    def note(self, name: str, method: str, note: str, **options: Any) -> Any:
        record = self.get(name, method, **options)
        return record.notes.get(note) if record else None

    def ratio(self, name: str, method: str, reference: str) -> float | None:
        """Latency of a method over that of another."""
        top, bottom = self.ticks(name, method), self.ticks(name, reference)
        return top / bottom if top and bottom else None

    def plan(self, name: str, method: str, **options: Any) -> Any:
        """The plan of a run, or ``None``."""
        from mapgap.catalogue.registry import problems

        record = self.get(name, method, **options)
        if record is None or not record.plan:
            return None
        return problems()[PROBLEM].plan_type.model_validate_json(json.dumps(record.plan))

    def schedule(self, name: str, method: str, policy: str = "ours", duplex: str = "half") -> dict[str, Any] | None:
        """The simulated execution of a plan under a policy, of a run with ``simulate``."""
        rows = self.note(name, method, "schedules", simulate=True) or []
        return next((row for row in rows if (row["policy"], row["duplex"]) == (policy, duplex)), None)
