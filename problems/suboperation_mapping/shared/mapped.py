"""A mapping of one ratio with its timetable."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mapgap.problems.suboperation_mapping.instance import Plan
from mapgap.problems.suboperation_mapping.shared.lowered import Array, Lowered


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
    """Everything on one accelerator: FP by layer, then by falling layer WU before BP, which frees memory early."""
    return timed(lowered, np.full(lowered.n, accelerator, np.int64), lowered.topological)
