"""What the located programs of all boxes of one instance share: neighbours of stages, rates of transfers, envelopes."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from copy import copy
from typing import NamedTuple

from mapgap.formulations.suboperation_mapping.orbits import Orbits
from mapgap.formulations.suboperation_mapping.params import Boxes
from mapgap.formulations.suboperation_mapping.phase_graph import Node, PhaseGraph
from mapgap.problems.suboperation_mapping import Instance
from mapgap.problems.suboperation_mapping.certificate.lengths import GRAIN

WHOLE = 1.0 - 1e-6  #: part of a node on one accelerator from which it counts as all of it


class Group(NamedTuple):
    """``number`` shares of ``low`` to ``high`` samples each."""

    low: int
    high: int
    number: int


Located = tuple[tuple[Node, int], ...]
"""Fused nodes and the accelerators on which they lie."""

Box = tuple[Group, ...]
"""Groups of shares, largest first; the box of all ratios whose shares can be dealt out to them."""


class Frame:
    """The phase graph seen from fusion points.

    Attributes
    ----------
    params : Boxes
    fused, split : list of Node
    before, after : dict of Node to Node or None
        A fused neighbour in FP and BP on each side of a split node, the first there is.
    staged : dict of Node to bool
        All neighbours of the split node in FP and BP are fused.
    nearest : dict of Node to list of Node
        Fused ancestors of a fused node that are no ancestors of another one of them.
    first, last : list of Node
        Fused nodes before which, after which, loads are not a matter of a neighbour's rows.
    limit : int
        Ticks of a simple plan; no bound above it is asked for.
    """

    def __init__(self, instance: Instance, params: Boxes = Boxes()) -> None:
        self.instance, self.params = instance, params
        self.phases = PhaseGraph(instance)
        self.orbits = Orbits(instance)
        nodes, fused = self.phases.nodes, self.phases.fused
        self.fused = [n for n in nodes if fused(n)]
        self.split = [n for n in nodes if not fused(n)]
        self.before: dict[Node, Node | None] = {}
        self.after: dict[Node, Node | None] = {}
        self.staged: dict[Node, bool] = {}
        for n in self.split:
            sources = [p for p in self.phases.before[n] if p != ("FP", n[1])]
            targets = [v for v in self.phases.after[n] if v[0] != "WU" and v != ("BP", n[1])]
            self.before[n] = next((p for p in sources if fused(p)), None)
            self.after[n] = next((v for v in targets if fused(v)), None)
            fed = bool(sources) or (n[0] == "FP" and not self.phases.before[n])
            self.staged[n] = fed and bool(targets) and all(map(fused, [*sources, *targets]))
        self.nearest: dict[Node, list[Node]] = {}
        for v in self.fused:
            earlier = [u for u in self.fused if u in self.phases.ancestors[v]]
            hidden = {w for u in earlier for w in self.phases.ancestors[u]}
            self.nearest[v] = [u for u in earlier if u not in hidden]
        self.first = [v for v in self.fused if not self._behind_all(v)]
        self.last = [u for u in self.fused if not any(self._ahead_of_all(u, v) for v in self.fused)]
        self.limit = self._simple_plan()

    def told_apart(self, apart: Collection[int]) -> Frame:
        """The same with some accelerators in classes of their own."""
        found = copy(self)
        found.orbits = Orbits(self.instance, apart)
        return found

    def _behind_all(self, v: Node) -> bool:
        """Whether all that precedes ``v`` precedes or follows one of the nearest fused nodes: their windows say it."""
        above = self.phases.ancestors
        return any(all(n == u or n in above[u] or u in above[n] for n in above[v]) for u in self.nearest[v])

    def _ahead_of_all(self, u: Node, v: Node) -> bool:
        """Whether ``v`` comes next and all that follows ``u`` precedes or follows ``v``: the rows of ``v`` say it."""
        above = self.phases.ancestors
        behind = self.phases.descendants[u]
        return u in self.nearest[v] and all(n == v or n in above[v] or v in above[n] for n in behind)

    def _simple_plan(self) -> int:
        """Everything in one share on the accelerator that is fastest alone."""
        totals = [
            sum(self.phases.table(n)[a][-1] for n in self.phases.nodes) for a in range(len(self.instance.accelerators))
        ]
        return max(1, min(totals))

    def rate(self, size: int, source: int, target: int) -> int:
        """Grains to move ``size`` bytes, rounded down."""
        if source == target:
            return 0
        return GRAIN * size * 10**9 // (self.instance.bandwidth[source][target] * self.instance.tick_ns)

    def cheapest(self, size: int, target: int) -> int:
        """Least grains to move ``size`` bytes to ``target`` from elsewhere."""
        return min((self.rate(size, i, target) for i in range(self.orbits.count) if i != target), default=0)

    def states(self, node: Node) -> tuple[Node | None, Node | None]:
        """The fused nodes whose places are part of the state of a split node; a WU looks back only."""
        return self.before[node], self.after[node]


def lower_hull(points: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Those of some points from left to right that the lower convex hull turns at."""
    hull: list[tuple[int, int]] = []
    for s, t in points:
        while len(hull) > 1:
            (a, u), (b, v) = hull[-2:]
            if (v - u) * (s - a) < (t - u) * (b - a):
                break
            hull.pop()
        hull.append((s, t))
    return hull


def least(table: tuple[int, ...], group: Group) -> int:
    """Least ticks of a share of the group."""
    return min(table[group.low - 1 : group.high])
