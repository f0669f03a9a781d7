"""Layer graphs of dnn-partitioning: a JSON file with nodes, edges, and how many devices of which size there are.

``fpgaLatency`` and ``cpuLatency`` are milliseconds on the two kinds of devices ("fpga" stands for any accelerator),
``size`` of a node its memory in bytes, ``size`` and ``cost`` of an edge bytes and milliseconds of the transfer.
Nodes of one ``colorClass`` must be on one device; those with ``isBackwardNode`` are the backward pass of the forward
nodes of their class. Nodes without ``supportedOnFpga`` run on processors only. Flags are true, false, 0 or 1.

Source: Tarnawski et al., "Efficient Algorithms for Device Placement of DNN Graph Operators", NeurIPS 2020.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import networkx as nx

from mapgap.core.workload import Settings
from mapgap.importing.graph import Kind, Layer, LayerGraph, Time, Total, origin
from mapgap.importing.source import Source, Value

NAME, TITLE = "dnn_partitioning", "dnn-partitioning JSON"
HOST_MEMORY = 2**50
"""Of a processor, whose memory the files do not limit."""
NOMINAL = 1e9
"""Bytes per second of a link, where edges have a cost and no size."""
LATENCIES = {"fpga": "fpgaLatency", "cpu": "cpuLatency"}


def looks_like(source: Source) -> bool:
    """Nodes and edges, and the most devices of a kind."""
    data = source.json
    return isinstance(data, dict) and "nodes" in data and "edges" in data and bool({"maxFPGAs", "maxCPUs"} & set(data))


def read(sources: Sequence[Source], settings: Settings) -> LayerGraph:
    """The graph of a file; one sample is what its latencies stand for.

    Every forward node is a layer. A backward node belongs to the first forward node of its class; a class without any
    gets a forward layer that takes no time, and edges as those of its backward nodes, turned round.

    Raises
    ------
    InputError
    """
    source = sources[0]
    root = source.root
    graph = LayerGraph(source.path.stem)
    nodes = {node["id"].whole(): node for node in root["nodes"].items()}
    owner = _layers(graph, nodes)
    forward = [node for node in nodes.values() if not _flag(node, "isBackwardNode")]
    for kind, field in LATENCIES.items():
        spent = 1e6 * math.fsum(node[field].number() for node in forward)
        graph.totals.append(Total("kernels", spent, {}, kind, 1))
    memory = root["maxSizePerFPGA"].whole(most=1e18) if root.has("maxSizePerFPGA") else None
    rate = _add_edges(graph, root["edges"].items(), nodes, owner)
    lacking = frozenset(owner[key] for key, node in nodes.items() if not _flag(node, "supportedOnFpga", True))
    for kind, field, limit in (("fpga", "maxFPGAs", memory), ("cpu", "maxCPUs", HOST_MEMORY)):
        count = root[field].whole(most=10_000) if root.has(field) else 0
        names = tuple(f"{kind}{k + 1}" for k in range(count))
        graph.kinds[kind] = Kind(limit, names, rate, lacking if kind == "fpga" else frozenset(), kind == "cpu")
    assumed = ["memory of a node counts as its output, kept until the backward pass; weights are part of it"]
    if rate is not None:
        assumed.append(f"the link carries what the edges say, {rate * 8e-6:,.0f} Mbit/s")
    what = f"latencies, memory and transfers of {len(graph.graph)} layers on {' and '.join(LATENCIES)}"
    graph.origins.append(origin(source, NAME, what, assumed))
    return graph


def _flag(node: Value, field: str, default: bool = False) -> bool:
    if not node.has(field):
        return default
    return node.data[field] if isinstance(node.data[field], bool) else bool(node[field].whole(most=1))


def _layers(graph: LayerGraph, nodes: dict[int, Value]) -> dict[int, str]:
    """Add the layers with times, memory and classes; the layer of every node."""
    colour = {key: node["colorClass"].whole() if node.has("colorClass") else -1 - key for key, node in nodes.items()}
    training = graph.training = any(_flag(node, "isBackwardNode") for node in nodes.values())
    owner, classes, facts = dict[int, str](), dict[int, list[str]](), dict[str, list[float]]()
    kinds = list(LATENCIES)
    for backward in (False, True):
        for key, node in nodes.items():
            if _flag(node, "isBackwardNode") != backward:
                continue
            first = classes.setdefault(colour[key], [])
            if not backward or not first:
                name = node["name"].text() if node.has("name") else f"node {key}"
                name = name if name not in facts else f"{name}.{key}"
                facts[name] = [0.0] * (1 + 2 * len(kinds))
                first.append(name)
                owner[key] = name
            else:
                owner[key] = first[0]
            sums = facts[owner[key]]
            sums[0] += node["size"].number() if node.has("size") else 0.0
            for k, field in enumerate(LATENCIES.values()):
                sums[1 + 2 * k + backward] += node[field].number() * 1e6
    for name, sums in facts.items():
        graph.add(name, Layer("layer", 0, 0, None, math.ceil(sums[0])))
        for k, kind in enumerate(kinds):
            spent = Time(sums[1 + 2 * k], sums[2 + 2 * k] if training else None)
            graph.times.setdefault(kind, {})[name] = {1: spent}
    graph.together = [set(names) for names in classes.values() if len(names) > 1]
    return owner


def _add_edges(graph: LayerGraph, edges: list[Value], nodes: dict[int, Value], owner: dict[int, str]) -> float | None:
    """Edges between forward nodes, the sizes of outputs, and tensors of both passes; bytes per second of the link.

    A node has one output, whoever reads it. The backward pass runs along the same edges the other way round, which is
    no edge of the model; a backward node whose layer has no forward node is the exception. Layers on a cycle that such
    edges close are in one class, as dnn-partitioning has it.
    """
    back = {key for key, node in nodes.items() if _flag(node, "isBackwardNode")}
    real = {owner[key] for key in nodes if key not in back}
    turned = set[tuple[str, str]]()
    rates, sizes = list[float](), dict.fromkeys(graph.graph, 0.0)
    cost, readers = dict[int, float](), dict[int, list[str]]()
    for edge in edges:
        ends = []
        for field in ("sourceId", "destId"):
            key = edge[field].whole()
            if key not in owner:
                edge[field].wrong("the id of a node")
            ends.append(key)
        a, b = ends
        size, spent = (edge[field].number() if edge.has(field) else 0.0 for field in ("size", "cost"))
        cost[a] = max(cost.get(a, 0.0), spent)
        readers.setdefault(a, []).append(owner[b])
        if not back & {a, b}:
            graph.graph.add_edge(owner[a], owner[b])
            sizes[owner[a]] = max(sizes[owner[a]], size)
            if size > 0 and spent > 0:
                rates.append(size / (spent * 1e-3))
        elif {a, b} <= back and not {owner[a], owner[b]} <= real and owner[a] != owner[b]:
            turned.add((owner[b], owner[a]))
    forward = set(graph.graph.edges)
    graph.graph.add_edges_from(turned)
    for cycle in list(nx.strongly_connected_components(graph.graph)):
        loops = [(a, b) for a, b in turned - forward if {a, b} <= cycle]
        graph.graph.remove_edges_from(loops)
        if loops:  # what they lie on cannot be taken apart
            graph.together.append(cycle)
    rate = max(rates, default=NOMINAL if any(cost.values()) else None)
    for name, size in sizes.items():
        graph.graph.nodes[name]["layer"] = replace(graph.layer(name), output_bytes=math.ceil(size))
    graph.tensors, graph.gradients = [], [] if back else None
    for key, names in readers.items():
        moved = ((owner[key], *dict.fromkeys(names)), round(cost[key] * 1e-3 * (rate or 0.0)))
        (graph.gradients if key in back and graph.gradients is not None else graph.tensors).append(moved)
    return rate
