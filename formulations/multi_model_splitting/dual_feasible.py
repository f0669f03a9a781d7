"""Dual feasible functions on memories, in integers: rows that every packing keeps and a split model breaks.

A function f on 0..capacity is *dual feasible* if numbers that add up to at most the capacity have values that add up
to at most f(capacity). The segments on a device are such numbers, in weights, in bias and in layers. Then

    sum of f(demand) over the segments on a device <= f(capacity)

holds for every plan, and is often broken where parts of a path are mixed with parts of others.

References
----------
Fekete, Schepers, "New classes of fast lower bounds for bin packing problems", Mathematical Programming 91 (2001),
11-31, Theorems 1 to 3. There the capacity is 1; here all is multiplied by what makes it whole.
"""

from __future__ import annotations

from mapgap.kernels import kernel

PLAIN, ROUNDED, ENDS, COUNTED = range(4)
"""f(x) = x; u^(k), k the parameter; U^(e) and phi^(e), e = parameter / capacity, at most 1/2."""


@kernel("i8(i8,i8,i8,i8)")
def share(kind: int, parameter: int, capacity: int, demand: int) -> int:
    """f(demand), for 0 <= demand <= capacity and 1 <= capacity."""
    if kind == ROUNDED:
        times = (parameter + 1) * demand
        return demand * parameter if times % capacity == 0 else times // capacity * capacity
    if kind == ENDS:
        if demand < parameter:
            return 0
        return capacity if demand > capacity - parameter else demand
    if kind == COUNTED:
        if demand < parameter:
            return 0
        if 2 * demand <= capacity:
            return 1
        return capacity // parameter - (capacity - demand) // parameter
    return demand


@kernel("i8(i8,i8,i8)")
def whole(kind: int, parameter: int, capacity: int) -> int:
    """f(capacity)."""
    if kind == ROUNDED:
        return parameter * capacity
    return capacity // parameter if kind == COUNTED else capacity
