"""What one instance of layer flow says of another: optima, plans, bounds."""

from __future__ import annotations

import random
from collections.abc import Iterator

from mapgap.core import Relation
from mapgap.instances.editing import each, edited, mapped, ordered, related, square
from mapgap.problems.layer_flow import Instance, Plan


def relations(instance: Instance, rng: random.Random) -> list[Relation]:
    """Another order, the other direction, larger numbers, more of anything."""
    return list(_relations(instance, rng))


def _relations(instance: Instance, rng: random.Random) -> Iterator[Relation]:
    count = len(instance.nodes)
    order = rng.sample(range(count), count)
    yield from related(
        instance,
        "nodes in another order",
        nodes=ordered(instance.nodes, order),
        entry=ordered(instance.entry, order),
        exit=ordered(instance.exit, order),
        links=square(instance.links, order),
    )
    # Without partial inference tokens may as well flow from the last layer to the first.
    if not instance.partial:
        back = tuple(tuple(instance.links[j][i] for j in range(count)) for i in range(count))
        yield from related(instance, "all links turned round", entry=instance.exit, exit=instance.entry, links=back)
        yield from related(instance, "partial inference", equal=False, partial=True)
    yield from related(
        instance,
        "all capacities tripled",
        3,
        nodes=each(instance.nodes, lambda node: {"throughput": tuple(3 * t for t in node.throughput)}),
        entry=tuple(3 * value for value in instance.entry),
        exit=tuple(3 * value for value in instance.exit),
        links=mapped(instance.links, lambda value: 3 * value),
    )
    extra = rng.randint(1, 9)
    wider = tuple(
        tuple(0 if i == j else value + extra for j, value in enumerate(row)) for i, row in enumerate(instance.links)
    )
    yield from related(instance, "wider links", equal=False, links=wider)
    faster = each(instance.nodes, lambda node: {"throughput": tuple(t + extra for t in node.throughput)})
    yield from related(instance, "faster nodes", equal=False, nodes=faster)
    twin = rng.randrange(count)
    yield from related(
        instance,
        "a node twice",
        equal=False,
        nodes=(*instance.nodes, edited(instance.nodes[twin], name=f"{instance.nodes[twin].name}'")),
        entry=(*instance.entry, instance.entry[twin]),
        exit=(*instance.exit, instance.exit[twin]),
        links=(
            *((*row, row[twin]) for row in instance.links),
            (*instance.links[twin], 0),
        ),
    )


def carried(plan: Plan, source: Instance, target: Instance) -> Iterator[Plan]:
    """The same intervals for nodes of the same names, moved into the model; others hold the first layers."""
    places = {node.name: i for i, node in enumerate(source.nodes)}
    starts, counts = [], []
    for node in target.nodes:
        i = places.get(node.name)
        held = 1 if i is None else min(plan.counts[i], len(node.throughput))
        counts.append(held)
        starts.append(0 if i is None else min(plan.starts[i], target.layers - held))
    yield Plan(starts=tuple(starts), counts=tuple(counts))


def implied(bound: int, source: Instance, target: Instance) -> int | None:
    """The bound itself, where the target offers no more.

    Nodes of the target are nodes of the source (by name) with tables and links that are nowhere larger, the model has
    as many layers, and partial inference is allowed only if it is there. Every placement of the target is then one of
    the source (other nodes hold anything) through which the same flow goes. A unit must be the same (``scale``).
    """
    places = {node.name: i for i, node in enumerate(source.nodes)}
    if target.layers != source.layers or target.scale != source.scale or (target.partial and not source.partial):
        return None
    if any(node.name not in places for node in target.nodes):
        return None
    at = [places[node.name] for node in target.nodes]
    for i, node in enumerate(target.nodes):
        larger = source.nodes[at[i]].throughput
        if len(node.throughput) > len(larger) or any(t > u for t, u in zip(node.throughput, larger, strict=False)):
            return None
        if target.entry[i] > source.entry[at[i]] or target.exit[i] > source.exit[at[i]]:
            return None
        if any(value > source.links[at[i]][at[j]] for j, value in enumerate(target.links[i])):
            return None
    return bound
