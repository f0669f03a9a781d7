"""A bound without a solver.

Let ``z`` be the largest pressure of a plan. On every GPU ``100 * demand <= z * free``. Summed over all g GPUs, the free
memory is ``g M - sum_j s[j]`` in every plan, so ``z >= 100 * sum_j d[j] / (g M - sum_j s[j])``. A model alone on its
GPU leaves ``M - s[j]`` free, and less with others beside it.
"""

from gpu_placement.evaluate import diagnose
from gpu_placement.instance import SCALE, Instance
from mapgap.core import Budget, SolveResult, Status, Stop


def run(instance: Instance, budget: Budget) -> SolveResult:
    """The larger of the mean pressure and that of the worst model alone."""
    reasons = diagnose(instance)
    if reasons:
        return SolveResult(Status.INFEASIBLE, Stop.PROVED, reason="; ".join(reasons))
    free = len(instance.gpus) * instance.memory - sum(instance.sizes)
    bound = -(-SCALE * sum(instance.demands) // free)
    for size, demand in zip(instance.sizes, instance.demands, strict=True):
        bound = max(bound, -(-SCALE * demand // (instance.memory - size)))
    return SolveResult(Status.UNKNOWN, Stop.DONE, bound=bound, reason="a bound, not a plan")
