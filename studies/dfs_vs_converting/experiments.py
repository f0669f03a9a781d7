"""Runs of the study DFS versus converting: which instances and methods, and throughput, gap and time of a run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

from mapgap.catalogue.files import load_instance
from mapgap.execution.sweep import Job, MethodJob
from mapgap.instances.published_numbers import load_published
from mapgap.problems.suboperation_mapping import Instance
from mapgap.records.record import RunRecord
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
READINGS = {method: (method, f"{method}_makespan") for method in (DFS, CONVERTING)}
"""Methods in both readings of the delta latency: the literal sum, and the growth of the makespan."""
STEP_SIZES = (1, 2, 4, 8, 16)
OPTIONS: Mapping[str, tuple[Mapping[str, Any], ...]] = {
    DFS: ({}, {"ordered": True}),
    CONVERTING: ({}, *({"step_size": size} for size in STEP_SIZES[1:])),
}
"""What the paper leaves open besides: whether DFS takes every order of the parts of a partition, and the step size of
converting, "a search parameter" (Sec. IV-A) that is not printed. First the defaults: partitions, one sample."""
VARIANTS = {method: [(m, options) for options in OPTIONS[method] for m in READINGS[method]] for method in READINGS}
"""Every reading of a method: the variants of the delta latency with the defaults first."""
QUICK, ANNEAL, SINGLE = "annealed_converting", "anneal", "single_accelerator"
STEPS = ("mtrain_mapping_step1", "mtrain_mapping_step2", "mtrain_mapping_step3", CONVERTING)
FPGAS = (2, 4, 6, 8)
SCALE_BANDWIDTHS = ("0p5", "3", "15")
RIVALS = (SINGLE, "alpa_sharding", "hap_sharding", "heft", "mtrain_converting_fallback")


def library_name(cluster: int, network: str, bandwidth: str) -> str:
    """Library name of an instance of Sec. VI-A."""
    return f"mtrain_c{cluster}_{network}_{bandwidth}gbs"


def scale_name(fpgas: int, bandwidth: str) -> str:
    """Library name of an instance of Fig. 12."""
    return f"mtrain_scale_{fpgas}fpga_resnet18_{bandwidth}gbs"


@cache
def instance(name: str) -> Instance:
    """An instance of the library, expanded once."""
    found = load_instance(name)
    assert isinstance(found, Instance)
    return found


def _jobs(names: Iterable[str], methods: Iterable[str], time_s: float, workers: int = 1) -> list[Job]:
    chosen = tuple(methods)
    return [MethodJob(instance(name), method, time_s, workers=workers) for name in names for method in chosen]


def _open(names: Iterable[str], methods: Iterable[str], time_s: float) -> list[Job]:
    """The methods in the readings beside the defaults."""
    chosen = [each for method in methods for each in VARIANTS[method] if each[1]]
    return [MethodJob(instance(name), method, time_s, options=given) for name in names for method, given in chosen]


def phases(quick: bool) -> list[Phase]:
    """The runs; the quick version is Table III's eight cases with a short exact search and one ablation."""
    table_3 = [library_name(c, network, "3") for network in TABLE_3 for c in (1, 2)]
    published = (*READINGS[DFS], *READINGS[CONVERTING])
    if quick:
        grown = [scale_name(n, bandwidth) for n in (2, 4) for bandwidth in ("0p5", "15")]
        ablation = [library_name(1, "resnet18", bandwidth) for bandwidth in ("0p125", "3", "15")]
        return [
            Phase("DFS and converting", _jobs(table_3, (*published, LISTED, QUICK, SINGLE), 60.0), parallel=2),
            Phase("Steps of MTrain", _jobs(ablation, (*STEPS, SINGLE), 60.0), parallel=2),
            Phase("Scaling", _jobs(grown, (*READINGS[CONVERTING], QUICK, SINGLE), 60.0), parallel=2),
            Phase("Step sizes and orders", _open(table_3, (DFS, CONVERTING), 60.0), parallel=2),
            Phase("Exact, 25 s each", _jobs(table_3, (EXACT,), 25.0), parallel=2),
        ]
    # DFS maps every ratio, 374 on cluster 3.
    few = [library_name(c, network, b) for c in (1, 2) for network in TITLES for b in BANDWIDTHS]
    every = [library_name(c, network, b) for c in (1, 2, 3) for network in TITLES for b in BANDWIDTHS]
    third = [library_name(3, network, "3") for network in TABLE_3]
    scale = [scale_name(n, bandwidth) for n in FPGAS for bandwidth in SCALE_BANDWIDTHS]
    return [
        Phase("DFS and converting", _jobs([*table_3, *third], (*published, LISTED), 300.0), parallel=1),
        Phase("Steps and rivals", _jobs(every, (*STEPS, *READINGS[CONVERTING][1:], *RIVALS, QUICK), 300.0), parallel=2),
        Phase("DFS in both readings", _jobs(few, READINGS[DFS], 300.0), parallel=2),
        Phase("Scaling", _jobs(scale, (*READINGS[CONVERTING], QUICK, SINGLE), 600.0), parallel=2),
        Phase("Orders of the parts", _open([*few, *third], (DFS,), 300.0), parallel=2),
        Phase("Step sizes", _open([*every, *scale], (CONVERTING,), 600.0), parallel=2),
        Phase("Limits", _jobs([*every, *scale], ("fluid_bound",), 2.0), parallel=2),
        Phase("Exact, one minute", _jobs([*table_3, *third], (EXACT,), 60.0), parallel=1),
        Phase("Best plans", _jobs([*table_3, *third], (ANNEAL,), 20.0), parallel=1),
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


def kindest(runs: Runs, name: str, method: str) -> RunRecord | None:
    """Of all readings of a method the one with the fastest plan on this instance; of equal ones the first."""
    found = [record for m, given in VARIANTS[method] if (record := runs.get(name, m, **given))]
    return max((record for record in found if record.objective is not None), key=speed, default=None)


def speed(record: RunRecord) -> float:
    """Throughput of a run's plan, in GFLOPS."""
    return float(record.terms["throughput_gflops"])


def speeds(runs: Runs, name: str, method: str) -> list[float]:
    """Throughput in every reading that has a plan, in the order of :data:`VARIANTS`."""
    found = [runs.get(name, m, **given) for m, given in VARIANTS[method]]
    return [speed(record) for record in found if record is not None and record.objective is not None]


def synchronous(runs: Runs, name: str, method: str) -> float | None:
    """Throughput of a sharding rival as Sec. III-B executes it: on all devices, gather and scatter everywhere."""
    return gflops_of(name, runs.note(name, method, "synchronous_ticks_on_all_devices"))


def seconds(runs: Runs, name: str, method: str) -> float | None:
    """Seconds that a run took."""
    record = runs.get(name, method)
    return None if record is None else record.wall_s


def published() -> dict[str, float]:
    """Printed numbers by identifier."""
    return load_published("mtrain")
