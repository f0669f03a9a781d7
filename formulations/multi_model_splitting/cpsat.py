"""CP-SAT on contracted chains, climbing and bisecting the ladder of transfer times.

Throughput. A limit ``C`` on the cycle time forbids every transfer that alone takes longer, and the chains contract
(``chains.py``). "Is there a plan of at most ``C``?" is therefore a small model for a small ``C`` and mostly refuted at
once; the search

1. begins at the largest cycle time that some pipeline needs even alone, with the plan that a short neighbourhood search
   makes,
2. climbs the ladder of distinct transfer times in growing steps until a rung has a plan, then bisects between the
   last refuted rung and the best plan (a rung that stays open within its share of the time is left for later), and
3. minimises between bound and plan.

Whenever a question stays open, the neighbourhood search goes on for as long as the question took, unless many walks
find nothing: the engine closes small instances without it, and on large ones half of the time is search. A program that
could not be built in the time that is left is not begun.

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
from mapgap.formulations.multi_model_splitting.starting import FLOOR, blocks_s, first_plan, margin_s, seek, until
from mapgap.heuristics.multi_model_splitting.search.neighbourhood import Neighbourhood
from mapgap.problems.multi_model_splitting import Instance, Plan
from mapgap.problems.multi_model_splitting.diagnose import diagnose
from mapgap.problems.multi_model_splitting.evaluate import evaluate
from mapgap.solvers.model import Part, prove
from mapgap.solvers.turns import EngineError, in_turn

LEAST_S = 0.3
"""Of the search after a question that stays open."""


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
    seeker: Neighbourhood
    bound: int = 0
    plan: Plan | None = field(init=False)
    value: int | None = field(init=False)
    interrupted: bool = False
    notes: dict[str, int] = field(default_factory=lambda: {"probes": 0, "refuted": 0, "open": 0})

    def __post_init__(self) -> None:
        self.plan, self.value = self.seeker.plan, self.seeker.value
        self.tables = profiles(self.instance)
        self.top = ceiling(self.instance, self.tables)
        self.begin()

    def begin(self) -> None:
        """Step 1."""
        end = FLOOR * self.budget.time_s
        self.raise_bound(floor(self.instance, self.tables, self.top, lambda: until(self.budget, end)))

    @property
    def closed(self) -> bool:
        """The plan is optimal, or there is none."""
        return self.bound > self.top if self.value is None else self.bound >= self.value

    @property
    def spent(self) -> bool:
        """So little time is left that nothing new should begin."""
        return self.budget.remaining_s <= margin_s(self.budget)

    @property
    def over(self) -> bool:
        return self.closed or self.interrupted or self.spent

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

    def seek(self, seconds: float) -> None:
        """Neighbourhood search until then, or until it is settled."""
        if self.plan is not None:
            self.seeker.offer(self.plan)
        if not self.closed:
            seek(self.seeker, self.budget, seconds, self.bound)
        if self.seeker.plan is not None:
            self.accept(self.seeker.plan)

    def ask(self, limit: int, minimise: bool, time_s: float) -> Status:
        """A question of at most half of the time that is left, and as much search if it stays open."""
        begin = self.budget.elapsed_s
        status = self.solve(limit, minimise, min(time_s, self.budget.remaining_s / 2))
        now = self.budget.elapsed_s
        if not self.over and (minimise or status is Status.UNKNOWN):
            self.seek(max(2 * now - begin, now + LEAST_S))
        return status

    def solve(self, limit: int, minimise: bool, time_s: float) -> Status:
        """Any plan of at most ``limit``, or the best one."""
        self.notes["probes"] += 1
        reduced = chains(self.instance, self.tables, limit)
        if reduced is None:
            self.raise_bound(limit + 1)
            return Status.INFEASIBLE
        if blocks_s(reduced) > self.budget.remaining_s - margin_s(self.budget):
            return Status.UNKNOWN
        model = AssignmentModel(self.instance, reduced, limit, self.bound, minimise)
        time_s = min(time_s, self.budget.remaining_s - margin_s(self.budget))
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
            status = self.ask(limit, minimise=False, time_s=max(1.0, self.budget.time_s / 10))
            if status is Status.UNKNOWN:
                tried.add(limit)
                self.notes["open"] += 1

    def minimise(self) -> None:
        """Step 3, in rounds: a better plan contracts the chains of the next one."""
        if self.value is None and not self.over:
            self.ask(self.top, minimise=False, time_s=self.budget.remaining_s / 4)
        while not self.over:
            limit = self.top if self.value is None else self.value - 1
            self.ask(limit, minimise=True, time_s=max(5.0, self.budget.remaining_s / 3))

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
    if reasons := diagnose(instance):
        return SolveResult(Status.INFEASIBLE, Stop.PROVED, reason="; ".join(reasons))
    search = Search(instance, budget, first_plan(instance, budget))
    first = search.bound
    found = in_turn(lambda _: _closed(search), ("CP-SAT",))
    if found.status is Status.UNKNOWN and search.seeker.plan is not None:  # the engine is not to be believed
        plan, value = search.seeker.plan, search.seeker.value
        return SolveResult(Status.FEASIBLE, found.stop, plan, first or None, value, notes=found.notes)
    return found


def _closed(search: Search) -> SolveResult:
    """Steps 2 and 3."""
    if search.instance.objective == "throughput":
        search.climb()
    search.minimise()
    return search.result()
