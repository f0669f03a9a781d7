"""The portfolio of the FPGA-GPU partition.

1. ``relaxation``: every module under the quickest and the cheapest options of its layers; a bound at once, and where
   there is no time.
2. ``additive_greedy``, which takes no time; ``annealed_options``: both published plans and a short annealing, complete.
3. In turns, for the same time: ``label_setting``, whose prices bound and whose passes prove; and ``annealing``, each
   longer than the one before, until one finds nothing better.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from mapgap.core import Budget, SolveResult, Status, Stop, read_start
from mapgap.formulations.fpga_gpu_partition import label_setting
from mapgap.formulations.fpga_gpu_partition.bounds import relaxed
from mapgap.heuristics.fpga_gpu_partition import additive_greedy, annealed_options
from mapgap.heuristics.fpga_gpu_partition.search.annealing import Annealing
from mapgap.problems.fpga_gpu_partition import Instance, Plan
from mapgap.problems.fpga_gpu_partition.evaluate import diagnose, evaluate
from mapgap.solvers.portfolio import Board, Member, Portfolio, whole


def bound(board: Board) -> Iterator[None]:
    """Step 1."""
    assert isinstance(board.instance, Instance)
    board.prove(relaxed(board.instance))
    yield


def run(instance: Instance, budget: Budget, start: str | Plan | None = None) -> SolveResult:
    """Minimise the instance's objective."""
    if reasons := diagnose(instance):
        return SolveResult(Status.INFEASIBLE, Stop.PROVED, reason="; ".join(reasons))

    def anneal(board: Board) -> Iterator[None]:
        """Step 3, the improver."""
        turn, better = 1, True  # annealed_options was the first turn
        while better:
            turn += 1
            walk = Annealing(instance)
            walk.run((budget.seed + turn) % 2**32, turn, budget)
            held = board.value  # to evaluate the plan of a whole network takes a while
            better = (held is None or walk.value < held) and board.offer(walk.plan)
            yield

    def labels(board: Board) -> Iterator[None]:
        """Step 3, the engine."""
        result = yield from label_setting.steps(instance, board.listened(), lambda: cast(Plan | None, board.plan))
        board.take(result)
        board.notes["label_setting"] = dict(result.notes)

    relaxation = Member("relaxation", bound)
    portfolio = Portfolio(
        first=[
            relaxation,
            Member("additive_greedy", whole(additive_greedy.run)),
            Member("annealed_options", whole(annealed_options.run)),
        ],
        turns=[Member("label_setting", labels), Member("annealing", anneal)],
        last=relaxation,
    )
    return portfolio.run(Board(instance, budget, evaluate, start=read_start(start, Plan, instance, evaluate)))
