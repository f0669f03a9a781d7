"""``mapgap import``, ``mapgap profile``, and what ``mapgap show`` says of a foreign file."""

from __future__ import annotations

import importlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import yaml

from mapgap.catalogue import registry
from mapgap.catalogue.files import retarget, save_expanded
from mapgap.cli.output import facts, print_json, say, table, to_file
from mapgap.cli.progress import Spinner
from mapgap.core import InputError, InstanceBase, quantity
from mapgap.core.workload import Settings, Workload, at
from mapgap.importing.assemble import Assembled, assemble, work_layers
from mapgap.importing.cluster import Cluster, equal_boards, load, with_profiles
from mapgap.importing.formats import layer_graph
from mapgap.importing.graph import LayerGraph
from mapgap.importing.recognise import read, recognise
from mapgap.importing.source import Source, located


@dataclass(frozen=True)
class Order:
    """The flags of ``mapgap import``."""

    files: Sequence[Path]
    problem: str
    cluster: Path | None = None
    profiles: Sequence[str] = ()
    devices: int | None = None
    link: float | None = None
    memory: float | None = None
    also: Sequence[Path] = ()
    settings: Sequence[str] = ()
    name: str | None = None
    objective: str | None = None
    output: Path | None = None
    json: bool = False


def import_(order: Order) -> Path:
    """Make an instance of foreign files and write it; where it was written.

    Raises
    ------
    InputError
        What is wrong with a file, or missing, by name.
    """
    problem = registry.find_problem(order.problem)
    cluster = _cluster(order)
    given = {**(cluster.settings if cluster else {}), **typed(order.settings)}
    settings = Settings(given)
    graph = read(order.files, settings)
    assembled = assemble(graph, cluster, settings, order.name)
    others = tuple(assemble(read([path], settings), cluster, settings).workload for path in order.also)
    instance = registry.library(problem.name).imported(replace(assembled.workload, others=others), settings)
    if order.objective is not None:
        instance = retarget(instance, order.objective)
    path = order.output or Path(f"{_stem(instance.name)}_{problem.name}.yaml")
    to_file(path)
    save_expanded(instance, path)
    if order.json:
        print_json({"file": str(path), **_summary(instance, graph, assembled)})
    else:
        _tell(instance, graph, assembled, path)
    return path


def typed(settings: Sequence[str]) -> dict[str, Any]:
    """``name=value`` flags; a value is what YAML reads.

    Raises
    ------
    InputError
    """
    found: dict[str, Any] = {}
    for setting in settings:
        name, equals, text = setting.partition("=")
        if not equals or not name:
            raise InputError(f"--set {setting}: expected name=value")
        try:
            found[name] = yaml.safe_load(text)
        except yaml.YAMLError:
            found[name] = text
    return found


def _stem(name: str) -> str:
    return "".join(c if c.isalnum() or c in "._-" else "_" for c in name)


def _cluster(order: Order) -> Cluster | None:
    if order.cluster is not None:
        for flag, value in (("--devices", order.devices), ("--link", order.link), ("--memory", order.memory)):
            if value is not None:
                raise InputError(f"{flag}: expected either a cluster file or {flag}, found both")
        cluster: Cluster | None = load(order.cluster)
    elif order.devices is not None:
        cluster = equal_boards(order.devices, order.link, order.memory)
    elif order.link is not None or order.memory is not None:
        raise InputError("--link, --memory: expected them beside --devices, found no --devices")
    else:
        cluster = None
    named = dict(_profile(text) for text in order.profiles)
    if named and cluster is None:
        raise InputError("--profile: expected boards to have profiles, by --cluster; found none")
    return with_profiles(cluster, named) if cluster is not None else None


def _profile(text: str) -> tuple[str, str]:
    name, equals, file = text.partition("=")
    if not equals or not name or not file:
        raise InputError(
            f"--profile {text}: expected BOARD=FILE, or BOARD=FILE#KIND for one of several kinds of device"
        )
    return name, file


def _summary(instance: InstanceBase, graph: LayerGraph, assembled: Assembled) -> dict[str, Any]:
    return {
        "instance": instance.name,
        "instance_hash": instance.content_hash,
        "problem": instance.problem,
        "layers": len(graph.graph),
        "cuts": len(assembled.workload.cuts()),
        "boards": {
            name: {"seconds": time, "low": low, "high": high} for name, (time, low, high) in _times(assembled).items()
        },
        "origins": [vars(each) | {"assumed": list(each.assumed)} for each in graph.origins],
        "notes": assembled.notes,
    }


def _times(assembled: Assembled) -> dict[str, tuple[float, float | None, float | None]]:
    """Board to the forward seconds of the whole model at the smallest measured batch, with the bar of an estimate."""
    workload = assembled.workload
    samples = min(workload.batches, default=1)
    found: dict[str, tuple[float, float | None, float | None]] = {}
    for board in workload.boards:
        total = 1e-9 * sum(at(curve, samples) for curve in board.forward)
        bar = assembled.bars.get(board.name)
        found[board.name] = (total, total * bar[0], total * bar[1]) if bar else (total, None, None)
    return found


