"""PipeDream's ``graph.txt``: one layer a line with times and sizes of a whole mini-batch, then the edges.

    node11 -- Conv2d(64, 128, …) -- forward_compute_time=5.1, backward_compute_time=9.2, activation_size=8e8, …
        node10 -- node11

Times are milliseconds, sizes bytes. The file does not say the size of the mini-batch; without the setting ``batch`` the
whole mini-batch is one sample.

Source: Narayanan et al., "PipeDream: Generalized Pipeline Parallelism for DNN Training", SOSP 2019; ``graph/graph.py``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from mapgap.core import Finding, InputError
from mapgap.core.workload import Settings
from mapgap.importing.graph import Layer, LayerGraph, Time, Total, origin
from mapgap.importing.source import LARGEST, Source

NAME, TITLE = "pipedream", "PipeDream graph.txt"
KIND = "profiled"
FIELDS = ("forward_compute_time", "backward_compute_time", "activation_size", "parameter_size")
_FIELD = re.compile(r"\b(\w+)=([^\s,\]]+|\[[^\]]*\])")


def looks_like(source: Source) -> bool:
    """A line ``node… -- … -- …compute_time=…``. (A regular expression takes quadratic time over empty lines.)"""
    for line in (source.text or "").splitlines():
        parts = line.split(" -- ")
        if len(parts) >= 3 and len(parts[0].split()) == 1 and any("compute_time=" in part for part in parts[2:]):
            return True
    return False


def read(sources: Sequence[Source], settings: Settings) -> LayerGraph:
    """The graph of a file.

    As in PipeDream's own optimizer, nodes ``Input…`` that read nothing are the input of the network and no layers, and
    nodes ``__getitem__`` that nobody reads are left out.

    Raises
    ------
    InputError
        Every line that is neither a layer nor an edge, with its number.
    """
    source = sources[0]
    batch = settings.whole("batch", "samples of the mini-batch that was profiled", 1, least=1)
    found: list[Finding] = []
    graph = LayerGraph(source.path.name.removesuffix(".txt").removesuffix(".graph"), training=True)
    edges: list[tuple[str, str, str]] = []
    names: set[str] = set()
    for number, line in enumerate((source.text or "").splitlines(), 1):
        place = f"{source.path}:{number}"
        parts = [part.strip() for part in line.strip().split(" -- ")]
        if len(parts) == 2 and "=" not in parts[1]:
            edges.append((place, parts[0], parts[1]))
        elif line.strip():
            names.add(parts[0])
            wrong = _add_layer(graph, parts, batch)
            found += [Finding(wrong, place=place)] if wrong else []
    for place, first, second in edges:
        missing = [name for name in (first, second) if name not in names]
        if missing:
            found.append(Finding(f"expected layers of this file, found {', '.join(missing)}", place=place))
        elif not found:
            graph.graph.add_edge(first, second)
    if found:
        raise InputError(found)
    dropped = _drop_ends(graph)
    graph.totals = _totals(source, batch, dropped)
    assumed = [f"{', '.join(dropped)}: no layers, as in PipeDream's optimizer"] if dropped else []
    if settings.get("batch") is None:
        assumed.append("the profiled mini-batch is one sample (--set batch=… tells its size)")
    what = f"times and sizes of {len(graph.graph)} layers at batch {batch}"
    graph.origins.append(origin(source, NAME, what, assumed))
    return graph


def _totals(source: Source, batch: int, dropped: Sequence[str]) -> list[Total]:
    """Weights and forward times of all lines but those of nodes that are no layers."""
    named = re.compile(r"\b(forward_compute_time|parameter_size)=([^\s,\]]+|\[[^\]]*\])")
    values: dict[str, list[float]] = {FIELDS[0]: [], FIELDS[3]: []}
    for line in (source.text or "").splitlines():
        if line.strip().partition(" -- ")[0] not in dropped:
            for field, text in named.findall(line):
                values[field].append(_number(text) or 0.0)
    weights, times = math.fsum(values[FIELDS[3]]), 1e6 * math.fsum(values[FIELDS[0]])
    return [Total("weights", weights), Total("kernels", times, {}, KIND, batch)]


def _add_layer(graph: LayerGraph, parts: list[str], batch: int) -> str:
    """Add the layer of a line; what is wrong with it, if anything."""
    values = dict(_FIELD.findall(parts[-1])) if len(parts) >= 3 else {}
    numbers = {field: _number(values.get(field)) for field in FIELDS}
    wrong = [f"{field}={values.get(field, 'nothing')}" for field, value in numbers.items() if value is None]
    if wrong:
        return f"expected 'node -- operator -- {'=…, '.join(FIELDS)}=…' or 'node -- node', found {', '.join(wrong)}"
    if parts[0] in graph.graph:
        return f"expected each layer once, found {parts[0]} again"
    forward, backward, activation, weights = (numbers[field] or 0.0 for field in FIELDS)
    operation = " -- ".join(parts[1:-1])
    layer = Layer(operation, math.ceil(activation / batch), math.ceil(weights))
    graph.graph.add_node(parts[0], layer=layer, label=f"{parts[0]} {operation.partition('(')[0]}")
    graph.times.setdefault(KIND, {})[parts[0]] = {batch: Time(forward * 1e6, backward * 1e6)}
    return ""


def _drop_ends(graph: LayerGraph) -> list[str]:
    """Take inputs and unused selections out of the graph; their names."""
    whole = graph.graph
    first = [name for name in whole if whole.in_degree(name) == 0]
    inputs = [name for name in first if graph.layer(name).operation.startswith("Input")]
    unused = [n for n in whole if whole.out_degree(n) == 0 and graph.layer(n).operation.startswith("__getitem__")]
    graph.input_bytes = sum(graph.layer(name).output_bytes for name in inputs)
    graph.readers = {reader for name in inputs for reader in whole.successors(name)} - set(inputs)
    dropped = [*inputs, *(name for name in unused if name not in inputs)]
    if len(dropped) < len(whole):
        whole.remove_nodes_from(dropped)
        for name in dropped:
            del graph.times[KIND][name]
        graph.readers &= set(whole)
        return dropped
    return []


def _number(text: str | None) -> float | None:
    """A number from 0 on, or the sum of a list of them; ``None`` if it is none."""
    if text is None:
        return None
    try:
        value = math.fsum(
            float(part) for part in text.strip("[]").split(";") for part in part.split(",") if part.strip()
        )
    except (ValueError, OverflowError):
        return None
    return value if math.isfinite(value) and 0 <= value <= LARGEST else None
