"""Instances of the FPGA-GPU partition from foreign files: a cluster of two boards, of which one is the FPGA.

Facts of the boards
-------------------
side
    ``gpu`` or ``fpga``; without it the boards must be called so.
watts
    Power of the board while a layer runs, without standby.
multipliers, m20k
    Fabric of the FPGA.

Settings
--------
fold
    Uses of each multiplier per output: a layer occupies ``kernel x channels_in / groups x channels_out / fold``
    multipliers (1, direct hardware mapping).
standby_watts
    Power that flows whatever runs (0).
link_uj_per_mb
    Energy of moving 10^6 bytes (0).

Layers with weights whose channels no file tells stay on the GPU. Weights lie in memory blocks of 20 Kb, as do two rows
of output values; layers without weights are wired and occupy nothing.
"""

from __future__ import annotations

import math
from typing import Any

from mapgap.core.workload import Settings, WorkBoard, WorkLayer, Workload, at
from mapgap.instances.imported import finest, ticks
from mapgap.problems.fpga_gpu_partition import NETWORK_INPUT, Fabric, Instance, Layer, Link, Module, Option, Read
from mapgap.problems.fpga_gpu_partition.instance import Side

M20K_BITS = 20 * 1024
ENERGY_UNIT_NJ = 1000


def build(workload: Workload, settings: Settings) -> Instance:
    """The instance of a workload.

    Raises
    ------
    InputError
    """
    sides = {str(board.facts.get("side", board.name)): board for board in workload.boards}
    if len(workload.boards) != 2 or set(sides) != {"gpu", "fpga"}:
        found = ", ".join(board.name for board in workload.boards)
        settings.ask(f"boards: expected two, called gpu and fpga or with 'facts: {{side: …}}'; found {found}")
        settings.check()
    gpu, fpga = sides["gpu"], sides["fpga"]
    watts = [_fact(board, "watts", "power in watts while a layer runs", settings) for board in (gpu, fpga)]
    fabric = [_fact(fpga, field, f"{field} of the fabric", settings) for field in ("multipliers", "m20k")]
    fold = settings.whole("fold", "uses of each multiplier per output", 1, least=1)
    standby = settings.number("standby_watts", "power that flows whatever runs", 0.0)
    moved = settings.number("link_uj_per_mb", "microjoules of moving 10^6 bytes", 0.0)
    settings.check(complete=True)

    def make(tick_ns: int, unit: int) -> Instance:
        layers = []
        for i, layer in enumerate(workload.layers):
            options = [_option("gpu", gpu, i, watts[0], tick_ns, (0, 0))]
            demand = _fabric(layer, fold)
            if demand is not None:
                options.append(_option("fpga", fpga, i, watts[1], tick_ns, demand))
            inputs = layer.inputs or (NETWORK_INPUT,)
            layers.append(
                Layer(
                    name=layer.name,
                    operation=layer.operation,
                    reads=tuple(Read(source=source) for source in inputs),
                    outputs=(layer.output_bytes,),
                    options=tuple(options),
                    macs=layer.macs or 0,
                )
            )
        return Instance(
            name=workload.name,
            source=f"{workload.source} Fold {fold}; energies are times at the power of the board.",
            tags=("imported",),
            tick_ns=tick_ns,
            energy_unit_nj=ENERGY_UNIT_NJ,
            standby_mw=round(1000 * standby),
            input_bytes=workload.input_bytes,
            fabric=Fabric(multipliers=int(fabric[0]), m20k=int(fabric[1])),
            link=Link(bytes_per_second=workload.bandwidth[0][1], energy_per_mb=round(moved * 1000 / ENERGY_UNIT_NJ)),
            modules=_modules(workload, layers),
        )

    return finest(make)


def _fact(board: WorkBoard, name: str, meaning: str, settings: Settings) -> float:
    value = board.facts.get(name)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < 1e9:
        settings.ask(f"boards.{board.name}.facts.{name}: expected {meaning}, from 0 on")
        return 0.0
    return float(value)


def _option(side: Side, board: WorkBoard, layer: int, watts: float, tick_ns: int, fabric: tuple[int, int]) -> Option:
    nanoseconds = at(board.forward[layer], 1)
    time, energy = ticks(nanoseconds, tick_ns), round(nanoseconds * watts / ENERGY_UNIT_NJ)
    spent: dict[str, Any] = {f"{side}_ticks": time, f"{side}_energy": energy}
    return Option(name=side, kind=side, home=side, multipliers=fabric[0], m20k=fabric[1], **spent)


def _fabric(layer: WorkLayer, fold: int) -> tuple[int, int] | None:
    """Multipliers and memory blocks of a layer on the FPGA; ``None`` where nobody tells its channels."""
    told = [layer.attributes.get(key) for key in ("kernel", "channels_in", "channels_out", "groups")]
    if layer.weight_bytes == 0:
        return 0, 0
    if not all(isinstance(value, int) and value > 0 for value in told):
        return None
    kernel, into, out, groups = (int(value or 1) for value in told)
    rows = 2 * layer.output_bytes / max(1.0, math.sqrt(layer.attributes.get("pixels", 1)))
    return math.ceil(kernel * into // groups * out / fold), math.ceil(8 * (layer.weight_bytes + rows) / M20K_BITS)


def _modules(workload: Workload, layers: list[Layer]) -> tuple[Module, ...]:
    """One module between two single tensors each."""
    found, start = [], 0
    for stop in workload.cuts():
        part = tuple(layers[start : stop + 1])
        found.append(Module(name=part[-1].name, kind=part[-1].operation, layers=part))
        start = stop + 1
    return tuple(found)
