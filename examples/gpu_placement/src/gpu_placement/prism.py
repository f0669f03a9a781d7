"""Prism's placement: the model of largest demand next, on the GPU of least pressure that has room.

References
----------
Yu et al., "Prism: Unleashing GPU Sharing for Cost-Efficient Multi-LLM Serving", arXiv:2505.04021, Algorithm 1, as in
``benchmarks/ADRS/prism/initial_program.py`` of SkyDiscover (59643ef8), which leaves the check of tau out.

Interpretation
--------------
"Room" is what the benchmark asks for: the weights fit, so a GPU may become full. A plan that breaks a rule in the end
(a full GPU, tau, a pair) is none: the algorithm does not look back. Ties go to the first model and the first GPU.
"""

from fractions import Fraction

from gpu_placement.evaluate import evaluate
from gpu_placement.instance import Instance, Plan
from mapgap.core import Budget, SolveResult, Status, Stop


def run(instance: Instance, budget: Budget) -> SolveResult:
    """Place one model after the other."""
    free = [instance.memory] * len(instance.gpus)
    demand = [0] * len(instance.gpus)
    chosen: dict[int, int] = {}
    for j in sorted(range(len(instance.models)), key=lambda j: -instance.demands[j]):
        able = [i for i in range(len(instance.gpus)) if free[i] > 0 and instance.sizes[j] <= free[i]]
        if not able:
            return SolveResult(Status.UNKNOWN, Stop.DONE, reason=f"no GPU has room left for {instance.models[j]}")
        i = min(able, key=lambda i: Fraction(demand[i], free[i]))
        chosen[j] = i
        free[i] -= instance.sizes[j]
        demand[i] += instance.demands[j]
    plan = Plan(gpus=tuple(chosen[j] for j in range(len(instance.models))))
    found = evaluate(instance, plan)
    if not found.feasible:
        return SolveResult(Status.UNKNOWN, Stop.DONE, reason=f"its placement breaks {found.violations[0].rule}")
    return SolveResult(Status.FEASIBLE, Stop.DONE, plan)
