"""TensorRT: ``trtexec --exportProfile`` (times per layer) and ``--exportLayerInfo`` (layers, tensors, weights).

The profile is a list: ``{"count": runs}``, then ``{"name", "timeMs", "averageMs", "percentage"}`` per layer; the mean
counts, the median where it is there. The layer information has ``Layers`` with ``Inputs`` and ``Outputs`` if the engine
was built with ``--profilingVerbosity=detailed``; else names only, which then are a chain. Both files together are one
graph with times.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from mapgap.core import Finding, InputError
from mapgap.core.workload import Settings
from mapgap.importing.graph import Layer, LayerGraph, Time, Total, origin
from mapgap.importing.source import Source, Value

NAME, TITLE = "tensorrt", "TensorRT --exportProfile and --exportLayerInfo"
KIND = "profiled"
WIDTHS = (("int8", 1), ("fp8", 1), ("half", 2), ("fp16", 2), ("bf16", 2), ("bfloat16", 2), ("int64", 8))


def looks_like(source: Source) -> bool:
    """``Layers`` in a mapping, or a list of times with names."""
    return _is_information(source) or _is_profile(source)


def _is_information(source: Source) -> bool:
    return isinstance(source.json, dict) and "Layers" in source.json


def _is_profile(source: Source) -> bool:
    data = source.json
    entries = [each for each in data if isinstance(each, dict)] if isinstance(data, list) else []
    return any("averageMs" in each or "timeMs" in each for each in entries)


def read(sources: Sequence[Source], settings: Settings) -> LayerGraph:
    """Layers from the layer information, times from the profile, whichever are there.

    Raises
    ------
    InputError
    """
    information = next((source for source in sources if _is_information(source)), None)
    profile = next((source for source in sources if _is_profile(source)), None)
    graph = LayerGraph((information or profile or sources[0]).path.stem, training=False)
    batch = _layers(information, graph, settings) if information else None
    if profile is not None:
        if batch is None:
            batch = settings.whole("batch", "samples of a run", 1, least=1)
        _times(profile, graph, batch, alone=information is None)
    return graph


def _layers(source: Source, graph: LayerGraph, settings: Settings) -> int:
    """Layers of the layer information; the batch."""
    entries = source.root["Layers"].items()
    if not entries:
        source.root["Layers"].wrong("at least one layer")
    if isinstance(entries[0].data, str):
        for k, entry in enumerate(entries):
            graph.add(entry.text(), Layer("layer"), [entries[k - 1].text()] if k else [])
        assumed = ["each layer reads the one before it; sizes are 0, the engine was built without detailed verbosity"]
        graph.origins.append(origin(source, NAME, f"names of {len(entries)} layers", assumed))
        return settings.whole("batch", "samples of a run", 1, least=1)
    writer: dict[str, str] = {}
    first = next((each for each in entries if _tensors(each, "Inputs")), entries[0])
    batch = settings.whole("batch", "samples of a run", _batch(_tensors(first, "Inputs")), least=1)
    for entry in entries:
        name = entry["Name"].text()
        if name in graph.graph:
            entry["Name"].wrong("a name that no other layer has")
        entry = entry.called(name)
        output = sum(_size(tensor) for tensor in _tensors(entry, "Outputs"))
        operation = str(entry.data.get("ParameterType") or entry.data.get("LayerType") or "layer")
        weights = sum(_weights(entry[field]) for field in ("Weights", "Bias") if entry.has(field))
        reads = [tensor["Name"].text() for tensor in _tensors(entry, "Inputs")]
        owners = dict.fromkeys(writer[tensor] for tensor in reads if tensor in writer)
        graph.add(name, Layer(operation, math.ceil(output / batch), weights), owners)
        if any(tensor not in writer for tensor in reads):
            graph.readers.add(name)
        writer |= {tensor["Name"].text(): name for tensor in _tensors(entry, "Outputs")}
    held = [entry[field] for entry in entries for field in ("Weights", "Bias") if entry.has(field)]
    graph.totals.append(Total("weights", sum(map(_weights, held))))
    graph.input_bytes = math.ceil(sum(_size(tensor) for tensor in _tensors(first, "Inputs")) / batch)
    what = f"{len(graph.graph)} layers, their tensors and weights at batch {batch}"
    graph.origins.append(origin(source, NAME, what, ["the first dimension of the first input is the batch"]))
    return batch


def _tensors(entry: Value, field: str) -> list[Value]:
    return entry[field].items() if entry.has(field) else []


def _batch(tensors: list[Value]) -> int:
    dimensions = tensors[0]["Dimensions"].items() if tensors and tensors[0].has("Dimensions") else []
    return dimensions[0].whole(least=1, most=1_000_000) if dimensions and dimensions[0].data != -1 else 1


def _size(tensor: Value) -> int:
    """Bytes of a tensor; dimensions that are open count as 1."""
    sizes = [1 if each.data == -1 else each.whole(most=1e9) for each in tensor["Dimensions"].items()]
    size = math.prod(sizes) * _width(str(tensor.data.get("Format/Datatype", "")))
    if size > 1e15:
        tensor["Dimensions"].wrong("a tensor of at most 10^15 bytes")
    return size


def _width(text: str) -> int:
    return next((size for word, size in WIDTHS if word in text.lower()), 4)


def _weights(value: Value) -> int:
    return value["Count"].whole() * _width(str(value.data.get("Type", "")))


def _times(source: Source, graph: LayerGraph, batch: int, *, alone: bool) -> None:
    entries = [entry for entry in source.root.items() if entry.has("name")]
    if not entries:
        raise InputError(Finding("expected layers with a name and a time, found none", place=str(source.path)))
    times = graph.times.setdefault(KIND, {})
    before: list[str] = []
    for entry in entries:
        name = entry["name"].text()
        field = next((key for key in ("medianMs", "averageMs") if entry.has(key)), "averageMs")
        spent = entry.called(name)[field].number() * 1e6
        if alone and name in graph.graph:
            entry["name"].wrong("a name that no other layer has")
        if alone:
            graph.add(name, Layer("layer"), before)
            before = [name]
        times[name] = {batch: Time(spent)}
    unknown = [name for name in times if name not in graph.graph]
    if unknown:
        text = f"expected layers of the layer information, found {unknown[0]!r} ({len(unknown)} such)"
        raise InputError(Finding(text, place=str(source.path)))
    for name in graph.graph:
        times.setdefault(name, {batch: Time(0.0)})
    medians = [entry.data.get("medianMs", entry.data.get("averageMs")) for entry in entries]
    graph.totals.append(Total("kernels", 1e6 * math.fsum(map(float, medians)), {}, KIND, batch))
    assumed = ["layers without an entry take no time"]
    if alone:
        assumed.append("each layer reads the one before it; sizes are 0 (--exportLayerInfo knows them)")
    graph.origins.append(origin(source, NAME, f"mean times of {len(entries)} layers at batch {batch}", assumed))
