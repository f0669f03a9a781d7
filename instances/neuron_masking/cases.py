"""Case splits and smaller instances of neuron masking."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from mapgap.core import Case
from mapgap.instances.editing import case, each, edited, ordered, replaced, without
from mapgap.problems.neuron_masking import SHARE, Device, Instance, costs
from mapgap.problems.neuron_masking.lowered.shares import uniform_mask


def cases(instance: Instance) -> list[Case]:
    """Split on the cycle time, else on how many neurons the widest layer keeps: at most ``k``, or more.

    *Several cycle times*: the shorter half, or the longer half. A plan chooses one, and nothing of it depends on the
    others; so the plans of the cases are those of the instance, with their values.

    *One device, counting neurons or contributions*: ``least = k + 1`` admits the masks that keep more than ``k``. The
    masks that keep at most ``k`` are those of a layer that has only its ``k`` neurons of largest contribution: costs
    count kept neurons only, and of ``n <= k`` kept neurons the best, and legal under every P_s, are the ``n`` largest.

    *Smallest share*, any number of devices: with ``s`` the share of ``k`` neurons of the layer, a plan that is worth
    more than ``s`` keeps more than ``k`` everywhere: ``least = k + 1``. If the optimum ``v`` is at most ``s``, then
    every layer may keep just ``max(least, ceil(v N / SHARE))`` neurons, for costs grow with every count; that is at
    most ``max(least, ceil(s N / SHARE))``, whose costs therefore may replace larger limits. Both cases only restrict
    the instance, and one of them has its optimum.

    Empty if every layer is whole, and for several devices under one cycle time that count neurons or contributions:
    layers are common to all devices, so a bound on the count of one device is no instance.
    """
    if len(instance.cycle_ms) > 1:
        half = len(instance.cycle_ms) // 2
        return [_cycles(instance, range(half)), _cycles(instance, range(half, len(instance.cycle_ms)))]
    layers = instance.layers
    index = max(range(len(layers)), key=lambda i: layers[i].neurons - layers[i].least)
    layer = layers[index]
    share = instance.objective == "smallest_share"
    if layer.least == layer.neurons or (len(instance.devices) > 1 and not share):
        return []
    k = (layer.least + layer.neurons) // 2
    if share:
        low, fewer = f"smallest share at most that of {k} neurons of {layer.name}", _capped(instance, index, k)
    else:
        low, fewer = f"{layer.name} keeps at most {k}", _narrowed(instance, index, k)
    more = replaced(layers, index, edited(layer, least=k + 1))
    return [case(instance, low, **fewer), case(instance, f"{layer.name} keeps more than {k}", layers=more)]


def _cycles(instance: Instance, kept: range) -> Case:
    times = ", ".join(map(str, ordered(instance.cycle_ms, kept)))
    return case(instance, f"cycle of {times} ms", **only_cycles(instance, kept))


def only_cycles(instance: Instance, kept: Sequence[int]) -> dict[str, Any]:
    """Changes of an instance that leave these cycle times, by index."""
    devices = each(
        instance.devices,
        lambda device: {name: ordered(getattr(device, name), kept) for name in ("time_limit", "work_limit")},
    )
    return {"cycle_ms": ordered(instance.cycle_ms, kept), "devices": devices}


def _narrowed(instance: Instance, index: int, k: int) -> dict[str, Any]:
    """A layer with its ``k`` neurons of largest contribution, which may be others on every device."""
    layer = instance.layers[index]

    def largest(device: Device) -> dict[str, Any]:
        row = ordered(device.contributions[index], sorted(device.ranking(index)[:k]))
        return {"contributions": replaced(device.contributions, index, row)}

    narrow = edited(layer, neurons=k, least=min(layer.least, k))
    return {"layers": replaced(instance.layers, index, narrow), "devices": each(instance.devices, largest)}


def _capped(instance: Instance, index: int, k: int) -> dict[str, Any]:
    """Limits of one cycle time at most the costs of the smallest mask with the share of ``k`` neurons of a layer."""
    layers = instance.layers
    share = SHARE * k // layers[index].neurons
    kept = uniform_mask([layer.least for layer in layers], [layer.neurons for layer in layers], share)

    def capped(device: Device) -> dict[str, Any]:
        cost = costs(instance, device, kept)
        limits: dict[str, Any] = {
            "time_limit": (min(device.time_limit[0], cost.time),),
            "work_limit": (min(device.work_limit[0], cost.work),),
        }
        if instance.memory_mode == "hard":  # otherwise the limit says what spills, and a smaller one costs time
            limits["memory_limit"] = min(device.memory_limit, cost.memory)
        return limits

    return {"devices": each(instance.devices, capped)}


def shrink(instance: Instance) -> Iterator[Instance]:
    """One device, one cycle time or one layer less, or a layer with half of its neurons or one less."""
    for d in reversed(range(len(instance.devices))):
        yield from instance.if_valid(devices=without(instance.devices, d))
    cycles = range(len(instance.cycle_ms))
    for c in cycles if len(cycles) > 1 else ():
        yield from instance.if_valid(**only_cycles(instance, without(cycles, c)))
    for index in reversed(range(len(instance.layers))):
        rows = [without(device.contributions, index) for device in instance.devices]
        devices = tuple(edited(d, contributions=row) for d, row in zip(instance.devices, rows, strict=True))
        yield from instance.if_valid(layers=without(instance.layers, index), devices=devices)
    for index, layer in enumerate(instance.layers):
        for k in sorted({layer.neurons // 2, layer.neurons - 1} - {0}):
            yield from instance.if_valid(**_narrowed(instance, index, k))
