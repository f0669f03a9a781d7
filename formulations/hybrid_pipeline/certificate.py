"""Proofs for :mod:`mapgap.problems.hybrid_pipeline.certificate`: empty, since the checker searches all plans itself."""

from __future__ import annotations

from typing import Any

from mapgap.core import Budget, InputError
from mapgap.problems.hybrid_pipeline.certificate import check
from mapgap.problems.hybrid_pipeline.certificate.facts import fault


def prove(instance: dict[str, Any], bound: int, budget: Budget) -> dict[str, Any] | None:
    """The empty proof that no plan has an objective below ``bound``; ``None`` if one has. The budget is not needed.

    Raises
    ------
    InputError
        The argument of the checker does not cover the instance.
    """
    reason = fault(instance)
    if reason is not None:
        raise InputError(f"no certificates for it: {reason}")
    return {} if check(instance, bound, {}) is None else None
