"""mapgap's own layer graph as JSON: what ``mapgap profile`` measures and ``mapgap import`` reads.

    {"format": "mapgap-layer-graph", "schema": 1, "name": …, "input_bytes": …, "machine": {…},
     "layers": [{"name", "operation", "reads": [names], "reads_input", "output_bytes", "weight_bytes", "macs", …}],
     "times": {kind: {layer: {batch: {"forward": ns, "backward": ns, "low": ns, "high": ns}}}},
     "totals": [{"quantity", "amount", "lost": {name: amount}, "kind", "batch", "load"}]}

Sizes are bytes per sample, times nanoseconds of the whole batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mapgap.core.workload import Settings
from mapgap.importing.graph import QUANTITIES, Layer, LayerGraph, Time, Total, origin
from mapgap.importing.source import Source, Value

NAME, TITLE = "layer_graph", "mapgap's own layer graph (mapgap profile)"
MARK = "mapgap-layer-graph"


def looks_like(source: Source) -> bool:
    """The field ``format``."""
    return isinstance(source.json, dict) and source.json.get("format") == MARK


def read(sources: Sequence[Source], settings: Settings) -> LayerGraph:
    """The graph of a file.

    Raises
    ------
    InputError
    """
    source = sources[0]
    root = source.root
    graph = LayerGraph(root["name"].text(), input_bytes=root["input_bytes"].whole())
    reads: list[tuple[Value, str]] = []
    for entry in root["layers"].items():
        name = entry["name"].text()
        if name in graph.graph:
            entry["name"].wrong("a name that no other layer has")
        macs = entry["macs"].whole() if entry.has("macs") and entry.data["macs"] is not None else None
        attributes = dict(entry["attributes"].mapping()) if entry.has("attributes") else {}
        stored = entry["stored_bytes"].whole() if entry.has("stored_bytes") else None
        sizes = [entry[field].whole() for field in ("output_bytes", "weight_bytes")]
        for field, value in attributes.items():
            if field != "note" and (isinstance(value, bool) or not isinstance(value, int) or value < 0):
                entry["attributes"].wrong("whole numbers from 0 on")
        graph.add(name, Layer(entry["operation"].text(), sizes[0], sizes[1], macs, stored, attributes))
        reads += [(each, name) for each in entry["reads"].items()]
        if entry.has("reads_input") and entry.data["reads_input"] is True:
            graph.readers.add(name)
    for value, name in reads:
        if value.text() not in graph.graph:
            value.wrong("a layer of this file")
        graph.graph.add_edge(value.text(), name)
    for kind, layers in root["times"].fields() if root.has("times") else ():
        table = graph.times.setdefault(kind, {})
        for name, points in layers.fields():
            if name not in graph.graph:
                points.wrong(f"times of a layer of this file, not of {name!r}")
            table[name] = {_batch(points, batch): _time(value) for batch, value in points.fields()}
        for name in graph.graph:
            if not table.get(name):
                layers.wrong(f"times of every layer, also of {name!r}")
    graph.totals = [_total(value) for value in root["totals"].items()] if root.has("totals") else []
    measured = [time for table in graph.times.values() for row in table.values() for time in row.values()]
    graph.training = True if measured and all(time.backward is not None for time in measured) else None
    note = root["note"].text() if root.has("note") else f"{len(graph.graph)} layers"
    graph.origins.append(origin(source, NAME, note))
    return graph


def _batch(points: Value, text: str) -> int:
    if not text.isascii() or not text.isdigit() or not int(text[:9]) >= 1 or len(text) > 6:
        points.wrong("batch sizes from 1 on")
    return int(text)


def _time(value: Value) -> Time:
    known = {field: value[field].number() for field in ("backward", "low", "high") if value.has(field)}
    return Time(value["forward"].number(), **known)


def _total(value: Value) -> Total:
    quantity = value["quantity"].text()
    if quantity not in QUANTITIES:
        value["quantity"].wrong(f"one of {', '.join(QUANTITIES)}")
    lost = {name: each.number() for name, each in value["lost"].fields()} if value.has("lost") else {}
    kind, batch = (value["kind"].text(), value["batch"].whole()) if value.has("kind") else ("", 0)
    load = value["load"].number() if value.has("load") else None
    return Total(quantity, value["amount"].number(), lost, kind, batch, load)


def _told(total: Total) -> dict[str, Any]:
    told: dict[str, Any] = {"quantity": total.quantity, "amount": total.amount, "lost": dict(total.lost)}
    told |= {"kind": total.kind, "batch": total.batch} if total.kind else {}
    return told | ({} if total.load is None else {"load": total.load})


def write(graph: LayerGraph, machine: dict[str, Any], note: str) -> dict[str, Any]:
    """The graph as the data of such a file."""
    layers = []
    for name in graph.order():
        layer = graph.layer(name)
        entry: dict[str, Any] = {
            "name": name,
            "operation": layer.operation,
            "reads": graph.inputs(name),
            "reads_input": graph.reads_input(name),
            "output_bytes": layer.output_bytes,
            "weight_bytes": layer.weight_bytes,
            "macs": layer.macs,
            "attributes": dict(layer.attributes),
        }
        if layer.stored_bytes is not None:
            entry["stored_bytes"] = layer.stored_bytes
        layers.append(entry)
    times = {
        kind: {
            name: {
                str(batch): {field: round(value, 1) for field, value in vars(time).items() if value is not None}
                for batch, time in points.items()
            }
            for name, points in table.items()
        }
        for kind, table in graph.times.items()
    }
    return {
        "format": MARK,
        "schema": 1,
        "name": graph.name,
        "input_bytes": graph.input_bytes,
        "note": note,
        "machine": machine,
        "origins": [str(each) for each in graph.origins],
        "layers": layers,
        "times": times,
        "totals": [_told(each) for each in graph.totals],
    }
