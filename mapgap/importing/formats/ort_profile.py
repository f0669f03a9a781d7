"""ONNX Runtime's profile (``SessionOptions.enable_profiling``): a list of events in Chrome's tracing format.

Events of category ``Node`` named ``<node>_kernel_time`` hold microseconds, shapes and bytes. Of several runs the first
one warms up and is left out; of the others the median counts. The file does not say who reads whose output: read alone
it is a chain in the order of execution; as the profile of a model its times are matched by the nodes' names.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from statistics import median, quantiles
from typing import Any

from mapgap.core import Finding, InputError
from mapgap.core.workload import Settings
from mapgap.importing.graph import Layer, LayerGraph, Time, Total, origin
from mapgap.importing.source import Source, Value

NAME, TITLE = "ort_profile", "ONNX Runtime profile"
KIND = "profiled"
SUFFIX = "_kernel_time"
CONTROL = ("If", "Loop", "Scan")
"""Operators with graphs inside, whose nodes have events of their own."""


def looks_like(source: Source) -> bool:
    """A list of events with ``cat``, ``ph`` and ``dur``."""
    data = source.json
    return isinstance(data, list) and any(
        isinstance(each, dict) and {"cat", "ph", "dur"} <= set(each) for each in data[:50]
    )


def read(sources: Sequence[Source], settings: Settings) -> LayerGraph:
    """A chain of the nodes in the order in which they ran.

    Raises
    ------
    InputError
    """
    source = sources[0]
    kernels = [
        event
        for event in source.root.items()
        if event.has("cat") and event.data["cat"] == "Node" and event["name"].text().endswith(SUFFIX)
    ]
    events: dict[str, list[Value]] = {}
    for k in inner([event.mapping() for event in kernels]):
        events.setdefault(kernels[k]["name"].text().removesuffix(SUFFIX), []).append(kernels[k])
    if not events:
        text = f"expected events of category 'Node' named …{SUFFIX}, found none"
        raise InputError(Finding(text, place=str(source.path)))
    first = next(iter(events.values()))[0].called(next(iter(events)))
    batch = settings.whole("batch", "samples of a run", _first_dimension(first), least=1)
    graph = LayerGraph(source.path.stem)
    times = graph.times.setdefault(KIND, {})
    before: list[str] = []
    runs = min(map(len, events.values()))
    for name, found in events.items():
        spent = [event["dur"].number() * 1e3 for event in found]
        spent = spent[1:] if len(spent) > 1 else spent
        arguments = found[0].called(name)["args"]
        sizes = [arguments[field].whole() if arguments.has(field) else 0 for field in ("output_size", "parameter_size")]
        operation = arguments["op_name"].text() if arguments.has("op_name") else "operator"
        graph.add(name, Layer(operation, math.ceil(sizes[0] / batch), sizes[1]), before)
        low, _, high = quantiles(spent, n=4, method="inclusive") if len(spent) > 1 else (None,) * 3
        times[name] = {batch: Time(median(spent), None, low, high)}
        before = [name]
    arguments = first["args"]
    graph.input_bytes = math.ceil(
        (arguments["activation_size"].whole() if arguments.has("activation_size") else 0) / batch
    )
    what = f"{len(events)} operators, median of {max(1, runs - 1)} run(s) at batch {batch}"
    assumed = ["each operator reads the one that ran before it", "the first dimension of the first input is the batch"]
    whole = [
        event["dur"].number() * 1e3
        for event in source.root.items()
        if event.has("name") and event.data["name"] == "model_run" and event.has("dur")
    ]
    if whole:
        graph.totals.append(Total("run", median(whole[1:] or whole), {}, KIND, batch))
    graph.origins.append(origin(source, NAME, what, assumed))
    return graph


def inner(kernels: Sequence[Mapping[str, Any]], outer: Collection[str] = ()) -> dict[int, list[int]]:
    """The events of a profile that stand in no other, in the order of time, each with those that ran inside it.

    A Loop, If or Scan is one event that lasts as long as the nodes of its graphs, whose events stand before it in the
    file; nodes of names in ``outer`` are known to stand in no other. Where an event does not say when it began, nothing
    is taken to be inside another.
    """
    times = [
        (float(each["ts"]), float(each["dur"]))
        for each in kernels
        if isinstance(each.get("ts"), (int, float)) and isinstance(each.get("dur"), (int, float))
    ]
    if len(times) < len(kernels):
        return {k: [] for k in range(len(kernels))}
    found: dict[int, list[int]] = {}
    owner, end = -1, -math.inf
    arguments = [each.get("args") for each in kernels]
    control = [isinstance(each, dict) and each.get("op_name") in CONTROL for each in arguments]
    for k in sorted(range(len(kernels)), key=lambda k: (times[k][0], not control[k], k)):
        start, length = times[k]
        if k < owner and start + length <= end and str(kernels[k].get("name")).removesuffix(SUFFIX) not in outer:
            found[owner].append(k)
            continue
        found[k] = []
        if control[k]:
            owner, end = k, start + length
    return found


def _first_dimension(event: Value) -> int:
    """The first number of the first input's shape; 1 without one."""
    arguments = event["args"]
    shapes = arguments["input_type_shape"].items() if arguments.has("input_type_shape") else []
    for shape in shapes:
        for _, dimensions in shape.fields():
            for number in dimensions.items()[:1]:
                return number.whole(least=1, most=1_000_000)
    return 1
