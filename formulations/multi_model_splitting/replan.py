"""Re-planning with the least churn among the best plans.

Two steps: the joint optimum (``portfolio``), then, among the plans whose objective exceeds it by at most ``slack``
percent, the one that writes the fewest bytes of weights and bias of pipelines that are deployed already (rule 11). The
second step is the CP-SAT model with the limit of the first and

    minimise  sum over layers l of deployed pipelines of  bytes[l] (1 - x[l, device where l is deployed]).
"""

from __future__ import annotations

from dataclasses import replace

from mapgap.core import DISTRUSTED, Budget, PlanBase, SolveResult, Status, Stop
from mapgap.formulations.multi_model_splitting import portfolio
from mapgap.formulations.multi_model_splitting.assignment_model import AssignmentModel
from mapgap.formulations.multi_model_splitting.chains import Chain, chains, profiles
from mapgap.problems.multi_model_splitting import Instance, Plan, churn
from mapgap.problems.multi_model_splitting.evaluate import evaluate
from mapgap.solvers.model import prove


class LeastChurnModel(AssignmentModel):
    """The rows of the assignment model below ``limit``; the objective is the bytes that are written again."""

    def __init__(self, instance: Instance, chains: list[Chain], limit: int) -> None:
        super().__init__(instance, chains, limit, minimise=False)
        home = {(old.pipeline, i): old.device for old in instance.deployed for i in range(old.first, old.last)}
        known = {old.pipeline for old in instance.deployed}
        kept = []
        for pipeline, chain, x in zip(instance.pipelines, chains, self.x, strict=True):
            size = [layer.weights + layer.bias for layer in pipeline.layers]
            self.constant += sum(size) if pipeline.name in known else 0
            for (k, d), literal in x.items():
                here = sum(
                    size[i]
                    for i in range(chain.cuts[k], chain.cuts[k + 1])
                    if home.get((pipeline.name, i)) == instance.devices[d].name
                )
                if here:
                    kept.append(-here * literal)
        self.program.minimize(sum(kept))


def least_churn(instance: Instance, plan: Plan, limit: int, budget: Budget) -> tuple[Plan, bool, list[str]]:
    """A plan of objective at most ``limit`` that writes least, starting from ``plan``, one of them.

    Returns
    -------
    plan : Plan
        ``plan`` itself where the engine finds nothing better or contradicts itself.
    proven : bool
    distrusted : list of str
        Why the engine is not believed.
    """
    known = churn(instance, plan).moved_weights

    def worth(found: PlanBase) -> int | None:
        assert isinstance(found, Plan)
        checked = evaluate(instance, found)
        within = checked.feasible and checked.objective is not None and checked.objective <= limit
        return churn(instance, found).moved_weights if within else None

    reduced = chains(instance, profiles(instance), limit)
    if reduced is None:
        return plan, False, [f"chains: none up to {limit}, which a plan reaches"]
    model = LeastChurnModel(instance, reduced, limit)
    result = prove(model, budget, start=plan, announce=False, value=worth, known=known)
    distrusted = list(result.notes.get(DISTRUSTED, ()))
    if not isinstance(result.plan, Plan) or churn(instance, result.plan).moved_weights > known:
        return plan, False, distrusted
    return result.plan, result.status is Status.OPTIMAL, distrusted


def run(instance: Instance, budget: Budget, slack: int = 0) -> SolveResult:
    """Best plan, then least churn within ``slack`` percent of it; the best plan itself where no engine is believed."""
    best = portfolio.run(instance, budget)
    if not isinstance(best.plan, Plan) or not instance.deployed or budget.exhausted:
        return best
    value = evaluate(instance, best.plan).objective
    if value is None:  # whoever evaluates it says why
        return best
    plan, proven, distrusted = least_churn(instance, best.plan, value + value * slack // 100, budget)
    notes = {**best.notes, "least_churn_proven": proven}
    if distrusted:
        notes[DISTRUSTED] = [*best.notes.get(DISTRUSTED, ()), *distrusted]
    objective = evaluate(instance, plan).objective
    if objective == value:
        return replace(best, plan=plan, notes=notes)
    return SolveResult(Status.FEASIBLE, Stop.DONE, plan, best.bound, objective, notes=notes)
