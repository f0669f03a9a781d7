"""Latency models of the two accelerator IPs of MTrain, EF-Train and DarkFPGA, in whole nanoseconds.

Every operation takes ``max(cycles / (clock * efficiency), bytes / DRAM bandwidth)`` (a roofline). Both IPs are arrays
of fp32 multiply-accumulate units of 5 DSPs each; they differ in what the array works on at the same time:

=========  ==============================  ==================================================================
IP         array                           cycles of FP and WU (BP: M and N exchanged)
=========  ==============================  ==================================================================
EF-Train   Tm output x Tn input channels   ``share * g * ceil(M / g / Tm) * ceil(N / g / Tn) * R * C * K^2``
DarkFPGA   Tb samples x Tc out channels    ``ceil(share / Tb) * g * ceil(M / g / Tc) * (N / g) * R * C * K^2``
=========  ==============================  ==================================================================

with M output and N input channels, R x C output pixels, kernel K, g groups; a fully connected layer has R = C = K = 1
and N = all inputs. DarkFPGA works on whole batch tiles: its cost is a *step function* of the share.
What is published and what is assumed is said in ``docs/accelerator_models.md``.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from mapgap.instances.facts import load_devices
from mapgap.instances.suboperation_mapping.network import Block, Phase

Array = NDArray[np.int64]
IP = Literal["ef_train", "darkfpga"]
IPS: tuple[IP, ...] = ("ef_train", "darkfpga")

DSP_PER_MAC = 5
"""fp32 multiplier (3 DSP48) and adder (2), the default of the vendor's floating-point core."""
CLOCK_MHZ = 200
"""The published clock of DarkFPGA, for every board and both IPs, capped by a board's typical clock."""
EFFICIENCY_PERMILLE = 940
"""Share of the array's cycles that do work: makes EF-Train on the ZCU102 (VGG-16) give its published 46.99 GFLOPS."""

BATCH_TILE_KEEPS = 90
"""Percent of its best throughput that DarkFPGA may not fall below when it takes a smaller batch tile."""


@dataclass(frozen=True)
class Board:
    """What the latency models know of an FPGA.

    Attributes
    ----------
    name : str
    dsp : int
    memory_bytes : int
        DRAM capacity, GB = 10^9 bytes.
    bandwidth_mbs : int
        DRAM bandwidth in 10^6 bytes per second.
    clock_mhz : int
    """

    name: str
    dsp: int
    memory_bytes: int
    bandwidth_mbs: int
    clock_mhz: int

    @property
    def macs(self) -> int:
        """Multiply-accumulate units."""
        return self.dsp // DSP_PER_MAC


@dataclass(frozen=True)
class Array2D:
    """An IP with its tiles, or with many at once: (Tm, Tn) of EF-Train, (Tb, Tc) of DarkFPGA."""

    ip: IP
    tiles: tuple[Array | int, Array | int]


@cache
def board(name: str) -> Board:
    """A device of ``devices/mtrain_fpga.yaml``.

    Raises
    ------
    KeyError
        No such device.
    """
    facts = load_devices("mtrain_fpga").of(name)
    number = {item: float(facts[item].value) for item in ("dsp", "dram", "dram_bw", "clock_typ")}
    return Board(
        name=name,
        dsp=int(number["dsp"]),
        memory_bytes=round(number["dram"] * 1e9),
        bandwidth_mbs=round(number["dram_bw"] * 1e3),
        clock_mhz=min(CLOCK_MHZ, round(number["clock_typ"] / 1e6)),
    )


def board_names() -> list[str]:
    """Every name a board answers to."""
    table = load_devices("mtrain_fpga")
    return [name for name in table.names() if {"dsp", "dram", "dram_bw", "clock_typ"} <= set(table.of(name))]


