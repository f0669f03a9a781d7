"""CP-SAT model of sub-operation mapping, one ratio at a time.

===========  ======================================================================  ==========
Symbol       Meaning                                                                 Shape
===========  ======================================================================  ==========
x[o, a]      operation o runs on accelerator a                                       (n, N)
h[l, a]      an FP sub-operation of layer l lies on a (receives dW)                  (layers, N)
w[l, a]      any operation of layer l lies on a (its weights are there)              (layers, N)
s, d, e      start, duration, end of an operation, ticks                             (n,)
T            makespan, ticks
before[i,j]  i runs before j on the same accelerator (strict model only)             pairs
===========  ======================================================================  ==========

Delays
------
A plan holds orders and is timed as early as possible, while start variables may wait. Without DRAM limits waiting
never helps. With them it can: a tensor produced later is stored for a shorter time. The model without ``strict`` is
therefore a *relaxation*: its bound always holds, and its solution is re-timed as early as possible, which never
lengthens it. If the re-timed plan exceeds the DRAM, the ratio is solved again with ``strict``: every start *equals*
the latest end among predecessors and earlier operations of the accelerator, and a rank that rises along both rules
out operations of zero duration that wait for each other in a circle.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from mapgap.core import Budget, PlanError, SolveResult, Status, Stop
from mapgap.formulations.suboperation_mapping._ratios import (
    Ordered,
    Ratio,
    RatioResult,
    dram_binds,
    horizon,
    reachability,
    sweep,
    timed,
)
from mapgap.problems.suboperation_mapping import Instance
from mapgap.problems.suboperation_mapping.lowered import Array, Lowered


class Model:
    """The model of one ratio.

    Parameters
    ----------
    lowered : Lowered
    location : (n,), optional
        Fix the mapping; durations are then constants.
    strict : bool
        Enforce as-early-as-possible starts (see *Delays*).
    cutoff : int, optional
        Only plans with a smaller makespan.
    symmetry : bool
        Order equal shares by the accelerator of their first FP.
    """

    def __init__(
        self,
        lowered: Lowered,
        location: Array | None = None,
        strict: bool = False,
        cutoff: int | None = None,
        symmetry: bool = True,
    ) -> None:
        from ortools.sat.python import cp_model

        self.model: Any = cp_model.CpModel()
        self.lowered = lowered
        self.last = horizon(lowered) if cutoff is None else min(horizon(lowered), max(cutoff - 1, 0))
        self._mapping_variables(location)
        self._time_variables(location)
        self._precedences()
        self._no_overlap(location)
        if dram_binds(lowered):
            self._dram()
        if strict:
            self._as_early_as_possible()
        if symmetry and location is None:
            self._equal_shares()
        self.model.minimize(self.makespan)

    def _mapping_variables(self, location: Array | None) -> None:
        """x, one accelerator per operation; h and w as the unions of x."""
        low, model = self.lowered, self.model
        self.x = [[model.new_bool_var(f"x[{o},{a}]") for a in range(low.accelerators)] for o in range(low.n)]
        for o, row in enumerate(self.x):
            model.add_exactly_one(row)
            if location is not None:
                model.add(row[int(location[o])] == 1)
        self.h: dict[tuple[int, int], Any] = {}
        self.w: dict[tuple[int, int], Any] = {}
        for layer in sorted({int(i) for i in low.layer}):
            members = [o for o in range(low.n) if low.layer[o] == layer]
            forward = [o for o in members if low.operations[o][0] == "FP"]
            for a in range(low.accelerators):
                for name, union, ops in (("h", self.h, forward), ("w", self.w, members)):
                    union[layer, a] = model.new_bool_var(f"{name}[{layer},{a}]")
                    model.add_max_equality(union[layer, a], [self.x[o][a] for o in ops])

    def _both(self, first: Any, second: Any, name: str) -> Any:
        """A literal that equals ``first`` and ``second``."""
        both = self.model.new_bool_var(name)
        self.model.add_implication(both, first)
        self.model.add_implication(both, second)
        self.model.add_bool_or([first.negated(), second.negated(), both])
        return both

    def load(self, o: int, a: int) -> list[tuple[int, Any]]:
        """``(ticks, literal)`` of what operation ``o`` costs on accelerator ``a`` (rules 4-6)."""
        low = self.lowered
        terms = [(int(low.compute[o, a]), self.x[o][a])]
        for e in range(low.pred_ptr[o], low.pred_ptr[o + 1]):
            p = int(low.pred[e])
            for i in range(low.accelerators):
                if ticks := int(low.pred_ticks[e, i, a]):
                    terms.append((ticks, self._both(self.x[p][i], self.x[o][a], f"move[{e},{i},{a}]")))
        if low.holder_ptr[o + 1] > low.holder_ptr[o]:
            for t in range(low.accelerators):
                if ticks := int(low.gradient_ticks[o, a, t]):
                    held = self.h[int(low.layer[o]), t]
                    terms.append((ticks, self._both(held, self.x[o][a], f"gradient[{o},{a},{t}]")))
        return terms

    def _time_variables(self, location: Array | None) -> None:
        """s, d, e, T; T is at least the load of every accelerator (area cut)."""
        low, model, last = self.lowered, self.model, self.last
        self.start = [model.new_int_var(0, last, f"start[{o}]") for o in range(low.n)]
        self.end = [model.new_int_var(0, last, f"end[{o}]") for o in range(low.n)]
        self.makespan = model.new_int_var(0, last, "makespan")
        load: list[list[Any]] = [[] for _ in range(low.accelerators)]
        self.duration = []
        for o in range(low.n):
            places = range(low.accelerators) if location is None else [int(location[o])]
            terms = [(a, ticks, literal) for a in places for ticks, literal in self.load(o, a)]
            d = model.new_int_var(0, last, f"duration[{o}]")
            model.add(d == sum(ticks * literal for _, ticks, literal in terms)).with_name(f"duration[{o}]")
            model.add(self.start[o] + d == self.end[o]).with_name(f"end[{o}]")
            model.add(self.makespan >= self.end[o]).with_name(f"makespan[{o}]")
            self.duration.append(d)
            for a, ticks, literal in terms:
                load[a].append(ticks * literal)
        for a, terms_of in enumerate(load):
            model.add(self.makespan >= sum(terms_of)).with_name(f"area[{a}]")

    def _precedences(self) -> None:
        """s[o] >= e[p]."""
        low = self.lowered
        for o in range(low.n):
            for p in {int(p) for p in low.pred[low.pred_ptr[o] : low.pred_ptr[o + 1]]}:
                self.model.add(self.start[o] >= self.end[p]).with_name(f"precedence[{p},{o}]")

    def _no_overlap(self, location: Array | None) -> None:
        """One operation at a time per accelerator."""
        low, model = self.lowered, self.model
        for a in range(low.accelerators):
            ops = [o for o in range(low.n) if location is None or location[o] == a]
            model.add_no_overlap(
                model.new_optional_interval_var(
                    self.start[o], self.duration[o], self.end[o], self.x[o][a], f"run[{o},{a}]"
                )
                for o in ops
            )

    def _dram(self) -> None:
        """Rule 7: weights all the time, stored tensors from the owner's start to the end of the releasing WU."""
        low, model = self.lowered, self.model
        lengths = []
        for i in range(len(low.item_owner)):
            length = model.new_int_var(0, self.last, f"stored[{i}]")
            begin, finish = self.start[low.item_owner[i]], self.end[low.item_release[i]]
            model.add(begin + length == finish).with_name(f"stored[{i}]")
            lengths.append(length)
        for a in range(low.accelerators):
            weights = [(int(low.weight_units[layer]), w) for (layer, where), w in self.w.items() if where == a]
            capacity = int(low.capacity[a])
            model.add(sum(units * w for units, w in weights) <= capacity).with_name(f"weights[{a}]")
            intervals = [
                model.new_optional_interval_var(0, self.last + 1, self.last + 1, w, f"weights[{k},{a}]")
                for k, (_, w) in enumerate(weights)
            ]
            demands = [units for units, _ in weights]
            for i, length in enumerate(lengths):
                owner, release = int(low.item_owner[i]), int(low.item_release[i])
                intervals.append(
                    model.new_optional_interval_var(
                        self.start[owner], length, self.end[release], self.x[owner][a], f"stored[{i},{a}]"
                    )
                )
                demands.append(int(low.item_units[i]))
            model.add_cumulative(intervals, demands, capacity)

    def _as_early_as_possible(self) -> None:
        """s[o] = max of the ends of predecessors and of earlier operations on the accelerator; ranks rise."""
        low, model = self.lowered, self.model
        related = reachability(low)
        rank = [model.new_int_var(0, low.n - 1, f"rank[{o}]") for o in range(low.n)]
        self.rank = rank
        waits: list[list[Any]] = [[model.new_constant(0)] for _ in range(low.n)]
        for o in range(low.n):
            for p in {int(p) for p in low.pred[low.pred_ptr[o] : low.pred_ptr[o + 1]]}:
                waits[o].append(self.end[p])
                model.add(rank[o] >= rank[p] + 1)
        for i in range(low.n):
            for j in range(i):
                if related[i, j] or related[j, i]:
                    continue
                pair = {(p, q): model.new_bool_var(f"before[{p},{q}]") for p, q in ((i, j), (j, i))}
                model.add_at_most_one(pair.values())
                for a in range(low.accelerators):
                    model.add_bool_or([self.x[i][a].negated(), self.x[j][a].negated(), *pair.values()])
                for (p, q), literal in pair.items():
                    for a in range(low.accelerators):
                        model.add_implication(self.x[p][a], self.x[q][a]).only_enforce_if(literal)
                    model.add(self.start[q] >= self.end[p]).only_enforce_if(literal)
                    model.add(rank[q] >= rank[p] + 1).only_enforce_if(literal)
                    wait = model.new_int_var(0, self.last, f"wait[{p},{q}]")
                    model.add(wait == self.end[p]).only_enforce_if(literal)
                    model.add(wait == 0).only_enforce_if(literal.negated())
                    waits[q].append(wait)
        for o in range(low.n):
            model.add_max_equality(self.start[o], waits[o])

    def _equal_shares(self) -> None:
        """Equal shares are interchangeable as a whole: the accelerators of their first FP may be sorted."""
        low = self.lowered
        first = [(o, b) for o, (phase, layer, b) in enumerate(low.operations) if phase == "FP" and b >= 0]
        layer = min((low.layer[o] for o, _ in first), default=-1)
        shares = [(o, b) for o, b in first if low.layer[o] == layer]
        for (o, b), (p, c) in pairwise(shares):
            if low.ratio[b] == low.ratio[c]:
                place = [sum(a * self.x[q][a] for a in range(low.accelerators)) for q in (o, p)]
                self.model.add(place[0] <= place[1]).with_name(f"equal shares[{b},{c}]")

    def hint(self, location: Array, sequence: Array) -> dict[Any, int]:
        """Variables of a plan, timed as early as possible."""
        start, end = self.lowered.timetable(location, sequence)
        values = {self.makespan: int(end.max())}
        for o in range(self.lowered.n):
            values |= {self.start[o]: int(start[o]), self.end[o]: int(end[o])}
            values |= {x: int(location[o] == a) for a, x in enumerate(self.x[o])}
        return values

    def decode(self, value: Any) -> tuple[Array, Array]:
        """``(location, sequence)``; at equal times precedences decide, which the topological position respects."""
        low = self.lowered
        location = np.array([[value(x) for x in row].index(1) for row in self.x], np.int64)
        if hasattr(self, "rank"):
            keys = [(value(self.rank[o]), 0) for o in range(low.n)]
        else:
            keys = [(value(self.start[o]), value(self.end[o])) for o in range(low.n)]
        sequence = np.array(sorted((int(o) for o in low.topological), key=lambda o: keys[o]), np.int64)
        return location, sequence


