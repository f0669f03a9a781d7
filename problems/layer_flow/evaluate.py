"""The evaluator of layer flow: the maximum flow of a placement, and every rule that it breaks."""

from __future__ import annotations

from itertools import pairwise

from mapgap.core import Evaluation, GanttBar, GanttLane, Violation
from mapgap.problems.layer_flow.instance import Instance, Plan

Network = dict[int, dict[int, int]]


def evaluate(instance: Instance, plan: Plan) -> Evaluation:
    """The maximum flow in flow units.

    Terms: ``flow``, what passes every node (one maximum flow of several). Rules: ``nodes`` (an interval for each),
    ``layers`` (an interval lies within the model), ``table`` (a node can hold so many layers).
    """
    count = len(instance.nodes)
    for name, values in (("starts", plan.starts), ("counts", plan.counts)):
        if len(values) != count:
            text = f"expected {count} {name}, one per node, found {len(values)}"
            return Evaluation(None, {}, (Violation("nodes", "plan", abs(len(values) - count), text),))
    violations = []
    for node, start, held in zip(instance.nodes, plan.starts, plan.counts, strict=True):
        if start < 0 or start + held > instance.layers:
            over = max(-start, start + held - instance.layers)
            text = f"expected an interval within layers 0 to {instance.layers}, found {start} to {start + held}"
            violations.append(Violation("layers", node.name, over, text))
        if not 1 <= held <= len(node.throughput):
            text = f"expected 1 to {len(node.throughput)} layers, found {held}"
            violations.append(Violation("table", node.name, max(1 - held, held - len(node.throughput)), text))
    if violations:
        return Evaluation(None, {}, tuple(violations))
    value, passed = flow(instance, plan)
    return Evaluation(value, {"flow": {node.name: passed[i] for i, node in enumerate(instance.nodes)}})


def joins(instance: Instance, plan: Plan, i: int, j: int) -> bool:
    """May node i hand its tokens to node j?"""
    end, first, last = plan.starts[i] + plan.counts[i], plan.starts[j], plan.starts[j] + plan.counts[j]
    return first <= end < last if instance.partial else end == first


def flow(instance: Instance, plan: Plan) -> tuple[int, list[int]]:
    """The maximum flow, and what of it passes every node: shortest augmenting paths (Edmonds and Karp 1972).

    Vertices: 0 the source, 1 the sink, ``2 + 2 i`` where node i receives and ``3 + 2 i`` where it sends.
    """
    count = len(instance.nodes)
    left: Network = {vertex: {} for vertex in range(2 + 2 * count)}

    def arc(a: int, b: int, capacity: int) -> None:
        if capacity:
            left[a][b] = capacity
            left[b].setdefault(a, 0)

    for i, node in enumerate(instance.nodes):
        arc(2 + 2 * i, 3 + 2 * i, node.throughput[plan.counts[i] - 1])
        if plan.starts[i] == 0:
            arc(0, 2 + 2 * i, instance.entry[i])
        if plan.starts[i] + plan.counts[i] == instance.layers:
            arc(3 + 2 * i, 1, instance.exit[i])
        for j in range(count):
            if i != j and joins(instance, plan, i, j):
                arc(3 + 2 * i, 2 + 2 * j, instance.links[i][j])
    value = 0
    while path := _path(left):
        gain = min(left[a][b] for a, b in pairwise(path))
        for a, b in pairwise(path):
            left[a][b] -= gain
            left[b][a] += gain
        value += gain
    return value, [left[3 + 2 * i].get(2 + 2 * i, 0) for i in range(count)]


def _path(left: Network) -> list[int]:
    """A shortest path from source to sink over arcs with something left; empty if there is none."""
    before, layer = {0: 0}, [0]
    while layer and 1 not in before:
        following = []
        for a in layer:
            for b, room in left[a].items():
                if room and b not in before:
                    before[b] = a
                    following.append(b)
        layer = following
    if 1 not in before:
        return []
    path = [1]
    while path[-1]:
        path.append(before[path[-1]])
    return path[::-1]


def diagnose(instance: Instance) -> list[str]:
    """Why no plan exists: never, for any intervals are a placement, if only of flow 0."""
    return []


def gantt(instance: Instance, plan: Plan) -> list[GanttLane]:
    """One lane per node: how long it works in every second; nothing for a plan that breaks a rule."""
    found = evaluate(instance, plan)
    if not found.feasible:
        return []
    lanes = []
    for i, node in enumerate(instance.nodes):
        passed, most = found.terms["flow"][node.name], node.throughput[plan.counts[i] - 1]
        first, last = plan.starts[i] + 1, plan.starts[i] + plan.counts[i]
        bars = (GanttBar(0.0, passed / most, f"layers {first} to {last}", node.kind),) if passed else ()
        lanes.append(GanttLane(node.name, bars))
    return lanes
