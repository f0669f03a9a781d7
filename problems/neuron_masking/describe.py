"""A plan in names, seconds and bytes: one row per device."""

from __future__ import annotations

from mapgap.core import PlanTable, quantity
from mapgap.problems.neuron_masking.evaluate import costs
from mapgap.problems.neuron_masking.instance import Instance, Plan

_PS = 1e-12


def describe(instance: Instance, plan: Plan) -> PlanTable:
    """Neurons that every device keeps of every layer, its time in the cycle, and its memory."""
    rows = []
    whole = sum(layer.neurons for layer in instance.layers)
    for device, mask in zip(instance.devices, plan.masks, strict=True):
        cost = costs(instance, device, mask.kept)
        kept = [f"{layer.name} {n}/{layer.neurons}" for layer, n in zip(instance.layers, mask.kept, strict=True)]
        rows.append(
            (
                device.name,
                ", ".join(kept),
                f"{100 * sum(mask.kept) / whole:.1f}%",
                quantity(cost.time * device.tick_ps * _PS, "s"),
                quantity(instance.cycle_ms[plan.cycle] * 1e-3, "s"),
                quantity(cost.memory * instance.memory_unit_bytes, "B"),
            )
        )
    columns = ("device", "keeps", "of all", "time", "cycle", "memory")
    return PlanTable(columns, tuple(rows), columns[2:])
