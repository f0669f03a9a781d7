"""CP-SAT on contracted chains, climbing and bisecting the ladder of transfer times.

Throughput. A limit ``C`` on the cycle time forbids every transfer that alone takes longer, and the chains contract
(``chains.py``). "Is there a plan of at most ``C``?" is therefore a small model for a small ``C`` and mostly refuted at
once; the search

1. begins at the largest cycle time that some pipeline needs even alone, with the plan that a short neighbourhood search
   makes,
2. climbs the ladder of distinct transfer times in growing steps until a rung has a plan, then bisects between the
   last refuted rung and the best plan (a rung that stays open within its share of the time is left for later), and
3. minimises between bound and plan.

Latency. The sum of the shortest paths is the first bound; what a limit exceeds it by is all that any one pipeline may
exceed its own shortest path by. There is no ladder: a first plan, then step 3.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

from mapgap.core import Budget, SolveResult, Status, Stop
from mapgap.formulations.multi_model_splitting.assignment_model import AssignmentModel
from mapgap.formulations.multi_model_splitting.chains import (
    Chain,
    ceiling,
    chains,
    floor,
    profiles,
    rungs,
    single_part,
)
from mapgap.formulations.multi_model_splitting.starting import first_plan
from mapgap.problems.multi_model_splitting import Instance, Plan
from mapgap.problems.multi_model_splitting.diagnose import diagnose
from mapgap.problems.multi_model_splitting.evaluate import evaluate
from mapgap.solvers.model import Part, prove
from mapgap.solvers.turns import EngineError, in_turn


def models(instance: Instance) -> list[Part]:
    """The program below the largest limit."""

    def model(reduced: list[Chain], top: int, without: Collection[int]) -> AssignmentModel:
        return AssignmentModel(instance, reduced, top, without=without)

    return single_part(instance, model)


@dataclass
class Search:
    """What is known so far; ``value`` is the objective of ``plan``, ``bound`` proven."""

    instance: Instance
    budget: Budget
    bound: int = 0
    plan: Plan | None = None
    value: int | None = None
    """``plan`` and ``value`` may be given: where to start."""
    interrupted: bool = False
    notes: dict[str, int] = field(default_factory=lambda: {"probes": 0, "refuted": 0, "open": 0})

    def __post_init__(self) -> None:
        self.tables = profiles(self.instance)
        self.top = ceiling(self.instance, self.tables)
        self.begin()

    def begin(self) -> None:
        """Step 1."""
        self.raise_bound(floor(self.instance, self.tables, self.top))

    @property
    def closed(self) -> bool:
        """The plan is optimal, or there is none."""
        return self.bound > self.top if self.value is None else self.bound >= self.value

    @property
    def over(self) -> bool:
        return self.closed or self.interrupted or self.budget.exhausted

    def raise_bound(self, bound: int) -> None:
        if bound > self.bound:
            self.bound = bound
            if bound <= self.top:
                self.budget.report(bound=bound)

    def accept(self, plan: Plan) -> int:
        """Keep a plan of the model if it is the best; its objective."""
        checked = evaluate(self.instance, plan)
        if not checked.feasible or checked.objective is None:
            raise EngineError(f"its plan breaks rules: {checked.violations}")
        if self.value is None or checked.objective < self.value:
            self.plan, self.value = plan, checked.objective
        return checked.objective

    def solve(self, limit: int, minimise: bool, time_s: float) -> Status:
        """Any plan of at most ``limit``, or the best one."""
        self.notes["probes"] += 1
        reduced = chains(self.instance, self.tables, limit)
        if reduced is None:
            self.raise_bound(limit + 1)
            return Status.INFEASIBLE
        model = AssignmentModel(self.instance, reduced, limit, self.bound, minimise)
        found = prove(model, self.budget, time_s=time_s, start=self.plan, turns=False)
        if found.status is Status.INFEASIBLE:
            self.notes["refuted"] += 1
            self.raise_bound(limit + 1)
        if isinstance(found.plan, Plan):
            value = self.accept(found.plan)
            if value > limit or (minimise and found.claimed not in (None, value)):
                raise EngineError(f"claims {found.claimed} up to {limit} for a plan of {value}")
            if value < self.bound:
                raise EngineError(f"claims that no plan is below {self.bound} beside its own plan of {value}")
        if minimise and found.bound is not None:
            self.raise_bound(found.bound)
        self.interrupted = found.stop is Stop.INTERRUPTED
        return found.status

    def climb(self) -> None:
        """Step 2: the rungs between bound and plan."""
        ladder = rungs(self.tables, self.bound, self.top)
        tried, step = set[int](), 1
        while not self.over:
            left = [c for c in ladder if self.bound <= c and c not in tried and (self.value is None or c < self.value)]
            higher = [c for c in left if not tried or c > max(tried)]
            if self.value is None:
                if not higher:
                    break
                limit = higher[min(step, len(higher)) - 1]
                step *= 2
            else:
                if not left or self.notes["open"] >= 4:
                    break
                limit = left[len(left) // 2]
            status = self.solve(limit, minimise=False, time_s=max(1.0, self.budget.time_s / 10))
            if status is Status.UNKNOWN:
                tried.add(limit)
                self.notes["open"] += 1

    def minimise(self) -> None:
        """Step 3, in rounds: a better plan contracts the chains of the next one."""
        if self.value is None and not self.over:
            self.solve(self.top, minimise=False, time_s=self.budget.remaining_s / 4)
        while not self.over:
            limit = self.top if self.value is None else self.value - 1
            self.solve(limit, minimise=True, time_s=max(5.0, self.budget.remaining_s / 3))

    def result(self) -> SolveResult:
        """What has been found, once the search is over."""
        stop = Stop.INTERRUPTED if self.interrupted else Stop.TIME
        if self.value is not None and self.closed:
            return SolveResult(Status.OPTIMAL, Stop.PROVED, self.plan, self.value, self.value, notes=self.notes)
        if self.value is not None:
            return SolveResult(Status.FEASIBLE, stop, self.plan, self.bound or None, self.value, notes=self.notes)
        if self.closed:
            reason = "out of resource: no joint plan keeps all weight, bias and layer limits"
            return SolveResult(Status.INFEASIBLE, Stop.PROVED, reason=reason, notes=self.notes)
        reason = "no plan within the time"
        return SolveResult(Status.UNKNOWN, stop, bound=self.bound or None, reason=reason, notes=self.notes)


def run(instance: Instance, budget: Budget) -> SolveResult:
    """Best joint plan."""
    if found := diagnose(instance):
        return SolveResult(Status.INFEASIBLE, Stop.PROVED, reason="; ".join(found))
    return in_turn(lambda _: _search(instance, budget), ("CP-SAT",))


def _search(instance: Instance, budget: Budget) -> SolveResult:
    start = first_plan(instance, budget)
    search = Search(instance, budget, plan=start.plan, value=start.value)
    if instance.objective == "throughput":
        search.climb()
    search.minimise()
    return search.result()
