"""CP-SAT model of layer flow: the integer program of Helix (Table 5 of the paper)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from mapgap.core import Budget, PlanBase, SolveResult, read_start
from mapgap.problems.layer_flow import Instance, Plan
from mapgap.problems.layer_flow.evaluate import evaluate
from mapgap.problems.layer_flow.lowered.limits import flow_limit
from mapgap.solvers.cpsat import CpSatModel
from mapgap.solvers.model import Model, Part, Value, prove, row


class HelixModel(CpSatModel):
    """Helix's program, with its conditions on links as enforced rows.

    Sets: nodes i, j; layers 0..L-1. Data: ``T_i(k)``, capacities ``c``, all cut down to what no flow exceeds.

    Variables: ``s_i`` in 0..L-1, the first layer of node i; ``b_ik`` in {0, 1}, it holds k layers; ``f`` >= 0 in whole
    units, the flow of a link; ``d`` in {0, 1}, the link may carry flow. ``e_i = s_i + sum_k k b_ik``.

    Maximise sum_i f_source,i subject to

    (1)  sum_k b_ik = 1                              every node i
    (2)  e_i <= L                                    every node i
    (3)  sum_u f_ui = sum_v f_iv                     every node i
    (4)  sum_u f_ui <= sum_k T_i(k) b_ik             every node i
    (5)  d_source,i = 1  implies  s_i = 0
    (6)  d_i,sink = 1    implies  e_i >= L
    (7)  d_ij = 1        implies  s_j <= e_i
    (8)  d_ij = 1        implies  e_i <= s_j         without partial inference
    (9)  d_ij = 1        implies  e_i + 1 <= e_j     with partial inference
    (10) f <= c d                                    every link
    """

    sign = -1

    def __init__(self, instance: Instance, without: Collection[int] = ()) -> None:
        super().__init__()
        self.instance, new = instance, self.program
        self.nodes, self.most = range(len(instance.nodes)), flow_limit(instance)
        self.start = [new.new_int_var(0, instance.layers - 1, f"s[{i}]") for i in self.nodes]
        self.hold = [
            [new.new_bool_var(f"b[{i},{k}]") for k in range(1, len(node.throughput) + 1)]
            for i, node in enumerate(instance.nodes)
        ]
        self.capacity: dict[tuple[int | str, int | str], int] = {}
        for i in self.nodes:
            self.capacity["source", i], self.capacity[i, "sink"] = instance.entry[i], instance.exit[i]
            self.capacity |= {(i, j): instance.links[i][j] for j in self.nodes if j != i}
        self.capacity = {arc: min(c, self.most) for arc, c in self.capacity.items() if c}
        self.flow = {(u, v): new.new_int_var(0, c, f"f[{u},{v}]") for (u, v), c in self.capacity.items()}
        self.open = {(u, v): new.new_bool_var(f"d[{u},{v}]") for u, v in self.capacity}
        self.add_rows(without)
        new.minimize(-sum(f for (u, _), f in self.flow.items() if u == "source"))

    def end(self, i: int) -> Any:
        """e_i."""
        return self.start[i] + sum(k * b for k, b in enumerate(self.hold[i], 1))

    def arrives(self, i: int) -> Any:
        """What node i receives."""
        return sum(f for (_, v), f in self.flow.items() if v == i)

    def links(self) -> list[tuple[int, int]]:
        """Between nodes."""
        return [(u, v) for u, v in self.open if isinstance(u, int) and isinstance(v, int)]

    @row(1)
    def one_number_of_layers(self) -> None:
        """Every node holds one number of layers."""
        for hold in self.hold:
            self.program.add(sum(hold) == 1)

    @row(2)
    def inside_the_model(self) -> None:
        """No interval ends behind the model."""
        for i in self.nodes:
            self.program.add(self.end(i) <= self.instance.layers)

    @row(3)
    def flow_is_kept(self) -> None:
        """What a node receives it passes on."""
        for i in self.nodes:
            self.program.add(self.arrives(i) == sum(f for (u, _), f in self.flow.items() if u == i))

    @row(4)
    def throughput(self) -> None:
        """A node receives at most its throughput."""
        for i, node in enumerate(self.instance.nodes):
            table = (min(t, self.most) * b for t, b in zip(node.throughput, self.hold[i], strict=True))
            self.program.add(self.arrives(i) <= sum(table))

    @row(5)
    def from_the_first_layer(self) -> None:
        """The source feeds nodes that begin with the first layer."""
        for (u, v), d in self.open.items():
            if u == "source" and isinstance(v, int):
                self.program.add(self.start[v] == 0).only_enforce_if(d)

    @row(6)
    def to_the_last_layer(self) -> None:
        """The sink is fed by nodes that end with the last layer."""
        for (u, v), d in self.open.items():
            if v == "sink" and isinstance(u, int):
                self.program.add(self.end(u) >= self.instance.layers).only_enforce_if(d)

    @row(7)
    def no_gap(self) -> None:
        """No layer lies between two nodes that are joined."""
        for i, j in self.links():
            self.program.add(self.start[j] <= self.end(i)).only_enforce_if(self.open[i, j])

    @row(8)
    def no_overlap(self) -> None:
        """Without partial inference no layer lies in both."""
        for i, j in self.links() if not self.instance.partial else ():
            self.program.add(self.end(i) <= self.start[j]).only_enforce_if(self.open[i, j])

    @row(9)
    def onwards(self) -> None:
        """With partial inference the next node ends later."""
        for i, j in self.links() if self.instance.partial else ():
            self.program.add(self.end(i) + 1 <= self.end(j)).only_enforce_if(self.open[i, j])

    @row(10)
    def open_links_only(self) -> None:
        """A link carries up to its capacity, if it may carry anything."""
        for arc, f in self.flow.items():
            self.program.add(f <= self.capacity[arc] * self.open[arc])

    def assignment(self, plan: PlanBase) -> Mapping[Any, int] | None:
        """s and b of a plan; the flow follows. None for a start or number of layers that no variable stands for."""
        return decisions(self.instance, plan, self.start, self.hold)

    def plan(self, value: Value) -> Plan:
        """The intervals of a solution."""
        return intervals(self.start, self.hold, value)


def decisions(instance: Instance, plan: PlanBase, start: list[Any], hold: list[list[Any]]) -> dict[Any, int] | None:
    """Values of s and b for a plan; ``None`` where one is outside of what the variables can say."""
    if not isinstance(plan, Plan) or not len(plan.starts) == len(plan.counts) == len(start):
        return None
    found: dict[Any, int] = {}
    for i, (s, k) in enumerate(zip(plan.starts, plan.counts, strict=True)):
        if not 0 <= s < instance.layers or not 1 <= k <= len(hold[i]):
            return None
        found[start[i]] = s
        found.update({b: int(held == k) for held, b in enumerate(hold[i], 1)})
    return found


def intervals(start: list[Any], hold: list[list[Any]], value: Value) -> Plan:
    """The plan that values of s and b stand for."""
    counts = tuple(next(k for k, b in enumerate(row, 1) if value(b)) for row in hold)
    return Plan(starts=tuple(value(s) for s in start), counts=counts)


def models(instance: Instance) -> list[Part]:
    """One program holds all plans."""
    return [Part("", lambda complete=False, without=(): HelixModel(instance, without))]


def run(instance: Instance, budget: Budget, start: str | Plan | None = None) -> SolveResult:
    """Solve the model."""
    return proven(HelixModel(instance), instance, budget, start)


def proven(model: Model, instance: Instance, budget: Budget, start: str | Plan | None) -> SolveResult:
    """What an engine says of a model, from a plan if one is given."""
    given = read_start(start, Plan, instance, evaluate)

    def value(plan: PlanBase) -> int | None:
        return evaluate(instance, plan).objective if isinstance(plan, Plan) else None

    known = None if given is None else value(given)
    return prove(model, budget, start=given, known=known, value=value)
