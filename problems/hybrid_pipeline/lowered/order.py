"""The order in which Algorithm 2 of Asteroid lines the devices up (Sec. 3.3)."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby, product
from math import factorial, prod

from mapgap.core import Finding, InputError
from mapgap.problems.hybrid_pipeline.instance import Instance
from mapgap.problems.hybrid_pipeline.lowered.groups import interchangeable

TIES = ("fastest_first", "slowest_first")
BEST = "best"
"""In place of a rule for ties: the best of all orders that descending memory permits."""
MOST_ORDERS = 5040
"""More of them are not tried."""


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


def memory_orders(instance: Instance, ties: str, option: str = "ties") -> list[list[int]]:
    """The order of a rule for ties; with :data:`BEST` every order by descending memory.

    Of orders that differ by interchangeable devices only there is one. ``option`` is named in errors.

    Raises
    ------
    InputError
        ``ties`` is none of them, or the orders are more than :data:`MOST_ORDERS`.
    """
    if ties not in (*TIES, BEST):
        raise InputError(Finding(f"expected {', '.join(TIES)} or {BEST}, found {ties!r}", (option,)))
    if ties != BEST:
        return [memory_order(instance, ties)]
    classes = interchangeable(instance)

    def memory(c: int) -> int:
        return -instance.device_type(classes[c][0]).memory

    equal = [list(same) for _, same in groupby(sorted(range(len(classes)), key=memory), key=memory)]
    sizes = [[len(classes[c]) for c in same] for same in equal]
    count = prod(factorial(sum(each)) // prod(map(factorial, each)) for each in sizes)
    if count > MOST_ORDERS:
        text = f"{BEST}: expected at most {MOST_ORDERS} orders that descending memory permits, found {count}"
        raise InputError(Finding(text, (option,)))
    found = []
    for parts in product(*(list(_arrangements({c: len(classes[c]) for c in same})) for same in equal)):
        left = [iter(members) for members in classes]
        found.append([next(left[c]) for part in parts for c in part])
    return found


def _arrangements(counts: dict[int, int]) -> Iterator[list[int]]:
    """All orders of so many members of each class."""
    if not any(counts.values()):
        yield []
    for c, number in counts.items():
        if number:
            for rest in _arrangements(counts | {c: number - 1}):
                yield [c, *rest]