def solve_ratio(
    lowered: Lowered,
    cutoff: int | None,
    budget: Budget,
    time_s: float,
    location: Array | None = None,
    start: tuple[Array, Array] | None = None,
) -> RatioResult:
    """Best plan of one ratio below ``cutoff``: the relaxation first, the strict model if delays were exploited."""
    from mapgap.solvers.cpsat import solve

    bound, binds = 0, dram_binds(lowered)
    clock = budget.elapsed_s
    held: tuple[Ordered, int] | None = None
    for strict in (False, True) if binds else (False,):
        model = Model(lowered, location, strict, cutoff)
        left = time_s - (budget.elapsed_s - clock)
        outcome = solve(
            model.model,
            budget,
            time_s=max(left * (1 if strict or not binds else 0.5), 0.01),
            hint=model.hint(*start) if start is not None else None,
        )
        if outcome.status is Status.INFEASIBLE:  # nothing below the cutoff, even with delays or exactly
            if held is None:
                return RatioResult(None, bound if cutoff is None else cutoff, Stop.PROVED, infeasible=cutoff is None)
            raise PlanError("the strict model denies a plan that the relaxation found")
        bound = max(bound, outcome.bound or 0)
        if outcome.objective is None:
            continue
        found = timed(lowered, *model.decode(outcome.value))
        if found is None:
            if strict:
                raise PlanError("a plan of the strict model exceeds the DRAM")
            continue
        proven = outcome.status is Status.OPTIMAL
        if found.makespan > outcome.objective or (proven and found.makespan < bound):
            raise PlanError(f"the model claims {outcome.objective}, the timetable {found.makespan}")
        if held is None or found.makespan < held[0].makespan:
            held = (found, outcome.objective if proven else found.makespan)
        if held[0].makespan <= bound or outcome.stop is Stop.INTERRUPTED:
            break
    if held is None:
        return RatioResult(None, bound if cutoff is None else min(bound, cutoff), outcome.stop)
    return RatioResult(
        held[0], min(bound, held[0].makespan), Stop.PROVED if held[0].makespan <= bound else outcome.stop, held[1]
    )


