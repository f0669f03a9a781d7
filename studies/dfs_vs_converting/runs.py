"""Runs of the study DFS versus converting: which instances and methods, and throughput, gap and time of a run."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from mapgap.catalogue.files import load_instance
from mapgap.execution.sweep import Job, MethodJob
from mapgap.instances.published_numbers import load_published
from mapgap.problems.suboperation_mapping import Instance
from mapgap.records.runs import Runs
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
def instance(name: str) -> Instance:
    """An instance of the library, expanded once."""
    found = load_instance(name)
    assert isinstance(found, Instance)
    return found


def _jobs(names: Iterable[str], methods: Iterable[str], time_s: float, workers: int = 1) -> list[Job]:
    chosen = tuple(methods)
    return [MethodJob(instance(name), method, time_s, workers=workers) for name in names for method in chosen]


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


def gflops(runs: Runs, name: str, method: str) -> float | None:
    """Throughput of the plan that a method found."""
    found: float | None = runs.term(name, method, "throughput_gflops")
    return found


def gflops_of(name: str, ticks: int | None) -> float | None:
    """Throughput of a makespan (or of a bound on it) of this instance."""
    data = instance(name)
    return None if not ticks else data.flops / (ticks * data.seconds_per_tick) / 1e9


def synchronous(runs: Runs, name: str, method: str) -> float | None:
    """Throughput of a sharding rival as Sec. III-B executes it: on all devices, gather and scatter everywhere."""
    return gflops_of(name, runs.note(name, method, "synchronous_ticks_on_all_devices"))


def gap(runs: Runs, name: str, method: str) -> float | None:
    """Percent above the best proven bound."""
    share = runs.gap(name, method)
    return None if share is None else 100 * share


def seconds(runs: Runs, name: str, method: str) -> float | None:
    """Seconds that a run took."""
    record = runs.get(name, method)
    return None if record is None else record.wall_s


def published() -> dict[str, float]:
    """Printed numbers by identifier."""
    return load_published("mtrain")
