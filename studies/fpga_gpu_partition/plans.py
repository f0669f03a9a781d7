"""What the tables of the FPGA-GPU study read from its runs: terms of plans, plans priced anew, fronts, gains."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, Literal

from mapgap.problems.fpga_gpu_partition import PROBLEM, Instance, Plan
from mapgap.records.runs import Runs
from mapgap.studies.fpga_gpu_partition.experiments import FRONT

Terms = Mapping[str, Any]
"""``Evaluation.terms`` of a plan."""


def terms_of(runs: Runs, instance: str, method: str) -> Terms | None:
    """Terms of a method's verified plan."""
    record = runs.get(instance, method)
    return None if record is None or record.objective is None else record.terms


def chosen_options(runs: Runs, instance: str, method: str) -> tuple[str, ...] | None:
    """The option of every layer in a method's verified plan."""
    record = runs.get(instance, method)
    if record is None or record.objective is None or record.plan is None:
        return None
    return tuple(record.plan["options"])


def repriced(runs: Runs, instance: str, method: str, elsewhere: Instance) -> Terms | None:
    """Terms of a method's plan for one instance on another with the same options, priced anew.

    The paper's rule does not look at times or energies: its plan is the same under every fit and every link.
    """
    options = chosen_options(runs, instance, method)
    if options is None:
        return None
    found = PROBLEM.evaluate(elsewhere, Plan(options=options))
    return found.terms if found.feasible else None


def front_of(runs: Runs, instance: str) -> list[tuple[int, int]] | None:
    """Energy and latency of the points of a complete front."""
    if not runs.note(instance, FRONT, "front_complete"):
        return None
    return [(point["energy"], point["latency"]) for point in runs.note(instance, FRONT, "front")]


@cache
def _on_gpu(instance: Instance) -> Terms:
    """Terms of everything on the GPU."""
    return PROBLEM.evaluate(instance, Plan(options=tuple("gpu" for _ in instance.layers))).terms


def reference(instance: Instance) -> tuple[int, int]:
    """Energy and latency of everything on the GPU."""
    alone = _on_gpu(instance)
    return alone["energy"], alone["latency"]


def gain(instance: Instance, plan: Terms, what: Literal["energy", "latency"]) -> float:
    """GPU-only over the plan."""
    return int(_on_gpu(instance)[what]) / int(plan[what])
