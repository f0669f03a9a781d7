"""Times of an ONNX model's operators on the machine at hand, by ONNX Runtime's own profiler.

For every number of threads and every batch size the model runs in a session of its own: first some runs to warm up,
whose events are left out, then the repetitions. Per operator the median counts; the quartiles are its spread. Graph
optimisations of the level ``basic`` keep the names of operators; what they fuse takes no time of its own.
"""

from __future__ import annotations

import json
import platform
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median, quantiles
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort

from mapgap.core import InputError
from mapgap.core.workload import Settings
from mapgap.importing.formats import onnx_model, ort_profile
from mapgap.importing.graph import LayerGraph, Time
from mapgap.importing.source import Source

LEVELS = {
    "none": ort.GraphOptimizationLevel.ORT_DISABLE_ALL,
    "basic": ort.GraphOptimizationLevel.ORT_ENABLE_BASIC,
}
Tell = Callable[[str], None]


def measure(
    path: Path,
    batches: Sequence[int],
    threads: Sequence[int],
    *,
    repetitions: int,
    warm_up: int,
    provider: str,
    level: str,
    settings: Settings,
    tell: Tell,
) -> tuple[LayerGraph, dict[str, Any], str]:
    """The graph of a model with times per number of threads and batch size; the machine; what was done.

    Raises
    ------
    InputError
        The provider is not installed, the model cannot be run, or it fixes another batch.
    """
    if provider not in ort.get_available_providers():
        known = ", ".join(ort.get_available_providers())
        raise InputError(f"--provider: expected one of {known}; found {provider!r}")
    source = Source.open(path)
    graph: LayerGraph = onnx_model.read([source], settings)
    for count in threads:
        kind = f"threads{count}"
        for batch in batches:
            tell(f"{path.name}: {count} thread(s), batch {batch}")
            model = onnx_model.named(onnx_model.load(source))
            fixed = onnx_model.fix_dimensions(model, settings, batch)
            if fixed != batch:
                raise InputError(
                    f"--batch {batch}: {path.name} is fixed to a batch of {fixed}; expected --batch {fixed}"
                )
            spent = _run(model, count, repetitions, warm_up, provider, level, path.name)
            for name in graph.graph:
                graph.times.setdefault(kind, {}).setdefault(name, {})[batch] = _time(spent.get(name))
    machine = {
        "processor": _processor(),
        "system": platform.platform(),
        "onnxruntime": ort.__version__,
        "onnx": onnx.__version__,
        "provider": provider,
    }
    note = (
        f"{path.name} (sha256 {source.sha256[:16]}) by ONNX Runtime {ort.__version__} on {machine['processor']}: "
        f"{repetitions} runs after {warm_up} to warm up, medians of every operator, optimisation {level}"
    )
    return graph, machine, note


def _run(
    model: onnx.ModelProto, threads: int, repetitions: int, warm_up: int, provider: str, level: str, name: str
) -> dict[str, list[float]]:
    """Nanoseconds of every operator in every repetition."""
    with tempfile.TemporaryDirectory() as folder:
        options = ort.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        options.graph_optimization_level = LEVELS[level]
        options.enable_profiling = True
        options.profile_file_prefix = str(Path(folder) / "profile")
        options.log_severity_level = 3
        try:
            session = ort.InferenceSession(model.SerializeToString(), options, providers=[provider])
            feed = {each.name: _values(each) for each in session.get_inputs()}
            for _ in range(warm_up + repetitions):
                session.run(None, feed)
            events = json.loads(Path(session.end_profiling()).read_text())
        except Exception as error:  # ONNX Runtime raises errors of its own that have no common base
            first = next(iter(str(error).strip().splitlines()), type(error).__name__)
            raise InputError(f"{name}: expected a model that ONNX Runtime can run, found: {first}") from error
    found: dict[str, list[float]] = {}
    for event in events:
        if event.get("cat") == "Node" and event["name"].endswith(ort_profile.SUFFIX):
            found.setdefault(event["name"].removesuffix(ort_profile.SUFFIX), []).append(1e3 * event["dur"])
    return {key: times[-repetitions:] for key, times in found.items()}


def _values(tensor: Any) -> Any:
    """Zeros of an input's shape and type."""
    kinds: dict[str, Any] = {"tensor(float)": np.float32, "tensor(double)": np.float64, "tensor(float16)": np.float16}
    kinds |= {"tensor(int64)": np.int64, "tensor(int32)": np.int32, "tensor(bool)": np.bool_, "tensor(uint8)": np.uint8}
    if tensor.type not in kinds:
        raise InputError(f"input {tensor.name}: expected one of {', '.join(kinds)}; found {tensor.type}")
    return np.zeros([int(size) for size in tensor.shape], kinds[tensor.type])


def _time(spent: list[float] | None) -> Time:
    """Median and quartiles."""
    if not spent:
        return Time(0.0)
    low, _, high = quantiles(spent, n=4, method="inclusive") if len(spent) > 1 else (spent[0],) * 3
    return Time(float(median(spent)), None, low, high)


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or "unknown processor"
