"""Instances whose optimum follows from that of another one."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

from mapgap.core import Relation
from mapgap.instances.neuron_masking.parts import only_cycles
from mapgap.problems.neuron_masking import Device, Instance, Rate

Change = Callable[[Any], dict[str, Any]]


def relations(instance: Instance, rng: random.Random) -> list[Relation]:
    """More of anything, other units, another order."""
    return [*_more(instance, rng), *_other_units(instance), *_other_order(instance, rng)]


def _more(instance: Instance, rng: random.Random) -> Iterator[Relation]:
    """What allows every mask that is allowed, at no higher cost."""
    extra = rng.randint(1, 9)
    on_devices: dict[str, Callable[[Device], dict[str, Any]]] = {
        "more time": lambda device: {"time_limit": tuple(limit + extra for limit in device.time_limit)},
        "more work": lambda device: {"work_limit": tuple(limit + extra for limit in device.work_limit)},
        "more memory": lambda device: {"memory_limit": device.memory_limit + extra},
        "less overhead": lambda device: {"overhead": max(0, device.overhead - extra)},
        "faster main memory": lambda device: {"transfer": _faster(device.transfer)},
        "faster secondary memory": lambda device: {"spill": _faster(device.spill)},
    }
    for label, change in on_devices.items():
        yield Relation(label, instance.changed(devices=_each(instance.devices, change)), equal=False)
    fewer = _each(instance.layers, lambda layer: {"least": max(1, layer.least - 1)})
    yield Relation("smaller floors", instance.changed(layers=fewer), equal=False)
    # What hard memory allows spills nothing.
    yield Relation("spilling memory", instance.changed(memory_mode="spill"), equal=instance.memory_mode == "spill")


def _other_units(instance: Instance) -> Iterator[Relation]:
    """Every quantity of one kind times three; an instance that grows too large is left out."""
    memory = {
        "layers": _each(instance.layers, lambda layer: {"weights": 3 * layer.weights, "features": 3 * layer.features}),
        "devices": _each(
            instance.devices,
            lambda device: {
                "memory_limit": 3 * device.memory_limit,
                "transfer": Rate(ticks=device.transfer.ticks, per=3 * device.transfer.per),
                "spill": Rate(ticks=device.spill.ticks, per=3 * device.spill.per),
            },
        ),
    }
    for changed in instance.if_valid(**memory):
        yield Relation("all memory tripled", changed)
    times = {
        "layers": _each(instance.layers, lambda layer: {"work": 3 * layer.work}),
        "devices": _each(
            instance.devices,
            lambda device: {
                "overhead": 3 * device.overhead,
                "time_limit": tuple(3 * limit for limit in device.time_limit),
                "work_limit": tuple(3 * limit for limit in device.work_limit),
                "transfer": Rate(ticks=3 * device.transfer.ticks, per=device.transfer.per),
                "spill": Rate(ticks=3 * device.spill.ticks, per=device.spill.per),
            },
        ),
    }
    # ceil(3 x) is at most 3 ceil(x): rounding to finer ticks loses less, unless nothing is rounded.
    whole = all(_unrounded(device.transfer) and _unrounded(device.spill) for device in instance.devices)
    for changed in instance.if_valid(**times):
        yield Relation("all times tripled", changed, equal=whole)
    worth = _each(
        instance.devices,
        lambda device: {"contributions": tuple(tuple(3 * u for u in row) for row in device.contributions)},
    )
    factor = 3 if instance.objective in ("contribution", "rate") else 1
    for changed in instance.if_valid(devices=worth):  # a rate is rounded down: finer contributions lose less
        yield Relation("all contributions tripled", changed, factor, equal=instance.objective != "rate")


def _other_order(instance: Instance, rng: random.Random) -> Iterator[Relation]:
    """What no optimum depends on: the order of devices and neurons, P_s, and cycle times that no plan prefers."""
    shuffled = tuple(rng.sample(instance.devices, len(instance.devices)))
    yield Relation("devices in another order", instance.changed(devices=shuffled))
    neurons = _each(
        instance.devices,
        lambda device: {"contributions": tuple(tuple(rng.sample(row, len(row))) for row in device.contributions)},
    )
    yield Relation("neurons in another order", instance.changed(devices=neurons))
    yield Relation("another share by contribution", instance.changed(top_percent=rng.randint(0, 100)))
    last = len(instance.cycle_ms) - 1
    # A longer cycle allows no less, and only a rate counts the time.
    longest = instance.changed(**only_cycles(instance, [last]))
    if instance.objective != "rate":
        yield Relation("the longest cycle alone", longest)
    twins = tuple(twin for device in instance.devices for twin in (device, _renamed(device)))
    factor = 1 if instance.objective == "smallest_share" else 2
    yield Relation("every device twice", instance.changed(devices=twins), factor, equal=instance.objective != "rate")


def _each(things: tuple[Any, ...], change: Change) -> tuple[Any, ...]:
    return tuple(thing.model_copy(update=change(thing)) for thing in things)


def _faster(rate: Rate) -> Rate:
    return Rate(ticks=rate.ticks, per=rate.per + 1)


def _unrounded(rate: Rate) -> bool:
    return rate.ticks % rate.per == 0


def _renamed(device: Device) -> Device:
    return device.model_copy(update={"name": f"{device.name}'"})
