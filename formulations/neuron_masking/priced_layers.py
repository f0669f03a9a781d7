"""Priced layers: the quick planner of the house, masks from prices of work and memory.

For every device and cycle time:

1. ELFISH's counts (:mod:`.elfish_greedy`, step 1) and the largest common share, both filled up with the neurons that
   still fit, most valuable first.
2. Prices of work and memory from cutting planes. Under each of them the best mask is a dynamic program along the
   layers; what lies outside of the limits is pulled inside and filled up.
3. Neurons of one layer are given for neurons of another while that is worth it.

Steps 2 and 3 are :mod:`mapgap.formulations.neuron_masking.prices`. Every layer
keeps its neurons of largest contribution, so the result is never worse than ELFISH's: same counts or more, and none
drawn. For the smallest share the common share is the optimum. No solver takes part and nothing is drawn.
"""

from __future__ import annotations

from mapgap.core import Budget, SolveResult, Status, Stop
from mapgap.formulations.neuron_masking.prices import quick_plan
from mapgap.heuristics.neuron_masking.elfish_greedy import counts
from mapgap.heuristics.neuron_masking.straggler import NOTHING_FITS, Straggler
from mapgap.problems.neuron_masking import Instance


def run(instance: Instance, budget: Budget) -> SolveResult:
    """The best plan of the three steps."""

    def elfish(device: int, cycle: int) -> list[tuple[int, ...]]:
        kept = counts(Straggler(instance, instance.devices[device], cycle), "neuron_time")
        return [] if kept is None else [tuple(kept)]

    plan = quick_plan(instance, budget, elfish)
    if plan is None:
        return SolveResult(Status.UNKNOWN, Stop.DONE, reason=NOTHING_FITS)
    return SolveResult(Status.FEASIBLE, Stop.TIME if budget.exhausted else Stop.DONE, plan)
