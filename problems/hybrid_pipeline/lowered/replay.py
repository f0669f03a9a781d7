"""Recovery after a failure (Sec. 3.4, Figs. 16 and 17): time until training goes on, and throughput over time."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from functools import wraps

from mapgap.core import Budget, SolveResult
from mapgap.problems.hybrid_pipeline.evaluate import evaluate, migration_ticks
from mapgap.problems.hybrid_pipeline.instance import Instance, Plan

FAILURE_S = 100.0
"""When the device stops in Fig. 17 ("the 100th timestamp")."""

DETECTION_S = 1.0
"""Until the coordinator misses the heartbeat and its probe fails. Assumed: Sec. 3.4 prints no period."""


def coordinator_ticks(instance: Instance, plan: Plan, coordinator: int) -> int:
    """Transport of heavy rescheduling: all layers gather at the coordinator, then each stage goes to its members.

    Transfers at the coordinator follow one another, since all of them use its link.
    """
    if instance.replanning is None:
        return 0
    held = instance.replanning.held
    total = 0
    for layer, facts in enumerate(instance.layers):
        holders = [d for d, row in enumerate(held) if any(a <= layer < b for a, b in row)]
        if coordinator not in holders:
            source = max(holders, key=lambda d: (instance.bandwidth[d][coordinator], -d))
            total += instance.transfer_ticks(facts.weight_bytes, instance.bandwidth[source][coordinator])
    for stage in plan.stages:
        weights = sum(layer.weight_bytes for layer in instance.layers[stage.start : stage.stop])
        for device in stage.devices:
            if device != coordinator:
                total += instance.transfer_ticks(weights, instance.bandwidth[coordinator][device])
    return total


def strongest(instance: Instance) -> int:
    """The device that is fastest on the whole network with the largest micro-batch; Sec. 5.5 plans on it."""

    def total(device: int) -> int:
        kind = instance.device_type(device)
        return sum(row[-1] for table in (kind.forward, kind.backward) for row in table)

    return min(range(len(instance.devices)), key=lambda device: (total(device), device))


def recovery_s(instance: Instance, plan: Plan, planning_s: float, coordinator: int | None = None) -> float:
    """Seconds from the detected failure until the new pipeline starts: planning and transport of weights.

    Without a coordinator weights move concurrently between the devices (rule 11); with one they pass through it.
    """
    moved = migration_ticks(instance, plan) if coordinator is None else coordinator_ticks(instance, plan, coordinator)
    return planning_s + moved * instance.seconds_per_tick


def throughput(
    instance: Instance, plan: Plan, failure_s: float, recovery: float, until_s: float
) -> list[tuple[float, float]]:
    """Corners ``(second, samples per second)`` of the throughput over time, as in Fig. 17.

    Raises
    ------
    ValueError
        The instance has no failure, or the plan no latency.
    """
    result = evaluate(instance, plan)
    if instance.replanning is None or result.objective is None:
        raise ValueError("expected an instance with a failure and a plan with a latency")
    old = instance.replanning.old_latency * instance.seconds_per_tick
    before = instance.mini_batch / old if old else 0.0
    after = float(result.terms["samples_per_s"] or 0.0)
    resumed = failure_s + recovery
    return [(0.0, before), (failure_s, before), (failure_s, 0.0), (resumed, 0.0), (resumed, after), (until_s, after)]


def replayed(run: Callable[..., SolveResult], through_coordinator: bool = False) -> Callable[..., SolveResult]:
    """Let a method note how training goes on after a failure.

    The note ``replay`` holds ``detection_s``, ``planning_s`` (process CPU time of the run), ``transport_s`` of the
    weights (with ``through_coordinator`` by way of the strongest device) and ``corners``, the throughput over time from
    0 to twice :data:`FAILURE_S`. Results for instances without a failure are unchanged.
    """

    @wraps(run)
    def watched(instance: Instance, budget: Budget, **options: object) -> SolveResult:
        begin = time.process_time()
        result = run(instance, budget, **options)
        planning = time.process_time() - begin
        if instance.replanning is None or not isinstance(result.plan, Plan):
            return result
        coordinator = strongest(instance) if through_coordinator else None
        recovery = recovery_s(instance, result.plan, planning, coordinator)
        note = {
            "detection_s": DETECTION_S,
            "planning_s": planning,
            "transport_s": recovery - planning,
            "corners": throughput(instance, result.plan, FAILURE_S, DETECTION_S + recovery, 2 * FAILURE_S),
        }
        return replace(result, notes={**result.notes, "replay": note})

    return watched
