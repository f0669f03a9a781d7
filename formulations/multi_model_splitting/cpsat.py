"""CP-SAT on contracted chains, climbing and bisecting the ladder of transfer times.

Throughput. A limit ``C`` on the cycle time forbids every transfer that alone takes longer, and the chains contract
(``chains.py``). "Is there a plan of at most ``C``?" is therefore a small model for a small ``C`` and mostly refuted at
once. The first bound is the largest cycle time that some pipeline needs even alone. Then, in rounds,

1. while there is no plan, limits climb the ladder of distinct transfer times in growing steps;
2. the rungs between the last refuted one and the best plan are bisected; from a rung that stays open the round goes on
   above it, where a plan is easier to find, and every other round below it, where there is more to refute;
3. CP-SAT minimises between bound and plan.

Every question of a round may take the same time, and in the next round more (:class:`.params.Questions`). No rule looks
at the time limit, so a longer run continues a shorter one.

Latency. The sum of the shortest paths is the first bound; what a limit exceeds it by is all that any one pipeline may
exceed its own shortest path by. There is no ladder: a first plan, then step 3.

All plans are CP-SAT's, but for the one that a run may start from.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterator

from mapgap.core import DISTRUSTED, Budget, SolveResult, Status, Stop, read_start
from mapgap.formulations.multi_model_splitting.assignment_model import AssignmentModel
from mapgap.formulations.multi_model_splitting.chains import Chain, rungs, single_part
from mapgap.formulations.multi_model_splitting.known import Known
from mapgap.formulations.multi_model_splitting.params import Questions
from mapgap.problems.multi_model_splitting import Instance, Plan
from mapgap.problems.multi_model_splitting.diagnose import diagnose
from mapgap.solvers.model import Part, prove
from mapgap.solvers.turns import in_turn

DEFAULT = Questions()


def models(instance: Instance) -> list[Part]:
    """The program below the largest limit."""

    def model(reduced: list[Chain], top: int, without: Collection[int]) -> AssignmentModel:
        return AssignmentModel(instance, reduced, top, without=without)

    return single_part(instance, model)


BUILT = 10.0
"""What it takes to build a program of all layers and devices, in times of what tables and first bound take here."""


class Ladder(Known):
    """Questions to CP-SAT."""

    def __init__(self, instance: Instance, budget: Budget, start: Plan | None = None) -> None:
        super().__init__(instance, budget, start)
        size = sum(table.inference.size for table in self.tables)
        self.pace["blocks"] = BUILT * budget.used_s["build"] / size
        self.notes |= {"probes": 0, "refuted": 0, "open": 0}

    def ask(self, limit: int, minimise: bool, time_s: float) -> Status:
        """Any plan of at most ``limit``, or the best one."""
        if limit < self.bound:
            return Status.INFEASIBLE
        reduced = self.within(limit)
        if reduced is None:
            self.raise_own(limit + 1)
            return Status.INFEASIBLE
        size = sum(chain.inference.size for chain in reduced)
        if not self.affordable("blocks", size):
            return Status.UNKNOWN
        self.notes["probes"] += 1
        with self.building("blocks", size):
            model = AssignmentModel(self.instance, reduced, limit, self.bound, minimise)
        found = prove(model, self.budget, time_s=time_s, start=self.plan, turns=False)
        self.interrupted = found.stop is Stop.INTERRUPTED
        if found.status is Status.INFEASIBLE:
            self.notes["refuted"] += 1
            self.raise_bound(limit + 1)
        if isinstance(found.plan, Plan):
            self.accept(found.plan, found.claimed if minimise and found.claimed is not None else limit)
        if minimise and found.bound is not None:
            self.raise_bound(found.bound)
        self.notes["open"] += found.status is Status.UNKNOWN
        return found.status

    def round(self, time_s: float, above: bool) -> Iterator[None]:
        """Steps 1 to 3, each question of at most ``time_s``; yields between two."""
        ladder = rungs(self.tables, self.bound, self.top) if self.instance.objective == "throughput" else []
        lowest, highest, step = self.bound, self.top, 1
        while not (self.over or self.spent):
            left = [c for c in ladder if max(self.bound, lowest) <= c <= min(highest, self.highest)]
            if not left:
                break
            place = min(step, len(left)) - 1 if self.value is None else len(left) // 2
            limit, step = left[place], 2 * step
            if self.ask(limit, False, time_s) is Status.UNKNOWN:
                if above or self.value is None:
                    lowest = limit + 1
                else:
                    highest = limit - 1
            yield
        if not (self.over or self.spent):
            self.ask(self.highest, self.value is not None, time_s)
            yield

    def rounds(self, params: Questions) -> Iterator[None]:
        """Rounds until plan and bound meet or the time is over."""
        time_s, above = params.slice_s, True
        while not (self.over or self.spent):
            yield from self.round(time_s, above)
            time_s, above = params.growth * time_s, not above


def run(
    instance: Instance, budget: Budget, start: str | Plan | None = None, params: Questions = DEFAULT
) -> SolveResult:
    """Best joint plan.

    Raises
    ------
    InputError
        ``start`` is no plan file.
    """
    if reasons := diagnose(instance):
        return SolveResult(Status.INFEASIBLE, Stop.PROVED, reason="; ".join(reasons))
    ladder = Ladder(instance, budget, read_start(start, Plan, instance))

    def ask(_: str) -> SolveResult:
        deque(ladder.rounds(params), maxlen=0)
        return ladder.result()

    found = in_turn(ask, ("CP-SAT",))
    return ladder.without_engine(found) if found.notes.get(DISTRUSTED) else found
