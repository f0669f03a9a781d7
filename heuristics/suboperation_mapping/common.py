"""What the heuristics of sub-operation mapping share: ratios, results."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mapgap.core import Budget, SolveResult, Status, Stop
from mapgap.problems.suboperation_mapping import Instance
from mapgap.problems.suboperation_mapping.lowered.mapped import Mapped
from mapgap.problems.suboperation_mapping.lowered.ratios import Ratio, parse_ratio, partitions, pe_order, pe_ratio

NOTHING_FITS = "the method found no mapping within the DRAM budget; this proves nothing about other plans"


def partition_ratios(instance: Instance) -> Iterator[Ratio]:
    """All partitions of the batch, parts given to the accelerators by falling PEs."""
    order = pe_order(instance)
    for parts in partitions(instance.batch, len(order)):
        ratio = [0] * len(order)
        for part, a in zip(parts, order, strict=True):
            ratio[a] = part
        yield tuple(ratio)


def chosen_ratio(instance: Instance, text: str) -> Ratio:
    """``"40,24"`` as a ratio; empty for the PE-based one.

    Raises
    ------
    InputError
        Not N non-negative integers that add up to the batch.
    """
    return parse_ratio(instance, text) if text else pe_ratio(instance)


def result(mapped: Mapped | None, budget: Budget, stop: Stop = Stop.DONE, **notes: Any) -> SolveResult:
    """FEASIBLE with the plan, or UNKNOWN with a reason."""
    if mapped is None:
        return SolveResult(Status.UNKNOWN, stop, reason=NOTHING_FITS, notes=notes)
    plan = mapped.plan
    budget.report(plan=plan)
    return SolveResult(Status.FEASIBLE, stop, plan, notes={"ratio": list(mapped.lowered.ratio), **notes})
