"""Why a plan is not better: what binds it, which of its decisions cost how much, what more hardware would bring.

The decisions are told by path relinking (Glover 1997): from the plan to the best one known, one decision after the
other is exchanged, each time the one that leaves the best plan. The evaluator values every plan on the way. What an
exchange brings alone and what it brings in turn differ where decisions depend on each other.

What a relaxation brings is an interval: neither optimum need be known, and a bound on one side and a plan on the
other limit the difference.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from mapgap.catalogue import registry
from mapgap.catalogue.files import load_plan
from mapgap.core import (
    Binding,
    Budget,
    Case,
    Evaluation,
    Exchange,
    Explainer,
    InputError,
    InstanceBase,
    PlanBase,
    PlanTable,
    Problem,
)
from mapgap.evidence.ledger import Ledger
from mapgap.evidence.within import interval
from mapgap.execution.progress import Event, Tell, silence
from mapgap.execution.run import run_uninterrupted
from mapgap.execution.watch import verify

Known = tuple[PlanBase | None, int | None, int | None]
"""A plan, its value, and a bound."""


@dataclass(frozen=True)
class Looking(Event):
    """What is being solved now."""

    what: str


@dataclass(frozen=True)
class Step:
    """One exchange on the way from the plan to the best one.

    Attributes
    ----------
    label : str
    alone : int or None
        Value of the plan with this decision exchanged and nothing else; ``None`` where that breaks a rule.
    value : int or None
        Value after this and all exchanges before it.
    gain : int or None
        By how much the value improved on the last plan before that keeps the rules; negative where it got worse.
    """

    label: str
    alone: int | None
    value: int | None
    gain: int | None


@dataclass(frozen=True)
class Relaxed:
    """What a relaxation is known to bring.

    Attributes
    ----------
    label : str
    value, bound : int or None
        Best plan found and bound proven with it.
    low, high : int or None
        The optimum improves by at least and at most so much; ``None`` where nothing is known.
    """

    label: str
    value: int | None
    bound: int | None
    low: int | None
    high: int | None


@dataclass(frozen=True)
class Explanation:
    """Why a plan is not better.

    Attributes
    ----------
    problem : Problem
    instance : InstanceBase
    method : str
        Where the plan comes from: a method, or the name of a file.
    plan, best : PlanBase
        The plan that is explained, and the best one known.
    value, optimum : int
        Their values.
    bound : int or None
        Of the instance.
    binding : Binding
    steps : tuple of Step
        Empty where the plan is as good as the best one known.
    relaxed : tuple of Relaxed
    interval : (int, int), optional
        Of the value, between the quartiles of what was measured.
    """

    problem: Problem
    instance: InstanceBase
    method: str
    plan: PlanBase
    value: int
    best: PlanBase
    optimum: int
    bound: int | None
    binding: Binding
    steps: tuple[Step, ...]
    relaxed: tuple[Relaxed, ...] = ()
    interval: tuple[int, int] | None = None

    @property
    def sign(self) -> int:
        return 1 if self.problem.sense == "min" else -1

    @property
    def decisions(self) -> PlanTable | None:
        """The way to the best plan, as people read it; ``None`` where no better plan is known."""
        columns = ("decision", "alone", "in turn", "brings")
        rows = tuple(
            (step.label, _told(step.alone), _told(step.value), _share(step.gain, self.value)) for step in self.steps
        )
        return PlanTable(columns, rows, columns[1:]) if rows else None

    @property
    def relaxations(self) -> PlanTable | None:
        """What relaxations are known to bring, in shares of the best value known; ``None`` where none was solved."""
        columns = ("with", "best plan", "bound", "the optimum improves by")
        rows = tuple((each.label, each.value, each.bound, self._interval(each)) for each in self.relaxed)
        return PlanTable(columns, rows, columns[1:]) if rows else None

    def _interval(self, each: Relaxed) -> str | None:
        low, high = _share(each.low, self.optimum), _share(each.high, self.optimum)
        if low is None and high is None:
            return None
        return low if low == high else f"{low or '?'} to {high or '?'}"


def _told(value: int | None) -> int | str:
    return "breaks a rule" if value is None else value


def _share(gain: int | None, value: int) -> str | None:
    return None if gain is None or not value else f"{100 * gain / abs(value):.2f}%"


def explain(
    instance: InstanceBase,
    *,
    plan: PlanBase | None = None,
    source: str = "",
    method: str | None = None,
    budget: Budget,
    relax: bool = True,
    tell: Tell = silence,
) -> Explanation:
    """Explain a plan.

    Parameters
    ----------
    plan : PlanBase, optional
        With its ``source``; default: that of ``method``.
    method : str, optional
        Default: the first published method of the problem that finds a plan.
    budget : Budget
        Of each run: the method's, the exact one on instances that the ledger does not know, and on every relaxation.
    relax : bool
        Also solve the relaxations.
    tell : callable, optional
        Receives :class:`Looking`.

    Raises
    ------
    InputError
        The problem explains nothing, or the plan breaks a rule, or no plan was found.
    """
    problem = registry.problems()[instance.problem]
    told = problem.explain
    if told is None:
        raise InputError(f"{problem.name}: expected a problem that explains its plans, found none for this one")
    if plan is None:
        plan, source = _planned(problem, instance, method, budget, tell)
    value = _value(problem, instance, plan, source)
    best, optimum, bound = _reference(problem, instance, budget, tell)
    sign = 1 if problem.sense == "min" else -1
    if best is None or optimum is None or sign * value < sign * optimum:
        best, optimum = plan, value
    steps = relink(problem, told, instance, plan, best) if value != optimum else ()
    binding = told.binding(instance, plan)
    found = Explanation(
        problem, instance, source, plan, value, best, optimum, bound, binding, steps, interval=interval(instance, plan)
    )
    if not relax:
        return found
    cases = told.relaxations(instance)
    relaxed = tuple(_relaxed(found, case, budget, tell) for case in cases)
    return replace(found, relaxed=relaxed)


def relink(
    problem: Problem, told: Explainer, instance: InstanceBase, plan: PlanBase, best: PlanBase
) -> tuple[Step, ...]:
    """The way from a plan to the best one known, the exchange that leaves the best plan first."""
    exchanges = list(told.exchanges(instance, plan, best))
    sign = 1 if problem.sense == "min" else -1

    def valued(taken: frozenset[int]) -> Evaluation:
        if len(taken) == len(exchanges):
            return verify(problem, instance, best)
        return verify(problem, instance, _applied(plan, exchanges, taken))

    def rank(found: Evaluation) -> tuple[int, int]:
        if found.objective is None:
            return 2, 0
        if found.violations:
            return 1, sum(violation.amount for violation in found.violations)
        return 0, sign * found.objective

    last = verify(problem, instance, plan).objective
    alone: dict[int, int | None] = {}
    taken: frozenset[int] = frozenset()
    steps = []
    while len(taken) < len(exchanges):
        tried = {k: valued(taken | {k}) for k in range(len(exchanges)) if k not in taken}
        alone = alone or {k: found.objective if found.feasible else None for k, found in tried.items()}
        chosen = min(tried, key=lambda k: (rank(tried[k]), k))
        taken |= {chosen}
        value = tried[chosen].objective if tried[chosen].feasible else None
        gain = None if value is None or last is None else sign * (last - value)
        steps.append(Step(exchanges[chosen].label, alone[chosen], value, gain))
        last = last if value is None else value
    return tuple(steps)


def _applied(plan: PlanBase, exchanges: Sequence[Exchange], taken: frozenset[int]) -> PlanBase:
    for k, exchange in enumerate(exchanges):
        if k in taken:
            plan = exchange.apply(plan)
    return plan


def _planned(
    problem: Problem, instance: InstanceBase, name: str | None, budget: Budget, tell: Tell
) -> tuple[PlanBase, str]:
    """The plan of a method, by default of the first published one that finds any."""
    published = [m.name for m in registry.methods(problem.name).values() if m.kind == "published"]
    reasons = []
    for each in [name] if name is not None else published:
        tell(Looking(f"{instance.name}: {each}"))
        record = run_uninterrupted(instance, each, budget)
        if record.plan is not None and not record.error:
            return _read(problem, record.plan), each
        reasons.append(f"{each}: {record.error or record.reason or record.status}")
    raise InputError(f"{instance.name}: expected a plan to explain, found none by {'; '.join(reasons)}")


def _read(problem: Problem, plan: Mapping[str, Any]) -> PlanBase:
    found: PlanBase = problem.plan_type.model_validate_json(json.dumps(plan))
    return found


def _value(problem: Problem, instance: InstanceBase, plan: PlanBase, source: str) -> int:
    found = verify(problem, instance, plan)
    if found.objective is None or found.violations:
        broken = "; ".join(f"{v.rule}: {v.where}: {v.message}" for v in found.violations)
        raise InputError(f"{source}: expected a plan that keeps the rules of {instance.name}, found: {broken}")
    return found.objective


def _reference(problem: Problem, instance: InstanceBase, budget: Budget, tell: Tell) -> Known:
    """The best plan and bound known: the ledger's, or the exact method's."""
    digest, book = instance.content_hash, Ledger.load()
    entry = next((entry for entry in book.entries.values() if entry.instance_hash == digest), None)
    if entry is not None and entry.plan is not None:
        plan = load_plan(book.plan_path(entry.instance), entry.problem)
        return plan, entry.plan.value, None if entry.bound is None else entry.bound.value
    return _solved(problem, instance, budget, tell)


def _solved(problem: Problem, instance: InstanceBase, budget: Budget, tell: Tell) -> Known:
    """What the strongest exact method finds."""
    method = registry.strongest_exact(problem.name)
    tell(Looking(f"{instance.name}: {method.name}"))
    record = run_uninterrupted(instance, method, budget)
    if record.error:
        return None, None, None
    plan = None if record.plan is None else _read(problem, record.plan)
    return plan, record.objective, record.bound


def _relaxed(base: Explanation, case: Case, budget: Budget, tell: Tell) -> Relaxed:
    """The interval of what a relaxation brings."""
    problem, sign = base.problem, base.sign
    _, value, bound = _solved(problem, case.instance, budget, tell)
    values = [] if value is None else [value]
    carried = [base.best, *registry.library(problem.name).carry(base.best, base.instance, case.instance)]
    for plan in carried:
        found = verify(problem, case.instance, plan)
        if found.objective is not None and found.feasible:
            values.append(found.objective)
    value = min(values, key=lambda v: sign * v, default=None)
    low = None if value is None or base.bound is None else sign * (base.bound - value)
    high = None if bound is None else sign * (base.optimum - bound)
    return Relaxed(case.label, value, bound, low, high)
