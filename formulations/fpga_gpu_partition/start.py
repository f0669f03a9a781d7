"""What every exact method begins with: a plan that is announced at once, and a bound that needs no configurations."""

from __future__ import annotations

from collections.abc import Iterator

from mapgap.core import Budget, SolveResult, Status, Stop
from mapgap.heuristics.fpga_gpu_partition.search.annealing import first_plan
from mapgap.problems.fpga_gpu_partition import Instance, Plan

NETWORK = 40
"""Layers from which one annealing is rarely near the best plan."""
FURTHER, FURTHER_S, EFFORT = 0.2, 0.5, 4
"""For how long further annealings begin, as a part of the budget and in seconds, and how much longer each is."""
LATE = "the time ended while configurations were enumerated"


def announced(instance: Instance, budget: Budget) -> Plan | None:
    """The first plan, if the annealing finds one; announced."""
    plan = first_plan(instance, budget.seed)
    if plan is not None:
        budget.report(plan=plan)
    return plan


def further(instance: Instance, budget: Budget) -> Iterator[Plan]:
    """More plans for methods whose engine takes long for whole networks: longer annealings, for a part of the time."""
    end = budget.elapsed_s + min(FURTHER * budget.time_s, FURTHER_S)
    turn = 0
    while len(instance.layers) >= NETWORK and budget.elapsed_s < end:
        turn += 1
        plan = first_plan(instance, budget.seed + turn, EFFORT)
        if plan is not None:
            yield plan


def relaxed(instance: Instance) -> int:
    """No plan has a smaller value: every module under the quickest and under the cheapest options of its layers.

    A module is at least as long as its queues are busy with any one layer, and what runs costs its energy.
    """
    latency = energy = 0
    for module in instance.modules:
        quickest = max(min(max(o.gpu_ticks, o.fpga_ticks) for o in layer.options) for layer in module.layers)
        latency += quickest
        energy += instance.standby_energy(quickest)
        energy += sum(min(o.gpu_energy + o.fpga_energy for o in layer.options) for layer in module.layers)
    return instance.value(energy, latency)


def without_tables(instance: Instance, plan: Plan | None, stop: Stop, reason: str) -> SolveResult:
    """The result of a run that has not come to its configurations."""
    status = Status.UNKNOWN if plan is None else Status.FEASIBLE
    return SolveResult(status, stop, plan, relaxed(instance), reason=reason)


def no_plan(instance: Instance) -> str:
    """The reason of an infeasible instance that ``diagnose`` does not see."""
    limits = [f"{instance.fabric.multipliers} multipliers", f"{instance.fabric.m20k} M20K blocks"]
    if instance.latency_limit is not None:
        limits.append(f"{instance.latency_limit} ticks")
    if instance.energy_limit is not None:
        limits.append(f"{instance.energy_limit} energy units")
    return f"no choice of options stays within {', '.join(limits)}"
