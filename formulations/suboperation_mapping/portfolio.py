"""The portfolio of sub-operation mapping.

1.  ``annealed_converting``: the complete run of the quick planner.
2.  ``bounds``: paths and one flow, whatever the time.
3.  In turns, each knowing what the others have found: ``cpsat`` on the smallest instances, whose ratios it settles
    soonest; ``anneal``, which has most of the time as long as it finds better plans, and starts from mappings that the
    relaxation suggests as well; ``stage_mip``; ``windows``, the search of neighbourhoods of the best plan with CP-SAT.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from mapgap.core import Budget, SolveResult, Status, Stop, read_start
from mapgap.formulations.suboperation_mapping.cpsat import solve_ratio
from mapgap.formulations.suboperation_mapping.params import Portfolio as Params
from mapgap.formulations.suboperation_mapping.params import Sweep as SweepParams
from mapgap.formulations.suboperation_mapping.ratio_model import WAITS
from mapgap.formulations.suboperation_mapping.ratio_sweep import Sweep, parts_of, questions
from mapgap.formulations.suboperation_mapping.stage_mip import StageMip
from mapgap.formulations.suboperation_mapping.windows import Windows
from mapgap.heuristics.suboperation_mapping import annealed_converting
from mapgap.heuristics.suboperation_mapping.anneal import begin
from mapgap.heuristics.suboperation_mapping.params import QuickPlanner
from mapgap.heuristics.suboperation_mapping.search.pool import Rounds, Search
from mapgap.problems.suboperation_mapping import Instance, Plan
from mapgap.problems.suboperation_mapping.evaluate import diagnose, evaluate
from mapgap.problems.suboperation_mapping.instance import operations
from mapgap.problems.suboperation_mapping.lowered.arrays import Lowered
from mapgap.problems.suboperation_mapping.lowered.mapped import Mapped, started
from mapgap.problems.suboperation_mapping.lowered.ratios import Ratio, pe_ratio
from mapgap.solvers.portfolio import Board, Member, Portfolio, whole


class _Members:
    """The members that take turns, around the bounds of all ratios that the stage MIP holds."""

    def __init__(self, board: Board, instance: Instance, params: Params) -> None:
        self.board, self.instance, self.params = board, instance, params
        self.mip = StageMip(instance, board.listened(), params=params)
        self.search = Search(instance, board.listened(), params)
        self.rounds: Rounds | None = None

    def best(self) -> Mapped | None:
        """The best plan that anybody has found."""
        plan = self.board.plan
        assert plan is None or isinstance(plan, Plan)
        return started(self.instance, plan)

    def bounds(self, _: Board) -> Iterator[bool]:
        """Paths and the flow."""
        yield from self.mip.first_bounds()

    def prove(self, board: Board) -> Iterator[bool]:
        """The stage MIP."""
        for waits in self.mip.steps():
            yield waits
            if isinstance(board.plan, Plan) and board.value is not None:
                self.mip.state.learn(board.plan, board.value)
        board.take(self.mip.result())

    def open(self, ratio: Ratio) -> bool:
        """Whether the bound of a ratio leaves room for a better plan."""
        known, limit = self.mip.state.ratios[parts_of(ratio)], self.board.value
        return not known.infeasible and (limit is None or known.bound < limit)

    def improve(self, _: Board) -> Iterator[None]:
        """Annealing."""
        self.search.offer(self.best())
        yield from begin(self.search, self.params)
        self.rounds = Rounds(self.search, self.params, self.open)
        while self.rounds.next():
            yield
            for plan in self.mip.state.news:
                if self.search.offer(started(self.instance, plan)):
                    self.rounds.last = self.search.rounds
            self.mip.state.news.clear()

    def eager(self) -> float:
        """The share of the annealing: large until all solutions of the pool have had a turn for nothing."""
        stale = 0 if self.rounds is None else self.search.rounds - self.rounds.last
        return self.params.eager if stale < self.params.pool else self.params.lazy

    def bounding(self) -> float:
        """The share of the stage MIP: as large until every ratio is in a box with a bound of its own program."""
        return self.params.eager if self.mip.rooting else 1.0

    def ask(self, board: Board) -> Iterator[bool]:
        """CP-SAT, ratio by ratio."""
        state, known = Sweep.begin(self.instance, board.listened()), self.mip.state.ratios
        state.offer(self.best())

        def one(lowered: Lowered, cutoff: int | None, seconds: float) -> SolveResult:
            return solve_ratio(lowered, cutoff, board.listened(), seconds)

        for stop in questions(state, one, SweepParams()):
            for ratio, bound in state.bounds.items():
                known[ratio].raise_to(bound)
                known[ratio].infeasible |= ratio in state.infeasible
                state.bounds[ratio] = max(bound, known[ratio].bound)
            if stop is Stop.INTERRUPTED:
                return
            yield False
            state.offer(self.best())
        board.take(state.conclude(Stop.PROVED))

    def polish(self, board: Board) -> Iterator[None]:
        """Neighbourhoods of the best plan."""
        windows: Windows | None = None
        while best := self.best():
            if windows is None or windows.best.makespan != best.makespan:
                seed = board.budget.seed if windows is None else windows.turn
                windows = Windows(best, seed, self.params.window, self.params.window_s)
            board.offer(windows.improve(board.budget.remaining_s, most=1).plan)
            if windows.proven:
                self.mip.state.ratios[parts_of(best.lowered.ratio)].raise_to(windows.best.makespan)
            if windows.over:
                return
            yield


def run(instance: Instance, budget: Budget, start: str | Plan | None = None, params: Params = Params()) -> SolveResult:
    """The best plan, and the bound of the instance."""
    if reasons := diagnose(instance):
        return SolveResult(Status.INFEASIBLE, Stop.PROVED, reason="; ".join(reasons))
    board = Board(instance, budget, evaluate, start=read_start(start, Plan, instance, evaluate))
    members = _Members(board, instance, params)
    quick = QuickPlanner().changed({k: v for k, v in params.to_json().items() if k in QuickPlanner().to_json()})
    turns = [
        Member("anneal", members.improve, members.eager),
        Member("stage_mip", members.prove, members.bounding),
    ]
    if len(operations(instance, pe_ratio(instance))) <= params.tiny:
        turns.insert(0, Member("cpsat", members.ask))
    if params.window:
        turns.append(Member("windows", members.polish, params.lazy))
    portfolio = Portfolio(
        first=[
            Member("annealed_converting", whole(annealed_converting.run, params=quick)),
            Member("bounds", members.bounds),
        ],
        turns=turns,
    )
    found = portfolio.run(board)
    ladder = members.mip.state.ladder
    if not ladder and found.status is not Status.INFEASIBLE:  # no time for them, and yet they are there
        budget.by = "bounds"
        for _ in members.mip.first_bounds():
            found = replace(board.result(), notes=found.notes)
    notes = {**found.notes, "ladder": [list(each) for each in ladder.items()]}
    unproven = instance.medium != "links" and found.status is Status.FEASIBLE and not found.reason
    return replace(found, notes=notes, reason=WAITS if unproven else found.reason)
