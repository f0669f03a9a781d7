"""CP-SAT model of sub-operation mapping: MTrain's problem (Tang et al., Secs. III-V), one ratio at a time.

Delays
------
A plan holds orders and is timed as early as possible, while start variables may wait. Without DRAM limits waiting
never helps. With them it can: a tensor produced later is stored for a shorter time. The model that is not ``strict``
is therefore a *relaxation*: its bound always holds, and its solution is re-timed as early as possible, which never
lengthens it. If the re-timed plan exceeds the DRAM, the ratio is solved again with ``strict``: every start *equals*
the end of an operation that it waits for, and a rank that rises along these rules out operations of zero duration
that wait for each other in a circle.

Shared links (rule 10) are not modelled, but for row (14): the model is a relaxation then, too, is never ``strict``, and
its plan may take longer than it says. Where it does, the ratio has a bound and no proof.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from itertools import pairwise
from types import MappingProxyType
from typing import Any

import numpy as np

from mapgap.core import Budget, OutOfTime, PlanBase, SolveResult, Status, Stop
from mapgap.formulations.suboperation_mapping.params import Sweep as Params
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
    verified,
    watch,
)
from mapgap.problems.suboperation_mapping import Instance, Plan
from mapgap.problems.suboperation_mapping.lowered.arrays import Array, Lowered
from mapgap.problems.suboperation_mapping.lowered.ratios import parse_ratio
from mapgap.solvers.cpsat import CpSatModel
from mapgap.solvers.model import Part, Value, prove, row
from mapgap.solvers.turns import EngineError, in_turn


class RatioModel(CpSatModel):
    """All plans of one ratio.

    Sets: ``o`` operations of G*, ``P(o)`` those that ``o`` follows, ``a`` accelerators, ``l`` layers, ``F(l)`` the
    operations of layer ``l`` and ``F_fp(l)`` those of its FP, ``k`` stored tensors, made by operation ``p(k)`` and held
    until ``r(k)`` ends.

    Data in ticks: ``c_oa`` compute; ``m_eia`` moving the tensor of precedence ``e = (p, o)`` from ``i`` to ``a``;
    ``q_oat`` moving dW from ``a`` to ``t``. In memory units: ``W_l`` weights and gradients, ``u_k`` a tensor,
    ``D_a`` the DRAM.

    Variables: ``x_oa`` operation ``o`` runs on ``a``; ``h_la``, ``w_la`` an FP, any operation of ``l`` lies on ``a``;
    ``y_eia``, ``g_oat`` a tensor, dW is moved; ``s_o, d_o, e_o, T`` start, duration, end and makespan in ticks;
    ``d_oa`` the duration if ``o`` runs on ``a``, at least its compute there and the cheapest transfers in; with
    ``strict`` also ``z_po`` (``o`` starts when ``p`` ends), ``z_0o`` (``o`` starts at 0) and the rank ``n_o``.

    Minimise T subject to

    (1)  sum_a x_oa = 1
    (2)  h_la = max of x_oa over F_fp(l)
    (3)  w_la = max of x_oa over F(l), where the DRAM can bind
    (4)  y_eia = x_pi and x_oa, for e = (p, o) and m_eia > 0
    (5)  g_oat = x_oa and h_lt, for q_oat > 0
    (6)  d_o = sum_a c_oa x_oa + sum m_eia y_eia + sum q_oat g_oat,  e_o = s_o + d_o        (rules 4-6)
    (7)  T >= e_o
    (8)  T >= the loads d of all operations on a                                            (implied)
    (9)  s_o >= e_p for p in P(o); with ``strict`` exactly one of z_0o, z_po, where z_0o: s_o = 0, and z_po: s_o = e_p,
         n_o > n_p and p in P(o) or on the accelerator of o
    (10) the intervals [s_o, e_o) with x_oa = 1 do not overlap; their length d_oa = d_o if x_oa = 1
    (11) sum_l W_l w_la + sum of u_k over tensors with x_p(k)a = 1 and s_p(k) <= t < e_r(k) is at most D_a at every
         tick t                                                                             (rule 7)
    (12) sum_l W_l w_la <= D_a                                                              (implied by 11)
    (13) the FP of the first split layer: equal shares lie on non-decreasing accelerators, and start one after the
         other on the same                                                                  (symmetry)
    (14) T >= all transfers out of an accelerator, and all into it, where it has one port; T >= all transfers where
         all share one medium                                                               (implied, rule 10)

    Parameters
    ----------
    lowered : Lowered
    location : (n,), optional
        Fix the mapping; of operations with -1 it is decided, of the others the order alone.
    strict : bool
        Starts as early as possible (see *Delays*); without effect where the DRAM cannot bind, and on shared links.
    cutoff : int, optional
        Only plans with a smaller makespan.
    symmetry : bool
        Add (13).
    without : collection of int
        Rows to leave out.
    look : callable
        Is called now and then while the model is built, and may raise.
    """

    # Cuts of the second level: near a cutoff they refute at once what takes tens of thousands of conflicts without.
    parameters = MappingProxyType({"linearization_level": 2})

    def __init__(
        self,
        lowered: Lowered,
        *,
        location: Array | None = None,
        strict: bool = False,
        cutoff: int | None = None,
        symmetry: bool = True,
        without: Collection[int] = (),
        look: Callable[[], None] = lambda: None,
    ) -> None:
        super().__init__()
        self.lowered, self.look = lowered, look
        self.last = horizon(lowered, cutoff)
        self.binds = dram_binds(lowered)
        self.strict = strict and self.binds and not shares_links(lowered)
        self.symmetry = symmetry and location is None
        self.predecessors = direct_predecessors(lowered)
        self.layers = layer_members(lowered)
        count = lowered.accelerators
        fixed = np.full(lowered.n, -1) if location is None else location
        self.places = [list(range(count)) if fixed[o] < 0 else [int(fixed[o])] for o in range(lowered.n)]
        self._mapping_variables()
        self._time_variables()
        self.add_rows(without)
        self.program.minimize(self.makespan)

    def _mapping_variables(self) -> None:
        new, low = self.program.new_bool_var, self.lowered
        self.x = [{a: new(f"x[{o},{a}]") for a in places} for o, places in enumerate(self.places)]
        self.h: dict[tuple[int, int], Any] = {}
        self.w: dict[tuple[int, int], Any] = {}
        for layer, (members, forward) in self.layers.items():
            for a in range(low.accelerators):
                if any(a in self.x[o] for o in forward):
                    self.h[layer, a] = new(f"h[{layer},{a}]")
                if self.binds and any(a in self.x[o] for o in members):
                    self.w[layer, a] = new(f"w[{layer},{a}]")
        timing = low.timing
        self.y: dict[tuple[int, int, int], Any] = {}
        self.g: dict[tuple[int, int, int], Any] = {}
        for o, places in enumerate(self.places):
            self.look()
            for e in range(timing.pred_ptr[o], timing.pred_ptr[o + 1]):
                for i in self.places[timing.pred[e]]:
                    for a in places:
                        if timing.pred_ticks[e, i, a]:
                            self.y[e, i, a] = new(f"y[{e},{i},{a}]")
            for a in places:
                for t in range(low.accelerators):
                    if timing.gradient_ticks[o, a, t] and (low.operations[o][1], t) in self.h:
                        self.g[o, a, t] = new(f"g[{o},{a},{t}]")

    def _time_variables(self) -> None:
        new, n = self.program.new_int_var, self.lowered.n
        self.start = [new(0, self.last, f"start[{o}]") for o in range(n)]
        self.end = [new(0, self.last, f"end[{o}]") for o in range(n)]
        self.duration = [new(0, self.last, f"duration[{o}]") for o in range(n)]
        self.makespan = new(0, self.last, "makespan")
        self.rank = [new(0, n - 1, f"rank[{o}]") for o in range(n)] if self.strict else []

    def loads(self, o: int) -> list[tuple[int, int, Any]]:
        """``(accelerator, ticks, literal)`` of what operation ``o`` may cost: compute, tensors in, dW out."""
        timing = self.lowered.timing
        self.look()
        terms = []
        for a in self.places[o]:
            terms.append((a, int(timing.compute[o, a]), self.x[o][a]))
            for e in range(timing.pred_ptr[o], timing.pred_ptr[o + 1]):
                terms += [
                    (a, int(timing.pred_ticks[e, i, a]), self.y[e, i, a])
                    for i in self.places[timing.pred[e]]
                    if (e, i, a) in self.y
                ]
            terms += [
                (a, int(timing.gradient_ticks[o, a, t]), self.g[o, a, t])
                for t in range(self.lowered.accelerators)
                if (o, a, t) in self.g
            ]
        return terms

    @row(1)
    def one_accelerator(self) -> None:
        """Every operation lies on exactly one accelerator."""
        for literals in self.x:
            self.program.add_exactly_one(literals.values())

    @row(2)
    def holders(self) -> None:
        """An accelerator holds a layer's FP if an FP sub-operation lies there."""
        for (layer, a), union in self.h.items():
            _, forward = self.layers[layer]
            self.program.add_max_equality(union, [self.x[o][a] for o in forward if a in self.x[o]])

    @row(3)
    def present(self) -> None:
        """A layer's weights lie where any of its operations does."""
        for (layer, a), union in self.w.items():
            members, _ = self.layers[layer]
            self.program.add_max_equality(union, [self.x[o][a] for o in members if a in self.x[o]])

    def _both(self, both: Any, first: Any, second: Any) -> None:
        self.look()
        self.program.add_implication(both, first)
        self.program.add_implication(both, second)
        self.program.add_bool_or([first.negated(), second.negated(), both])

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
    def durations(self) -> None:
        """An operation takes its compute and its transfers, one after the other."""
        for o in range(self.lowered.n):
            total = sum(ticks * literal for _, ticks, literal in self.loads(o))
            self.program.add(self.duration[o] == total).with_name(f"duration[{o}]")
            self.program.add(self.start[o] + self.duration[o] == self.end[o]).with_name(f"end[{o}]")

    @row(7)
    def last_end(self) -> None:
        """The makespan is no less than any end."""
        for o in range(self.lowered.n):
            self.program.add(self.makespan >= self.end[o]).with_name(f"makespan[{o}]")

    @row(8, implied=True)
    def area(self) -> None:
        """The makespan is no less than the load of any accelerator."""
        load: list[list[Any]] = [[] for _ in range(self.lowered.accelerators)]
        for o in range(self.lowered.n):
            for a, ticks, literal in self.loads(o):
                load[a].append(ticks * literal)
        for a, terms in enumerate(load):
            self.program.add(self.makespan >= sum(terms)).with_name(f"area[{a}]")

    @row(9)
    def starts(self) -> None:
        """An operation follows its predecessors; with ``strict`` it starts as soon as it can."""
        for o, before in enumerate(self.predecessors):
            for p in before:
                self.program.add(self.start[o] >= self.end[p]).with_name(f"precedence[{p},{o}]")
        if self.strict:
            self._as_early_as_possible()

    def _as_early_as_possible(self) -> None:
        program, low = self.program, self.lowered
        reasons = [[program.new_bool_var(f"first[{o}]")] for o in range(low.n)]
        for o, (first,) in enumerate(reasons):
            program.add(self.start[o] == 0).only_enforce_if(first)
        beside = unrelated_pairs(low)
        pairs = [(p, o) for o, before in enumerate(self.predecessors) for p in before]
        for p, o in [*pairs, *beside, *((j, i) for i, j in beside)]:
            self.look()
            if not set(self.places[p]) & set(self.places[o]) and p not in self.predecessors[o]:
                continue
            reason = program.new_bool_var(f"reason[{p},{o}]")
            reasons[o].append(reason)
            program.add(self.start[o] == self.end[p]).only_enforce_if(reason)
            if p in self.predecessors[o]:
                program.add(self.rank[o] >= self.rank[p] + 1)
                continue
            program.add(self.rank[o] >= self.rank[p] + 1).only_enforce_if(reason)
            for a in self.places[p]:
                program.add_bool_or(
                    [reason.negated(), self.x[p][a].negated(), *([self.x[o][a]] if a in self.x[o] else [])]
                )
        for literals in reasons:
            program.add_exactly_one(literals)

    @row(10)
    def no_overlap(self) -> None:
        """One operation at a time per accelerator; a length of its own tells the engine what an accelerator costs."""
        for a in range(self.lowered.accelerators):
            intervals = []
            for o, literals in enumerate(self.x):
                if a in literals:
                    length = self._length(o, a)
                    span = (self.start[o], length, self.end[o])
                    intervals.append(self.program.new_optional_interval_var(*span, literals[a], f"run[{o},{a}]"))
            self.program.add_no_overlap(intervals)

    def _length(self, o: int, a: int) -> Any:
        """The duration of an operation if it runs on ``a``."""
        least = self._least(o, a)
        length = self.program.new_int_var(least, max(least, self.last), f"length[{o},{a}]")
        self.program.add(self.duration[o] == length).only_enforce_if(self.x[o][a])
        self.program.add(self.end[o] >= self.start[o] + least).only_enforce_if(self.x[o][a])
        return length

    def _least(self, o: int, a: int) -> int:
        """Compute on ``a`` and the cheapest way of every tensor there."""
        timing = self.lowered.timing
        edges = range(timing.pred_ptr[o], timing.pred_ptr[o + 1])
        moves = (min(int(timing.pred_ticks[e, i, a]) for i in self.places[timing.pred[e]]) for e in edges)
        return int(timing.compute[o, a]) + sum(moves)

    @row(11)
    def dram(self) -> None:
        """Weights for ever, and tensors from their producer's start to the end of the WU that releases them."""
        if not self.binds:
            return
        program, storage = self.program, self.lowered.storage
        lengths = [program.new_int_var(0, self.last, f"stored[{k}]") for k in range(len(storage.item_owner))]
        for a in range(self.lowered.accelerators):
            intervals, demands = [], []
            for (layer, where), literal in self.w.items():
                if where == a:
                    always = (0, self.last + 1, self.last + 1)
                    intervals.append(program.new_optional_interval_var(*always, literal, f"weights[{layer},{a}]"))
                    demands.append(int(storage.weight_units[layer]))
            for k, length in enumerate(lengths):
                owner, release = int(storage.item_owner[k]), int(storage.item_release[k])
                if a in self.x[owner]:
                    span = (self.start[owner], length, self.end[release])
                    intervals.append(program.new_optional_interval_var(*span, self.x[owner][a], f"stored[{k},{a}]"))
                    demands.append(int(storage.item_units[k]))
            program.add_cumulative(intervals, demands, int(storage.capacity[a]))

    @row(12, implied=True)
    def weights(self) -> None:
        """Weights and gradients alone fit the DRAM."""
        if not self.binds:
            return
        storage = self.lowered.storage
        for a in range(self.lowered.accelerators):
            terms = [int(storage.weight_units[layer]) * w for (layer, where), w in self.w.items() if where == a]
            self.program.add(sum(terms) <= int(storage.capacity[a])).with_name(f"weights[{a}]")

    @row(13, implied=True)
    def equal_shares(self) -> None:
        """Equal shares are interchangeable as a whole: accelerators and starts of their first FP may be sorted."""
        if not self.symmetry:
            return
        low = self.lowered
        first = [(o, b) for o, (phase, _, b) in enumerate(low.operations) if phase == "FP" and b >= 0]
        layer = min((low.operations[o][1] for o, _ in first), default=-1)
        shares = [(o, b) for o, b in first if low.operations[o][1] == layer]
        for (o, b), (p, c) in pairwise(shares):
            if low.ratio[b] == low.ratio[c]:
                place = [sum(a * x for a, x in self.x[q].items()) for q in (o, p)]
                self.program.add(place[0] <= place[1]).with_name(f"equal shares[{b},{c}]")
                for a in set(self.x[o]) & set(self.x[p]):
                    both = (self.x[o][a], self.x[p][a])
                    self.program.add(self.start[o] <= self.start[p]).only_enforce_if(both)

    @row(14, implied=True)
    def shared_links(self) -> None:
        """What transfers need for themselves is theirs one after the other."""
        for (kind, a), terms in by_way(self.lowered, self.y, self.g).items():
            self.program.add(self.makespan >= sum(terms)).with_name(f"{kind}[{a}]")

    def assignment(self, plan: PlanBase) -> Mapping[Any, int] | None:
        """Places and starts; without a timetable the places alone."""
        assert isinstance(plan, Plan)
        found = decisions(self.lowered, plan)
        if found is None or any(a not in self.x[o] for o, a in found[0]):
            return None
        places, start = found
        values = {x: int((o, a) in places) for o, literals in enumerate(self.x) for a, x in literals.items()}
        if start is not None:
            values |= {variable: int(start[o]) for o, variable in enumerate(self.start)}
        return values

    def plan(self, value: Value) -> Plan:
        """At equal times ranks decide, then the topological position, which respects precedences."""
        low = self.lowered
        location = np.array([next(a for a, x in literals.items() if value(x)) for literals in self.x], np.int64)
        keys = [
            (value(self.start[o]), value(self.end[o]), *(value(n) for n in self.rank[o : o + 1])) for o in range(low.n)
        ]
        sequence = np.array(sorted((int(o) for o in low.topological), key=lambda o: keys[o]), np.int64)
        return low.plan(location, sequence)


