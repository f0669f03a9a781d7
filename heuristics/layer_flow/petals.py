"""Petals' choice of layers, as Helix compares with it.

References
----------
Borzunov et al., "Petals: Collaborative Inference and Fine-tuning of Large Models", 2023, Appendix D.
``petals_layout.py`` in Thesys-lab/Helix-ASPLOS25.

Interpretation
--------------
1.  Nodes join one after the other, in an order drawn by the seed (there: ``random.shuffle``).
2.  A node holds as many layers as it can. Of all intervals it takes the one whose throughputs so far, sorted, are the
    least (lexicographically); of equal ones the first. Then its own throughput counts for each of its layers.
3.  Links are not looked at, and intervals overlap as they fall: the layout is meant for partial inference. Where the
    instance does not allow it, only nodes whose intervals happen to join pass tokens on.
"""

from __future__ import annotations

import random

from mapgap.core import Budget, SolveResult, Status, Stop
from mapgap.problems.layer_flow import Instance, Plan


def run(instance: Instance, budget: Budget) -> SolveResult:
    """Nodes join in the order that the seed draws."""
    order = list(range(len(instance.nodes)))
    random.Random(budget.seed).shuffle(order)
    sofar = [0] * instance.layers
    starts, counts = [0] * len(order), [0] * len(order)
    for i in order:
        held = len(instance.nodes[i].throughput)
        start = min(range(instance.layers - held + 1), key=lambda s: (sorted(sofar[s : s + held]), s))
        starts[i], counts[i] = start, held
        for layer in range(start, start + held):
            sofar[layer] += instance.nodes[i].throughput[-1]
    return SolveResult(Status.FEASIBLE, Stop.DONE, Plan(starts=tuple(starts), counts=tuple(counts)))
