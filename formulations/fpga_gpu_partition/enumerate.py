"""Brute force: every choice of one option per layer, each timed and judged by the evaluator."""

from __future__ import annotations

from itertools import product
from math import prod

from mapgap.core import Budget, SolveResult, Status, Stop
from mapgap.problems.fpga_gpu_partition import Instance, Plan
from mapgap.problems.fpga_gpu_partition.evaluate import evaluate

LIMIT = 200_000
"""Most plans that are tried."""


def run(instance: Instance, budget: Budget) -> SolveResult:
    """Try everything; UNKNOWN with a reason if that is too much or the time runs out."""
    plans = prod(len(layer.options) for layer in instance.layers)
    if plans > LIMIT:
        return SolveResult(Status.UNKNOWN, Stop.DONE, reason=f"{plans} plans, at most {LIMIT} are tried")
    best: Plan | None = None
    value: int | None = None
    for names in product(*([option.name for option in layer.options] for layer in instance.layers)):
        if budget.exhausted:
            return SolveResult(Status.UNKNOWN if best is None else Status.FEASIBLE, Stop.TIME, plan=best)
        plan = Plan(options=names)
        checked = evaluate(instance, plan)
        if checked.feasible and checked.objective is not None and (value is None or checked.objective < value):
            best, value = plan, checked.objective
            budget.report(plan=plan)
    notes = {"plans": plans}
    if best is None:
        reason = f"none of {plans} plans keeps fabric and limits"
        return SolveResult(Status.INFEASIBLE, Stop.PROVED, enumerated=True, reason=reason, notes=notes)
    return SolveResult(Status.OPTIMAL, Stop.PROVED, best, value, value, enumerated=True, notes=notes)
