"""Random plans of an instance, whether they keep the rules or not."""

from __future__ import annotations

import random

from mapgap.problems.neuron_masking import Device, Instance, Mask, Plan

OUTSIDE = 0.03
"""Part of the counts that lie outside of ``least..neurons``."""
STATED = 0.1
"""Part of the plans that state which neurons they keep: those of largest contribution, or any."""


def random_plan(instance: Instance, rng: random.Random) -> Plan:
    """A cycle time and a mask of every device: from all devices at the least neurons to all whole, and a bit beyond."""
    level = rng.random() ** 2  # limits bind between the least and the whole model
    stated = rng.random() < STATED
    masks = tuple(_mask(instance, device, rng, level, stated) for device in instance.devices)
    return Plan(cycle=rng.randrange(len(instance.cycle_ms)), masks=masks)


def _mask(instance: Instance, device: Device, rng: random.Random, level: float, stated: bool) -> Mask:
    kept = []
    for layer in instance.layers:
        room = layer.neurons - layer.least
        count = layer.least + round(rng.uniform(0, 2) * level * room)
        inside = min(count, layer.neurons)
        kept.append(rng.choice((layer.least - 1, layer.neurons + 1)) if rng.random() < OUTSIDE else inside)
    if not stated:
        return Mask(kept=tuple(kept))
    chosen = []
    for i, (layer, n) in enumerate(zip(instance.layers, kept, strict=True)):
        ranking = device.ranking(i) if rng.random() < 0.5 else rng.sample(range(layer.neurons), layer.neurons)
        chosen.append(tuple(sorted(ranking[:n])) if rng.random() < 0.5 else None)
    return Mask(kept=tuple(kept), chosen=tuple(chosen))
