"""The stage-configuration MIP of one ratio: a relaxation of the scheduling problem that keeps assignment exact.

Notation
--------
======================  ==========================================================================================
node ``(phase, l)``     FP, BP or WU of layer ``l``; a split node has ``S`` operations, one per non-zero share
``x[o, a]``             binary, operation ``o`` on accelerator ``a``
``lam[node, c]``        configuration: share ``b`` of a split node on accelerator ``c[b]``; ``x`` are its marginals
``mu[node, u, c, f]``   stage column: fused predecessors at ``u``, shares at ``c``, ``f[b]`` = 1 if share ``b``
                        fetches weights
``nu[node, c, v]``      gather column: shares at ``c``, the fused successor at ``v``
``psi[l, b, g, k]``     WU of share ``b`` on ``g``, class ``k`` = (accelerator of FP share, accelerators with FP of l)
``y[o, p, a]``          1 if ``o`` is on ``a`` and predecessor ``p`` is not; ``y >= x[o, a] - x[p, a]``
``load[node, a]``       time the node's operations occupy ``a``, transfers included
``s, e``                start and end of fused operations (and of shares where stages do not fit)
``M``                   makespan, minimised
======================  ==========================================================================================

Every row holds for every schedule (DRAM aside); the proofs are in ``docs/stage_mip.md``.
"""

from __future__ import annotations

from itertools import pairwise, product
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from mapgap.formulations.suboperation_mapping._stage_graph import Node, StageGraph
from mapgap.problems.suboperation_mapping import Instance
from mapgap.problems.suboperation_mapping.instance import Operation, operations

if TYPE_CHECKING:
    from mapgap.solvers.highs import Terms, Vector

CONFIGURATIONS = 81  #: configurations of one layer above which columns are replaced by pairwise variables
COLUMNS = 3000  #: columns of one stage above which only one fused predecessor, or none, enters the column
ANCESTORS = 4  #: windows per fusion point


