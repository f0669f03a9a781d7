"""A portfolio: planner, bounds, improver and engine on one instance, under one clock.

1.  *First* members work one after the other, each to its end: the complete run of the quick planner, then every bound
    that is cheap.
2.  The others work in *turns*. A member is a generator; between two ``yield`` it does a piece of work. Next is always
    who has worked least in proportion to their share; one that yields ``True`` has nothing to do until processes of its
    own have answered, and the others go first. After every piece of others it can tend these: take answers and put
    questions. Better plans and bounds stand on the :class:`Board` between them.
3.  The run ends when plan and bound meet, when nobody has work left, or when the time is over.
4.  Where no bound is known then, the *last* member gives one that takes no time, whether or not any is left.

No rule looks at the time limit. So a longer run continues a shorter one, but for the piece that the limit cuts, and
never ends with a worse plan or a weaker bound. The record says which member found the plan and which proved the bound.

A portfolio is never worse than its planner when it has the time of a complete run of it. That promise is the
portfolio's: the methods that are a model and an engine do not make it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from mapgap.core import DISTRUSTED, Budget, Evaluation, InstanceBase, PlanBase, PlanError, SolveResult, Status, Stop

Evaluate = Callable[[Any, Any], Evaluation]


class Board:
    """What is known of an instance: the best plan, the best bound, and who is at work.

    Attributes
    ----------
    plan, value : PlanBase or None, int or None
        The best plan and what the evaluator says it is worth.
    bound : int or None
    infeasible : str or None
        Why the instance has no plan, if a member has proven that.
    """

    def __init__(
        self,
        instance: InstanceBase,
        budget: Budget,
        evaluate: Evaluate,
        sign: int = 1,
        start: PlanBase | None = None,
    ) -> None:
        self.instance, self.budget = instance, budget
        self._evaluate, self.sign = evaluate, sign
        self._plan: PlanBase | None = None
        self._value: int | None = None
        self._heard: list[PlanBase] = []
        self.bound: int | None = None
        self.infeasible: str | None = None
        self.notes: dict[str, Any] = {}
        budget.by = "start"  # what is given counts as its giver's
        self.offer(start)
        budget.by = ""

    @property
    def plan(self) -> PlanBase | None:
        self.weigh()
        return self._plan

    @property
    def value(self) -> int | None:
        self.weigh()
        return self._value

    @property
    def closed(self) -> bool:
        """Nothing is left to find or to prove."""
        return self.infeasible is not None or (self.value is not None and self.value == self.bound)

    @property
    def over(self) -> bool:
        """Nothing is left to do, or no time to do it."""
        return self.closed or self.budget.exhausted

    def offer(self, plan: PlanBase | None) -> bool:
        """Take a plan if it is better than the best one; announced.

        Raises
        ------
        PlanError
            It breaks a rule: a member at fault is never covered up by the others.
        """
        if plan is None or not self._better(plan):
            return False
        self.budget.report(plan=plan)
        return True

    def _better(self, plan: PlanBase) -> bool:
        """Keep a plan if it is better than the best one."""
        held = self.value
        if plan == self._plan:
            return False
        found = self._evaluate(self.instance, plan)
        value = found.objective
        if not found.feasible or value is None:
            raise PlanError(f"{self.budget.by}: its plan breaks a rule: {found.violations[:1]}")
        if held is not None and self.sign * value >= self.sign * held:
            return False
        self._plan, self._value = plan, value
        return True

    def weigh(self) -> None:
        """Look at the plans that were announced within a piece of work."""
        heard, self._heard = self._heard, []
        for plan in heard:
            self._better(plan)

    def prove(self, bound: int | None) -> bool:
        """Take a bound if it is better than the best one; announced."""
        if bound is None or (self.bound is not None and self.sign * bound <= self.sign * self.bound):
            return False
        self.bound = bound
        self.budget.report(bound=bound)
        return True

    def take(self, result: SolveResult) -> None:
        """What a run that has ended says; its plan speaks for all that it has announced in this piece of work.

        Raises
        ------
        PlanError
            Its plan breaks a rule, or is not worth what it claims.
        """
        if result.plan is not None:
            self._heard.clear()
        self.offer(result.plan)
        if result.plan is not None and result.claimed is not None:
            best = result.plan == self.plan
            worth = self.value if best else self._evaluate(self.instance, result.plan).objective
            if worth != result.claimed:
                raise PlanError(f"{self.budget.by}: claims {result.claimed} for a plan of {worth}")
        self.prove(result.bound)
        if result.status is Status.OPTIMAL and result.bound is None:
            self.prove(self.value)
        if result.status is Status.INFEASIBLE:
            self.infeasible = result.reason or "no plan exists"
        if distrusted := result.notes.get(DISTRUSTED):
            self.notes[DISTRUSTED] = list(dict.fromkeys([*self.notes.get(DISTRUSTED, ()), *distrusted]))

    def listened(self) -> Budget:
        """What is left of the budget, for a run whose announcements come here.

        Its plans are passed on at once, and weighed when somebody asks for the best one: an evaluation can take longer
        than a member needs to find the next plan. Who listens to the budget evaluates all of them.
        """

        def listen(plan: PlanBase | None, bound: int | None) -> None:
            if plan is not None:
                self.budget.report(plan=plan)
                self._heard.append(plan)
            self.prove(bound)

        return replace(self.budget, listener=listen)

    def result(self) -> SolveResult:
        """What the portfolio says at its end."""
        stop = Stop.PROVED if self.closed else Stop.TIME if self.budget.exhausted else Stop.DONE
        if self.infeasible is not None:
            return SolveResult(Status.INFEASIBLE, stop, reason=self.infeasible, notes=self.notes)
        status = Status.UNKNOWN if self.plan is None else Status.OPTIMAL if self.closed else Status.FEASIBLE
        return SolveResult(status, stop, self.plan, self.bound, self.value, notes=self.notes)


Steps = Callable[[Board], Iterator[bool | None]]
"""``steps(board)`` yields between two pieces of work, and ends when there is no more to do."""
POLL_S = 0.02  #: between two looks where every member waits for processes


def exhausted(pieces: Generator[None, None, SolveResult]) -> SolveResult:
    """What an algorithm in pieces returns when nobody works between them."""
    while True:
        try:
            next(pieces)
        except StopIteration as end:
            result: SolveResult = end.value
            return result


def whole(run: Callable[..., SolveResult], *, start: bool = False, **options: Any) -> Steps:
    """The steps of a method that works in one piece.

    Parameters
    ----------
    run : callable
        ``run(instance, budget, **options) -> SolveResult``.
    start : bool
        It takes the best plan as its argument ``start``.
    """

    def steps(board: Board) -> Iterator[None]:
        given = {"start": board.plan} if start else {}
        result = run(board.instance, board.listened(), **given, **options)
        board.take(result)
        if result.notes:
            board.notes[board.budget.by] = dict(result.notes)
        yield

    return steps


@dataclass(frozen=True)
class Member:
    """Who takes part: a name for the record, the work, and the share of the time while others work too.

    A share that changes is a function. Who has processes of its own is asked to ``tend`` them after every piece of the
    others.
    """

    name: str
    steps: Steps
    share: float | Callable[[], float] = 1.0
    tend: Callable[[], object] | None = None


@dataclass
class _Working:
    """A member at work: its generator, the seconds it has used, in all and for its share, and whether it waits."""

    member: Member
    pieces: Iterator[bool | None]
    used_s: float = 0.0
    debt: float = 0.0
    waits: bool = False

    def work(self, board: Board) -> bool:
        """One piece; ``False`` if there was none left."""
        begun = time.perf_counter()
        board.budget.by = self.member.name
        try:
            self.waits = bool(next(self.pieces))
        except StopIteration:
            return False
        finally:
            self.pause(board, begun)
        return True

    def tend(self, board: Board) -> None:
        """Look after own processes between pieces of others; that is work as well."""
        if self.member.tend is not None:
            begun = time.perf_counter()
            board.budget.by = self.member.name
            self.member.tend()
            self.pause(board, begun)

    def pause(self, board: Board, begun: float) -> None:
        """Others are next: what was found, and the time."""
        board.weigh()  # in the name of who has announced them
        board.budget.by = ""
        spent = time.perf_counter() - begun
        self.used_s += spent
        self.debt += spent / (self.member.share() if callable(self.member.share) else self.member.share)


@dataclass(frozen=True)
class Portfolio:
    """A declared portfolio.

    Attributes
    ----------
    first : sequence of Member
        One after the other, each to its end.
    turns : sequence of Member
        In turns, by their shares.
    last : Member or None
        Gives a bound where nobody has, even where no time is left.
    """

    first: Sequence[Member]
    turns: Sequence[Member] = field(default=())
    last: Member | None = None

    def run(self, board: Board) -> SolveResult:
        """Let the members work until nothing is left to find or prove, or the time is over."""
        done: list[_Working] = []
        for member in self.first:
            alone = _Working(member, member.steps(board))
            done.append(alone)
            while not board.over and alone.work(board):
                if alone.waits:
                    time.sleep(POLL_S)
        working = [_Working(member, member.steps(board)) for member in self.turns]
        done += working
        while working and not board.over:
            if all(each.waits for each in working):
                time.sleep(POLL_S)
                rested(working)
            least = min(working, key=lambda each: (each.waits, each.debt))
            if not least.work(board):
                working.remove(least)
            for each in working:
                if each is not least:
                    each.tend(board)
            if not least.waits:
                rested(working)
        if self.last is not None and board.bound is None and board.infeasible is None:
            done.append(_Working(self.last, self.last.steps(board)))
            while done[-1].work(board):
                pass
        board.notes["used_s"] = used(done)
        return board.result()


def rested(members: Sequence[_Working]) -> None:
    """Who waited is asked again."""
    for each in members:
        each.waits = False


def used(members: Sequence[_Working]) -> Mapping[str, float]:
    """Seconds by member, added up where one has several parts."""
    names = dict.fromkeys(each.member.name for each in members)
    return {name: round(sum(each.used_s for each in members if each.member.name == name), 3) for name in names}
