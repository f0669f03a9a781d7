"""What the models of one ratio share: how long a plan may take, what may wait for what, how a plan stands in them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import networkx as nx

from mapgap.problems.suboperation_mapping import Instance, Plan
from mapgap.problems.suboperation_mapping.instance import parse_operation
from mapgap.problems.suboperation_mapping.lowered.arrays import Array, Lowered, lower
from mapgap.problems.suboperation_mapping.lowered.ratios import Ratio, partitions
from mapgap.problems.suboperation_mapping.lowered.timing import LINKS, PORTS, SHARED
from mapgap.solvers.model import Model, Part


def horizon(lowered: Lowered, cutoff: int | None = None) -> int:
    """No plan of the ratio (below the cutoff) takes longer: one operation after the other, each at its slowest.

    On shared links no more: whenever something waits, something else runs.
    """
    timing = lowered.timing
    total = int(timing.compute.max(axis=1).sum())
    if len(timing.pred):
        total += int(timing.pred_ticks.max(axis=(1, 2)).sum())
    total += int(timing.gradient_ticks.sum(axis=2).max(axis=1).sum())
    total = max(total, 1)
    return total if cutoff is None else min(total, max(cutoff - 1, 0))


WAITS = (
    "shared links: the models do not time transfers that wait, so the bound holds, but they prove no optimum above it"
)


def shares_links(lowered: Lowered) -> bool:
    """Transfers wait for ports or for the medium (rule 10), which no model of a ratio times: all are relaxations.

    An operation then ends no sooner after its start than its duration says. So the starts of a plan are a point of
    every model that does not ask for starts as early as possible, with a makespan that is no larger.
    """
    return lowered.timing.medium != LINKS


def taken(medium: int, sender: int, receiver: int) -> list[tuple[str, int]]:
    """What a transfer needs for itself (rule 10)."""
    if medium == PORTS:
        return [("out", sender), ("in", receiver)]
    return [("medium", 0)] if medium == SHARED else []


def by_way(lowered: Lowered, y: Mapping[Any, Any], g: Mapping[Any, Any]) -> dict[tuple[str, int], list[Any]]:
    """Per port, or for the medium, the ticks of every transfer that needs it, each a term of a model.

    Parameters
    ----------
    y, g : mappings
        ``(edge, sender, receiver)`` of a tensor and ``(operation, sender, receiver)`` of a dW to whether it is moved.
    """
    timing, found = lowered.timing, dict[tuple[str, int], list[Any]]()
    moves = [(a, t, int(timing.pred_ticks[e, a, t]) * moved) for (e, a, t), moved in y.items()]
    moves += [(a, t, int(timing.gradient_ticks[o, a, t]) * moved) for (o, a, t), moved in g.items()]
    for sender, receiver, term in moves:
        for way in taken(timing.medium, sender, receiver):
            found.setdefault(way, []).append(term)
    return found


def dram_binds(lowered: Lowered) -> bool:
    """Some accelerator cannot hold all weights and all stored tensors at once."""
    demand = int(lowered.storage.item_units.sum()) + int(lowered.storage.weight_units.sum())
    return demand > int(lowered.storage.capacity.min())


def direct_predecessors(lowered: Lowered) -> list[list[int]]:
    """For every operation those that it follows, each once, by number."""
    return [sorted({int(p) for p in lowered.predecessors(o)}) for o in range(lowered.n)]


def unrelated_pairs(lowered: Lowered) -> list[tuple[int, int]]:
    """``(i, j)``, j < i, between which no chain of precedences leads either way."""
    graph = nx.DiGraph((p, o) for o, before in enumerate(direct_predecessors(lowered)) for p in before)
    graph.add_nodes_from(range(lowered.n))
    reach = nx.transitive_closure_dag(graph)
    return [(i, j) for i in range(lowered.n) for j in range(i) if not (reach.has_edge(i, j) or reach.has_edge(j, i))]


def layer_members(lowered: Lowered) -> dict[int, tuple[list[int], list[int]]]:
    """Per layer its operations, and those of FP."""
    found: dict[int, tuple[list[int], list[int]]] = {}
    for o, (phase, layer, _) in enumerate(lowered.operations):
        members, forward = found.setdefault(layer, ([], []))
        members.append(o)
        if phase == "FP":
            forward.append(o)
    return dict(sorted(found.items()))


def decisions(lowered: Lowered, plan: Plan) -> tuple[set[tuple[int, int]], Array | None] | None:
    """``(places, start)`` of a plan: pairs of operation and accelerator, and the start of every operation.

    Shares are interchangeable, so a plan whose shares stand in another order than those of the ratio is relabelled.
    ``start`` is ``None`` if some operation stands in no order or in two: such a plan has no timetable. The result is
    ``None`` for a plan of another ratio, with operations that do not exist or stand twice in one order, or with orders
    that wait for each other.
    """
    ours, theirs = (sorted(range(len(r)), key=lambda b: -r[b]) for r in (lowered.ratio, plan.ratio))
    if [lowered.ratio[b] for b in ours] != [plan.ratio[b] for b in theirs]:
        return None
    label = dict(zip(theirs, ours, strict=True)) if plan.ratio != lowered.ratio else {}
    index = {operation: o for o, operation in enumerate(lowered.operations)}
    try:
        named = [[parse_operation(lowered.instance, name) for name in names] for names in plan.order]
        orders = [[index[phase, layer, label.get(b, b)] for phase, layer, b in names] for names in named]
    except (ValueError, KeyError):
        return None
    if any(len(set(ops)) < len(ops) for ops in orders):
        return None
    places = {(o, a) for a, ops in enumerate(orders) for o in ops}
    if sorted(o for o, _ in places) != list(range(lowered.n)):
        return places, None
    try:
        start, _ = lowered.timetable(*lowered.merged(orders))
    except ValueError:
        return None
    return places, start


def parts(instance: Instance, build: Callable[..., Model]) -> list[Part]:
    """One part per partition of the batch: ``build(lowered, complete=…, without=…)``."""

    def part(ratio: Ratio) -> Part:
        def one(**options: Any) -> Model:
            return build(lower(instance, ratio), **options)

        return Part(f"ratio {','.join(map(str, ratio))}", one)

    return [part(ratio) for ratio in partitions(instance.batch, len(instance.accelerators))]
