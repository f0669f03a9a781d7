"""Plain links for methods that know neither one medium nor latencies (rules 18, 19), and what they then find."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from mapgap.core import SolveResult, Status, Stop
from mapgap.problems.hybrid_pipeline.evaluate import evaluate
from mapgap.problems.hybrid_pipeline.instance import Instance, Plan

PLAIN = "planned for links of their own without latencies"
"""What a method did that knows no others."""


def restricted(instance: Instance) -> tuple[Instance, Callable[[SolveResult], SolveResult]]:
    """The same devices on links of their own without latencies, and how its results are results of the instance.

    Both have the same plans that break no rule, and on one medium none takes less time, so a bound without it holds.
    Of a bound without latencies nothing follows: later gradients may leave more time for an AllReduce.
    """
    rules = instance.execution.model_copy(update={"medium": "shared"}) if instance.in_turn else instance.execution
    plain = instance.model_copy(update={"medium": "links", "latency_ns": (), "execution": rules})

    def back(result: SolveResult) -> SolveResult:
        bound = None if instance.latency_ns else result.bound
        if not isinstance(result.plan, Plan):
            return replace(result, bound=bound)
        value = evaluate(instance, result.plan).objective
        proven = result.status is Status.OPTIMAL and bound is not None and bound == value
        stop = Stop.DONE if result.stop is Stop.PROVED and not proven else result.stop
        status = result.status if proven else Status.FEASIBLE
        reason = result.reason if proven else "; ".join(filter(None, (result.reason, PLAIN)))
        claimed = value if proven else None
        return replace(result, status=status, stop=stop, bound=bound, claimed=claimed, enumerated=False, reason=reason)

    return plain, back
