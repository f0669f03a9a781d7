"""Instances whose optimum follows from that of a given one."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial
from math import gcd

from mapgap.core import Relation
from mapgap.instances.editing import each, mapped, ordered, related, square
from mapgap.problems.suboperation_mapping import Instance, Layer

Table = tuple[tuple[int, ...], ...]


def relations(instance: Instance, rng: random.Random) -> list[Relation]:
    """More DRAM, more bandwidth, accelerators in another order, a tick of half the length.

    With a binding DRAM faster links can hurt: what arrives earlier is stored longer, and a plan cannot wait. So that
    relation, and the rounding of transfers under a finer tick, are left out unless every DRAM holds everything.
    """
    roomy = instance.largest_demand <= min(a.memory for a in instance.accelerators)
    larger = each(instance.accelerators, lambda a: {"memory": 2 * a.memory})
    order = list(range(len(instance.accelerators)))
    rng.shuffle(order)
    found = [
        *related(instance, "twice the DRAM", equal=False, accelerators=larger),
        *related(
            instance,
            "accelerators in another order",
            accelerators=ordered(instance.accelerators, order),
            bandwidth=square(instance.bandwidth, order),
            layers=each(instance.layers, partial(tables, change=lambda table: ordered(table, order))),
        ),
    ]
    if roomy:
        faster = mapped(instance.bandwidth, lambda rate: 2 * rate)
        found += related(instance, "twice the bandwidth", equal=False, bandwidth=faster)
    exact = _transfers_are_whole(instance)
    if instance.tick_ns % 2 == 0 and (exact or roomy):
        doubled = partial(tables, change=lambda table: mapped(table, lambda ticks: 2 * ticks))
        finer = {"tick_ns": instance.tick_ns // 2, "layers": each(instance.layers, doubled)}
        found += related(instance, "ticks of half the length", 2, equal=exact, **finer)
    return found


def tables(layer: Layer, change: Callable[[Table], Table]) -> dict[str, Table]:
    """The tables that a layer has, changed."""
    return {phase: change(table) for phase in ("fp", "bp", "wu") if (table := getattr(layer, phase))}


def _transfers_are_whole(instance: Instance) -> bool:
    """No transfer is ever rounded up to ticks."""
    names = ("weight_bytes", "output_bytes", "network_input_bytes")
    sizes = [getattr(layer, name) for layer in instance.layers for name in names]
    sizes += [edge.bytes for layer in instance.layers for edge in layer.inputs]
    unit, n = gcd(*sizes) * 10**9, len(instance.accelerators)
    return all(unit % (instance.bandwidth[i][j] * instance.tick_ns) == 0 for i in range(n) for j in range(n) if i != j)
