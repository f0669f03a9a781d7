"""Exact dynamic programme over Pareto labels: the certified optimum in milliseconds.

For a pipeline suffix let ``D`` be its largest aligned step and ``A`` its largest AllReduce excess,

    D = max_i (M E_i + sum_{j<i} E_j),    A = max_s (Ta_s - sum_{j<s} Eb_j),    latency = D + A.

Putting a stage (E, Eb, Ta) and a communication step (c each way, E_comm = 2c) before it gives

    D' = max(M E, E + 2 M c, E + 2c + D),    A' = max(Ta, A - Eb - c),

which rise with D and A. So of two suffixes with the same first layer, devices, number of stages (for the memory of
the stages before, Eq. 3) and head group (for the bandwidth; only where links differ), one that is no better in both
labels is never needed: the Pareto sets give the optimum. A failure adds a third label, ``G = max(G, migration of the
stage)``, and the objective ``R (D + A) + G``. docs/hybrid_pipeline_label_dp.md has the proofs and an example.

What makes it fast, none of which gives up exactness: devices of equal type are one class; an upper bound comes from
the same search over a coarse selection of cuts, then over the neighbourhood of its cuts; a stage with
``M T >= upper`` is never looked at (two pointers per group); devices that cannot cover the layers in front cannot be
left for them; the sums of E and E_f in front are bounded from below, on large clusters by relaxations
(:mod:`mapgap.formulations.hybrid_pipeline.relaxation`), which also bound the optimum where the search does not end; the
cost of a stage is computed when a label asks for it.
"""

from __future__ import annotations

import time
from typing import Any

from mapgap.core import Budget, Finding, InputError, SolveResult, Status, Stop
from mapgap.formulations.hybrid_pipeline.label.first_plan import OPEN, Path, approach
from mapgap.formulations.hybrid_pipeline.label.order_search import OrderSearch, fluid_bound
from mapgap.formulations.hybrid_pipeline.label.search import CompiledSearch
from mapgap.formulations.hybrid_pipeline.label_python import Interpreted
from mapgap.formulations.hybrid_pipeline.relaxation import COARSER, Refinement
from mapgap.formulations.hybrid_pipeline.relaxation import MOVES as MOST_RELAXED
from mapgap.problems.hybrid_pipeline import Instance, Plan
from mapgap.problems.hybrid_pipeline.lowered.arrays import Lowered, infeasible, lower
from mapgap.problems.hybrid_pipeline.lowered.batching import every_micro_batch
from mapgap.problems.hybrid_pipeline.lowered.groups import group_count, interchangeable, move_count
from mapgap.problems.hybrid_pipeline.lowered.observe import observed
from mapgap.problems.hybrid_pipeline.lowered.order import BEST, TIES, memory_orders
from mapgap.problems.hybrid_pipeline.lowered.replay import replayed

MANY = 200_000
"""Moves times layers from which a plan of little work comes first."""

FEW = 20_000
"""Moves from which relaxations come first: their sums in front of cuts spare more labels than they cost."""

FIRST = 0.3
"""Share of the time that relaxations may take before most of the orders."""

SHORT_S = 3.0
"""With less time no relaxation comes before them."""

HALF = 0.5
"""Share of the time left that relaxations may take before the search over all groups, or before orders."""

MOVES = 2**23
"""Most moves (a group in front of the devices used behind it) that a search holds."""

CELLS = 2**23
"""Most pairs of a group and a layer that a search holds."""

PAIRS = 2**26
"""Most pairs of groups that a search holds, where links differ."""


def too_large(instance: Instance) -> str:
    """Why the search over all groups would not fit into memory; empty where it does."""
    groups, moves = group_count(instance), move_count(instance)
    devices, classes = len(instance.devices), len(interchangeable(instance))
    what = f"{devices} devices in {classes} classes of equal ones"
    if moves > MOVES:
        return f"{what}: {moves} moves, at most {MOVES} are held"
    if groups * (len(instance.layers) + 1) > CELLS:
        return f"{what}: {groups} groups on {len(instance.layers)} layers, at most {CELLS} such pairs are held"
    rates = {rate for d, row in enumerate(instance.bandwidth) for e, rate in enumerate(row) if d != e}
    if groups**2 > PAIRS and (len(rates) > 1 or instance.execution.transfers == "parallel"):
        return f"{what} and links that differ: {groups} groups, at most {int(PAIRS**0.5)} with such links"
    return ""


