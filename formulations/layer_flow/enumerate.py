"""Brute force: every interval of every node, each placement judged by the evaluator."""

from __future__ import annotations

from itertools import product
from math import prod

from mapgap.core import Budget, SolveResult, Status, Stop
from mapgap.problems.layer_flow import Instance, Plan
from mapgap.problems.layer_flow.evaluate import evaluate

LIMIT = 20_000
"""Most placements that are tried."""

LOOK = 100
"""Placements between two looks at the clock."""


def run(instance: Instance, budget: Budget) -> SolveResult:
    """Try everything; UNKNOWN with a reason if that is too much, FEASIBLE or UNKNOWN if the time runs out."""
    intervals = [
        [(s, k) for k in range(1, len(node.throughput) + 1) for s in range(instance.layers - k + 1)]
        for node in instance.nodes
    ]
    count = prod(map(len, intervals))
    if count > LIMIT:
        return SolveResult(Status.UNKNOWN, Stop.DONE, reason=f"{count} placements, at most {LIMIT} tried")
    best, winner = -1, None
    for number, chosen in enumerate(product(*intervals)):
        if number % LOOK == 0 and budget.exhausted:
            status = Status.UNKNOWN if winner is None else Status.FEASIBLE
            return SolveResult(status, Stop.TIME, winner, reason="out of time")
        plan = Plan(starts=tuple(s for s, _ in chosen), counts=tuple(k for _, k in chosen))
        value = evaluate(instance, plan).objective
        if value is not None and value > best:
            best, winner = value, plan
            budget.report(plan=plan)
    return SolveResult(Status.OPTIMAL, Stop.PROVED, winner, best, best, enumerated=True, notes={"placements": count})
