"""From the layer table of a network to modules of layers: what is a layer, what is absorbed, where a module ends.

Convolutions and fully connected layers are layers; so are additions, products and concatenations, without cost,
because they say where their inputs meet. Normalisation, pooling, up-sampling, channel splits and shuffles are absorbed:
they cost nothing and shrink or grow the tensor before them.

A *module* is what the paper partitions: a Fire module, an inverted bottleneck, a ShuffleNetV2 unit. Rows of a table are
named ``<module>.<part>``; rows that share the first part of their name belong together. A module ends only where one
tensor alone is alive, so that whatever lies behind it reads that tensor; rows up to the next such place join it. A
stretch of rows without a layer (pooling between modules) joins the module before it.

Interpretation
--------------
1.  Layers of a module are issued by depth, within a depth the one with the longest way to the end first, then in the
    order of the table: so branches overlap although the queues of the problem work in order (its rule 2).
2.  A tensor has the size at which it is read (behind a pooling, for instance); where readers differ, the largest.
3.  Channels that different ``split`` rows select from one tensor are the parts of that tensor.
4.  Numbers are 8-bit words (Sec. I of the paper): one byte per element.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cache
from math import prod
from typing import Any, Literal

import networkx as nx

from mapgap.core import Finding, InputError, suggest
from mapgap.instances.facts import NETWORK_INPUT, Network, Row, load_network

WEIGHTED = ("conv", "fc")
JOIN = ("add", "mul", "cat")
INPUT_LAYER = "input"
"""Name of a layer that stands for the network input."""
RESIZE = ("maxpool", "avgpool", "upsample", "padshortcut", "bn")

Kind = Literal["conv", "pointwise", "depthwise", "join"]


@dataclass(frozen=True)
class Tensor:
    """What a layer reads: of part ``part`` of the output of ``layer`` (or ``NETWORK_INPUT``) so many elements."""

    layer: int
    part: int
    elements: int


@dataclass
class Shape:
    """A layer without any device; sizes per image.

    Attributes
    ----------
    row : Row
        The operator.
    reads : tuple of Tensor
    parts : list of int
        Elements of each part of the output.
    """

    row: Row
    reads: tuple[Tensor, ...]
    parts: list[int] = field(default_factory=list)

    @property
    def kind(self) -> Kind:
        """Depthwise: one input channel per group. Pointwise: 1×1 and fully connected. Conv: any other convolution."""
        if self.row.type in JOIN:
            return "join"
        if 1 < self.row.groups == self.row.cin:
            return "depthwise"
        return "pointwise" if self.row.type == "fc" or self.row.kernel == 1 else "conv"

    @property
    def operation(self) -> str:
        """``conv3x3``, ``conv1x1``, ``depthwise3x3``, ``fc``, ``add``, ``mul`` or ``cat``."""
        if self.row.type != "conv":
            return self.row.type
        stem = "depthwise" if self.kind == "depthwise" else "conv"
        return f"{stem}{self.row.kernel}x{self.row.kernel}"

    @property
    def channels_in(self) -> int:
        """Input channels of the layer; of a fully connected one all its inputs."""
        return self.row.macs // self.row.cout if self.row.type == "fc" else self.row.cin

    @property
    def window(self) -> int:
        """Weights per pair of channels, k²."""
        return 1 if self.row.type == "fc" else self.row.kernel**2


@dataclass
class Block:
    """A module: name, type and the layers ``first`` to ``last`` (inclusive) of the network.

    ``kind`` is ``fire``, ``bottleneck`` or ``unit`` for the modules of the paper, ``residual`` for other modules with
    an addition, ``single`` for a layer alone, else ``other``.
    """

    name: str
    kind: str
    first: int
    last: int


@dataclass
class Graph:
    """A lowered network: layers in the order of issue, and modules that cut them into consecutive runs."""

    name: str
    input: int
    shapes: list[Shape]
    blocks: list[Block]

    def shapes_of(self, block: Block) -> list[Shape]:
        return self.shapes[block.first : block.last + 1]


@cache
def graph_of(name: str) -> Graph:
    """A lowered library network (cached; do not modify).

    Raises
    ------
    InputError
        No such network, or an operator that cannot be lowered.
    """
    return lower_network(load_network(name))


def lower_network(network: Network) -> Graph:
    """Cut a network into modules.

    Raises
    ------
    InputError
        An operator that is not known here.
    """
    known = (*WEIGHTED, *JOIN, *RESIZE, "split")
    strange = [
        Finding(f"expected operators among {', '.join(known)}; found {row.type} ({row.name})", ("network",))
        for row in network.rows
        if row.type not in known
    ]
    if strange:
        raise InputError(strange)
    shapes, layer_of = _shapes(network)
    blocks = []
    first = 0
    for end in _ends(network):
        last = max(layer_of[row.index] for row in network.rows[: end + 1] if row.index in layer_of)
        name = _prefix(shapes[first].row)
        blocks.append(Block(name, _kind(shapes[first : last + 1]), first, last))
        first = last + 1
    return Graph(network.name, prod(network.input_chw), _issued(shapes, blocks), blocks)


def _kind(shapes: list[Shape]) -> str:
    kinds = [shape.kind for shape in shapes]
    last = shapes[-1].row.type
    if [shape.operation for shape in shapes] == ["conv1x1", "conv1x1", "conv3x3", "cat"]:
        return "fire"
    if "depthwise" in kinds and "conv" not in kinds:
        return "unit" if last == "cat" else "bottleneck"
    if len(shapes) == 1:
        return "single"
    return "residual" if last == "add" else "other"


def _issued(shapes: list[Shape], blocks: list[Block]) -> list[Shape]:
    """The layers of every module in the order of rule 1, renumbered."""
    order: list[int] = []
    for block in blocks:
        inside = range(block.first, block.last + 1)
        graph: Any = nx.DiGraph()
        graph.add_nodes_from(inside)
        graph.add_edges_from((t.layer, i) for i in inside for t in shapes[i].reads if t.layer >= block.first)
        depth, way = _longest_paths(graph), _longest_paths(graph.reverse())
        order += sorted(inside, key=lambda i: (depth[i], -way[i], i))
    place = {old: new for new, old in enumerate(order)} | {NETWORK_INPUT: NETWORK_INPUT}
    return [
        replace(shapes[old], reads=tuple(replace(t, layer=place[t.layer]) for t in shapes[old].reads)) for old in order
    ]


def _longest_paths(graph: Any) -> dict[int, int]:
    """Most edges of a path that ends at each node of a directed graph without cycles."""
    return {node: depth for depth, nodes in enumerate(nx.topological_generations(graph)) for node in nodes}


def _shapes(network: Network) -> tuple[list[Shape], dict[int, int]]:
    """All layers, and the layer that every row with a layer of its own became."""
    shapes: list[Shape] = []
    layer_of: dict[int, int] = {}
    value = {NETWORK_INPUT: Tensor(NETWORK_INPUT, 0, prod(network.input_chw))}  # what a reader of the row reads
    halves = _selections(network)
    for row in network.rows:
        if row.type in WEIGHTED or row.type in JOIN:
            shapes.append(Shape(row, tuple(dict.fromkeys(value[i] for i in row.inputs)), [row.out]))
            layer_of[row.index] = len(shapes) - 1
            value[row.index] = Tensor(len(shapes) - 1, 0, row.out)
        else:
            source = value[row.inputs[0]]
            value[row.index] = Tensor(source.layer, halves.get(row.index, source.part), row.out)
    read = {tensor for shape in shapes for tensor in shape.reads} | {value[network.rows[-1].index]}
    for index, shape in enumerate(shapes):
        sizes: dict[int, int] = {}
        for tensor in read:
            if tensor.layer == index:
                sizes[tensor.part] = max(tensor.elements, sizes.get(tensor.part, 0))
        if sizes:
            shape.parts = [sizes[part] for part in sorted(sizes)]
    return shapes, layer_of


def _selections(network: Network) -> dict[int, int]:
    """Part that every ``split`` row selects, where only ``split`` rows read a tensor (rule 3)."""
    graph = _graph(network)
    found: dict[int, int] = {}
    for row in network.rows:
        readers = sorted(reader for reader in graph.successors(row.index) if reader != OUTPUT)
        if readers and all(network.rows[reader].type == "split" for reader in readers):
            found |= {reader: part for part, reader in enumerate(readers)}
    return found


OUTPUT = "output"
"""The node that reads every row that no row reads."""


def _graph(network: Network) -> Any:
    """Rows, the network input and :data:`OUTPUT`; an edge from what is read to its reader."""
    graph: Any = nx.DiGraph()
    graph.add_edges_from((source, row.index) for row in network.rows for source in row.inputs)
    graph.add_edges_from((row.index, OUTPUT) for row in network.rows if graph.out_degree(row.index) == 0)
    return graph


def _ends(network: Network) -> list[int]:
    """Last row of every module, ascending.

    A row at which one tensor alone is alive lies on every path from input to output: it dominates the output.
    """
    rows = network.rows
    above: dict[Any, Any] = nx.immediate_dominators(_graph(network), NETWORK_INPUT)
    fusions: list[int] = []
    node = above[OUTPUT]
    while node != NETWORK_INPUT:
        fusions.append(node)
        node = above[node]
    candidates = [i for i in reversed(fusions) if i + 1 < len(rows) and _prefix(rows[i + 1]) != _prefix(rows[i])]
    ends: list[int] = []
    start = 0
    for end in [*candidates, len(rows) - 1]:
        if any(row.type in WEIGHTED for row in rows[start : end + 1]):
            ends.append(end)
            start = end + 1
        elif ends:
            ends[-1], start = end, end + 1
    return ends


def _prefix(row: Row) -> str:
    return row.name.split(".")[0]


def alone(graph: Graph, name: str) -> Graph:
    """The graph of one module; what it reads of others becomes the network input.

    Raises
    ------
    InputError
        No such module.
    """
    block = next((b for b in graph.blocks if b.name == name), None)
    if block is None:
        known = [b.name for b in graph.blocks]
        text = f"expected one of {', '.join(known)}; found {name!r}{suggest(name, known)}"
        raise InputError(Finding(text, ("module",)))
    shapes = graph.shapes_of(block)
    outside = [t for shape in shapes for t in shape.reads if t.layer < block.first]
    parts = {t.part: t.elements for t in outside}
    total = sum(parts.values())
    # Several parts of one tensor: a layer without cost holds them apart, as the network input has one part only.
    row = shapes[-1].row.model_copy(update={"name": INPUT_LAYER, "type": "cat", "out": total, "macs": 0})
    holder = [Shape(row, (Tensor(NETWORK_INPUT, 0, total),), [parts[part] for part in sorted(parts)])]
    first = holder if len(parts) > 1 else []

    def moved(tensor: Tensor) -> Tensor:
        if tensor.layer >= block.first:
            return replace(tensor, layer=tensor.layer - block.first + len(first))
        return replace(tensor, layer=0) if first else replace(tensor, layer=NETWORK_INPUT, part=0)

    inside = [replace(shape, reads=tuple(map(moved, shape.reads))) for shape in shapes]
    return Graph(graph.name, total, [*first, *inside], [Block(name, block.kind, 0, len(first) + len(inside) - 1)])
