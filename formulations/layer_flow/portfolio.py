"""The portfolio of layer flow.

1. ``layouts``: Helix's placement, Petals, SWARM; then ``one_pipeline``, nodes one after the other.
2. ``stages``: nodes side by side, whole.
3. ``cover_bound``: whether weights prove that nothing is better, else how much better anything could be; where no time
   is left, what the area of all nodes allows.
4. ``cpsat``: the paper's program from the best plan, to the proof.

Plans come first: the bound of a large cluster takes longer than all of them.
"""

from __future__ import annotations

from collections.abc import Iterator

from mapgap.core import Budget, SolveResult, read_start
from mapgap.formulations.layer_flow import cover_bound, cpsat, stages
from mapgap.formulations.layer_flow.params import Stages as Params
from mapgap.heuristics.layer_flow import helix_placement, one_pipeline, petals, swarm
from mapgap.problems.layer_flow import Instance, Plan
from mapgap.problems.layer_flow.evaluate import evaluate
from mapgap.solvers.portfolio import Board, Member, Portfolio, whole


def run(instance: Instance, budget: Budget, start: str | Plan | None = None, params: Params = Params()) -> SolveResult:
    """The best plan and a bound, or the proven optimum."""

    def bound(board: Board) -> Iterator[None]:
        """Step 3."""
        board.prove(cover_bound.bound(instance, board.listened(), known=board.value))
        yield

    def layouts(board: Board) -> Iterator[None]:
        """Step 1."""
        for method in (helix_placement, petals, swarm):
            board.take(method.run(instance, board.listened()))
            yield

    weights = Member("cover_bound", bound)
    portfolio = Portfolio(
        first=[
            Member("layouts", layouts),
            Member("one_pipeline", whole(one_pipeline.run)),
            Member("stages", whole(stages.run, params=params)),
            weights,
        ],
        turns=[Member("cpsat", whole(cpsat.run, start=True))],
        last=weights,
    )
    return portfolio.run(Board(instance, budget, evaluate, sign=-1, start=read_start(start, Plan, instance, evaluate)))
