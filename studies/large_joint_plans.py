"""The exact method of multi-model splitting on many pipelines and devices: gap, and distance to every heuristic.

Fresh seeds of the largest families. The portfolio runs for 1, 10 and 60 s, every published heuristic and every baseline
once; at a time limit those count that had ended by then.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from mapgap.catalogue import registry
from mapgap.execution.sweep import MethodJob
from mapgap.records.record import RunRecord
from mapgap.records.runs import Runs
from mapgap.reporting.report import Page, Section
from mapgap.reporting.study import Phase, Study
from mapgap.reporting.tables import Rows, tabulated

PROBLEM, EXACT = "multi_model_splitting", "portfolio"
LIMITS_S = (1.0, 10.0, 60.0)
LATER = ("first_plans",)
"""Methods that came after these runs."""


@dataclass(frozen=True)
class Field:
    """What is solved of a family, and how long a heuristic may take at most: some never end on many devices."""

    seeds: range
    heuristic_s: float = LIMITS_S[-1]


FAMILIES = {
    "wearables_20x16": Field(range(200, 220)),
    "mixed_20x16": Field(range(200, 220)),
    "large_models_20x16": Field(range(200, 220)),
    "wearables_30x20": Field(range(200, 210), LIMITS_S[1]),
    "mixed_30x20": Field(range(200, 210), LIMITS_S[1]),
}
GAPS = {"close": 0.01, "near": 0.05, "far": 0.10}
"""Gaps that are counted."""


def phases(quick: bool) -> list[Phase]:
    """One phase per family; the small version has an instance of each for the shortest time."""
    methods = registry.methods(PROBLEM).values()
    heuristics = [m.name for m in methods if m.kind in ("published", "baseline") and m.name not in LATER]
    found = []
    for family, field in FAMILIES.items():
        jobs: list[MethodJob] = []
        for seed in field.seeds[:1] if quick else field.seeds:
            instance = registry.library(PROBLEM).generate(family, seed)
            jobs += (MethodJob(instance, EXACT, limit) for limit in (LIMITS_S[:1] if quick else LIMITS_S))
            jobs += (MethodJob(instance, name, LIMITS_S[0] if quick else field.heuristic_s) for name in heuristics)
        found.append(Phase(family, jobs))
    return found


def family_of(record: RunRecord) -> str:
    """The family of a generated instance."""
    return next(family for family in FAMILIES if record.instance.startswith(f"{family}_"))


@tabulated(
    "counted",
    "The exact method on large instances",
    "family | limit: time [s]; .0f | instances | plans: with a plan | worse: worse than a heuristic | proven "
    "| close: gap at most 1 % | near: at most 5 % | far: at most 10 % | mean: mean gap [%]; .2f "
    "| worst: worst gap [%]; .1f | late: over time by more than 1 s",
    "Gap: plan over proven bound, less one. Worse: some published heuristic or baseline that ended within the time has "
    "a better plan, or has one where there is none.",
)
def counted(runs: Runs) -> Rows:
    """A row per family and time limit of the portfolio."""
    others: dict[str, list[RunRecord]] = {}
    for record in runs:
        if record.method != EXACT:
            others.setdefault(record.instance_hash, []).append(record)
    for family in FAMILIES:
        for limit in LIMITS_S:
            mine = [r for r in runs if r.method == EXACT and r.time_limit_s == limit and family_of(r) == family]
            if mine:
                yield {"family": family, "limit": limit} | _row(mine, others)


def _row(mine: Sequence[RunRecord], others: dict[str, list[RunRecord]]) -> dict[str, Any]:
    gaps = [record.gap for record in mine if record.gap is not None]
    worse = 0
    for record in mine:
        ended = [each for each in others.get(record.instance_hash, []) if (each.wall_s or 0.0) <= record.time_limit_s]
        values = [each.objective for each in ended if each.objective is not None]
        worse += bool(values) and (record.objective is None or record.objective > min(values))
    counts = {key: sum(gap <= most for gap in gaps) for key, most in GAPS.items()}
    return counts | {
        "instances": len(mine),
        "plans": sum(record.objective is not None for record in mine),
        "worse": worse,
        "proven": sum(record.status == "OPTIMAL" for record in mine),
        "mean": 100 * fmean(gaps) if gaps else None,
        "worst": 100 * max(gaps) if gaps else None,
        "late": sum((record.wall_s or 0.0) > record.time_limit_s + 1.0 for record in mine),
    }


@tabulated(
    "each",
    "Every instance",
    "instance | limit: time [s]; .0f | plan | bound | gap: gap [%]; .2f | heuristic: best heuristic "
    "| heuristic_plan: its plan",
    "Plans and bounds are cycle times in ticks of the instance.",
)
def each(runs: Runs) -> Rows:
    """Every instance at the longest limit that it ran for, with the best heuristic beside it."""
    for instance in dict.fromkeys(record.instance for record in runs):
        mine = [record for record in runs if record.instance == instance]
        exact = max((r for r in mine if r.method == EXACT), key=lambda r: r.time_limit_s, default=None)
        planned = [r for r in mine if r.method != EXACT and r.objective is not None]
        best = min(planned, key=lambda r: r.objective or 0, default=None)
        if exact is not None:
            row = {"instance": instance, "limit": exact.time_limit_s, "plan": exact.objective, "bound": exact.bound}
            row |= {"gap": None if exact.gap is None else 100 * exact.gap}
            yield row | {"heuristic": best and best.method, "heuristic_plan": best and best.objective}


def page(records: Runs, quick: bool) -> Page:
    """Both tables."""
    most: dict[str, list[str]] = {f"{field.heuristic_s:g} s": [] for field in FAMILIES.values()}
    for family, field in FAMILIES.items():
        most[f"{field.heuristic_s:g} s"].append(f"{field.seeds[0]} to {field.seeds[-1]} of {family}")
    lead = [
        f"Joint plans of many pipelines on many devices (30x20: 30 pipelines on 20 devices): the method {EXACT} for 1, "
        "10 and 60 s beside all published heuristics and baselines.",
        *(f"Seeds {', '.join(seeds)}, every heuristic for at most {time}." for time, seeds in most.items()),
    ]
    if quick:
        lead.append("The small version: one instance of each family, for 1 s.")
    return Page("Large joint plans", lead, [Section("Gaps", tables=[counted(records), each(records)])])


STUDY = Study(
    name="large_joint_plans",
    title="Joint plans of many pipelines on many devices",
    problem=PROBLEM,
    phases=phases,
    page=page,
    headline=["counted"],
)
