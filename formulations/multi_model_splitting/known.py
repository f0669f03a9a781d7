"""What an exact method knows of an instance: the best plan, the best bound, and what of it rests on no engine."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Literal

from mapgap.core import Budget, SolveResult, Status, Stop
from mapgap.formulations.multi_model_splitting.chains import Chain, ceiling, chains, floor, profiles
from mapgap.problems.multi_model_splitting import Instance, Plan
from mapgap.problems.multi_model_splitting.evaluate import evaluate
from mapgap.solvers.turns import EngineError

Parts = Literal["blocks", "segments"]
"""What the size of a program is measured in."""


class Known:
    """Plan and bounds.

    Attributes
    ----------
    plan, value : Plan or None, int or None
        The best plan and the evaluator's objective of it.
    bound, own : int
        Proven; ``own`` by arithmetic of our own, without an engine.
    top : int
        No plan has a larger objective.
    tables : list of Profile
        Of every pipeline.
    interrupted : bool
        An engine was.
    pace : dict
        Seconds per part that the last program took to be built; 0 before the first.
    spent : bool
        There was no time to build a program.
    """

    def __init__(self, instance: Instance, budget: Budget, start: Plan | None = None) -> None:
        self.instance, self.budget = instance, budget
        self.plan: Plan | None = None
        self.value: int | None = None
        self.bound = self.own = 0
        self.interrupted = self.spent = False
        self.notes: dict[str, Any] = {}
        with budget.timed("build"):
            self.tables = profiles(instance)
            self.top = ceiling(instance, self.tables)
            self.raise_own(floor(instance, self.tables, self.top))  # whole, whatever the time: tenths of a second
        self.pace: dict[Parts, float] = {"blocks": 0.0, "segments": 0.0}
        self.offer(start)

    @property
    def closed(self) -> bool:
        """The plan is optimal, or there is none."""
        return self.bound > self.top if self.value is None else self.bound >= self.value

    @property
    def over(self) -> bool:
        return self.closed or self.interrupted or self.budget.exhausted

    @property
    def highest(self) -> int:
        """The largest objective that is still of interest."""
        return self.top if self.value is None else self.value - 1

    def offer(self, plan: Plan | None) -> int | None:
        """Keep a plan if it is the best, and announce it; its objective if it keeps the rules."""
        found = None if plan is None else evaluate(self.instance, plan)
        if found is None or not found.feasible or found.objective is None:
            return None
        if self.value is None or found.objective < self.value:
            self.plan, self.value = plan, found.objective
            self.budget.report(plan=plan)
        return found.objective

    def accept(self, plan: Plan, claimed: int) -> None:
        """Keep an engine's plan, which is worth at most what it claims.

        Raises
        ------
        EngineError
        """
        value = self.offer(plan)
        if value is None or value > claimed:
            violations = evaluate(self.instance, plan).violations
            raise EngineError(f"claims {claimed} for a plan of {value}, {violations}")
        if value < self.bound:
            raise EngineError(f"claims that no plan is below {self.bound} beside its own plan of {value}")

    def raise_bound(self, bound: int, tell: bool = True) -> None:
        """Take a bound if it is the best."""
        if bound > self.bound:
            self.bound = bound
            if bound <= self.top and tell:
                self.budget.report(bound=bound)

    def raise_own(self, bound: int) -> None:
        """The same of one that rests on no engine."""
        if bound > self.own:
            self.own = bound
            if bound <= self.top:
                self.budget.recomputed.append(bound)
        self.raise_bound(bound)

    def within(self, limit: int) -> list[Chain] | None:
        """The chains of plans of at most ``limit``."""
        with self.budget.timed("build"):
            return chains(self.instance, self.tables, limit)

    @contextmanager
    def building(self, parts: Parts, size: int) -> Iterator[None]:
        """Time what it takes to build a program of so many parts."""
        begun = time.perf_counter()
        with self.budget.timed("build"):
            yield
        self.pace[parts] = (time.perf_counter() - begun) / max(1, size)

    def affordable(self, parts: Parts, size: int) -> bool:
        """Whether a program can be built and handed over in the time that is left, as fast as the one before."""
        self.spent = 2 * self.pace[parts] * size > self.budget.remaining_s
        return not self.spent

    def result(self) -> SolveResult:
        """What is known at the end."""
        stop = Stop.INTERRUPTED if self.interrupted else Stop.TIME if self.spent or self.budget.exhausted else Stop.DONE
        if self.value is not None and self.closed:
            return SolveResult(Status.OPTIMAL, Stop.PROVED, self.plan, self.value, self.value, notes=self.notes)
        if self.value is not None:
            return SolveResult(Status.FEASIBLE, stop, self.plan, self.bound or None, self.value, notes=self.notes)
        if self.closed:
            reason = "out of resource: no joint plan keeps all weight, bias and layer limits"
            return SolveResult(Status.INFEASIBLE, Stop.PROVED, reason=reason, notes=self.notes)
        reason = "no plan within the time"
        return SolveResult(Status.UNKNOWN, stop, bound=self.bound or None, reason=reason, notes=self.notes)

    def without_engine(self, refused: SolveResult) -> SolveResult:
        """What is left where no engine is to be believed: the plan, which the evaluator has seen, and the own bound."""
        status = Status.UNKNOWN if self.plan is None else Status.FEASIBLE
        notes = {**self.notes, **refused.notes}
        return replace(refused, status=status, plan=self.plan, bound=self.own or None, claimed=self.value, notes=notes)
