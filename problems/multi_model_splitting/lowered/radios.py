"""Radios without one medium, for methods that do not know it (rule 13), and what they then find."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from mapgap.core import SolveResult, Status, Stop
from mapgap.problems.multi_model_splitting.evaluate import evaluate
from mapgap.problems.multi_model_splitting.instance import Instance, Plan

PLAIN = "planned as if transmissions shared their radios only"
"""What a method did that knows no medium."""


def restricted(instance: Instance) -> tuple[Instance, Callable[[SolveResult], SolveResult]]:
    """The same instance without the medium, and how its results are results of this one.

    Both have the same plans that break no rule, and on the medium no cycle is shorter: a bound holds.
    """

    def back(result: SolveResult) -> SolveResult:
        if not isinstance(result.plan, Plan):
            return result
        value = evaluate(instance, result.plan).objective
        proven = result.status is Status.OPTIMAL and result.bound == value
        return replace(
            result,
            status=result.status if proven else Status.FEASIBLE,
            stop=Stop.DONE if result.stop is Stop.PROVED and not proven else result.stop,
            claimed=value if proven else None,
            enumerated=False,
            reason=result.reason if proven else "; ".join(filter(None, (result.reason, PLAIN))),
        )

    return instance.model_copy(update={"medium": "links"}), back
