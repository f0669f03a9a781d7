"""MIP model of layer flow for HiGHS: the integer program of Helix (Table 5 of the paper)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import pulp

from mapgap.core import Budget, PlanBase, SolveResult
from mapgap.formulations.layer_flow.cpsat import decisions, intervals, proven
from mapgap.problems.layer_flow import Instance, Plan
from mapgap.problems.layer_flow.lowered.limits import flow_limit
from mapgap.solvers.mip import MipModel
from mapgap.solvers.model import Part, Value, row


class HelixModel(MipModel):
    """Helix's program, with its conditions on links as rows with the number of layers as big M.

    Sets: nodes i, j; layers 0..L-1. Data: ``T_i(k)``, capacities ``c``, all cut down to what no flow exceeds.

    Variables: ``s_i`` in 0..L-1, the first layer of node i; ``b_ik`` in {0, 1}, it holds k layers; ``f >= 0``, the flow
    of a link in units; ``d`` in {0, 1}, the link may carry flow. ``e_i = s_i + sum_k k b_ik``.

    Maximise sum_i f_source,i subject to

    (1)  sum_k b_ik = 1                              every node i
    (2)  e_i <= L                                    every node i
    (3)  sum_u f_ui = sum_v f_iv                     every node i
    (4)  sum_u f_ui <= sum_k T_i(k) b_ik             every node i
    (5)  s_i <= L (1 - d_source,i)
    (6)  L d_i,sink <= e_i
    (7)  s_j - e_i <= L (1 - d_ij)
    (8)  e_i - s_j <= L (1 - d_ij)                   without partial inference
    (9)  e_i + 1 - e_j <= L (1 - d_ij)               with partial inference
    (10) f <= c d                                    every link

    Helix has a condition variable for each of rows (7) and (9), and ``d`` at most each of them; here ``d`` itself
    stands for both. With whole capacities the flow of an optimum is whole.
    """

    sign = -1

    def __init__(self, instance: Instance, without: Collection[int] = ()) -> None:
        super().__init__("layer_flow")
        self.instance, self.layers = instance, instance.layers
        self.nodes, self.most = range(len(instance.nodes)), flow_limit(instance)
        self.start = [pulp.LpVariable(f"s_{i}", 0, self.layers - 1, pulp.LpInteger) for i in self.nodes]
        self.hold = [
            [pulp.LpVariable(f"b_{i}_{k}", cat=pulp.LpBinary) for k in range(1, len(node.throughput) + 1)]
            for i, node in enumerate(instance.nodes)
        ]
        capacity: dict[tuple[int | str, int | str], int] = {}
        for i in self.nodes:
            capacity["source", i], capacity[i, "sink"] = instance.entry[i], instance.exit[i]
            capacity |= {(i, j): instance.links[i][j] for j in self.nodes if j != i}
        self.capacity = {arc: min(c, self.most) for arc, c in capacity.items() if c}
        self.flow = {(u, v): pulp.LpVariable(f"f_{u}_{v}", 0, c) for (u, v), c in self.capacity.items()}
        self.open = {(u, v): pulp.LpVariable(f"d_{u}_{v}", cat=pulp.LpBinary) for u, v in self.capacity}
        self.program += -pulp.lpSum(f for (u, _), f in self.flow.items() if u == "source")
        self.add_rows(without)

    def end(self, i: int) -> Any:
        """e_i."""
        return self.start[i] + pulp.lpSum(k * b for k, b in enumerate(self.hold[i], 1))

    def arrives(self, i: int) -> Any:
        """What node i receives."""
        return pulp.lpSum(f for (_, v), f in self.flow.items() if v == i)

    def links(self) -> list[tuple[int, int]]:
        """Between nodes."""
        return [(u, v) for u, v in self.open if isinstance(u, int) and isinstance(v, int)]

    @row(1)
    def one_number_of_layers(self) -> None:
        """Every node holds one number of layers."""
        for hold in self.hold:
            self.program += pulp.lpSum(hold) == 1

    @row(2)
    def inside_the_model(self) -> None:
        """No interval ends behind the model."""
        for i in self.nodes:
            self.program += self.end(i) <= self.layers

    @row(3)
    def flow_is_kept(self) -> None:
        """What a node receives it passes on."""
        for i in self.nodes:
            self.program += self.arrives(i) == pulp.lpSum(f for (u, _), f in self.flow.items() if u == i)

    @row(4)
    def throughput(self) -> None:
        """A node receives at most its throughput."""
        for i, node in enumerate(self.instance.nodes):
            table = (min(t, self.most) * b for t, b in zip(node.throughput, self.hold[i], strict=True))
            self.program += self.arrives(i) <= pulp.lpSum(table)

    @row(5)
    def from_the_first_layer(self) -> None:
        """The source feeds nodes that begin with the first layer."""
        for (u, v), d in self.open.items():
            if u == "source" and isinstance(v, int):
                self.program += self.start[v] <= self.layers * (1 - d)

    @row(6)
    def to_the_last_layer(self) -> None:
        """The sink is fed by nodes that end with the last layer."""
        for (u, v), d in self.open.items():
            if v == "sink" and isinstance(u, int):
                self.program += self.layers * d <= self.end(u)

    @row(7)
    def no_gap(self) -> None:
        """No layer lies between two nodes that are joined."""
        for i, j in self.links():
            self.program += self.start[j] - self.end(i) <= self.layers * (1 - self.open[i, j])

    @row(8)
    def no_overlap(self) -> None:
        """Without partial inference no layer lies in both."""
        for i, j in self.links() if not self.instance.partial else ():
            self.program += self.end(i) - self.start[j] <= self.layers * (1 - self.open[i, j])

    @row(9)
    def onwards(self) -> None:
        """With partial inference the next node ends later."""
        for i, j in self.links() if self.instance.partial else ():
            self.program += self.end(i) + 1 - self.end(j) <= self.layers * (1 - self.open[i, j])

    @row(10)
    def open_links_only(self) -> None:
        """A link carries up to its capacity, if it may carry anything."""
        for arc, f in self.flow.items():
            self.program += f <= self.capacity[arc] * self.open[arc]

    def assignment(self, plan: PlanBase) -> Mapping[Any, int] | None:
        """s and b of a plan; the flow follows. None for a start or number of layers that no variable stands for."""
        return decisions(self.instance, plan, self.start, self.hold)

    def plan(self, value: Value) -> Plan:
        """The intervals of a solution."""
        return intervals(self.start, self.hold, value)


def models(instance: Instance) -> list[Part]:
    """One program holds all plans."""
    return [Part("", lambda complete=False, without=(): HelixModel(instance, without))]


def run(instance: Instance, budget: Budget, start: str | Plan | None = None) -> SolveResult:
    """Solve the model."""
    return proven(HelixModel(instance), instance, budget, start)
