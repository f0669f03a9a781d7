"""Instances whose optimum follows from that of a given one."""

from __future__ import annotations

import random
from collections.abc import Callable
from math import gcd

from mapgap.core import Relation
from mapgap.problems.suboperation_mapping import Instance, Layer

Table = tuple[tuple[int, ...], ...]


def relations(instance: Instance, rng: random.Random) -> list[Relation]:
    """More DRAM, more bandwidth, accelerators in another order, a tick of half the length.

    With a binding DRAM faster links can hurt: what arrives earlier is stored longer, and a plan cannot wait. So that
    relation, and the rounding of transfers under a finer tick, are left out unless every DRAM holds everything.
    """
    roomy = instance.largest_demand <= min(a.memory for a in instance.accelerators)
    found = [
        Relation("twice the DRAM", _more_memory(instance), equal=False),
        Relation("accelerators in another order", _permuted(instance, rng)),
    ]
    if roomy:
        faster = tuple(tuple(2 * rate for rate in row) for row in instance.bandwidth)
        found.append(Relation("twice the bandwidth", instance.changed(bandwidth=faster), equal=False))
    exact = _transfers_are_whole(instance)
    if instance.tick_ns % 2 == 0 and (exact or roomy):
        layers = tuple(_mapped(layer, lambda table: _times(table, 2)) for layer in instance.layers)
        for finer in instance.if_valid(tick_ns=instance.tick_ns // 2, layers=layers):
            found.append(Relation("ticks of half the length", finer, factor=2, equal=exact))
    return found


def _more_memory(instance: Instance) -> Instance:
    return instance.changed(
        accelerators=tuple(a.model_copy(update={"memory": 2 * a.memory}) for a in instance.accelerators)
    )


def _permuted(instance: Instance, rng: random.Random) -> Instance:
    order = list(range(len(instance.accelerators)))
    rng.shuffle(order)
    return instance.changed(
        accelerators=tuple(instance.accelerators[a] for a in order),
        bandwidth=tuple(tuple(instance.bandwidth[i][j] for j in order) for i in order),
        layers=tuple(_mapped(layer, lambda table: tuple(table[a] for a in order)) for layer in instance.layers),
    )


def _mapped(layer: Layer, change: Callable[[Table], Table]) -> Layer:
    """The layer with all tables changed."""
    tables = {"fp": layer.fp, "bp": layer.bp, "wu": layer.wu}
    return layer.model_copy(update={phase: change(table) for phase, table in tables.items() if table})


def _times(table: Table, factor: int) -> Table:
    return tuple(tuple(factor * ticks for ticks in row) for row in table)


def _transfers_are_whole(instance: Instance) -> bool:
    """No transfer is ever rounded up to ticks."""
    sizes = [
        size for each in instance.layers for size in (each.weight_bytes, each.output_bytes, each.network_input_bytes)
    ]
    sizes += [edge.bytes for layer in instance.layers for edge in layer.inputs]
    unit, n = gcd(*sizes) * 10**9, len(instance.accelerators)
    return all(unit % (instance.bandwidth[i][j] * instance.tick_ns) == 0 for i in range(n) for j in range(n) if i != j)
