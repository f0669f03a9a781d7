"""nnScaler's operator profiles: one JSON file per operator, with times and memory for every shape that was measured.

The files hold operators, not a model. Which of them follow each other is told by a text file beside them: one line per
layer, the operator (the file's name without ``.json``) and the shapes of its tensors, as the key of the entry begins:

    torch.nn.functional.linear (2, 128, 512)-(512, 512)-(2, 128, 512)

The first number of the first shape is the batch. ``fw_span`` and ``bw_span`` are milliseconds. Lists of transfers
(``comm_intra_2.json``) give the rate of the links.

Source: Lin et al., "nnScaler: Constraint-Guided Parallelization Plan Generation for Deep Learning Training", OSDI 2024;
``nnscaler/profiler/database.py``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

from mapgap.core import Finding, InputError, suggest
from mapgap.core.workload import Settings
from mapgap.importing.graph import Kind, Layer, LayerGraph, Time, Total, origin
from mapgap.importing.source import Source, Value

NAME, TITLE = "nnscaler", "nnScaler operator profiles"
KIND = "profiled"
_LINE = re.compile(r"([\w.]+)\s+(\(.*\))\s*")
_SHAPE = re.compile(r"\(([\d, ]*)\)")
_BYTES = {"float32": 4, "float16": 2, "bfloat16": 2, "float64": 8, "int64": 8, "int32": 4, "int8": 1, "bool": 1}


def looks_like(source: Source) -> bool:
    """A profile with ``fw_span``, a list of transfers, a folder of profiles, or the list of layers."""
    if source.path.is_dir():
        return any(True for _ in source.path.glob("*.json"))
    return _is_profile(source.json) or _is_transfers(source.json) or _is_sequence(source)


def _is_profile(data: Any) -> bool:
    first = next(iter(data.values()), None) if isinstance(data, dict) else None
    return isinstance(first, dict) and "fw_span" in first


def _is_transfers(data: Any) -> bool:
    return isinstance(data, dict) and "all reduce" in data


def _is_sequence(source: Source) -> bool:
    lines = [line for line in (source.text or "").splitlines() if line.strip()]
    return source.json is None and bool(lines) and all(_LINE.fullmatch(line) for line in lines)


def read(sources: Sequence[Source], settings: Settings) -> LayerGraph:
    """A chain of profiled operators.

    Raises
    ------
    InputError
    """
    opened = [Source.open(path) for s in sources if s.path.is_dir() for path in sorted(s.path.glob("*.json"))]
    opened += [source for source in sources if not source.path.is_dir()]
    profiles = {source.path.stem: source for source in opened if _is_profile(source.json)}
    listed = [source for source in opened if _is_sequence(source)]
    if not profiles or len(listed) != 1:
        text = "expected operator profiles and one list of layers, 'operator (shape)-(shape)' a line"
        found = f"{len(profiles)} profiles and {len(listed)} lists"
        raise InputError(Finding(f"{text}; found {found}", place=str(sources[0].path)))
    sequence = listed[0]
    graph = LayerGraph(sequence.path.stem, training=True)
    times = graph.times.setdefault(KIND, {})
    before: list[str] = []
    weights, spent = 0, dict[int, float]()
    for number, line in enumerate((sequence.text or "").splitlines(), 1):
        match = _LINE.fullmatch(line)
        if match is None:
            continue
        place = f"{sequence.path}:{number}"
        batch, layer, time = _entry(profiles, match[1], match[2], place)
        weights += layer.weight_bytes
        spent[batch] = spent.get(batch, 0.0) + time.forward
        name = f"{match[1].rpartition('.')[2]}{len(graph.graph) + 1}"
        graph.add(name, layer, before)
        times[name] = {batch: time}
        before = [name]
    graph.totals = [Total("weights", weights), *(Total("kernels", ns, {}, KIND, batch) for batch, ns in spent.items())]
    sizes = {batch for table in times.values() for batch in table}
    what = f"which of them follow each other, {len(graph.graph)} layers at batch {', '.join(map(str, sorted(sizes)))}"
    assumed = ["each layer reads the one before it", "the first number of the first shape is the batch"]
    graph.origins += [origin(sequence, NAME, what, assumed)]
    graph.origins += [origin(source, NAME, "times and memory") for source in profiles.values()]
    for source in opened:
        if _is_transfers(source.json):
            graph.kinds[KIND] = Kind(None, (), _rate(source.root))
            graph.origins.append(
                origin(source, NAME, "the rate of an all-reduce of the largest size between two devices")
            )
    return graph


def _entry(profiles: dict[str, Source], operator: str, shapes: str, place: str) -> tuple[int, Layer, Time]:
    """Batch, layer and time of one line."""
    if operator not in profiles:
        text = f"expected one of {', '.join(profiles)}; found {operator}{suggest(operator, profiles)}"
        raise InputError(Finding(text, place=place))
    entries = dict(profiles[operator].root.fields())
    wanted = shapes.replace(" ", "")
    keys = [key for key in entries if key.partition(" : ")[0].replace(" ", "") == wanted]
    if not keys:
        known = sorted(key.partition(" : ")[0] for key in entries)
        text = f"expected shapes that were profiled for {operator}, found {shapes}{suggest(shapes, known)}"
        raise InputError(Finding(text, place=place))
    value = entries[keys[-1]]  # of several, the one with gradients
    found = [tuple(int(n) for n in text.replace(" ", "").split(",") if n) for text in _SHAPE.findall(keys[-1])]
    batch = found[0][0] if found and found[0] else 1
    types = keys[-1].split(" : ")
    width = next((size for word, size in _BYTES.items() if word in (types[1] if len(types) > 1 else "")), 4)
    if batch < 1 or any(len(str(n)) > 12 for shape in found for n in shape):
        raise InputError(Finding(f"expected shapes of at least one sample, found {shapes}", place=place))
    output = math.ceil(math.prod(found[-1]) * width / batch)
    weights = sum(size.whole() for size in value["param_mem_info"].items())
    stored = sum(size.whole() for size in value["train_mem_info"].items())
    time = Time(value["fw_span"].number() * 1e6, value["bw_span"].number() * 1e6)
    return batch, Layer(operator, output, weights, None, math.ceil(stored / batch)), time


def _rate(root: Value) -> float:
    """Bytes per second of the largest all-reduce: MB over seconds."""
    pairs = root["all reduce"].items()
    if len(pairs) != 2 or not pairs[0].items() or len(pairs[0].items()) != len(pairs[1].items()):
        root["all reduce"].wrong("two lists of equal length, sizes in MB and seconds")
    size, seconds = pairs[0].items()[-1].number(), pairs[1].items()[-1].number()
    if size <= 0 or seconds <= 0:
        root["all reduce"].wrong("sizes and times above 0")
    return size * 1e6 / seconds
