"""An instance as tables of integers, for compiled loops.

Notation: I layers, O options of
all layers in a row, R reads of all layers in a row, S tensors (parts of an output), the network input first.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from mapgap.kernels import Flags, Integer, Integers, Integers2
from mapgap.problems.fpga_gpu_partition.instance import NETWORK_INPUT, Instance, Option, Plan

GPU_TICKS, FPGA_TICKS, ENERGY, MULTIPLIERS, M20K, ON_GPU, ON_FPGA, HOME, JOIN, FOLD = range(10)
"""Columns of ``Tables.options``: ``ON_GPU`` and ``ON_FPGA`` are 1 where such a part runs, ``HOME`` is 1 on the FPGA,
``JOIN`` are the bytes that the part on the other side sends home, ``FOLD`` is 0 where there is none."""


class Tables(NamedTuple):
    """A whole instance.

    Attributes
    ----------
    layers : (modules + 1,)
        First layer of every module.
    first : (I + 1,)
        First option of every layer.
    options : (O, 10)
    reads : (I + 1,)
        First read of every layer.
    source, tensor : (R,)
        Layer (-1 the network input) and tensor of every read.
    offset : (O,)
        ``offset[o] + k`` is the row of ``sizes`` of option o and read k of its layer.
    sizes : (sum of reads over all options, 2)
        Bytes read on the GPU and on the FPGA.
    parts : (I + 1,)
        First tensor of every layer.
    bytes : (S,)
        Of every tensor.
    delivered : (I,)
        Layers whose outputs are the network's.
    touched : (I + 1,) and (…,)
        ``modules[touched[i]:touched[i + 1]]`` have other costs when layer i takes another option; its own is the first.
    modules : (…,)
    module : (I,)
        Of every layer.
    """

    layers: Integers
    first: Integers
    options: Integers2
    reads: Integers
    source: Integers
    tensor: Integers
    offset: Integers
    sizes: Integers2
    parts: Integers
    bytes: Integers
    delivered: Flags
    touched: Integers
    modules: Integers
    module: Integers
    setup_ticks: Integer
    rate: Integer
    setup_energy: Integer
    energy_per_mb: Integer
    power: Integer
    unit: Integer


def tables_of(instance: Instance) -> Tables:
    """The tables of an instance."""
    layers, link = instance.layers, instance.link
    parts = np.cumsum([1, *(len(layer.outputs) for layer in layers)])
    owner = [m for m, module in enumerate(instance.modules) for _ in module.layers]
    readers: list[list[int]] = [[m] for m in owner]
    source, tensor, offset = [], [], []
    options: list[tuple[int, ...]] = []
    sizes: list[tuple[int, int]] = []
    for i, layer in enumerate(layers):
        whole = [instance.read_bytes(r) for r in layer.reads]
        for r in layer.reads:
            source.append(r.source)
            tensor.append(0 if r.source == NETWORK_INPUT else int(parts[r.source]) + r.part)
            if r.source != NETWORK_INPUT and owner[i] not in readers[r.source]:
                readers[r.source].append(owner[i])
        for option in layer.options:
            offset.append(len(sizes))
            options.append(_row(option))
            if option.kind == "split":
                sizes += zip(option.gpu_reads, option.fpga_reads, strict=True)
            else:
                sizes += [(size, 0) if option.kind == "gpu" else (0, size) for size in whole]
    return Tables(
        layers=_starts(len(module.layers) for module in instance.modules),
        first=_starts(len(layer.options) for layer in layers),
        options=np.array(options, np.int64),
        reads=_starts(len(layer.reads) for layer in layers),
        source=np.array(source, np.int64),
        tensor=np.array(tensor, np.int64),
        offset=np.array(offset, np.int64),
        sizes=np.array(sizes, np.int64).reshape(-1, 2),
        parts=parts.astype(np.int64),
        bytes=np.array([instance.input_bytes, *(size for layer in layers for size in layer.outputs)], np.int64),
        delivered=np.array([i in instance.outputs for i in range(len(layers))]),
        touched=_starts(map(len, readers)),
        modules=np.array([m for row in readers for m in row], np.int64),
        module=np.array(owner, np.int64),
        setup_ticks=link.setup_ticks,
        rate=link.bytes_per_second * instance.tick_ns,
        setup_energy=link.setup_energy,
        energy_per_mb=link.energy_per_mb,
        power=instance.standby_mw * instance.tick_ns,
        unit=1000 * instance.energy_unit_nj,
    )


def _row(option: Option) -> tuple[int, ...]:
    return (
        option.gpu_ticks,
        option.fpga_ticks,
        option.gpu_energy + option.fpga_energy,
        option.multipliers,
        option.m20k,
        option.kind != "fpga",
        option.kind != "gpu",
        option.home == "fpga",
        option.gpu_makes if option.home == "fpga" else option.fpga_makes,
        option.fold or 0,
    )


def _starts(lengths: Iterable[int]) -> Integers:
    """Where each of some rows begins that lie one behind the other, and where the last one ends."""
    found: Integers = np.cumsum([0, *lengths]).astype(np.int64)
    return found


def plan_of(instance: Instance, chosen: Sequence[int] | Integers) -> Plan:
    """The plan of options that are numbered through all layers."""
    names = [option.name for layer in instance.layers for option in layer.options]
    return Plan(options=tuple(names[o] for o in chosen))
