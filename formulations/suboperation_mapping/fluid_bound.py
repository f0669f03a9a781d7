"""A lower bound over all ratios at once, for any number of accelerators: samples flow instead of lying in shares.

========  =====================================================================  ===========
Symbol    Meaning                                                                Unit, shape
========  =====================================================================  ===========
s[n, a]   samples of node n (a phase of a split layer) processed on a            0..B
x[n, a]   part of node n (a phase of a fused layer) done on a                    0..1
rho[n, a] least compute ticks per sample, min over k of table[a][k] / k          ticks
S, E[v]   start and end of a fused node                                          ticks
M         makespan                                                               ticks
========  =====================================================================  ===========

Rows: sum_a s[n, a] = B and sum_a x[n, a] = 1; load[n, a] = rho[n, a] s[n, a], or compute x[n, a].
(1) E[v] >= S[v] + sum_a load[v, a]. (2) S[v] >= E[u] + load[n, a] for a split node n between fused u and v.
(3) S[v] >= E[u] + load of all nodes between u and v on a, for u the nearest fused nodes before v.
(4) M >= E[v] + load of all that follows v on a, and M >= total load on a.

Valid for every plan: the shares that a plan puts on ``a`` hold ``s[n, a]`` samples and take at least
``rho[n, a] s[n, a]``; everything between two fused nodes runs after one has ended and before the other starts, one
operation at a time per accelerator. Transfers and DRAM are relaxed, so the bound is far from tight at low bandwidth.
"""

from __future__ import annotations

import math

from mapgap.core import Budget, SolveResult, Status, Stop
from mapgap.problems.suboperation_mapping import Instance

Node = tuple[str, int]  # phase, layer
SAFETY = 1e-6


def nodes_of(instance: Instance) -> dict[Node, list[Node]]:
    """Every phase of every layer with the nodes it follows, in topological order."""
    found: dict[Node, list[Node]] = {}
    for index, layer in enumerate(instance.layers):
        found["FP", index] = [("FP", edge.source) for edge in layer.inputs]
    for index in reversed(range(len(instance.layers))):
        layer = instance.layers[index]
        before: list[Node] = [("BP", consumer) for consumer, _ in instance.consumers(index)] + [("FP", index)]
        if layer.kind == "split":
            found["WU", index] = before
        if layer.inputs:
            found["BP", index] = before
    return found


def least_ticks(instance: Instance, node: Node) -> list[float]:
    """rho of a split node, compute ticks of a fused one, per accelerator."""
    layer = instance.layers[node[1]]
    table = {"FP": layer.fp, "BP": layer.bp, "WU": layer.wu}[node[0]]
    if layer.kind == "fused":
        return [float(row[0]) for row in table]
    return [min(ticks / (k + 1) for k, ticks in enumerate(row)) for row in table]


def _reach(before: dict[Node, list[Node]]) -> dict[Node, set[Node]]:
    """All nodes that precede each node."""
    above: dict[Node, set[Node]] = {}
    for node, previous in before.items():
        above[node] = set(previous).union(*(above[p] for p in previous))
    return above


def fluid_bound(instance: Instance, time_s: float = 60.0) -> int:
    """Smallest makespan of the flow, rounded up to ticks."""
    from mapgap.solvers.highs import MatrixModel

    before = nodes_of(instance)
    above = _reach(before)
    count, infinite = len(instance.accelerators), float("inf")
    rho = {node: least_ticks(instance, node) for node in before}
    scale = max(1.0, sum(min(ticks) * _amount(instance, node) for node, ticks in rho.items())) / 1000.0
    model = MatrixModel()
    makespan = model.column(infinite, cost=1.0)
    load: dict[Node, list[int]] = {}
    for node, ticks in rho.items():
        load[node] = [model.column(infinite) for _ in range(count)]
        amount = float(_amount(instance, node))
        free = [a for a in range(count) if ticks[a] == 0]
        if not free:  # sum of load / rho is the amount
            model.row([(load[node][a], scale / ticks[a]) for a in range(count)], amount, amount)
    fused = [node for node in before if instance.layers[node[1]].kind == "fused"]
    start = {v: model.column(infinite) for v in fused}
    end = {v: model.column(infinite) for v in fused}
    for v in fused:
        model.row([(end[v], 1.0), (start[v], -1.0), *((c, -1.0) for c in load[v])], 0.0)
        earlier = [u for u in fused if u in above[v]]
        nearest = [u for u in earlier if not any(u in above[w] for w in earlier)]
        for a in range(count):
            model.row([(start[v], 1.0), *((load[n][a], -1.0) for n in above[v])], 0.0)
            for u in nearest:
                between = [n for n in above[v] if u in above[n]]
                model.row([(start[v], 1.0), (end[u], -1.0), *((load[n][a], -1.0) for n in between)], 0.0)
            after = [n for n in before if v in above[n]]
            model.row([(makespan, 1.0), (end[v], -1.0), *((load[n][a], -1.0) for n in after)], 0.0)
    for a in range(count):
        model.row([(makespan, 1.0), *((load[n][a], -1.0) for n in before)], 0.0)
    answer = model.solve(time_s, relaxed=True)
    return 0 if answer.bound is None else max(0, math.ceil(answer.bound * scale * (1.0 - SAFETY) - 1e-6))


def _amount(instance: Instance, node: Node) -> int:
    return instance.batch if instance.layers[node[1]].kind == "split" else 1


def run(instance: Instance, budget: Budget) -> SolveResult:
    """The bound; no plan."""
    bound = fluid_bound(instance, budget.remaining_s)
    budget.report(bound=bound)
    return SolveResult(Status.UNKNOWN, Stop.DONE, bound=bound)
