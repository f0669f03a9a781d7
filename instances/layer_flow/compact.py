"""The compact form of layer flow: kinds of nodes with their tables, in tokens per second, and links."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from pydantic import Field

from mapgap.core import ACTIVITY_LIMIT, MOST_DEVICES, CompactBase, Finding, InputError, suggest
from mapgap.problems.layer_flow import Instance, Node

Capacities = float | dict[str, float]


class Compact(CompactBase):
    """A cluster of some kinds of nodes.

    Attributes
    ----------
    scale : int
        Flow units per token per second; throughputs and capacities are rounded to the nearest unit.
    layers : int
    partial : bool
        Whether a node may receive tokens inside its interval.
    table : {"printed", "monotone"}
        ``monotone``: the throughput of k layers is the least of 1 to k.
    kinds : mapping
        Tokens per second of a kind of node when it holds 1, 2, … layers; more than the model has are left out.
    nodes : mapping
        Kind of every node.
    entry, exit : float or mapping
        Tokens per second of the link from the source to a node, and to the sink: of all nodes, or of those named.
    mesh : float, optional
        Tokens per second between any two nodes, in either direction.
    links : mapping, optional
        In place of it: tokens per second by node and node, in either direction; other pairs have no link.
    """

    problem: Literal["layer_flow"] = "layer_flow"
    scale: int = Field(default=10_000, ge=1, le=10**6)
    layers: int = Field(ge=1, le=1024)
    partial: bool = False
    table: Literal["printed", "monotone"] = "printed"
    kinds: dict[str, tuple[float, ...]] = Field(min_length=1)
    nodes: dict[str, str] = Field(min_length=1, max_length=MOST_DEVICES)
    entry: Capacities
    exit: Capacities
    mesh: float | None = None
    links: dict[str, dict[str, float]] = Field(default_factory=dict)


def expand(compact: Compact) -> Instance:
    """Tables in flow units. No link has more than its nodes can pass at all, which no flow can tell.

    Raises
    ------
    InputError
        Every field that cannot be expanded.
    """
    found = _faults(compact)
    if found:
        raise InputError(found)
    scale, names = compact.scale, list(compact.nodes)
    tables = {}
    for kind, printed in compact.kinds.items():
        row = [round(t * scale) for t in printed[: compact.layers]]
        tables[kind] = tuple(min(row[: k + 1]) for k in range(len(row))) if compact.table == "monotone" else tuple(row)
    most = [max(tables[kind]) for kind in compact.nodes.values()]

    def ends(given: Capacities) -> tuple[int, ...]:
        every = given if isinstance(given, dict) else dict.fromkeys(names, given)
        return tuple(min(round(every.get(name, 0) * scale), most[i]) for i, name in enumerate(names))

    def between(i: int, j: int) -> int:
        if i == j:
            return 0
        given = compact.links.get(names[i], {}).get(names[j], compact.links.get(names[j], {}).get(names[i], 0.0))
        return min(round((given if compact.mesh is None else compact.mesh) * scale), most[i], most[j])

    return Instance(
        name=compact.name,
        source=compact.source,
        tags=compact.tags,
        scale=scale,
        layers=compact.layers,
        partial=compact.partial,
        nodes=tuple(Node(name=name, kind=kind, throughput=tables[kind]) for name, kind in compact.nodes.items()),
        entry=ends(compact.entry),
        exit=ends(compact.exit),
        links=tuple(tuple(between(i, j) for j in range(len(names))) for i in range(len(names))),
    )


def _faults(compact: Compact) -> list[Finding]:
    """Unknown names, and numbers out of range."""
    found = []

    def named(values: Mapping[str, object], *where: str) -> None:
        for name in values:
            if name not in compact.nodes:
                text = f"expected a node, found {name!r}{suggest(name, compact.nodes)}"
                found.append(Finding(text, (*where, name)))

    def ranged(value: float, *where: str | int) -> None:
        if not 0 <= value < 2**53:
            found.append(Finding(f"expected tokens per second from 0 on, found {value:g}", where))

    for kind, row in compact.kinds.items():
        if not row:
            found.append(Finding("expected a throughput for every number of layers, found none", ("kinds", kind)))
        for k, value in enumerate(row):
            if not 0 <= value * compact.scale < ACTIVITY_LIMIT - 1:
                text = f"expected less than 2^30 flow units (of 1/{compact.scale} token/s), found {value:g} tokens/s"
                found.append(Finding(text, ("kinds", kind, k)))
    for node, kind in compact.nodes.items():
        if kind not in compact.kinds:
            text = f"expected a kind, found {kind!r}{suggest(kind, compact.kinds)}"
            found.append(Finding(text, ("nodes", node)))
    for field, given in (("entry", compact.entry), ("exit", compact.exit)):
        if isinstance(given, dict):
            named(given, field)
        for name, value in given.items() if isinstance(given, dict) else [("", given)]:
            ranged(value, *((field, name) if name else (field,)))
    if compact.mesh is not None:
        ranged(compact.mesh, "mesh")
        if compact.links:
            found.append(Finding("expected mesh or links, found both", ("links",)))
    named(compact.links, "links")
    for name, row_of in compact.links.items():
        named(row_of, "links", name)
        for other, value in row_of.items():
            ranged(value, "links", name, other)
            if other == name:
                found.append(Finding("expected another node, found the same", ("links", name, other)))
            elif compact.links.get(other, {}).get(name, value) != value:
                text = f"expected {compact.links[other][name]:g} as in the other direction, found {value:g}"
                found.append(Finding(text, ("links", name, other)))
    return found
