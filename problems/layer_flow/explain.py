"""Why no more tokens flow: nodes and links that are full, what more hardware would bring, other intervals."""

from __future__ import annotations

from collections.abc import Callable

from mapgap.core import ACTIVITY_LIMIT, Binding, Case, Exchange, Explainer, PlanTable, relaxed
from mapgap.problems.layer_flow.describe import tokens
from mapgap.problems.layer_flow.evaluate import evaluate
from mapgap.problems.layer_flow.instance import Instance, Plan


def binding(instance: Instance, plan: Plan) -> Binding:
    """Per layer the throughput of all nodes that hold it; the scarcest layers first."""
    found = evaluate(instance, plan)
    value = found.objective or 0
    rows, bars = [], set()
    for layer in range(instance.layers):
        holders = [i for i, s in enumerate(plan.starts) if s <= layer < s + plan.counts[i]]
        most = sum(instance.nodes[i].throughput[plan.counts[i] - 1] for i in holders)
        rows.append((most, layer, holders))
    rows.sort(key=lambda row: row[:2])
    scarce = [row for row in rows if row[0] == rows[0][0]]
    for i in scarce[0][2]:
        first, last = plan.starts[i] + 1, plan.starts[i] + plan.counts[i]
        bars.add((instance.nodes[i].name, f"layers {first} to {last}"))
    held = ", ".join(instance.nodes[i].name for i in scarce[0][2]) or "no node"
    sentence = (
        f"Layer {scarce[0][1] + 1} is the scarcest: {held} pass at most {tokens(instance, scarce[0][0])}; "
        f"the flow is {tokens(instance, value)}."
    )
    if value < scarce[0][0]:
        sentence += " What is missing is lost between nodes: intervals that do not join, or links that are full."
    table = tuple(
        (layer + 1, ", ".join(instance.nodes[i].name for i in holders), tokens(instance, most))
        for most, layer, holders in rows[:10]
    )
    columns = ("layer", "nodes", "throughput")
    return Binding(sentence, PlanTable(columns, table, columns[2:]), frozenset(bars))


def relaxations(instance: Instance) -> list[Case]:
    """Links of twice the capacity, partial inference, nodes of twice the throughput."""

    def double(values: tuple[int, ...]) -> list[int]:
        return [min(2 * value, ACTIVITY_LIMIT - 1) for value in values]

    wider = {"entry": double(instance.entry), "exit": double(instance.exit), "links": [*map(double, instance.links)]}
    found = relaxed(instance, "links of twice the capacity", **wider)
    if not instance.partial:
        found += relaxed(instance, "partial inference", partial=True)
    for kind in dict.fromkeys(node.kind for node in instance.nodes):
        faster = [
            {**node.model_dump(), "throughput": double(node.throughput) if node.kind == kind else node.throughput}
            for node in instance.nodes
        ]
        found += relaxed(instance, f"{kind or 'nodes'} of twice the throughput", nodes=faster)
    return found


def exchanges(instance: Instance, plan: Plan, other: Plan) -> list[Exchange]:
    """Node by node."""
    found = []
    for i, node in enumerate(instance.nodes):
        before, after = ((p.starts[i], p.starts[i] + p.counts[i]) for p in (plan, other))
        if before != after:
            label = f"{node.name}: layers {before[0] + 1} to {before[1]} become {after[0] + 1} to {after[1]}"
            found.append(Exchange(label, _taking(i, other)))
    return found


def _taking(i: int, other: Plan) -> Callable[[Plan], Plan]:
    def take(p: Plan) -> Plan:
        starts, counts = list(p.starts), list(p.counts)
        starts[i], counts[i] = other.starts[i], other.counts[i]
        return Plan(starts=tuple(starts), counts=tuple(counts))

    return take


EXPLAINER = Explainer(binding, relaxations, exchanges)
