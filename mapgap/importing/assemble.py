"""Graph, profiles and cluster to a workload: what a problem makes an instance of."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from mapgap.core import InputError, suggest
from mapgap.core.workload import EXTERNAL, Curve, LibraryBoard, Moved, Settings, WorkBoard, WorkLayer, Workload
from mapgap.importing.cluster import Board, Cluster, labels
from mapgap.importing.conservation import WITHIN, named_after
from mapgap.importing.estimate import Factor, Speed, estimate, factor, library_boards, roofline
from mapgap.importing.graph import Kind, LayerGraph, Time, Times
from mapgap.importing.recognise import read

MOST_BOARDS = 256


@dataclass
class Assembled:
    """A workload, and what a reader should know of its times.

    Attributes
    ----------
    workload : Workload
    bars : dict
        Board to the error bar of its estimated times, as factors.
    notes : list of str
    """

    workload: Workload
    bars: dict[str, tuple[float, float]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


@dataclass
class _Table:
    """Times of one entry of the cluster."""

    kind: str
    forward: tuple[Curve, ...]
    backward: tuple[Curve, ...] = ()
    batches: tuple[int, ...] = ()
    quartiles: tuple[tuple[Curve, ...], ...] = ()


def assemble(graph: LayerGraph, cluster: Cluster | None, settings: Settings, name: str | None = None) -> Assembled:
    """The model on the cluster; without a cluster on the devices that the files list.

    Raises
    ------
    InputError
        What is missing, by name.
    """
    cluster = cluster or listed_devices(graph)
    count = sum(board.count for board in cluster.boards.values())
    if count > MOST_BOARDS:
        raise InputError(f"boards: expected at most {MOST_BOARDS}, found {count}")
    order = graph.order()
    layers = work_layers(graph, order)
    place = {name: k for k, name in enumerate(order)}
    notes = [str(each) for each in graph.origins]
    known = library_boards()
    tables: dict[str, _Table] = {}
    for entry, board in cluster.boards.items():
        _check_library(entry, board, known)
        if board.profile is not None or graph.times:
            tables[entry] = _profiled(entry, board, graph, order, settings, notes)
    bars: dict[str, tuple[float, float]] = {}
    estimated = [entry for entry in cluster.boards if entry not in tables]
    if estimated:
        _estimate(estimated, cluster, tables, layers, graph, known, settings, bars, notes)
    batches = sorted({batch for table in tables.values() for batch in table.batches})
    if batches:
        lines = "on lines between the measured batch sizes, beyond them on the last line"
        how = "in proportion to the samples" if len(batches) == 1 else lines
        notes.append(f"Times at other batch sizes than {', '.join(map(str, batches))} lie {how}.")
    boards, links, late = _boards(cluster, tables, graph, known, settings, place)
    settings.check()
    label = name or graph.name
    workload = Workload(
        label,
        " ".join(notes),
        graph.input_bytes,
        layers,
        boards,
        links,
        tuple(batches),
        training=graph.training,
        together=tuple(tuple(sorted(_places(place, each))) for each in graph.together),
        tensors=_moved(place, graph.tensors),
        gradients=_moved(place, graph.gradients),
        latency_ns=late,
    )
    single = {label: bar for entry, bar in bars.items() for label in labels(entry, cluster.boards[entry])}
    return Assembled(workload, single, notes)


def _places(place: Mapping[str, int], names: Iterable[str]) -> tuple[int, ...]:
    """Places of layers, each once; the first name stays the first."""
    return tuple(dict.fromkeys(place[name] for name in names))


def _moved(place: Mapping[str, int], tensors: list[tuple[tuple[str, ...], int]] | None) -> tuple[Moved, ...] | None:
    return None if tensors is None else tuple((_places(place, names), size) for names, size in tensors)


def listed_devices(graph: LayerGraph) -> Cluster:
    """The cluster that the files themselves describe.

    Raises
    ------
    InputError
        They list no devices.
    """
    boards = {name: Board(kind=kind) for kind, facts in graph.kinds.items() for name in facts.names}
    if not boards:
        raise InputError(
            "missing: cluster: expected boards, by --cluster boards.yaml or --devices N --link MBPS --memory GB"
        )
    return Cluster(schema=1, form="cluster", boards=boards)


def work_layers(graph: LayerGraph, order: list[str]) -> tuple[WorkLayer, ...]:
    """The layers of a graph in an order, with places for names."""
    place = {name: i for i, name in enumerate(order)}
    layers = []
    for name in order:
        layer = graph.layer(name)
        inputs = [place[source] for source in graph.inputs(name)]
        if graph.reads_input(name):
            inputs.append(EXTERNAL)
        layers.append(
            WorkLayer(
                graph.graph.nodes[name].get("label", name),
                layer.operation,
                tuple(sorted(set(inputs))),
                layer.output_bytes,
                layer.weight_bytes,
                layer.macs,
                layer.output_bytes if layer.stored_bytes is None else layer.stored_bytes,
                layer.attributes,
            )
        )
    return tuple(layers)


def _check_library(entry: str, board: Board, known: Mapping[str, LibraryBoard]) -> None:
    if board.board is not None and board.board not in known:
        text = f"expected one of {', '.join(sorted(known))}; found {board.board!r}{suggest(board.board, known)}"
        raise InputError(f"boards.{entry}.board: {text}")


def _profiled(
    entry: str, board: Board, graph: LayerGraph, order: list[str], settings: Settings, notes: list[str]
) -> _Table:
    """Times of a board with a profile, of its own or the imported file's."""
    source, wanted = graph, board.kind
    if board.profile is not None:
        file, _, kind = board.profile.partition("#")
        source = read([Path(file)], settings)
        wanted = kind or wanted
        notes += [f"Board {entry}: {each}" for each in source.origins]
    if not source.times:
        raise InputError(f"boards.{entry}: expected a profile with times, found {source.name} without any")
    if wanted is None:
        wanted = entry if entry in source.times else next(iter(source.times)) if len(source.times) == 1 else None
    if wanted not in source.times:
        known = ", ".join(source.times)
        found = "none given" if wanted is None else repr(wanted)
        raise InputError(
            f"boards.{entry}.kind: expected one of {known} (or --profile {entry}=FILE#KIND); found {found}"
        )
    times = source.times[wanted]
    if source is not graph:
        times = matched(times, source, graph, order, entry, notes)
    batches = sorted(set.intersection(*(set(times[name]) for name in order)))
    if not batches:
        raise InputError(f"boards.{entry}: expected all layers measured at some batch size, found none")
    points = {name: [(batch, times[name][batch]) for batch in batches] for name in order}
    forward = tuple(tuple((b, board.slower * time.forward) for b, time in points[name]) for name in order)
    complete = all(time.backward is not None for name in order for _, time in points[name])
    backward = (
        tuple(tuple((b, board.slower * (time.backward or 0.0)) for b, time in points[name]) for name in order)
        if complete
        else ()
    )
    quartiles: tuple[tuple[Curve, ...], ...] = ()
    if any(time.low is not None and time.high is not None for name in order for _, time in points[name]):
        quartiles = tuple(
            tuple(tuple((b, board.slower * _quartile(time, k)) for b, time in points[name]) for name in order)
            for k in range(2)
        )
    kind = wanted if source is graph else entry
    kind = kind if board.slower == 1 else f"{kind} x{board.slower:g}"
    return _Table(kind, forward, backward, tuple(batches), quartiles)


