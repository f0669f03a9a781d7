"""The writer of layer flow for certificates; rules as in the package's docstring. Standard library only.

Let F = bound + 1. Suppose that F units flow. Every unit passes every layer on exactly one node that holds the layer,
and no more than ``min(T, F)`` of the F units pass a node of throughput T, with partial inference too. So the nodes
that hold a layer have ``sum of min(T_i(k_i), F) >= F``: they are a *cover*. Links only take from this.

The proof ``[]`` needs no more: the sources, the sinks, or the work of all nodes, ``sum_i max_k k min(T_i(k), F)``
against ``L F``, do not reach F.

The proof ``[grid, weights]`` has whole weights ``v[c][k - 1] >= 0`` for every class ``c`` of nodes with equal tables
(in the order in which they appear). It is checked that every cover weighs at least ``grid``: node after node, the most
that can be passed is tabulated by weight, up to ``grid - 1``, and stays below F. So each of the L layers is held by
nodes of weight ``grid`` at least; but a node that holds k layers adds its weight k times, and ``sum_i max_k k v`` is
below ``L grid``.
"""

from __future__ import annotations

from typing import Any

SENSE = "max"
SHAPE = {
    **dict.fromkeys(("name", "source", "tags", "scale", "layers", "entry", "exit", "links")),
    "schema": (1,),
    "form": ("expanded",),
    "problem": ("layer_flow",),
    "partial": (True, False),
    "nodes": [dict.fromkeys(("name", "kind", "throughput"))],
}
LARGEST_GRID = 10_000


def check(instance: dict[str, Any], bound: int, proof: Any) -> str | None:
    """Why the proof does not show that at most ``bound`` units flow; nothing if it does."""
    goal, layers, nodes = bound + 1, instance["layers"], instance["nodes"]
    tables = [tuple(node["throughput"]) for node in nodes]
    numbers = [goal, layers, *instance["entry"], *instance["exit"], *(t for table in tables for t in table)]
    if any(type(number) is not int or number < 0 for number in numbers) or not goal:
        return "expected whole numbers, and a bound from 0 on"
    if any(not 1 <= len(table) <= layers for table in tables):
        return "expected tables of 1 to as many entries as there are layers"
    if type(proof) is not list or len(proof) not in (0, 2):
        return "expected no argument, or a grid and weights"
    if not proof:
        if min(sum(instance["entry"]), sum(instance["exit"])) < goal:
            return None
        area = sum(max(k * min(t, goal) for k, t in enumerate(table, 1)) for table in tables)
        return None if area < layers * goal else "sources, sinks and work allow more"
    grid, weights = proof
    classes = list(dict.fromkeys(tables))
    if type(grid) is not int or not 1 <= grid <= LARGEST_GRID:
        return f"expected a grid from 1 to {LARGEST_GRID}"
    if type(weights) is not list or [len(row) for row in weights] != [len(table) for table in classes]:
        return "expected a weight for every number of layers of every class"
    if any(type(v) is not int or v < 0 for row in weights for v in row):
        return "expected whole weights from 0 on"
    total = sum(max(k * v for k, v in enumerate(weights[classes.index(table)], 1)) for table in tables)
    if total >= layers * grid:
        return f"all nodes together weigh {total}, not less than {layers * grid}"
    most = [0] * grid  # by weight: what nodes of at most this weight pass
    for table in tables:
        options = useful(table, weights[classes.index(table)], goal)
        most = [max([most[w], *(most[w - v] + t for v, t in options if v <= w)]) for w in range(grid)]
        if most[-1] >= goal:
            return f"nodes of weight below {grid} hold a layer and pass the flow"
    return None


def useful(table: tuple[int, ...], weights: list[int], goal: int) -> list[tuple[int, int]]:
    """Pairs of a weight and the most that a node passes for it, without those that another one dominates."""
    found: list[tuple[int, int]] = []
    for v, negative in sorted((v, -min(t, goal)) for t, v in zip(table, weights, strict=True)):
        if not found or -negative > found[-1][1]:
            found.append((v, -negative))
    return found
