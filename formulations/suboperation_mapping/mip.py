"""Disjunctive MIP of sub-operation mapping (Tang et al., Secs. III-V), one ratio at a time.

For small instances, and the cross-check of CP-SAT on another engine. A plan cannot wait (see *Delays* in
:mod:`mapgap.formulations.suboperation_mapping.cpsat`), so where DRAM can bind every start is *chosen* among the ends
before it, and ranks that rise along precedences and orders exclude circles of zero duration. Stored tensors are counted
at the start of every operation that makes one, where the peaks are.

On shared links (rule 10) the program is a relaxation, with starts that may wait, as that of CP-SAT is.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pulp

from mapgap.core import DISTRUSTED, Budget, OutOfTime, PlanBase, SolveResult, Status, Stop
from mapgap.formulations.suboperation_mapping.params import MipSweep as Params
from mapgap.formulations.suboperation_mapping.ratio_model import (
    by_way,
    decisions,
    direct_predecessors,
    dram_binds,
    horizon,
    layer_members,
    parts,
    shares_links,
    unrelated_pairs,
)
from mapgap.formulations.suboperation_mapping.ratio_sweep import (
    nothing_below,
    relaxed,
    sweep,
    unbuilt,
    watch,
    worth,
)
from mapgap.problems.suboperation_mapping import Instance, Plan
from mapgap.problems.suboperation_mapping.lowered.arrays import Lowered
from mapgap.problems.suboperation_mapping.lowered.ratios import parse_ratio
from mapgap.solvers.big_m import LEAK, BigM, check_big_m
from mapgap.solvers.guard import GuardError
from mapgap.solvers.mip import TOLERANCE, Engine, MipModel
from mapgap.solvers.model import Part, Value, prove, row


class RatioProgram(MipModel):
    """All plans of one ratio.

    Sets: ``o, p`` operations of G*, ``P(o)`` those that ``o`` follows, ``U`` ordered pairs between which no precedence
    leads, ``a`` accelerators, ``l`` layers, ``F(l)`` the operations of layer ``l`` and ``F_fp(l)`` those of its FP,
    ``k`` stored tensors, made by operation ``p(k)`` and held until ``r(k)`` ends, ``O`` the operations that make one.

    Data in ticks: ``c_oa`` compute; ``m_eia`` moving the tensor of precedence ``e = (p, o)`` from ``i`` to ``a``;
    ``q_oat`` moving dW from ``a`` to ``t``; ``H`` no plan takes longer. In memory units: ``W_l`` weights and gradients,
    ``u_k`` a tensor, ``D_a`` the DRAM. ``n`` operations.

    Variables: binary ``x_oa`` operation ``o`` runs on ``a``; ``h_la``, ``w_la`` an FP, any operation of ``l`` lies on
    ``a``; ``y_eia``, ``g_oat`` a tensor, dW is moved; ``b_po`` p runs before o on the same accelerator; ``z_po`` o
    starts when p ends, ``z_0o`` o starts at 0; ``v_po`` 1 if s_p <= s_o; ``f_po`` only 1 if e_p <= s_o; ``j_koa``
    tensor k lies on a when o starts. Integer: ``s_o`` start and ``T`` makespan in ticks, ``n_o`` rank of an operation.
    ``e_o = s_o + d_o`` stands for the end, ``d_o = sum_a c_oa x_oa + sum m_eia y_eia + sum q_oat g_oat`` for the
    duration (rules 4-6). Rows (10) to (13) and z, v, f, j only where the DRAM can bind, z not on shared links.

    Minimise T subject to

    (1)  sum_a x_oa = 1
    (2)  x_oa <= h_la <= sum of x over F_fp(l), for o in F_fp(l)
    (3)  x_oa <= w_la <= sum of x over F(l), for o in F(l)
    (4)  y_eia >= x_pi + x_oa - 1, y_eia <= x_pi, y_eia <= x_oa, for e = (p, o) and m_eia > 0
    (5)  g_oat >= x_oa + h_lt - 1, g_oat <= x_oa, g_oat <= h_lt, for q_oat > 0
    (6)  T >= e_o
    (7)  T >= the loads d of all operations on a                                            (implied)
    (8)  s_o >= e_p and n_o >= n_p + 1 for p in P(o); where the DRAM can bind also z_0o + sum_p z_po = 1,
         s_o <= H (1 - z_0o), s_o <= e_p + H (1 - z_po), and z_po <= b_po for p not in P(o)
    (9)  b_po + b_op >= x_pa + x_oa - 1, s_o >= e_p - H (1 - b_po), n_o >= n_p + 1 - n (1 - b_po),
         x_pa - x_oa <= 1 - b_po for pairs in U
    (10) s_p >= s_o + 1 - (H + 1) v_po for p, o in O, p != o; and v_oo = 1
    (11) e_p <= s_o + H (1 - f_po) for o in O and p that releases a tensor
    (12) j_koa >= x_p(k)a + v_p(k)o - f_r(k)o - 1
    (13) sum_l W_l w_la + sum_k u_k j_koa <= D_a for o in O, and sum_l W_l w_la <= D_a      (rule 7)
    (14) T >= all transfers out of an accelerator, and all into it, where it has one port; T >= all transfers where
         all share one medium                                                               (implied, rule 10)

    Parameters
    ----------
    lowered : Lowered
    engine : {"highs", "cbc"}
    cutoff : int, optional
        Only plans with a smaller makespan.
    without : collection of int
        Rows to leave out.
    look : callable
        Is called now and then while the model is built, and may raise.
    """

    def __init__(
        self,
        lowered: Lowered,
        engine: Engine = "highs",
        *,
        cutoff: int | None = None,
        without: Collection[int] = (),
        look: Callable[[], None] = lambda: None,
    ) -> None:
        super().__init__("suboperation_mapping", engine)
        self.lowered, self.look = lowered, look
        self.last = horizon(lowered, cutoff)
        self.binds = dram_binds(lowered)
        self.predecessors = direct_predecessors(lowered)
        self.layers = layer_members(lowered)
        pairs = unrelated_pairs(lowered)
        self.pairs = [ordered for i, j in pairs for ordered in ((i, j), (j, i))]
        self._mapping_variables()
        self._time_variables()
        if self.binds:
            self._storage_variables()
        self.program += self.makespan
        self.add_rows(without)

    def _binary(self, name: str) -> Any:
        self.look()
        return pulp.LpVariable(name, cat="Binary")

    def _mapping_variables(self) -> None:
        low, timing, new = self.lowered, self.lowered.timing, self._binary
        accelerators = range(low.accelerators)
        self.x = [[new(f"x_{o}_{a}") for a in accelerators] for o in range(low.n)]
        self.h = {(layer, a): new(f"h_{layer}_{a}") for layer in self.layers for a in accelerators}
        self.w = {(layer, a): new(f"w_{layer}_{a}") for layer in self.layers for a in accelerators if self.binds}
        self.y = {
            (e, i, a): new(f"y_{e}_{i}_{a}")
            for e in range(len(timing.pred))
            for i in accelerators
            for a in accelerators
            if timing.pred_ticks[e, i, a]
        }
        self.g = {
            (o, a, t): new(f"g_{o}_{a}_{t}")
            for o in range(low.n)
            for a in accelerators
            for t in accelerators
            if timing.gradient_ticks[o, a, t]
        }

    def _time_variables(self) -> None:
        low = self.lowered
        self.makespan = pulp.LpVariable("T", 0, self.last, cat="Integer")
        self.start = [pulp.LpVariable(f"s_{o}", 0, self.last, cat="Integer") for o in range(low.n)]
        self.rank = [pulp.LpVariable(f"n_{o}", 0, low.n - 1, cat="Integer") for o in range(low.n)]
        self.before = {(p, o): self._binary(f"b_{p}_{o}") for p, o in self.pairs}
        self.loads = [[self._load(o, a) for a in range(low.accelerators)] for o in range(low.n)]
        self.end = [start + pulp.lpSum(loads) for start, loads in zip(self.start, self.loads, strict=True)]

    def _load(self, o: int, a: int) -> Any:
        """Compute, transfers in and dW out of operation ``o`` on accelerator ``a``."""
        self.look()
        timing = self.lowered.timing
        accelerators = range(self.lowered.accelerators)
        terms = [int(timing.compute[o, a]) * self.x[o][a]]
        for e in range(timing.pred_ptr[o], timing.pred_ptr[o + 1]):
            terms += [int(timing.pred_ticks[e, i, a]) * self.y[e, i, a] for i in accelerators if (e, i, a) in self.y]
        terms += [int(timing.gradient_ticks[o, a, t]) * self.g[o, a, t] for t in accelerators if (o, a, t) in self.g]
        return pulp.lpSum(terms)

    def _storage_variables(self) -> None:
        storage, new = self.lowered.storage, self._binary
        columns = (storage.item_owner.tolist(), storage.item_release.tolist(), storage.item_units.tolist())
        self.items = [(p, r, units) for p, r, units in zip(*columns, strict=True) if units]
        self.owners = sorted({p for p, _, _ in self.items})
        releases = sorted({r for _, r, _ in self.items})
        # What starts now has begun: v_oo = 1. A variable would have the row M v >= 1, and from M = 10^6 on CBC takes
        # 1 / M for 0 when it tightens bounds.
        self.begun = {(p, o): 1 if p == o else new(f"v_{p}_{o}") for o in self.owners for p in self.owners}
        self.over = {(r, o): new(f"f_{r}_{o}") for o in self.owners for r in releases}
        self.counted = {
            (k, o, a): new(f"j_{k}_{o}_{a}")
            for o in self.owners
            for a in range(self.lowered.accelerators)
            for k in range(len(self.items))
        }

    @row(1)
    def one_accelerator(self) -> None:
        """Every operation lies on exactly one accelerator."""
        for literals in self.x:
            self.program += pulp.lpSum(literals) == 1

    def _union(self, union: Any, members: list[int], a: int) -> None:
        for o in members:
            self.program += union >= self.x[o][a]
        self.program += union <= pulp.lpSum(self.x[o][a] for o in members)

    @row(2)
    def holders(self) -> None:
        """An accelerator holds a layer's FP if an FP sub-operation lies there."""
        for (layer, a), union in self.h.items():
            self._union(union, self.layers[layer][1], a)

    @row(3)
    def present(self) -> None:
        """A layer's weights lie where any of its operations does."""
        for (layer, a), union in self.w.items():
            self._union(union, self.layers[layer][0], a)

    def _both(self, both: Any, first: Any, second: Any) -> None:
        self.look()
        self.program += both <= first
        self.program += both <= second
        self.program += both >= first + second - 1

    @row(4)
    def moved_tensors(self) -> None:
        """A tensor is moved between the accelerators of the two operations."""
        timing = self.lowered.timing
        follower = np.repeat(np.arange(self.lowered.n), np.diff(timing.pred_ptr))
        for (e, i, a), moved in self.y.items():
            self._both(moved, self.x[timing.pred[e]][i], self.x[follower[e]][a])

    @row(5)
    def moved_gradients(self) -> None:
        """dW is moved to every other accelerator that holds an FP of the layer."""
        for (o, a, t), moved in self.g.items():
            self._both(moved, self.h[self.lowered.operations[o][1], t], self.x[o][a])

    @row(6)
    def last_end(self) -> None:
        """The makespan is no less than any end."""
        for end in self.end:
            self.program += self.makespan >= end

    @row(7, implied=True)
    def area(self) -> None:
        """The makespan is no less than the load of any accelerator."""
        for a in range(self.lowered.accelerators):
            self.program += self.makespan >= pulp.lpSum(loads[a] for loads in self.loads)

    @row(8)
    def starts(self) -> None:
        """An operation follows its predecessors; where the DRAM can bind it starts as soon as it can."""
        for o, before in enumerate(self.predecessors):
            for p in before:
                self.program += self.start[o] >= self.end[p]
                self.program += self.rank[o] >= self.rank[p] + 1
            if self.binds and not shares_links(self.lowered):
                self._as_early_as_possible(o)

    def _as_early_as_possible(self, o: int) -> None:
        chosen = [self._binary(f"z_none_{o}")]
        self.program += self.start[o] <= self.last * (1 - chosen[0])
        direct = self.predecessors[o]
        for p in sorted({*direct, *(p for p, q in self.before if q == o)}):
            z = self._binary(f"z_{p}_{o}")
            self.program += self.start[o] <= self.end[p] + self.last * (1 - z)
            if p not in direct:
                self.program += z <= self.before[p, o]
            chosen.append(z)
        self.program += pulp.lpSum(chosen) == 1

    @row(9)
    def one_at_a_time(self) -> None:
        """Of two unrelated operations on one accelerator one runs before the other."""
        accelerators = range(self.lowered.accelerators)
        for p, o in self.pairs:
            self.look()
            b = self.before[p, o]
            self.program += self.start[o] >= self.end[p] - self.last * (1 - b)
            self.program += self.rank[o] >= self.rank[p] + 1 - self.lowered.n * (1 - b)
            for a in accelerators:
                self.program += self.x[p][a] - self.x[o][a] <= 1 - b
                if p > o:
                    self.program += b + self.before[o, p] >= self.x[p][a] + self.x[o][a] - 1

    @row(10)
    def begun_before(self) -> None:
        """v is 1 where p starts no later than o."""
        for (p, o), begun in (self.begun if self.binds else {}).items():
            self.look()
            if p != o:
                self.program += self.start[p] >= self.start[o] + 1 - (self.last + 1) * begun

    @row(11)
    def over_before(self) -> None:
        """f is 1 only where p has ended when o starts."""
        for (r, o), over in (self.over if self.binds else {}).items():
            self.program += self.end[r] <= self.start[o] + self.last * (1 - over)

    @row(12)
    def stored_tensors(self) -> None:
        """A tensor counts on its producer's accelerator when that has begun and its release is not over."""
        for (k, o, a), counted in (self.counted if self.binds else {}).items():
            self.look()
            p, r, _ = self.items[k]
            self.program += counted >= self.x[p][a] + self.begun[p, o] - self.over[r, o] - 1

    @row(13)
    def dram(self) -> None:
        """Weights and stored tensors fit whenever an operation that makes a tensor starts, and weights alone always."""
        if not self.binds:
            return
        storage = self.lowered.storage
        for a in range(self.lowered.accelerators):
            weights = pulp.lpSum(
                int(storage.weight_units[layer]) * w for (layer, where), w in self.w.items() if where == a
            )
            capacity = int(storage.capacity[a])
            self.program += weights <= capacity
            for o in self.owners:
                self.look()
                stored = (units * self.counted[k, o, a] for k, (_, _, units) in enumerate(self.items))
                self.program += weights + pulp.lpSum(stored) <= capacity

    @row(14, implied=True)
    def shared_links(self) -> None:
        """What transfers need for themselves is theirs one after the other."""
        for terms in by_way(self.lowered, self.y, self.g).values():
            self.program += self.makespan >= pulp.lpSum(terms)

    def assignment(self, plan: PlanBase) -> Mapping[Any, int] | None:
        """Places and starts; without a timetable the places alone."""
        assert isinstance(plan, Plan)
        found = decisions(self.lowered, plan)
        if found is None:
            return None
        places, start = found
        values = {x: int((o, a) in places) for o, literals in enumerate(self.x) for a, x in enumerate(literals)}
        if start is not None:
            values |= {variable: int(start[o]) for o, variable in enumerate(self.start)}
        return values

    def plan(self, value: Value) -> Plan:
        """Operations in the order of their ranks."""
        low = self.lowered
        location = np.array([[value(x) for x in literals].index(1) for literals in self.x], np.int64)
        ordered = sorted((int(o) for o in low.topological), key=lambda o: value(self.rank[o]))
        return low.plan(location, np.array(ordered, np.int64))


