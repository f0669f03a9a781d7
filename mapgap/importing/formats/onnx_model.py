"""ONNX models: operators, shapes by ``onnx.shape_inference``, multiply-accumulates and bytes of every node.

The first dimension of every input is the batch. Where a model fixes it, sizes are divided by it. Other dimensions that
carry a name (``sequence``) are settings. What depends on constants and shapes only is no layer. An initializer counts
for the first node that reads it.

Multiply-accumulates are counted for convolutions, matrix products and recurrent layers; all other operators count as
none. The model holds no times: these come from profiles or, with the board's speed, from an estimate.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import onnx
from onnx import shape_inference

from mapgap.core import Finding, InputError, short
from mapgap.core.workload import Settings
from mapgap.importing.graph import Layer, LayerGraph, origin
from mapgap.importing.source import LARGEST, Source

NAME, TITLE = "onnx", "ONNX model"
FOLDED = ("Constant", "Shape", "Size")
GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
Shapes = dict[str, tuple[tuple[int, ...], int]]
"""Tensor to its dimensions and the bytes of a value."""


def looks_like(source: Source) -> bool:
    """Binary data that parses as a model with operators."""
    if source.text is not None and source.path.suffix != ".onnx":
        return False
    try:
        return len(onnx.load_model_from_string(source.data).graph.node) > 0
    except Exception:  # protobuf raises errors of several kinds
        return source.path.suffix == ".onnx"


def load(source: Source) -> onnx.ModelProto:
    """The model of a file.

    Raises
    ------
    InputError
        It is none.
    """
    try:
        model = onnx.load_model_from_string(source.data)
    except Exception as error:  # protobuf raises errors of several kinds
        text = f"expected an ONNX model, found {len(source.data):,} bytes that are none ({type(error).__name__})"
        raise InputError(Finding(text, place=str(source.path))) from error
    if not model.graph.node:
        raise InputError(Finding("expected a model with operators, found none", place=str(source.path)))
    twice = _written_twice(model.graph)
    if twice:
        text = f"expected every tensor to be written by one operator, found {short(repr(twice))} written by two"
        raise InputError(Finding(text, place=str(source.path)))
    try:
        sound = all(isinstance(word, str) for word in _words(model.graph))
    except UnicodeDecodeError:  # protobuf finds out when a name is read
        sound = False
    if not sound:
        raise InputError(Finding("expected names in UTF-8, found other bytes", place=str(source.path)))
    return model


def _written_twice(graph: onnx.GraphProto) -> str:
    """A tensor that two operators write; empty if there is none, or where a name is no text."""
    seen: set[str] = set()
    try:
        for name in (name for node in graph.node for name in node.output if name):
            if name in seen:
                return str(name)
            seen.add(name)
    except UnicodeDecodeError:  # said below
        pass
    return ""


def _words(graph: onnx.GraphProto) -> Iterator[object]:
    """Every name that is read of a model."""
    for node in graph.node:
        yield from (node.name, node.op_type, node.domain, *node.input, *node.output)
        yield from (attribute.name for attribute in node.attribute)
    for value in [*graph.input, *graph.output]:
        yield from (value.name, *(each.dim_param for each in value.type.tensor_type.shape.dim))
    yield from (each.name for each in graph.initializer)


def named(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model with a distinct name for every node: ``Relu_5`` for one that has none."""
    seen: set[str] = set()
    for k, node in enumerate(model.graph.node):
        name = node.name or f"{node.op_type}_{k}"
        node.name = name if name not in seen else f"{name}_{k}"
        seen.add(node.name)
    return model


def read(sources: Sequence[Source], settings: Settings) -> LayerGraph:
    """The graph of a model.

    Raises
    ------
    InputError
        No model; dimensions that nobody told; tensors without a shape.
    """
    source = sources[0]
    model = named(load(source))
    batch = fix_dimensions(model, settings)
    settings.check()
    shapes = _shapes(model, source)
    graph = LayerGraph(source.path.stem)
    constants = {each.name for each in model.graph.initializer} | {""}
    inputs = [each.name for each in model.graph.input if each.name not in constants]
    owner: dict[str, str] = {}
    paid: set[str] = set()
    unknown: list[str] = []
    for node in model.graph.node:
        if node.op_type in FOLDED or all(name in constants for name in node.input):
            constants |= set(node.output)
            continue
        unknown += [name for name in [*node.input, *node.output] if name and name not in shapes]
        weights = [name for name in node.input if name in constants and name and name not in paid]
        paid |= set(weights)
        size = sum(_bytes(shapes, name) for name in node.output if name)
        layer = Layer(
            node.op_type,
            math.ceil(size / batch),
            sum(_bytes(shapes, name) for name in weights),
            _macs(node, shapes, batch),
            None,
            _attributes(node, shapes, constants),
        )
        graph.add(node.name, layer, dict.fromkeys(owner[name] for name in node.input if name in owner))
        if any(name in inputs for name in node.input):
            graph.readers.add(node.name)
        owner |= {name: node.name for name in node.output if name}
    if unknown:
        listed = ", ".join(dict.fromkeys(unknown[:5]))
        text = f"expected a shape for every tensor, found none for {listed} ({len(set(unknown))} in all)"
        raise InputError(Finding(text, place=str(source.path)))
    graph.input_bytes = math.ceil(sum(_bytes(shapes, name) for name in inputs) / batch)
    assumed = ["the first dimension of every input is the batch", "operators without products count no operations"]
    what = f"{len(graph.graph)} operators, their shapes, multiply-accumulates and bytes"
    graph.origins.append(origin(source, NAME, what, assumed))
    return graph


