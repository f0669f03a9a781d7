"""Random plans, and seeded random instances: synthetic chains in microseconds, and many models of Table 1."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial
from typing import Any

from mapgap.instances.drawing import enlarged, generated, spans, stretched
from mapgap.instances.editing import each
from mapgap.instances.multi_model_splitting.compact import Compact, CompactDevice, CompactPipeline, expand
from mapgap.instances.multi_model_splitting.models import TITLES
from mapgap.instances.multi_model_splitting.relations import timed
from mapgap.problems.multi_model_splitting import (
    Boundary,
    Device,
    Instance,
    Layer,
    Pipeline,
    PipelinePlan,
    Plan,
    Requirement,
    Segment,
)

TICK_NS = 1000
SENSORS, INTERFACES = ("camera", "microphone"), ("display", "haptic")
SMALL_MODELS = tuple(TITLES)[:6]
"""Models that fit into one MAX78000."""
LARGE_MODELS = tuple(TITLES)[6:]
"""Models that do not."""


def tiny(seed: int) -> Instance:
    """One to three pipelines of one to three layers on one to three devices.

    Every third seed shares operations; weights, bias or layers bind in most, and about one in four has no plan.
    """
    rng = random.Random(f"tiny-{seed}")
    shape = rng.choice([(1, 3, 3), (2, 3, 2), (2, 2, 3), (2, 3, 3), (3, 2, 2), (3, 3, 2), (2, 4, 2), (3, 3, 1)])
    return _chains(rng, "tiny", seed, *shape, fill=rng.choice((0.3, 0.6, 0.8, 1.0, 1.2)), fixed=0.7)


def realistic(seed: int) -> Instance:
    """Like ``tiny``, with durations of 10^3 to 10^7 ticks."""
    base = tiny(seed)

    def change(rng: random.Random, largest: int) -> dict[str, Any]:
        ticks = stretched(rng, 30, largest)
        busy = stretched(rng, 30, rng.choice((1000, largest)))  # inference may be much shorter than transfers
        longer = partial(timed, moving=lambda row: tuple(map(ticks, row)), computing=lambda row: tuple(map(busy, row)))
        return {"pipelines": each(base.pipelines, longer)}

    return enlarged(base, seed, change)


def small(seed: int) -> Instance:
    """Three to five pipelines of four to eight layers on three or four devices; memory fill 0.3 to 0.95."""
    rng = random.Random(f"small-{seed}")
    pipelines, layers, n = rng.randint(3, 5), rng.randint(4, 8), rng.randint(3, 4)
    return _chains(rng, "small", seed, pipelines, layers, n, fill=rng.uniform(0.3, 0.95), fixed=0.6)


def full(seed: int) -> Instance:
    """Like ``small`` with all three memories filled to 0.9 to 1, where sequential planning often runs out of them."""
    rng = random.Random(f"full-{seed}")
    pipelines, layers, n = rng.randint(3, 5), rng.randint(4, 8), rng.randint(3, 4)
    return _chains(rng, "full", seed, pipelines, layers, n, fill=rng.uniform(0.9, 1.0), fixed=0.6)


def wearables(pipelines: int, devices: int, models: tuple[str, ...], large: int, family: str, seed: int) -> Instance:
    """Random models of Table 1 from a random device to a random device.

    Parameters
    ----------
    large : int
        Devices with a MAX78002; the others have a MAX78000.
    """
    rng = random.Random(f"{family}-{seed}")
    chosen = partial(rng.choice, models)
    return _wearables(rng, pipelines, devices, chosen, large, family, seed)


def large_models(pipelines: int, devices: int, large: int, family: str, seed: int) -> Instance:
    """Like ``wearables``, with every model of Table 1, at least four large ones, and the rest at random.

    Large models are more than the devices with a MAX78002 can hold, or nearly so; the others have to be cut.
    """
    rng = random.Random(f"{family}-{seed}")
    fixed = [*TITLES, *(rng.choice(LARGE_MODELS) for _ in range(4 - len(LARGE_MODELS)))]
    drawn = [*fixed, *(rng.choice(tuple(TITLES)) for _ in range(pipelines - len(fixed)))]
    rng.shuffle(drawn)
    return _wearables(rng, pipelines, devices, iter(drawn).__next__, large, family, seed)


def _wearables(
    rng: random.Random, pipelines: int, devices: int, model: Callable[[], str], large: int, family: str, seed: int
) -> Instance:
    types = ["MAX78002"] * large + ["MAX78000"] * (devices - large)
    rng.shuffle(types)
    names = [f"d{d + 1}" for d in range(devices)]
    compact = Compact(
        name=f"{family}_{seed}",
        source=f"generated: family {family}, models of Table 1 of Synergy",
        tags=("generated", family),
        devices=tuple(CompactDevice(name=name, type=kind) for name, kind in zip(names, types, strict=True)),
        pipelines=tuple(
            CompactPipeline(
                model=model(),
                source=Requirement(device=rng.choice(names)),
                target=Requirement(device=rng.choice(names)),
            )
            for _ in range(pipelines)
        ),
    )
    return expand(compact)


def _chains(
    rng: random.Random, family: str, seed: int, pipelines: int, layers: int, n: int, fill: float, fixed: float
) -> Instance:
    """Chains with random durations; ``fill`` is demand over capacity, ``fixed`` the share of designated devices."""
    sharing = rng.random() < 1 / 3
    speed = [rng.randint(1, 3) for _ in range(n)]
    made: list[Pipeline] = []
    for p in range(pipelines):
        twin = rng.choice(made) if sharing and made and rng.random() < 0.7 else None
        made.append(_pipeline(rng, p, rng.randint(max(1, layers - 1), layers), speed, n, fixed, twin))
    demand = [
        sum(layer.weights for p in made for layer in p.layers),
        sum(layer.bias for p in made for layer in p.layers),
        sum(len(p.layers) for p in made),
    ]
    tight = rng.choice([(0,), (1,), (2,), (0, 1, 2)])  # which of the three limits binds
    capacity = [[3 * demand[r]] * n for r in range(3)]
    for r in tight:
        parts = [rng.uniform(0.5, 1.5) for _ in range(n)]
        capacity[r] = [round(demand[r] / fill * part / sum(parts)) for part in parts]
    devices = tuple(
        Device(
            name=f"d{d + 1}",
            weights=capacity[0][d],
            bias=capacity[1][d],
            layers=capacity[2][d],
            sensors=tuple(s for s in SENSORS if rng.random() < 0.7),
            interfaces=tuple(s for s in INTERFACES if rng.random() < 0.7),
        )
        for d in range(n)
    )
    return Instance(
        **generated(family, seed),
        objective=rng.choice(("throughput", "throughput", "latency")),
        tick_ns=TICK_NS,
        sharing=sharing,
        devices=devices,
        pipelines=tuple(made),
    )


def _requirement(rng: random.Random, n: int, fixed: float, types: tuple[str, ...]) -> Requirement:
    """A designated device, or a type, or (rarely) anything."""
    if rng.random() < fixed:
        return Requirement(device=f"d{rng.randint(1, n)}")
    return Requirement(type=rng.choice(types)) if rng.random() < 0.7 else Requirement()


def _pipeline(
    rng: random.Random, p: int, layers: int, speed: list[int], n: int, fixed: float, twin: Pipeline | None
) -> Pipeline:
    """A pipeline of its own, or one that can share with ``twin``: the same signal, mostly also the same model."""
    source, target = _requirement(rng, n, fixed, SENSORS), _requirement(rng, n, fixed, INTERFACES)
    if twin is not None and rng.random() < 0.8:
        source = twin.source
    if twin is not None and rng.random() < 0.7:
        return twin.model_copy(update={"name": f"p{p + 1}", "source": source, "target": target})

    def ticks(high: int) -> tuple[int, ...]:
        return tuple(rng.randint(0, high) for _ in range(n))

    boundaries = [
        Boundary(
            bytes=rng.randint(1, 50),
            load=ticks(3) if b < layers else (),
            unload=ticks(3) if b > 0 else (),
            transmit=ticks(30),
            receive=ticks(30),
        )
        for b in range(layers + 1)
    ]
    if twin is not None:  # the same sensed data for another model
        first = twin.boundaries[0]
        boundaries[0] = first.model_copy(update={"load": ticks(3)})
    return Pipeline(
        name=f"p{p + 1}",
        source=source,
        target=target,
        signal=f"signal{p + 1}" if twin is None else twin.signal,
        model=f"model{p + 1}",
        sensing=ticks(12) if twin is None else twin.sensing,
        layers=tuple(
            Layer(
                name=f"l{i}",
                weights=rng.randint(0, 20),
                bias=rng.randint(0, 5),
                output_bytes=rng.randint(1, 50),
                inference=tuple(s * rng.randint(1, 8) for s in speed),
            )
            for i in range(layers)
        ),
        boundaries=tuple(boundaries),
    )


wearables_4x4 = partial(wearables, 4, 4, SMALL_MODELS, 0, "wearables_4x4")
mixed_4x4 = partial(wearables, 4, 4, tuple(TITLES), 1, "mixed_4x4")
wearables_6x4 = partial(wearables, 6, 4, SMALL_MODELS, 0, "wearables_6x4")
mixed_6x4 = partial(wearables, 6, 4, tuple(TITLES), 1, "mixed_6x4")
wearables_10x8 = partial(wearables, 10, 8, SMALL_MODELS, 0, "wearables_10x8")
mixed_10x8 = partial(wearables, 10, 8, tuple(TITLES), 2, "mixed_10x8")
wearables_14x8 = partial(wearables, 14, 8, SMALL_MODELS, 0, "wearables_14x8")
mixed_14x8 = partial(wearables, 14, 8, tuple(TITLES), 2, "mixed_14x8")
wearables_20x16 = partial(wearables, 20, 16, SMALL_MODELS, 0, "wearables_20x16")
mixed_20x16 = partial(wearables, 20, 16, tuple(TITLES), 4, "mixed_20x16")
wearables_30x20 = partial(wearables, 30, 20, SMALL_MODELS, 0, "wearables_30x20")
mixed_30x20 = partial(wearables, 30, 20, tuple(TITLES), 5, "mixed_30x20")
large_models_20x16 = partial(large_models, 20, 16, 4, "large_models_20x16")
large_models_30x20 = partial(large_models, 30, 20, 5, "large_models_30x20")


COPIED, REVISITING, LOST = 0.6, 0.15, 0.05
"""How often a pipeline that may share does what an earlier one does, may come back to a device that it left, and starts
or ends at a device that its requirement does not name."""


def random_plan(instance: Instance, rng: random.Random) -> Plan:
    """Contiguous segments for every pipeline; memory is not looked at."""
    found: list[PipelinePlan] = []
    for p, pipeline in enumerate(instance.pipelines):
        signal, model = pipeline.signal, pipeline.model
        twins = [q for q in range(p) if (instance.pipelines[q].signal, instance.pipelines[q].model) == (signal, model)]
        made = _execution_plan(instance, p, rng)
        if instance.sharing and twins and rng.random() < COPIED:
            made = found[rng.choice(twins)].model_copy(update={"target": made.target})
        found.append(made)
    return Plan(pipelines=tuple(found))


def _execution_plan(instance: Instance, p: int, rng: random.Random) -> PipelinePlan:
    """Few segments are as frequent as many."""
    layers, n = len(instance.pipelines[p].layers), len(instance.devices)
    if rng.random() < REVISITING:
        count = rng.randint(1, layers)
        devices = rng.choices(range(n), k=count)
    else:
        count = rng.randint(1, min(layers, n))
        devices = rng.sample(range(n), count)
    parts = zip(devices, spans(rng, layers, count), strict=True)
    segments = tuple(Segment(device=d, first=first, last=last) for d, (first, last) in parts)
    source, target = (_end(allowed, n, rng) for allowed in (instance.sources(p), instance.targets(p)))
    return PipelinePlan(source=source, target=target, segments=segments)


def _end(allowed: list[int], n: int, rng: random.Random) -> int:
    return rng.choice(allowed) if allowed and rng.random() >= LOST else rng.randrange(n)
