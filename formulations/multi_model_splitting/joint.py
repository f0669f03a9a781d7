"""The strongest exact method: neighbourhood search, bounds by column generation, and integer programs between both.

1. *Search* (:mod:`~mapgap.problems.multi_model_splitting.shared.neighbourhood`): the first plan is there at once, and
   is made better as long as that goes fast.
2. *Bound* (:mod:`.column_bound`): the largest limit that the relaxation over whole paths refutes.
3. *Close*, in turns until time is up or bound and plan meet:

   - throughput: CP-SAT is asked for any plan better than the best one, from which it starts, and refutes that there is
     one, or makes the plan better; then for one at a limit in the middle, which raises the bound if there is none; then
     the search goes on for a while. Cycle times are decided by a few large transfers and by packing, which clauses
     refute at once, while the relaxation of a minimum over maxima is weak.
   - latency: segment flow, below the best plan and above the bound. Total latency is a sum, for which the relaxation of
     whole segments is nearly tight.

The plan and the bound of the first two steps rest on arithmetic of our own. Where an engine contradicts itself, they
are what is left, and the note ``distrusted`` says so.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from mapgap.core import DISTRUSTED, Budget, SolveResult, Status, Stop
from mapgap.formulations.multi_model_splitting import mip
from mapgap.formulations.multi_model_splitting.column_bound import Relaxation
from mapgap.formulations.multi_model_splitting.cpsat import Search
from mapgap.formulations.multi_model_splitting.starting import first_plan
from mapgap.problems.multi_model_splitting import Instance, Plan
from mapgap.problems.multi_model_splitting.diagnose import diagnose
from mapgap.problems.multi_model_splitting.shared.neighbourhood import Neighbourhood
from mapgap.solvers.guard import GuardError
from mapgap.solvers.turns import EngineError

SEARCH, BOUND, SLICE = 0.15, 0.35, 0.08
"""Parts of the budget: when the first search ends at the latest, when the bound does, and what a question gets."""
BUILD_S = 4e-4
"""Seconds per block and device that a program may take to be built, on a busy machine; none is begun near the end."""
MARGIN, MARGIN_S = 0.1, 0.3
"""Kept at the end of the budget: a part of it, at most so many seconds."""
GROWTH = 1.5


@dataclass
class Joint(Search):
    """What is known so far; ``own`` is the part of the bound that rests on no engine."""

    seeker: Neighbourhood = field(kw_only=True)
    own: int = 0

    def begin(self) -> None:
        """Steps 1 and 2."""
        time_s = self.budget.time_s
        self.seek(max(SEARCH * time_s, min(0.4, 0.4 * time_s)))
        self.relax(max(BOUND * time_s, min(1.0, 0.75 * time_s)))

    @property
    def margin_s(self) -> float:
        return min(MARGIN_S, MARGIN * self.budget.time_s)

    def until(self, seconds: float) -> bool:
        """Whether so much of the budget is used, or so little of it is left that nothing new should begin."""
        return self.budget.elapsed_s >= seconds or self.budget.remaining_s < self.margin_s

    def seek(self, seconds: float) -> None:
        """Neighbourhood search until then, or until it is settled."""
        if self.plan is not None:
            self.seeker.offer(self.plan)
        self.seeker.quiet = 0
        while not (self.closed or self.seeker.settled or self.until(seconds)):
            if self.seeker.walk(self.bound) and isinstance(self.seeker.plan, Plan):
                self.accept(self.seeker.plan)
                self.budget.report(plan=self.plan)

    def relax(self, seconds: float) -> None:
        """The bound by column generation."""
        relaxation = Relaxation(self.instance, self.tables, lambda: self.until(seconds))
        if self.plan is not None:
            relaxation.offer(self.plan)
        upper = self.top + 1 if self.value is None else self.value
        self.own = relaxation.bisect(self.own, upper, self.raise_bound)
        self.notes |= relaxation.notes

    def close(self) -> None:
        """Throughput: questions to CP-SAT and neighbourhood search in turns."""
        share = max(1.0, SLICE * self.budget.time_s)
        opened = None if self.value is None else self.value
        while not (self.over or self.until(self.budget.time_s)):
            limit = self.top if self.value is None else self.value - 1
            if not self.affordable(limit):
                self.seeker.quiet = 0
                self.seek(self.budget.time_s)
                continue
            before = self.value
            self.solve(limit, minimise=before is not None, time_s=min(share, self.budget.remaining_s - self.margin_s))
            if self.value is not None and not self.over:
                opened = self.value if opened is None or self.value != before else min(opened, self.value)
                middle = self.bound + (opened - self.bound) // 2
                if self.bound <= middle < self.value - 1 and self.affordable(middle):
                    status = self.solve(
                        middle, minimise=False, time_s=min(share, self.budget.remaining_s - self.margin_s)
                    )
                    opened = middle if status is Status.UNKNOWN else self.value
                    if opened - self.bound <= max(1, self.bound // 50):
                        opened = self.value
            if not self.over:
                self.seek(self.budget.elapsed_s + share)
            share *= GROWTH

    def affordable(self, limit: int) -> bool:
        """There is time to build and ask a program."""
        size = sum(profile.layers for profile in self.tables) * len(self.instance.devices)
        return self.budget.remaining_s > self.margin_s + 2 * BUILD_S * size


def run(instance: Instance, budget: Budget) -> SolveResult:
    """Best joint plan."""
    if found := diagnose(instance):
        return SolveResult(Status.INFEASIBLE, Stop.PROVED, reason="; ".join(found))
    seeker = first_plan(instance, budget)
    search = Joint(instance, budget, plan=seeker.plan, value=seeker.value, seeker=seeker)
    if instance.objective == "latency" and not search.over:
        return _latency(search)
    try:
        search.close()
    except (EngineError, GuardError) as error:
        return _without_engine(search, str(error))
    return search.result()


def _without_engine(search: Joint, reason: str) -> SolveResult:
    """What is left where no engine is to be believed."""
    notes = {**search.notes, DISTRUSTED: [f"CP-SAT: {reason}"]}
    if search.plan is None:
        return SolveResult(Status.UNKNOWN, Stop.DONE, bound=search.own or None, reason=reason, notes=notes)
    return SolveResult(Status.FEASIBLE, Stop.DONE, search.plan, search.own or None, search.value, notes=notes)


def _latency(search: Joint) -> SolveResult:
    """Segment flow between bound and plan."""
    return mip.between(search.instance, search.budget, "highs", search.own, search.plan)
