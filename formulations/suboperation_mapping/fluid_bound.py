"""A lower bound over all ratios in milliseconds, for any number of accelerators: samples flow, transfers are free.

The first bound of ``fluid_bound``, whose located programs (:mod:`box_bound`) are never below it, and of ``stage_mip``.

========  =====================================================================  ===========
Symbol    Meaning                                                                Unit, shape
========  =====================================================================  ===========
s[n, a]   samples of node n (a phase of a split layer) processed on a            0..B
x[n, a]   part of node n (a phase of a fused layer) done on a                    0..1
rho[n, a] least compute ticks per sample, min over k of table[a][k] / k          ticks
L[n, a]   load: rho[n, a] s[n, a], or compute x[n, a]                            ticks
S, E[v]   start and end of a fused node                                          ticks
M         makespan, minimised                                                    ticks
========  =====================================================================  ===========

(1) sum_a s[n, a] = B and sum_a x[n, a] = 1, written in L
(2) E[v] >= S[v] + sum_a L[v, a]
(3) S[v] >= sum of L[n, a] over all n before v; S[v] >= E[u] + sum of L[n, a] over all n between u and v, for u the
    nearest fused nodes before v
(4) M >= E[v] + sum of L[n, a] over all n after v
(5) M >= sum of L[n, a] over all n

Valid for every plan: the shares that a plan puts on ``a`` hold ``s[n, a]`` samples and take at least
``rho[n, a] s[n, a]``; everything between two fused nodes runs after one has ended and before the other starts, one
operation at a time per accelerator. Transfers and DRAM are relaxed, so the bound is far from tight at low bandwidth.
"""

from __future__ import annotations

import math

from mapgap.formulations.suboperation_mapping.phase_graph import Node, PhaseGraph
from mapgap.solvers.highs import MatrixModel

SAFETY = 1e-6  #: relative error granted to floating-point bounds (HiGHS tolerances are 1e-9 on times scaled to 1000)


def safe(bound: float, scale: float) -> int:
    """Integer lower bound in ticks behind a floating-point one."""
    return max(0, math.ceil(bound * scale * (1.0 - SAFETY) - 1e-6))


def least_ticks(phases: PhaseGraph, node: Node) -> list[float]:
    """rho of a split node, compute ticks of a fused one, per accelerator."""
    if phases.fused(node):
        return [float(row[0]) for row in phases.table(node)]
    return [min(ticks / (k + 1) for k, ticks in enumerate(row)) for row in phases.table(node)]


class FluidModel:
    """The LP of the module docstring, in units of ``scale`` ticks; ``M`` is the column of the makespan."""

    def __init__(self, phases: PhaseGraph) -> None:
        self.phases = phases
        self.accelerators = range(len(phases.instance.accelerators))
        self.rho = {node: least_ticks(phases, node) for node in phases.nodes}
        self.amount = {node: 1 if phases.fused(node) else phases.instance.batch for node in phases.nodes}
        self.scale = max(1.0, sum(min(ticks) * self.amount[node] for node, ticks in self.rho.items())) / 1000.0
        self.fused = [node for node in phases.nodes if phases.fused(node)]
        self.matrix = MatrixModel()
        self.M = self._time(cost=1.0)
        self.load: dict[Node, list[int]] = {}
        for node in phases.nodes:
            self.load[node] = [self._time() for _ in self.accelerators]
            self.amounts(node)
        self.start = {v: self._time() for v in self.fused}
        self.end = {v: self._time() for v in self.fused}
        for v in self.fused:
            self.durations(v)
            for a in self.accelerators:
                self.between(v, a)
                self.after(v, a)
        for a in self.accelerators:
            self.area(a)

    def _time(self, cost: float = 0.0) -> int:
        return self.matrix.column(float("inf"), cost=cost)

    def amounts(self, node: Node) -> None:
        """(1) All samples are processed; a node that is free somewhere goes there."""
        ticks = self.rho[node]
        if all(ticks):
            terms = [(self.load[node][a], self.scale / ticks[a]) for a in self.accelerators]
            self.matrix.row(terms, float(self.amount[node]), float(self.amount[node]))

    def durations(self, v: Node) -> None:
        """(2) A fused node takes the time of its parts."""
        self.matrix.row([(self.end[v], 1.0), (self.start[v], -1.0), *((c, -1.0) for c in self.load[v])], 0.0)

    def between(self, v: Node, a: int) -> None:
        """(3) All that must run before a fused node, and all between it and the nearest fused nodes before it."""
        above = self.phases.ancestors[v]
        ordered = [n for n in self.phases.nodes if n in above]
        earlier = [u for u in self.fused if u in above]
        nearest = [u for u in earlier if not any(u in self.phases.ancestors[w] for w in earlier)]
        self.matrix.row([(self.start[v], 1.0), *((self.load[n][a], -1.0) for n in ordered)], 0.0)
        for u in nearest:
            inner = [n for n in ordered if u in self.phases.ancestors[n]]
            row = [(self.start[v], 1.0), (self.end[u], -1.0), *((self.load[n][a], -1.0) for n in inner)]
            self.matrix.row(row, 0.0)

    def after(self, v: Node, a: int) -> None:
        """(4) All that follows a fused node."""
        later = self.phases.descendants[v]
        self.matrix.row([(self.M, 1.0), (self.end[v], -1.0), *((self.load[n][a], -1.0) for n in later)], 0.0)

    def area(self, a: int) -> None:
        """(5) All operations of an accelerator run one after the other."""
        self.matrix.row([(self.M, 1.0), *((self.load[n][a], -1.0) for n in self.phases.nodes)], 0.0)


def fluid_bound(phases: PhaseGraph, time_s: float = 60.0) -> int:
    """Smallest makespan of the flow, rounded up to ticks."""
    model = FluidModel(phases)
    found = model.matrix.solve(time_s, relaxed=True)
    return 0 if found.bound is None else safe(found.bound, model.scale)
