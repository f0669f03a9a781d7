"""Arrays that planners make of an instance: prefix sums, transfers, AllReduce as a fraction, what a device lacks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from mapgap.problems.hybrid_pipeline.instance import DeviceType, Instance

Array = NDArray[np.int64]


def prefix_sums(values: Sequence[int]) -> Array:
    """(L + 1,): sums over the layers before a cut."""
    return np.concatenate(([0], np.cumsum(np.array(values, np.int64)))).astype(np.int64)


def times_before(kind: DeviceType, batch: int) -> tuple[Array, Array]:
    """Forward and backward ticks of the layers before a cut, ``(L + 1, B + 1)`` each, by share."""
    made = []
    for table in (kind.forward, kind.backward):
        sums = np.zeros((len(table) + 1, batch + 1), np.int64)
        np.cumsum(np.array(table, np.int64)[:, :batch], axis=0, out=sums[1:, 1:])
        made.append(sums)
    return made[0], made[1]


def transfers(instance: Instance, batch: int, rates: Sequence[int], late: Sequence[int] = ()) -> Array:
    """(W, L + 1): ticks one way of a micro-batch over every cut, by rate (bytes per second) and latency (ns); 0 at the
    ends, and where one device is alone (its bytes are unlimited, for nobody sends them)."""
    if len(instance.devices) == 1:
        return np.zeros((len(rates), len(instance.layers) + 1), np.int64)
    sizes = [0, *(batch * layer.output_bytes for layer in instance.layers[:-1]), 0]
    links = zip(rates, late or [0] * len(rates), strict=True)
    return np.array([[instance.transfer_ticks(size, *link) for size in sizes] for link in links], np.int64)


def ordered(instance: Instance) -> bool:
    """Of any two links one is no worse than the other, in bandwidth and in latency."""
    if not instance.latency_ns:
        return True
    n = len(instance.devices)
    found = sorted({(instance.bandwidth[d][e], -instance.latency_ns[d][e]) for d in range(n) for e in range(d)})
    return all(a[1] <= b[1] for a, b in pairwise(found))


def allreduce_fraction(instance: Instance, members: int, slowest: int, late: int = 0) -> tuple[int, int, int]:
    """Eq. (5): num, den and add of ``T_a = ceil((weight bytes * num + add) / den)`` ticks for that many members, in
    lowest terms; without weights it is 0."""
    execution = instance.execution
    if members < 2 or not execution.training:
        return 0, 1, 0
    times, bottom = execution.allreduce_factor * (members - 1), slowest * instance.tick_ns
    if execution.medium == "links" and not instance.in_turn:
        bottom *= members
    if execution.allreduce == "rotating":
        bottom *= members
    top, add = times * 10**9, times * members * late * slowest
    shared = math.gcd(top, add, bottom)
    return top // shared, bottom // shared, add // shared


def lacking(instance: Instance, device: int) -> dict[int, list[int]]:
    """Weight bytes that a device fetches after a failure, layer by layer, by the device they come from (rule 11)."""
    if instance.replanning is None:
        return {}
    held = instance.replanning.held
    found: dict[int, list[int]] = {}
    for layer, facts in enumerate(instance.layers):
        holders = [d for d, row in enumerate(held) if any(start <= layer < stop for start, stop in row)]
        if device not in holders:
            source = max(holders, key=lambda d: (instance.bandwidth[d][device], -d))
            found.setdefault(source, [0] * len(instance.layers))[layer] = facts.weight_bytes
    return found
