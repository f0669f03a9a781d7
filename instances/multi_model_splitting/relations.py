"""Instances whose optimum follows from that of a given one."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

from mapgap.core import Relation
from mapgap.instances.editing import each, edited, ordered, related, replaced, without
from mapgap.problems.multi_model_splitting import (
    RESOURCES,
    Boundary,
    Instance,
    Layer,
    Pipeline,
    Requirement,
    on_devices,
)

Ticks = tuple[int, ...]


def relations(instance: Instance, rng: random.Random) -> list[Relation]:
    """What holds of every instance; all times are whole ticks, so nothing is lost by rounding.

    *The same optimum*: devices or pipelines in another order (rules 8 and 9 name devices, signals and models, never
    numbers); nothing deployed (rule 11: it does not change the objective).

    *Three times the optimum*: all durations tripled, as every load and every latency is a sum of durations.

    *At least as good*, because every plan stays allowed and none gets worse: more memory (7), faster radios, a device
    more that nothing has to use, a source that any device will do for (8), operation sharing where there was none (9:
    merging takes loads and layers away), one pipeline less (its tasks go; what others merged with they do themselves,
    so that no unit has more to do and no device more to hold than before).
    """
    return [*_equal(instance, rng), *_never_worse(instance, rng)]


def _equal(instance: Instance, rng: random.Random) -> Iterator[Relation]:
    n, count = len(instance.devices), len(instance.pipelines)
    order = rng.sample(range(n), n)
    moved: dict[str, Any] = {"devices": ordered(instance.devices, order), "pipelines": on_devices(instance, order)}
    yield from related(instance, "devices in another order", **moved)
    mixed = ordered(instance.pipelines, rng.sample(range(count), count))
    yield from related(instance, "pipelines in another order", pipelines=mixed)
    if instance.deployed:
        yield from related(instance, "nothing deployed", deployed=())
    tripled = each(instance.pipelines, lambda pipeline: timed(pipeline, _tripled, _tripled))
    yield from related(instance, "all times tripled", 3, pipelines=tripled)


def _never_worse(instance: Instance, rng: random.Random) -> Iterator[Relation]:
    resource = rng.choice(RESOURCES)
    roomy = each(instance.devices, lambda device: {resource: 2 * getattr(device, resource)})
    yield from related(instance, f"twice the {resource}", equal=False, devices=roomy)
    faster = each(instance.pipelines, lambda pipeline: {"boundaries": each(pipeline.boundaries, _faster)})
    yield from related(instance, "radios twice as fast", equal=False, pipelines=faster)
    d, n = rng.randrange(len(instance.devices)), len(instance.devices)
    more = (*instance.devices, edited(instance.devices[d], name="one more"))
    longer = on_devices(instance, [*range(n), d])
    yield from related(instance, "a device more", equal=False, devices=more, pipelines=longer)
    p = rng.randrange(len(instance.pipelines))
    anywhere = replaced(instance.pipelines, p, edited(instance.pipelines[p], source=Requirement()))
    yield from related(instance, "any source for a pipeline", equal=False, pipelines=anywhere)
    if not instance.sharing:
        yield from related(instance, "operations shared", equal=False, sharing=True)
    if others := without(instance.pipelines, p):
        left = {pipeline.name for pipeline in others}
        deployed = tuple(old for old in instance.deployed if old.pipeline in left)
        yield from related(instance, "a pipeline less", equal=False, pipelines=others, deployed=deployed)


def timed(pipeline: Pipeline, moving: Callable[[Ticks], Ticks], computing: Callable[[Ticks], Ticks]) -> dict[str, Any]:
    """A pipeline's durations changed: those of sensing and of moving data, and those of inference."""

    def boundary(cut: Boundary) -> dict[str, Any]:
        return {name: moving(getattr(cut, name)) for name in ("load", "unload", "transmit", "receive")}

    def layer(old: Layer) -> dict[str, Any]:
        return {"inference": computing(old.inference)}

    return {
        "sensing": moving(pipeline.sensing),
        "layers": each(pipeline.layers, layer),
        "boundaries": each(pipeline.boundaries, boundary),
    }


def _tripled(ticks: Ticks) -> Ticks:
    return tuple(3 * tick for tick in ticks)


def _faster(cut: Boundary) -> dict[str, Any]:
    """Half the time of both radios."""
    return {name: tuple(ticks // 2 for ticks in getattr(cut, name)) for name in ("transmit", "receive")}
