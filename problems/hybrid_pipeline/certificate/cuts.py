"""Cuts of a graph of layers: part of the checker, standard library only.

A cut is the set of layers in front of it: with a layer all that it reads, of a co-location class all or none. So cuts
are the sets that hold the needs (:mod:`~.graph`) of their layers. They are numbered by rising size: the first one is
empty, the last one holds all layers.

A stage is the difference of two cuts i and j, ``i < j`` as a smaller set has the smaller number. What is said of a
stage ``[i, j)`` of a chain holds for it: every quantity is a sum over its layers, but for what crosses a cut (all
tensors that layers on both sides know) and, with ``communication: tensors``, what a stage pays for. Members that hold
the layers between i and j hold those between i' and j for every i' that contains i. And from j every i that it contains
is met by taking away, again and again, a layer that is not in i and that no layer left needs but its like, with these.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import add
from typing import Any

from .graph import bits, edges, found, members, needs

Tensor = tuple[int, int]  # the layers that make or read it, bytes per sample


class Cuts:
    """The cuts of an instance."""

    def __init__(self, instance: dict[str, Any]) -> None:
        wanted, graph = needs(instance), instance.get("graph") or {}
        self.sets = found(wanted)
        place = {cut: k for k, cut in enumerate(self.sets)}
        users = [bits(i for i, each in enumerate(wanted) if each >> k & 1) for k in range(len(wanted))]
        # By cut, those with less layers by the users of one that is needed by none but its like.
        self.below = [
            sorted({place[cut & ~users[x]] for x in members(cut) if not users[x] & cut & ~wanted[x]})
            for cut in self.sets
        ]
        readers: dict[int, int] = {}
        for u, v in edges(instance):
            readers[u] = readers.get(u, 1 << u) | 1 << v
        made = [(layers, instance["layers"][u]["output_bytes"]) for u, layers in readers.items()]
        given = [graph.get(field) for field in ("tensors", "gradients")]
        listed = [None if each is None else [(bits(t["layers"]), t["size"]) for t in each] for each in given]
        forward = made if listed[0] is None else listed[0]
        self.moved: list[list[Tensor]] = [forward, forward if listed[1] is None else listed[1]]

    def sums(self, rows: Sequence[Sequence[int]]) -> list[list[int]]:
        """By cut, the sums of the rows of its layers."""
        totals: list[list[int]] = []
        for cut, below in zip(self.sets, self.below, strict=True):
            row = totals[below[0]] if below else [0] * len(rows[0])
            for i in members(cut & ~self.sets[below[0]] if below else cut):
                row = list(map(add, row, rows[i]))
            totals.append(row)
        return totals

    def known(self, layers: int, way: int = 0) -> int:
        """Bytes per sample of the tensors (1: gradients) that layers inside and outside of a set know."""
        return sum(size for each, size in self.moved[way] if each & layers and each & ~layers)

    def fronts(self, j: int, holds: Callable[[int], bool]) -> list[int]:
        """First cuts of the stages before cut j that are held."""
        met, queue = {j}, [j]
        for cut in queue:
            new = [i for i in self.below[cut] if i not in met and holds(i)]
            met.update(new)
            queue += new
        return queue[1:]
