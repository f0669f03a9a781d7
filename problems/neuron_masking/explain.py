"""Why a mask keeps no more: the limit that binds, what more would bring, where it differs from another mask."""

from __future__ import annotations

from collections.abc import Callable

from mapgap.core import LARGEST, Binding, Case, Exchange, Explainer, PlanTable, quantity, relaxed
from mapgap.problems.neuron_masking.evaluate import costs
from mapgap.problems.neuron_masking.instance import Device, Instance, Mask, Plan

_PS = 1e-12


def binding(instance: Instance, plan: Plan) -> Binding:
    """How much of each limit every device uses, and what one more neuron of each layer would still need."""
    rows, tight = [], []
    for device, mask in zip(instance.devices, plan.masks, strict=True):
        cost = costs(instance, device, mask.kept)
        used = {
            "time": (cost.time, device.time_limit[plan.cycle]),
            "work": (cost.work, device.work_limit[plan.cycle]),
            "memory": (cost.memory, device.memory_limit),
        }
        hard = [name for name in used if name != "memory" or instance.memory_mode == "hard"]
        room = _room(instance, device, mask, plan.cycle)
        closest = max(hard, key=lambda name: used[name][0] / max(1, used[name][1]))
        if not room:
            tight.append(f"{device.name} by {closest}")
        share = {name: f"{100 * have / most:.1f} %" if most else None for name, (have, most) in used.items()}
        rows.append(
            (
                device.name,
                quantity(cost.time * device.tick_ps * _PS, "s"),
                share["time"],
                share["work"],
                share["memory"],
                ", ".join(room[:4]) + (f" and {len(room) - 4} more" if len(room) > 4 else "") or None,
            )
        )
    if tight:
        sentence = f"No layer can keep one more neuron on: {', '.join(tight)} (the limit with the least room)."
    else:
        sentence = "On every device some layer could keep one more neuron."
    columns = ("device", "cycle takes", "of the time", "of the work", "of the memory", "room for one more neuron of")
    labels = {(device.name, bar) for device in instance.devices for bar in ("main memory", "spill")}
    return Binding(sentence, PlanTable(columns, tuple(rows), columns[1:5]), frozenset(labels))


def _room(instance: Instance, device: Device, mask: Mask, cycle: int) -> list[str]:
    """Layers that could keep one more neuron, all others as they are."""
    found = []
    for i, layer in enumerate(instance.layers):
        if mask.kept[i] >= layer.neurons:
            continue
        cost = costs(instance, device, [*mask.kept[:i], mask.kept[i] + 1, *mask.kept[i + 1 :]])
        fits = cost.time <= device.time_limit[cycle] and cost.work <= device.work_limit[cycle]
        if fits and (instance.memory_mode == "spill" or cost.memory <= device.memory_limit):
            found.append(layer.name)
    return found


def relaxations(instance: Instance) -> list[Case]:
    """Each limit one tenth larger, and twice as large."""
    found = []
    for label, top, bottom in (("a tenth more", 11, 10), ("twice the", 2, 1)):
        for name, fields in (
            ("time and work", ("time_limit", "work_limit")),
            ("memory", ("memory_limit",)),
        ):
            devices = []
            for device in instance.devices:
                data = device.model_dump()
                for field in fields:
                    data[field] = _scaled(data[field], top, bottom)
                devices.append(data)
            found += relaxed(instance, f"{label} {name}", devices=devices)
    if any(layer.least > 1 and layer.least < layer.neurons for layer in instance.layers):
        layers = [
            {**layer.model_dump(), "least": layer.least if layer.least == layer.neurons else 1}
            for layer in instance.layers
        ]
        found += relaxed(instance, "no least number of neurons", layers=layers)
    return found


def _scaled(value: int | tuple[int, ...], top: int, bottom: int) -> int | tuple[int, ...]:
    if isinstance(value, int):
        return min(value * top // bottom, LARGEST)
    return tuple(min(each * top // bottom, LARGEST) for each in value)


def exchanges(instance: Instance, plan: Plan, other: Plan) -> list[Exchange]:
    """The cycle time, then layer by layer; of a fleet device by device."""
    found = []
    if plan.cycle != other.cycle:
        label = f"cycle of {instance.cycle_ms[plan.cycle]} to {instance.cycle_ms[other.cycle]} ms"
        found.append(Exchange(label, lambda p: p.model_copy(update={"cycle": other.cycle})))
    for d, device in enumerate(instance.devices):
        before, after = plan.masks[d], other.masks[d]
        if before == after:
            continue
        if len(instance.devices) > 1:
            label = f"{device.name}: {sum(before.kept):,} to {sum(after.kept):,} neurons"
            found.append(Exchange(label, _masking(d, after)))
            continue
        for i, layer in enumerate(instance.layers):
            if before.kept[i] != after.kept[i]:
                label = f"{layer.name}: {before.kept[i]:,} to {after.kept[i]:,} of {layer.neurons:,} neurons"
            elif _neurons(device, before, i) != _neurons(device, after, i):
                label = f"{layer.name}: other neurons, as many"
            else:
                continue
            found.append(Exchange(label, _keeping(d, i, after)))
    return found


def _masking(d: int, after: Mask) -> Callable[[Plan], Plan]:
    def change(p: Plan) -> Plan:
        return p.model_copy(update={"masks": tuple(after if k == d else mask for k, mask in enumerate(p.masks))})

    return change


def _neurons(device: Device, mask: Mask, i: int) -> set[int]:
    """The kept neurons of a layer; of a mask that states none those of largest contribution."""
    stated = _chosen(mask, i)
    return set(device.ranking(i)[: mask.kept[i]] if stated is None else stated)


def _chosen(mask: Mask, i: int) -> tuple[int, ...] | None:
    return None if mask.chosen is None else mask.chosen[i]


def _keeping(d: int, i: int, after: Mask) -> Callable[[Plan], Plan]:
    """Numbers and indices of one layer, of which a mask states those of all layers or none."""

    def change(p: Plan) -> Plan:
        own = p.masks[d]
        kept = tuple(after.kept[k] if k == i else n for k, n in enumerate(own.kept))
        chosen = tuple(_chosen(after if k == i else own, k) for k in range(len(kept)))
        stated = None if all(each is None for each in chosen) else chosen
        return _masking(d, Mask(kept=kept, chosen=stated))(p)

    return change


EXPLAINER = Explainer(binding, relaxations, exchanges)