class UnrelaxedRatioModel(RatioModel):
    """The same model without the engine's linear relaxation, whose bound says little below a near cutoff."""

    parameters = MappingProxyType({"linearization_level": 0})


Build = Callable[..., RatioModel]
"""``build(lowered, strict=…, cutoff=…, look=…)``: the model of a ratio."""


def models(instance: Instance) -> list[Part]:
    """One exact model per ratio; of shared links a relaxation."""

    def build(lowered: Lowered, complete: bool = False, without: Collection[int] = ()) -> RatioModel:
        return RatioModel(lowered, strict=True, symmetry=not complete, without=without)

    return parts(instance, build)


def solve_ratio(
    lowered: Lowered,
    cutoff: int | None,
    budget: Budget,
    time_s: float,
    build: Build = RatioModel,
    few: int = Params.few,
) -> SolveResult:
    """Best plan of one ratio below ``cutoff``.

    Where the DRAM can bind, first without ``strict``, then with it if the first plan exploits a delay. Of at most
    ``few`` operations the strict model alone: it is small, and free delays let the engine creep tick by tick.
    """
    return in_turn(lambda _: _solve_ratio(lowered, cutoff, budget, time_s, build, few), ("CP-SAT",))


def _solve_ratio(
    lowered: Lowered, cutoff: int | None, budget: Budget, time_s: float, build: Build, few: int
) -> SolveResult:
    bound, binds, begun = 0, dram_binds(lowered), budget.elapsed_s
    held: SolveResult | None = None
    makespan = 0
    relaxation = not binds or shares_links(lowered)
    modes = (False,) if relaxation else (True,) if lowered.n <= few else (False, True)
    for strict in modes:
        try:
            with budget.timed("build"):
                building = budget.elapsed_s
                model = build(lowered, strict=strict, cutoff=cutoff, look=watch(budget))
        except OutOfTime:
            result = unbuilt()
            break
        built_s = budget.elapsed_s - building
        begun += built_s  # the time of a question is the engine's, and no less than the model has taken
        left = max(time_s - (budget.elapsed_s - begun), built_s)
        seconds = max(min(left * (1.0 if strict == modes[-1] else 0.5), budget.remaining_s), 0.01)
        result = prove(model, budget, time_s=seconds, announce=False)
        if result.status is Status.INFEASIBLE:  # nothing below the cutoff, even with delays or exactly
            if held is not None:
                raise EngineError(f"claims INFEASIBLE, but there is a plan of {makespan}")
            return nothing_below(cutoff)
        if shares_links(lowered):
            return relaxed(lowered, result)
        bound = max(bound, result.bound or 0)
        found = verified(lowered, result)
        if found is None:
            if strict and result.plan is not None:
                raise EngineError("its plan exceeds the DRAM")
            continue
        if held is None or found.makespan < makespan:
            held, makespan = replace(result, plan=found.plan), found.makespan
        if makespan <= bound or result.stop is Stop.INTERRUPTED:
            break
    if held is None:
        return replace(result, status=Status.UNKNOWN, plan=None, claimed=None, bound=bound)
    proven = makespan <= bound
    return replace(
        held,
        status=Status.OPTIMAL if proven else Status.FEASIBLE,
        stop=Stop.PROVED if proven else result.stop,
        bound=min(bound, makespan),
        claimed=makespan,
    )


def run(
    instance: Instance,
    budget: Budget,
    ratio: str = "",
    start: str | Plan | None = None,
    params: Params = Params(),
) -> SolveResult:
    """Solve over all ratios, or over one given as ``"3,1"`` (then nothing is proven of the instance).

    ``start``: a plan, or its file; only better ones are looked for.
    """

    def one(lowered: Lowered, cutoff: int | None, seconds: float) -> SolveResult:
        return solve_ratio(lowered, cutoff, budget, seconds, few=params.few)

    return sweep(instance, budget, one, parse_ratio(instance, ratio) if ratio else (), start, params)
