"""Instance and plan of layer flow: whole numbers only."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from mapgap.core import ACTIVITY_LIMIT, MOST_DEVICES, Finding, Frozen, InputError, InstanceBase, PlanBase

MOST_LAYERS = 1024


class Node(Frozen):
    """A node.

    Attributes
    ----------
    name : str
    kind : str
        Of its hardware; means nothing to an optimiser.
    throughput : tuple of int, shape (most layers,)
        ``throughput[k - 1]`` flow units when it holds ``k`` layers; it cannot hold more than there are entries.
    """

    name: str
    kind: str = ""
    throughput: tuple[int, ...] = Field(min_length=1)


class Instance(InstanceBase):
    """A model on a cluster.

    Attributes
    ----------
    scale : int
        Flow units per token per second.
    layers : int
        L.
    partial : bool
        Whether a node may receive tokens inside its interval.
    nodes : tuple of Node
    entry, exit : tuple of int, shape (nodes,)
        Flow units of the link from the source to a node, and from a node to the sink; 0 where there is none.
    links : tuple of tuple of int, shape (nodes, nodes)
        Flow units of the link from a node (row) to another; 0 where there is none, and on the diagonal.
    """

    problem: Literal["layer_flow"] = "layer_flow"
    scale: int = Field(default=10_000, ge=1, lt=ACTIVITY_LIMIT)
    layers: int = Field(ge=1, le=MOST_LAYERS)
    partial: bool = False
    nodes: tuple[Node, ...] = Field(min_length=1, max_length=MOST_DEVICES)
    entry: tuple[int, ...]
    exit: tuple[int, ...]
    links: tuple[tuple[int, ...], ...]

    @model_validator(mode="after")
    def _check(self) -> Self:
        found, count = [], len(self.nodes)
        for field in ("entry", "exit", "links"):
            if len(getattr(self, field)) != count:
                text = f"expected {count} values, one per node, found {len(getattr(self, field))}"
                found.append(Finding(text, (field,)))
        rows = [(("entry",), self.entry), (("exit",), self.exit)]
        rows += [(("links", i), row) for i, row in enumerate(self.links)]  # type: ignore[misc]
        rows += [(("nodes", i, "throughput"), node.throughput) for i, node in enumerate(self.nodes)]  # type: ignore[misc]
        for where, row in rows:
            for k, value in enumerate(row):
                if not 0 <= value < ACTIVITY_LIMIT:
                    text = f"expected from 0 to 2^30 - 1 flow units, found {value}"
                    found.append(Finding(text, (*where, k)))
        for i, row in enumerate(self.links):
            if len(row) != count:
                found.append(Finding(f"expected {count} values, one per node, found {len(row)}", ("links", i)))
            elif i < count and row[i]:
                found.append(Finding(f"expected 0 from a node to itself, found {row[i]}", ("links", i, i)))
        for i, node in enumerate(self.nodes):
            if len(node.throughput) > self.layers:
                text = f"expected at most {self.layers} entries, one per layer, found {len(node.throughput)}"
                found.append(Finding(text, ("nodes", i, "throughput"), node.name))
        if len({node.name for node in self.nodes}) < count:
            found.append(Finding("expected different names", ("nodes",)))
        if found:
            raise InputError(found)
        return self


class Plan(PlanBase):
    """The interval of every node: ``counts[i]`` layers from ``starts[i]`` on.

    Attributes
    ----------
    starts, counts : tuple of int, shape (nodes,)
    """

    starts: tuple[int, ...]
    counts: tuple[int, ...]
