"""PipeEdge's scheduler files: ``models.yml``, ``device_types.yml`` and ``devices.yml``, in any order.

Times are seconds of a whole micro-batch, memory is in 10^6 bytes, links in 10^6 bits per second, outputs are counted in
values. Of several models the setting ``model`` names one. Only the forward pass was profiled.

Source: Hu et al., "PipeEdge: Pipeline Parallelism for Large-Scale Model Inference on Heterogeneous Edge Devices",
DSD 2022; ``README_Scheduler.md``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from mapgap.core import Finding, InputError
from mapgap.core.workload import Settings
from mapgap.importing.graph import Kind, Layer, LayerGraph, Time, Total, origin
from mapgap.importing.source import Source, Value

NAME, TITLE = "pipeedge", "PipeEdge models.yml, device_types.yml, devices.yml"
BYTES = {"torch.float32": 4, "torch.float16": 2, "torch.bfloat16": 2, "torch.int8": 1, "torch.float64": 8}
ROLES = {"models": "models.yml", "types": "device_types.yml", "devices": "devices.yml"}


def looks_like(source: Source) -> bool:
    """One of the three files: models have layers, types profiles, and devices are lists of names."""
    return source.json is None and _role(source) is not None


def _role(source: Source) -> str | None:
    data = source.yaml
    if not isinstance(data, dict) or not data:
        return None
    values = list(data.values())
    if any(isinstance(value, dict) and {"layers", "parameters_out"} <= set(value) for value in values):
        return "models"
    if any(isinstance(value, dict) and "model_profiles" in value for value in values):
        return "types"
    if all(isinstance(value, list) and all(isinstance(name, str) for name in value) for value in values):
        return "devices"
    return None


def read(sources: Sequence[Source], settings: Settings) -> LayerGraph:
    """The graph that the three files make together.

    Raises
    ------
    InputError
        One of them is missing or does not fit the others.
    """
    roles = {_role(source): source for source in sources}
    missing = [name for role, name in ROLES.items() if role not in roles]
    if missing:
        found = ", ".join(source.path.name for source in sources)
        raise InputError(f"PipeEdge: expected models.yml, device_types.yml and devices.yml, found only {found}")
    graph, values = _model(roles["models"].root, settings)
    width = _types(roles["types"].root, graph, settings)
    same = _devices(roles["devices"].root, graph)
    for name, size in zip(graph.graph, values, strict=True):
        layer = graph.layer(name)
        graph.graph.nodes[name]["layer"] = Layer(layer.operation, size * width, layer.weight_bytes, None, 0)
    graph.input_bytes *= width
    batch = next(iter(next(iter(next(iter(graph.times.values())).values()))))
    assumed = [
        f"a value has {width} bytes",
        "the memory of a layer is its weights, none of it depends on the batch",
        *same,
        "between two boards the slower of their links counts",
    ]
    for role, what in (
        ("models", f"memory and outputs of {len(graph.graph)} layers"),
        ("types", f"times at batch {batch}, memory and links of {', '.join(graph.times)}"),
        ("devices", f"{sum(len(kind.names) for kind in graph.kinds.values())} boards"),
    ):
        graph.origins.append(origin(roles[role], NAME, what, assumed if role == "models" else ()))
    return graph


def _model(root: Value, settings: Settings) -> tuple[LayerGraph, list[int]]:
    """Layers with their memory; the values that each puts out."""
    models = {name: value for name, value in root.fields() if value["layers"].whole(most=100_000)}
    if not models:
        root.wrong("a model with layers")
    chosen = settings.text("model", f"one of {', '.join(models)}", next(iter(models)) if len(models) == 1 else None)
    settings.check()
    if chosen not in models:
        raise InputError(f"--set model={chosen}: expected one of {', '.join(models)}")
    model = models[chosen]
    count = model["layers"].whole(most=100_000)
    memory, outputs = model["mem_MB"].items(), model["parameters_out"].items()
    for field, listed in (("mem_MB", memory), ("parameters_out", outputs)):
        if len(listed) != count:
            model[field].wrong(f"{count} entries, one per layer")
    graph = LayerGraph(chosen.rpartition("/")[2], input_bytes=model["parameters_in"].whole(), training=False)
    for k, size in enumerate(memory, 1):
        layer = Layer("layer", 0, math.ceil(size.number() * 1e6), None, 0)
        graph.add(f"layer{k}", layer, [f"layer{k - 1}"] if k > 1 else [])
    graph.totals.append(Total("weights", 1e6 * math.fsum(size.number() for size in memory)))
    graph.graph.graph["model"] = chosen
    return graph, [value.whole() for value in outputs]


def _types(root: Value, graph: LayerGraph, settings: Settings) -> int:
    """Times, memory and link of every type that has a profile of the model; bytes of a value."""
    model, names = graph.graph.graph["model"], list(graph.graph)
    widths = set()
    for kind, value in root.fields():
        profiles = value["model_profiles"]
        if profiles.data is None or model not in profiles.mapping():
            continue
        for profile in profiles[model].items():
            batch = profile["batch_size"].whole(least=1, most=100_000)
            dtype = profile["dtype"].text()
            if dtype not in BYTES:
                profile["dtype"].wrong(f"one of {', '.join(BYTES)}")
            widths.add(BYTES[dtype])
            seconds = profile["time_s"].items()
            if len(seconds) != len(names):
                profile["time_s"].wrong(f"{len(names)} entries, one per layer")
            times = graph.times.setdefault(kind, {})
            for name, time in zip(names, seconds, strict=True):
                times.setdefault(name, {})[batch] = Time(time.number() * 1e9)
            spent = 1e9 * math.fsum(time.number() for time in seconds)
            graph.totals.append(Total("kernels", spent, {}, kind, batch))
        rate = value["bw_Mbps"].number() * 1e6 / 8
        graph.kinds[kind] = Kind(int(value["mem_MB"].number() * 1e6), (), rate)
    if not graph.times:
        raise InputError(Finding(f"expected a profile of {model} on some device type, found none", place=root.file))
    if len(widths) > 1:
        raise InputError(Finding(f"{model}: expected profiles of one dtype, found several", place=root.file))
    return widths.pop()


def _devices(root: Value, graph: LayerGraph) -> list[str]:
    """Names of the boards of every type; what was assumed.

    Where one type is listed that has no profile and one has a profile that is not listed, they are taken for the same
    (the files of PipeEdge's own page are such a case).
    """
    listed = {kind: value for kind, value in root.fields() if value.items()}
    strange = [kind for kind in listed if kind not in graph.kinds or kind not in graph.times]
    idle = [kind for kind in graph.times if kind not in listed]
    same = dict(zip(strange, idle, strict=True)) if len(strange) == len(idle) == 1 else {}
    for kind, value in listed.items():
        names = tuple(name.text() for name in value.items())
        kind = same.get(kind, kind)
        if kind not in graph.times:
            value.wrong(f"boards of a type with a profile ({', '.join(graph.times)})")
        graph.kinds[kind] = replace(graph.kinds[kind], names=names)
    return [f"{first} of {Path(root.file).name} is {second}, which has a profile" for first, second in same.items()]