def order_fixed_mapping(
    lowered: Lowered,
    location: Array,
    budget: Budget,
    time_s: float | None = None,
    hint_sequence: Array | None = None,
) -> tuple[Array | None, int | None, int]:
    """Best order of a fixed mapping: ``(sequence, makespan, bound)``, the first two ``None`` without a plan.

    The bound holds for this ratio and mapping only.
    """
    start = None if hint_sequence is None else (location, hint_sequence)
    seconds = budget.remaining_s if time_s is None else min(time_s, budget.remaining_s)
    result = solve_ratio(lowered, None, budget, seconds, location, start)
    if result.best is None:
        return None, None, result.bound
    return result.best.sequence, result.best.makespan, result.bound


def run(instance: Instance, budget: Budget, ratio: str = "") -> SolveResult:
    """Solve over all ratios, or over one given as ``"3,1"`` (then nothing is proven of the instance)."""

    def one(lowered: Lowered, cutoff: int | None, seconds: float) -> RatioResult:
        return solve_ratio(lowered, cutoff, budget, seconds)

    return sweep(instance, budget, one, parse_ratio(instance, ratio))


def parse_ratio(instance: Instance, text: str) -> Ratio:
    """The shares of ``"3,1"``; the empty tuple for an empty text."""
    from mapgap.core import InputError

    if not text:
        return ()
    parts = [part.strip() for part in text.split(",")]
    shares = tuple(int(part) for part in parts) if all(part.isdigit() for part in parts) else ()
    if len(shares) != len(instance.accelerators) or sum(shares) != instance.batch:
        expected = f"{len(instance.accelerators)} shares that add up to {instance.batch}"
        raise InputError(f"ratio: expected {expected}, separated by commas, found {text!r}")
    return shares
