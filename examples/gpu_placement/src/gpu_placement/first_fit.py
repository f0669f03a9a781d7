"""The baseline: every model on the first GPU that has room, however crowded it is."""

from gpu_placement.evaluate import evaluate
from gpu_placement.instance import Instance, Plan
from mapgap.core import Budget, SolveResult, Status, Stop


def run(instance: Instance, budget: Budget) -> SolveResult:
    """Fill one GPU after the other; 1 GB stays free."""
    free = [instance.memory - 1] * len(instance.gpus)
    chosen = []
    for name, size in zip(instance.models, instance.sizes, strict=True):
        i = next((i for i in range(len(free)) if size <= free[i]), None)
        if i is None:
            return SolveResult(Status.UNKNOWN, Stop.DONE, reason=f"no GPU has room left for {name}")
        free[i] -= size
        chosen.append(i)
    plan = Plan(gpus=tuple(chosen))
    if not evaluate(instance, plan).feasible:
        return SolveResult(Status.UNKNOWN, Stop.DONE, reason="its placement breaks a rule")
    return SolveResult(Status.FEASIBLE, Stop.DONE, plan)
