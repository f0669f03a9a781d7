"""The nodes of an ONNX model: what each one reads, which of them are constants, and which weights each one holds."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import onnx

SHAPES = ("Shape", "Size")
RANDOM = ("RandomNormal", "RandomUniform", "RandomNormalLike", "RandomUniformLike", "Multinomial", "Bernoulli")
BY_VALUE = ("NonZero", "NonMaxSuppression", "Unique", "Compress", "If", "Loop", "StringSplit", "SequenceAt")
"""Operators whose outputs have as many values as the values of their inputs say."""
SHAPED_FROM = {"ConstantOfShape": 0, "Range": 0} | dict.fromkeys(
    ("Reshape", "Expand", "Tile", "Slice", "Pad", "Resize", "Upsample", "TopK", "OneHot", "Split", "CenterCropPad"), 1
)
"""Operators that take the shape of their output from the values of their inputs from this place on."""
HALF_BYTE = ("INT4", "UINT4", "FLOAT4E2M1")
NOTHING: frozenset[str] = frozenset()
NODE = "node "
"""Before the name of a folded node among what a constant is made of."""


def bodies(node: onnx.NodeProto) -> Iterator[onnx.GraphProto]:
    """The graphs that stand in a node."""
    for attribute in node.attribute:
        if attribute.type == onnx.AttributeProto.GRAPH:
            yield attribute.g
        elif attribute.type == onnx.AttributeProto.GRAPHS:
            yield from attribute.graphs


def every_node(graph: onnx.GraphProto) -> Iterator[onnx.NodeProto]:
    """The nodes of a graph and of all graphs in them."""
    for node in graph.node:
        yield node
        for body in bodies(node):
            yield from every_node(body)


def reads(node: onnx.NodeProto) -> list[str]:
    """The tensors that a node reads: its inputs, and what the graphs in it take from outside."""
    found = [name for name in node.input if name]
    for body in bodies(node):
        made = {each.name for each in [*body.input, *body.initializer]}
        made |= {each.values.name for each in body.sparse_initializer}
        for inner in body.node:
            found += [name for name in reads(inner) if name not in made]
            made |= set(inner.output)
        found += [each.name for each in body.output if each.name not in made]
    return list(dict.fromkeys(found))


def attributes(node: onnx.NodeProto) -> dict[str, Any]:
    """Attributes that are numbers, texts, or lists of numbers."""
    return {each.name: onnx.helper.get_attribute_value(each) for each in node.attribute if each.type in (1, 2, 3, 6, 7)}


def size(dims: Iterator[int] | tuple[int, ...], kind: int) -> int:
    """Bytes of a tensor of a type of ONNX; of a type that is not known 4 bytes a value."""
    count = math.prod(dims)
    try:
        if onnx.TensorProto.DataType.Name(kind) in HALF_BYTE:
            return -(-count // 2)
        return count * int(onnx.helper.tensor_dtype_to_np_dtype(kind).itemsize)
    except (KeyError, TypeError, ValueError):
        return 4 * count


def constant_bytes(node: onnx.NodeProto) -> int:
    """Bytes of a ``Constant``."""
    for each in node.attribute:
        if each.name == "value":
            return size(tuple(each.t.dims), each.t.data_type)
        if each.name == "sparse_value":
            return size(tuple(each.sparse_tensor.values.dims), each.sparse_tensor.values.data_type)
    values = attributes(node)
    whole = values.get("value_ints", [values["value_int"]] if "value_int" in values else [])
    return 8 * len(whole) + 4 * len(values.get("value_floats", [1] if "value_float" in values else []))


def carried(graph: onnx.GraphProto, prefix: str = "") -> dict[str, int]:
    """Bytes of every weight of a graph and of the graphs in it, by name (below a node: ``node/name``)."""
    found = {prefix + each.name: size(tuple(each.dims), each.data_type) for each in graph.initializer}
    for sparse in graph.sparse_initializer:
        found[prefix + sparse.values.name] = size(tuple(sparse.values.dims), sparse.values.data_type)
    for node in graph.node:
        if node.op_type == "Constant" and node.output:
            found[prefix + node.output[0]] = constant_bytes(node)
        for k, body in enumerate(bodies(node)):
            found |= carried(body, f"{prefix}{node.name}/{k}/")
    return found


@dataclass
class Nodes:
    """The nodes of a model, sorted into layers and constants.

    Attributes
    ----------
    layers, folded : list of NodeProto
        In the order of the file. What is folded depends on constants and shapes only.
    reads : dict
        Layer to the tensors that it reads.
    made_of : dict
        Constant tensor to the weights and the folded nodes (behind :data:`NODE`) that it is made of.
    carriers : dict
        Weight to its bytes.
    """

    layers: list[onnx.NodeProto] = field(default_factory=list)
    folded: list[onnx.NodeProto] = field(default_factory=list)
    reads: dict[str, list[str]] = field(default_factory=dict)
    made_of: dict[str, frozenset[str]] = field(default_factory=dict)
    carriers: dict[str, int] = field(default_factory=dict)

    def weights(self, node: onnx.NodeProto) -> frozenset[str]:
        """The weights of a layer, and the folded nodes that make them: what it reads, and what stands in its graphs."""
        inner = {name for k, body in enumerate(bodies(node)) for name in carried(body, f"{node.name}/{k}/")}
        return frozenset(inner).union(*(self.made_of.get(name, NOTHING) for name in self.reads[node.name]))


def sort(graph: onnx.GraphProto, shapes: Mapping[str, tuple[tuple[int, ...], int]]) -> Nodes:
    """Which nodes are layers.

    A node is folded if all that it reads is constant, what the graphs in it capture included. A shape is constant
    unless it depends on the values of the input of the model (behind ``NonZero``, ``Loop``, …). What a
    ``ConstantOfShape`` makes of a constant is a weight.
    """
    found = Nodes(carriers=carried(graph))
    given = [*(each.name for each in graph.initializer), *(each.values.name for each in graph.sparse_initializer)]
    found.made_of = {name: frozenset([name]) for name in given}
    open_shapes: set[str] = set()
    for node in graph.node:
        read = reads(node)
        if node.op_type == "Constant" and node.output:
            found.made_of[node.output[0]] = frozenset([node.output[0]])
            continue
        if node.op_type in SHAPES and not open_shapes & set(read):
            found.made_of |= dict.fromkeys(node.output, frozenset([NODE + node.name]))
            found.folded.append(node)
            continue
        if node.op_type not in RANDOM and all(name in found.made_of for name in read):
            made = frozenset([NODE + node.name]).union(*(found.made_of[name] for name in read))
            inner = [name for k, body in enumerate(bodies(node)) for name in carried(body, f"{node.name}/{k}/")]
            if node.op_type == "ConstantOfShape" and read[0] in found.carriers:
                found.carriers[node.output[0]] = shapes.get(node.output[0], ((), 0))[1]
                inner = [node.output[0]]
            found.made_of |= dict.fromkeys(filter(None, node.output), made.union(inner))
            found.folded.append(node)
            continue
        found.layers.append(node)
        found.reads[node.name] = read
        told = SHAPED_FROM.get(node.op_type)
        by_value = told is not None and any(name and name not in found.made_of for name in node.input[told:])
        if by_value or node.op_type in BY_VALUE or open_shapes & set(read):
            open_shapes |= set(node.output)
    return found
