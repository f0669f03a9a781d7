"""ONNX models: operators, shapes, multiply-accumulates and bytes of every node.

Shapes come from ``onnx.shape_inference``; where that finds none, from one run with ONNX Runtime. A node with graphs
inside (``Loop``, ``If``, ``Scan``) is one layer: it reads what these graphs take from outside, their weights are its
own, and what ran in them is counted in that run.

The batch is what every input leaves open under a name with "batch" in it, else the first dimension of every input;
where a model fixes it, sizes are divided by it. Other open dimensions that carry a name (``sequence``) are settings.
What depends on constants and shapes only is no layer; the weights that it is made of count for the first node that
reads it.

The model holds no times: these come from profiles or, with the board's speed, from an estimate.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import onnx
from onnx import external_data_helper, inliner, shape_inference

from mapgap.core import Finding, InputError, short
from mapgap.core.workload import Settings
from mapgap.importing.graph import Layer, LayerGraph, Total, origin
from mapgap.importing.onnx_files.dimensions import fix, inputs
from mapgap.importing.onnx_files.nodes import NODE, SHAPES, Nodes, attributes, bodies, every_node, size, sort
from mapgap.importing.onnx_files.products import multiply_accumulates
from mapgap.importing.source import LARGEST, Source

if TYPE_CHECKING:
    from mapgap.importing.onnx_files.run import Run, Step

NAME, TITLE = "onnx", "ONNX model"
Shapes = dict[str, tuple[tuple[int, ...], int]]
"""Tensor to its dimensions and bytes."""
MOST_OPERATORS = 200_000
"""More are no model: two bytes make an operator."""


@dataclass(frozen=True)
class Described:
    """A model as a graph, and to which layer a name of ONNX Runtime belongs.

    Attributes
    ----------
    graph : LayerGraph
    owners : dict
        Folded node, or tensor, to the layer that first reads or that makes it.
    """

    graph: LayerGraph
    owners: dict[str, str]


def looks_like(source: Source) -> bool:
    """Binary data that parses as a model with operators."""
    if source.text is not None and source.path.suffix != ".onnx":
        return False
    try:
        return len(onnx.load_model_from_string(source.data).graph.node) > 0
    except Exception:  # protobuf raises errors of several kinds
        return source.path.suffix == ".onnx"


def load(source: Source) -> onnx.ModelProto:
    """The model of a file, with a distinct name for every node and without functions of its own.

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
    if len(model.graph.node) > MOST_OPERATORS:
        text = f"expected at most {MOST_OPERATORS:,} operators, found {len(model.graph.node):,}"
        raise InputError(Finding(text, place=str(source.path)))
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
    if model.functions:
        try:
            model = inliner.inline_local_functions(model)
        except Exception as error:  # several kinds, from C++
            text = f"expected functions that fit their calls, found: {_first_line(error)}"
            raise InputError(Finding(text, place=str(source.path))) from error
    return named(model)


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
    for node in every_node(graph):
        yield from (node.name, node.op_type, node.domain, *node.input, *node.output)
        yield from (attribute.name for attribute in node.attribute)
    for value in [*graph.input, *graph.output]:
        yield from (value.name, *(each.dim_param for each in value.type.tensor_type.shape.dim))
    yield from (each.name for each in graph.initializer)


def _first_line(error: Exception) -> str:
    return next(iter(str(error).strip().splitlines()), type(error).__name__)