def _quartile(time: Time, k: int) -> float:
    """The lower (0) or upper (1) quartile; the median where it was not told."""
    told = (time.low, time.high)[k]
    return time.forward if told is None else told


def matched(
    times: Times, profile: LayerGraph, graph: LayerGraph, order: list[str], entry: str, notes: list[str]
) -> Times:
    """Times of a profile for the layers of a model, by name.

    A layer ``a + b + c`` of the profile stands for the layers a, b and c of the model: its time goes to the first of
    them. What goes on from the name of a layer (``a_nchwc``, ``a/Fusion``) belongs to it. Layers of the model that the
    profile does not name were fused into others and take no time.

    Raises
    ------
    InputError
        More than 1 % of the profile's time is spent in layers that the model does not have; they are named.
    """
    found: Times = {}
    stray: dict[str, float] = {}
    total = 0.0
    batches: set[int] = set()
    later: list[tuple[str, dict[int, Time]]] = []
    for name, points in times.items():
        parts = [part.strip() for part in name.split(" + ")]
        owner = next((part for part in (name, *parts) if part in graph.graph and part not in found), None)
        spent = max((time.forward for time in points.values()), default=0.0)
        total += spent
        batches |= set(points)
        if owner is None and (after := named_after(name, graph.graph)) is not None:
            later.append((after, points))
        elif owner is None:
            stray[name] = spent
        else:
            found[owner] = points
    for owner, points in later:
        before = found.get(owner, {})
        found[owner] = {batch: _sum(before.get(batch), time) for batch, time in points.items()}
    lost = sum(stray.values())
    if lost > WITHIN * total or not found:
        share = 100 * lost / total if total else 100
        named = ", ".join(map(repr, sorted(stray, key=lambda name: -stray[name])[:5]))
        text = f"expected the layers of {graph.name} (such as {order[0]!r}), found {named}"
        raise InputError(
            f"boards.{entry}: {profile.name}: {text}; {share:.0f}% of the time is in layers of other names"
        )
    zero = {batch: Time(0.0) for batch in batches}
    fused = [name for name in order if name not in found]
    if fused:
        notes.append(f"{len(fused)} layers of {graph.name} have no time of their own on {entry} (fused into others).")
    return {name: found.get(name, zero) for name in order}