def _models(instance: Instance, engine: Engine) -> list[Part]:
    def build(lowered: Lowered, complete: bool = False, without: Collection[int] = ()) -> RatioProgram:
        return RatioProgram(lowered, engine, without=without)  # nothing is ever left out

    return parts(instance, build)


def models(instance: Instance) -> list[Part]:
    """One model per ratio, for HiGHS."""
    return _models(instance, "highs")


def models_cbc(instance: Instance) -> list[Part]:
    """One model per ratio, for CBC."""
    return _models(instance, "cbc")


def check_horizon(lowered: Lowered, cutoff: int | None) -> None:
    """Refuse what the engine's guard would refuse of the model, before it is built: H is the big M of rows (9).

    Raises
    ------
    GuardError
        See :func:`mapgap.solvers.big_m.check_big_m`.
    """
    last = horizon(lowered, cutoff)
    if last >= LEAK / TOLERANCE:
        for i, j in unrelated_pairs(lowered)[:1]:
            check_big_m(BigM(last, 0, f"b_{i}_{j}"), TOLERANCE, ["r09_one_at_a_time_1"])


def solve_ratio(
    lowered: Lowered, cutoff: int | None, budget: Budget, time_s: float, engine: Engine = "highs"
) -> SolveResult:
    """Best plan of one ratio below ``cutoff``."""
    try:
        with budget.timed("build"):
            check_horizon(lowered, cutoff)
            model = RatioProgram(lowered, engine, cutoff=cutoff, look=watch(budget))
    except OutOfTime:
        return unbuilt()
    except GuardError as error:
        reason = f"{engine}: {error}"
        return SolveResult(Status.UNKNOWN, Stop.DONE, bound=0, reason=reason, notes={DISTRUSTED: [reason]})
    value = None if shares_links(lowered) else partial(worth, lowered)
    result = prove(model, budget, time_s=min(time_s, budget.remaining_s), announce=False, value=value)
    if result.status is Status.INFEASIBLE:
        return replace(nothing_below(cutoff), notes=result.notes)
    if result.plan is not None and shares_links(lowered):
        return relaxed(lowered, result)
    bound = max(result.bound or 0, 0)
    if result.plan is not None:
        return replace(result, bound=bound)
    return replace(result, bound=bound if cutoff is None else min(bound, cutoff))


def run(
    instance: Instance,
    budget: Budget,
    ratio: str = "",
    start: str | Plan | None = None,
    engine: Engine = "highs",
    params: Params = Params(),
) -> SolveResult:
    """Solve over all ratios, or over one given as ``"3,1"`` (then nothing is proven of the instance).

    ``start``: a plan, or its file; only better ones are looked for.
    """

    def one(lowered: Lowered, cutoff: int | None, seconds: float) -> SolveResult:
        return solve_ratio(lowered, cutoff, budget, seconds, engine)

    return sweep(instance, budget, one, parse_ratio(instance, ratio) if ratio else (), start, params)
