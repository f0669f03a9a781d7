"""Recovery after a failure (Sec. 3.4, Figs. 16 and 17): time until training goes on, and throughput over time."""

from __future__ import annotations

from problems.hybrid_pipeline.evaluate import evaluate, migration_ticks
from problems.hybrid_pipeline.instance import Instance, Plan


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
