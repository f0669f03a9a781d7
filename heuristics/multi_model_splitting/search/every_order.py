"""What every order of the pipelines would give."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from math import factorial

from mapgap.core import InputError
from mapgap.heuristics.multi_model_splitting.search.resources import Choice, Ledger
from mapgap.problems.multi_model_splitting import Instance
from mapgap.problems.multi_model_splitting.lowered.tables import Tables

MOST_PERMUTED = 6
"""Pipelines whose orders are all tried: 720 orders. More are refused: what is asked for would take hours."""


@dataclass
class EveryOrder:
    """A planner of one pipeline after the other under every order; orders with a common beginning share its plans.

    Parameters
    ----------
    tables : list of Tables
        Of every pipeline.
    plan : callable
        ``plan(index, ledger)``: the choice for a pipeline beside what is placed, ``None`` if there is none.
    over : callable
        Says when to give up.

    Attributes
    ----------
    best : tuple, optional
        Value, other criterion and plans of the best order.
    values : list of int
        Objective of every order that has a plan.
    out_of_resource : int
        Orders that run out of resource.

    Raises
    ------
    InputError
        More pipelines.
    """

    instance: Instance
    tables: list[Tables]
    plan: Callable[[int, Ledger], Choice | None]
    over: Callable[[], bool]
    best: tuple[tuple[int, int], dict[int, Choice]] | None = None
    order: tuple[int, ...] = ()
    values: list[int] = field(default_factory=list)
    out_of_resource: int = 0

    def __post_init__(self) -> None:
        count = len(self.instance.pipelines)
        if count > MOST_PERMUTED:
            raise InputError(f"order: expected at most {MOST_PERMUTED} pipelines for 'best', found {count}")
        self._visit(Ledger.empty(self.instance), {})

    @property
    def notes(self) -> dict[str, object]:
        """What to record of the orders."""
        return {
            "orders": len(self.values) + self.out_of_resource,
            "orders_out_of_resource": self.out_of_resource,
            "best_order_ticks": min(self.values, default=None),
            "worst_order_ticks": max(self.values, default=None),
            "order": [self.instance.pipelines[p].name for p in self.order],
        }

    def _visit(self, ledger: Ledger, chosen: dict[int, Choice]) -> None:
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
            choice = self.plan(index, ledger)
            if self.over():
                return
            if choice is None:
                self.out_of_resource += factorial(len(rest) - 1)
                continue
            self._visit(ledger.placed(self.tables[index], *choice), chosen | {index: choice})
