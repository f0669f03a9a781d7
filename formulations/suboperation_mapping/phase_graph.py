"""The graph of phases that relaxations are built on: FP, BP and WU of every layer, whatever the ratio."""

from __future__ import annotations

from functools import cached_property

import networkx as nx

from mapgap.problems.suboperation_mapping import Instance
from mapgap.problems.suboperation_mapping.instance import Operation, Phase
from mapgap.problems.suboperation_mapping.lowered.ratios import Ratio

Node = tuple[Phase, int]
"""FP, BP or WU of a layer; of a split layer it has one operation per non-zero share."""


class PhaseGraph:
    """Nodes of an instance and what leads to what.

    Attributes
    ----------
    nodes : list of Node
        In a topological order: FP by layer, then by falling layer WU before BP.
    before, after : dict
        Direct predecessors and successors of a node.
    ancestors : dict
        All nodes that precede a node.
    descendants : dict
        All nodes that follow a node, in the order of ``nodes``.
    """

    def __init__(self, instance: Instance) -> None:
        self.instance = instance
        self.consumers = [instance.consumers(layer) for layer in range(len(instance.layers))]
        graph = nx.DiGraph()
        for index, layer in enumerate(instance.layers):
            graph.add_node(("FP", index))
            graph.add_edges_from((("FP", edge.source), ("FP", index)) for edge in layer.inputs)
        for index in reversed(range(len(instance.layers))):
            layer = instance.layers[index]
            phases = (["WU"] if layer.kind == "split" else []) + (["BP"] if layer.inputs else [])
            for phase in phases:
                graph.add_edges_from((("BP", consumer), (phase, index)) for consumer, _ in self.consumers[index])
                graph.add_edge(("FP", index), (phase, index))
        self.nodes: list[Node] = list(graph)
        self.before: dict[Node, list[Node]] = {node: list(graph.predecessors(node)) for node in self.nodes}
        self.after: dict[Node, list[Node]] = {node: list(graph.successors(node)) for node in self.nodes}
        self._graph = graph

    @cached_property
    def ancestors(self) -> dict[Node, set[Node]]:
        return {node: nx.ancestors(self._graph, node) for node in self.nodes}

    @cached_property
    def descendants(self) -> dict[Node, list[Node]]:
        return {node: [d for d in self.nodes if node in self.ancestors[d]] for node in self.nodes}

    def fused(self, node: Node) -> bool:
        return self.instance.layers[node[1]].kind == "fused"

    def table(self, node: Node) -> tuple[tuple[int, ...], ...]:
        """Compute ticks ``[accelerator][share - 1]`` (one entry for a fused node)."""
        layer = self.instance.layers[node[1]]
        return {"FP": layer.fp, "BP": layer.bp, "WU": layer.wu}[node[0]]

    def edge_bytes(self, node: Node, previous: Node) -> int:
        """Bytes per sample between two nodes of different layers."""
        if node[0] == "FP":
            return next(edge.bytes for edge in self.instance.layers[node[1]].inputs if edge.source == previous[1])
        return next(edge.bytes for c, edge in self.consumers[node[1]] if c == previous[1])


class RatioGraph:
    """The operations of the nodes under one ratio, and times in units of a model.

    Parameters
    ----------
    ratio : tuple of int
        Non-increasing shares.
    scale : float
        Ticks per unit of the model's time.
    """

    def __init__(self, phases: PhaseGraph, ratio: Ratio, scale: float) -> None:
        self.phases, self.instance, self.ratio, self.scale = phases, phases.instance, ratio, scale
        self.count = len(self.instance.accelerators)
        self.shares = [b for b, samples in enumerate(ratio) if samples > 0]

    def members(self, node: Node) -> list[Operation]:
        """Operations of a node."""
        return [self.part(node, b) for b in ([-1] if self.phases.fused(node) else self.shares)]

    @staticmethod
    def part(node: Node, share: int = -1) -> Operation:
        return (node[0], node[1], share)

    def samples(self, operation: Operation) -> int:
        return self.ratio[operation[2]] if operation[2] >= 0 else self.instance.batch

    def compute(self, operation: Operation, a: int) -> float:
        phase, layer, share = operation
        return self.phases.table((phase, layer))[a][self.ratio[share] - 1 if share >= 0 else 0] / self.scale

    def transfer(self, size: int, source: int, target: int) -> float:
        return self.instance.transfer_ticks(size, source, target) / self.scale

    def cheapest(self, size: int, target: int) -> float:
        """Transfer to ``target`` from the best other accelerator: a lower bound on every real one."""
        others = [self.transfer(size, i, target) for i in range(self.count) if i != target]
        return min(others, default=0.0)

    def own_bytes(self, node: Node, operation: Operation) -> int:
        """Bytes that BP or WU reads from the FP operation of its own layer and share."""
        layer, size = self.instance.layers[node[1]], self.samples(operation)
        loss = 0 if self.phases.consumers[node[1]] else layer.output_bytes * size
        return loss + (layer.weight_bytes if node[0] == "BP" else layer.input_bytes * size)
