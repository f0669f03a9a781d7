"""Random plans, and seeded random instances, built directly in ticks (1 microsecond) and bytes."""

from __future__ import annotations

import random
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from mapgap.core import ACTIVITY_LIMIT
from mapgap.instances.drawing import enlarged, generated, sequence, shares, stretched
from mapgap.instances.editing import each, edited, mapped
from mapgap.instances.suboperation_mapping.relations import tables
from mapgap.problems.suboperation_mapping import Accelerator, Edge, Instance, Layer, Plan
from mapgap.problems.suboperation_mapping.lowered.arrays import Lowered, lower

TICK_NS = 1000
BYTE_PER_TICK = 10**6
"""Bytes per second that move one byte per tick."""

#: Shapes of tiny instances as (kinds, edges, largest batch): s is a split layer, f a fused one. With two accelerators
#: every shape has at most 8 operations under every ratio.
_TINY_TWO = (
    ("s", (), 3),
    ("sf", ((0, 1),), 3),
    ("fs", ((0, 1),), 3),
    ("sff", ((0, 1), (1, 2)), 3),
    ("sff", ((0, 1), (0, 2), (1, 2)), 3),  # skip
    ("sff", ((0, 1), (0, 2)), 3),  # branch
    ("ss", ((0, 1),), 1),
    ("sfs", ((0, 1), (1, 2)), 1),
    ("sss", ((0, 1), (0, 2), (1, 2)), 1),  # skip
    ("ssf", ((0, 2), (1, 2)), 1),  # two inputs of the network, joined
)
_TINY_THREE = (("s", (), 3), ("sf", ((0, 1),), 2), ("ss", ((0, 1),), 1), ("sfs", ((0, 1), (1, 2)), 1))
_TINY_ONE = (("sfs", ((0, 1), (1, 2)), 3), ("ss", ((0, 1),), 3), ("sss", ((0, 1), (0, 2)), 2))


def tiny(seed: int) -> Instance:
    """One to three layers, mostly two accelerators, at most 8 operations; DRAM binds in about a third of the seeds."""
    rng = random.Random(f"tiny-{seed}")
    n = rng.choices((1, 2, 3), weights=(1, 8, 1))[0]
    kinds, edges, largest = rng.choice({1: _TINY_ONE, 2: _TINY_TWO, 3: _TINY_THREE}[n])
    batch = rng.randint(1, largest)
    return _instance(rng, "tiny", seed, kinds, edges, n, batch, binding=rng.random() < 0.4)


