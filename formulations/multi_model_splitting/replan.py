"""Re-planning with the least churn among the best plans.

Two steps: the joint optimum (``joint``), then, among the plans whose objective exceeds it by at most ``slack`` percent,
the one that writes the fewest bytes of weights and bias of pipelines that are deployed already (rule 11). The second
step is the CP-SAT model with the limit of the first and

    minimise  sum over layers l of deployed pipelines of  bytes[l] (1 - x[l, device where l is deployed]).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from mapgap.core import Budget, PlanError, SolveResult, Status, Stop
from mapgap.formulations.multi_model_splitting import joint
from mapgap.formulations.multi_model_splitting._chains import chains, profiles
from mapgap.formulations.multi_model_splitting._cpsat_model import Model
from mapgap.problems.multi_model_splitting import Instance, Plan
from mapgap.problems.multi_model_splitting.evaluate import evaluate


def least_churn(instance: Instance, plan: Plan, limit: int, budget: Budget) -> tuple[Plan, bool]:
    """A plan of objective at most ``limit`` that writes least, and whether that is proven; ``plan`` is a start."""
    from mapgap.solvers.cpsat import solve

    reduced = chains(instance, profiles(instance), limit)
    if reduced is None:
        raise PlanError(f"no plan up to {limit}, which a plan reaches")
    model = Model(instance, reduced, limit, minimise=False)
    home = {(old.pipeline, i): old.device for old in instance.deployed for i in range(old.first, old.last)}
    kept: list[tuple[int, Any]] = []
    for p, chain in enumerate(reduced):
        pipeline = instance.pipelines[p]
        for (k, d), literal in model.x[p].items():
            here = [
                pipeline.layers[i].weights + pipeline.layers[i].bias
                for i in range(chain.cuts[k], chain.cuts[k + 1])
                if home.get((pipeline.name, i)) == instance.devices[d].name
            ]
            if sum(here):
                kept.append((sum(here), literal))
    model.model.minimize(sum(-size * literal for size, literal in kept))
    outcome = solve(model.model, budget, hint=model.hint(plan))
    if not outcome.solved:
        return plan, False
    return model.decode(outcome.value), outcome.status is Status.OPTIMAL


def run(instance: Instance, budget: Budget, slack: int = 0) -> SolveResult:
    """Best plan, then least churn within ``slack`` percent of it."""
    best = joint.run(instance, budget)
    if not isinstance(best.plan, Plan) or not instance.deployed or budget.exhausted:
        return best
    value = evaluate(instance, best.plan).objective
    if value is None:
        raise PlanError("a plan without a value")
    plan, proven = least_churn(instance, best.plan, value + value * slack // 100, budget)
    checked = evaluate(instance, plan)
    if not checked.feasible or checked.objective is None:
        raise PlanError(f"a plan of the model breaks rules: {checked.violations}")
    notes = {**best.notes, "least_churn_proven": proven}
    if checked.objective == value:
        return replace(best, plan=plan, notes=notes)
    return SolveResult(Status.FEASIBLE, Stop.DONE, plan, best.bound, checked.objective, notes=notes)
