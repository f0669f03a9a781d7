"""A plan in names, seconds and bytes: one row per stage."""

from __future__ import annotations

from mapgap.core import PlanTable, quantity
from mapgap.problems.hybrid_pipeline.evaluate import (
    crossing_bytes,
    execution_times,
    memory_demand,
    slowest_link,
    warm_up,
)
from mapgap.problems.hybrid_pipeline.instance import Instance, Plan


def describe(instance: Instance, plan: Plan) -> PlanTable:
    """Layers, boards with their shares of a micro-batch, times of one micro-batch, memory, and what is sent on."""
    rows = []
    tick, rounds = instance.seconds_per_tick, instance.mini_batch // plan.micro_batch
    for p, stage in enumerate(plan.stages):
        names = [instance.layers[i].name for i in stage.rows]
        boards = [
            f"{instance.devices[device].name} ({share})" if len(stage.devices) > 1 else instance.devices[device].name
            for device, share in zip(stage.devices, stage.shares, strict=True)
        ]
        forward, backward = execution_times(instance, stage, stage.shares)
        kept = warm_up(len(plan.stages) - 1 - p, rounds, instance.execution)
        memory = max(memory_demand(instance, stage, share, kept) for share in stage.shares)
        sent = None
        if p + 1 < len(plan.stages):
            size = plan.micro_batch * crossing_bytes(instance, plan, p)
            rate = slowest_link(instance, stage.devices, plan.stages[p + 1].devices)
            sent = f"{quantity(size, 'B')} in {quantity(instance.transfer_ticks(size, rate) * tick, 's')}"
        rows.append(
            (
                p + 1,
                _layers(names, run=stage.rows[-1] - stage.rows[0] < len(names)),
                ", ".join(boards),
                quantity(forward * tick, "s"),
                quantity(backward * tick, "s"),
                quantity(memory * instance.memory_unit_bytes, "B"),
                sent,
            )
        )
    columns = ("stage", "layers", "boards (samples)", "forward", "backward", "memory", "sends")
    return PlanTable(columns, tuple(rows), ("stage", "forward", "backward", "memory"))


def _layers(names: list[str], *, run: bool) -> str:
    """The layers of a stage, a run of the sequence or a set."""
    if len(names) == 1:
        return names[0]
    return f"{names[0]} {'to' if run else '…'} {names[-1]} ({len(names)})"
