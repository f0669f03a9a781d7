"""The order in which Algorithm 2 of Asteroid lines the devices up (Sec. 3.3)."""

from __future__ import annotations

from mapgap.core import Finding, InputError
from mapgap.problems.hybrid_pipeline.instance import Instance

TIES = ("fastest_first", "slowest_first")


def slowness(instance: Instance) -> list[int]:
    """Ticks of each device for all layers and a whole micro-batch, of an instance with one micro-batch size."""
    (batch,) = instance.micro_batch_sizes
    by_type = [sum(row[batch - 1] for table in (t.forward, t.backward) for row in table) for t in instance.types]
    return [by_type[device.type] for device in instance.devices]


def memory_order(instance: Instance, ties: str = "fastest_first") -> list[int]:
    """Devices by descending memory (Sec. 3.3), equal ones by speed.

    Raises
    ------
    InputError
        ``ties`` is not fastest_first or slowest_first.
    """
    if ties not in TIES:
        raise InputError(Finding(f"expected {' or '.join(TIES)}, found {ties!r}", ("ties",)))
    slow, sign = slowness(instance), 1 if ties == "fastest_first" else -1
    return sorted(range(len(slow)), key=lambda d: (-instance.device_type(d).memory, sign * slow[d], d))
