"""The dedicated exact algorithm: bounds by column generation and patterns, integer programs between plan and bound.

*Bounds*, which rest on integer arithmetic of our own:

1. what every pipeline needs alone (:func:`.chains.floor`);
2. the largest limit that the relaxation over whole paths refutes (:mod:`.column_bound`);
3. throughput: the one over whole accelerators (:mod:`.pattern_bound`), first of the group of pipelines that is hardest
   to place, then of two groups, then of all.

*Questions*, in rounds:

- throughput: without a plan a round of :mod:`.cpsat`. With one, CP-SAT is asked for any better plan, from which it
  starts, and refutes that there is one, or makes the plan better; then for one at a limit in the middle, of all
  pipelines or of those alone that are hardest to place, which raises the bound if there is none. Cycle times are
  decided by a few large transfers and by packing, which clauses refute at once, while the relaxation of a minimum over
  maxima is weak.
- latency: segment flow (:mod:`.mip`), below the best plan and above the bound. Total latency is a sum, for which the
  relaxation of whole segments is nearly tight.

What an engine's answer has closed is asked of the bounds once more, in the time that is left: where they refute every
better plan, too, the proof rests on no engine. Bounds and questions take turns; each has as long as a question may
take, which grows from turn to turn, and bounds have more once there is a plan. While there is something else to do no
program is built that takes longer to build than it may be asked. No search for plans takes part: a plan to start from
is an argument. Where an engine contradicts itself, the plan and the own bound are what is left, and the note
``distrusted`` says so.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from mapgap.core import DISTRUSTED, Budget, SolveResult, Status, Stop, read_start
from mapgap.formulations.multi_model_splitting.assignment_model import AssignmentModel
from mapgap.formulations.multi_model_splitting.column_bound import Relaxation
from mapgap.formulations.multi_model_splitting.cpsat import Ladder
from mapgap.formulations.multi_model_splitting.mip import Flow
from mapgap.formulations.multi_model_splitting.params import Joint as Params
from mapgap.formulations.multi_model_splitting.pattern_bound import Patterns, groups_of
from mapgap.problems.multi_model_splitting import RESOURCES, Instance, Plan
from mapgap.problems.multi_model_splitting.diagnose import diagnose
from mapgap.solvers.guard import GuardError
from mapgap.solvers.mip import Engine
from mapgap.solvers.model import prove
from mapgap.solvers.turns import EngineError

DEFAULT = Params()
ENGINES: tuple[Engine, ...] = ("highs", "cbc")


class Joint(Ladder):
    """The algorithm in pieces, between which others may offer plans.

    Attributes
    ----------
    time_s : float
        Of a turn, and of a question in it.
    opened : int
        A limit at which no question has had an answer, or the value of the best plan.
    """

    def __init__(self, instance: Instance, budget: Budget, start: Plan | None = None, params: Params = DEFAULT) -> None:
        super().__init__(instance, budget, start)
        self.params, self.time_s = params, params.slice_s
        self.opened = self.highest

    def steps(self) -> Iterator[None]:
        """Bounds and questions in turns; yields after each piece."""
        bounds, questions = self._bounds(), self._questions()
        turns = [bounds, questions]
        while turns and not self.over:
            for each in tuple(turns):
                if each is questions and bounds in turns and self._dear():
                    continue
                begun = self.budget.elapsed_s
                while not self.over and self.budget.elapsed_s < begun + self._slice_s(each is bounds):
                    try:
                        next(each)
                    except StopIteration:
                        turns.remove(each)
                        break
                    if self.closed:
                        self._by_own(bounds)
                    yield
            self.time_s *= self.params.growth

    def _by_own(self, bounds: Iterator[None]) -> None:
        """Bounds that rest on no engine, in one piece, until they meet the plan or have no more to say."""
        for _ in chain(bounds, self._highest()):
            if self.value is None or self.own >= self.value or self.budget.exhausted:
                return

    def _highest(self) -> Iterator[None]:
        """Whether a relaxation refutes every better plan."""
        relaxations: list[Relaxation | Patterns] = [self._columns()]
        if self.instance.objective == "throughput":
            relaxations.insert(0, self._patterns(groups_of(self.instance, self.tables)))
        for relaxation in relaxations:
            limit = self.highest
            if self.own <= limit and (yield from relaxation.refuting(limit)):
                self.raise_own(limit + 1)

    def _slice_s(self, bounds: bool) -> float:
        """How long a turn is; without a plan, questions look for one for as long as bounds are raised."""
        return self.time_s * (self.params.bounds if bounds and self.value is not None else 1.0)

    def _dear(self) -> bool:
        """The next program takes longer to build than it may be asked; first plans are looked for in small ones."""
        if self.plan is None:
            return False
        size = sum(each.inference.size for each in self.within(self.highest) or ())
        return self.pace["blocks"] * size > self.time_s

    def _bounds(self) -> Iterator[None]:
        """Bounds 2 and 3, as much time for the one as for the other."""
        kinds = [self._by_columns(), self._by_patterns()][: 1 if self.instance.objective == "latency" else 2]
        used_s = dict.fromkeys(kinds, 0.0)
        while used_s:
            least = min(used_s, key=lambda kind: used_s[kind])
            begun = self.budget.elapsed_s
            try:
                self.raise_own(next(least))
            except StopIteration:
                used_s.pop(least)
                continue
            used_s[least] += self.budget.elapsed_s - begun
            yield
        yield from self._highest()

    def _columns(self) -> Relaxation:
        relaxation = Relaxation(self.instance, self.tables, lambda: self.budget.exhausted, self.params)
        if self.plan is not None:
            relaxation.offer(self.plan)
        return relaxation

    def _patterns(self, groups: list[list[int]]) -> Patterns:
        return Patterns(self.instance, self.tables, groups, lambda: self.budget.exhausted, self.params)

    def _by_columns(self) -> Iterator[int]:
        relaxation = self._columns()
        for bound in relaxation.bisect(lambda: (self.own, self.highest + 1)):
            self.notes |= relaxation.notes
            yield bound

    def _by_patterns(self) -> Iterator[int]:
        groups = groups_of(self.instance, self.tables)
        for count in sorted({1, min(2, len(groups)), len(groups)}):
            yield from self._patterns(groups[:count]).bisect(lambda: (self.own, self.highest + 1))

    def _questions(self) -> Iterator[None]:
        """All questions; ends where no engine is to be believed, or no program could be built in the time left."""
        if self.instance.objective == "throughput":
            asked = {"CP-SAT": self._refine()}
        else:
            asked = {engine: Flow(self, engine, tell=True).questions(self.params) for engine in ENGINES}
        refused: list[str] = []
        for engine, questions in asked.items():
            try:
                yield from questions
            except (EngineError, GuardError) as error:
                refused.append(f"{engine}: {error}")
                self.notes[DISTRUSTED] = refused
                self.bound = self.own
            else:
                return

    def _refine(self) -> Iterator[None]:
        """Throughput: first plans, better plans, and limits in the middle."""
        turn = 0
        while not (self.over or self.spent):
            before, turn = self.value, turn + 1
            if before is None:
                yield from self.round(self.time_s, above=turn % 2 == 1)
                continue
            self.ask(self.highest, True, self.time_s)
            yield
            self.opened = min(self.opened, self.value or before) if self.value == before else self.value or before
            if not (self.over or self.spent):
                self._between(whole=turn % 2 == 0)
                yield

    def _between(self, whole: bool) -> None:
        """A question at a limit between the bound and where the last one had no answer.

        It begins at the best plan again when it comes near to the bound.
        """
        opened = self.opened if self.opened > self.bound else self.highest + 1  # the bound may have risen past it
        middle = self.bound + (opened - self.bound) // 2
        self.opened = self.highest + 1
        if middle < self.highest:
            status = self.ask(middle, False, self.time_s) if whole else self.ask_part(middle, self.time_s)
            if status is Status.UNKNOWN and middle - self.bound > max(1, self.bound // 50):
                self.opened = middle

    def ask_part(self, limit: int, time_s: float) -> Status:
        """A plan of at most ``limit`` of the half of the pipelines that is hardest to place; a plan proves nothing.

        Without the others no plan has more load or needs more memory, so a limit that the half cannot keep is refuted.
        """
        capacity = [max(1, sum(getattr(device, r) for device in self.instance.devices)) for r in RESOURCES]
        need = [max(table.need[:, -1] / capacity) for table in self.tables]
        kept = sorted(sorted(range(len(need)), key=lambda p: -need[p])[: (len(need) + 1) // 2])
        reduced = self.within(limit)
        if reduced is None:
            self.raise_own(limit + 1)
            return Status.INFEASIBLE
        part = self.instance.changed(pipelines=tuple(self.instance.pipelines[p] for p in kept), deployed=())
        size = sum(reduced[p].inference.size for p in kept)
        if not self.affordable("blocks", size):
            return Status.UNKNOWN
        with self.building("blocks", size):
            model = AssignmentModel(part, [reduced[p] for p in kept], limit, 0, False)
        found = prove(model, self.budget, time_s=time_s, announce=False, turns=False)
        self.interrupted = found.stop is Stop.INTERRUPTED
        if found.status is not Status.INFEASIBLE:
            return Status.UNKNOWN
        self.raise_bound(limit + 1)
        return Status.INFEASIBLE


def run(instance: Instance, budget: Budget, start: str | Plan | None = None, params: Params = DEFAULT) -> SolveResult:
    """Best joint plan.

    Raises
    ------
    InputError
        ``start`` is no plan file.
    """
    if found := diagnose(instance):
        return SolveResult(Status.INFEASIBLE, Stop.PROVED, reason="; ".join(found))
    joint = Joint(instance, budget, read_start(start, Plan, instance), params)
    for _ in joint.steps():
        pass
    return joint.result()
