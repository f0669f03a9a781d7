"""What one instance of neuron masking says of another: optima, plans, bounds."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

from mapgap.core import Relation
from mapgap.instances.editing import each, edited, mapped, related
from mapgap.instances.neuron_masking.cases import only_cycles
from mapgap.problems.neuron_masking import MS_PER_HOUR, Device, Instance, Layer, Plan, Rate


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
        yield from related(instance, label, equal=False, devices=each(instance.devices, change))
    fewer = each(instance.layers, lambda layer: {"least": max(1, layer.least - 1)})
    yield from related(instance, "smaller floors", equal=False, layers=fewer)
    # What hard memory allows spills nothing.
    yield from related(instance, "spilling memory", equal=instance.memory_mode == "spill", memory_mode="spill")


def _other_units(instance: Instance) -> Iterator[Relation]:
    """Every quantity of one kind times three; an instance that grows too large is left out."""
    memory: dict[str, Any] = {
        "layers": each(instance.layers, lambda layer: {"weights": 3 * layer.weights, "features": 3 * layer.features}),
        "devices": each(
            instance.devices,
            lambda device: {
                "memory_limit": 3 * device.memory_limit,
                "transfer": edited(device.transfer, per=3 * device.transfer.per),
                "spill": edited(device.spill, per=3 * device.spill.per),
            },
        ),
    }
    yield from related(instance, "all memory tripled", **memory)
    times: dict[str, Any] = {
        "layers": each(instance.layers, lambda layer: {"work": 3 * layer.work}),
        "devices": each(
            instance.devices,
            lambda device: {
                "overhead": 3 * device.overhead,
                "time_limit": tuple(3 * limit for limit in device.time_limit),
                "work_limit": tuple(3 * limit for limit in device.work_limit),
                "transfer": edited(device.transfer, ticks=3 * device.transfer.ticks),
                "spill": edited(device.spill, ticks=3 * device.spill.ticks),
            },
        ),
    }
    # ceil(3 x) is at most 3 ceil(x): rounding to finer ticks loses less, unless nothing is rounded.
    whole = all(_unrounded(device.transfer) and _unrounded(device.spill) for device in instance.devices)
    yield from related(instance, "all times tripled", equal=whole, **times)
    worth = each(instance.devices, lambda device: {"contributions": mapped(device.contributions, lambda u: 3 * u)})
    factor = 3 if instance.objective in ("contribution", "rate") else 1
    # A rate is rounded down: finer contributions lose less.
    yield from related(instance, "all contributions tripled", factor, equal=instance.objective != "rate", devices=worth)


def _other_order(instance: Instance, rng: random.Random) -> Iterator[Relation]:
    """What no optimum depends on: the order of devices and neurons, P_s, and cycle times that no plan prefers."""
    shuffled = tuple(rng.sample(instance.devices, len(instance.devices)))
    yield from related(instance, "devices in another order", devices=shuffled)
    neurons = each(
        instance.devices,
        lambda device: {"contributions": tuple(tuple(rng.sample(row, len(row))) for row in device.contributions)},
    )
    yield from related(instance, "neurons in another order", devices=neurons)
    yield from related(instance, "another share by contribution", top_percent=rng.randint(0, 100))
    # A longer cycle allows no less, and only a rate counts the time.
    if instance.objective != "rate":
        yield from related(instance, "the longest cycle alone", **only_cycles(instance, [len(instance.cycle_ms) - 1]))
    twins = tuple(twin for device in instance.devices for twin in (device, edited(device, name=f"{device.name}'")))
    factor = 1 if instance.objective == "smallest_share" else 2
    yield from related(instance, "every device twice", factor, equal=instance.objective != "rate", devices=twins)


def _faster(rate: Rate) -> Rate:
    return edited(rate, per=rate.per + 1)


def _unrounded(rate: Rate) -> bool:
    return rate.ticks % rate.per == 0


def carried(plan: Plan, source: Instance, target: Instance) -> Iterator[Plan]:
    """The counts of every mask, under every cycle time of the target.

    Which neurons are kept is left open: those of largest contribution are legal and best (rule 9).
    """
    shape = [layer.neurons for layer in source.layers]
    if shape != [layer.neurons for layer in target.layers] or len(source.devices) != len(target.devices):
        return
    masks = each(plan.masks, lambda mask: {"chosen": None})
    for cycle in range(len(target.cycle_ms)):
        yield Plan(cycle=cycle, masks=masks)


def implied(bound: int, source: Instance, target: Instance) -> int | None:
    """What follows where every plan of the target is one of the source and keeps no less there.

    Required: as many inputs, layers with as many neurons, floors that are no higher and costs that are no larger; the
    devices, by number, with no slower memory, no larger overhead, no smaller memory, every neuron worth no less; for
    every cycle time of the target one of the source that allows every device no less time and work, for ``rate`` one of
    the same length; memory that spills in the source if in the target; the same objective, or a contribution that
    bounds a rate.

    *Proof.* All costs of Eqs. (1)-(4) are sums and products of numbers that are no larger in the source, rounded up, so
    W, M and T of a mask are no larger, and S neither, as M is no larger and b_M no smaller; what hard memory allows
    spills nothing (rule 6). So the mask keeps all limits of the source under that cycle time. It keeps the same number
    of neurons, the same shares, and, if it is the best of its counts, the ``n_i`` largest contributions: the k-th
    largest of numbers does not fall if none of them does. Rates of the same length follow. With a contribution of at
    most b a rate is at most ``MS_PER_HOUR b // c`` for the shortest cycle time c of the target.
    """
    if source.inputs != target.inputs or len(source.layers) != len(target.layers):
        return None
    if len(source.devices) != len(target.devices) or (target.memory_mode == "spill" and source.memory_mode != "spill"):
        return None
    if not all(map(_no_dearer, source.layers, target.layers)):
        return None
    if not all(map(_no_weaker, source.devices, target.devices)):
        return None
    if not all(_allowed(source, target, cycle) for cycle in range(len(target.cycle_ms))):
        return None
    if (source.objective, target.objective) == ("contribution", "rate"):
        return MS_PER_HOUR * bound // target.cycle_ms[0]
    return bound if source.objective == target.objective else None


def _no_dearer(own: Layer, other: Layer) -> bool:
    costs = ("least", "work", "weights", "features")
    return own.neurons == other.neurons and all(getattr(own, name) <= getattr(other, name) for name in costs)


def _no_weaker(own: Device, other: Device) -> bool:
    return (
        _no_slower(own.transfer, other.transfer)
        and _no_slower(own.spill, other.spill)
        and own.overhead <= other.overhead
        and own.memory_limit >= other.memory_limit
        and all(
            u >= v
            for row, least in zip(own.contributions, other.contributions, strict=True)
            for u, v in zip(row, least, strict=True)
        )
    )


def _no_slower(own: Rate, other: Rate) -> bool:
    return own.ticks * other.per <= other.ticks * own.per


def _allowed(source: Instance, target: Instance, cycle: int) -> bool:
    """Is there a cycle time of the source that allows every device no less?"""
    return any(
        (target.objective != source.objective or target.objective != "rate" or ms == target.cycle_ms[cycle])
        and all(
            own.time_limit[k] >= other.time_limit[cycle] and own.work_limit[k] >= other.work_limit[cycle]
            for own, other in zip(source.devices, target.devices, strict=True)
        )
        for k, ms in enumerate(source.cycle_ms)
    )
