"""The graph that the stage model of one ratio is built on: nodes, their neighbours, durations and transfers."""

from __future__ import annotations

from mapgap.problems.suboperation_mapping import Instance
from mapgap.problems.suboperation_mapping.instance import Operation

Node = tuple[str, int]
"""FP, BP or WU of a layer; of a split layer it has one operation per non-zero share."""


class StageGraph:
    """Nodes in a topological order, and times in units of the model.

    Parameters
    ----------
    ratio : tuple of int
        Non-increasing shares.
    scale : float
        Ticks per unit of the model's time.
    """

    def __init__(self, instance: Instance, ratio: tuple[int, ...], scale: float) -> None:
        self.instance, self.ratio, self.scale = instance, ratio, scale
        self.count = len(instance.accelerators)
        self.shares = [b for b, samples in enumerate(ratio) if samples > 0]
        layers = instance.layers
        self.consumers = [instance.consumers(i) for i in range(len(layers))]
        self.nodes: list[Node] = [("FP", i) for i in range(len(layers))]
        for i in reversed(range(len(layers))):
            if layers[i].kind == "split":
                self.nodes.append(("WU", i))
            if layers[i].inputs:
                self.nodes.append(("BP", i))
        self.before: dict[Node, list[Node]] = {node: self._node_predecessors(node) for node in self.nodes}
        self.after: dict[Node, list[Node]] = {node: [] for node in self.nodes}
        self.ancestors: dict[Node, set[Node]] = {}
        for node in self.nodes:
            reach: set[Node] = set()
            for p in self.before[node]:
                self.after[p].append(node)
                reach |= self.ancestors[p] | {p}
            self.ancestors[node] = reach
        self.descendants = {node: [d for d in self.nodes if node in self.ancestors[d]] for node in self.nodes}

    def _node_predecessors(self, node: Node) -> list[Node]:
        phase, index = node
        if phase == "FP":
            return [("FP", edge.source) for edge in self.instance.layers[index].inputs]
        return [("BP", c) for c, _ in self.consumers[index]] + [("FP", index)]

    def fused(self, node: Node) -> bool:
        return self.instance.layers[node[1]].kind == "fused"

    def members(self, node: Node) -> list[Operation]:
        """Operations of a node."""
        return [self.part(node, b) for b in ([-1] if self.fused(node) else self.shares)]

    @staticmethod
    def part(node: Node, share: int = -1) -> Operation:
        return (node[0], node[1], share)  # type: ignore[return-value]

    def samples(self, operation: Operation) -> int:
        return self.ratio[operation[2]] if operation[2] >= 0 else self.instance.batch

    def compute(self, operation: Operation, a: int) -> float:
        layer = self.instance.layers[operation[1]]
        table = {"FP": layer.fp, "BP": layer.bp, "WU": layer.wu}[operation[0]]
        return table[a][self.ratio[operation[2]] - 1 if operation[2] >= 0 else 0] / self.scale

    def transfer(self, size: int, source: int, target: int) -> float:
        return self.instance.transfer_ticks(size, source, target) / self.scale

    def cheapest(self, size: int, target: int) -> float:
        """Transfer to ``target`` from the best other accelerator: a lower bound on every real one."""
        others = [self.transfer(size, i, target) for i in range(self.count) if i != target]
        return min(others, default=0.0)

    def edge_bytes(self, node: Node, previous: Node) -> int:
        """Bytes per sample between two nodes of different layers."""
        if node[0] == "FP":
            return next(edge.bytes for edge in self.instance.layers[node[1]].inputs if edge.source == previous[1])
        return next(edge.bytes for c, edge in self.consumers[node[1]] if c == previous[1])

    def own_bytes(self, node: Node, operation: Operation) -> int:
        """Bytes that BP or WU reads from the FP operation of its own layer and share."""
        layer, size = self.instance.layers[node[1]], self.samples(operation)
        loss = 0 if self.consumers[node[1]] else layer.output_bytes * size
        return loss + (layer.weight_bytes if node[0] == "BP" else layer.input_bytes * size)