def _dimensions(block: Block, phase: Phase) -> tuple[int, int, int, int]:
    """``(M / g, N / g, R * C * K^2, g)``; BP exchanges M and N."""
    row = block.row
    groups = max(1, row.groups)
    outputs, inputs, work = row.cout, row.cin, row.height * row.width * row.kernel**2
    if row.type == "fc":
        inputs, work = row.cin * row.height_in * row.width_in, 1
    outputs, inputs = outputs // groups, inputs // groups
    return (inputs, outputs, work, groups) if phase == "bp" else (outputs, inputs, work, groups)


def _up(a: Array | int, b: Array | int) -> Array:
    """Ceiling of a / b."""
    return np.asarray(-(-np.asarray(a, np.int64) // b), np.int64)


def cycles(block: Block, phase: Phase, ip: IP, first: Array | int, second: Array | int, share: Array | int) -> Array:
    """Array cycles of one operation; ``first``, ``second`` (the tiles) and ``share`` broadcast."""
    m, n, work, groups = _dimensions(block, phase)
    samples = np.asarray(share, np.int64)
    if ip == "ef_train":
        return samples * groups * _up(m, first) * _up(n, second) * work
    return _up(samples, first) * groups * _up(m, second) * n * work


def traffic(block: Block, phase: Phase, share: Array | int) -> Array:
    """DRAM bytes: every operand is read once and every result written once.

    FP reads input and weights and writes the output; BP reads the loss and the weights and writes the loss at the
    input; WU reads input and loss and writes dW. The BP of a batch normalisation reads its stored input as well.
    """
    samples = np.asarray(share, np.int64)
    again = block.input_bytes if block.kind == "fused" and phase == "bp" else 0
    return samples * (block.input_bytes + block.output_bytes + again) + block.weight_bytes


def nanoseconds(block: Block, phase: Phase, array: Array2D, device: Board, share: Array | int) -> Array:
    """Latency of an operation for every share (or pair of tiles), rounded up; a fused layer is bound by DRAM alone."""
    moved = _up(traffic(block, phase, share) * 1000, device.bandwidth_mbs)
    if block.kind == "fused":
        return moved
    busy = cycles(block, phase, array.ip, *array.tiles, share)
    return np.maximum(_up(busy * 10**6, device.clock_mhz * EFFICIENCY_PERMILLE), moved)


def best_array(blocks: tuple[Block, ...], device: Board, batch: int, ip: IP) -> tuple[Array2D, int]:
    """Tiles of an IP on a device for a whole network, and the nanoseconds of that iteration on the device alone.

    For a first tile t the largest second tile that fits, ``macs // t``, is never worse, so one enumeration over t
    is exhaustive. EF-Train takes the best pair (ties: the smaller Tm). DarkFPGA takes the smallest batch tile that
    keeps ``BATCH_TILE_KEEPS`` percent of the best throughput: on-chip buffers, which are not modelled, grow with it.
    """
    widest = max(max(_dimensions(block, "fp")[:2]) for block in blocks)
    limit = min(device.macs, batch if ip == "darkfpga" else widest)
    first = np.arange(1, limit + 1, dtype=np.int64)
    second = device.macs // first
    every = Array2D(ip, (first, second))
    total = np.zeros(limit, np.int64)
    for block in blocks:
        for phase in block.phases:
            total += nanoseconds(block, phase, every, device, batch)
    best = int(np.argmin(total))
    if ip == "darkfpga":
        best = int(np.argmax(total * BATCH_TILE_KEEPS <= total[best] * 100))
    return Array2D(ip, (int(first[best]), int(second[best]))), int(total[best])


def choose(blocks: tuple[Block, ...], device: Board, batch: int, ips: tuple[IP, ...] = IPS) -> tuple[Array2D, int]:
    """Alg. 1, step 2: the IP with the better throughput on the device (DRAM size not considered)."""
    return min((best_array(blocks, device, batch, ip) for ip in ips), key=lambda found: found[1])


def flops(blocks: tuple[Block, ...], batch: int) -> int:
    """2 operations per multiply-accumulate of every FP, BP and WU of an iteration."""
    return 2 * batch * sum(block.row.macs * len(block.phases) for block in blocks if block.kind == "split")
