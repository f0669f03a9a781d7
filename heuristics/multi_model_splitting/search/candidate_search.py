"""Best split of one model into segments on distinct devices: branch and bound that keeps the first best found.

Algorithm 1 of Synergy lists every candidate of a pipeline and takes the best one. The list explodes (666,000 plans of
MobileNetV2 on four devices), but its best entry can be found without it: a candidate is a path over the boundaries
``0..L`` whose edges are segments, and what an edge costs depends on nothing but the segment. Candidates are visited in
the order of the list (devices by number, longer first segment first) and a subtree is skipped if it holds no candidate
that is *strictly* better; so the first of several best candidates is found, as by listing.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from mapgap.core import Budget
from mapgap.problems.multi_model_splitting.lowered.tables import Array

Path = tuple[tuple[int, int, int], ...]
"""Segments as (device, first, last)."""
FORBIDDEN = 2**40
"""Cost of a segment that is not allowed; sums of 2^20 of them still fit into 64 bits."""


class Search:
    """Minimise the sum or the maximum of segment costs.

    Parameters
    ----------
    cost : (N, L, L + 1) int array
        ``cost[d, i, j]`` of the layers ``i..j-1`` on device ``d``, at least 0; ``FORBIDDEN`` or more if not allowed.
    combine : {"sum", "max"}
    order : sequence of int
        Devices in the order of preference.
    left : (R, N) int array
        Capacity left per resource and device.
    demand : (R, L + 1) int array
        ``demand[r, i]`` of the layers from ``i`` on.
    exactly : int, optional
        Number of segments; any number if absent.
    budget : Budget
        The search stops with what it has when time is up.
    """

    def __init__(
        self,
        cost: Array,
        combine: Literal["sum", "max"],
        order: list[int],
        left: Array,
        demand: Array,
        budget: Budget,
        exactly: int | None = None,
    ) -> None:
        self.order = order
        self.cost = cost[order]
        self.left, self.demand = left[:, order], demand
        self.join = np.add if combine == "sum" else np.maximum
        self.exactly, self.budget = exactly, budget
        self.last = cost.shape[1]
        self.bound = self._bounds()
        self.best = FORBIDDEN
        self.path: Path | None = None
        self.seen: dict[tuple[int, int], int] = {}

    def _bounds(self) -> Array:
        """``[k, i]``: no completion from boundary ``i`` costs less (with ``k`` more segments, if they are counted).

        Relaxation: a device may be used again.
        """
        edges = self.cost.min(axis=0)
        rows = 1 if self.exactly is None else self.exactly + 1
        found = np.full((rows, self.last + 1), FORBIDDEN, np.int64)
        found[0, self.last] = 0
        if self.exactly is None:
            for i in range(self.last - 1, -1, -1):
                found[0, i] = self.join(edges[i], found[0]).min()
            return found
        for k in range(1, rows):
            for i in range(self.last):
                found[k, i] = self.join(edges[i], found[k - 1]).min()
        return found

    def run(self, floor: int = 0, below: int = FORBIDDEN) -> tuple[int, Path] | None:
        """The first best path that costs less than ``below``; ``floor`` is what every path costs at least."""
        self.best, self.path = below, None
        self.seen = {}
        self._visit(0, 0, floor, ())
        return None if self.path is None else (self.best, self.path)

    def _visit(self, i: int, used: int, value: int, path: Path) -> None:
        """All completions of a path that ends at boundary ``i`` on the devices of the mask ``used``."""
        if i == self.last:
            if value < self.best and self.exactly in (None, len(path)):
                self.best, self.path = value, path
            return
        if self.seen.get((i, used), FORBIDDEN) <= value or self.budget.exhausted:
            return  # the earlier path to this state was no dearer and has seen all its completions
        self.seen[i, used] = value
        free = [d for d in range(len(self.order)) if not used >> d & 1]
        after = 0 if self.exactly is None else self.exactly - len(path) - 1
        if not free or after < 0 or (self.left[:, free].sum(axis=1) < self.demand[:, i]).any():
            return
        reached = self.join(self.cost[free, i], value)
        promise = self.join(reached, self.bound[after])[:, ::-1]  # longer segments first
        for row, column in np.argwhere(promise < self.best):
            if promise[row, column] < self.best:
                d, j = free[row], self.last - int(column)
                self._visit(j, used | 1 << d, int(reached[row, j]), (*path, (self.order[d], i, j)))
