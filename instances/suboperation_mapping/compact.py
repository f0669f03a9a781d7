"""The compact form of an instance, a library network on library FPGAs, and its expansion to integers.

The expansion lowers the network to layers (``network.py``), chooses an accelerator IP per FPGA and tabulates its
latencies (``accelerators.py``), and takes the finest tick that the instance can bear.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import count
from typing import Literal

import numpy as np
from pydantic import Field

from mapgap.core import ACTIVITY_LIMIT, MOST_DEVICES, MOST_SAMPLES, CompactBase, Finding, InputError
from mapgap.instances.expanding import Matrix, all_known, bandwidths, collect, either, finest, numbered
from mapgap.instances.facts import NETWORK_INPUT, load_devices
from mapgap.instances.suboperation_mapping.accelerators import (
    IP,
    IPS,
    Array,
    Array2D,
    Board,
    board,
    board_names,
    choose,
    flops,
    nanoseconds,
)
from mapgap.instances.suboperation_mapping.network import WORD, Block, Phase, blocks_of
from mapgap.problems.suboperation_mapping import Accelerator, Edge, Instance, Layer, Medium

BATCH = {1: 64, 2: 16, 3: 64}
"""Sec. VI-A: batch of each cluster."""
MEMORY_UNIT_BYTES = 1024
TITLES = {"ef_train": "EF-Train", "darkfpga": "DarkFPGA"}
Times = list[dict[Phase, Array]]
"""Per layer and phase: nanoseconds ``[accelerator, share - 1]`` (one column for a fused layer)."""


class Compact(CompactBase):
    """A library network on library FPGAs.

    Attributes
    ----------
    network : str
        A network of the library.
    cluster : {1, 2, 3}, optional
        Cluster of MTrain's Table II.
    devices : tuple of str, optional
        FPGAs by name, in place of ``cluster``; equal ones are numbered.
    batch : int, optional
        Samples of an iteration; Sec. VI-A's 64, 16 and 64 for clusters 1 to 3.
    bandwidth_gbs : float or matrix of float
        Peer-to-peer bandwidth in 10^9 bytes per second, for every pair or from row to column (diagonal ignored).
    ip : {"best", "ef_train", "darkfpga"}
        Accelerator IP of all FPGAs; "best" chooses per FPGA (Alg. 1, step 2).
    medium : {"links", "ports", "shared"}
        What transfers share: nothing, one port per FPGA, or one medium.
    """

    problem: Literal["suboperation_mapping"] = "suboperation_mapping"
    network: str
    cluster: Literal[1, 2, 3] | None = None
    devices: tuple[str, ...] | None = Field(default=None, max_length=MOST_DEVICES)
    batch: int | None = Field(default=None, ge=1, le=MOST_SAMPLES)
    bandwidth_gbs: float | Matrix
    ip: Literal["best", "ef_train", "darkfpga"] = "best"
    medium: Medium = "links"


def expand(compact: Compact) -> Instance:
    """The expanded instance.

    Raises
    ------
    InputError
        Every field that cannot be expanded, each with what was expected and what was found.
    """
    findings: list[Finding] = []
    blocks = collect(findings, lambda: blocks_of(compact.network))
    boards = collect(findings, lambda: _boards(compact))
    batch = collect(findings, lambda: _batch(compact))
    rates = collect(findings, lambda: _bandwidth(compact, boards))
    if blocks is None or boards is None or batch is None or rates is None:
        raise InputError(findings)
    _check_fit(compact.network, blocks, boards)
    ips = IPS if compact.ip == "best" else (compact.ip,)
    arrays, times = _timed(compact.network, tuple(boards), batch, ips)

    def at(tick_ns: int) -> Instance:
        return Instance(
            name=compact.name,
            source=compact.source,
            tags=compact.tags,
            batch=batch,
            tick_ns=tick_ns,
            memory_unit_bytes=MEMORY_UNIT_BYTES,
            flops=flops(blocks, batch),
            accelerators=_accelerators(boards, arrays),
            bandwidth=rates,
            layers=tuple(_layer(block, rows, tick_ns) for block, rows in zip(blocks, times, strict=True)),
            medium=compact.medium,
        )

    return finest(at, _ticks(blocks, times, len(boards)))


def _boards(compact: Compact) -> list[Board]:
    cluster, devices = compact.cluster, compact.devices
    either("cluster", "devices", cluster, devices)
    if devices is None:
        return [board(name) for name in load_devices("mtrain_fpga").clusters[f"C{cluster}"]]
    all_known(devices, board_names(), "FPGA")
    return [board(name) for name in devices]


def _batch(compact: Compact) -> int:
    if compact.batch is not None:
        return compact.batch
    if compact.cluster is None:
        text = "expected a number of samples (only clusters have a default), found none"
        raise InputError(Finding(text, ("batch",)))
    return BATCH[compact.cluster]


def _bandwidth(compact: Compact, boards: list[Board] | None) -> tuple[tuple[int, ...], ...]:
    """Bytes per second between the FPGAs; the diagonal is 1. Without known FPGAs the numbers alone are checked."""
    gbs = compact.bandwidth_gbs
    if boards is not None:
        n = len(boards)
    else:
        n = len(gbs) if isinstance(gbs, tuple) else 2
    return bandwidths("bandwidth_gbs", gbs, n, "GB/s")


def _check_fit(network: str, blocks: tuple[Block, ...], boards: list[Board]) -> None:
    """Weights and gradients of every layer must fit some DRAM."""
    largest = max(device.memory_bytes // MEMORY_UNIT_BYTES for device in boards)
    expected = f"expected layers whose weights and gradients fit a DRAM of {largest * MEMORY_UNIT_BYTES} bytes"
    wrong = [
        Finding(f"{expected}, found {network}'s {block.row.name} with {2 * block.weight_bytes} bytes", ("network",))
        for block in blocks
        if -(-2 * block.weight_bytes // MEMORY_UNIT_BYTES) > largest
    ]
    if wrong:
        raise InputError(wrong)


def _accelerators(boards: list[Board], arrays: list[Array2D]) -> tuple[Accelerator, ...]:
    """Named ``U50LV (DarkFPGA)``, with a number behind a board that occurs more than once."""
    names = numbered([device.name for device in boards])
    return tuple(
        Accelerator(
            name=f"{name} ({TITLES[array.ip]})", memory=device.memory_bytes // MEMORY_UNIT_BYTES, pes=device.dsp
        )
        for name, device, array in zip(names, boards, arrays, strict=True)
    )


@lru_cache(maxsize=64)
def _timed(network: str, boards: tuple[Board, ...], batch: int, ips: tuple[IP, ...]) -> tuple[list[Array2D], Times]:
    """The arrays of the boards and all latencies, which no link changes; for reading only."""
    blocks = blocks_of(network)
    arrays = [choose(blocks, device, batch, ips)[0] for device in boards]
    return arrays, _times(blocks, boards, arrays, batch)


def _times(blocks: tuple[Block, ...], boards: Sequence[Board], arrays: list[Array2D], batch: int) -> Times:
    shares = np.arange(1, batch + 1, dtype=np.int64)

    def rows(block: Block, phase: Phase) -> Array:
        told = shares if block.kind == "split" else shares[-1:]
        return np.stack([nanoseconds(block, phase, a, device, told) for a, device in zip(arrays, boards, strict=True)])

    return [{phase: rows(block, phase) for phase in block.phases} for block in blocks]


def _ticks(blocks: tuple[Block, ...], times: Times, n: int) -> Iterator[int]:
    """Ticks of 1, 10, 100, … ns from the finest for which compute alone stays below the limit."""
    total = sum(
        (n if block.kind == "split" else 1) * sum(int(rows.max()) for rows in tables.values())
        for block, tables in zip(blocks, times, strict=True)
    )
    return (10**k for k in count() if total // 10**k < ACTIVITY_LIMIT)


def _layer(block: Block, times: dict[Phase, Array], tick_ns: int) -> Layer:
    return Layer(
        name=block.row.name,
        kind=block.kind,
        inputs=tuple(Edge(source=s, bytes=WORD * size) for s, size in block.reads.items() if s != NETWORK_INPUT),
        network_input_bytes=WORD * block.reads.get(NETWORK_INPUT, 0),
        output_bytes=block.output_bytes,
        weight_bytes=block.weight_bytes,
        **{phase: tuple(map(tuple, (-(-rows // tick_ns)).tolist())) for phase, rows in times.items()},
    )
