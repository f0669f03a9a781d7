"""Exact dynamic programme over Pareto labels: the certified optimum in milliseconds.

For a pipeline suffix let ``D`` be its largest aligned step and ``A`` its largest AllReduce excess,

    D = max_i (M E_i + sum_{j<i} E_j),    A = max_s (Ta_s - sum_{j<s} Eb_j),    latency = D + A.

Putting a stage (E, Eb, Ta) and a communication step (c each way, E_comm = 2c) before it gives

    D' = max(M E, E + 2 M c, E + 2c + D),    A' = max(Ta, A - Eb - c),

which rise with D and A. So of two suffixes with the same first layer, devices, number of stages (for the memory of
the stages before, Eq. 3) and head group (for the bandwidth; only where links differ), one that is no better in both
labels is never needed: the Pareto sets give the optimum. A failure adds a third label, ``G = max(G, migration of the
stage)``, and the objective ``R (D + A) + G``. docs/methods/hybrid_pipeline.md has the proofs and an example.

What makes it fast, none of which gives up exactness: devices of equal type are one class; an upper bound comes from
the same search over a coarse selection of cuts, then over the neighbourhood of its cuts; a stage with
``M T >= upper`` is never looked at (two pointers per group); devices that cannot cover the layers in front cannot be
left for them; the sums of E and E_f in front are bounded from below, on large clusters by relaxations
(:mod:`mapgap.formulations.hybrid_pipeline.relaxation`), which also bound the optimum where the search does not end; the
cost of a stage is computed when a label asks for it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator
from dataclasses import replace
from typing import Any

from mapgap.core import Budget, Finding, InputError, SolveResult, Status, Stop, read_start
from mapgap.formulations.hybrid_pipeline.label.first_plan import OPEN, Path, closing
from mapgap.formulations.hybrid_pipeline.label.order_search import Order, OrderSearch, fluid_bound
from mapgap.formulations.hybrid_pipeline.label.search import CompiledSearch
from mapgap.formulations.hybrid_pipeline.label_python import Interpreted
from mapgap.formulations.hybrid_pipeline.params import LabelSearch as Params
from mapgap.formulations.hybrid_pipeline.params import OrderSearch as PlannerParams
from mapgap.formulations.hybrid_pipeline.relaxation import Refinement
from mapgap.problems.hybrid_pipeline import Instance, Plan
from mapgap.problems.hybrid_pipeline.evaluate import evaluate
from mapgap.problems.hybrid_pipeline.lowered.arrays import Lowered, infeasible, lower
from mapgap.problems.hybrid_pipeline.lowered.batching import every_micro_batch
from mapgap.problems.hybrid_pipeline.lowered.groups import group_count, interchangeable, move_count
from mapgap.problems.hybrid_pipeline.lowered.observe import observed
from mapgap.problems.hybrid_pipeline.lowered.order import BEST, TIES, memory_order, memory_orders
from mapgap.problems.hybrid_pipeline.lowered.replay import replayed
from mapgap.problems.hybrid_pipeline.lowered.tables import ordered
from mapgap.solvers.portfolio import exhausted

MOVE_BYTES, CELL_BYTES = 8, 32
"""What a search holds for a move, and for a pair of a group and a layer."""

PAIRED = Params(moves=2**23, cells=2**23)
"""What a search may hold that holds a link for each pair of groups besides."""


def fitting(params: Params, memory_mb: int | None) -> Params:
    """With no more moves and cells than a quarter of the memory has room for."""
    if memory_mb is None:
        return params
    room = memory_mb * 2**18
    return replace(params, moves=min(params.moves, room // MOVE_BYTES), cells=min(params.cells, room // CELL_BYTES))


def too_large(instance: Instance, params: Params = Params()) -> str:
    """Why the search over all groups would not fit into memory; empty where it does."""
    groups, moves = group_count(instance), move_count(instance)
    devices, classes = len(instance.devices), len(interchangeable(instance))
    what = f"{devices} devices in {classes} classes of equal ones"
    if moves > params.moves:
        return f"{what}: {moves} moves, at most {params.moves} are held"
    if groups * (len(instance.layers) + 1) > params.cells:
        return f"{what}: {groups} groups on {len(instance.layers)} layers, at most {params.cells} such pairs are held"
    if groups**2 > params.pairs and (instance.execution.transfers == "parallel" or not ordered(instance)):
        links = "parallel links" if ordered(instance) else "links of which none is best in bandwidth and latency"
        return f"{what} and {links}: {groups} groups, at most {int(params.pairs**0.5)} with such links"
    return ""


def differ(instance: Instance) -> bool:
    """Whether not all links are equal."""
    places = [(d, e) for d in range(len(instance.devices)) for e in range(d)]
    return len({(instance.bandwidth[d][e], instance.late([d], [e])) for d, e in places}) > 1


NOWHERE = "memory: no cut and choice of groups holds a micro-batch"
UNFINISHED = "the search over all groups is not finished"


class Run:
    """One run for one micro-batch size: what is known so far."""

    def __init__(self, instance: Instance, budget: Budget, params: Params) -> None:
        self.instance, self.budget, self.params = instance, budget, params
        self.value, self.plan = OPEN, None
        self.notes: dict[str, Any] = {}
        self.begin = time.process_time()
        self.refinement = None
        self.least = 0
        self.orders = OrderSearch(instance, budget, announce=self.announce)

    value: int
    plan: Plan | None
    refinement: Refinement | None

    def announce(self, plan: Plan) -> None:
        """A better plan."""
        self.plan = plan
        self.budget.report(plan=plan)

    def learn(self, plan: Plan | None) -> None:
        """A plan that was found elsewhere; one of another micro-batch size, or worse than known, is left out."""
        if plan is None or plan.micro_batch != self.instance.micro_batch_sizes[0]:
            return
        found = evaluate(self.instance, plan)
        if found.feasible and found.objective is not None and found.objective < self.value:
            self.value = found.objective
            self.announce(plan)

    def along(self, order: Order) -> None:
        """The best plan along an order of the devices."""
        self.orders.value = self.value
        self.orders.along(order)
        self.value = self.orders.value

    def wander(self) -> Iterator[None]:
        """Better plans along other orders of the devices, as long as time permits."""
        self.orders.value = self.value
        for _ in self.orders.wander():
            self.value = min(self.value, self.orders.value)
            if self.value <= self.bound:
                return
            yield

    def refine(self, most: int) -> Iterator[None]:
        """Bounds of relaxations of at most so many moves, from coarse to fine, and plans along the orders they name."""
        self.refinement = Refinement(self.instance, self.budget, most, self.params)
        while self.refinement.left and self.refinement.bound < self.value and not self.budget.exhausted:
            self.refinement.step(self.value)
            self.notes |= self.refinement.notes
            if self.bound < OPEN:
                self.budget.report(bound=self.bound)
            order = self.refinement.order()
            if order is not None and not self.budget.exhausted:
                self.along(order)
            yield

    @property
    def bound(self) -> int:
        """What is proven without a search over all groups, at most the value of the plan."""
        found = self.least if self.refinement is None else max(self.least, self.refinement.bound)
        return min(found, self.value)

    def search(self, low: Lowered, engine: str, everyone: bool) -> tuple[Stop | None, int]:
        """Coarse cuts, neighbourhoods, all cuts; why that was not finished, and a bound then."""
        chosen = ("python" if low.overflows else "compiled") if engine == "auto" else engine
        kind = CompiledSearch if chosen == "compiled" else Interpreted
        search = kind(low, everyone, self.budget)
        built = time.process_time()

        bound = self.bound

        def better(path: Path, value: int) -> None:
            self.value = value
            self.announce(low.plan(path))

        def proven(least: int, counts: dict[str, int]) -> None:
            nonlocal bound
            bound = min(least, self.value)
            self.notes |= counts
            if self.refinement is not None and bound < OPEN:
                self.budget.report(bound=bound)

        step = self.value if self.refinement is None else (self.value - bound) // self.params.steps
        searches = closing(
            low, search, bound, self.value, step, lambda upper: self._lend(search, upper), better, proven
        )
        self.notes |= {"upper": self.value if self.plan else None, "searches": searches}
        ended = time.process_time()
        for key, spent in (("build_s", built - self.begin), ("search_s", ended - built)):
            self.notes[key] = self.notes.get(key, 0.0) + spent
        self.notes["engine"], self.begin = chosen, ended
        return search.stop, bound

    def _lend(self, search: CompiledSearch | Interpreted, upper: int) -> None:
        if self.refinement is not None and isinstance(search, CompiledSearch):
            self.refinement.lend(search, self.params.growth * move_count(self.instance), upper)

    def stopped(self, stop: Stop, bound: int, reason: str) -> SolveResult:
        """The best plan and a bound, without a proof."""
        self.budget.report(bound=bound)
        if self.plan is None:
            return SolveResult(Status.UNKNOWN, stop, None, bound, reason=reason, notes=self.notes)
        proved = bound >= self.value
        status = Status.OPTIMAL if proved else Status.FEASIBLE
        stop, reason = (Stop.PROVED, "") if proved else (stop, reason)
        return SolveResult(status, stop, self.plan, bound, self.value, reason=reason, notes=self.notes)


def steps(
    instance: Instance,
    budget: Budget,
    known: Callable[[], Plan | None],
    engine: str = "auto",
    params: Params = Params(),
    alone: bool = False,
) -> Generator[None, None, SolveResult]:
    """The algorithm in pieces, for one micro-batch size; it returns the result.

    1. A bound on what all devices can do together; on large instances the best plan along the order of Algorithm 2.
    2. Relaxations, from few classes of devices to many.
    3. The search over all groups, where it fits into the memory; where not, nothing more is proven.

    Parameters
    ----------
    known : callable
        The best plan that others have found; asked for between pieces.
    alone : bool
        Nobody else looks for plans: where nothing more can be proven, look along orders of the devices.
    """
    params = fitting(params, budget.memory_mb)
    this = Run(instance, budget, params)
    this.learn(known())
    this.least = fluid_bound(lower(instance, tuple(range(len(instance.devices)))))
    budget.report(bound=this.bound)
    large, moves = too_large(instance, params), move_count(instance)
    compiled = engine != "python"
    if large or (compiled and not cheap(instance)):  # else all labels are there before a relaxation is
        if this.plan is None:
            this.along(tuple(memory_order(instance)))
            yield
        for _ in this.refine(params.moves if large else moves if differ(instance) else moves // params.growth):
            yield
            this.learn(known())
    if this.bound == OPEN:
        return infeasible(instance, NOWHERE, notes=this.notes)
    if large:
        if alone and compiled:
            yield from this.wander()
        return this.stopped(Stop.TIME if budget.exhausted else Stop.MEMORY, this.bound, large)
    if budget.exhausted or this.bound == this.value:
        return this.stopped(Stop.TIME, this.bound, UNFINISHED)
    low = lower(instance, pairs=False)
    if not compiled or low.overflows:
        if large := too_large(instance, PAIRED):
            return this.stopped(Stop.MEMORY, this.bound, large)
        low = lower(instance)
    stop, bound = this.search(low, engine, instance.all_devices)
    if stop is not None:
        return this.stopped(stop, max(this.bound, min(bound, this.value)), UNFINISHED)
    if this.plan is None:
        return infeasible(instance, NOWHERE, notes=this.notes)
    return SolveResult(Status.OPTIMAL, Stop.PROVED, this.plan, this.value, this.value, notes=this.notes)


def cheap(instance: Instance) -> bool:
    """Whether the optimum is there sooner than the quick planner's plan: that would search all groups, too."""
    return move_count(instance) * len(instance.layers) <= PlannerParams.work


@observed
@replayed
@every_micro_batch
def run(
    instance: Instance,
    budget: Budget,
    engine: str = "auto",
    order: str = "free",
    start: str | Plan | None = None,
    params: Params = Params(),
) -> SolveResult:
    """The certified optimum; with an order, the best plan whose groups are runs of it and that uses every device.

    ``order=best`` is the best plan over all orders that descending memory permits.

    Where all groups are too many, or the budget ends before, the best plan found and a bound.

    Raises
    ------
    InputError
        ``engine`` is not auto, compiled or python; ``order`` is not free, fastest_first, slowest_first or best, or best
        of too many; ``start`` is no plan of the problem.
    """
    if engine not in ("auto", "compiled", "python"):
        raise InputError(Finding(f"expected auto, compiled or python; found {engine!r}", ("engine",)))
    if order not in ("free", *TIES, BEST):
        raise InputError(Finding(f"expected free, {', '.join(TIES)} or {BEST}; found {order!r}", ("order",)))
    if order != "free":
        return restricted(Run(instance, budget, params), memory_orders(instance, order, "order"), engine)
    first = read_start(start, Plan, instance)
    return exhausted(steps(instance, budget, lambda: first, engine, params, alone=True))


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
