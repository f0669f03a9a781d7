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
            between = stage.devices, plan.stages[p + 1].devices
            ticks = instance.transfer_ticks(size, slowest_link(instance, *between), instance.late(*between))
            sent = f"{quantity(size, 'B')} in {quantity(ticks * tick, 's')}"
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
    return PlanTable(columns, tuple(rows), ("stage", "forward", "backward", "memory"), placements(instance, plan))


def placements(instance: Instance, plan: Plan) -> tuple[tuple[str, str], ...]:
    """A plan of a language model (an embedding, blocks, a head) as llama.cpp and exo take it; else nothing.

    llama.cpp gets as many parts as layers, the output being one, and keeps the embedding where it is. A shard of exo is
    ``[start_layer, end_layer)`` of the blocks.
    """
    names = [layer.name for layer in instance.layers]
    if len(names) < 3 or (names[0], names[-1]) != ("embedding", "head"):
        return ()
    if any(len(stage.devices) > 1 or stage.layers is not None for stage in plan.stages):
        return ()
    blocks = len(names) - 2
    boards = [instance.devices[stage.devices[0]].name for stage in plan.stages]
    ends = [(max(0, stage.start - 1), min(stage.stop - 1, blocks)) for stage in plan.stages]
    parts = [stage.stop - max(1, stage.start) for stage in plan.stages]
    shards = [f"{name} [{start}, {stop})" for name, (start, stop) in zip(boards, ends, strict=True) if start < stop]
    return (
        ("llama.cpp", f"--device {','.join(boards)} --tensor-split {','.join(map(str, parts))}"),
        ("exo", f"{'; '.join(shards)} of {blocks} layers"),
    )


def _layers(names: list[str], *, run: bool) -> str:
    """The layers of a stage, a run of the sequence or a set."""
    if len(names) == 1:
        return names[0]
    return f"{names[0]} {'to' if run else '…'} {names[-1]} ({len(names)})"
