"""What the importers of all problems share: the finest tick, whole tables of ticks, and what cannot be guessed."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeVar

from pydantic import ValidationError

from mapgap.core import InputError, InstanceBase
from mapgap.core.workload import Curve, at

TICKS_NS = tuple(10**k for k in range(2, 13))
"""Ticks that are tried, the finest first: 100 ns to 1000 s."""
UNITS = tuple(1024**k for k in range(1, 5))
"""Memory units that are tried: 1 KiB to 1 TiB."""
Made = TypeVar("Made", bound=InstanceBase)


def finest(make: Callable[[int, int], Made]) -> Made:
    """The instance with the finest tick and memory unit that its sums allow.

    Parameters
    ----------
    make : callable
        ``make(tick_ns, memory_unit_bytes)``; raises a finding at ``tick_ns`` or ``memory_unit_bytes`` where they are
        too fine.

    Raises
    ------
    InputError
        Anything else that is wrong.
    """
    tick, unit = 0, 0
    while True:
        try:
            return make(TICKS_NS[tick], UNITS[unit])
        except ValidationError as error:
            raised = [each.get("ctx", {}).get("error") for each in error.errors()]
            findings = [finding for each in raised if isinstance(each, InputError) for finding in each.findings]
            fields = {str(finding.location[0]) if finding.location else "" for finding in findings}
            coarser = fields & {"tick_ns", "memory_unit_bytes"}
            if not findings or fields - coarser:
                raise InputError(findings or str(error)) from error
            tick += "tick_ns" in coarser
            unit += "memory_unit_bytes" in coarser
            if tick == len(TICKS_NS) or unit == len(UNITS):
                raise InputError(findings) from error


def ticks(nanoseconds: float, tick_ns: int) -> int:
    """Whole ticks, to the nearest."""
    return round(nanoseconds / tick_ns)


def table(curve: Curve, width: int, tick_ns: int) -> tuple[int, ...]:
    """Ticks of 1 … width samples; more samples never take less."""
    found, last = [], 0
    for samples in range(1, width + 1):
        last = max(last, ticks(at(curve, samples), tick_ns))
        found.append(last)
    return tuple(found)


def units(size: float, unit: int) -> int:
    """Whole units that hold so many bytes, rounded up."""
    return -(-math.ceil(size) // unit)