UNFINISHED = "the search over all groups is not finished"


class Run:
    """One run for one micro-batch size: what is known so far."""

    def __init__(self, instance: Instance, budget: Budget) -> None:
        self.instance, self.budget = instance, budget
        self.value, self.plan = OPEN, None
        self.notes: dict[str, Any] = {}
        self.begin = time.process_time()
        self.orders = OrderSearch(instance, budget, announce=self.announce)
        self.refinement = None

    value: int
    plan: Plan | None
    refinement: Refinement | None

    def announce(self, plan: Plan) -> None:
        """A better plan."""
        self.plan = plan
        self.budget.report(plan=plan)

    def quick(self) -> None:
        """A plan of little work: along one order, and, after first relaxations, as :class:`OrderSearch` has it."""
        self.orders.first()
        self._ordered()
        if self.plan is not None and move_count(self.instance) >= FEW and self.budget.remaining_s > SHORT_S:
            self.refine(FIRST, move_count(self.instance) // COARSER)
        self.orders.quick()
        self.orders.work = None
        self._ordered()

    def _ordered(self) -> None:
        self.value = self.orders.value
        self.notes["orders"] = self.orders.searches

    def refine(self, share: float, most: int) -> None:
        """Bounds of relaxations of at most so many moves, in a share of the time that is left."""
        budget = self.budget
        given = Budget(budget.remaining_s * share, budget.memory_mb, budget.workers, budget.seed)
        self.refinement = self.refinement or Refinement(self.instance, given, min(most, MOST_RELAXED))
        self.refinement.renew(given)
        while self.refinement.promising() and self.refinement.bound < self.value:
            self.refinement.step(self.value)
            self.notes |= self.refinement.notes
            self.budget.report(bound=self.bound)
            order = self.refinement.order()
            if order is not None and not self.budget.exhausted:
                self.orders.along(order)
                self._ordered()

    def improve(self, share: float) -> None:
        """Neighbours of the best order as long as that helps, in a share of the time that is left."""
        budget = self.budget
        self.orders.budget = Budget(budget.remaining_s * share, budget.memory_mb, budget.workers, budget.seed)
        self.orders.improve()
        self.orders.budget = budget
        self._ordered()

    @property
    def bound(self) -> int:
        """What the relaxations prove, at most the value of the plan."""
        return 0 if self.refinement is None else min(self.refinement.bound, self.value)

    def search(self, low: Lowered, engine: str, everyone: bool) -> tuple[Stop | None, int]:
        """Coarse cuts, neighbourhoods, all cuts; why that was not finished, and a bound then."""
        chosen = ("python" if low.overflows else "compiled") if engine == "auto" else engine
        kind = CompiledSearch if chosen == "compiled" else Interpreted
        search = kind(low, everyone, self.budget)
        built = time.process_time()

        def better(path: Path) -> None:
            self.announce(low.plan(path))

        self._lend(search)
        known = self.value
        self.value, _, searches = approach(low, search, (self.value, []), better)
        if self.value < known and search.stop is None:
            self._lend(search)
        self.notes |= {"upper": self.value if self.plan else None, "searches": searches + (search.stop is None)}
        bound = 0
        if search.stop is None:
            self.value, path, counts = search(list(range(low.layers + 1)), self.value)
            bound = search.bound
            self.notes |= counts
            if path:
                better(path)
        ended = time.process_time()
        for key, spent in (("build_s", built - self.begin), ("search_s", ended - built)):
            self.notes[key] = self.notes.get(key, 0.0) + spent
        self.notes["engine"], self.begin = chosen, ended
        return search.stop, bound

    def _lend(self, search: CompiledSearch | Interpreted) -> None:
        if self.refinement is not None and isinstance(search, CompiledSearch):
            self.refinement.lend(search, move_count(self.instance), self.value)

    def stopped(self, stop: Stop, bound: int, reason: str) -> SolveResult:
        """The best plan and a bound, without a proof."""
        self.budget.report(bound=bound)
        if self.plan is None:
            return SolveResult(Status.UNKNOWN, stop, None, bound, reason=reason, notes=self.notes)
        proved = bound >= self.value
        status = Status.OPTIMAL if proved else Status.FEASIBLE
        stop = Stop.PROVED if proved else stop
        return SolveResult(status, stop, self.plan, bound, self.value, reason=reason, notes=self.notes)


@observed
@replayed
@every_micro_batch
def run(instance: Instance, budget: Budget, engine: str = "auto", order: str = "free") -> SolveResult:
    """The certified optimum; with an order, the best plan whose groups are runs of it and that uses every device.

    ``order=best`` is the best plan over all orders that descending memory permits.

    Where all groups are too many, or the budget ends before, the best plan found and a bound.

    Raises
    ------
    InputError
        ``engine`` is not auto, compiled or python; ``order`` is not free, fastest_first, slowest_first or best, or best
        of too many.
    """
    if engine not in ("auto", "compiled", "python"):
        raise InputError(Finding(f"expected auto, compiled or python; found {engine!r}", ("engine",)))
    if order not in ("free", *TIES, BEST):
        raise InputError(Finding(f"expected free, {', '.join(TIES)} or {BEST}; found {order!r}", ("order",)))
    this = Run(instance, budget)
    if order != "free":
        return restricted(this, memory_orders(instance, order, "order"), engine)
    large, moves = too_large(instance), move_count(instance)
    if large or (moves * len(instance.layers) > MANY and engine != "python"):
        this.quick()
    if large:
        return beyond(this, large)
    if moves >= FEW and this.plan is not None and engine != "python":
        this.refine(HALF, moves // COARSER)
    if this.plan is not None and (budget.exhausted or this.bound == this.value):
        return this.stopped(Stop.TIME, fluid(instance, this), UNFINISHED)
    low = lower(instance)
    stop, bound = this.search(low, engine, instance.all_devices)
    if stop is not None:
        return this.stopped(stop, max(fluid_bound(low), this.bound, min(bound, this.value)), UNFINISHED)
    if this.plan is None:
        return infeasible(instance, "memory: no cut and choice of groups holds a micro-batch", notes=this.notes)
    return SolveResult(Status.OPTIMAL, Stop.PROVED, this.plan, this.value, this.value, notes=this.notes)


def beyond(this: Run, large: str) -> SolveResult:
    """Relaxations and orders in turn: where the search over all groups does not fit into memory."""
    while this.plan is not None and not this.budget.exhausted and this.bound < this.value:
        before = this.bound, this.value
        this.refine(HALF, move_count(this.instance))
        this.improve(HALF)
        if (this.bound, this.value) == before:
            this.improve(1.0)
            break
    stop = Stop.TIME if this.budget.exhausted else Stop.MEMORY
    return this.stopped(stop, fluid(this.instance, this), large)


def fluid(instance: Instance, this: Run) -> int:
    """The best bound known without a search over all groups."""
    return max(this.bound, fluid_bound(lower(instance, tuple(range(len(instance.devices))))))


def restricted(this: Run, orders: list[list[int]], engine: str) -> SolveResult:
    """The best plan along one of the orders that uses every device; the optimum of a restriction bounds nothing."""
    stop = None
    for order in orders:
        stop, _ = this.search(lower(this.instance, order), engine, everyone=True)
        if stop is not None:
            break
    this.notes["orders"] = len(orders)
    if stop is not None:
        reason = UNFINISHED.replace("all groups", "the order")
    else:
        reason = "" if this.plan else "no plan has all devices in such an order; this proves nothing about others"
    status = Status.FEASIBLE if this.plan else Status.UNKNOWN
    value = this.value if this.plan else None
    return SolveResult(status, stop or Stop.DONE, this.plan, None, value, reason=reason, notes=this.notes)
