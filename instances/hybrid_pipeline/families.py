"""Random plans, and seeded random instances, built directly in ticks (1 microsecond) and memory units of one byte."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial
from typing import Any

from mapgap.instances.drawing import enlarged, generated, shares, spans, stretched
from mapgap.instances.editing import each, edited, mapped
from mapgap.instances.hybrid_pipeline.cases import tables
from mapgap.instances.hybrid_pipeline.failure import held_by
from mapgap.problems.hybrid_pipeline import (
    Device,
    DeviceType,
    Execution,
    Instance,
    Layer,
    OldStage,
    Plan,
    Replanning,
    Stage,
)
from mapgap.problems.hybrid_pipeline.evaluate import best_shares, warm_up

TICK_NS = 1000
BYTE_PER_TICK = 10**6
"""Bytes per second that move one byte per tick."""
RATE = 12_500_000
"""Bytes per second of 100 Mbit/s."""


def tiny(seed: int) -> Instance:
    """Two to four layers, one to three devices; binding memory, idle devices, uneven links and failures among them."""
    rng = random.Random(f"tiny-{seed}")
    return _random(rng, "tiny", seed, rng.randint(2, 4), rng.randint(1, 3), rng.randint(1, 5))


def realistic(seed: int) -> Instance:
    """Like ``tiny``, with times and transfers of 10^3 to 10^7 ticks."""
    base = tiny(seed)

    def change(rng: random.Random, largest: int) -> dict[str, Any]:
        most = max(max(row) for kind in base.types for table in (kind.forward, kind.backward) for row in table)
        ticks = stretched(rng, most, largest)
        slow = min(rng.choice((1, 1000, 30_001, 99_991)), largest)  # ticks per byte
        return {
            "bandwidth": mapped(base.bandwidth, lambda rate: max(1, rate // slow)),
            "types": each(base.types, partial(tables, change=lambda rows: mapped(rows, ticks))),
        }

    return enlarged(base, seed, change)


def small(seed: int) -> Instance:
    """Three to seven layers, two to four devices, micro-batches of two to eight samples; the same kinds as ``tiny``."""
    rng = random.Random(f"small-{seed}")
    return _random(rng, "small", seed, rng.randint(3, 7), rng.randint(2, 4), rng.randint(2, 8))


def executions(seed: int) -> Instance:
    """Like ``tiny`` (three of four) and ``small``, under executions and objectives of every kind."""
    rng = random.Random(f"executions-{seed}")
    base = small(seed) if seed % 4 == 3 else tiny(seed)
    execution = Execution(
        training=rng.random() < 0.7,
        replication=rng.random() < 0.7,
        allreduce=rng.choice(("round", "micro_batch", "rotating")),
        allreduce_factor=rng.choice((2, 4)),
        medium=rng.choice(("links", "shared")),
        communication=rng.choice(("step", "step", "load", "free")),
        transfers=rng.choice(("one_link", "parallel")),
    )
    n, bandwidth = len(base.devices), base.bandwidth
    if execution.communication == "load":
        execution = execution.model_copy(update={"transfers": "one_link"})
        bandwidth = ((bandwidth[0][-1],) * n,) * n
    return base.changed(
        **generated("executions", seed),
        execution=execution,
        bandwidth=bandwidth,
        objective=rng.choice(("latency", "bottleneck")),
    )


def steady(seed: int) -> Instance:
    """Four to six layers, two to four devices of similar speed, roomy memory, all times 10 to 200: for worst cases.

    Nothing is free and no device is hopeless, so that a large loss on such an instance says something.
    """
    rng = random.Random(f"steady-{seed}")
    count, n, batch = rng.randint(4, 6), rng.randint(2, 4), rng.randint(2, 4)
    types = []
    for t in range(rng.randint(1, n)):
        pace = rng.uniform(1.0, 3.0)
        forward = [pace * rng.uniform(10, 20) for _ in range(count)]
        rows = [tuple(int(base * (0.3 + 0.7 * share / batch)) + 6 for share in range(1, batch + 1)) for base in forward]
        back = tuple(tuple(2 * ticks for ticks in row) for row in rows)
        types.append(DeviceType(name=f"T{t}", memory=10**6, forward=tuple(rows), backward=back))
    return Instance(
        **generated("steady", seed),
        mini_batch=batch * rng.randint(2, 6),
        micro_batch_sizes=(batch,),
        tick_ns=TICK_NS,
        memory_unit_bytes=1,
        types=tuple(types),
        devices=tuple(Device(name=f"D{d}", type=d if d < len(types) else rng.randrange(len(types))) for d in range(n)),
        bandwidth=_links(rng, n),
        layers=tuple(
            Layer(
                name=f"l{i}",
                output_bytes=rng.randint(1, 12),
                weight_bytes=rng.randint(1, 60),
                state_memory=1,
                activation_memory=1,
                flops=rng.randint(1, 20),
            )
            for i in range(count)
        ),
        all_devices=False,
    )


def _random(rng: random.Random, family: str, seed: int, count: int, n: int, batch: int) -> Instance:
    sizes = tuple(sorted({batch, rng.choice([b for b in range(1, batch + 1) if batch % b == 0])}))
    if rng.random() < 0.8:
        sizes = (batch,)
    kinds = rng.randint(1, min(n, 3))
    weights = [rng.choice((0, 1, 3, 10, 40)) for _ in range(count)]
    layers = tuple(
        Layer(
            name=f"l{i}",
            output_bytes=rng.choice((0, 1, 2, 5, 12)),
            weight_bytes=w,
            state_memory=3 * w,
            activation_memory=rng.randint(0, 5),
            flops=rng.randint(1, 20),
        )
        for i, w in enumerate(weights)
    )
    stored = sum(layer.activation_memory for layer in layers)
    roomy = 3 * sum(weights) + (2 * n - 1) * batch * stored
    binding = rng.random() < 0.5
    types = tuple(
        DeviceType(
            name=f"T{t}",
            memory=int(roomy * rng.uniform(0.05, 0.6)) if binding else roomy,
            **_tables(rng, count, max(sizes)),
        )
        for t in range(kinds)
    )
    devices = tuple(Device(name=f"D{d}", type=d if d < kinds else rng.randrange(kinds)) for d in range(n))
    replanning = _failure(rng, count, n, weights) if n > 1 and rng.random() < 0.2 else None
    return Instance(
        **generated(family, seed),
        mini_batch=batch * rng.randint(1, 6),
        micro_batch_sizes=sizes,
        tick_ns=TICK_NS,
        memory_unit_bytes=1,
        types=types,
        devices=devices,
        bandwidth=_links(rng, n),
        layers=layers,
        all_devices=rng.random() < 0.5,
        replanning=replanning,
    )


def _tables(rng: random.Random, count: int, batch: int) -> dict[str, Any]:
    """Saturating times: a constant part, and a part that grows in tiles; the ratio of F to B differs by device."""
    speed, ratio = rng.randint(1, 4), rng.choice((1, 1, 2, 3))
    tables: dict[str, Any] = {}
    for phase, factor in (("forward", 1), ("backward", ratio)):
        rows = []
        for _ in range(count):
            fixed, tile, cost = rng.randint(0, 3), rng.randint(1, 3), speed * factor * rng.randint(0, 6)
            rows.append(tuple(fixed + -(-share // tile) * cost for share in range(1, batch + 1)))
        tables[phase] = tuple(rows)
    return tables


def _links(rng: random.Random, n: int) -> tuple[tuple[int, ...], ...]:
    """The same bandwidth everywhere in half of the cases."""
    uniform = rng.choice((1, 2, 4, 10)) if rng.random() < 0.5 else None
    return _symmetric(n, BYTE_PER_TICK, lambda: (uniform or rng.choice((1, 2, 4, 10))) * BYTE_PER_TICK)


def _symmetric(n: int, own: int, draw: Callable[[], int]) -> tuple[tuple[int, ...], ...]:
    """Bandwidths as they are drawn, row by row below the diagonal; ``own`` on it."""
    matrix = [[own] * n for _ in range(n)]
    for i in range(n):
        for j in range(i):
            matrix[i][j] = matrix[j][i] = draw()
    return tuple(map(tuple, matrix))


def _uneven(rng: random.Random) -> int:
    return rng.choice((5, 8, 12, 30)) * 10**6 + 1


def _failure(rng: random.Random, count: int, n: int, weights: list[int]) -> Replanning:
    """An old pipeline of the survivors and one failed device that was alone in its stage or shared it."""
    p = rng.randint(1, min(n, count))
    members: list[list[int]] = [[s] for s in range(p)]
    chain = spans(rng, count, p)
    for d in range(p, n):
        members[rng.randrange(p)].append(d)
    stages = [OldStage(start=a, stop=b, devices=tuple(group)) for (a, b), group in zip(chain, members, strict=True)]
    held = held_by(stages, n)
    if p > 1 and rng.random() < 0.5:  # the failed device was alone: its stage lives on in the backup only
        lost = rng.randrange(p)
        holder = stages[(lost + 1) % p].devices[0]
        others = [s for s in range(p) if s != lost and stages[s].devices[0] != holder]
        if len(stages[lost].devices) == 1 and others:  # who stands for the failed device joins another stage
            (ghost,), joined = stages[lost].devices, stages[others[0]]
            stages[others[0]] = edited(joined, devices=(*joined.devices, ghost))
            stages[lost] = edited(stages[lost], devices=())
            held[ghost] = ((joined.start, joined.stop),)
    return Replanning(
        failed="X", rounds=rng.randint(1, 5), stages=tuple(stages), held=tuple(held), old_latency=sum(weights)
    )


def clusters(seed: int, count: int, sizes: tuple[int, ...], uneven: bool = False) -> Instance:
    """A deep network whose activations shrink and whose weights grow, on clusters of few device types."""
    rng = random.Random(f"scaling-{seed}-{count}-{sizes}-{uneven}")
    batch, rounds = 32, 16
    layers, forward = [], []
    for i in range(count):
        depth = i / count
        size = int(rng.uniform(0.2, 2.0) * 40_000 * (1 - 0.9 * depth))
        weight = int(rng.uniform(0.0, 2.0) * 30_000 * (0.1 + depth) ** 2 * 213 / count * 4)
        layers.append(
            Layer(
                name=f"l{i}",
                output_bytes=size,
                weight_bytes=weight,
                state_memory=-(-3 * weight // 1024),
                activation_memory=-(-size // 1024),
                flops=int(rng.uniform(0.2, 2.0) * 10**6),
            )
        )
        forward.append(rng.uniform(0.2, 2.0) * 213 / count)
    types = []
    for t in range(len(sizes)):
        speed, ratio = 2.2**t, rng.uniform(1.7, 2.3)
        flat = rng.uniform(0.05, 0.3)
        rows: dict[str, Any] = {
            phase: tuple(
                tuple(int(work * 12 * speed * factor * (flat * batch + share)) for share in range(1, batch + 1))
                for work in forward
            )
            for phase, factor in (("forward", 1.0), ("backward", ratio))
        }
        types.append(DeviceType(name=f"T{t}", memory=(6, 6, 3, 2)[t % 4] * 2**20, **rows))
    devices = tuple(Device(name=f"T{t}_{k}", type=t) for t, number in enumerate(sizes) for k in range(number))
    return Instance(
        **generated("scaling", seed),
        mini_batch=batch * rounds,
        micro_batch_sizes=(batch,),
        tick_ns=20_000,
        memory_unit_bytes=1024,
        types=tuple(types),
        devices=devices,
        bandwidth=_symmetric(len(devices), 1, lambda: _uneven(rng) if uneven else RATE),
        layers=tuple(layers),
        all_devices=True,
    )


#: Layers and devices of each type of the scaling family, by seed; ``True`` marks links of different bandwidth.
SCALING: tuple[tuple[int, tuple[int, ...], bool], ...] = (
    (53, (1, 2, 3), False),
    (106, (1, 2, 3), False),
    (213, (1, 2, 3), False),
    (426, (1, 2, 3), False),
    (1065, (1, 2, 3), False),
    (213, (1, 1, 2), False),
    (213, (2, 2, 4), False),
    (213, (3, 3, 6), False),
    (213, (4, 4, 8), False),
    (213, (1, 2, 3), True),
)


def scaling(seed: int) -> Instance:
    """Case ``seed`` (modulo the length) of :data:`SCALING`: cost against L and N."""
    count, sizes, uneven = SCALING[seed % len(SCALING)]
    return clusters(seed, count, sizes, uneven)


#: Layers, devices, and whether links differ, of the family of devices that are all different, by seed.
DISTINCT: tuple[tuple[int, int, bool], ...] = (
    (213, 8, False),
    (213, 8, True),
    (213, 10, False),
    (213, 12, False),
    (213, 14, False),
    (213, 20, False),
    (213, 20, True),
)


def distinct(seed: int) -> Instance:
    """Case ``seed`` (modulo the length) of :data:`DISTINCT`: no two devices alike, so that groups are most numerous."""
    count, n, uneven = DISTINCT[seed % len(DISTINCT)]
    base = clusters(seed, count, (1,), uneven=False)
    rng = random.Random(f"distinct-{seed}-{count}-{n}-{uneven}")
    types = []
    for d in range(n):
        speed = rng.uniform(1.0, 6.0)
        jitter = [speed * rng.uniform(0.85, 1.15) for _ in range(count)]
        tables: dict[str, Any] = {
            phase: tuple(tuple(int(ticks * by) for ticks in row) for row, by in zip(rows, jitter, strict=True))
            for phase, rows in (("forward", base.types[0].forward), ("backward", base.types[0].backward))
        }
        types.append(DeviceType(name=f"T{d}", memory=rng.choice((2, 3, 4, 6)) * 2**20, **tables))
    return base.changed(
        **generated("distinct", seed),
        types=tuple(types),
        devices=tuple(Device(name=f"D{d}", type=d) for d in range(n)),
        bandwidth=_symmetric(n, RATE, lambda: _uneven(rng) if uneven else RATE),
    )


TRIALS = 20
"""Chains that are drawn until the memory holds one."""


def random_plan(instance: Instance, rng: random.Random) -> Plan:
    """A chain of stages; in half of the plans a layer is in no stage or in two, a device in two, or one is idle.

    Shares solve Eq. (7) wherever the memory holds a micro-batch, and else, or in one plan of ten, are drawn.
    """
    flawed, nested = rng.random() < 0.5, rng.random() < 0.9
    for _ in range(TRIALS):
        spans, groups = _chain(instance, rng)
        if flawed:
            _spoil(rng, spans, groups)
        plan, held = _shared(instance, rng, spans, groups, nested)
        if held:
            break
    return plan


def _chain(instance: Instance, rng: random.Random) -> tuple[list[list[int]], list[list[int]]]:
    """Layers ``[start, stop)`` and devices of every stage; all devices where that is a rule."""
    layers, devices = len(instance.layers), list(range(len(instance.devices)))
    rng.shuffle(devices)
    count = rng.randint(1, min(layers, len(devices)))
    chain = [list(span) for span in spans(rng, layers, count)]
    used = len(devices) if instance.all_devices else rng.randint(count, len(devices))
    groups = [[device] for device in devices[:count]]
    for device in devices[count:used]:
        rng.choice(groups).append(device)
    return chain, groups


def _spoil(rng: random.Random, spans: list[list[int]], groups: list[list[int]]) -> None:
    """Break one rule of a chain, if it can be broken."""
    behind = range(1, len(spans))
    p = rng.choice(behind) if behind else 0
    flaws = ["front"] * (spans[0][1] > 1)
    flaws += ["overlap", "none in front", "device", "device", "device"] * (len(spans) > 1)
    flaws += ["gap"] * (p > 0 and spans[p][1] - spans[p][0] > 1)
    flaws += ["idle"] * any(len(group) > 1 for group in groups)
    flaw = rng.choice(flaws or [""])
    if flaw == "front":
        spans[0][0] += 1
    elif flaw == "none in front":
        del spans[0], groups[0]
    elif flaw == "overlap":
        spans[p][0] -= 1
    elif flaw == "gap":
        spans[p][0] += 1
    elif flaw == "device":
        groups[p].append(rng.choice(groups[p - 1]))
    elif flaw == "idle":
        rng.choice([group for group in groups if len(group) > 1]).pop()


def _shared(
    instance: Instance, rng: random.Random, spans: list[list[int]], groups: list[list[int]], nested: bool
) -> tuple[Plan, bool]:
    """The plan with shares, and whether the memory holds all of its stages."""
    batch = rng.choice(instance.micro_batch_sizes)
    stages, held = [], True
    for p, ((start, stop), group) in enumerate(zip(spans, groups, strict=True)):
        bare = Stage(start=start, stop=stop, devices=tuple(sorted(group)), shares=(0,) * len(group))
        found = best_shares(instance, bare, batch, warm_up(len(spans) - 1 - p, instance.mini_batch // batch))
        held &= found is not None
        if found is None or not nested:
            found = shares(rng, batch, len(group))
        stages.append(edited(bare, shares=found))
    return Plan(micro_batch=batch, stages=tuple(stages)), held