def _sum(first: Time | None, second: Time) -> Time:
    """Two operators of one layer."""
    if first is None:
        return second
    known = [
        None if a is None or b is None else a + b
        for a, b in ((first.backward, second.backward), (first.low, second.low), (first.high, second.high))
    ]
    return Time(first.forward + second.forward, *known)


def _estimate(
    entries: list[str],
    cluster: Cluster,
    tables: dict[str, _Table],
    layers: tuple[WorkLayer, ...],
    graph: LayerGraph,
    known: Mapping[str, LibraryBoard],
    settings: Settings,
    bars: dict[str, tuple[float, float]],
    notes: list[str],
) -> None:
    """Times of the boards without a profile."""
    speeds = {entry: _speed(board, known) for entry, board in cluster.boards.items()}
    missing = [entry for entry in entries if speeds[entry] is None]
    if missing:
        raise InputError(
            f"missing: boards.{entry}: expected a profile (--profile {entry}=FILE), a board of the library "
            f"({', '.join(name for name, each in known.items() if each.gflops)}) or gflops and memory_gbps"
            for entry in missing
        )
    if graph.passes and tables:
        raise InputError(f"boards.{next(iter(tables))}: expected no profile, which is of one pass; found one")
    measured = {
        entry: (speed, tables[entry].forward)
        for entry, speed in speeds.items()
        if entry in tables and speed is not None and all(layer.macs is not None for layer in layers)
    }
    passes = [Pass(work_layers(each, each.order()), each, times) for each, times in graph.passes]
    passes = passes or [Pass(layers, graph, 1)]
    if settings.get("over_roofline") is None:
        found = [
            factor(each.layers, each.graph.input_bytes, measured, known, each.graph.over_roofline) for each in passes
        ]
    else:
        value = settings.number("over_roofline", "time over roofline of boards without a profile", 1.0)
        found = [Factor(value, value, value, "as over_roofline says")] * len(passes)
    for entry in entries:
        speed = speeds[entry]
        assert speed is not None
        curves = [
            estimate(each.layers, each.graph.input_bytes, speed, k.value) for each, k in zip(passes, found, strict=True)
        ]
        tables[entry] = _Table(cluster.boards[entry].board or entry, _summed(curves, [each.times for each in passes]))
        bars[entry] = _bar(passes, speed, found)
    notes += (
        _told(entries, k, f" of {each.graph.name}" if graph.passes else "")
        for each, k in zip(passes, found, strict=True)
    )


class Pass(NamedTuple):
    """One way in which a model is run, and how often."""

    layers: tuple[WorkLayer, ...]
    graph: LayerGraph
    times: int


