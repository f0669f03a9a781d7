"""A bound without a solver.

Let ``q[j]`` be the time of job j where it is fastest. The machine of a job is busy for at least ``q[j]``, and all
machines together for at least ``sum_j q[j]``, so the busiest of m machines for at least the m-th part of that.
"""

from mapgap.core import Budget, SolveResult, Status, Stop
from unrelated_machines.evaluate import diagnose
from unrelated_machines.instance import Instance


def run(instance: Instance, budget: Budget) -> SolveResult:
    """The larger of the longest job and the mean load, every job where it is fastest."""
    reasons = diagnose(instance)
    if reasons:
        return SolveResult(Status.INFEASIBLE, Stop.PROVED, reason="; ".join(reasons))
    fastest = [min(instance.time(i, j) for i in instance.able(j)) for j in range(len(instance.jobs))]
    bound = max(max(fastest), -(-sum(fastest) // len(instance.machines)))
    return SolveResult(Status.UNKNOWN, Stop.DONE, bound=bound, reason="a bound, not a plan")
