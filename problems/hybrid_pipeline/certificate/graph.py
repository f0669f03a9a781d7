"""What a graph says of its layers (rules 15, 16): part of the checker, standard library only.

Sets of layers are integers of a bit per layer. *Needs* of a layer are the layers that lie in front of a cut whenever it
does: itself, what it reads, its co-location class, and what these need.

A *cut* is the set of layers in front of it. Cuts are the sets that hold the needs of their layers, that is the unions
of needs. So all of them are found from the empty set on by adding the needs of a layer at a time.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

MOST = 20_000
"""Cuts, more of which are refused."""
FIELDS = {"edges", "together", "unsupported", "hosts", "tensors", "gradients"}


def bits(layers: Iterable[int]) -> int:
    """A set of layers."""
    return sum(1 << i for i in set(layers))


def members(layers: int) -> list[int]:
    """The layers of a set."""
    return [i for i in range(layers.bit_length()) if layers >> i & 1]


def edges(instance: dict[str, Any]) -> list[list[int]]:
    """Pairs of a layer and one that reads it."""
    given = (instance.get("graph") or {}).get("edges")
    return [[i, i + 1] for i in range(len(instance["layers"]) - 1)] if given is None else given


def fault(instance: dict[str, Any]) -> str | None:
    """What the argument asks of a graph and this one lacks."""
    graph, layers = instance["graph"], len(instance["layers"])
    if unknown := sorted(graph.keys() - FIELDS):
        return f"not covered by the argument: the field {unknown[0]} of graph"
    moved = [each for field in ("tensors", "gradients") for each in graph.get(field) or []]
    if unknown := sorted({name for each in moved for name in each} - {"layers", "size"}):
        return f"not covered by the argument: the field {unknown[0]} of tensors"
    sets = [*edges(instance), *graph.get("together", []), *graph.get("unsupported", []), *(t["layers"] for t in moved)]
    if any(type(i) is not int or not 0 <= i < layers for each in sets for i in each):
        return "a graph of layers that there are not"
    if any(len(edge) != 2 or edge[0] >= edge[1] for edge in edges(instance)):
        return "an edge that does not lead to a later layer"
    if any(type(each["size"]) is not int or each["size"] < 0 for each in moved):
        return "a tensor without a size"
    if graph.get("unsupported") and len(graph["unsupported"]) != len(instance["types"]):
        return "types without the layers that they do not support"
    if any(type(kind) is not int for kind in graph.get("hosts", [])) or instance["replanning"] is not None:
        return "hosts that are no types, or a graph after a failure"
    return None if found(needs(instance)) else f"more than {MOST:,} sets of layers that may lie in front of a cut"


def needs(instance: dict[str, Any]) -> list[int]:
    """By layer what it needs."""
    wanted = [1 << i for i in range(len(instance["layers"]))]
    for u, v in edges(instance):
        wanted[v] |= 1 << u
    for each in (instance.get("graph") or {}).get("together", []):
        for i in each:
            wanted[i] |= bits(each)
    for k in range(len(wanted)):  # ways over the layers up to k
        wanted = [own | wanted[k] if own >> k & 1 else own for own in wanted]
    return wanted


def found(wanted: list[int], most: int = MOST) -> list[int]:
    """All cuts, by rising size; none if there are more than ``most``."""
    seen, queue = {0}, [0]
    for cut in queue:
        new = {cut | each for each in wanted} - seen
        seen |= new
        queue += new
        if len(queue) > most:
            return []
    return sorted(queue, key=int.bit_count)