def _summed(curves: Sequence[tuple[Curve, ...]], counts: Sequence[int]) -> tuple[Curve, ...]:
    """Times of every layer over all passes, which are estimated at the same batch sizes."""
    if list(counts) == [1]:
        return curves[0]
    return tuple(
        tuple(
            (points[0][0], sum(count * time for count, (_, time) in zip(counts, points, strict=True)))
            for points in zip(*layer, strict=True)
        )
        for layer in zip(*curves, strict=True)
    )


def _bar(passes: Sequence[Pass], speed: Speed, found: Sequence[Factor]) -> tuple[float, float]:
    """The error bar of the time of the whole model for one sample, as factors; launches have none."""

    def total(factors: Iterable[float]) -> float:
        return sum(
            each.times
            * (speed.launch * len(each.layers) + k * sum(roofline(each.layers, each.graph.input_bytes, speed, 1)))
            for each, k in zip(passes, factors, strict=True)
        )

    likely = total(each.value for each in found)
    if likely <= 0:
        return 1.0, 1.0
    return total(each.low for each in found) / likely, total(each.high for each in found) / likely


def _told(entries: list[str], found: Factor, of: str) -> str:
    return (
        f"Times of {', '.join(entries)}{of} are estimated: launches and {found.value:.2f} times a roofline "
        f"({found.source}); the factor may be from {found.low:.2f} to {found.high:.2f}."
    )


def _speed(board: Board, known: Mapping[str, LibraryBoard]) -> Speed | None:
    library = known.get(board.board or "")
    flops = board.gflops or (library.gflops if library else None)
    bandwidth = board.memory_gbps or (library.memory_gbps if library else None)
    launch = board.launch_us if board.launch_us is not None else (library.launch_us if library else None)
    return None if flops is None or bandwidth is None else Speed(flops, bandwidth, 1000 * (launch or 0.0))


def _boards(
    cluster: Cluster,
    tables: Mapping[str, _Table],
    graph: LayerGraph,
    known: Mapping[str, LibraryBoard],
    settings: Settings,
    place: Mapping[str, int],
) -> tuple[tuple[WorkBoard, ...], tuple[tuple[int, ...], ...], tuple[tuple[int, ...], ...]]:
    """Every single board, the rates between them in bytes per second, and latencies in ns, if there are any."""
    boards, entries = [], []
    for entry, board in cluster.boards.items():
        library, table = known.get(board.board or ""), tables[entry]
        memory = None if board.memory_gb is None else int(board.memory_gb * 1e9)
        if memory is None and library is not None:
            memory = library.memory_bytes
        if memory is None and (listed := graph.kinds.get(board.kind or "")) is not None:
            memory = listed.memory_bytes
        facts = {**(library.facts if library else {}), **board.facts}
        facts |= {"gflops": board.gflops} if board.gflops else {}
        rules = graph.kinds.get(board.kind or "", Kind())
        lacking = frozenset(_places(place, rules.unsupported))
        for label in labels(entry, board):
            boards.append(
                WorkBoard(
                    label,
                    table.kind,
                    memory,
                    table.forward,
                    table.backward,
                    facts,
                    lacking,
                    rules.host,
                    table.quartiles,
                )
            )
            entries.append(entry)
    rates = []
    for a, first in enumerate(entries):
        row = []
        for b, second in enumerate(entries):
            rate = None if a == b else _rate(cluster, graph, first, second)
            if a != b and rate is None:
                settings.ask(f"link between {first} and {second}: expected link_mbps of the cluster, or --link MBPS")
            row.append(0 if a == b else max(1, round(rate or 1)))
        rates.append(tuple(row))
    late = tuple(
        tuple(cluster.late_ns(a, b) if i != j else 0 for j, b in enumerate(entries)) for i, a in enumerate(entries)
    )
    return tuple(boards), tuple(rates), late if any(map(any, late)) else ()


def _rate(cluster: Cluster, graph: LayerGraph, first: str, second: str) -> float | None:
    """Bytes per second between two entries."""
    mbps = cluster.mbps(first, second)
    if mbps is not None:
        return mbps * 1e6 / 8
    rates = []
    for entry in (first, second):
        kind = cluster.boards[entry].kind or next(iter(graph.times), "")
        facts = graph.kinds.get(kind)
        rates.append(facts.link_bytes_per_second if facts else None)
    told = [rate for rate in rates if rate]
    return min(told) if len(told) == 2 else None
