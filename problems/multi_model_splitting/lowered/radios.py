"""Transmissions that share their radios only, or take the same whoever receives, for methods that do not know better.

Of the latencies of a device (rule 14) the least is part of every transmission of bytes; the others are so much later.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace
from typing import Any

from mapgap.core import SolveResult, Status, Stop
from mapgap.problems.multi_model_splitting.evaluate import evaluate
from mapgap.problems.multi_model_splitting.instance import Instance, Pipeline, Plan

PLAIN = "planned as if transmissions shared their radios only"
SOONEST = "planned as if messages were no later to one device than to another"
"""What a method did that knows no medium, or no latencies."""


def least_late(instance: Instance) -> list[int]:
    """Ticks that a message of each device takes at least beside its bytes."""
    n = range(len(instance.devices))
    return [min((instance.late_ticks(d, e) for e in n if e != d), default=0) for d in n]


def sent(instance: Instance, pipeline: Pipeline) -> list[tuple[int, ...]]:
    """By boundary what a transmission takes at least, by sender."""
    least = least_late(instance)
    return [
        tuple(ticks + late * (cut.bytes > 0) for ticks, late in zip(cut.transmit, least, strict=True))
        for cut in pipeline.boundaries
    ]


def later(instance: Instance) -> dict[tuple[int, int], int]:
    """By sender and receiver the ticks beyond the least of the sender, where there are any."""
    n, least = range(len(instance.devices)), least_late(instance)
    pairs = {(d, e): instance.late_ticks(d, e) - least[d] for d in n for e in n if d != e}
    return {pair: ticks for pair, ticks in pairs.items() if ticks}


def restricted(instance: Instance, gone: Collection[str]) -> tuple[Instance, Callable[[SolveResult], SolveResult]]:
    """The same instance without the medium or latencies, and how its results are results of this one.

    Both have the same plans that break no rule, and none is worth less here: a bound holds. Where all messages of a
    device take the same beside their bytes, that is part of its transmissions, and the plans have the same values.
    """
    changes: dict[str, Any] = {"medium": "links"} if "medium" in gone else {}
    if "latency_ns" in gone:
        changes["latency_ns"] = ()
        changes["pipelines"] = tuple(_soonest(instance, pipeline) for pipeline in instance.pipelines)
    told = [PLAIN] * ("medium" in gone) + [SOONEST] * ("latency_ns" in gone and bool(later(instance)))

    def back(result: SolveResult) -> SolveResult:
        if not told or not isinstance(result.plan, Plan):
            return result
        value = evaluate(instance, result.plan).objective
        proven = result.status is Status.OPTIMAL and result.bound == value
        return replace(
            result,
            status=result.status if proven else Status.FEASIBLE,
            stop=Stop.DONE if result.stop is Stop.PROVED and not proven else result.stop,
            claimed=value if proven else None,
            enumerated=False,
            reason=result.reason if proven else "; ".join(filter(None, (result.reason, *told))),
        )

    return instance.model_copy(update=changes), back


def _soonest(instance: Instance, pipeline: Pipeline) -> Pipeline:
    cuts = zip(pipeline.boundaries, sent(instance, pipeline), strict=True)
    return pipeline.model_copy(update={"boundaries": tuple(c.model_copy(update={"transmit": t}) for c, t in cuts)})
