"""A plan in names and seconds: one row per accelerator."""

from __future__ import annotations

from mapgap.core import PlanTable, quantity
from mapgap.problems.suboperation_mapping.evaluate import compute_ticks
from mapgap.problems.suboperation_mapping.instance import Instance, Plan, operation_name, parse_operation


def describe(instance: Instance, plan: Plan) -> PlanTable:
    """Samples of the share, busy time, sub-operations by phase, and those of other shares."""
    rows = []
    for a, (accelerator, names) in enumerate(zip(instance.accelerators, plan.order, strict=True)):
        operations = [parse_operation(instance, name) for name in names]
        busy = sum(compute_ticks(instance, plan.ratio, operation, a) for operation in operations)
        fused = [instance.layers[index].name for phase, index, share in operations if share < 0 and phase == "FP"]
        foreign = [operation_name(instance, each) for each in operations if each[2] >= 0 and each[2] != a]
        counts = [sum(1 for each in operations if each[0] == phase) for phase in ("FP", "BP", "WU")]
        rows.append(
            (
                accelerator.name,
                plan.ratio[a],
                quantity(busy * instance.seconds_per_tick, "s"),
                *counts,
                _listed(fused),
                _listed(foreign),
            )
        )
    columns = ("board", "samples", "computes", "FP", "BP", "WU", "fused layers", "of other shares")
    return PlanTable(columns, tuple(rows), columns[1:6])


def _listed(names: list[str]) -> str | None:
    if len(names) <= 6:
        return ", ".join(names) or None
    return f"{', '.join(names[:5])} and {len(names) - 5} more"
