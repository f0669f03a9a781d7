"""Synergy: pipeline by pipeline the best execution plan, given the plans before (Algorithm 1, Secs. 5.1 to 5.4).

Steps: (3) sort the pipelines by data size; for each pipeline (5) candidates of source, target and segments, (6) joined
with the plans selected before, those that exceed a device dropped, (7-11) the best one of the objective is kept.
Interpretation: candidates with equal cycle time are compared by latency, then the first one is kept; the paper does
not say. Merging equal tasks of several pipelines is not looked for while planning; the evaluator merges what coincides.

Ablations of Fig. 6: *without joint resources* every pipeline is planned as if it were alone, *without source and
target* the models are planned jointly and the ends are assigned afterwards.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import factorial

from mapgap.core import Budget, InputError, SolveResult, Status, Stop
from mapgap.heuristics.multi_model_splitting._common import (
    Ledger,
    Tables,
    fewest_ends,
    finished,
    out_of_time,
    pipeline_plan,
    shortage,
)
from mapgap.heuristics.multi_model_splitting._selection import Choice, best_choice, ordered
from mapgap.problems.multi_model_splitting import Instance, PipelinePlan

MOST_PERMUTED = 6
"""Pipelines whose orders are all tried: 720 orders."""


def plan_joint(instance: Instance, budget: Budget, rule: str, ends: bool) -> SolveResult:
    """Algorithm 1 in the order of a rule, with or without source and target."""
    afterwards = None if ends else fewest_ends(instance)
    ledger, chosen = Ledger.empty(instance), dict[int, Choice]()
    order = ordered(instance, rule)
    for index in order:
        tables = Tables(instance.pipelines[index])
        choice = best_choice(instance, index, tables, ledger, budget, ends)
        if choice is None:
            if budget.exhausted:
                return out_of_time(instance.pipelines[index].name)
            return SolveResult(Status.UNKNOWN, Stop.DONE, reason=shortage(instance, index, ledger))
        chosen[index] = choice
        ledger = ledger.placed(tables, *choice)
    names = [instance.pipelines[p].name for p in order]
    if ends:
        return finished(instance, _plans(chosen), budget, order=names)
    if afterwards is None:
        return _no_ends(instance)
    plans = [pipeline_plan(chosen[p][0], *afterwards[p]) for p in range(len(chosen))]
    return finished(instance, plans, budget, order=names)


def plan_alone(instance: Instance, budget: Budget, ends: bool) -> SolveResult:
    """Every pipeline as if it were alone; the sum of the plans may exceed a device."""
    afterwards = None if ends else fewest_ends(instance)
    if not ends and afterwards is None:
        return _no_ends(instance)
    nothing, chosen = Ledger.empty(instance), dict[int, Choice]()
    for index, pipeline in enumerate(instance.pipelines):
        choice = best_choice(instance, index, Tables(pipeline), nothing, budget, ends)
        if choice is None:
            if budget.exhausted:
                return out_of_time(pipeline.name)
            return SolveResult(Status.UNKNOWN, Stop.DONE, reason=shortage(instance, index, nothing))
        chosen[index] = choice
    if afterwards is None:
        return finished(instance, _plans(chosen), budget)
    plans = [pipeline_plan(chosen[p][0], *afterwards[p]) for p in range(len(chosen))]
    return finished(instance, plans, budget)


def _plans(chosen: dict[int, Choice]) -> list[PipelinePlan]:
    found = []
    for _, (path, ends) in sorted(chosen.items()):
        assert ends is not None
        found.append(pipeline_plan(path, ends.source, ends.target))
    return found


def _no_ends(instance: Instance) -> SolveResult:
    lacking = [p for p in range(len(instance.pipelines)) if not (instance.sources(p) and instance.targets(p))]
    return SolveResult(Status.UNKNOWN, Stop.DONE, reason=shortage(instance, lacking[0], Ledger.empty(instance)))


@dataclass
class Orders:
    """All orders of the pipelines; orders with a common beginning share its plans.

    Attributes
    ----------
    best : tuple, optional
        Value, other criterion and plans of the best order.
    values : list of int
        Objective of every order that has a plan.
    out_of_resource : int
        Orders that run out of resource.
    """

    instance: Instance
    budget: Budget
    best: tuple[tuple[int, int], dict[int, Choice]] | None = None
    order: tuple[int, ...] = ()
    values: list[int] = field(default_factory=list)
    out_of_resource: int = 0

    def __post_init__(self) -> None:
        self.tables = [Tables(pipeline) for pipeline in self.instance.pipelines]

    def visit(self, ledger: Ledger, chosen: dict[int, Choice]) -> None:
        """Every completion of a beginning."""
        rest = [p for p in range(len(self.tables)) if p not in chosen]
        if not rest:
            key = (ledger.cycle, ledger.latency)
            if self.instance.objective == "latency":
                key = key[::-1]
            self.values.append(key[0])
            if self.best is None or key < self.best[0]:
                self.best, self.order = (key, chosen), tuple(chosen)
            return
        for index in rest:
            choice = best_choice(self.instance, index, self.tables[index], ledger, self.budget)
            if self.budget.exhausted:
                return
            if choice is None:
                self.out_of_resource += factorial(len(rest) - 1)
                continue
            self.visit(ledger.placed(self.tables[index], *choice), chosen | {index: choice})


def plan_best_order(instance: Instance, budget: Budget) -> SolveResult:
    """Algorithm 1 under every order of up to six pipelines.

    Raises
    ------
    InputError
        More pipelines.
    """
    if len(instance.pipelines) > MOST_PERMUTED:
        raise InputError(
            f"order: expected at most {MOST_PERMUTED} pipelines for 'best', found {len(instance.pipelines)}"
        )
    orders = Orders(instance, budget)
    orders.visit(Ledger.empty(instance), {})
    notes = {
        "orders": len(orders.values) + orders.out_of_resource,
        "orders_out_of_resource": orders.out_of_resource,
        "best_order_ticks": min(orders.values, default=None),
        "worst_order_ticks": max(orders.values, default=None),
        "order": [instance.pipelines[p].name for p in orders.order],
    }
    if orders.best is None:
        if budget.exhausted:
            return out_of_time("the first order")
        example = plan_joint(instance, budget, "data_intensity", ends=True)
        reason = f"in every order; by data intensity {example.reason}"
        return SolveResult(Status.UNKNOWN, Stop.DONE, reason=reason, notes=notes)
    return finished(instance, _plans(orders.best[1]), budget, **notes)


def run(instance: Instance, budget: Budget, order: str = "data_intensity") -> SolveResult:
    """Algorithm 1; ``order`` is data_intensity, io_bytes, given, or best (every order of up to six pipelines).

    Raises
    ------
    InputError
        No such order rule, or too many pipelines to try every order.
    """
    if order == "best":
        return plan_best_order(instance, budget)
    return plan_joint(instance, budget, order, ends=True)


def run_without_joint(instance: Instance, budget: Budget) -> SolveResult:
    """Fig. 6: Synergy that plans every pipeline as if it were alone."""
    return plan_alone(instance, budget, ends=True)


def run_without_ends(instance: Instance, budget: Budget, order: str = "data_intensity") -> SolveResult:
    """Fig. 6: Synergy that assigns source and target after the models are split.

    Raises
    ------
    InputError
        No such order rule.
    """
    return plan_joint(instance, budget, order, ends=False)
