"""Runs of the study DFS versus converting: which instances and methods, which records."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any

from mapgap.execution.sweep import Job
from mapgap.reporting.analysis import facts, relative
from mapgap.reporting.study import Phase

PROBLEM = "suboperation_mapping"
TITLES = {
    "alexnet": "AlexNet",
    "vgg16": "VGG-16",
    "resnet18": "ResNet-18",
    "tinyyolov3": "TinyYOLOv3",
    "resnet56": "ResNet-56",
}
TABLE_3 = ("alexnet", "vgg16", "resnet18", "tinyyolov3")
BANDWIDTHS = {"0p125": 0.125, "0p5": 0.5, "1": 1.0, "3": 3.0, "7p5": 7.5, "15": 15.0}
EXACT, DFS, CONVERTING, LISTED = "stage_mip", "mtrain_dfs", "mtrain_converting", "heft_dfs"
STEPS = ("mtrain_mapping_step1", "mtrain_mapping_step2", "mtrain_mapping_step3", CONVERTING)
RIVALS = ("single_accelerator", "alpa_sharding", "hap_sharding", "heft", "mtrain_converting_fallback")


def library_name(cluster: int, network: str, bandwidth: str) -> str:
    """Library name of an instance of Sec. VI-A."""
    return f"mtrain_c{cluster}_{network}_{bandwidth}gbs"


@cache
def instance(name: str) -> Any:
    from mapgap.catalogue.files import load_instance

    return load_instance(name)


def _jobs(names: Iterable[str], methods: Iterable[str], time_s: float, workers: int = 1) -> list[Job]:
    chosen = tuple(methods)
    return [Job(instance(name), method, time_s, workers=workers) for name in names for method in chosen]


def phases(quick: bool) -> list[Phase]:
    """The runs; the quick version is Table III's eight cases with a short exact search and one ablation."""
    table_3 = [library_name(c, network, "3") for network in TABLE_3 for c in (1, 2)]
    if quick:
        ablation = [library_name(1, "resnet18", bandwidth) for bandwidth in ("0p125", "3", "15")]
        return [
            Phase("DFS and converting", _jobs(table_3, (DFS, CONVERTING, LISTED), 60.0), parallel=2),
            Phase("Steps of MTrain", _jobs(ablation, (*STEPS, "single_accelerator"), 60.0), parallel=2),
            Phase("Exact, 25 s each", _jobs(table_3, (EXACT,), 25.0), parallel=2),
        ]
    # The LP bound of every ratio is too slow for cluster 3 (374 ratios) and impossible for more accelerators.
    few = [library_name(c, network, b) for c in (1, 2) for network in TITLES for b in BANDWIDTHS]
    every = [library_name(c, network, b) for c in (1, 2, 3) for network in TITLES for b in BANDWIDTHS]
    third = [library_name(3, network, "3") for network in TABLE_3]
    scale = [f"mtrain_scale_{n}fpga_resnet18_{b}gbs" for n in (2, 4, 6, 8) for b in ("0p5", "3", "15")]
    return [
        Phase("DFS and converting", _jobs([*table_3, *third], (DFS, CONVERTING, LISTED), 300.0), parallel=1),
        Phase("Steps and rivals", _jobs(every, (*STEPS, *RIVALS, "fluid_bound"), 300.0), parallel=2),
        Phase("Bounds", _jobs(few, ("area_bound",), 300.0), parallel=2),
        Phase("Scaling", _jobs(scale, (CONVERTING, "single_accelerator", "fluid_bound"), 600.0), parallel=2),
        Phase("Exact", _jobs([*table_3, *third], (EXACT,), 300.0, workers=2), parallel=1),
    ]


class Runs:
    """Records by instance name and method, and the throughput of a makespan."""

    def __init__(self, records: Runs) -> None:
        self.records = records
        self.by = {(r.instance, r.method): r for r in records if not r.error}
        known = facts(records)  # one instance may have two names: two FPGAs of the scaling study are cluster 1
        self.facts = {r.instance: known[r.instance_hash] for r in records}

    def gflops(self, name: str, method: str) -> float | None:
        record = self.by.get((name, method))
        return record.terms.get("throughput_gflops") if record and record.objective is not None else None

    def gflops_of(self, name: str, ticks: int | None) -> float | None:
        """Throughput of a makespan (or of a bound on it) of this instance."""
        data = instance(name)
        return None if not ticks else float(data.flops / (ticks * data.seconds_per_tick) / 1e9)

    def synchronous(self, name: str, method: str) -> float | None:
        """Throughput of a sharding rival as Sec. III-B executes it: on all devices, gather and scatter everywhere."""
        record = self.by.get((name, method))
        return self.gflops_of(name, record.notes.get("synchronous_ticks_on_all_devices")) if record else None

    def gap(self, name: str, method: str) -> float | None:
        """Percent above the best proven bound."""
        record, fact = self.by.get((name, method)), self.facts.get(name)
        gap = relative(record.objective, fact.bound) if record and fact else None
        return None if gap is None else 100 * gap

    def seconds(self, name: str, method: str) -> float | None:
        record = self.by.get((name, method))
        return record.wall_s if record else None


def published() -> dict[str, Any]:
    """Printed numbers by identifier."""
    from mapgap.instances.published_numbers import load_published

    return load_published("mtrain")
