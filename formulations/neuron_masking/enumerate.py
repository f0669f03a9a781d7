"""Brute force: every cycle time, every device, every vector of counts, each judged by the evaluator.

Given the cycle time the devices do not touch each other (Eqs. (1)-(5) hold per device), so the best joint plan consists
of best masks. Which neurons a mask keeps is not enumerated: those of largest contribution are legal under every P_s
and no other choice is better (rule 9 of ``mapgap.problems.neuron_masking``).
"""

from __future__ import annotations

import math
from itertools import product

from mapgap.core import Budget, OutOfTime, SolveResult, Status, Stop
from mapgap.problems.neuron_masking import Instance, Mask, Plan
from mapgap.problems.neuron_masking.evaluate import diagnose, evaluate

LIMIT = 200_000
"""Most masks that are tried."""

LOOK = 1000
"""Masks between two looks at the clock."""


def _best_mask(single: Instance, budget: Budget) -> Mask | None:
    """Best mask of one device under one cycle time; ``None`` if none is feasible."""
    best, winner = -1, None
    ranges = [range(layer.least, layer.neurons + 1) for layer in single.layers]
    for number, kept in enumerate(product(*ranges)):
        if number % LOOK == 0 and budget.exhausted:
            raise OutOfTime
        mask = Mask(kept=kept)
        found = evaluate(single, Plan(masks=(mask,)))
        if found.feasible and found.objective is not None and found.objective > best:
            best, winner = found.objective, mask
    return winner


def run(instance: Instance, budget: Budget) -> SolveResult:
    """Try everything; UNKNOWN with a reason if that is too much, FEASIBLE or UNKNOWN if the time runs out."""
    singles = len(instance.cycle_ms) * len(instance.devices)
    masks = singles * math.prod(layer.neurons - layer.least + 1 for layer in instance.layers)
    if masks > LIMIT:
        return SolveResult(Status.UNKNOWN, Stop.DONE, reason=f"{masks} masks, at most {LIMIT} tried")
    best, plan = -1, None
    try:
        for cycle in range(len(instance.cycle_ms)):
            found = [_best_mask(instance.single(d, cycle), budget) for d in range(len(instance.devices))]
            candidate = tuple(mask for mask in found if mask is not None)
            if len(candidate) < len(found):
                continue
            value = evaluate(instance, Plan(cycle=cycle, masks=candidate)).objective
            if value is not None and value > best:
                best, plan = value, Plan(cycle=cycle, masks=candidate)
                budget.report(plan=plan)
    except OutOfTime:
        return SolveResult(Status.UNKNOWN if plan is None else Status.FEASIBLE, Stop.TIME, plan, reason="out of time")
    notes = {"masks": masks}
    if plan is None:
        reason = "; ".join([f"none of {masks} masks meets the limits", *diagnose(instance)])
        return SolveResult(Status.INFEASIBLE, Stop.PROVED, enumerated=True, reason=reason, notes=notes)
    return SolveResult(Status.OPTIMAL, Stop.PROVED, plan, best, best, enumerated=True, notes=notes)
