"""The baseline: every job on the machine that is fastest for it, however long the others wait there."""

from mapgap.core import Budget, SolveResult, Status, Stop
from unrelated_machines.evaluate import diagnose
from unrelated_machines.instance import Instance, Plan


def run(instance: Instance, budget: Budget) -> SolveResult:
    """Decide every job for itself; ties go to the first machine."""
    reasons = diagnose(instance)
    if reasons:
        return SolveResult(Status.INFEASIBLE, Stop.PROVED, reason="; ".join(reasons))
    chosen = (min(instance.able(j), key=lambda i: instance.time(i, j)) for j in range(len(instance.jobs)))
    return SolveResult(Status.FEASIBLE, Stop.DONE, Plan(machines=tuple(chosen)))
