"""Proofs for :mod:`mapgap.problems.hybrid_pipeline.certificate`: empty, since the checker searches all plans itself."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mapgap.core import Budget, InputError, OutOfTime
from mapgap.problems.hybrid_pipeline.certificate.facts import fault
from mapgap.problems.hybrid_pipeline.certificate.labels import Label
from mapgap.problems.hybrid_pipeline.certificate.search import Search, Stage
from mapgap.problems.hybrid_pipeline.certificate.transfers import Group


def prove(instance: dict[str, Any], bound: int, budget: Budget) -> dict[str, Any] | None:
    """The empty proof that no plan has an objective below ``bound``; ``None`` if one has, or the budget ends.

    Raises
    ------
    InputError
        The argument of the checker does not cover the instance.
    """
    reason = fault(instance)
    if reason is not None:
        raise InputError(f"no certificates for it: {reason}")
    try:
        values = [_Limited(instance, size, bound, budget).better() for size in instance["micro_batch_sizes"]]
    except OutOfTime:
        return None
    return {} if all(value is None for value in values) else None


class _Limited(Search):
    """The checker's search, which ends with the budget."""

    def __init__(self, instance: dict[str, Any], batch: int, bound: int, budget: Budget) -> None:
        super().__init__(instance, batch, bound)
        self.budget = budget

    def holds(self, i: int, j: int, group: Group) -> bool:
        if self.budget.exhausted:
            raise OutOfTime
        return super().holds(i, j, group)

    def extended(self, labels: list[Label], stage: Stage, kept: int, c: int, left: Group) -> Iterator[Label]:
        if self.budget.exhausted:
            raise OutOfTime
        return super().extended(labels, stage, kept, c, left)
