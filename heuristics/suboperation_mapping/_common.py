"""What the heuristics of sub-operation mapping share: ratios, mapped schedules, results."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from mapgap.core import Budget, InputError, SolveResult, Status, Stop
from mapgap.heuristics.suboperation_mapping import _kernels
from mapgap.problems.suboperation_mapping import Instance, Plan
from mapgap.problems.suboperation_mapping.lowered import Array, Lowered

PROBLEM = "suboperation_mapping"
MTRAIN = "Tang et al., MTrain"
NOTHING_FITS = "the method found no mapping within the DRAM budget; this proves nothing about other plans"

Ratio = tuple[int, ...]


@dataclass(frozen=True)
class Mapped:
    """A complete schedule of one ratio that fits the DRAM.

    Attributes
    ----------
    lowered : Lowered
    location, sequence, start, end : (n,)
    """

    lowered: Lowered
    location: Array
    sequence: Array
    start: Array
    end: Array

    @property
    def makespan(self) -> int:
        """Ticks of one training iteration."""
        return int(self.end.max())

    @property
    def plan(self) -> Plan:
        return self.lowered.plan(self.location, self.sequence)

    @property
    def duty_cycle(self) -> list[float]:
        """Busy share of the makespan per accelerator (transfers count as busy)."""
        busy = np.bincount(self.location, weights=self.end - self.start, minlength=self.lowered.accelerators)
        return [float(ticks) / max(1, self.makespan) for ticks in busy]


def timed(lowered: Lowered, location: Array, sequence: Array) -> Mapped | None:
    """The schedule of a mapping, or ``None`` if it exceeds the DRAM."""
    start, end = lowered.timetable(location, sequence)
    if not _kernels.fits(*lowered.storage, location, start, end):
        return None
    return Mapped(lowered, location, sequence, start, end)


def pe_order(instance: Instance) -> list[int]:
    """Accelerators by falling number of PEs, ties by index."""
    return sorted(range(len(instance.accelerators)), key=lambda a: (-instance.accelerators[a].pes, a))


def pe_ratio(instance: Instance) -> Ratio:
    """Alg. 1, step 3: ``B * PE_i / sum PE`` rounded by largest remainder, ties to the lowest index."""
    pes = [accelerator.pes for accelerator in instance.accelerators]
    total = sum(pes)
    shares = [instance.batch * p // total for p in pes]
    by_remainder = sorted(range(len(pes)), key=lambda a: (-(instance.batch * pes[a] % total), a))
    for a in by_remainder[: instance.batch - sum(shares)]:
        shares[a] += 1
    return tuple(shares)


def partitions(total: int, parts: int, largest: int | None = None) -> Iterator[Ratio]:
    """Partitions of ``total`` into ``parts`` non-increasing parts of at least 0, most unequal first."""
    largest = total if largest is None else min(largest, total)
    if parts == 1:
        if total <= largest:
            yield (total,)
        return
    for first in range(largest, -1, -1):
        if first * parts < total:
            return
        for rest in partitions(total - first, parts - 1, first):
            yield (first, *rest)


def partition_ratios(instance: Instance) -> Iterator[Ratio]:
    """All partitions of the batch, parts given to the accelerators by falling PEs."""
    order = pe_order(instance)
    for parts in partitions(instance.batch, len(order)):
        ratio = [0] * len(order)
        for part, a in zip(parts, order, strict=True):
            ratio[a] = part
        yield tuple(ratio)


def parse_ratio(instance: Instance, text: str) -> Ratio:
    """``"40,24"`` as a ratio; empty for the PE-based one.

    Raises
    ------
    InputError
        Not N non-negative integers that add up to the batch.
    """
    if not text:
        return pe_ratio(instance)
    try:
        ratio = tuple(int(part) for part in text.split(","))
    except ValueError:
        ratio = ()
    if len(ratio) != len(instance.accelerators) or min(ratio) < 0 or sum(ratio) != instance.batch:
        count = len(instance.accelerators)
        raise InputError(f"ratio: expected {count} integers that add up to {instance.batch}, found {text!r}")
    return ratio


def result(mapped: Mapped | None, budget: Budget, stop: Stop = Stop.DONE, **notes: Any) -> SolveResult:
    """FEASIBLE with the plan, or UNKNOWN with a reason."""
    if mapped is None:
        return SolveResult(Status.UNKNOWN, stop, reason=NOTHING_FITS, notes=notes)
    plan = mapped.plan
    budget.report(plan=plan)
    return SolveResult(Status.FEASIBLE, stop, plan, notes={"ratio": list(mapped.lowered.ratio), **notes})
