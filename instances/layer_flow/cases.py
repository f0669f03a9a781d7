"""Case splits and smaller instances of layer flow."""

from __future__ import annotations

from collections.abc import Iterator

from mapgap.core import Case
from mapgap.instances.editing import case, edited, replaced, square, without
from mapgap.problems.layer_flow import Instance


def cases(instance: Instance) -> list[Case]:
    """Split on how many layers a node holds: at most k, or more.

    In a case the other numbers of layers have throughput 0. A plan keeps its value in the case that has its number, and
    loses flow, if anything, in the other; so the better optimum of the two is that of the instance.

    The node is the first of those with most numbers of throughput above 0; empty if none has two.
    """
    held = [[k for k, t in enumerate(node.throughput) if t] for node in instance.nodes]
    index = max(range(len(held)), key=lambda i: (len(held[i]), -i))
    if len(held[index]) < 2:
        return []
    node, middle = instance.nodes[index], held[index][(len(held[index]) - 1) // 2]
    found = []
    for word, keep in ((f"at most {middle + 1}", range(middle + 1)), ("more", range(middle + 1, len(node.throughput)))):
        table = tuple(t if k in keep else 0 for k, t in enumerate(node.throughput))
        nodes = replaced(instance.nodes, index, edited(node, throughput=table))
        found.append(case(instance, f"{node.name} holds {word} layers", nodes=nodes))
    return found


def shrink(instance: Instance) -> Iterator[Instance]:
    """A node less, the last entry of a table less, the last layer less."""
    for i in range(len(instance.nodes)):
        left = [j for j in range(len(instance.nodes)) if j != i]
        yield from instance.if_valid(
            nodes=without(instance.nodes, i),
            entry=without(instance.entry, i),
            exit=without(instance.exit, i),
            links=square(instance.links, left),
        )
    for i, node in enumerate(instance.nodes):
        if len(node.throughput) > 1:
            yield from instance.if_valid(
                nodes=replaced(instance.nodes, i, edited(node, throughput=node.throughput[:-1]))
            )
    if instance.layers > 1:
        shorter = tuple(edited(node, throughput=node.throughput[: instance.layers - 1]) for node in instance.nodes)
        yield from instance.if_valid(layers=instance.layers - 1, nodes=shorter)
