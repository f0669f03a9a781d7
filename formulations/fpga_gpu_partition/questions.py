"""From an engine that minimises weighted sums to every objective of the problem; shared by ``cpsat`` and ``mip``.

An *engine* answers one kind of question (:class:`Question`): the smallest ``a * E + b * L`` of a plan with latency and
energy up to given limits. Energy, latency and their weighted sum are one question. The product ``E * L`` is not linear
and exceeds the 2^31 that rows may reach; it is minimised by cutting the range of latencies:

1.  With ``z`` the product of the best plan known, a better plan with ``lo <= L <= hi`` lies below the hyperbola
    ``E = z / L`` and therefore below its chord from ``lo`` to ``hi``. The chord's slope gives the weights ``a, b``.
2.  The engine's bound ``V`` on plans with ``L <= hi`` says ``E >= (V - b * L) / a`` for the range. Along that line
    ``E * L`` is concave, so its least value is at ``lo`` or at ``hi``: a bound on the product for the whole range.
3.  If it reaches ``z`` the range is done, else it is cut at the latency of the plan found (or in the middle). At
    ``lo = hi`` the bound is exact, so the search ends.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from mapgap.core import (
    ACTIVITY_LIMIT,
    DISTRUSTED,
    Budget,
    Finding,
    InputError,
    OutOfTime,
    PlanBase,
    SolveResult,
    Status,
    Stop,
    read_start,
)
from mapgap.formulations.fpga_gpu_partition.bounds import LATE, no_plan, relaxed, without_tables
from mapgap.formulations.fpga_gpu_partition.configurations import E, L, Tables, tabulate
from mapgap.problems.fpga_gpu_partition import Instance, Plan
from mapgap.problems.fpga_gpu_partition.evaluate import diagnose, evaluate
from mapgap.solvers.model import Model, Part

WEIGHTED_RANGE = 2**20
"""Weights along a chord keep the weighted sum about below this, where an engine's bound is exact to a unit."""


@dataclass(frozen=True)
class Question:
    """Minimise ``energy_weight * E + latency_weight * L`` within limits; ``None`` is no limit."""

    energy_weight: int
    latency_weight: int
    max_latency: int | None = None
    max_energy: int | None = None

    def value(self, energy: int, latency: int) -> int:
        """What is minimised."""
        return self.energy_weight * energy + self.latency_weight * latency


Engine = Callable[[Tables, Question, Budget, Plan | None], SolveResult]
"""``engine(tables, question, budget, start)``: the result, bound and status are about the question."""

LINEAR = ("energy", "latency", "weighted")
"""Objectives that are one question."""


def question_of(instance: Instance) -> Question:
    """The one question of an instance with a linear objective.

    Raises
    ------
    InputError
        The objective is not linear.
    """
    if instance.objective not in LINEAR:
        known = ", ".join(LINEAR)
        text = f"expected a linear objective for an integer program ({known}), found {instance.objective!r}"
        raise InputError(Finding(text, ("objective",)))
    weights = {"energy": (1, 0), "latency": (0, 1), "weighted": (instance.energy_weight, instance.latency_weight)}
    return Question(*weights[instance.objective], instance.latency_limit, instance.energy_limit)


def parts(instance: Instance, model: Callable[..., Model]) -> list[Part]:
    """The one program of an instance, ``model(tables, question, without)``; complete: every choice of options.

    Raises
    ------
    InputError
        The objective is not linear.
    """
    question = question_of(instance)

    @cache
    def tables(complete: bool) -> Tables:
        return tabulate(instance, Budget(time_s=math.inf), complete)

    def build(complete: bool = False, without: tuple[int, ...] = ()) -> Model:
        return model(tables(complete), question, without)

    return [Part("", build)]


@dataclass
class Search:
    """Incumbent of one run, and what was asked for it."""

    tables: Tables
    engine: Engine
    budget: Budget
    best: Plan | None = None
    value: int | None = None
    questions: int = 0
    stop: Stop = Stop.PROVED
    notes: dict[str, Any] = field(default_factory=dict)

    @property
    def floor(self) -> int:
        """No plan has a smaller value: every module in its quickest and in its cheapest configuration."""
        return self.tables.instance.value(*self.tables.least)

    def offer(self, plan: PlanBase | None) -> None:
        """Keep and announce a plan if it is better."""
        if plan is None:
            return
        assert isinstance(plan, Plan)
        value = self.tables.instance.value(*self.tables.worth(plan))
        if self.value is None or value < self.value:
            self.best, self.value = plan, value
            self.budget.report(plan=plan)

    def ask(self, question: Question) -> SolveResult:
        """Put one question to the engine and keep what it finds."""
        self.questions += 1
        answer = self.engine(self.tables, question, self.budget, self.best)
        self.offer(answer.plan)
        if DISTRUSTED in answer.notes:
            self.notes[DISTRUSTED] = [*self.notes.get(DISTRUSTED, ()), *answer.notes[DISTRUSTED]]
        if answer.status not in (Status.OPTIMAL, Status.INFEASIBLE):
            self.stop = answer.stop
        return answer


def begin(instance: Instance, budget: Budget, engine: Engine, start: str | Plan | None) -> Search | SolveResult:
    """A search that holds the plan it was given; the result where there is nothing to search, or no time was left."""
    reasons = diagnose(instance)
    if reasons:
        return SolveResult(Status.INFEASIBLE, Stop.PROVED, reason="; ".join(reasons))
    first = read_start(start, Plan, instance, evaluate)
    budget.report(bound=relaxed(instance))
    try:
        tables = tabulate(instance, budget)
    except OutOfTime:
        return without_tables(instance, first, Stop.TIME, LATE)
    notes = {"configurations": tables.size}
    if tables.empty:
        return SolveResult(Status.INFEASIBLE, Stop.PROVED, reason=no_plan(instance), notes=notes)
    search = Search(tables, engine, budget, notes=notes)
    choice = None if first is None else tables.no_worse(first)
    search.offer(None if choice is None else tables.plan(choice))
    budget.report(bound=search.floor)
    return search