def _tell(instance: InstanceBase, graph: LayerGraph, assembled: Assembled, path: Path) -> None:
    workload = assembled.workload
    problem = registry.problems()[instance.problem]
    times = {
        name: seconds(time) + (f" ({seconds(low)} to {seconds(high)}, estimated)" if low and high else "")
        for name, (time, low, high) in _times(assembled).items()
    }
    facts(
        {
            "instance": f"{instance.name} ({instance.content_hash})",
            "problem": f"{problem.name} ({problem.title})",
            "model": f"{len(graph.graph)} layers, {len(workload.cuts())} parts between single tensors",
            "boards": ", ".join(board.name for board in workload.boards),
            f"forward pass, {min(workload.batches, default=1)} sample(s)": "; ".join(
                f"{k} {v}" for k, v in times.items()
            ),
            "objective in": problem.unit(instance),
            "read": "\n".join(assembled.notes),
            "written to": str(path),
            "next": f"mapgap solve {path} --certify",
        }
    )


def seconds(value: float) -> str:
    """A time as people read it."""
    return quantity(value, "s")


def is_foreign(path: Path) -> bool:
    """Is it a file of a foreign format, and no instance?"""
    if not located(path).exists():
        return False
    source = Source.open(path)
    data = source.json if source.json is not None else source.yaml
    if isinstance(data, dict) and {"schema", "form", "problem"} & set(data) and "format" not in data:
        return False
    return recognise(source) is not None


def show_foreign(path: Path, *, as_json: bool) -> None:
    """What a foreign file holds: its layers with times and sizes, and where the chain can be cut.

    Raises
    ------
    InputError
    """
    graph = read([path])
    kinds = list(graph.times)
    if as_json:
        print_json(layer_graph.write(graph, {}, "; ".join(map(str, graph.origins))))
        return
    facts(
        {
            "model": graph.name,
            "layers": len(graph.graph),
            "weights": f"{sum(graph.layer(name).weight_bytes for name in graph.graph):,} bytes",
            "devices": {kind: list(facts.names) for kind, facts in graph.kinds.items() if facts.names},
            "batch sizes": {kind: graph.batches(kind) for kind in kinds},
            "read": "\n".join(map(str, graph.origins)),
        }
    )
    say()
    order = graph.order()
    single = _single(graph, order)
    columns = [
        "layer",
        "operation",
        "reads",
        "output bytes",
        "weight bytes",
        "MACs",
        *[_heading(graph, k) for k in kinds],
    ]
    rows = []
    for k, name in enumerate(order):
        layer = graph.layer(name)
        times = [_shown(graph, kind, name) for kind in kinds]
        reads = ", ".join(graph.inputs(name)) or "(input)"
        rows.append([name, layer.operation, reads, layer.output_bytes, layer.weight_bytes, layer.macs, *times])
        if k in single and k < len(order) - 1:
            rows[-1][0] = f"{name} |"
    table("layers (| a place where a single tensor crosses)", columns, rows, right=columns[3:])


def _single(graph: LayerGraph, order: Sequence[str]) -> set[int]:
    """Articulation points, as positions in the order."""
    return set(Workload("", "", graph.input_bytes, work_layers(graph, list(order)), (), (), ()).cuts())


def _heading(graph: LayerGraph, kind: str) -> str:
    batches = graph.batches(kind)
    return f"{kind} at {batches[0]}" if batches else kind


def _shown(graph: LayerGraph, kind: str, name: str) -> str | None:
    points = graph.times[kind].get(name)
    if not points:
        return None
    time = points[min(points)]
    backward = "" if time.backward is None else f" + {seconds(time.backward * 1e-9)}"
    return f"{seconds(time.forward * 1e-9)}{backward}"


def profile(
    path: Path,
    batches: str,
    threads: str,
    output: Path,
    *,
    repetitions: int,
    warm_up: int,
    provider: str,
    level: str,
    settings: Sequence[str],
    as_json: bool,
) -> None:
    """Measure a model and write the layer graph.

    Raises
    ------
    InputError
    """
    to_file(output)
    sizes, counts = _numbers("--batch", batches), _numbers("--threads", threads)
    if level not in ("none", "basic"):
        raise InputError(f"--optimise: expected none or basic, found {level!r}")
    try:
        room = importlib.import_module("mapgap.importing.measure")
    except ModuleNotFoundError as error:
        text = f"expected the package {error.name}; install it by: pip install 'mapgap[onnx]'"
        raise InputError(f"profile: {text}") from error
    with Spinner() as display:
        graph, machine, note = room.measure(
            path,
            sizes,
            counts,
            repetitions=repetitions,
            warm_up=warm_up,
            provider=provider,
            level=level,
            settings=Settings(typed(settings)),
            tell=display.spin,
        )
    output.write_text(json.dumps(layer_graph.write(graph, machine, note), indent=1) + "\n", encoding="utf-8")
    if as_json:
        print_json(
            {"file": str(output), "machine": machine, "kinds": {kind: graph.batches(kind) for kind in graph.times}}
        )
        return
    rows = []
    for kind, times in graph.times.items():
        for batch in graph.batches(kind):
            points = [points[batch] for points in times.values()]
            total = 1e-9 * sum(time.forward for time in points)
            low = 1e-9 * sum(time.low if time.low is not None else time.forward for time in points)
            high = 1e-9 * sum(time.high if time.high is not None else time.forward for time in points)
            rows.append([kind, batch, seconds(total), f"{seconds(low)} to {seconds(high)}"])
    table(note, ["kind", "batch", "all operators", "quartiles"], rows, right=["batch", "all operators", "quartiles"])
    first = next(iter(graph.times))
    say(f"written to {output}\nnext: mapgap import {output} --cluster boards.yaml, boards with 'kind: {first}'")


def _numbers(flag: str, text: str) -> list[int]:
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isascii() and part.isdigit() and 0 < int(part) <= 4096 for part in parts):
        raise InputError(f"{flag} {text}: expected whole numbers from 1 to 4096, separated by commas")
    return sorted({int(part) for part in parts})