def realistic(seed: int) -> Instance:
    """Like ``tiny``, with times and transfers of 10^3 to 10^7 ticks."""
    base = tiny(seed)

    def change(rng: random.Random, largest: int) -> dict[str, Any]:
        ticks = stretched(rng, 24, largest)  # a tile of 6, on a speed of 4
        slow = min(rng.choice((1, 1000, 30_001, 999_983)), largest)  # ticks per byte
        longer = partial(tables, change=lambda rows: mapped(rows, lambda value: ticks(min(value, 24))))
        return {
            "bandwidth": mapped(base.bandwidth, lambda rate: max(1, rate // slow)),
            "layers": each(base.layers, longer),
        }

    return enlarged(base, seed, change)


def small(seed: int) -> Instance:
    """A chain of five to eight layers with a skip in half of the seeds, two or three accelerators, batch 4 to 8."""
    rng = random.Random(f"small-{seed}")
    count = rng.randint(5, 8)
    kinds = "s" + "".join(rng.choice("ssf") for _ in range(count - 1))
    edges = [(i, i + 1) for i in range(count - 1)]
    if rng.random() < 0.5:
        start = rng.randint(0, count - 3)
        edges.append((start, rng.randint(start + 2, count - 1)))
    return _instance(rng, "small", seed, kinds, edges, rng.randint(2, 3), rng.randint(4, 8), binding=rng.random() < 0.4)


def branching(seed: int) -> Instance:
    """Blocks of two branches that fork at a layer and meet in a fused one; two or three accelerators, batch 3 to 6."""
    rng = random.Random(f"branching-{seed}")
    kinds, edges, end = "s", [], 0
    for _ in range(rng.randint(1, 2)):
        first = len(kinds)
        kinds += "ss" + ("f" if rng.random() < 0.7 else "s")
        edges += [(end, first), (end, first + 1), (first, first + 2), (first + 1, first + 2)]
        end = first + 2
    return _instance(
        rng,
        "branching",
        seed,
        kinds,
        edges,
        rng.randint(2, 3),
        rng.randint(3, 6),
        binding=rng.random() < 0.4,
    )


def _instance(
    rng: random.Random,
    family: str,
    seed: int,
    kinds: str,
    edges: Sequence[tuple[int, int]],
    n: int,
    batch: int,
    binding: bool,
) -> Instance:
    speed = [rng.randint(1, 4) for _ in range(n)]
    layers = tuple(_layer(rng, i, kind, edges, speed, batch) for i, kind in enumerate(kinds))
    bandwidth = tuple(
        tuple(BYTE_PER_TICK * (1 if i == j else rng.choice((1, 2, 3, 5, 10))) for j in range(n)) for i in range(n)
    )
    loose = tuple(Accelerator(name=f"A{i}", memory=ACTIVITY_LIMIT, pes=max(1, 5 - speed[i])) for i in range(n))
    instance = Instance(
        **generated(family, seed),
        batch=batch,
        tick_ns=TICK_NS,
        memory_unit_bytes=1,
        flops=1000 * batch,
        accelerators=loose,
        bandwidth=bandwidth,
        layers=layers,
    )
    demand = instance.largest_demand
    memory = [int(demand * rng.uniform(0.3, 1.0)) if binding else demand for _ in range(n)]
    limited = [edited(accelerator, memory=units) for accelerator, units in zip(loose, memory, strict=True)]
    return instance.changed(accelerators=tuple(limited))


def _layer(
    rng: random.Random,
    index: int,
    kind: str,
    edges: Sequence[tuple[int, int]],
    speed: list[int],
    batch: int,
) -> Layer:
    inputs = tuple(Edge(source=a, bytes=rng.randint(0, 8)) for a, b in sorted(edges) if b == index)
    split = kind == "s"

    def table() -> tuple[tuple[int, ...], ...]:
        """Whole batch tiles of random size per accelerator, as DarkFPGA has them; non-decreasing in the share."""
        if not split:
            return tuple((s * rng.randint(0, 3),) for s in speed)
        rows = []
        for s in speed:
            tile, cost = rng.randint(1, 3), s * rng.randint(1, 6)
            rows.append(tuple(-(-share // tile) * cost for share in range(1, batch + 1)))
        return tuple(rows)

    return Layer(
        name=f"{'conv' if split else 'bn'}{index}",
        kind="split" if split else "fused",
        inputs=inputs,
        network_input_bytes=0 if inputs else rng.randint(1, 6),
        output_bytes=rng.randint(1, 8),
        weight_bytes=rng.randint(0, 10) if split else rng.randint(0, 2),
        fp=table(),
        bp=table() if inputs else (),
        wu=table() if split else (),
    )


def random_plan(instance: Instance, rng: random.Random) -> Plan:
    """A plan of a random ratio; some lack an operation, hold one twice, or have orders that wait for each other.

    Others exceed the DRAM, where it binds.
    """
    n = len(instance.accelerators)
    ratio = shares(rng, instance.batch, n)
    lowered = lower(instance, ratio)
    location = [rng.randrange(n) for _ in range(lowered.n)]
    if rng.random() < 0.3:  # few transfers
        location = [location[0]] * lowered.n
    plan = lowered.plan(np.array(location), np.array(random_sequence(lowered, rng)))
    kind = rng.random()
    orders = [list(names) for names in plan.order]
    full = rng.choice([names for names in orders if names])
    if kind < 0.1:
        full.pop(rng.randrange(len(full)))
    elif kind < 0.2:
        rng.choice(orders).append(rng.choice(full))
    elif kind < 0.3:
        full.reverse()
    return Plan(ratio=ratio, order=tuple(tuple(names) for names in orders))


def random_sequence(lowered: Lowered, rng: random.Random) -> list[int]:
    """A random sequence of the operations that respects all precedences."""
    return sequence(rng, lowered.n, lambda operation: [int(p) for p in lowered.predecessors(operation)])
