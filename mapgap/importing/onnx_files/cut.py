"""An ONNX model in parts, one per stage of a pipeline: together they compute what the whole computes.

A part holds the nodes of its layers, the weights that these read (those of several stages in each of them), and the
folded nodes that make constants of weights. What is made of shapes only is a number once the batch is known: it stands
in the part as a weight. A tensor that is read further behind passes through the boards of the stages between.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
from onnx import helper, numpy_helper

from mapgap.core import InputError, PlannedStage, short
from mapgap.core.workload import Settings
from mapgap.importing.formats import onnx_model
from mapgap.importing.onnx_files.dimensions import fix, inputs
from mapgap.importing.onnx_files.nodes import Nodes, sort
from mapgap.importing.onnx_files.nodes import reads as reads_of
from mapgap.importing.onnx_files.run import CPU, values
from mapgap.importing.source import Source

BETWEEN = " … "
"""Between the first and the last name of layers that an import took together."""
Tensors = dict[str, Any]


@dataclass
class Part:
    """A stage of the model.

    Attributes
    ----------
    model : ModelProto
    layers : list of str
        Nodes of the model.
    receives, reads, makes, sends, outputs : list of str
        Tensors: what comes from the stage in front, what the part reads of it, what it makes, what goes on to the next
        stage, and which of what it makes are outputs of the model.
    """

    model: onnx.ModelProto
    layers: list[str]
    receives: list[str]
    reads: list[str]
    makes: list[str]
    sends: list[str]
    outputs: list[str]


def cut(path: Path, micro_batch: int, stages: Sequence[PlannedStage], settings: Settings) -> tuple[list[Part], Tensors]:
    """The parts, and every tensor that the whole has of a run on made-up inputs, which the parts have as well.

    Raises
    ------
    InputError
        The layers are not those of the model; something other than a tensor of numbers crosses a cut; the shares of
        several boards do not make the outputs of the whole.
    """
    source = Source.open(path)
    order = onnx_model.describe(source, settings).graph.order()
    place = _places(order, stages, path)
    model = onnx_model.with_weights(onnx_model.load(source), source)
    fixed = onnx.ModelProto()
    fixed.CopyFrom(model)
    said = fix(fixed, settings, micro_batch)
    settings.check(complete=True)
    if said.fixed and said.samples != micro_batch:
        text = f"expected a plan with micro-batches of {said.samples}, to which the model is fixed"
        raise InputError(f"{path}: {text}, found {micro_batch}")
    nodes = sort(model.graph, {})
    made = {each.name: 0 for each in inputs(model)}
    made |= {name: place[node.name] for node in nodes.layers for name in node.output if name}
    last: dict[str, int] = {}
    for node in nodes.layers:
        for name in nodes.reads[node.name]:
            last[name] = max(last.get(name, 0), place[node.name])
    asked = [each.name for each in model.graph.output]
    feed = values(fixed, settings)
    shaped = _shaped(nodes, made)
    crossing = [name for name, at in made.items() if last.get(name, 0) > at]
    whole = dict(feed)
    wanted = list(dict.fromkeys(name for name in [*asked, *(shaped & set(last)), *crossing] if name not in feed))
    whole |= zip(wanted, _run(fixed, feed, wanted), strict=True)
    for name in [*asked, *crossing]:
        if not isinstance(whole[name], np.ndarray) or whole[name].dtype.kind not in "biuf":
            raise InputError(f"{path}: expected tensors of numbers between stages and as outputs, found {name!r}")
    parts = []
    for p, _ in enumerate(stages):
        own = {name for name, at in made.items() if at == p and name not in feed}
        layers = [node for node in nodes.layers if place[node.name] == p]
        read = {name for node in layers for name in nodes.reads[node.name]}
        receives = [name for name in crossing if made[name] < p <= last[name]] if p else list(feed)
        sends = [name for name in crossing if made[name] <= p < last[name]]
        outputs = [name for name in asked if name in own]
        reads = [name for name in receives if name in read]
        makes = list(dict.fromkeys([name for name in sends if name in own] + outputs))
        part = _part(model, nodes, layers, reads, makes, {name: whole[name] for name in shaped & read}, whole)
        parts.append(Part(part, [node.name for node in layers], receives, reads, makes, sends, outputs))
    _check(parts, stages, micro_batch, whole, path)
    return parts, {name: whole[name] for name in dict.fromkeys([*feed, *crossing, *asked])}


def _places(order: Sequence[str], stages: Sequence[PlannedStage], path: Path) -> dict[str, int]:
    """Node to stage."""
    at = {name: k for k, name in enumerate(order)}
    place: dict[str, int] = {}
    for p, stage in enumerate(stages):
        for layer in stage.layers:
            first, between, last = layer.partition(BETWEEN)
            names = [layer] if layer in at else []
            if not names and between and at.get(first, len(at)) <= at.get(last, -1):
                names = list(order[at[first] : at[last] + 1])
            if not names or any(name in place for name in names):
                text = (
                    f"expected the layers of {path.name} (such as {order[0]!r}), each once, found {short(repr(layer))}"
                )
                raise InputError(f"--model {path}: {text}")
            place |= dict.fromkeys(names, p)
    missing = [name for name in order if name not in place]
    if missing:
        text = f"expected a plan for all {len(order)} layers, found none for {short(', '.join(missing))}"
        raise InputError(f"--model {path}: {text}")
    return place


def _shaped(nodes: Nodes, moved: Mapping[str, int]) -> set[str]:
    """Folded tensors that are made of the shapes of others than weights."""
    found: set[str] = set()
    for node in nodes.folded:
        if any(name in moved or name in found for name in reads_of(node)):
            found |= set(filter(None, node.output))
    return found


def _part(
    model: onnx.ModelProto,
    nodes: Nodes,
    layers: Sequence[onnx.NodeProto],
    reads: Sequence[str],
    makes: Sequence[str],
    numbers: Mapping[str, Any],
    whole: Tensors,
) -> onnx.ModelProto:
    """The model of some layers, with the weights and the folded nodes that they need; ``numbers`` become weights."""
    folded = {name: node for node in model.graph.node for name in node.output if name}
    known = {*reads, *numbers, *(name for node in layers for name in node.output)}
    kept = {node.name for node in layers}
    weights: set[str] = set()
    waiting = [name for node in layers for name in nodes.reads[node.name]]
    while waiting:
        name = waiting.pop()
        if name in known:
            continue
        known.add(name)
        if name not in folded:
            weights.add(name)
        elif folded[name].name not in kept:
            kept.add(folded[name].name)
            waiting += reads_of(folded[name])
    given = {each.name: each for each in model.graph.input}
    graph = helper.make_graph(
        [node for node in model.graph.node if node.name in kept],
        model.graph.name or "part",
        [given[name] if name in given else _told(name, whole[name]) for name in reads],
        [_told(name, whole[name]) for name in makes],
        [each for each in model.graph.initializer if each.name in weights]
        + [numpy_helper.from_array(np.asarray(value), name) for name, value in numbers.items()],
        sparse_initializer=[each for each in model.graph.sparse_initializer if each.values.name in weights],
    )
    part = helper.make_model(graph, opset_imports=model.opset_import, producer_name="mapgap")
    part.ir_version = max(4, model.ir_version)  # before it, every weight had to be an input
    return part


def _told(name: str, value: Any) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), [None] * value.ndim)


def _run(model: onnx.ModelProto, feed: Mapping[str, Any], wanted: Sequence[str]) -> list[Any]:
    """Some tensors of a model, without optimisation.

    Raises
    ------
    InputError
        ONNX Runtime refuses it, or it fails.
    """
    asked = onnx.ModelProto()
    asked.CopyFrom(model)
    present = {each.name for each in model.graph.output}
    asked.graph.output.extend(onnx.ValueInfoProto(name=name) for name in wanted if name not in present)
    options = ort.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    try:
        session = ort.InferenceSession(asked.SerializeToString(), options, providers=[CPU])
        found: list[Any] = session.run(list(wanted), dict(feed))
    except Exception as error:  # ONNX Runtime raises errors of its own that have no common base
        first = next(iter(str(error).strip().splitlines()), type(error).__name__)
        raise InputError(f"expected a model that ONNX Runtime can run, found: {first}") from error
    return found


def _check(parts: Sequence[Part], stages: Sequence[PlannedStage], batch: int, whole: Tensors, path: Path) -> None:
    """One part after the other computes what the whole does: the same bits, or of rows apart nearly the same numbers.

    Raises
    ------
    InputError
    """
    several = any(sum(share > 0 for _, share in stage.boards) > 1 for stage in stages)
    found: Tensors = {name: whole[name] for name in parts[0].receives}
    for part, stage in zip(parts, stages, strict=True):
        start, rows = 0, []
        for _, share in stage.boards if several else ():
            rows += [slice(start, start + share)] if share else []
            start += share
        names = [*part.reads, *part.makes]
        apart = [name for name in names if several and (whole[name].ndim == 0 or len(whole[name]) != batch)]
        if apart:
            text = "expected one board per stage (--set replication=false), since"
            raise InputError(f"{path}: {text} {apart[0]!r} has no micro-batch as its first dimension")
        feeds = [{name: found[name][row] for name in part.reads} for row in rows] or [found]
        made = [_run(part.model, {name: feed[name] for name in part.reads}, part.makes) for feed in feeds]
        for k, name in enumerate(part.makes):
            found[name] = np.concatenate([each[k] for each in made]) if several else made[0][k]
            same = found[name].shape == whole[name].shape and (
                np.allclose(found[name], whole[name], rtol=1e-3, atol=1e-5, equal_nan=True)
                if several
                else np.asarray(found[name]).tobytes() == whole[name].tobytes()
            )
            if not same:
                raise InputError(f"{path}: expected the parts to make what the whole makes, found another {name!r}")
