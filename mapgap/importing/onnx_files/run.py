"""An ONNX model in a session of ONNX Runtime: shapes of tensors, times of nodes, and what ran inside Loop, If and Scan.

The model runs on values made here: numbers drawn evenly from 0 to 1, integers and truth values of 1, or what a setting
named like the input says (``--set sr=16000``).
"""

from __future__ import annotations

import json
import math
import tempfile
import threading
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort

from mapgap.core import InputError
from mapgap.core.workload import Settings
from mapgap.importing.formats.ort_profile import SUFFIX, inner

LEVELS = {
    "none": ort.GraphOptimizationLevel.ORT_DISABLE_ALL,
    "basic": ort.GraphOptimizationLevel.ORT_ENABLE_BASIC,
}
CPU = "CPUExecutionProvider"
MOST_BYTES = 2**32
"""Of the inputs of a run."""
LONGEST = 120.0
"""Seconds of a run."""
Feed = dict[str, Any]


@dataclass(frozen=True)
class Step:
    """One node in one run.

    Attributes
    ----------
    name, operation : str
    nanoseconds : float
    inputs, outputs : tuple of tuples of int
        Shapes of those that are tensors.
    inside : tuple of Step
        What ran in the graphs of a Loop, If or Scan, in all turns.
    """

    name: str
    operation: str
    nanoseconds: float
    inputs: tuple[tuple[int, ...], ...] = ()
    outputs: tuple[tuple[int, ...], ...] = ()
    inside: tuple[Step, ...] = ()


@dataclass
class Run:
    """What a session did.

    Attributes
    ----------
    steps : dict
        Node to its steps, one per run, in the order of the first run. Nodes inside others stand in these.
    sizes : dict
        Tensor that was asked for to its shape and bytes; of a sequence the bytes of its parts, and no shape.
    wall : list of float
        Nanoseconds of every run on the clock of the wall.
    """

    steps: dict[str, list[Step]] = field(default_factory=dict)
    sizes: dict[str, tuple[tuple[int, ...], int]] = field(default_factory=dict)
    wall: list[float] = field(default_factory=list)


def values(model: onnx.ModelProto, settings: Settings) -> Feed:
    """Values for every input of a model whose dimensions are all fixed.

    Raises
    ------
    InputError
        An input is no tensor, or all of them take more than 4 GiB.
    """
    drawn = np.random.default_rng(0)
    constants = {each.name for each in model.graph.initializer}
    found: Feed = {}
    total = 0.0
    for value in model.graph.input:
        if value.name in constants:
            continue
        if not value.type.HasField("tensor_type"):
            kind = value.type.WhichOneof("value")
            raise InputError(f"input {value.name}: expected a tensor, found {str(kind).removesuffix('_type')}")
        tensor = value.type.tensor_type
        shape = [each.dim_value for each in tensor.shape.dim]
        if tensor.elem_type == onnx.TensorProto.STRING:
            found[value.name] = np.full(shape, "a", dtype=object)
            continue
        kind = onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type)
        total += math.prod(map(float, shape)) * kind.itemsize
        if total > MOST_BYTES:
            raise InputError(f"input {value.name}: expected inputs of at most 4 GiB, found {value.name} of {shape}")
        if np.issubdtype(kind, np.floating) or kind.kind == "V":
            found[value.name] = drawn.random(shape).astype(kind)
        else:
            given = settings.whole(value.name, f"value of the input {value.name!r}", 1)
            found[value.name] = np.full(shape, given).astype(kind)
    return found


def run(
    model: onnx.ModelProto,
    feed: Mapping[str, Any],
    *,
    runs: int = 1,
    wanted: Collection[str] | None = None,
    threads: int = 1,
    provider: str = CPU,
    level: str = "none",
    profile: bool = True,
) -> Run:
    """Run a model.

    Parameters
    ----------
    wanted : collection of str, optional
        Tensors whose sizes are asked for; then the steps have the shapes of all inputs, and times are worth nothing.
    level : str
        Graph optimisation, ``none`` or ``basic``: ``none`` keeps every node and its name.

    Raises
    ------
    InputError
        ONNX Runtime refuses the model, or it fails.
    """
    asked = onnx.ModelProto()
    asked.CopyFrom(model)
    present = {each.name for each in model.graph.output}
    asked.graph.output.extend(onnx.ValueInfoProto(name=name) for name in wanted or () if name not in present)
    found = Run()
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.graph_optimization_level = LEVELS[level]
    options.log_severity_level = 4
    if wanted is not None:  # the profile tells no shapes of weights that are laid out anew
        options.add_session_config_entry("session.disable_prepacking", "1")
    with tempfile.TemporaryDirectory() as folder:
        options.enable_profiling = profile
        options.profile_file_prefix = str(Path(folder) / "profile")
        try:
            session = ort.InferenceSession(asked.SerializeToString(), options, providers=[provider])
            names = [each.name for each in session.get_outputs()]
            for _ in range(runs):
                results, spent = _once(session, feed)
                found.wall.append(spent)
            events = json.loads(Path(session.end_profiling()).read_text(encoding="utf-8")) if profile else []
        except Exception as error:  # ONNX Runtime raises errors of its own that have no common base
            first = next(iter(str(error).strip().splitlines()), type(error).__name__)
            if "terminate flag" in first:
                raise InputError(f"expected a run of at most {LONGEST:g} seconds, found one without an end") from error
            raise InputError(f"expected a model that ONNX Runtime can run, found: {first}") from error
    found.sizes = {name: _size(each) for name, each in zip(names, results, strict=True) if name in (wanted or ())}
    for step in steps(events, {node.name for node in model.graph.node}):
        found.steps.setdefault(step.name, []).append(step)
    return found


def _once(session: Any, feed: Mapping[str, Any]) -> tuple[list[Any], float]:
    """One run and its nanoseconds; ended after :data:`LONGEST` seconds, since a Loop may turn for ever."""
    options = ort.RunOptions()
    watch = threading.Timer(LONGEST, setattr, (options, "terminate", True))
    watch.daemon = True
    watch.start()
    start = time.perf_counter_ns()
    try:
        results = session.run(None, dict(feed), options)
    finally:
        watch.cancel()
    return results, float(time.perf_counter_ns() - start)


def steps(events: Sequence[dict[str, Any]], outer: Collection[str]) -> list[Step]:
    """The nodes that a profile's events tell of, in the order in which they ran; ``outer``: they stand in no other."""
    kernels = [each for each in events if each.get("cat") == "Node" and str(each.get("name")).endswith(SUFFIX)]
    return [_step(kernels[k], [kernels[j] for j in parts]) for k, parts in inner(kernels, outer).items()]


def _step(event: dict[str, Any], inside: Sequence[dict[str, Any]] = ()) -> Step:
    arguments = event.get("args", {})
    inputs, outputs = (
        tuple(tuple(dims) for each in arguments.get(side, ()) for dims in each.values())
        for side in ("input_type_shape", "output_type_shape")
    )
    name, operation = event["name"].removesuffix(SUFFIX), arguments.get("op_name", "")
    return Step(name, operation, 1e3 * event["dur"], inputs, outputs, tuple(map(_step, inside)))


def _size(result: Any) -> tuple[tuple[int, ...], int]:
    if isinstance(result, np.ndarray):
        return result.shape, int(result.nbytes)
    parts = result if isinstance(result, list) else []
    return (), sum(int(part.nbytes) for part in parts if isinstance(part, np.ndarray))
