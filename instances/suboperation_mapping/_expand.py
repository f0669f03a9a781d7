"""Expansion of the compact form: names to integers."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import TypeVar

import numpy as np
from pydantic import ValidationError

from mapgap.core import ACTIVITY_LIMIT, InputError
from mapgap.instances._library import NETWORK_INPUT, load_devices, unknown
from mapgap.instances.suboperation_mapping._accelerators import (
    IP,
    IPS,
    Array2D,
    Board,
    board,
    board_names,
    choose,
    flops,
    nanoseconds,
    phases,
)
from mapgap.instances.suboperation_mapping._network import WORD, Block, blocks_of
from mapgap.problems.suboperation_mapping import Accelerator, Edge, Instance, Layer

BATCH = {1: 64, 2: 16, 3: 64}
"""Sec. VI-A: batch of each cluster."""
MEMORY_UNIT_BYTES = 1024
TITLES = {"ef_train": "EF-Train", "darkfpga": "DarkFPGA"}
Value = TypeVar("Value")
Bandwidth = float | tuple[tuple[float, ...], ...]
Times = list[dict[str, list[list[int]]]]
"""Per layer and phase: nanoseconds ``[accelerator][share - 1]`` (one entry for a fused layer)."""


def expand_compact(
    *,
    name: str,
    source: str,
    tags: tuple[str, ...],
    network: str,
    cluster: int | None,
    devices: tuple[str, ...] | None,
    batch: int | None,
    bandwidth_gbs: Bandwidth,
    ip: str,
) -> Instance:
    """Build the instance; parameters as the fields of the compact form.

    Raises
    ------
    InputError
        All findings at once.
    """
    findings: list[str] = []
    blocks = _collect(findings, lambda: blocks_of(network))
    boards = _collect(findings, lambda: _boards(cluster, devices))
    samples = _collect(findings, lambda: _batch(batch, cluster))
    guess = len(bandwidth_gbs) if isinstance(bandwidth_gbs, tuple) else 2  # to check the numbers without FPGAs
    rates = _collect(findings, lambda: _bandwidth(bandwidth_gbs, len(boards) if boards else guess))
    if ip not in ("best", *IPS):
        findings.append(f"ip: expected 'best', 'ef_train' or 'darkfpga', found {ip!r}")
    if blocks is None or boards is None or samples is None or rates is None or findings:
        raise InputError(findings)
    _check_fit(network, blocks, boards)
    ips: tuple[IP, ...] = IPS if ip == "best" else (ip,)  # type: ignore[assignment]
    arrays = [choose(blocks, device, samples, ips)[0] for device in boards]
    times = _times(blocks, boards, arrays, samples)

    def at(tick_ns: int) -> Instance:
        return Instance(
            name=name,
            source=source,
            tags=tags,
            batch=samples,
            tick_ns=tick_ns,
            memory_unit_bytes=MEMORY_UNIT_BYTES,
            flops=flops(blocks, samples),
            accelerators=_accelerators(boards, arrays),
            bandwidth=rates,
            layers=_layers(blocks, times, tick_ns),
        )

    return _finest(at, _ticks(blocks, times, len(boards)))


def _finest(at: Callable[[int], Instance], ticks: Iterator[int]) -> Instance:
    """The instance of the first tick that its validator accepts; transfers count there too."""
    for tick_ns in ticks:
        try:
            return at(tick_ns)
        except ValidationError as error:
            if "tick_ns" not in str(error):
                raise
    raise AssertionError("unreachable")  # ticks grow without end


def _collect(findings: list[str], make: Callable[[], Value]) -> Value | None:
    """The value, or ``None`` with its findings noted."""
    try:
        return make()
    except InputError as error:
        findings += error.problems
        return None


def _boards(cluster: int | None, devices: tuple[str, ...] | None) -> list[Board]:
    if (cluster is None) == (devices is None):
        found = "neither" if cluster is None else "both"
        raise InputError(f"cluster: expected either cluster or devices, found {found}")
    if devices is None:
        clusters = load_devices("mtrain_fpga").clusters
        if f"C{cluster}" not in clusters:
            raise InputError(f"cluster: expected 1, 2 or 3, found {cluster!r}")
        return [board(name) for name in clusters[f"C{cluster}"]]
    if not devices:
        raise InputError("devices: expected at least one FPGA, found none")
    known = board_names()
    wrong = [
        problem
        for i, name in enumerate(devices)
        if name not in known
        for problem in unknown(f"devices[{i}]", name, known).problems
    ]
    if wrong:
        raise InputError(wrong)
    return [board(name) for name in devices]


def _batch(batch: int | None, cluster: int | None) -> int:
    if batch is None:
        if cluster not in BATCH:
            raise InputError("batch: expected a number of samples (only clusters have a default), found none")
        return BATCH[cluster]
    if batch < 1:
        raise InputError(f"batch: expected at least 1 sample, found {batch}")
    return batch


def _bandwidth(gbs: Bandwidth, n: int) -> tuple[tuple[int, ...], ...]:
    """Bytes per second between ``n`` FPGAs; the diagonal is 1."""
    rows = gbs if isinstance(gbs, tuple) else ((gbs,) * n,) * n
    if len(rows) != n or any(len(row) != n for row in rows):
        shape = [len(row) for row in rows]
        raise InputError(f"bandwidth_gbs: expected a {n} x {n} matrix or one number, found rows of lengths {shape}")
    wrong = [
        f"bandwidth_gbs[{i}][{j}]: expected a positive number of GB/s, found {value}"
        if isinstance(gbs, tuple)
        else f"bandwidth_gbs: expected a positive number of GB/s, found {value}"
        for i, row in enumerate(rows)
        for j, value in enumerate(row)
        if i != j and not (math.isfinite(value) and round(value * 1e9) >= 1)
    ]
    if wrong:
        raise InputError(list(dict.fromkeys(wrong)))
    return tuple(tuple(1 if i == j else round(v * 1e9) for j, v in enumerate(row)) for i, row in enumerate(rows))


def _check_fit(network: str, blocks: tuple[Block, ...], boards: list[Board]) -> None:
    """Weights and gradients of every layer must fit some DRAM."""
    largest = max(device.memory_bytes // MEMORY_UNIT_BYTES for device in boards)
    wrong = [
        f"network: expected layers whose weights and gradients fit a DRAM of {largest * MEMORY_UNIT_BYTES} bytes, "
        f"found {network}'s {block.row.name} with {2 * block.weight_bytes} bytes"
        for block in blocks
        if -(-2 * block.weight_bytes // MEMORY_UNIT_BYTES) > largest
    ]
    if wrong:
        raise InputError(wrong)


def _accelerators(boards: list[Board], arrays: list[Array2D]) -> tuple[Accelerator, ...]:
    """Named ``U50LV (DarkFPGA)``, with a number behind a board that occurs more than once."""
    names = [device.name for device in boards]
    found = []
    for i, (device, array) in enumerate(zip(boards, arrays, strict=True)):
        number = f" {names[: i + 1].count(device.name)}" if names.count(device.name) > 1 else ""
        label = f"{device.name}{number} ({TITLES[array.ip]})"
        found.append(Accelerator(name=label, memory=device.memory_bytes // MEMORY_UNIT_BYTES, pes=device.dsp))
    return tuple(found)


def _times(blocks: tuple[Block, ...], boards: list[Board], arrays: list[Array2D], batch: int) -> Times:
    shares = np.arange(1, batch + 1, dtype=np.int64)
    return [
        {
            phase: [
                nanoseconds(block, phase, array, device, shares if block.kind == "split" else shares[-1:]).tolist()
                for device, array in zip(boards, arrays, strict=True)
            ]
            for phase in phases(block)
        }
        for block in blocks
    ]


def _ticks(blocks: tuple[Block, ...], times: Times, n: int) -> Iterator[int]:
    """Ticks of 1, 10, 100, … ns from the finest for which compute alone stays below the limit."""
    total = sum(
        (n if block.kind == "split" else 1) * sum(max(max(row) for row in rows) for rows in phase_rows.values())
        for block, phase_rows in zip(blocks, times, strict=True)
    )
    tick_ns = 1
    while True:
        if total // tick_ns < ACTIVITY_LIMIT:
            yield tick_ns
        tick_ns *= 10


def _layers(blocks: tuple[Block, ...], times: Times, tick_ns: int) -> tuple[Layer, ...]:
    layers = []
    for block, phase_rows in zip(blocks, times, strict=True):
        tables = {
            phase: tuple(tuple(-(-ns // tick_ns) for ns in row) for row in rows) for phase, rows in phase_rows.items()
        }
        edges = [(s, WORD * elements) for s, elements in block.reads.items() if s != NETWORK_INPUT]
        layers.append(
            Layer(
                name=block.row.name,
                kind=block.kind,
                inputs=tuple(Edge(source=source, bytes=size) for source, size in edges),
                network_input_bytes=WORD * block.reads.get(NETWORK_INPUT, 0),
                output_bytes=block.output_bytes,
                weight_bytes=block.weight_bytes,
                **tables,
            )
        )
    return tuple(layers)
