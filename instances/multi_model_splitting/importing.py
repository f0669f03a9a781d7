"""Instances of several models on wearables from foreign files: a chain per model, times at one sample.

Settings
--------
source, target
    Board at which every pipeline senses and shows its results; without them any board.
sensing_ms
    Time to sense an input (0).
copy_us_per_byte
    Into and out of the accelerator (0: it shares the memory of the board).
sharing
    Whether pipelines may share segments and sensing (false).

A board's facts ``weight_bytes``, ``bias_bytes`` and ``most_layers`` limit its accelerator; without them its memory
holds the weights, and any number of layers. Files do not tell biases from weights: they count as weights. The radio of
a board sends and receives at the rate of its slowest link; latencies are those of each pair of boards.
"""

from __future__ import annotations

from mapgap.core.workload import LibraryBoard, Settings, WorkBoard, Workload, at
from mapgap.instances.expanding import numbered
from mapgap.instances.imported import ask_for_memory, finest, ticks
from mapgap.instances.multi_model_splitting.latency_model import WEIGHT_BYTES, make_device
from mapgap.problems.multi_model_splitting import Boundary, Device, Instance, Layer, Pipeline, Requirement

KEPT = ("sensors", "interfaces")


def build(workload: Workload, settings: Settings) -> Instance:
    """The instance of a workload and of those beside it.

    Raises
    ------
    InputError
    """
    names = [board.name for board in workload.boards]
    ends = [settings.text(end, f"one of {', '.join(names)}", "any", ("any", *names)) for end in ("source", "target")]
    sensing = settings.number("sensing_ms", "milliseconds to sense an input", 0.0)
    copied = settings.number("copy_us_per_byte", "microseconds per byte into or out of an accelerator", 0.0)
    sharing = settings.flag("sharing", "whether pipelines may share operations", False)
    for board in workload.boards:
        if "weight_bytes" not in board.facts:
            ask_for_memory(workload, settings)
    settings.check(complete=True)
    chains = [each.chain() for each in (workload, *workload.others)]
    layers = sum(len(chain.layers) for chain in chains)
    labels = numbered([chain.name for chain in chains])
    source, target = (Requirement() if end == "any" else Requirement(device=end) for end in ends)

    def make(tick_ns: int, unit: int) -> Instance:
        return Instance(
            name=workload.name,
            source=" ".join(each.source for each in (workload, *workload.others)),
            tags=("imported",),
            tick_ns=tick_ns,
            sharing=sharing,
            latency_ns=workload.latency_ns,
            devices=tuple(_device(board, layers) for board in workload.boards),
            pipelines=tuple(
                Pipeline(
                    name=label,
                    model=chain.name,
                    source=source,
                    target=target,
                    sensing=(ticks(sensing * 1e6, tick_ns),) * len(names),
                    layers=_layers(chain, tick_ns),
                    boundaries=_boundaries(chain, copied, tick_ns),
                )
                for label, chain in zip(labels, chains, strict=True)
            ),
        )

    return finest(make)


def _device(board: WorkBoard, layers: int) -> Device:
    facts = board.facts
    listed = {field: tuple(map(str, facts.get(field, ()))) for field in KEPT}
    return Device(
        name=board.name,
        weights=int(facts.get("weight_bytes", board.memory_bytes or 0)),
        bias=int(facts.get("bias_bytes", 0)),
        layers=int(facts.get("most_layers", layers)),
        **listed,
    )


def _layers(chain: Workload, tick_ns: int) -> tuple[Layer, ...]:
    return tuple(
        Layer(
            name=layer.name,
            weights=layer.weight_bytes,
            bias=0,
            output_bytes=layer.output_bytes,
            inference=tuple(ticks(at(board.forward[i], 1), tick_ns) for board in chain.boards),
        )
        for i, layer in enumerate(chain.layers)
    )


def _boundaries(chain: Workload, copied_us: float, tick_ns: int) -> tuple[Boundary, ...]:
    n, last = len(chain.boards), len(chain.layers)
    slowest = [min((rate for rate in row if rate), default=0) for row in chain.bandwidth]
    found = []
    for b, size in enumerate([chain.input_bytes, *(layer.output_bytes for layer in chain.layers)]):
        copies = (ticks(size * copied_us * 1e3, tick_ns),) * n
        moved = tuple(-(-size * 10**9 // (rate * tick_ns)) if rate else 0 for rate in slowest)
        loads, unloads = copies if b < last else (), copies if b > 0 else ()
        found.append(Boundary(bytes=size, load=loads, unload=unloads, transmit=moved, receive=moved))
    return tuple(found)


def library() -> list[LibraryBoard]:
    """The accelerators of Synergy's wearables; they have limits, and no speed model for layers of other files."""
    found = []
    for name in WEIGHT_BYTES:
        device = make_device(name, name, (), ())
        limits = {"weight_bytes": device.weights, "bias_bytes": device.bias, "most_layers": device.layers}
        found.append(LibraryBoard(name=name, memory_bytes=device.weights, facts=limits))
    return found