def named(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model with a distinct name for every node: ``Relu_5`` for one that has none."""
    seen: set[str] = set()
    outer = list(model.graph.node)
    within = [inner for node in outer for body in bodies(node) for inner in every_node(body)]
    for k, node in enumerate([*outer, *within]):
        name = node.name or f"{node.op_type}_{k}"
        node.name = name if name not in seen else f"{name}_{k}"
        seen.add(node.name)
    return model


def with_weights(model: onnx.ModelProto, source: Source) -> onnx.ModelProto:
    """The model with the weights that lie in files beside it.

    Raises
    ------
    InputError
        Such a file is missing, or all of it is too large for one message.
    """
    try:
        external_data_helper.load_external_data_for_model(model, str(source.path.parent))
        if model.ByteSize() >= 2**31:
            raise ValueError(f"{model.ByteSize():,} bytes, where a model with its weights may have 2 GiB")
    except Exception as error:  # files that are missing, paths that lead elsewhere, messages that are too large
        text = f"expected the weights of the model in files beside it, found: {_first_line(error)}"
        raise InputError(Finding(text, place=str(source.path))) from error
    return model


def read(sources: Sequence[Source], settings: Settings) -> LayerGraph:
    """The graph of a model.

    Raises
    ------
    InputError
        No model; dimensions that nobody told; tensors whose shape neither inference nor a run tells.
    """
    return describe(sources[0], settings).graph


def describe(source: Source, settings: Settings) -> Described:
    """The graph of a model, and whose its constants and tensors are.

    Raises
    ------
    InputError
    """
    model = load(source)
    batch = fix(model, settings)
    settings.given_to({value.name: None for value in inputs(model)})  # values of a run, needed or not
    settings.check()
    shapes, wrong = _inferred(model, source)
    _check_sizes(shapes, source)
    nodes = sort(model.graph, shapes)
    used = {name for read in nodes.reads.values() for name in read} | {each.name for each in model.graph.output}
    wanted = [name for node in nodes.layers for name in [*node.input, *node.output] if name in used]
    wanted = list(dict.fromkeys(name for name in wanted if name not in shapes))
    told, notes = None, []
    if wanted or any(True for node in nodes.layers for _ in bodies(node)):
        told = _ran(model, source, settings, wanted, wrong, batch.said)
    if told is not None:
        shapes |= told.sizes
        known = [f"the sizes of {len(wanted)} tensors"] if wanted else []
        known += ["what ran in Loop, If and Scan"] if any(True for node in nodes.layers for _ in bodies(node)) else []
        notes.append(f"{' and '.join(known)} are those of one run on made-up input")
    unknown = [name for name in wanted if name not in shapes]
    if unknown:
        notes.append(f"no bytes for {', '.join(unknown[:5])} ({len(unknown)} tensors without a size)")
    _check_sizes(shapes, source)
    graph, owners = _graph(source.path.stem, model, nodes, shapes, told, batch.samples)
    graph.input_bytes = math.ceil(sum(_bytes(shapes, each.name) for each in inputs(model)) / batch.samples)
    graph.totals = _totals(model, nodes, shapes, told, graph, owners, batch.samples)
    assumed = [batch.said, "operators without products count no operations", *notes]
    what = f"{len(graph.graph)} operators, their shapes, multiply-accumulates and bytes"
    graph.origins.append(origin(source, NAME, what, assumed))
    return Described(graph, owners)


def _graph(
    name: str, model: onnx.ModelProto, nodes: Nodes, shapes: Shapes, told: Run | None, batch: int
) -> tuple[LayerGraph, dict[str, str]]:
    """Layers with what they read, and whose every constant and tensor is."""
    graph = LayerGraph(name)
    own_inputs = {each.name for each in inputs(model)}
    used = {name for read in nodes.reads.values() for name in read} | {each.name for each in model.graph.output}
    inner = {node.name: attributes(node) for node in every_node(model.graph)}
    owners: dict[str, str] = {}
    makers: dict[str, str] = {}
    paid: set[str] = set()
    for node in nodes.layers:
        read = nodes.reads[node.name]
        weights = nodes.weights(node) - paid
        paid |= weights
        made = [each for each in node.output if each and each in used]
        layer = Layer(
            node.op_type,
            math.ceil(sum(_bytes(shapes, each) for each in made) / batch),
            sum(nodes.carriers.get(each, 0) for each in weights),
            _per_sample(_products(node, shapes, told, inner), batch),
            None,
            _attributes(node, shapes, nodes.made_of),
        )
        graph.add(node.name, layer, dict.fromkeys(makers[each] for each in read if each in makers))
        if own_inputs & set(read):
            graph.readers.add(node.name)
        makers |= dict.fromkeys(filter(None, node.output), node.name)
        owners |= {each.removeprefix(NODE): node.name for each in weights}
        for each in read:
            owners.setdefault(each, makers.get(each, node.name))
    return graph, owners | makers


def _per_sample(products: int | None, batch: int) -> int | None:
    return None if products is None else math.ceil(products / batch)


def _products(
    node: onnx.NodeProto, shapes: Shapes, told: Run | None, inner: Mapping[str, Mapping[str, Any]]
) -> int | None:
    """Multiply-accumulates of a node; of one with graphs inside what ran there, ``None`` without a run."""
    if any(True for _ in bodies(node)):
        ran = told.steps.get(node.name) if told is not None else None
        return sum(_stepped(step, inner) for step in ran[0].inside) if ran else None
    sides = ([shapes.get(name, ((), 0))[0] for name in names] for names in (node.input, node.output))
    return multiply_accumulates(node.op_type, inner[node.name], *sides)


def _stepped(step: Step, inner: Mapping[str, Mapping[str, Any]]) -> int:
    """Multiply-accumulates of what ran as one step."""
    return multiply_accumulates(step.operation, inner.get(step.name, {}), step.inputs, step.outputs)


def _totals(
    model: onnx.ModelProto,
    nodes: Nodes,
    shapes: Shapes,
    told: Run | None,
    graph: LayerGraph,
    owners: Mapping[str, str],
    batch: int,
) -> list[Total]:
    """What the file holds, counted without regard to which nodes became layers."""
    inner = {node.name: attributes(node) for node in every_node(model.graph)}
    readers = {name for node in every_node(model.graph) for name in node.input}
    readers |= {each.name for node in every_node(model.graph) for body in bodies(node) for each in body.output}
    outer = {name for node in model.graph.node for name in node.output} | {
        each.name for each in model.graph.initializer
    }
    weights = {name: held for name, held in nodes.carriers.items() if name in readers or name not in outer}
    lost = {name: float(held) for name, held in weights.items() if name not in owners}
    found = [Total("weights", sum(weights.values()), lost)]
    if told is not None:
        work = {
            name: sum(_stepped(step, inner) for step in (steps[0], *steps[0].inside))
            for name, steps in told.steps.items()
        }
    else:
        work = {node.name: _products(node, shapes, None, inner) or 0 for node in model.graph.node}
    lost = {name: float(count) for name, count in work.items() if count and name not in graph.graph}
    found.append(Total("products", sum(math.ceil(count / batch) for count in work.values()), lost))
    by_value = {name for node in every_node(model.graph) if node.op_type not in SHAPES for name in node.input}
    by_value |= {each.name for node in every_node(model.graph) for body in bodies(node) for each in body.output}
    held = {name for read in nodes.reads.values() for name in read}
    given = [each.name for each in inputs(model) if each.name in by_value]
    found.append(Total("inputs", len(given), {name: 1.0 for name in given if name not in held}))
    made = {name for node in nodes.layers for name in node.output}
    asked = [each.name for each in model.graph.output]
    found.append(Total("outputs", len(asked), {name: 1.0 for name in asked if name not in made}))
    return found


def _ran(
    model: onnx.ModelProto, source: Source, settings: Settings, wanted: Sequence[str], wrong: str, said: str
) -> Run | None:
    """One run without optimisation; ``None`` if it only would have told what ran inside of nodes and cannot be made."""
    listed = f"found none for {', '.join(wanted[:5])} ({len(wanted)} in all)" + (f"; {wrong}" if wrong else "")
    try:
        runner = importlib.import_module("mapgap.importing.onnx_files.run")
    except ModuleNotFoundError as error:
        if not wanted:
            return None
        text = (
            f"expected a shape for every tensor, {listed}; a run tells them: expected the package {error.name}, "
            f"install it by: pip install 'mapgap[onnx]'"
        )
        raise InputError(Finding(text, place=str(source.path))) from error
    try:
        feed = runner.values(model, settings)
        settings.check()
        ran: Run = runner.run(with_weights(model, source), feed, wanted=wanted)
    except InputError as error:
        if not wanted:
            return None
        whole = [each.name for each in inputs(model) if each.type.tensor_type.elem_type in (6, 7)]
        hint = f"; the run gives 1 to {', '.join(whole)} (--set NAME=VALUE)" if whole else ""
        text = f"expected a shape for every tensor, {listed}; and {'; '.join(error.problems)}{hint}; {said}"
        raise InputError(Finding(text, place=str(source.path))) from error
    return ran


def _inferred(model: onnx.ModelProto, source: Source) -> tuple[Shapes, str]:
    """Shapes that inference finds, and what it complained of."""
    # What exporters wrote about inner tensors may still hold open dimensions: all is inferred anew.
    del model.graph.value_info[:]
    wrong = ""
    inferred = model
    try:
        inferred = shape_inference.infer_shapes(model, data_prop=True)
    except Exception as error:  # several kinds, from C++
        wrong = f"shapes do not fit together: {_first_line(error)}"
    found: Shapes = {}
    for each in inferred.graph.initializer:
        found[each.name] = (tuple(each.dims), size(tuple(each.dims), each.data_type))
    asked = inferred.graph.output if not wrong else ()  # as the exporter wrote them
    for value in [*inferred.graph.value_info, *inferred.graph.input, *asked]:
        tensor = value.type.tensor_type
        known = tensor.HasField("shape") and all(each.HasField("dim_value") for each in tensor.shape.dim)
        dims = tuple(each.dim_value for each in tensor.shape.dim)
        if value.name not in found and known and all(d >= 0 for d in dims):
            found[value.name] = (dims, size(dims, tensor.elem_type))
    for node in inferred.graph.node:
        for attribute in node.attribute:
            if node.op_type == "Constant" and attribute.name == "value" and node.output:
                dims = tuple(attribute.t.dims)
                found.setdefault(node.output[0], (dims, size(dims, attribute.t.data_type)))
    return found, wrong


def _check_sizes(shapes: Shapes, source: Source) -> None:
    for name, (dims, _) in shapes.items():
        if any(d < 0 for d in dims) or math.prod(dims) > LARGEST:
            text = f"expected a tensor of at most {LARGEST:g} values, found {name} of {list(dims)}"
            raise InputError(Finding(text, place=str(source.path)))


def _bytes(shapes: Shapes, name: str) -> int:
    return shapes.get(name, ((), 0))[1]


def _attributes(node: onnx.NodeProto, shapes: Shapes, constants: Mapping[str, object]) -> dict[str, int]:
    """Channels, kernel and pixels of a layer with weights."""

    def dims(names: Sequence[str], k: int) -> tuple[int, ...]:
        return shapes.get(names[k], ((), 0))[0] if k < len(names) else ()

    output, weights = dims(node.output, 0), dims(node.input, 1)
    if node.op_type == "Conv" and len(weights) > 2 and len(output) > 2:
        groups = int(attributes(node).get("group", 1))
        return {
            "channels_in": weights[1] * groups,
            "channels_out": weights[0],
            "kernel": math.prod(weights[2:]),
            "groups": groups,
            "pixels": math.prod(output[2:]),
        }
    first = dims(node.input, 0)
    if node.op_type in ("Gemm", "MatMul") and len(weights) == 2 and node.input[1] in constants and first:
        turned = node.op_type == "Gemm" and bool(attributes(node).get("transB"))
        into, out = (weights[1], weights[0]) if turned else weights
        return {"channels_in": into, "channels_out": out, "kernel": 1, "groups": 1, "pixels": 1}
    return {}
