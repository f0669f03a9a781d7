"""The portfolio of sub-operation mapping.

1.  ``annealed_converting``: the complete run of the quick planner. On the smallest instances then ``cpsat``, as long as
    it answers at once.
2.  ``anneal``, which goes on from there as the method of that name does, by itself for a counted number of steps: its
    plan is that method's, and no shorter run ends with a worse one.
3.  ``bounds``: paths and one flow; where no time is left, the path of the largest share alone.
4.  In turns, each knowing what the others have found: ``cpsat`` on the smallest, whose ratios it settles soonest;
    ``anneal``, which has most of the time as long as it finds better plans, and starts from mappings that the
    relaxation suggests as well; ``stage_mip``; ``windows``, the search of neighbourhoods of the best plan with CP-SAT.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property

from mapgap.core import Budget, SolveResult, Status, Stop, read_start
from mapgap.formulations.suboperation_mapping.cpsat import solve_ratio
from mapgap.formulations.suboperation_mapping.params import Portfolio as Params
from mapgap.formulations.suboperation_mapping.params import Sweep as SweepParams
from mapgap.formulations.suboperation_mapping.path_bound import least_path, share_paths
from mapgap.formulations.suboperation_mapping.phase_graph import PhaseGraph
from mapgap.formulations.suboperation_mapping.ratio_model import WAITS
from mapgap.formulations.suboperation_mapping.ratio_sweep import Sweep, parts_of, questions
from mapgap.formulations.suboperation_mapping.stage_mip import StageMip
from mapgap.formulations.suboperation_mapping.windows import Windows
from mapgap.heuristics.suboperation_mapping import annealed_converting
from mapgap.heuristics.suboperation_mapping.anneal import more
from mapgap.heuristics.suboperation_mapping.search.pool import Rounds, Search
from mapgap.problems.suboperation_mapping import Instance, Plan
from mapgap.problems.suboperation_mapping.evaluate import diagnose, evaluate
from mapgap.problems.suboperation_mapping.instance import operations
from mapgap.problems.suboperation_mapping.lowered.arrays import Lowered
from mapgap.problems.suboperation_mapping.lowered.mapped import Mapped, best_single, started
from mapgap.problems.suboperation_mapping.lowered.ratios import Ratio, pe_ratio
from mapgap.solvers.portfolio import Board, Member, Portfolio


class Members:
    """The members, around the bounds of all ratios that the stage MIP holds."""

    def __init__(self, board: Board, instance: Instance, params: Params) -> None:
        self.board, self.instance, self.params = board, instance, params
        self.search = Search(instance, board.listened(), params)
        self.rounds: Rounds | None = None
        self.ladder: dict[str, int] = {}

    @cached_property
    def mip(self) -> StageMip:
        """Made when it is needed: of many accelerators there are a hundred thousand ratios."""
        return StageMip(self.instance, self.board.listened(), params=self.params)

    @cached_property
    def asked(self) -> Iterator[Stop]:
        """Questions to CP-SAT, ratio by ratio; why each answer ended."""
        return self.ask()

    def best(self) -> Mapped | None:
        """The best plan that anybody has found."""
        plan = self.board.plan
        assert plan is None or isinstance(plan, Plan)
        return started(self.instance, plan)

    def plan(self, _: Board) -> Iterator[None]:
        """The quick planner."""
        self.search.offer(self.best())
        annealed_converting.begin(self.search)
        yield

    def bounds(self, _: Board) -> Iterator[bool]:
        """Paths and the flow."""
        self.tell()
        yield from self.mip.first_bounds()

    def tell(self) -> None:
        """Tell the stage MIP the best plan."""
        if isinstance(self.board.plan, Plan) and self.board.value is not None:
            self.mip.state.learn(self.board.plan, self.board.value)

    def least(self, board: Board) -> Iterator[None]:
        """A bound, and a plan if there is none, that take no time."""
        if board.plan is None and (single := best_single(self.instance)) is not None:
            board.offer(single.plan)
        bound = least_path(share_paths(PhaseGraph(self.instance)), len(self.instance.accelerators))
        board.budget.recomputed.append(bound)
        board.prove(bound)
        self.ladder = {"path": bound}
        yield

    def prove(self, board: Board) -> Iterator[bool]:
        """The stage MIP."""
        for waits in self.mip.steps():
            yield waits
            self.tell()
        board.take(self.mip.result())

    def tend(self) -> None:
        """The processes of the stage MIP, while others work."""
        self.tell()
        self.mip.tend_processes()

    def open(self, ratio: Ratio) -> bool:
        """Whether the bound of a ratio leaves room for a better plan."""
        known, limit = self.mip.state.ratios[parts_of(ratio)], self.board.value
        return not known.infeasible and (limit is None or known.bound < limit)

    def anneal(self, _: Board) -> Iterator[None]:
        """Annealing by itself."""
        yield from more(self.search, self.params)
        self.rounds = Rounds(self.search, self.params)
        while self.rounds.steps < self.params.alone and self.rounds.next():
            yield

    def improve(self, _: Board) -> Iterator[None]:
        """Annealing that knows what the others have found."""
        assert self.rounds is not None
        self.rounds.wanted = self.open
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

    def ask(self) -> Iterator[Stop]:
        """CP-SAT, ratio by ratio."""
        board = self.board
        state = Sweep.begin(self.instance, board.listened())
        state.offer(self.best())

        def one(lowered: Lowered, cutoff: int | None, seconds: float) -> SolveResult:
            return solve_ratio(lowered, cutoff, board.listened(), seconds)

        for stop in questions(state, one, SweepParams()):
            known = self.mip.state.ratios
            for ratio, bound in state.bounds.items():
                known[ratio].raise_to(bound)
                known[ratio].infeasible |= ratio in state.infeasible
                state.bounds[ratio] = max(bound, known[ratio].bound)
            if stop is Stop.INTERRUPTED:
                return
            yield stop
            state.offer(self.best())
        board.take(state.conclude(Stop.PROVED))

    def settle(self, _: Board) -> Iterator[None]:
        """CP-SAT, as long as it answers at once."""
        for stop in self.asked:
            if stop is not Stop.PROVED:
                return
            yield

    def ask_on(self, _: Board) -> Iterator[None]:
        """CP-SAT, from where it has not answered."""
        for _stop in self.asked:
            yield

    def polish(self, board: Board) -> Iterator[None]:
        """Neighbourhoods of the best plan."""
        windows: Windows | None = None
        while best := self.best():
            if windows is None or windows.best.makespan != best.makespan:
                seed = board.budget.seed if windows is None else windows.turn
                windows = Windows(best, seed, self.params.window, self.params.question_s)
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
    members, size = Members(board, instance, params), len(operations(instance, pe_ratio(instance)))
    first = [
        Member("annealed_converting", members.plan),
        Member("anneal", members.anneal),
        Member("bounds", members.bounds),
    ]
    turns = [
        Member("anneal", members.improve, members.eager),
        Member("stage_mip", members.prove, members.bounding, members.tend),
    ]
    if size <= SweepParams.few:
        first.insert(1, Member("cpsat", members.settle))
        turns.insert(0, Member("cpsat", members.ask_on))
    if params.window:
        turns.append(Member("windows", members.polish, params.lazy))
    found = Portfolio(first, turns, last=Member("bounds", members.least)).run(board)
    ladder = members.ladder or (members.mip.state.ladder if "mip" in vars(members) else {})
    notes = {**found.notes, "ladder": [list(each) for each in ladder.items()]}
    unproven = instance.medium != "links" and found.status is Status.FEASIBLE and not found.reason
    return replace(found, notes=notes, reason=WAITS if unproven else found.reason)
