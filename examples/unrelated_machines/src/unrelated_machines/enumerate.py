"""Brute force: every machine for every job, each plan judged by the evaluator alone."""

from itertools import product

from mapgap.core import Budget, SolveResult, Status, Stop
from unrelated_machines.evaluate import evaluate
from unrelated_machines.instance import Instance, Plan

LIMIT = 200_000
"""Most plans that are tried."""


def run(instance: Instance, budget: Budget) -> SolveResult:
    """Try everything; UNKNOWN if that is too much."""
    plans = len(instance.machines) ** len(instance.jobs)
    if plans > LIMIT:
        return SolveResult(Status.UNKNOWN, Stop.DONE, reason=f"{plans} plans, at most {LIMIT} tried")
    best: int | None = None
    winner: Plan | None = None
    for machines in product(range(len(instance.machines)), repeat=len(instance.jobs)):
        if budget.exhausted:
            return SolveResult(Status.FEASIBLE if winner else Status.UNKNOWN, Stop.TIME, winner, reason="out of time")
        plan = Plan(machines=machines)
        found = evaluate(instance, plan)
        if found.feasible and found.objective is not None and (best is None or found.objective < best):
            best, winner = found.objective, plan
            budget.report(plan=plan)
    if winner is None:
        reason = f"each of {plans} plans breaks a rule"
        return SolveResult(Status.INFEASIBLE, Stop.PROVED, enumerated=True, reason=reason)
    return SolveResult(Status.OPTIMAL, Stop.PROVED, winner, bound=best, claimed=best, enumerated=True)
