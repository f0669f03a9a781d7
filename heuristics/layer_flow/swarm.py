"""SWARM's stages, as Helix compares with them.

References
----------
Ryabinin, Dettmers, Diskin, Borzunov, "SWARM Parallelism: Training Large Models Can Be Surprisingly Communication-
Efficient", ICML 2023. ``swarm_layout.py`` in Thesys-lab/Helix-ASPLOS25.

Interpretation
--------------
1.  The model is cut into stages of equally many layers, so many that the smallest node can hold one; their number is
    the caller's there. Here ``stages`` says it, and 0 stands for the least number that divides the layers.
2.  Nodes are sorted by their throughput with the layers of a stage, the fastest first (of equal ones the last, as
    ``sort(reverse=True)`` of pairs does), and each joins the stage whose throughput is the least so far; of equal
    stages the first.
3.  The cut of links per node that follows there serves their simulator; here all links stay.
"""

from __future__ import annotations

from mapgap.core import Budget, SolveResult, Status, Stop
from mapgap.problems.layer_flow import Instance, Plan


def run(instance: Instance, budget: Budget, stages: int = 0) -> SolveResult:
    """Equal stages, filled by throughput."""
    least = min(len(node.throughput) for node in instance.nodes)
    able = [n for n in range(1, instance.layers + 1) if instance.layers % n == 0 and instance.layers // n <= least]
    if stages and stages not in able:
        reason = f"the instance: expected a number of stages of {able}, found {stages}"
        return SolveResult(Status.UNKNOWN, Stop.DONE, reason=reason)
    number = stages or able[0]
    held = instance.layers // number
    sofar = [0] * number
    starts = [0] * len(instance.nodes)
    for speed, i in sorted(((node.throughput[held - 1], i) for i, node in enumerate(instance.nodes)), reverse=True):
        stage = sofar.index(min(sofar))
        sofar[stage] += speed
        starts[i] = held * stage
    plan = Plan(starts=tuple(starts), counts=(held,) * len(starts))
    return SolveResult(Status.FEASIBLE, Stop.DONE, plan)
