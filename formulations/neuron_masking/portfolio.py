"""The portfolio of neuron masking.

1. ``whole_models``: what the unmasked models would be worth; also where there is no time.
2. ``priced_layers``, the quick planner, complete.
3. ``lagrangian`` from the best plan: branch and bound, to the proof.
4. ``exchange``, where that gave up: the quick planner's search, improving every mask on its way, not only the best one.
"""

from __future__ import annotations

from collections.abc import Iterator

from mapgap.core import Budget, SolveResult, Status, Stop, read_start
from mapgap.formulations.neuron_masking import lagrangian, priced_layers
from mapgap.formulations.neuron_masking.fleet import whole_bound
from mapgap.formulations.neuron_masking.params import Lagrangian as Params
from mapgap.formulations.neuron_masking.prices import quick_plan
from mapgap.problems.neuron_masking import Instance, Plan
from mapgap.problems.neuron_masking.evaluate import diagnose, evaluate
from mapgap.solvers.portfolio import Board, Member, Portfolio, whole


def run(instance: Instance, budget: Budget, start: str | Plan | None = None, params: Params = Params()) -> SolveResult:
    """The best plan and a bound, or the proven optimum."""
    if reasons := diagnose(instance):
        return SolveResult(Status.INFEASIBLE, Stop.PROVED, reason="; ".join(reasons))

    def bound(board: Board) -> Iterator[None]:
        """Step 1."""
        board.prove(whole_bound(instance))
        yield

    def exchange(board: Board) -> Iterator[None]:
        """Step 4."""
        board.offer(quick_plan(instance, board.listened(), thorough=True))
        yield

    models = Member("whole_models", bound)
    portfolio = Portfolio(
        first=[
            models,
            Member("priced_layers", whole(priced_layers.run)),
            Member("lagrangian", whole(lagrangian.run, start=True, params=params)),
            Member("exchange", exchange),
        ],
        last=models,
    )
    return portfolio.run(Board(instance, budget, evaluate, sign=-1, start=read_start(start, Plan, instance, evaluate)))
