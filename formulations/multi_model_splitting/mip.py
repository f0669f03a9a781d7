"""Segment-flow MIP of multi-model splitting.

================  ====================================================================
Symbol            Meaning
================  ====================================================================
y[p, i, j, d]     layers i..j-1 of pipeline p are a segment on device d
a[p, s, d]        p senses on s and its first segment is on d
b[p, d, t]        the last segment of p is on d and its target is t
same[p, q, j]     p and an earlier twin q agree on source and all segments up to j
m[p, q, i, j, d]  segment (i, j, d) of p is merged with the same one of q (sharing)
C                 cycle time; the model minimises the integer C - lower
================  ====================================================================

Total latency is the objective itself: as a variable bound to the sum by an equation of millions of ticks it makes
HiGHS 1.13 prove bounds beyond verified plans.

Flow: the segments of a pipeline follow each other from boundary 0 to ``L``, at most one per (p, d). Adjacent segments
lie on different devices, so a segment that begins (ends) inside the model always pays reception (transmission); ``a``
and ``b`` pay for input and output where the devices differ. Only segments on a path within the limit exist
(``_chains.py``); because the cheapest plan below a limit is optimal, the first limit with a plan ends the search.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from mapgap.core import Budget, MapgapError, PlanError, SolveResult, Status, Stop
from mapgap.formulations.multi_model_splitting.chains import (
    Chain,
    ceiling,
    chains,
    floor,
    profiles,
    sharing_groups,
    signal_groups,
)
from mapgap.problems.multi_model_splitting import RESOURCES, UNITS, Instance, PipelinePlan, Plan, Segment
from mapgap.problems.multi_model_splitting.evaluate import diagnose, evaluate
from mapgap.problems.multi_model_splitting.shared.tables import capacities

CLOSING = 10
"""Ticks between the limits from which any plan of latency between them will do; to refute it is easier."""

Key = tuple[int, int, int]
"""``(i, j, d)``: blocks ``i..j-1`` on device ``d``."""


class Model:
    """Plans of objective at least ``lower`` (proven) and at most ``limit``, the cheapest one."""

    def __init__(self, instance: Instance, chains: list[Chain], limit: int, lower: int) -> None:
        import pulp

        self.pulp: Any = pulp
        self.problem: Any = pulp.LpProblem("multi_model_splitting", pulp.LpMinimize)
        self.instance, self.chains = instance, chains
        self.n = len(instance.devices)
        self.count = 0
        self.limit, self.lower = limit, lower
        self.base = lower if instance.objective == "throughput" else 0  #: what the model's objective counts from
        self.any_plan = instance.objective == "latency" and limit - lower < CLOSING
        self.y: list[dict[Key, Any]] = []
        self.a: list[dict[tuple[int, int], Any]] = []
        self.b: list[dict[tuple[int, int], Any]] = []
        for chain in chains:
            self._flow(chain)
        self.load: dict[tuple[int, str], list[Any]] = {(d, unit): [] for d in range(self.n) for unit in UNITS}
        self.used: dict[tuple[int, int], list[Any]] = {(r, d): [] for r in range(len(RESOURCES)) for d in range(self.n)}
        self.latency: list[Any] = []
        for p in range(len(chains)):
            self._work(p)
        for group in sharing_groups(instance):
            for position, p in enumerate(group[1:], 1):
                self._twins(p, group[:position])
        for group in signal_groups(instance):
            self._inputs(group)
        self._rows()

    def _binary(self, name: str) -> Any:
        self.count += 1
        return self.pulp.LpVariable(f"{name}_{self.count}", cat="Binary")

    def _share(self) -> Any:
        """Between 0 and 1; whole where it matters because the binaries around it are."""
        self.count += 1
        return self.pulp.LpVariable(f"share_{self.count}", 0, 1)

    def _sum(self, terms: Any) -> Any:
        return self.pulp.lpSum(terms)

    def _flow(self, chain: Chain) -> None:
        """One path per pipeline; ``a`` and ``b`` join it to source and target."""
        last, problem = chain.blocks, self.problem
        y = {(int(i), int(j), int(d)): self._binary("y") for i, j, d in np.argwhere(chain.segments)}
        problem += self._sum(v for (i, _, _), v in y.items() if i == 0) == 1
        for k in range(1, last):
            problem += self._sum(v for (_, j, _), v in y.items() if j == k) == self._sum(
                v for (i, _, _), v in y.items() if i == k
            )
        for d in range(self.n):
            problem += self._sum(v for (_, _, e), v in y.items() if e == d) <= 1
        a = {(s, d): self._binary("a") for s in chain.profile.sources for d in range(self.n)}
        b = {(d, t): self._binary("b") for t in chain.profile.targets for d in range(self.n)}
        for d in range(self.n):
            first = self._sum(v for (i, _, e), v in y.items() if i == 0 and e == d)
            final = self._sum(v for (_, j, e), v in y.items() if j == last and e == d)
            problem += self._sum(v for (_, e), v in a.items() if e == d) == first
            problem += self._sum(v for (e, _), v in b.items() if e == d) == final
        self.y.append(y)
        self.a.append(a)
        self.b.append(b)

    def _add(self, p: int, d: int, unit: str, ticks: int, literal: Any) -> None:
        if ticks:
            self.load[d, unit].append(ticks * literal)
            self.latency.append(ticks * literal)

    def _work(self, p: int) -> None:
        """Six types of tasks (Sec. 5.4.1) and memory, as if nothing were shared."""
        chain = self.chains[p]
        last, compute, demand = chain.blocks, self._compute(chain), self._demand(chain)
        for (i, j, d), v in self.y[p].items():
            self._add(p, d, "mcu", int(chain.load[i, d] + chain.unload[j, d]), v)
            self._add(p, d, "accelerator", int(compute[j, d] - compute[i, d]), v)
            self._add(p, d, "radio", int(chain.receive[i, d]) if i > 0 else 0, v)
            self._add(p, d, "radio", int(chain.transmit[j, d]) if j < last else 0, v)
            for r in range(len(RESOURCES)):
                if size := int(demand[r, j] - demand[r, i]):
                    self.used[r, d].append(size * v)
        for (s, d), v in self.a[p].items():
            self._add(p, s, "sensor", int(chain.profile.sensing[s]), v)
            if s != d:
                self._add(p, s, "radio", int(chain.transmit[0, s]), v)
                self._add(p, d, "radio", int(chain.receive[0, d]), v)
        for (d, t), v in self.b[p].items():
            if d != t:
                self._add(p, d, "radio", int(chain.transmit[last, d]), v)
                self._add(p, t, "radio", int(chain.receive[last, t]), v)

    def _compute(self, chain: Chain) -> Any:
        return np.concatenate([np.zeros((1, self.n), np.int64), chain.inference.cumsum(axis=0)])

    def _demand(self, chain: Chain) -> Any:
        return np.concatenate([np.zeros((3, 1), np.int64), chain.demand.cumsum(axis=1)], axis=1)

    def _twins(self, p: int, earlier: list[int]) -> None:
        """Refund of what ``p`` merges with one earlier twin: segments up to a common cut, the transfer after it."""
        chain, problem = self.chains[p], self.problem
        last, compute, demand = chain.blocks, self._compute(chain), self._demand(chain)
        merged: dict[Key, list[Any]] = {}
        moved: dict[tuple[int, int, int], list[Any]] = {}
        for q in earlier:
            same: dict[int, Any] = {0: self._binary("same")}
            for s in {s for s, _ in self.a[p]} | {s for s, _ in self.a[q]}:
                problem += self._equal(same[0], self._source(p, s), self._source(q, s))
                problem += self._equal(same[0], self._source(q, s), self._source(p, s))
            for k in range(1, last + 1):
                same[k] = self._binary("same")
            for key in sorted(set(self.y[p]) & set(self.y[q])):
                i, j, d = key
                m = self._binary("m")
                problem += m <= self.y[p][key]
                problem += m <= self.y[q][key]
                problem += m <= same[i]
                merged.setdefault(key, []).append(m)
            for k in range(1, last + 1):  # agreed up to k: a merged segment ends there
                ending = [merged[key][-1] for key in merged if key[1] == k and key in self.y[q]]
                problem += same[k] <= self._sum(ending)
            self._moves(p, q, same, moved)
        for key, found in merged.items():
            i, j, d = key
            refund = self._share()
            problem += refund <= self._sum(found)
            problem += refund <= self.y[p][key]
            self.load[d, "mcu"].append(-int(chain.load[i, d] + chain.unload[j, d]) * refund)
            self.load[d, "accelerator"].append(-int(compute[j, d] - compute[i, d]) * refund)
            for r in range(len(RESOURCES)):
                self.used[r, d].append(-int(demand[r, j] - demand[r, i]) * refund)
        for (k, d, e), found in moved.items():
            refund = self._share()
            problem += refund <= self._sum(found)
            self.load[d, "radio"].append(-int(chain.transmit[k, d]) * refund)
            self.load[e, "radio"].append(-int(chain.receive[k, e]) * refund)

    def _moves(self, p: int, q: int, same: dict[int, Any], moved: dict[tuple[int, int, int], list[Any]]) -> None:
        """Transfers of boundary ``k > 0`` from ``d`` to ``e`` that follow an agreement and happen in both plans."""
        last, problem = self.chains[p].blocks, self.problem
        for k in range(1, last + 1):
            for d in range(self.n):
                for e in range(self.n):
                    if d == e:
                        continue
                    ends = [self._leaves(r, k, d) for r in (p, q)]
                    begins = [self._arrives(r, k, d, e) for r in (p, q)]
                    if not all(ends) or not all(begins):
                        continue
                    m = self._binary("move")
                    problem += m <= same[k]
                    for expression in (*ends, *begins):
                        problem += m <= self._sum(expression)
                    moved.setdefault((k, d, e), []).append(m)

    def _leaves(self, p: int, k: int, d: int) -> list[Any]:
        return [v for (_, j, e), v in self.y[p].items() if j == k and e == d]

    def _arrives(self, p: int, k: int, d: int, e: int) -> list[Any]:
        if k == self.chains[p].blocks:
            return [self.b[p][d, e]] if (d, e) in self.b[p] else []
        return [v for (i, _, at), v in self.y[p].items() if i == k and at == e]

    def _equal(self, condition: Any, first: Any, second: Any) -> Any:
        """``first <= second`` if ``condition``, all three between 0 and 1."""
        return first <= second + 1 - condition

    def _source(self, p: int, s: int) -> Any:
        return self._sum(v for (at, _), v in self.a[p].items() if at == s)

    def _inputs(self, group: list[int]) -> None:
        """Refund of sensing and input transfers that an earlier pipeline of the same signal already pays."""
        for position, p in enumerate(group[1:], 1):
            chain, earlier = self.chains[p], group[:position]
            for s in chain.profile.sources:
                refund = self._share()
                self.problem += refund <= self._source(p, s)
                self.problem += refund <= self._sum(self._source(q, s) for q in earlier)
                self.load[s, "sensor"].append(-int(chain.profile.sensing[s]) * refund)
            for (s, d), v in self.a[p].items():
                if others := [self.a[q][s, d] for q in earlier if s != d and (s, d) in self.a[q]]:
                    refund = self._share()
                    self.problem += refund <= v
                    self.problem += refund <= self._sum(others)
                    self.load[s, "radio"].append(-int(chain.transmit[0, s]) * refund)
                    self.load[d, "radio"].append(-int(chain.receive[0, d]) * refund)

    def _rows(self) -> None:
        """Limits of the accelerators and the objective."""
        capacity = capacities(self.instance)
        for (r, d), terms in self.used.items():
            self.problem += self._sum(terms) <= int(capacity[r, d])
        if self.instance.objective == "throughput":
            above = self.pulp.LpVariable("above", 0, self.limit - self.lower, cat="Integer")
            self.problem.setObjective(above)
            for terms in self.load.values():
                self.problem += self._sum(terms) <= above + self.lower
        else:
            if not self.any_plan:
                self.problem.setObjective(self._sum(self.latency))
            self.problem += self._sum(self.latency) <= self.limit
            self.problem += self._sum(self.latency) >= self.lower

    def decode(self, value: Any) -> Plan:
        """The plan of a solution."""
        found = []
        for p, chain in enumerate(self.chains):
            path = sorted(key for key, v in self.y[p].items() if value(v))
            source = next(s for (s, _), v in self.a[p].items() if value(v))
            target = next(t for (_, t), v in self.b[p].items() if value(v))
            segments = tuple(Segment(device=d, first=chain.cuts[i], last=chain.cuts[j]) for i, j, d in path)
            found.append(PipelinePlan(source=source, target=target, segments=segments))
        return Plan(pipelines=tuple(found))


def solve(instance: Instance, budget: Budget, engine: Literal["highs", "cbc"]) -> SolveResult:
    """Cheapest plan below growing limits.

    The engine's bound is rounded up with a relative tolerance. What that leaves open is closed by asking once more for
    a plan between the bound and the plan found.
    """
    from mapgap.solvers.mip import solve as run_engine

    if reasons := diagnose(instance):
        return SolveResult(Status.INFEASIBLE, Stop.PROVED, reason="; ".join(reasons))
    tables = profiles(instance)
    top = ceiling(instance, tables)
    bound = floor(instance, tables, top)
    step, plan, value, stop = max(1, bound // 10), None, None, Stop.PROVED
    while bound <= top if value is None else bound < value:
        budget.report(bound=bound)
        limit = min(top, bound + step) if value is None else value - 1
        step *= 3
        reduced = chains(instance, tables, limit)
        if reduced is None:
            bound = limit + 1
            continue
        model = Model(instance, reduced, limit, bound)
        outcome = run_engine(model.problem, budget, engine)
        if outcome.status is Status.INFEASIBLE:
            bound = limit + 1
            continue
        if outcome.objective is not None:
            plan = model.decode(outcome.value)
            value = _checked(instance, plan, limit if model.any_plan else model.base + outcome.objective)
            budget.report(plan=plan)
        if outcome.bound is not None:
            bound = max(bound, model.base + outcome.bound)
        if outcome.objective is None or outcome.stop in (Stop.TIME, Stop.INTERRUPTED):
            stop = outcome.stop
            break
    if value is not None and bound > value:
        raise MapgapError(f"{engine} claims that no plan is below {bound}, and its own plan evaluates to {value}")
    if plan is not None and value is not None:
        if bound == value:
            return SolveResult(Status.OPTIMAL, Stop.PROVED, plan, value, value)
        return SolveResult(Status.FEASIBLE, stop, plan, bound, value)
    if bound <= top:
        return SolveResult(Status.UNKNOWN, stop, bound=bound, reason="no plan within the time")
    reason = "out of resource: no joint plan keeps all weight, bias and layer limits"
    return SolveResult(Status.INFEASIBLE, Stop.PROVED, reason=reason)


def _checked(instance: Instance, plan: Plan, claimed: int) -> int:
    """Objective of a plan, at most what the model claims."""
    found = evaluate(instance, plan)
    if not found.feasible or found.objective is None or found.objective > claimed:
        raise PlanError(f"the model claims {claimed}, the evaluator {found.objective}, {found.violations}")
    return found.objective


def run(instance: Instance, budget: Budget) -> SolveResult:
    """Solve with HiGHS."""
    return solve(instance, budget, "highs")


def run_cbc(instance: Instance, budget: Budget) -> SolveResult:
    """The same with CBC."""
    return solve(instance, budget, "cbc")