class StageModel(StageGraph):
    """Build with the constructor, solve ``matrix``; ``M`` is the index of the makespan column.

    Parameters
    ----------
    instance, ratio, scale
        Of the graph.
    columns : bool
        Without columns every transfer goes through ``y``: smaller and weaker, for many accelerators.
    """

    def __init__(self, instance: Instance, ratio: tuple[int, ...], scale: float, columns: bool = True) -> None:
        from mapgap.solvers.highs import MatrixModel

        super().__init__(instance, ratio, scale)
        self.matrix = MatrixModel()
        self.M = self.matrix.column(upper=float("inf"), cost=1.0)
        self.x: dict[Operation, list[int]] = {}
        self.columned: set[int] = set()  # columns that are 0 or 1 in the model's image of any schedule
        self.lam: dict[Node, dict[tuple[int, ...], int]] = {}
        self.load: dict[tuple[Node, int], int] = {}
        self.end: dict[Operation, int] = {}
        self.start: dict[Operation, int] = {}
        self.stage: dict[Node, Terms] = {}
        self.duration: dict[Operation, Terms] = {}
        self.spread = columns and self.count ** len(self.shares) <= CONFIGURATIONS
        self._assignment()
        self._weights()
        for node in self.nodes:
            self._node(node)
        self._precedences()
        self._windows()
        self._makespan()

    # ---- assignment ---------------------------------------------------------------------------------------------

    def _unit(self) -> int:
        j = self.matrix.column()
        self.columned.add(j)
        return j

    def _assignment(self) -> None:
        """(1) every operation has one accelerator; (2) configurations and their marginals; (3) equal shares."""
        for operation in operations(self.instance, self.ratio):
            self.x[operation] = [self.matrix.column(integer=True) for _ in range(self.count)]
            self.columned.update(self.x[operation])
            self.matrix.row([(j, 1.0) for j in self.x[operation]], 1.0, 1.0)
        first = next((i for i, layer in enumerate(self.instance.layers) if layer.kind == "split"), None)
        equal = [p for p, (b, d) in enumerate(pairwise(self.shares)) if self.ratio[b] == self.ratio[d]]
        for node in self.nodes:
            if self.fused(node) or not self.spread or (node[0] == "WU" and self.instance.layers[node[1]].inputs):
                continue
            choices = list(product(range(self.count), repeat=len(self.shares)))
            if node == ("FP", first):  # swapping two equal shares everywhere gives the same makespan
                choices = [c for c in choices if all(c[p] <= c[p + 1] for p in equal)]
            self.lam[node] = {c: self._unit() for c in choices}
            for p, operation in enumerate(self.members(node)):
                for a in range(self.count):
                    row = [(j, 1.0) for c, j in self.lam[node].items() if c[p] == a]
                    self.matrix.row([(self.x[operation][a], -1.0), *row], 0.0, 0.0)

    def _weights(self) -> None:
        """(16) static part of the DRAM: weights and gradients of every layer present, where they can exceed it."""
        units = [self.instance.memory_units(2 * layer.weight_bytes) for layer in self.instance.layers]
        for a, accelerator in enumerate(self.instance.accelerators):
            if sum(units) <= accelerator.memory:
                continue
            unit = max(1, accelerator.memory)
            present = {i: self._unit() for i, need in enumerate(units) if need}
            for operation, places in self.x.items():
                if operation[1] in present:
                    self.matrix.row([(present[operation[1]], 1.0), (places[a], -1.0)], 0.0)
            # the slack of 1e-6 keeps a full DRAM feasible in floating point
            row = [(j, units[i] / unit) for i, j in present.items()]
            self.matrix.row(row, upper=accelerator.memory / unit + 1e-6)

    # ---- loads --------------------------------------------------------------------------------------------------

    def _pair_terms(self, operation: Operation, previous: Operation, size: int) -> list[Terms]:
        """(4) per accelerator the transfer time from one predecessor, through ``y``."""
        found: list[Terms] = [[] for _ in range(self.count)]
        for a in range(self.count):
            cost = self.cheapest(size, a)
            if cost > 0.0:
                y = self._unit()
                self.matrix.row([(y, 1.0), (self.x[operation][a], -1.0), (self.x[previous][a], 1.0)], 0.0)
                found[a].append((y, cost))
        return found

    def _staged(self, node: Node) -> bool:
        """Whether a split node lies between fusion points only, so that its shares form a stage."""
        if self.fused(node) or node not in self.lam:
            return False
        if not self.consumers[node[1]] and node[0] != "WU":
            return False
        neighbours = [p for p in self.before[node] if p != ("FP", node[1])]
        neighbours += [v for v in self.after[node] if v[0] != "WU" and v != ("BP", node[1])]
        return bool(node[0] != "WU" or neighbours) and all(self.fused(other) for other in neighbours)

    def _node(self, node: Node) -> None:
        """(5) loads of a node and, for a stage, its length ``D``; for others the durations of its operations."""
        if self._staged(node):
            per_accelerator, self.stage[node] = self._stage_columns(node)
        else:
            per_accelerator = [[] for _ in range(self.count)]
            for operation in self.members(node):
                terms = self._operation_terms(node, operation)
                self.duration[operation] = [term for part in terms for term in part]
                for a in range(self.count):
                    per_accelerator[a] += terms[a]
        for a in range(self.count):
            self.load[node, a] = self.matrix.column(upper=float("inf"))
            self.matrix.row([(self.load[node, a], 1.0)] + [(j, -v) for j, v in per_accelerator[a]], 0.0, 0.0)

    def _operation_terms(self, node: Node, operation: Operation) -> list[Terms]:
        """Per accelerator the duration of one operation."""
        terms: list[Terms] = [[(self.x[operation][a], self.compute(operation, a))] for a in range(self.count)]
        sources: list[list[Terms]] = []
        for previous in self.before[node]:
            if previous == ("FP", node[1]):
                if node[0] == "BP" or previous not in self.lam:  # else part of the gradient columns
                    own = self.part(previous, operation[2])
                    sources.append(self._pair_terms(operation, own, self.own_bytes(node, operation)))
                continue
            size = self.edge_bytes(node, previous)
            if self.fused(previous) or operation[2] >= 0:
                part = self.part(previous, -1 if self.fused(previous) else operation[2])
                sources.append(self._pair_terms(operation, part, size * self.samples(operation)))
            elif previous in self.lam:
                sources.append(self._gather_columns(operation, previous, size))
            else:
                sources += [self._pair_terms(operation, p, size * self.samples(p)) for p in self.members(previous)]
        if node[0] == "WU":
            sources.append(self._gradient_columns(node, operation))
        for source in sources:
            for a in range(self.count):
                terms[a] += source[a]
        return terms

    def _gather_columns(self, operation: Operation, previous: Node, size: int) -> list[Terms]:
        """(6) ``nu``: the configuration of a split predecessor with the place of the fused operation."""
        found: list[Terms] = [[] for _ in range(self.count)]
        into: list[Terms] = [[(self.x[operation][a], -1.0)] for a in range(self.count)]
        parts = self.members(previous)
        for c, lam in self.lam[previous].items():
            out: Terms = [(lam, -1.0)]
            for a in range(self.count):
                j = self._unit()
                out.append((j, 1.0))
                into[a].append((j, 1.0))
                cost = sum(self.transfer(size * self.samples(p), c[k], a) for k, p in enumerate(parts))
                found[a].append((j, cost))
            self.matrix.row(out, 0.0, 0.0)
        for row in into:
            self.matrix.row(row, 0.0, 0.0)
        return found

    def _gradient_columns(self, node: Node, operation: Operation) -> list[Terms]:
        """(7) ``psi``: activation transfer and dW to every other accelerator that holds an FP share of the layer."""
        found: list[Terms] = [[] for _ in range(self.count)]
        if self.count == 1:
            return found
        weight = self.instance.layers[node[1]].weight_bytes
        forward = ("FP", node[1])
        if forward not in self.lam:  # at least the FP of the same share holds the layer
            own = self.part(forward, operation[2])
            for a in range(self.count):
                y = self._unit()
                self.matrix.row([(y, 1.0), (self.x[operation][a], -1.0), (self.x[own][a], 1.0)], 0.0)
                found[a].append((y, min(self.transfer(weight, a, i) for i in range(self.count) if i != a)))
            return found
        position = self.shares.index(operation[2])
        classes: dict[tuple[int, frozenset[int]], Terms] = {}
        for c, lam in self.lam[forward].items():
            classes.setdefault((c[position], frozenset(c)), []).append((lam, -1.0))
        size = self.own_bytes(node, operation)
        into: list[Terms] = [[(self.x[operation][a], -1.0)] for a in range(self.count)]
        for (place, holders), out in classes.items():
            for a in range(self.count):
                j = self._unit()
                out.append((j, 1.0))
                into[a].append((j, 1.0))
                cost = self.transfer(size, place, a) + sum(self.transfer(weight, a, h) for h in sorted(holders))
                found[a].append((j, cost))
            self.matrix.row(out, 0.0, 0.0)
        for row in into:
            self.matrix.row(row, 0.0, 0.0)
        return found

    def _stage_columns(self, node: Node) -> tuple[list[Terms], Terms]:
        """(8) ``mu``: loads and length of a stage, exact given the places of the fused predecessors it carries."""
        parts = self.members(node)
        fused = [p for p in self.before[node] if p != ("FP", node[1])]
        fetch = [self.own_bytes(node, o) if node[0] == "BP" else 0 for o in parts]
        masks = list(product(*[(0, 1) if self.count > 1 and size else (0,) for size in fetch]))
        while fused and self.count ** len(fused) * len(self.lam[node]) * len(masks) > COLUMNS:
            fused = fused[1:]
        loads: list[Terms] = [[] for _ in range(self.count)]
        length: Terms = []
        into = {(p, i): [(self.x[self.part(p)][i], -1.0)] for p in fused for i in range(self.count)}
        fetched: dict[tuple[int, int], Terms] = {(b, a): [] for b in range(len(parts)) for a in range(self.count)}
        for c, lam in self.lam[node].items():
            out: Terms = [(lam, -1.0)]
            for places in product(range(self.count), repeat=len(fused)):
                base = self._stage_loads(node, c, dict(zip(fused, places, strict=True)))
                for mask in masks:
                    j = self._unit()
                    out.append((j, 1.0))
                    for p, i in zip(fused, places, strict=True):
                        into[p, i].append((j, 1.0))
                    amounts = list(base)
                    for b, flag in enumerate(mask):
                        if flag:
                            amounts[c[b]] += self.cheapest(fetch[b], c[b])
                            fetched[b, c[b]].append((j, 1.0))
                    length.append((j, max(amounts)))
                    for a in range(self.count):
                        loads[a].append((j, amounts[a]))
            self.matrix.row(out, 0.0, 0.0)
        for row in into.values():
            self.matrix.row(row, 0.0, 0.0)
        for (b, a), row in fetched.items():  # (9) a share away from its FP fetches the weights
            if fetch[b] and self.count > 1:
                own = self.x[self.part(("FP", node[1]), parts[b][2])][a]
                self.matrix.row([*row, (self.x[parts[b]][a], -1.0), (own, 1.0)], 0.0)
        self._left_out(node, fused, loads)
        return loads, length

    def _left_out(self, node: Node, fused: list[Node], loads: list[Terms]) -> None:
        """Transfers that the columns do not carry load the accelerators all the same."""
        for operation in self.members(node):
            sources = [
                self._pair_terms(operation, self.part(p), self.edge_bytes(node, p) * self.samples(operation))
                for p in self.before[node]
                if p != ("FP", node[1]) and p not in fused
            ]
            if node[0] == "WU":
                sources.append(self._gradient_columns(node, operation))
            for source in sources:
                for a in range(self.count):
                    loads[a] += source[a]

    def _stage_loads(self, node: Node, c: tuple[int, ...], places: dict[Node, int]) -> list[float]:
        amounts = [0.0] * self.count
        for b, operation in enumerate(self.members(node)):
            amounts[c[b]] += self.compute(operation, c[b])
            for p, i in places.items():
                amounts[c[b]] += self.transfer(self.edge_bytes(node, p) * self.samples(operation), i, c[b])
        return amounts

    # ---- time ---------------------------------------------------------------------------------------------------

    def _precedences(self) -> None:
        """(10) start and end of operations outside stages; (11) a stage separates its fusion points by ``D``."""
        matrix = self.matrix
        for node in self.nodes:
            if node in self.stage or node[0] == "WU":
                continue
            for operation in self.members(node):
                s, e = matrix.column(upper=float("inf")), matrix.column(upper=float("inf"))
                self.start[operation], self.end[operation] = s, e
                matrix.row([(e, 1.0), (s, -1.0)] + [(j, -v) for j, v in self.duration[operation]], 0.0, 0.0)
                matrix.row([(self.M, 1.0), (e, -1.0)], 0.0)
                for p in self._previous(node, operation):
                    matrix.row([(s, 1.0), (self.end[p], -1.0)], 0.0)
        for node, length in self.stage.items():
            releases: list[Terms] = [[(self.end[p], -1.0)] for p in self._previous(node, self.members(node)[0])]
            follow = [self.start[self.part(v)] for v in self.after[node] if v[0] != "WU" and self.fused(v)]
            for release in releases or [[]]:
                for v in follow or [self.M]:
                    matrix.row([(v, 1.0), *release] + [(j, -d) for j, d in length], 0.0)

    def _previous(self, node: Node, operation: Operation) -> list[Operation]:
        """Predecessors of an operation that have times."""
        found: list[Operation] = []
        for p in self.before[node]:
            parts = self.members(p)
            if operation[2] >= 0 and not self.fused(p):
                parts = [self.part(p, operation[2])]
            found += [part for part in parts if part in self.end and (node not in self.stage or part[2] < 0)]
        return found

    def _windows(self) -> None:
        """(12) between a fusion point and an earlier one lies the load of all that must run between them."""
        fused = [node for node in self.nodes if self.fused(node)]
        for v in fused:
            feeds = self.before[v]
            if len(feeds) < 2 and (not feeds or self.fused(feeds[0]) or feeds[0] in self.stage):
                continue
            shared = [u for u in fused if u in self.ancestors[v]]
            for u in shared[::-1][:ANCESTORS]:
                between = [d for d in self.descendants[u] if d in self.ancestors[v]]
                for a in range(self.count):
                    row: Terms = [(self.start[self.part(v)], 1.0), (self.end[self.part(u)], -1.0)]
                    self.matrix.row(row + [(self.load[d, a], -1.0) for d in between], 0.0)

    def _makespan(self) -> None:
        """(13) area, (14) after a fusion point all its descendants, (15) the last weight updates."""
        for a in range(self.count):
            self.matrix.row([(self.M, 1.0)] + [(self.load[node, a], -1.0) for node in self.nodes], 0.0)
            for u in self.nodes:
                if self.fused(u):
                    row: Terms = [(self.M, 1.0), (self.end[self.part(u)], -1.0)]
                    self.matrix.row(row + [(self.load[d, a], -1.0) for d in self.descendants[u]], 0.0)
        for node in self.nodes:
            if node[0] == "WU" and node not in self.stage:
                for operation in self.members(node):
                    for p in self._previous(node, operation):
                        row = [(self.M, 1.0), (self.end[p], -1.0)]
                        self.matrix.row(row + [(j, -v) for j, v in self.duration[operation]], 0.0)

    # ---- reading solutions --------------------------------------------------------------------------------------

    def locations(self, values: Vector) -> NDArray[np.int64]:
        """Most likely accelerator of every operation, in the sequence of ``operations``."""
        ops = operations(self.instance, self.ratio)
        return np.array([int(np.argmax([values[j] for j in self.x[o]])) for o in ops], np.int64)
