"""A bound on the flow from weights of holdings: the dual of the program of configurations.

Let F be a flow. The nodes that hold a layer have throughputs ``min(T_i(k_i), F)`` of at least F together: they are a
*cover*. Give every class c of equal nodes weights ``v_c(k) >= 0`` such that every cover weighs at least 1. Then each of
the L layers is held by nodes of weight 1 at least, and a node that holds k layers counts k times:

    L <= sum_i max_k k v_i(k)

So F is refuted by weights for which the right side is below L. The best weights are those of a linear program with a
row per cover, ``sum of v over the cover >= 1``, which minimises the right side. Its rows are found one by one: with
weights rounded up to multiples of 1/grid, a table over the weight says which nodes of weight below 1 pass most; if
that is F or more, they are a cover that weighs too little. What is proven depends on whole numbers only; the linear
program proposes.

Weights that refute F refute every larger flow (``min(T, F)/F`` falls with F), so F is found by bisection.
"""

from __future__ import annotations

import math
from collections import Counter

import highspy
import numpy as np

from mapgap.core import Budget, SolveResult, Status, Stop
from mapgap.formulations.layer_flow.params import Covers as Params
from mapgap.problems.layer_flow import Instance
from mapgap.problems.layer_flow.lowered.limits import flow_limit
from mapgap.solvers.highs import MatrixModel

Cover = Counter[tuple[int, int]]
"""How many nodes of a class hold how many layers, less one."""
Weights = list[list[int]]


class Covers:
    """The linear program of one instance, with the covers found so far."""

    def __init__(self, instance: Instance, params: Params = Params()) -> None:
        classes = Counter(node.throughput for node in instance.nodes)
        self.tables, self.counts = list(classes), list(classes.values())
        self.layers, self.params = instance.layers, params
        self.places = [(c, k) for c, table in enumerate(self.tables) for k in range(len(table))]
        self.index = {place: j for j, place in enumerate(self.places)}
        self.covers: list[Cover] = []

    def refute(self, flow: int, budget: Budget) -> Weights | None:
        """Weights by class and number of layers that refute a flow; ``None`` if none are found."""
        for _ in range(self.params.rounds):
            if budget.exhausted:
                return None
            weights = self._proposed(flow)
            if weights is None:
                return None
            cover = self._too_light(flow, weights)
            if cover is None:
                return weights
            self.covers.append(cover)
        return None

    def _proposed(self, flow: int) -> Weights | None:
        """The best weights for the covers so far, rounded up; ``None`` if they do not refute the flow."""
        grid, count = self.params.grid, len(self.places)
        model = MatrixModel()
        for _ in self.places:
            model.column()
        for n in self.counts:
            model.column(upper=highspy.kHighsInf, cost=n)
        for (c, k), j in self.index.items():
            model.row([(j, k + 1), (count + c, -1)], upper=0)
        for cover in self.covers:
            if sum(m * min(self.tables[c][k], flow) for (c, k), m in cover.items()) >= flow:
                model.row([(self.index[place], m) for place, m in cover.items()], lower=1)
        found = model.solve(math.inf, relaxed=True, simplex=True).values
        if found is None:
            return None
        weights: Weights = [[] for _ in self.tables]
        for (c, _), x in zip(self.places, found, strict=False):
            weights[c].append(min(grid, math.ceil(x * grid - 1e-6)))
        total = sum(n * max(k * v for k, v in enumerate(row, 1)) for n, row in zip(self.counts, weights, strict=True))
        return weights if total < self.layers * grid else None

    def _too_light(self, flow: int, weights: Weights) -> Cover | None:
        """Nodes that pass the flow and weigh less than 1; ``None`` if there are none."""
        grid = self.params.grid
        most, chosen = np.zeros(grid, np.int64), []
        for c, table in enumerate(self.tables):
            for _ in range(self.counts[c]):
                better, choice = most.copy(), np.full(grid, -1)
                for k, t in enumerate(table):
                    v = weights[c][k]
                    if v < grid:
                        passed = np.full(grid, -1, np.int64)
                        passed[v:] = most[: grid - v] + min(t, flow)
                        choice[passed > better] = k
                        np.maximum(better, passed, out=better)
                chosen.append((c, choice))
                most = better
        if most[-1] < flow:
            return None
        at, cover = int(np.argmax(most >= flow)), Cover()
        for c, choice in reversed(chosen):
            k = int(choice[at])
            if k >= 0:
                cover[c, k] += 1
                at -= weights[c][k]
        return cover


def bound(instance: Instance, budget: Budget, params: Params = Params(), known: int | None = None) -> int:
    """The least bound by weights, announced as it falls; ``known`` is the value of a plan, which is tried first."""
    covers, best = Covers(instance, params), flow_limit(instance)
    budget.report(bound=best)
    low = 0 if known is None else known  # not refuted
    following = low
    while low < best and not budget.exhausted:
        if covers.refute(following + 1, budget) is not None:
            best = following
            budget.report(bound=best)
        else:
            low = following + 1
        following = (low + best) // 2
    return best


def run(instance: Instance, budget: Budget, params: Params = Params()) -> SolveResult:
    """The bound alone."""
    found = bound(instance, budget, params)
    stop = Stop.TIME if budget.exhausted else Stop.DONE
    return SolveResult(Status.UNKNOWN, stop, bound=found, reason="a bound, not a plan")
