"""Hybrid pipeline instances of foreign files: a chain of layers, time tables of every kind of board, links.

Settings
--------
micro_batch, mini_batch
    B and M B in samples; without them B is the largest batch that was measured and M is 8.
cuts
    ``articulation`` (default): stages are cut where a single tensor crosses; ``all``: between any two layers in
    topological order, and everything that crosses is moved; ``graph``: the layers are a graph, and stages are
    differences of its ideals.
memory_counts
    Whether memory is a limit; if not, nobody asks for that of boards, and layers need none.
tick_ns
    The tick; without it the finest one of powers of ten from 100 ns on.
backward
    Backward over forward time where it was not measured; without it 2 for layers with weights, 1 for others.
state_copies
    Memory of the weights as a multiple of their size: weights, gradients, momentum (3).

message_us
    Microseconds that a message between boards takes beside its bytes (0), and beside the latencies of the cluster file.
    Where all links have one rate and nothing else is late, they are the bytes that a link carries in this time, which
    is exact, and every method knows them; elsewhere they are ``latency_ns`` of the instance.
messages
    Messages in which the bytes of a micro-batch cross a cut (1); every one is late.
training
    True or false; without it what the files say, and where they do not, it is asked for. Of inference backward times
    are 0 and the weights are stored once, unless told otherwise.

Every further field of the instance that has a default can be set by its name (``all_devices``, …), and so can the
fields of one that is a model of its own (``training`` is one of ``execution``).
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

from mapgap.core.workload import EXTERNAL, MOST_SAMPLES, LibraryBoard, Settings, WorkBoard, WorkLayer, Workload
from mapgap.instances.facts import load_devices
from mapgap.instances.hybrid_pipeline.conservation import conserved
from mapgap.instances.hybrid_pipeline.profiles import DEVICES, boards, memory_bytes, over_roofline
from mapgap.instances.imported import (
    TICKS_NS,
    ask_for_memory,
    finest,
    further_fields,
    imported_tags,
    table,
    units,
    with_backward,
)
from mapgap.problems.hybrid_pipeline import Device, DeviceType, Execution, Graph, Instance, Layer, Quartiles, Tensor
from mapgap.problems.hybrid_pipeline.instance import QUARTILES

CUTS = ("articulation", "all", "graph")
HOMES = "homes"
"""The table of cards and computers at home."""
MADE = {
    "schema_version", "form", "problem", "name", "source", "tags", "mini_batch", "micro_batch_sizes", "tick_ns",
    "memory_unit_bytes", "types", "devices", "bandwidth", "latency_ns", "layers", "replanning", "graph",
}  # fmt: skip
"""Fields of the instance that the import makes; all others are settings."""


@conserved
def build(workload: Workload, settings: Settings) -> Instance:
    """The instance of a workload.

    Raises
    ------
    InputError
    """
    largest = max(workload.batches, default=8)
    micro = settings.whole("micro_batch", "samples of a micro-batch", largest, least=1, most=MOST_SAMPLES)
    mini = settings.whole("mini_batch", "samples of a mini-batch, a multiple of micro_batch", 8 * micro, least=1)
    cuts = settings.text("cuts", f"one of {', '.join(CUTS)}", CUTS[0], CUTS)
    if workload.training is not None:
        settings.given.setdefault("training", workload.training)
    if settings.get("training") is None:
        settings.ask("--training or --inference (or --set training=true, =false): expected one, as no file says which")
    options = {"all_devices": False, **further_fields(Instance, MADE, settings)}
    training = settings.get("training") is not False
    copies = settings.number("state_copies", "memory of the weights over their size", 3.0 if training else 1.0)
    factor = None if training else 0.0
    spread = [with_backward(each, settings, factor)[0] for each in workload.quartiles()]
    workload, notes = with_backward(workload, settings, factor)
    counts = settings.flag("memory_counts", "whether the memory of boards is a limit", True)
    fixed = settings.whole("tick_ns", "nanoseconds of a tick", 0)
    if counts:
        ask_for_memory(workload, settings)
    late, options["latency_ns"] = _late(
        workload, settings, micro, options.get("execution", Execution()), graph=cuts == "graph"
    )
    settings.check(complete=True)
    if options["latency_ns"]:
        most = max(map(max, options["latency_ns"])) / 1000
        notes.append(f"Messages take up to {most:g} us beside their bytes.")
    if late:
        notes.append(f"A message takes {settings.get('message_us')} us beside its bytes: {late} bytes per sample more.")
    tags = imported_tags(assumed=bool(training and notes))
    notes.append(f"Micro-batch {micro}, mini-batch {mini}.")
    chain = workload.chain() if cuts == "articulation" else workload
    crossing = [layer.output_bytes for layer in chain.layers] if cuts == "articulation" else workload.crossing()
    if cuts == "graph":
        crossing = [layer.output_bytes for layer in workload.layers]
    crossing = [size + late for size in crossing]
    kinds, place = _kinds(chain.boards)
    tensors = options.get("execution", Execution()).communication == "tensors"
    graph = _graph(chain, list(kinds.values()), tensors=tensors, edges=cuts == "graph")
    first = [place.index(t) for t in range(len(kinds))]
    boards_at = [(each.chain() if cuts == "articulation" else each).boards for each in spread]
    around = {name: [boards[d] for boards in boards_at] for name, d in zip(kinds, first, strict=True)}

    def make(tick_ns: int, unit: int) -> Instance:
        return Instance(
            name=workload.name,
            source=" ".join([workload.source, *notes]),
            tags=tags,
            mini_batch=mini,
            micro_batch_sizes=(micro,),
            tick_ns=tick_ns,
            memory_unit_bytes=unit,
            types=tuple(_type(name, board, around[name], micro, tick_ns, unit) for name, board in kinds.items()),
            devices=tuple(Device(name=board.name, type=k) for board, k in zip(chain.boards, place, strict=True)),
            bandwidth=tuple(  # the slower of both directions
                tuple(min(pair) or 1 for pair in zip(row, column, strict=True))
                for row, column in zip(chain.bandwidth, zip(*chain.bandwidth, strict=True), strict=True)
            ),
            layers=tuple(
                _layer(layer, size, copies, unit, counts=counts)
                for layer, size in zip(chain.layers, crossing, strict=True)
            ),
            graph=graph,
            **options,
        )

    return finest(make, (fixed,) if fixed else TICKS_NS)


def _late(
    workload: Workload, settings: Settings, micro: int, rules: Execution, *, graph: bool
) -> tuple[int, tuple[tuple[int, ...], ...]]:
    """Bytes per sample that a link carries while a message is on its way beside them, or latencies between boards."""
    latency = settings.number("message_us", "microseconds that a message takes beside its bytes", 0.0)
    messages = settings.whole("messages", "messages in which the bytes of a micro-batch cross a cut", 1, least=1)
    latency *= messages
    n = len(workload.boards)
    rates = {min(workload.bandwidth[a][b], workload.bandwidth[b][a]) for a in range(n) for b in range(a)}
    if not workload.latency_ns and not latency:
        return 0, ()
    if rules.communication == "tensors":
        settings.wrong.append("latency_us, message_us: expected none, as stages pay tensor by tensor; found some")
    if not workload.latency_ns and len(rates) < 2 and rules.transfers == "one_link" and not graph:
        return math.ceil(latency * 1e-6 * max(rates, default=0) / micro), ()
    known, more = workload.latency_ns or ((0,) * n,) * n, round(1000 * latency)
    return 0, tuple(
        tuple(messages * max(known[a][b], known[b][a]) + more * (a != b) for b in range(n)) for a in range(n)
    )


def _graph(workload: Workload, kinds: list[WorkBoard], *, tensors: bool, edges: bool) -> Graph | None:
    """What makes the layers more than a chain; tensors of a file count where stages pay for them one by one."""
    found: dict[str, Any] = {"together": workload.together}
    if edges:
        pairs = {(u, v) for v, layer in enumerate(workload.layers) for u in layer.inputs if u != EXTERNAL}
        found["edges"] = tuple(sorted(pairs)) if pairs != set(pairwise(range(len(workload.layers)))) else None
        reads = tuple(v for v, layer in enumerate(workload.layers) if EXTERNAL in layer.inputs)
        if len(reads) > 1 and workload.input_bytes and not tensors:  # passed on from the first stage that reads it
            readers: dict[int, list[int]] = {}
            for u, v in sorted(pairs):
                readers.setdefault(u, []).append(v)
            own = [Tensor(layers=(u, *known), size=workload.layers[u].output_bytes) for u, known in readers.items()]
            found["tensors"] = (Tensor(layers=reads, size=workload.input_bytes), *own)
    if tensors:
        for field in ("tensors", "gradients"):
            moved = getattr(workload, field)
            if moved is not None and edges:
                found[field] = tuple(Tensor(layers=layers, size=size) for layers, size in moved)
        found["hosts"] = tuple(t for t, kind in enumerate(kinds) if kind.host)
    if any(kind.unsupported for kind in kinds):
        found["unsupported"] = tuple(tuple(sorted(kind.unsupported)) for kind in kinds)
    return Graph(**found) if any(found.values()) else None


def _kinds(boards: tuple[WorkBoard, ...]) -> tuple[dict[str, WorkBoard], list[int]]:
    """Boards that differ in times or memory, by a name; which of them every board is."""
    found: dict[str, WorkBoard] = {}
    seen: dict[object, int] = {}
    place = []
    for board in boards:
        key = (
            (board.memory_bytes, board.forward, board.backward, board.quartiles),
            (board.unsupported, board.host),
        )
        if key not in seen:
            seen[key] = len(found)
            name = board.kind if board.kind not in found else f"{board.kind} ({board.name})"
            found[name] = board
        place.append(seen[key])
    return found, place


def _type(name: str, board: WorkBoard, around: list[WorkBoard], micro: int, tick_ns: int, unit: int) -> DeviceType:
    """The type of a board, ``around`` it the same one at its quartiles."""
    phases = {
        phase: tuple(table(curve, micro, tick_ns) for curve in getattr(board, phase))
        for phase in ("forward", "backward")
    }
    quartiles = {}
    for each, quartile, inner in zip(around, QUARTILES, (min, max), strict=False):
        for phase, medians in phases.items():
            rows = [table(curve, micro, tick_ns) for curve in getattr(each, phase)]
            quartiles[f"{phase}_{quartile}"] = tuple(
                tuple(map(inner, row, middle)) for row, middle in zip(rows, medians, strict=True)
            )
    return DeviceType(
        name=name,
        memory=(board.memory_bytes or 0) // unit,
        **phases,
        quartiles=Quartiles(**quartiles) if board.quartiles else None,
    )


def _layer(layer: WorkLayer, crossing: int, copies: float, unit: int, *, counts: bool) -> Layer:
    return Layer(
        name=layer.name,
        output_bytes=crossing,
        weight_bytes=layer.weight_bytes,
        state_memory=units(copies * layer.weight_bytes, unit) if counts else 0,
        activation_memory=units(layer.stored_bytes, unit) if counts else 0,
        flops=2 * (layer.macs or 0),
    )


def library() -> list[LibraryBoard]:
    """The Jetson boards of Asteroid's Table 5 with the speed model of ``profiles.py``, and what people have at home."""
    networks = [item.removeprefix("epoch_") for item in load_devices(DEVICES).of("Nano") if item.startswith("epoch_")]
    found = []
    for name in boards():
        facts = load_devices(DEVICES).of(name)
        found.append(
            LibraryBoard(
                name=name,
                memory_bytes=memory_bytes(name),
                gflops=float(facts["fp32_peak"].value),
                memory_gbps=float(facts["mem_bw"].value),
                launch_us=float(facts["launch"].value),
                over_roofline={network: over_roofline(network, name) for network in networks},
            )
        )
    homes = load_devices(HOMES)
    for name in homes.names():
        of = {item: float(fact.value) for item, fact in homes.of(name).items()}
        memory = round(1e9 * of["mem"] * of.get("mem_share", 1.0))
        found.append(LibraryBoard(name=name, memory_bytes=memory, gflops=of["peak"], memory_gbps=of["mem_bw"]))
    return found
