"""Brute force: every GPU for every model, each plan judged by the evaluator alone."""

from itertools import product

from gpu_placement.evaluate import evaluate
from gpu_placement.instance import Instance, Plan
from mapgap.core import Budget, SolveResult, Status, Stop

LIMIT = 200_000
"""Most plans that are tried."""


def run(instance: Instance, budget: Budget) -> SolveResult:
    """Try everything; UNKNOWN if that is too much."""
    plans = len(instance.gpus) ** len(instance.models)
    if plans > LIMIT:
        return SolveResult(Status.UNKNOWN, Stop.DONE, reason=f"{plans} plans, at most {LIMIT} tried")
    best: int | None = None
    winner: Plan | None = None
    for gpus in product(range(len(instance.gpus)), repeat=len(instance.models)):
        if budget.exhausted:
            return SolveResult(Status.FEASIBLE if winner else Status.UNKNOWN, Stop.TIME, winner, reason="out of time")
        plan = Plan(gpus=gpus)
        found = evaluate(instance, plan)
        if found.feasible and found.objective is not None and (best is None or found.objective < best):
            best, winner = found.objective, plan
            budget.report(plan=plan)
    if winner is None:
        reason = f"each of {plans} plans breaks a rule"
        return SolveResult(Status.INFEASIBLE, Stop.PROVED, enumerated=True, reason=reason)
    return SolveResult(Status.OPTIMAL, Stop.PROVED, winner, bound=best, claimed=best, enumerated=True)
