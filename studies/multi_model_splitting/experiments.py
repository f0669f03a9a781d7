"""Which instances and methods the study runs, and what its tables ask of the runs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import Any

from mapgap.catalogue import registry
from mapgap.catalogue.files import load_instance
from mapgap.core import InstanceBase
from mapgap.execution.sweep import Job, MethodJob
from mapgap.problems.multi_model_splitting import Instance
from mapgap.records.record import RunRecord
from mapgap.records.runs import Runs

PROBLEM = "multi_model_splitting"
EXACT, SYNERGY = "cpsat", "synergy"
BASELINES = {
    "min_dev": "MinDev",
    "max_dev": "MaxDev",
    "pri_min_dev": "PriMinDev",
    "pri_max_dev": "PriMaxDev",
    "ind_model": "IndModel",
    "joint_model": "JointModel",
    "ind_best": "IndBest",
}
ABLATIONS = {"synergy_without_joint": "Synergy w/o Joint", "synergy_without_source_target": "Synergy w/o Src&Tgt"}
TITLES = {SYNERGY: "Synergy", **BASELINES, **ABLATIONS}
WORKLOADS = tuple(f"synergy_w{i}_distributed" for i in (1, 2, 3, 4))
MAPPINGS = ("overlapped", "distributed", "any")
FIG_6 = ("synergy_fig6_distributed", "synergy_fig6_any")
FIG_11A = {n: f"synergy_fig11a_{n}devices" for n in (2, 3, 4, 5)}
FIG_11B = {n: f"synergy_fig11b_{n}pipelines" for n in range(1, 7)}
FIG_12 = ("synergy_fig12_4x78000", "synergy_fig12_3x78000_1x78002")
FIG_13 = tuple(f"synergy_w1_{mapping}" for mapping in MAPPINGS)
OVERLAPPED = tuple(f"{name}_overlapped" for name in (*FIG_11A.values(), *FIG_11B.values()))
OTHER_MAPPINGS = tuple(f"synergy_w{i}_{mapping}" for i in (2, 3, 4) for mapping in ("overlapped", "any"))
PAPER = tuple(dict.fromkeys([*WORKLOADS, *FIG_13, *FIG_11A.values(), *FIG_11B.values(), *FIG_12, *FIG_6]))
EVERY = (*PAPER, *OTHER_MAPPINGS, *OVERLAPPED)
SHORT = {name: name.removeprefix("synergy_") for name in EVERY}
QUICK = (*WORKLOADS, "synergy_w1_overlapped", "synergy_w1_any", *FIG_11A.values(), FIG_11B[5], FIG_11B[6], *FIG_12)
HARD = ("synergy_fig11a_2devices_overlapped", "synergy_fig11b_6pipelines_overlapped")
LOSSES = (*HARD, FIG_11A[2], "synergy_w1_overlapped")
"""Where the order of the pipelines matters."""
ORDER_RULES = ("io_bytes", "best")
SENSING_MS = (0, 20, 50, 100, 170)
"""Milliseconds of sensing, the same for all signals. Workload 1 placed anywhere completes a cycle every 178.6 ms in the
paper (3 / 16.8 per second), so that a sensing task of its three pipelines takes no longer."""
LONGEST_MS = SENSING_MS[-1]


@cache
def instance(name: str, objective: str = "throughput", sensing_ms: int = 0) -> Instance:
    """A library instance under one objective; every sensing task takes so many milliseconds."""
    found: InstanceBase = load_instance(name)
    if objective != "throughput":
        found = registry.problems()[PROBLEM].retarget(found, objective)
    assert isinstance(found, Instance)
    if sensing_ms == 0:
        return found
    ticks = (sensing_ms * 1_000_000,) * len(found.devices)
    sensed = tuple(p.model_copy(update={"sensing": tuple(t // found.tick_ns for t in ticks)}) for p in found.pipelines)
    return found.changed(name=f"{name}, sensing {sensing_ms} ms", pipelines=sensed)


def jobs(
    names: Iterable[str],
    methods: Iterable[str],
    time_s: float,
    *,
    objective: str = "throughput",
    sensing_ms: int = 0,
    **options: Any,
) -> list[Job]:
    """One run per instance and method; instances of equal content once."""
    chosen = tuple(methods)
    made: dict[str, Job] = {}
    for name in names:
        for method in chosen:
            job = MethodJob(instance(name, objective, sensing_ms), method, time_s, options=options)
            made.setdefault(job.key, job)
    return list(made.values())


@dataclass(frozen=True)
class Results:
    """The runs by library name, objective and order of the pipelines (empty: the method's own).

    ``sensing_ms`` chooses the variants of the instances whose sensing takes so long.
    """

    runs: Runs
    sensing_ms: int = 0

    def instance(self, name: str, objective: str = "throughput") -> Instance:
        """The instance that results under this name are about."""
        return instance(name, objective, self.sensing_ms)

    def record(self, name: str, method: str, objective: str = "throughput", order: str = "") -> RunRecord | None:
        """The last sound run of a method."""
        options = {"order": order} if order else {}
        return self.runs.get(self.instance(name, objective).content_hash, method, **options)

    def term(self, name: str, method: str, term: str = "throughput_per_s") -> float | None:
        """A term of the evaluation of the plan; ``None`` without a plan."""
        found: float | None = self.runs.term(self.instance(name).content_hash, method, term)
        return found

    def cell(self, name: str, method: str, term: str = "throughput_per_s") -> str | None:
        """A term as text, ``OOR`` if the method ran out of resource, ``None`` if there is no run."""
        record = self.record(name, method)
        if record is None:
            return None
        if record.objective is None:
            return "OOR" if "out of resource" in record.reason else "no plan"
        return f"{record.terms[term]:.4g}"

    def out_of_resource(self, name: str, method: str) -> bool | None:
        """``None`` if there is no run."""
        cell = self.cell(name, method)
        return None if cell is None else cell == "OOR"

    def best_ticks(self, name: str, objective: str = "throughput") -> int | None:
        """Best plan of all methods."""
        fact = self.runs.fact(self.instance(name, objective).content_hash)
        return fact.best if fact else None

    def proven(self, name: str, objective: str = "throughput") -> bool:
        """The best plan meets the best bound."""
        fact = self.runs.fact(self.instance(name, objective).content_hash)
        return bool(fact and fact.proven)

    def best_throughput(self, name: str) -> float | None:
        """Inferences per second of the best plan."""
        data, ticks = self.instance(name), self.best_ticks(name)
        return len(data.pipelines) / (ticks * data.seconds_per_tick) if ticks else None