def minimise(instance: Instance, budget: Budget, engine: Engine, start: str | Plan | None = None) -> SolveResult:
    """Minimise the instance's objective with an engine; the plan ``start`` is announced, and handed to it."""
    search = begin(instance, budget, engine, start)
    if isinstance(search, SolveResult):
        return search
    if instance.objective == "edp":
        bound, infeasible = least_product(search)
    else:
        answer = search.ask(question_of(instance))
        bound, infeasible = answer.bound, answer.status is Status.INFEASIBLE
    return result(search, bound, infeasible)


def result(search: Search, bound: int | None, infeasible: bool) -> SolveResult:
    """The result of a finished or interrupted search."""
    notes = search.notes | {"questions": search.questions}
    if search.best is None or search.value is None:
        if infeasible:
            return SolveResult(Status.INFEASIBLE, Stop.PROVED, reason=no_plan(search.tables.instance), notes=notes)
        reason = "; ".join(notes.get(DISTRUSTED, ())) or "no plan found in time"
        return SolveResult(Status.UNKNOWN, search.stop, bound=bound, reason=reason, notes=notes)
    bound = min(search.floor if bound is None else max(bound, search.floor), search.value)
    proven = bound == search.value
    return SolveResult(
        status=Status.OPTIMAL if proven else Status.FEASIBLE,
        stop=Stop.PROVED if proven else search.stop,
        plan=search.best,
        bound=bound,
        claimed=search.value,
        notes=notes,
    )


def least_product(search: Search) -> tuple[int | None, bool]:
    """Minimise ``E * L``; ``(bound, infeasible)``."""
    instance = search.tables.instance
    limits = {"max_latency": instance.latency_limit, "max_energy": instance.energy_limit}
    low = search.ask(Question(0, 1, **limits))  # no plan is quicker
    if low.status is Status.INFEASIBLE:
        return None, True
    high = search.ask(Question(1, 0, **limits))  # no plan needs less; slower ones than this one are worse
    if low.bound is None or high.bound is None:
        return None, False
    if high.status is not Status.OPTIMAL or high.plan is None or search.value is None:
        return low.bound * high.bound, False
    last = search.tables.worth(high.plan)[1]
    open_ranges = [(low.bound * high.bound, low.bound, last)]  # (bound on the product, from, to) in ticks
    while open_ranges:
        open_ranges.sort()
        bound, first, last = open_ranges[0]
        search.budget.report(bound=min(bound, search.value))
        if bound >= search.value or search.stop is not Stop.PROVED or search.budget.exhausted:
            break
        open_ranges[:1] = _cut(search, bound, first, last)
    if search.budget.exhausted and search.stop is Stop.PROVED:
        search.stop = Stop.TIME
    return min([search.value, *(bound for bound, _, _ in open_ranges)]), False


def _cut(search: Search, bound: int, first: int, last: int) -> list[tuple[int, int, int]]:
    """Bound the product between two latencies, or split the range; ranges that may hold a better plan."""
    instance, value = search.tables.instance, search.value
    assert value is not None
    ceiling = (value - 1) // first  # a better plan needs no more energy than this
    if instance.energy_limit is not None:
        ceiling = min(ceiling, instance.energy_limit)
    energy_weight, latency_weight = chord(value, first, last, ceiling, _reach(search.tables))
    answer = search.ask(Question(energy_weight, latency_weight, max_latency=last, max_energy=ceiling))
    if answer.status is Status.INFEASIBLE:
        return []
    if answer.bound is not None:
        ends = (end * -(-(answer.bound - latency_weight * end) // energy_weight) for end in (first, last))
        bound = max(bound, min(ends))
    assert search.value is not None
    if bound >= search.value:
        return []
    if first == last:
        return [(bound, first, last)]
    middle = (first + last) // 2
    if answer.plan is not None:
        middle = min(max(search.tables.worth(answer.plan)[1], first + 1), last) - 1
    return [(bound, first, middle), (bound, middle + 1, last)]


def _reach(tables: Tables) -> tuple[int, int]:
    """By how much the energies and the latencies of all modules can exceed the least ones."""
    energy, latency = (sum(int(table.above[:, k].max(initial=0)) for table in tables.modules) for k in (E, L))
    return energy, latency


def chord(value: int, first: int, last: int, ceiling: int, reach: tuple[int, int]) -> tuple[int, int]:
    """Weights of energy and latency along the chord of ``E * L = value`` between two latencies.

    The slope is ``value / (first * last)``. Large weights follow it closely but make questions hard and bounds coarse;
    a chord that rounding turns, or the limit on what an objective adds up to, costs questions, not exactness.

    Parameters
    ----------
    reach : (int, int)
        Largest energy and latency above the least ones, limits left aside: what the objective of a model can reach.
    """
    if first == last:
        return 1, 0
    slope = value / (first * last)
    scale = WEIGHTED_RANGE / (2 * max(ceiling + slope * last, 1.0))
    most = [(ACTIVITY_LIMIT - 1) // max(each, 1) for each in reach]
    energy_weight = max(1, min(int(scale), most[0]))
    return energy_weight, min(round(energy_weight * slope), most[1])
