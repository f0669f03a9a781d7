"""The portfolio of hybrid pipelines.

1. ``order_search``, the quick planner, complete; left out where it would search all groups, as the proof does.
2. ``fluid_bound``: the work of all layers shared by all devices; also where no time is left for it.
3. In turns: ``label_dp``, whose relaxations bound and whose search over all groups proves; and ``orders``, label
   searches along neighbours of the best order, then along orders some steps away from it. With several micro-batch
   sizes ``label_dp`` takes one after the other.

Of a graph of layers the only member is ``ideal_dp``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from mapgap.core import Budget, SolveResult, Status, Stop, read_start
from mapgap.formulations.hybrid_pipeline import ideal_dp, label_dp, order_search
from mapgap.formulations.hybrid_pipeline.label.order_search import OrderSearch, fluid_bound
from mapgap.formulations.hybrid_pipeline.params import Portfolio as Params
from mapgap.problems.hybrid_pipeline import Instance, Plan
from mapgap.problems.hybrid_pipeline.evaluate import diagnose, evaluate
from mapgap.problems.hybrid_pipeline.lowered.arrays import lower
from mapgap.solvers.portfolio import Board, Member, Portfolio, whole


def run(instance: Instance, budget: Budget, start: str | Plan | None = None, params: Params = Params()) -> SolveResult:
    """The best plan and a bound, or the certified optimum."""
    if instance.graph is not None:
        return ideal_dp.run(instance, budget, start=start)
    if reasons := diagnose(instance):
        return SolveResult(Status.INFEASIBLE, Stop.PROVED, reason="; ".join(reasons))
    sizes = [instance.with_micro_batch(size) for size in instance.micro_batch_sizes]

    def fluid(board: Board) -> Iterator[None]:
        """Step 2."""
        board.prove(min(fluid_bound(lower(each, tuple(range(len(each.devices))))) for each in sizes))
        yield

    def labels(board: Board) -> Iterator[None]:
        """Step 3, the engine."""
        result = yield from label_dp.steps(
            instance, board.listened(), lambda: cast(Plan | None, board.plan), params=params
        )
        board.take(result)
        board.notes["label_dp"] = dict(result.notes)

    def orders(board: Board) -> Iterator[None]:
        """Step 3, the improver."""

        def better(plan: Plan) -> None:
            board.offer(plan)

        for each in sizes:
            search = OrderSearch(each, budget, announce=better)
            search.run()
            yield
            yield from search.improve() if each is not sizes[-1] else search.wander()

    engine = Member("label_dp", labels if len(sizes) == 1 else whole(label_dp.run, start=True, params=params))
    planner = Member("order_search", whole(order_search.run, params=params))
    bound = Member("fluid_bound", fluid)
    cheap = all(label_dp.cheap(each) for each in sizes)
    portfolio = Portfolio(
        first=[bound, engine] if cheap else [planner, bound],
        turns=[] if cheap else [engine, Member("orders", orders, params.orders)],
        last=bound,
    )
    return portfolio.run(Board(instance, budget, evaluate, start=read_start(start, Plan, instance, evaluate)))