def fix_dimensions(model: onnx.ModelProto, settings: Settings, batch: int = 1) -> int:
    """Give every input whole dimensions; the batch they then have.

    A batch that the model leaves open becomes ``batch``; other open dimensions are settings.
    """
    constants = {each.name for each in model.graph.initializer}
    fixed = 0
    for value in model.graph.input:
        if value.name in constants:
            continue
        for k, dimension in enumerate(value.type.tensor_type.shape.dim):
            if dimension.HasField("dim_value") and dimension.dim_value > 0:
                fixed = fixed or (dimension.dim_value if k == 0 else 0)
            elif k == 0:
                dimension.dim_value = batch
                fixed = fixed or batch
            else:
                name = dimension.dim_param or f"{value.name}_dim{k}"
                dimension.dim_value = settings.whole(name, f"dimension {k} of the input {value.name!r}", least=1)
    return min(fixed, 2**31) or 1


def _shapes(model: onnx.ModelProto, source: Source) -> Shapes:
    # What exporters wrote about inner tensors may still hold open dimensions: all is inferred anew.
    del model.graph.value_info[:]
    try:
        model = shape_inference.infer_shapes(model, data_prop=True)
    except Exception as error:  # several kinds, from C++
        first = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        text = f"expected shapes that fit together, found: {first}"
        raise InputError(Finding(text, place=str(source.path))) from error
    found: Shapes = {}
    for each in model.graph.initializer:
        found[each.name] = (tuple(each.dims), _width(each.data_type))
    for value in [*model.graph.value_info, *model.graph.input, *model.graph.output]:
        tensor = value.type.tensor_type
        dims = tuple(each.dim_value for each in tensor.shape.dim)
        if value.name not in found and tensor.HasField("shape") and all(d > 0 for d in dims):
            found[value.name] = (dims, _width(tensor.elem_type))
    for node in model.graph.node:
        for attribute in node.attribute:
            if node.op_type == "Constant" and attribute.name == "value" and node.output:
                found.setdefault(node.output[0], (tuple(attribute.t.dims), _width(attribute.t.data_type)))
    for name, (dims, _) in found.items():
        if any(d < 0 for d in dims) or math.prod(dims) > LARGEST:
            text = f"expected a tensor of at most {LARGEST:g} values, found {name} of {list(dims)}"
            raise InputError(Finding(text, place=str(source.path)))
    return found


def _width(kind: int) -> int:
    try:
        return int(onnx.helper.tensor_dtype_to_np_dtype(kind).itemsize)
    except (KeyError, TypeError, ValueError):
        return 4


def _bytes(shapes: Shapes, name: str) -> int:
    dims, width = shapes.get(name, ((0,), 0))
    return math.prod(dims) * width


def _dims(shapes: Shapes, names: Sequence[str], k: int) -> tuple[int, ...]:
    return shapes.get(names[k], ((), 0))[0] if k < len(names) else ()


def _values(node: onnx.NodeProto) -> dict[str, Any]:
    """Attributes that are numbers or lists of them."""
    return {each.name: onnx.helper.get_attribute_value(each) for each in node.attribute if each.type in (1, 2, 6, 7)}


def _macs(node: onnx.NodeProto, shapes: Shapes, batch: int) -> int | None:
    """Multiply-accumulates per sample; ``None`` for operators with a body of their own."""
    if any(each.type in (5, 10) for each in node.attribute):
        return None
    first, weights = _dims(shapes, node.input, 0), _dims(shapes, node.input, 1)
    output = _dims(shapes, node.output, 0)
    count = 0
    if node.op_type == "Conv" and len(weights) > 1:
        count = math.prod(output) * math.prod(weights[1:])
    elif node.op_type == "ConvTranspose" and len(weights) > 1:
        count = math.prod(first) * math.prod(weights[1:])
    elif node.op_type == "MatMul" and first:
        count = math.prod(output) * first[-1]
    elif node.op_type == "Gemm" and len(first) == 2:
        count = math.prod(output) * (first[0] if _values(node).get("transA") else first[1])
    elif node.op_type in GATES and len(weights) == 3 and len(first) == 3:
        hidden = weights[1] // GATES[node.op_type]
        count = first[0] * first[1] * weights[0] * weights[1] * (weights[2] + hidden)
    return math.ceil(count / batch)


def _attributes(node: onnx.NodeProto, shapes: Shapes, constants: set[str]) -> dict[str, int]:
    """Channels, kernel and pixels of a layer with weights."""
    output, weights = _dims(shapes, node.output, 0), _dims(shapes, node.input, 1)
    if node.op_type == "Conv" and len(weights) > 2 and len(output) > 2:
        groups = int(_values(node).get("group", 1))
        return {
            "channels_in": weights[1] * groups,
            "channels_out": weights[0],
            "kernel": math.prod(weights[2:]),
            "groups": groups,
            "pixels": math.prod(output[2:]),
        }
    first = _dims(shapes, node.input, 0)
    if node.op_type in ("Gemm", "MatMul") and len(weights) == 2 and node.input[1] in constants and first:
        turned = node.op_type == "Gemm" and bool(_values(node).get("transB"))
        into, out = (weights[1], weights[0]) if turned else weights
        return {"channels_in": into, "channels_out": out, "kernel": 1, "groups": 1, "pixels": 1}
    return {}
