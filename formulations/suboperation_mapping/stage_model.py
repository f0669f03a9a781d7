"""The stage-configuration MIP of one ratio: a relaxation of the scheduling problem that keeps assignment exact.

A *stage* is a split node of the phase graph all of whose neighbours in FP and BP are fused: it lies between fusion
points only. Every row holds for every schedule (DRAM aside); ``docs/methods/suboperation_mapping.md`` proves them one
by one under the same numbers.
"""

from __future__ import annotations

from itertools import pairwise, product

import numpy as np
from numpy.typing import NDArray

from mapgap.formulations.suboperation_mapping.located_frame import Located
from mapgap.formulations.suboperation_mapping.params import Boxes
from mapgap.formulations.suboperation_mapping.phase_graph import Node, PhaseGraph, RatioGraph
from mapgap.problems.suboperation_mapping.instance import Operation, operations
from mapgap.problems.suboperation_mapping.lowered.ratios import Ratio
from mapgap.solvers.highs import MatrixModel, MatrixOutcome, Terms, Vector


class StageModel(RatioGraph):
    """A relaxation of all schedules of one ratio; solve ``matrix``, whose column ``M`` is the makespan.

    Sets: nodes ``n`` (FP, BP or WU of a layer), operations ``o``, ``p`` (a share of a split node, or a fused node),
    accelerators ``a, i, t``, configurations ``c`` (``c_b`` the accelerator of share ``b`` of a split node), fused nodes
    ``u, v``, ``k`` classes of a WU: the accelerator of its FP, and the accelerators with an FP of the layer.

    Data, times in units of ``scale`` ticks: ``c_oa`` compute; ``m_poa`` the least time to move the tensor from ``p`` to
    ``o`` on ``a`` from another accelerator; ``W_l`` memory units of weights and gradients, ``D_a`` DRAM.

    Variables, 0 or 1 in the image of every schedule: ``x_oa`` operation ``o`` on ``a`` (integer; the others follow
    from it); ``lam_nc`` configuration of a split node; ``y_opa`` o is on a and its predecessor p is not; ``nu_ca``
    configuration ``c`` of a split predecessor with the fused operation on ``a``; ``psi_ka`` class ``k`` with the WU on
    ``a``; ``mu_icf`` fused predecessors of a stage at ``i``, shares at ``c``, ``f_b = 1`` if share ``b`` fetches its
    weights; ``w_la`` weights of ``l`` lie on ``a``. Times: ``L_na`` the time that node ``n`` occupies ``a``, transfers
    included; ``s_o, e_o`` start and end of operations outside stages; ``M`` the makespan. ``d_o`` stands for a duration
    and ``D_n`` for the length of a stage, both sums over columns.

    Minimise M subject to

    (1)  sum_a x_oa = 1
    (2)  sum over c with c_b = a of lam_nc = x_oa, for o the share b of n
    (3)  lam_nc exists for the FP of the first split layer only if c is sorted among equal shares
    (4)  y_opa >= x_oa - x_pa; it costs m_poa
    (5)  L_na = compute and transfers of the operations of n on a
    (6)  sum_a nu_ca = lam_c,  sum_c nu_ca = x_oa, for a fused operation o that gathers a configured node
    (7)  sum_a psi_ka = sum of lam_c over class k,  sum_k psi_ka = x_oa, for a WU o
    (8)  sum over i, f of mu_icf = lam_c,  sum over c, f of mu_icf = x_ui, for a stage and its fused predecessors u
    (9)  sum over c, f with c_b = a, f_b = 1 of mu_icf >= x_oa - x_pa, for o the share b of a BP stage and p its FP
    (10) e_o = s_o + d_o,  M >= e_o,  s_o >= e_p for predecessors p that have times
    (11) s_v >= e_u + D_n for a stage n between u and v; M in place of s_v where no v follows
    (12) s_v >= e_u + sum of L_na over the nodes between u and v
    (13) M >= sum of L_na over all nodes
    (14) M >= e_u + sum of L_na over the nodes after u
    (15) M >= e_p + d_o for a WU o outside stages and its predecessors p
    (16) w_la >= x_oa for o of l,  sum_l W_l w_la <= D_a, where weights can exceed the DRAM
    (17) M >= e_o + sum of the loads on a of all operations that follow o, for a share o outside stages
    (18) M >= sum of L_na - sum of c_oa x_oa over all nodes, operations and accelerators, where all share one medium

    Parameters
    ----------
    phases, ratio, scale
        Of the graph.
    columns : bool
        Without columns (rows 2, 3, 6 to 9) every transfer goes through ``y``: smaller and weaker, for many
        accelerators.
    sort : bool
        Add (3).
    params : Boxes
        How many columns there may be.
    """

    def __init__(
        self,
        phases: PhaseGraph,
        ratio: Ratio,
        scale: float,
        columns: bool = True,
        sort: bool = True,
        params: Boxes = Boxes(),
    ) -> None:
        super().__init__(phases, ratio, scale)
        self.sort, self.params = sort, params
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
        self.own: dict[Operation, list[int]] = {}
        self.spread = columns and self.count ** len(self.shares) <= params.configurations
        self.one_accelerator()
        self.configurations()
        self.weights()
        for node in phases.nodes:
            self.node_loads(node)
        for node in phases.nodes:
            self.times(node)
        for node in self.stage:
            self.stage_lengths(node)
        self.windows()
        for a in range(self.count):
            self.area(a)
            self.after_fusion(a)
        self.last_updates()
        self.one_medium()
        for operation in self.end:
            if operation[2] >= 0:
                self.followers(operation)

    # ---- assignment ---------------------------------------------------------------------------------------------

    def _unit(self) -> int:
        j = self.matrix.column()
        self.columned.add(j)
        return j

    def one_accelerator(self) -> None:
        """(1) Every operation has one accelerator."""
        for operation in operations(self.instance, self.ratio):
            self.x[operation] = [self.matrix.column(integer=True) for _ in range(self.count)]
            self.columned.update(self.x[operation])
            self.matrix.row([(j, 1.0) for j in self.x[operation]], 1.0, 1.0)

    def configurations(self) -> None:
        """(2) Configurations and their marginals; of a WU only in layers without BP."""
        for node in self.phases.nodes:
            later = node[0] == "WU" and self.instance.layers[node[1]].inputs
            if self.phases.fused(node) or not self.spread or later:
                continue
            self.lam[node] = {c: self._unit() for c in self.choices(node)}
            for p, operation in enumerate(self.members(node)):
                for a in range(self.count):
                    row = [(j, 1.0) for c, j in self.lam[node].items() if c[p] == a]
                    self.matrix.row([(self.x[operation][a], -1.0), *row], 0.0, 0.0)

    def choices(self, node: Node) -> list[tuple[int, ...]]:
        """(3) Exchanging two equal shares everywhere gives the same makespan: once they are sorted."""
        found = list(product(range(self.count), repeat=len(self.shares)))
        first = next((i for i, layer in enumerate(self.instance.layers) if layer.kind == "split"), None)
        if self.sort and node == ("FP", first):
            equal = [p for p, (b, d) in enumerate(pairwise(self.shares)) if self.ratio[b] == self.ratio[d]]
            found = [c for c in found if all(c[p] <= c[p + 1] for p in equal)]
        return found

    def weights(self) -> None:
        """(16) Weights and gradients of every layer present fit the DRAM, where they can exceed it."""
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

    def moved_tensors(self, operation: Operation, previous: Operation, size: int) -> list[Terms]:
        """(4) Per accelerator the transfer time from one predecessor, through ``y``."""
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
        if self.phases.fused(node) or node not in self.lam:
            return False
        if not self.phases.consumers[node[1]] and node[0] != "WU":
            return False
        neighbours = [p for p in self.phases.before[node] if p != ("FP", node[1])]
        neighbours += [v for v in self.phases.after[node] if v[0] != "WU" and v != ("BP", node[1])]
        return bool(node[0] != "WU" or neighbours) and all(self.phases.fused(other) for other in neighbours)

    def node_loads(self, node: Node) -> None:
        """(5) Loads of a node and, for a stage, its length; for others the durations of its operations."""
        if self._staged(node):
            per_accelerator, self.stage[node] = self.stage_columns(node)
        else:
            per_accelerator = [[] for _ in range(self.count)]
            for operation in self.members(node):
                terms = self._operation_terms(node, operation)
                self.duration[operation] = [term for part in terms for term in part]
                self.own[operation] = [self.matrix.column(upper=float("inf")) for _ in range(self.count)]
                for a, own in enumerate(self.own[operation]):
                    self.matrix.row([(own, 1.0), *((j, -v) for j, v in terms[a])], 0.0, 0.0)
                    per_accelerator[a].append((own, 1.0))
        for a in range(self.count):
            self.load[node, a] = self.matrix.column(upper=float("inf"))
            self.matrix.row([(self.load[node, a], 1.0)] + [(j, -v) for j, v in per_accelerator[a]], 0.0, 0.0)

    def _operation_terms(self, node: Node, operation: Operation) -> list[Terms]:
        """Per accelerator the duration of one operation."""
        terms: list[Terms] = [[(self.x[operation][a], self.compute(operation, a))] for a in range(self.count)]
        sources: list[list[Terms]] = []
        for previous in self.phases.before[node]:
            if previous == ("FP", node[1]):
                if node[0] == "BP" or previous not in self.lam:  # else part of the gradient columns
                    own = self.part(previous, operation[2])
                    sources.append(self.moved_tensors(operation, own, self.own_bytes(node, operation)))
                continue
            size = self.phases.edge_bytes(node, previous)
            if self.phases.fused(previous) or operation[2] >= 0:
                part = self.part(previous, -1 if self.phases.fused(previous) else operation[2])
                sources.append(self.moved_tensors(operation, part, size * self.samples(operation)))
            elif previous in self.lam:
                sources.append(self.gathered_shares(operation, previous, size))
            else:
                sources += [self.moved_tensors(operation, p, size * self.samples(p)) for p in self.members(previous)]
        if node[0] == "WU":
            sources.append(self.moved_gradients(node, operation))
        for source in sources:
            for a in range(self.count):
                terms[a] += source[a]
        return terms

    def gathered_shares(self, operation: Operation, previous: Node, size: int) -> list[Terms]:
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

    def moved_gradients(self, node: Node, operation: Operation) -> list[Terms]:
        """(7) ``psi``: activation transfer and dW to every other accelerator that holds an FP share of the layer."""
        found: list[Terms] = [[] for _ in range(self.count)]
        if self.count == 1:
            return found
        weight = self.instance.layers[node[1]].weight_bytes
        forward: Node = ("FP", node[1])
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

    def stage_columns(self, node: Node) -> tuple[list[Terms], Terms]:
        """(8) ``mu``: loads and length of a stage, exact given the places of the fused predecessors it carries."""
        parts = self.members(node)
        fused = [p for p in self.phases.before[node] if p != ("FP", node[1])]
        fetch = [self.own_bytes(node, o) if node[0] == "BP" else 0 for o in parts]
        masks = list(product(*[(0, 1) if self.count > 1 and size else (0,) for size in fetch]))
        while fused and self.count ** len(fused) * len(self.lam[node]) * len(masks) > self.params.stage_columns:
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
        if self.count > 1:
            self.fetched_weights(node, {(b, a): row for (b, a), row in fetched.items() if fetch[b]})
        self._left_out(node, fused, loads)
        return loads, length

    def fetched_weights(self, node: Node, fetched: dict[tuple[int, int], Terms]) -> None:
        """(9) A share of a BP away from its FP fetches the weights."""
        parts = self.members(node)
        for (b, a), row in fetched.items():
            own = self.x[self.part(("FP", node[1]), parts[b][2])][a]
            self.matrix.row([*row, (self.x[parts[b]][a], -1.0), (own, 1.0)], 0.0)

    def _left_out(self, node: Node, fused: list[Node], loads: list[Terms]) -> None:
        """Transfers that the columns do not carry load the accelerators all the same."""
        for operation in self.members(node):
            sources = [
                self.moved_tensors(operation, self.part(p), self.phases.edge_bytes(node, p) * self.samples(operation))
                for p in self.phases.before[node]
                if p != ("FP", node[1]) and p not in fused
            ]
            if node[0] == "WU":
                sources.append(self.moved_gradients(node, operation))
            for source in sources:
                for a in range(self.count):
                    loads[a] += source[a]

    def _stage_loads(self, node: Node, c: tuple[int, ...], places: dict[Node, int]) -> list[float]:
        amounts = [0.0] * self.count
        for b, operation in enumerate(self.members(node)):
            amounts[c[b]] += self.compute(operation, c[b])
            for p, i in places.items():
                amounts[c[b]] += self.transfer(self.phases.edge_bytes(node, p) * self.samples(operation), i, c[b])
        return amounts

    # ---- time ---------------------------------------------------------------------------------------------------

    def times(self, node: Node) -> None:
        """(10) Start and end of operations outside stages; weight updates have none."""
        if node in self.stage or node[0] == "WU":
            return
        matrix = self.matrix
        for operation in self.members(node):
            s, e = matrix.column(upper=float("inf")), matrix.column(upper=float("inf"))
            self.start[operation], self.end[operation] = s, e
            matrix.row([(e, 1.0), (s, -1.0)] + [(j, -v) for j, v in self.duration[operation]], 0.0, 0.0)
            matrix.row([(self.M, 1.0), (e, -1.0)], 0.0)
            for p in self._previous(node, operation):
                matrix.row([(s, 1.0), (self.end[p], -1.0)], 0.0)

    def stage_lengths(self, node: Node) -> None:
        """(11) A stage separates its fusion points by its length."""
        releases: list[Terms] = [[(self.end[p], -1.0)] for p in self._previous(node, self.members(node)[0])]
        after = [v for v in self.phases.after[node] if v[0] != "WU" and self.phases.fused(v)]
        for release in releases or [[]]:
            for v in [self.start[self.part(v)] for v in after] or [self.M]:
                self.matrix.row([(v, 1.0), *release] + [(j, -d) for j, d in self.stage[node]], 0.0)

    def _previous(self, node: Node, operation: Operation) -> list[Operation]:
        """Predecessors of an operation that have times."""
        found: list[Operation] = []
        for p in self.phases.before[node]:
            parts = self.members(p)
            if operation[2] >= 0 and not self.phases.fused(p):
                parts = [self.part(p, operation[2])]
            found += [part for part in parts if part in self.end and (node not in self.stage or part[2] < 0)]
        return found

    def windows(self) -> None:
        """(12) Between a fusion point and an earlier one lies the load of all that must run between them."""
        fused = [node for node in self.phases.nodes if self.phases.fused(node)]
        for v in fused:
            feeds = self.phases.before[v]
            if len(feeds) < 2 and (not feeds or self.phases.fused(feeds[0]) or feeds[0] in self.stage):
                continue
            shared = [u for u in fused if u in self.phases.ancestors[v]]
            for u in shared[::-1][: self.params.windows]:
                between = [d for d in self.phases.descendants[u] if d in self.phases.ancestors[v]]
                for a in range(self.count):
                    row: Terms = [(self.start[self.part(v)], 1.0), (self.end[self.part(u)], -1.0)]
                    self.matrix.row(row + [(self.load[d, a], -1.0) for d in between], 0.0)

    def area(self, a: int) -> None:
        """(13) An accelerator runs all its operations one after the other."""
        self.matrix.row([(self.M, 1.0)] + [(self.load[node, a], -1.0) for node in self.phases.nodes], 0.0)

    def after_fusion(self, a: int) -> None:
        """(14) After a fusion point an accelerator runs all that follows it."""
        for u in self.phases.nodes:
            if self.phases.fused(u):
                row: Terms = [(self.M, 1.0), (self.end[self.part(u)], -1.0)]
                self.matrix.row(row + [(self.load[d, a], -1.0) for d in self.phases.descendants[u]], 0.0)

    def one_medium(self) -> None:
        """(18) All that loads hold beside computation takes turns on the medium."""
        if self.instance.medium == "shared":
            row: Terms = [(self.M, 1.0), *((load, -1.0) for load in self.load.values())]
            row += [(j, self.compute(o, a)) for o, places in self.x.items() for a, j in enumerate(places)]
            self.matrix.row(row, 0.0)

    def last_updates(self) -> None:
        """(15) A weight update follows its loss and ends by the makespan."""
        for node in self.phases.nodes:
            if node[0] == "WU" and node not in self.stage:
                for operation in self.members(node):
                    for p in self._previous(node, operation):
                        row = [(self.M, 1.0), (self.end[p], -1.0)]
                        self.matrix.row(row + [(j, -v) for j, v in self.duration[operation]], 0.0)

    def followers(self, o: Operation) -> None:
        """(17) All that follows a share outside stages runs after it."""
        behind = self.phases.descendants[o[:2]]
        fused = [u for u in behind if self.phases.fused(u)]
        for a in range(self.count):
            row: Terms = [(self.M, 1.0), (self.end[o], -1.0)]
            for n in behind:
                part = self.part(n, o[2])
                beyond = self.phases.fused(n) or any(u in self.phases.ancestors[n] for u in fused)
                if beyond:  # of all shares
                    row.append((self.load[n, a], -1.0))
                elif part in self.own:
                    row.append((self.own[part][a], -1.0))
            self.matrix.row(row, 0.0)

    # ---- places of fused nodes ----------------------------------------------------------------------------------

    def closed(self, places: Located) -> set[int]:
        """Columns that are 0 where fused nodes lie at places."""
        return {j for v, a in places for i, j in enumerate(self.x[self.part(v)]) if i != a}

    def parts_of(self, outcome: MatrixOutcome) -> dict[Node, float]:
        """How much of every fused node lies on one accelerator."""
        values = outcome.values
        if values is None:
            return {}
        fused = [node for node in self.phases.nodes if self.phases.fused(node)]
        return {v: max(float(values[j]) for j in self.x[self.part(v)]) for v in fused}

    # ---- reading solutions --------------------------------------------------------------------------------------

    def locations(self, values: Vector) -> NDArray[np.int64]:
        """Most likely accelerator of every operation, in the sequence of ``operations``."""
        ops = operations(self.instance, self.ratio)
        return np.array([int(np.argmax([values[j] for j in self.x[o]])) for o in ops], np.int64)
