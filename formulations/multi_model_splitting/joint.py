"""The strongest exact method: neighbourhood search, bounds by column generation, and integer programs between both.

1. *Search* (:mod:`~mapgap.heuristics.multi_model_splitting.search.neighbourhood`): the first plan is there at once, and
   is made better as long as that goes fast.
2. *Bound*: the largest limit that the relaxation over whole paths refutes (:mod:`.column_bound`), and where that is far
   from the plan, the one over whole accelerators (:mod:`.pattern_bound`; throughput).
3. *Close*, in turns until time is up or bound and plan meet:

   - throughput: CP-SAT is asked for any plan better than the best one, from which it starts, and refutes that there is
     one, or makes the plan better; then for one at a limit in the middle, of all pipelines or of those alone that are
     hardest to place, which raises the bound if there is none; then the search goes on for a while. Cycle times are
     decided by a few large transfers and by packing, which clauses refute at once, while the relaxation of a minimum
     over maxima is weak.
   - latency: segment flow, below the best plan and above the bound. Total latency is a sum, for which the relaxation of
     whole segments is nearly tight.

The plan and the bound of the first two steps rest on arithmetic of our own. Where an engine contradicts itself, they
are what is left, and the note ``distrusted`` says so.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

from mapgap.core import DISTRUSTED, Budget, SolveResult, Status, Stop
from mapgap.formulations.multi_model_splitting import mip
from mapgap.formulations.multi_model_splitting.assignment_model import AssignmentModel
from mapgap.formulations.multi_model_splitting.chains import chains
from mapgap.formulations.multi_model_splitting.column_bound import Relaxation
from mapgap.formulations.multi_model_splitting.cpsat import Search
from mapgap.formulations.multi_model_splitting.pattern_bound import Patterns, groups_of
from mapgap.formulations.multi_model_splitting.starting import BLOCK_S, first_plan, margin_s, until
from mapgap.problems.multi_model_splitting import RESOURCES, Instance
from mapgap.problems.multi_model_splitting.diagnose import diagnose
from mapgap.solvers.guard import GuardError
from mapgap.solvers.model import prove
from mapgap.solvers.turns import EngineError

SEARCH, BOUND, PATTERNS, SLICE = 0.15, 0.35, 0.45, 0.08
"""Parts of the budget: when the first search ends at the latest, when the bounds do, and what a question gets."""
FAR = 0.01
"""Distance of plan and bound, as a part of the bound, from which patterns are tried."""
GROWTH = 1.5
"""Of what a question gets, from turn to turn."""


@dataclass
class Joint(Search):
    """What is known so far.

    Attributes
    ----------
    own : int
        The part of the bound that rests on no engine.
    """

    own: int = 0

    def begin(self) -> None:
        """Steps 1 and 2."""
        time_s = self.budget.time_s
        self.seek(max(SEARCH * time_s, min(0.4, 0.4 * time_s)))
        self.relax(max(BOUND * time_s, min(1.0, 0.75 * time_s)))
        if self.instance.objective == "throughput":
            self.pack(max(PATTERNS * time_s, min(1.5, 0.85 * time_s)))

    def until(self, seconds: float) -> bool:
        return until(self.budget, seconds)

    def relax(self, seconds: float) -> None:
        """The bound by column generation."""
        relaxation = Relaxation(self.instance, self.tables, lambda: self.until(seconds))
        if self.plan is not None:
            relaxation.offer(self.plan)
        upper = self.top + 1 if self.value is None else self.value
        self.own = relaxation.bisect(self.own, upper, self.raise_bound)
        self.notes |= relaxation.notes

    def pack(self, seconds: float) -> None:
        """The bound by patterns: of the group that is hardest to place, of two, and of all."""
        groups = groups_of(self.instance, self.tables)
        for count in sorted({1, min(2, len(groups)), len(groups)}):
            if self.value is None or self.closed or self.value - self.own <= FAR * self.own:
                return
            end = (self.budget.elapsed_s + seconds) / 2  # the first set is the quickest and tells most
            relaxation = Patterns(self.instance, self.tables, groups[:count], partial(self.until, end))
            self.own = relaxation.bisect(self.own, self.value, self.raise_bound)

    def close(self) -> None:
        """Throughput: questions to CP-SAT and neighbourhood search in turns."""
        share, turn = max(1.0, SLICE * self.budget.time_s), 0
        opened = self.top if self.value is None else self.value
        while not (self.over or self.until(self.budget.time_s)):
            limit = self.top if self.value is None else self.value - 1
            if not self.affordable():
                self.seeker.quiet = 0
                self.seek(self.budget.time_s)
                continue
            before, begun = self.value, self.budget.elapsed_s
            self.solve(limit, minimise=before is not None, time_s=self.at_most(share))
            if self.value is not None and not self.over:
                opened = self.value if self.value != before else opened
                opened = self.ask_between(opened, share, whole=turn % 2 == 1)
            if not self.over:
                self.seek(2 * self.budget.elapsed_s - begun)  # as long as the questions took
            share, turn = share * GROWTH, turn + 1

    def ask_between(self, opened: int, share: float, whole: bool) -> int:
        """A question at a limit between the bound and ``opened``, where the last one had no answer; the new ``opened``.

        It begins at the best plan again when it comes near to the bound.
        """
        middle = self.bound + (opened - self.bound) // 2
        if self.value is None or middle >= self.value - 1 or not self.affordable():
            return opened
        status = (self.solve_whole if whole else self.solve_part)(middle, self.at_most(share))
        if status is Status.UNKNOWN and middle - self.bound > max(1, self.bound // 50):
            return middle
        return self.value

    def at_most(self, share: float) -> float:
        return min(share, self.budget.remaining_s - margin_s(self.budget))

    def solve_whole(self, limit: int, time_s: float) -> Status:
        """Any plan of at most ``limit``."""
        return self.solve(limit, minimise=False, time_s=time_s)

    def solve_part(self, limit: int, time_s: float) -> Status:
        """The same for the half of the pipelines that is hardest to place; that one exists proves nothing.

        Without the others no plan has more load or needs more memory, so a limit that the half cannot keep is refuted.
        """
        capacity = [max(1, sum(getattr(device, r) for device in self.instance.devices)) for r in RESOURCES]
        size = [max(table.need[:, -1] / capacity) for table in self.tables]
        hardest = sorted(range(len(size)), key=lambda p: -size[p])[: (len(size) + 1) // 2]
        kept = sorted(hardest)
        reduced = chains(self.instance, self.tables, limit)
        if reduced is None:
            self.raise_bound(limit + 1)
            return Status.INFEASIBLE
        part = self.instance.changed(pipelines=tuple(self.instance.pipelines[p] for p in kept), deployed=())
        self.notes["probes"] += 1
        model = AssignmentModel(part, [reduced[p] for p in kept], limit, 0, False)
        found = prove(model, self.budget, time_s=time_s, announce=False, turns=False)
        self.interrupted = found.stop is Stop.INTERRUPTED
        if found.status is not Status.INFEASIBLE:
            return Status.UNKNOWN
        self.notes["refuted"] += 1
        self.raise_bound(limit + 1)
        return Status.INFEASIBLE

    def affordable(self) -> bool:
        """There is time to build and ask a program, even if every layer is a block."""
        size = sum(profile.layers for profile in self.tables) * len(self.instance.devices)
        return self.budget.remaining_s > margin_s(self.budget) + BLOCK_S * size


def run(instance: Instance, budget: Budget) -> SolveResult:
    """Best joint plan. The note ``own_bound`` says what is proven without an engine in the end."""
    if found := diagnose(instance):
        return SolveResult(Status.INFEASIBLE, Stop.PROVED, reason="; ".join(found))
    joint = Joint(instance, budget, first_plan(instance, budget))
    joint.notes["own_bound"] = joint.own
    if instance.objective == "latency" and not joint.over:
        return _latency(joint)
    try:
        joint.close()
    except (EngineError, GuardError) as error:
        return _without_engine(joint, str(error))
    return joint.result()


def _without_engine(search: Joint, reason: str) -> SolveResult:
    """What is left where no engine is to be believed."""
    notes = {**search.notes, DISTRUSTED: [f"CP-SAT: {reason}"]}
    if search.plan is None:
        return SolveResult(Status.UNKNOWN, Stop.DONE, bound=search.own or None, reason=reason, notes=notes)
    return SolveResult(Status.FEASIBLE, Stop.DONE, search.plan, search.own or None, search.value, notes=notes)


def _latency(search: Joint) -> SolveResult:
    """Segment flow between bound and plan."""
    found = mip.between(search.instance, search.budget, "highs", search.own, search.plan, search.seeker)
    return replace(found, notes={**found.notes, "own_bound": search.own})
