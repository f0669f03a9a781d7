"""Layer graphs of dnn-partitioning: a JSON file with nodes, edges, and how many devices of which size there are.

``fpgaLatency`` and ``cpuLatency`` are milliseconds on the two kinds of devices ("fpga" stands for any accelerator),
``size`` of a node its memory in bytes, ``size`` and ``cost`` of an edge bytes and milliseconds of the transfer.
Nodes with ``isBackwardNode`` are the backward pass of the node of the same ``colorClass``.

Source: Tarnawski et al., "Efficient Algorithms for Device Placement of DNN Graph Operators", NeurIPS 2020.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from mapgap.core.workload import Settings
from mapgap.importing.graph import Kind, Layer, LayerGraph, Time, origin
from mapgap.importing.source import Source, Value

NAME, TITLE = "dnn_partitioning", "dnn-partitioning JSON"
HOST_MEMORY = 2**50
"""Of a processor, whose memory the files do not limit."""
LATENCIES = {"fpga": "fpgaLatency", "cpu": "cpuLatency"}


def looks_like(source: Source) -> bool:
    """Nodes and edges, and the most devices of a kind."""
    data = source.json
    return isinstance(data, dict) and "nodes" in data and "edges" in data and bool({"maxFPGAs", "maxCPUs"} & set(data))


def read(sources: Sequence[Source], settings: Settings) -> LayerGraph:
    """The graph of a file; one sample is what its latencies stand for.

    Raises
    ------
    InputError
    """
    source = sources[0]
    root = source.root
    graph = LayerGraph(source.path.stem)
    nodes = {node["id"].whole(): node for node in root["nodes"].items()}
    names = _names(nodes)
    _add_nodes(graph, nodes, names)
    rates = _add_edges(graph, root["edges"].items(), nodes, names)
    memory = root["maxSizePerFPGA"].whole(most=1e18) if root.has("maxSizePerFPGA") else None
    rate = max(rates, default=None)
    for kind, field, limit in (("fpga", "maxFPGAs", memory), ("cpu", "maxCPUs", HOST_MEMORY)):
        count = root[field].whole(most=10_000) if root.has(field) else 0
        graph.kinds[kind] = Kind(limit, tuple(f"{kind}{k + 1}" for k in range(count)), rate)
    assumed = ["memory of a node counts as its output, kept until the backward pass; weights are part of it"]
    if rate is not None:
        assumed.append(f"the link carries what the edges say, {rate * 8e-6:,.0f} Mbit/s")
    what = f"latencies, memory and transfers of {len(graph.graph)} layers on {' and '.join(LATENCIES)}"
    graph.origins.append(origin(source, NAME, what, assumed))
    return graph


def _names(nodes: dict[int, Value]) -> dict[int, str]:
    """The layer of every node: the name of the forward node of its colour."""
    forward: dict[int, str] = {}
    seen: set[str] = set()
    for key, node in nodes.items():
        if not _backward(node):
            name = node["name"].text()
            name = name if name not in seen else f"{name}.{key}"
            seen.add(name)
            forward[_colour(node, key)] = name
    names = {}
    for key, node in nodes.items():
        if _colour(node, key) not in forward:
            node["colorClass"].wrong("the colour of a forward node")
        names[key] = forward[_colour(node, key)]
    return names


def _backward(node: Value) -> bool:
    return node.has("isBackwardNode") and bool(node["isBackwardNode"].whole(most=1))


def _colour(node: Value, key: int) -> int:
    return node["colorClass"].whole() if node.has("colorClass") else key


def _add_nodes(graph: LayerGraph, nodes: dict[int, Value], names: dict[int, str]) -> None:
    spent: dict[str, dict[str, list[float]]] = {kind: {} for kind in LATENCIES}
    memory: dict[str, float] = {}
    for key, node in nodes.items():
        name, side = names[key], int(_backward(node))
        for kind, field in LATENCIES.items():
            spent[kind].setdefault(name, [0.0, 0.0])[side] += node[field].number() * 1e6
        memory[name] = max(memory.get(name, 0.0), node["size"].number())
    training = graph.training = any(_backward(node) for node in nodes.values())
    for key, node in nodes.items():
        name = names[key]
        if not _backward(node) and name not in graph.graph:
            graph.add(name, Layer("layer", 0, 0, None, math.ceil(memory[name])))
            for kind in LATENCIES:
                forward, backward = spent[kind][name]
                graph.times.setdefault(kind, {})[name] = {1: Time(forward, backward if training else None)}


def _add_edges(graph: LayerGraph, edges: list[Value], nodes: dict[int, Value], names: dict[int, str]) -> list[float]:
    """Edges between forward nodes and the sizes of outputs; the rates of transfers in bytes per second.

    The backward pass runs along the same edges the other way round, which is no edge of the model.
    """
    rates, sizes = [], dict.fromkeys(graph.graph, 0.0)
    for edge in edges:
        ends = []
        for field in ("sourceId", "destId"):
            key = edge[field].whole()
            if key not in names:
                edge[field].wrong("the id of a node")
            ends.append(key)
        if any(_backward(nodes[key]) for key in ends):
            continue
        size, cost = (edge[field].number() if edge.has(field) else 0.0 for field in ("size", "cost"))
        first, second = (names[key] for key in ends)
        graph.graph.add_edge(first, second)
        sizes[first] = max(sizes[first], size)
        if size > 0 and cost > 0:
            rates.append(size / (cost * 1e-3))
    for name, size in sizes.items():
        graph.graph.nodes[name]["layer"] = replace(graph.layer(name), output_bytes=math.ceil(size))
    return rates
