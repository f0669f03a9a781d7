"""Instances whose optimum follows from that of a given one."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

from mapgap.core import Relation
from mapgap.problems.multi_model_splitting import (
    RESOURCES,
    Boundary,
    Device,
    Instance,
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
    devices = tuple(instance.devices[d] for d in order)
    yield from _related(instance, "devices in another order", devices=devices, pipelines=on_devices(instance, order))
    mixed = tuple(instance.pipelines[p] for p in rng.sample(range(count), count))
    yield from _related(instance, "pipelines in another order", pipelines=mixed)
    if instance.deployed:
        yield from _related(instance, "nothing deployed", deployed=())
    tripled = _timed(instance, lambda ticks: tuple(3 * each for each in ticks), everything=True)
    yield from _related(instance, "all times tripled", factor=3, pipelines=tripled)


def _never_worse(instance: Instance, rng: random.Random) -> Iterator[Relation]:
    resource = rng.choice(RESOURCES)
    roomy = tuple(_roomier(device, resource) for device in instance.devices)
    yield from _related(instance, f"twice the {resource}", equal=False, devices=roomy)
    faster = _timed(instance, lambda ticks: tuple(each // 2 for each in ticks), everything=False)
    yield from _related(instance, "radios twice as fast", equal=False, pipelines=faster)
    d, n = rng.randrange(len(instance.devices)), len(instance.devices)
    more = (*instance.devices, instance.devices[d].model_copy(update={"name": "one more"}))
    longer = on_devices(instance, [*range(n), d])
    yield from _related(instance, "a device more", equal=False, devices=more, pipelines=longer)
    p = rng.randrange(len(instance.pipelines))
    free = instance.pipelines[p].model_copy(update={"source": Requirement()})
    others = (*instance.pipelines[:p], *instance.pipelines[p + 1 :])
    anywhere = (*instance.pipelines[:p], free, *instance.pipelines[p + 1 :])
    yield from _related(instance, "any source for a pipeline", equal=False, pipelines=anywhere)
    if not instance.sharing:
        yield from _related(instance, "operations shared", equal=False, sharing=True)
    if others:
        left = {pipeline.name for pipeline in others}
        deployed = tuple(old for old in instance.deployed if old.pipeline in left)
        yield from _related(instance, "a pipeline less", equal=False, pipelines=others, deployed=deployed)


def _related(
    instance: Instance, label: str, *, factor: int = 1, equal: bool = True, **changes: object
) -> Iterator[Relation]:
    """The relation, if the changed instance is one (durations may leave the safe range)."""
    for changed in instance.if_valid(**changes, name=f"{instance.name}, {label}"):
        yield Relation(label, changed, factor, equal)


def _roomier(device: Device, resource: str) -> Device:
    return device.model_copy(update={resource: 2 * getattr(device, resource)})


def _timed(instance: Instance, times: Callable[[Ticks], Ticks], *, everything: bool) -> tuple[Pipeline, ...]:
    """The pipelines with other durations, of radios only or of all tasks."""

    def boundary(cut: Boundary) -> Boundary:
        names = ("load", "unload", "transmit", "receive") if everything else ("transmit", "receive")
        return cut.model_copy(update={name: times(getattr(cut, name)) for name in names})

    def pipeline(each: Pipeline) -> Pipeline:
        cuts = {"boundaries": tuple(boundary(cut) for cut in each.boundaries)}
        if not everything:
            return each.model_copy(update=cuts)
        layers = tuple(layer.model_copy(update={"inference": times(layer.inference)}) for layer in each.layers)
        return each.model_copy(update=cuts | {"sensing": times(each.sensing), "layers": layers})

    return tuple(pipeline(each) for each in instance.pipelines)
