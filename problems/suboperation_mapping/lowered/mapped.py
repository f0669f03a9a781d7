"""A mapping of one ratio with its timetable."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mapgap.core import InputError, read_start
from mapgap.problems.suboperation_mapping.instance import Instance, Plan
from mapgap.problems.suboperation_mapping.lowered.alone import fitting_order
from mapgap.problems.suboperation_mapping.lowered.arrays import Array, Lowered, lower


@dataclass(frozen=True)
class Mapped:
    """A complete schedule of one ratio that fits the DRAM, timed as early as possible.

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
    """The schedule of a mapping; ``None`` if it exceeds the DRAM."""
    start, end = lowered.timetable(location, sequence)
    if lowered.memory_excess(location, start, end):
        return None
    return Mapped(lowered, location, sequence, start, end)


def alone(lowered: Lowered, accelerator: int) -> Mapped | None:
    """Everything on one accelerator: FP by layer, then by falling layer WU before BP, or as its DRAM allows."""
    location = np.full(lowered.n, accelerator, np.int64)
    mapped = timed(lowered, location, lowered.topological)
    order = fitting_order(lowered, accelerator) if mapped is None else None
    return mapped if order is None else timed(lowered, location, order)


def best_single(instance: Instance, accelerator: int | None = None) -> Mapped | None:
    """Everything on the fastest accelerator that fits (ties by index), or on the given one."""
    count = len(instance.accelerators)
    lowered = lower(instance, (instance.batch, *[0] * (count - 1)))
    tried = [alone(lowered, a) for a in (range(count) if accelerator is None else [accelerator])]
    return min((mapped for mapped in tried if mapped is not None), key=lambda mapped: mapped.makespan, default=None)


def well_balanced(lowered: Lowered) -> Array:
    """Location (n,) of every operation in MTrain's well-balanced scheme: share ``b`` on accelerator ``b``.

    Fused operations are on the accelerator of the largest share, ties by index.
    """
    largest = max(range(lowered.accelerators), key=lambda a: (lowered.ratio[a], -a))
    return np.array([share if share >= 0 else largest for _, _, share in lowered.operations], np.int64)


def started(instance: Instance, start: str | Plan | None) -> Mapped | None:
    """The mapping of an argument ``start``: a plan, its file, or a folder in which it has the name of the instance.

    It may be a plan of another instance with the same layers, batch and number of accelerators.

    Raises
    ------
    InputError
        No such file, no plan of this instance, or one that breaks a rule here.
    """
    plan = read_start(start, Plan, instance)
    if plan is None:
        return None
    try:
        if len(plan.ratio) != len(instance.accelerators) or sum(plan.ratio) != instance.batch:
            raise ValueError(f"ratio {list(plan.ratio)}")
        lowered = lower(instance, plan.ratio)
        mapped = timed(lowered, *lowered.mapping(plan))
    except (ValueError, KeyError) as error:
        found = repr(start) if isinstance(start, str) else "another plan"
        raise InputError(f"start: expected a plan file for {instance.name}, found {found}: {error}") from error
    if mapped is None:
        raise InputError(f"start: expected a plan that fits the DRAM of {instance.name}")
    return mapped
