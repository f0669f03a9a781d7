"""A placement in names: one row per node, in the order of the layers."""

from __future__ import annotations

from mapgap.core import PlanTable
from mapgap.problems.layer_flow.evaluate import evaluate
from mapgap.problems.layer_flow.instance import Instance, Plan


def describe(instance: Instance, plan: Plan) -> PlanTable:
    """Which layers each node holds, and how much of its throughput is used."""
    passed = evaluate(instance, plan).terms["flow"]
    rows: list[tuple[object, ...]] = []
    for i in sorted(range(len(instance.nodes)), key=lambda i: (plan.starts[i], plan.counts[i], i)):
        node, first, held = instance.nodes[i], plan.starts[i] + 1, plan.counts[i]
        most = node.throughput[held - 1]
        used = f"{100 * passed[node.name] / most:.1f} %" if most else None
        layers = str(first) if held == 1 else f"{first} to {first + held - 1} ({held})"
        rows.append((node.name, node.kind, layers, tokens(instance, passed[node.name]), tokens(instance, most), used))
    columns = ("node", "kind", "layers", "flow", "throughput", "used")
    return PlanTable(columns, tuple(rows), columns[3:])


def tokens(instance: Instance, value: int) -> str:
    """Flow units as tokens per second."""
    return f"{value / instance.scale:,.2f} tokens/s"
