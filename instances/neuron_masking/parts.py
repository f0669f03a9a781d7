"""Case splits and smaller instances of neuron masking."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mapgap.core import Case
from mapgap.problems.neuron_masking import SHARE, Device, Instance, Layer, costs
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
    more = _replaced(instance, index, layer.model_copy(update={"least": k + 1}))
    if share:
        low = f"smallest share at most that of {k} neurons of {layer.name}"
        fewer = _capped(instance, SHARE * k // layer.neurons)
    else:
        low, fewer = f"{layer.name} keeps at most {k}", _narrowed(instance, index, k)
    return [_case(instance, low, fewer), _case(instance, f"{layer.name} keeps more than {k}", more)]


def _case(instance: Instance, label: str, changes: dict[str, Any]) -> Case:
    return Case(label, instance.changed(name=f"{instance.name}, {label}", **changes))


def _cycles(instance: Instance, kept: range) -> Case:
    times = tuple(instance.cycle_ms[c] for c in kept)
    return _case(instance, f"cycle of {', '.join(map(str, times))} ms", only_cycles(instance, list(kept)))


def only_cycles(instance: Instance, kept: list[int]) -> dict[str, Any]:
    """Changes of an instance that leave these cycle times, by index."""
    devices = tuple(
        device.model_copy(
            update={name: tuple(getattr(device, name)[c] for c in kept) for name in ("time_limit", "work_limit")}
        )
        for device in instance.devices
    )
    return {"cycle_ms": tuple(instance.cycle_ms[c] for c in kept), "devices": devices}


def _replaced(instance: Instance, index: int, layer: Layer) -> dict[str, Any]:
    return {"layers": tuple(layer if i == index else old for i, old in enumerate(instance.layers))}


def _narrowed(instance: Instance, index: int, k: int) -> dict[str, Any]:
    """A layer with its ``k`` neurons of largest contribution, which may be others on every device."""
    layer = instance.layers[index]
    devices = tuple(
        _with_row(device, index, tuple(device.contributions[index][j] for j in sorted(device.ranking(index)[:k])))
        for device in instance.devices
    )
    changed = layer.model_copy(update={"neurons": k, "least": min(layer.least, k)})
    return {**_replaced(instance, index, changed), "devices": devices}


def _with_row(device: Device, index: int, row: tuple[int, ...]) -> Device:
    rows = tuple(row if i == index else old for i, old in enumerate(device.contributions))
    return device.model_copy(update={"contributions": rows})


def _capped(instance: Instance, share: int) -> dict[str, Any]:
    """Limits of one cycle time at most the costs of the smallest mask of a share."""
    layers = instance.layers
    kept = uniform_mask([layer.least for layer in layers], [layer.neurons for layer in layers], share)
    devices = []
    for device in instance.devices:
        cost = costs(instance, device, kept)
        limits: dict[str, Any] = {
            "time_limit": (min(device.time_limit[0], cost.time),),
            "work_limit": (min(device.work_limit[0], cost.work),),
        }
        if instance.memory_mode == "hard":  # otherwise the limit says what spills, and a smaller one costs time
            limits["memory_limit"] = min(device.memory_limit, cost.memory)
        devices.append(device.model_copy(update=limits))
    return {"devices": tuple(devices)}


def shrink(instance: Instance) -> Iterator[Instance]:
    """One device, one cycle time or one layer less, or a layer with half of its neurons or one less."""
    for d in reversed(range(len(instance.devices))):
        yield from instance.if_valid(devices=tuple(x for i, x in enumerate(instance.devices) if i != d))
    for c in range(len(instance.cycle_ms)):
        if len(instance.cycle_ms) > 1:
            yield from instance.if_valid(**only_cycles(instance, [i for i in range(len(instance.cycle_ms)) if i != c]))
    for index in reversed(range(len(instance.layers))):
        kept = [i for i in range(len(instance.layers)) if i != index]
        devices = tuple(
            device.model_copy(update={"contributions": tuple(device.contributions[i] for i in kept)})
            for device in instance.devices
        )
        yield from instance.if_valid(layers=tuple(instance.layers[i] for i in kept), devices=devices)
    for index, layer in enumerate(instance.layers):
        for k in sorted({layer.neurons // 2, layer.neurons - 1} - {0}):
            yield from instance.if_valid(**_narrowed(instance, index, k))
