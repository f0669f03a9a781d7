"""Min-min, the list scheduling in which the job that can end first comes next.

References
----------
Ibarra, Kim, "Heuristic algorithms for scheduling independent tasks on nonidentical processors", Journal of the ACM 24
(1977), 280-289, https://doi.org/10.1145/322003.322011: one of their list rules; no plan of theirs is worse than m times
the optimum on m machines.
Braun et al., "A comparison of eleven static heuristics ...", Journal of Parallel and Distributed Computing 61 (2001),
810-837: the name.

Interpretation
--------------
Ties are left open. Here the first job of the instance wins, and of its machines the first.
"""

from mapgap.core import Budget, SolveResult, Status, Stop
from unrelated_machines.evaluate import diagnose
from unrelated_machines.instance import Instance, Plan


def run(instance: Instance, budget: Budget) -> SolveResult:
    """Place one job at a time, the one that can end first where it ends first."""
    reasons = diagnose(instance)
    if reasons:
        return SolveResult(Status.INFEASIBLE, Stop.PROVED, reason="; ".join(reasons))
    ready = [0] * len(instance.machines)
    chosen: dict[int, int] = {}
    while len(chosen) < len(instance.jobs):
        waiting = (j for j in range(len(instance.jobs)) if j not in chosen)
        end, job, machine = min((ready[i] + instance.time(i, j), j, i) for j in waiting for i in instance.able(j))
        ready[machine] = end
        chosen[job] = machine
    plan = Plan(machines=tuple(chosen[j] for j in range(len(instance.jobs))))
    return SolveResult(Status.FEASIBLE, Stop.DONE, plan)
