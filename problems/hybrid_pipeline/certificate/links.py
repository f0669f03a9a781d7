"""Links between devices, and what they share (rules 18, 19): part of the checker, standard library only.

A link has a bandwidth and a latency; between two groups it has the smallest bandwidth and the largest latency of any
pair. ``ports`` are no rule of their own: links as they are take no less (rule 18).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

Link = tuple[int, int]  # bytes per second, nanoseconds of latency


def link(instance: dict[str, Any], d: int, e: int) -> Link:
    """The link between two devices."""
    late = instance.get("latency_ns")
    return instance["bandwidth"][d][e], late[d][e] if late else 0


def worst(links: Iterable[Link]) -> Link:
    """Of several links the smallest bandwidth and the largest latency."""
    rates, late = zip(*links, strict=True)
    return min(rates), max(late)


def in_turn(instance: dict[str, Any]) -> bool:
    """All transfers take turns on one medium."""
    return bool(instance.get("medium", "links") == "shared")


def fault(instance: dict[str, Any], rules: dict[str, Any]) -> str | None:
    """What the argument asks of links and these lack."""
    count, squares = len(instance["devices"]), [instance["bandwidth"]]
    if instance.get("medium", "links") not in ("links", "ports", "shared"):
        return f"not covered by the argument: the medium {instance['medium']}"
    if instance.get("latency_ns", []) != []:
        squares.append(instance["latency_ns"])
    if any([len(row) for row in square] != [count] * count for square in squares):
        return "links that are not one for each pair of devices"
    if any(type(number) is not int for square in squares for row in square for number in row):
        return "a number of a link that is not an integer"
    pairs = [(d, e) for d in range(count) for e in range(d)]
    if any(square[d][e] != square[e][d] for square in squares for d, e in pairs):
        return "a link that differs by its direction"
    found = {link(instance, d, e) for d, e in pairs}
    if any(rate < 1 or late < 0 for rate, late in found):
        return "a link without a bandwidth, or with a latency below 0"
    how = rules["communication"]
    if how in ("load", "tensors") and (len(found) > 1 or rules["transfers"] != "one_link"):
        return "transfers that are part of loads, on links that differ or are parallel"
    if how == "tensors" and (in_turn(instance) or len(squares) > 1):
        return "tensors one by one on one medium, or with latencies"
    return None
