"""Disjunctive MIP of sub-operation mapping, one ratio at a time, for small instances and as a cross-check.

Symbols as in ``cpsat.py``: x, h, w, s, e, T; further binaries, all of shape pairs of operations:

==============  =================================================================================
b[i, j]         i runs before j on the same accelerator
z[p, o]         o starts when p ends (p a predecessor or earlier on the accelerator)
begun[p, o]     1 if s[p] <= s[o]
over[r, o]      only 1 if e[r] <= s[o]
==============  =================================================================================

If DRAM can bind, every start is *chosen* among the ends before it (z), because a plan cannot wait (see ``cpsat.py``),
and ranks u that rise along precedences and b exclude circles of zero duration. Stored tensors are counted at the
start of every operation that stores one, where the peaks are.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from mapgap.core import Budget, PlanError, SolveResult, Status
from mapgap.formulations.suboperation_mapping._ratios import (
    RatioResult,
    dram_binds,
    horizon,
    reachability,
    sweep,
    timed,
)
from mapgap.formulations.suboperation_mapping.cpsat import parse_ratio
from mapgap.problems.suboperation_mapping import Instance
from mapgap.problems.suboperation_mapping.lowered import Array, Lowered


class Model:
    """The model of one ratio; only plans with a makespan below ``cutoff``, if given."""

    def __init__(self, lowered: Lowered, cutoff: int | None = None) -> None:
        import pulp

        self.pulp: Any = pulp
        self.problem: Any = pulp.LpProblem("suboperation_mapping", pulp.LpMinimize)
        self.lowered = lowered
        self.last = horizon(lowered) if cutoff is None else min(horizon(lowered), max(cutoff - 1, 0))
        low = lowered
        self.related = reachability(low)
        self.makespan = self._integer("T", self.last)
        self.problem += self.makespan
        self.start = [self._integer(f"s_{o}", self.last) for o in range(low.n)]
        self.rank = [self._integer(f"u_{o}", low.n - 1) for o in range(low.n)]
        self._mapping()
        self._times()
        self._order()
        if dram_binds(low):
            self._as_early_as_possible()
            self._dram()

    def _integer(self, name: str, most: int) -> Any:
        return self.pulp.LpVariable(name, 0, most, cat="Integer")

    def _binary(self, name: str) -> Any:
        return self.pulp.LpVariable(name, cat="Binary")

    def _mapping(self) -> None:
        """One accelerator per operation; h and w as unions of x (bounded from below, and h also from above)."""
        low, problem = self.lowered, self.problem
        self.x = [[self._binary(f"x_{o}_{a}") for a in range(low.accelerators)] for o in range(low.n)]
        for row in self.x:
            problem += self.pulp.lpSum(row) == 1
        self.h: dict[tuple[int, int], Any] = {}
        self.w: dict[tuple[int, int], Any] = {}
        for layer in sorted({int(i) for i in low.layer}):
            members = [o for o in range(low.n) if low.layer[o] == layer]
            forward = [o for o in members if low.operations[o][0] == "FP"]
            for a in range(low.accelerators):
                for name, union, ops in (("h", self.h, forward), ("w", self.w, members)):
                    union[layer, a] = self._binary(f"{name}_{layer}_{a}")
                    for o in ops:
                        problem += union[layer, a] >= self.x[o][a]
                    problem += union[layer, a] <= self.pulp.lpSum(self.x[o][a] for o in ops)

    def _both(self, first: Any, second: Any, name: str) -> Any:
        both = self._binary(name)
        self.problem += both <= first
        self.problem += both <= second
        self.problem += both >= first + second - 1
        return both

    def _load(self, o: int, a: int) -> list[Any]:
        """Compute, transfers in and dW out of operation ``o`` on accelerator ``a`` (rules 4-6)."""
        low = self.lowered
        terms = [int(low.compute[o, a]) * self.x[o][a]]
        for e in range(low.pred_ptr[o], low.pred_ptr[o + 1]):
            for i in range(low.accelerators):
                if ticks := int(low.pred_ticks[e, i, a]):
                    terms.append(ticks * self._both(self.x[int(low.pred[e])][i], self.x[o][a], f"y_{e}_{i}_{a}"))
        if low.holder_ptr[o + 1] > low.holder_ptr[o]:
            for t in range(low.accelerators):
                if ticks := int(low.gradient_ticks[o, a, t]):
                    held = self.h[int(low.layer[o]), t]
                    terms.append(ticks * self._both(held, self.x[o][a], f"g_{o}_{a}_{t}"))
        return terms

    def _times(self) -> None:
        """e = s + load; T >= e; T >= load of every accelerator; precedences in time and rank."""
        low, problem, total = self.lowered, self.problem, self.pulp.lpSum
        loads = [[self._load(o, a) for a in range(low.accelerators)] for o in range(low.n)]
        self.end = [self.start[o] + total(term for terms in loads[o] for term in terms) for o in range(low.n)]
        for a in range(low.accelerators):
            problem += self.makespan >= total(term for o in range(low.n) for term in loads[o][a])
        for o in range(low.n):
            problem += self.makespan >= self.end[o]
            for p in self._predecessors(o):
                problem += self.start[o] >= self.end[p]
                problem += self.rank[o] >= self.rank[p] + 1

    def _predecessors(self, o: int) -> set[int]:
        low = self.lowered
        return {int(p) for p in low.pred[low.pred_ptr[o] : low.pred_ptr[o + 1]]}

    def _order(self) -> None:
        """Two unrelated operations on one accelerator: one before the other."""
        low, problem = self.lowered, self.problem
        self.before: dict[tuple[int, int], Any] = {}
        for i in range(low.n):
            for j in range(i):
                if self.related[i, j] or self.related[j, i]:
                    continue
                for p, q in ((i, j), (j, i)):
                    b = self.before[p, q] = self._binary(f"b_{p}_{q}")
                    problem += self.start[q] >= self.end[p] - self.last * (1 - b)
                    problem += self.rank[q] >= self.rank[p] + 1 - low.n * (1 - b)
                    for a in range(low.accelerators):
                        problem += self.x[p][a] - self.x[q][a] <= 1 - b
                for a in range(low.accelerators):
                    problem += self.before[i, j] + self.before[j, i] >= self.x[i][a] + self.x[j][a] - 1

    def _as_early_as_possible(self) -> None:
        """s[o] <= e[p] for one chosen p that o must wait for, or s[o] = 0."""
        for o in range(self.lowered.n):
            chosen = [self._binary(f"z_none_{o}")]
            self.problem += self.start[o] <= self.last * (1 - chosen[0])
            direct = self._predecessors(o)
            for p in sorted(direct | {p for p, q in self.before if q == o}):
                z = self._binary(f"z_{p}_{o}")
                self.problem += self.start[o] <= self.end[p] + self.last * (1 - z)
                if p not in direct:
                    self.problem += z <= self.before[p, o]
                chosen.append(z)
            self.problem += self.pulp.lpSum(chosen) == 1

    def _dram(self) -> None:
        """Rule 7 at the start of every operation that stores a tensor; weights always."""
        low, problem, total = self.lowered, self.problem, self.pulp.lpSum
        weights = [
            total(int(low.weight_units[layer]) * w for (layer, where), w in self.w.items() if where == a)
            for a in range(low.accelerators)
        ]
        for a in range(low.accelerators):
            problem += weights[a] <= int(low.capacity[a])
        items = [
            (int(p), int(r), int(u))
            for p, r, u in zip(low.item_owner, low.item_release, low.item_units, strict=True)
            if u
        ]
        for o in sorted({p for p, _, _ in items}):
            begun = {p: self._binary(f"begun_{p}_{o}") for p in {p for p, _, _ in items}}
            over = {r: self._binary(f"over_{r}_{o}") for r in {r for _, r, _ in items}}
            for p, literal in begun.items():
                problem += self.start[p] >= self.start[o] + 1 - (self.last + 1) * literal
            for r, literal in over.items():
                problem += self.end[r] <= self.start[o] + self.last * (1 - literal)
            for a in range(low.accelerators):
                stored = []
                for k, (p, r, units) in enumerate(items):
                    counted = self._binary(f"c_{k}_{o}_{a}")
                    problem += counted >= self.x[p][a] + begun[p] - over[r] - 1
                    stored.append(units * counted)
                problem += weights[a] + total(stored) <= int(low.capacity[a])

    def decode(self, value: Any) -> tuple[Array, Array]:
        """``(location, sequence)``, the sequence by rank."""
        low = self.lowered
        location = np.array([[value(x) for x in row].index(1) for row in self.x], np.int64)
        ordered = sorted((int(o) for o in low.topological), key=lambda o: value(self.rank[o]))
        return location, np.array(ordered, np.int64)


def solve_ratio(
    lowered: Lowered, cutoff: int | None, budget: Budget, time_s: float, engine: Literal["highs", "cbc"]
) -> RatioResult:
    """Best plan of one ratio below ``cutoff``."""
    from mapgap.solvers.mip import solve

    model = Model(lowered, cutoff)
    outcome = solve(model.problem, budget, engine, time_s=time_s)
    if outcome.status is Status.INFEASIBLE:
        return RatioResult(None, 0 if cutoff is None else cutoff, outcome.stop, infeasible=cutoff is None)
    bound = max(outcome.bound or 0, 0)
    if outcome.objective is None:
        return RatioResult(None, bound if cutoff is None else min(bound, cutoff), outcome.stop)
    found = timed(lowered, *model.decode(outcome.value))
    if found is None or found.makespan > outcome.objective:
        made = "too little DRAM" if found is None else found.makespan
        raise PlanError(f"{engine} claims {outcome.objective}, the timetable {made}")
    proven = outcome.status is Status.OPTIMAL
    claimed = outcome.objective if proven else found.makespan
    return RatioResult(found, min(bound, found.makespan), outcome.stop, claimed)


def run(instance: Instance, budget: Budget, ratio: str = "") -> SolveResult:
    """Solve over all ratios with HiGHS, or over one given as ``"3,1"``."""

    def one(lowered: Lowered, cutoff: int | None, seconds: float) -> RatioResult:
        return solve_ratio(lowered, cutoff, budget, seconds, "highs")

    return sweep(instance, budget, one, parse_ratio(instance, ratio))


def run_cbc(instance: Instance, budget: Budget, ratio: str = "") -> SolveResult:
    """The same with CBC."""

    def one(lowered: Lowered, cutoff: int | None, seconds: float) -> RatioResult:
        return solve_ratio(lowered, cutoff, budget, seconds, "cbc")

    return sweep(instance, budget, one, parse_ratio(instance, ratio))
