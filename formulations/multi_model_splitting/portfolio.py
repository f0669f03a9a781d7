"""The strongest method: the quick planner, then the dedicated algorithm and a neighbourhood search in turns.

1. ``ruin_and_recreate``, whole: so the result is never worse than that of Synergy, once there is time for it.
2. In turns until plan and bound meet or the time is over: ``joint``, which begins with bounds, from the best plan; and
   ``neighbourhood``, a search without an end from the best plan, in which twins may coincide
   (:mod:`~mapgap.heuristics.multi_model_splitting.search.twins`). Where many walks have found nothing better, the
   search lets ``joint`` have a piece first.
3. Where no bound is known then, the first one of ``joint``.
"""

from __future__ import annotations

from collections.abc import Iterator

from mapgap.core import Budget, SolveResult, Status, Stop, read_start
from mapgap.formulations.multi_model_splitting.chains import ceiling, floor, profiles
from mapgap.formulations.multi_model_splitting.joint import Joint
from mapgap.formulations.multi_model_splitting.params import Portfolio as Params
from mapgap.heuristics.multi_model_splitting import ruin_and_recreate
from mapgap.heuristics.multi_model_splitting.search.twins import TwinNeighbourhood
from mapgap.problems.multi_model_splitting import Instance, Plan
from mapgap.problems.multi_model_splitting.diagnose import diagnose
from mapgap.problems.multi_model_splitting.evaluate import evaluate
from mapgap.solvers.portfolio import Board, Member, Portfolio, Steps, whole

DEFAULT = Params()


def neighbourhood(params: Params) -> Steps:
    """Neighbourhood search without an end."""

    def steps(board: Board) -> Iterator[bool | None]:
        assert isinstance(board.instance, Instance)
        search = TwinNeighbourhood(board.instance, board.budget.seed, params)
        board.offer(search.plan)
        while True:
            if isinstance(board.plan, Plan):
                search.offer(board.plan)
            search.quiet = 0
            while not search.settled:
                if search.walk(board.bound or 0, params.work):
                    board.offer(search.plan)
                yield False
            yield True  # nothing urgent to do: whoever else works has a piece first

    return steps


def joint(params: Params) -> Steps:
    """Bounds and questions, from the best plan."""

    def steps(board: Board) -> Iterator[None]:
        assert isinstance(board.instance, Instance)
        known = board.plan if isinstance(board.plan, Plan) else None
        algorithm = Joint(board.instance, board.listened(), known, params)
        yield
        for _ in algorithm.steps():
            yield
            if isinstance(board.plan, Plan):
                algorithm.offer(board.plan)
        board.take(algorithm.result())
        board.notes |= algorithm.notes

    return steps


def alone(board: Board) -> Iterator[None]:
    """What every pipeline needs if it has the devices for itself."""
    assert isinstance(board.instance, Instance)
    tables = profiles(board.instance)
    top = ceiling(board.instance, tables)
    if (bound := floor(board.instance, tables, top)) <= top:
        board.budget.recomputed.append(bound)
        board.prove(bound)
    yield


def run(instance: Instance, budget: Budget, start: str | Plan | None = None, params: Params = DEFAULT) -> SolveResult:
    """Best joint plan."""
    if found := diagnose(instance):
        return SolveResult(Status.INFEASIBLE, Stop.PROVED, reason="; ".join(found))
    members = Portfolio(
        first=[Member("ruin_and_recreate", whole(ruin_and_recreate.run, params=params))],
        turns=[Member("neighbourhood", neighbourhood(params)), Member("joint", joint(params))],
        last=Member("joint", alone),
    )
    return members.run(Board(instance, budget, evaluate, start=read_start(start, Plan, instance, evaluate)))
