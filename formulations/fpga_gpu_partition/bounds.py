"""What is known of an instance before its configurations are: a bound, and the words where there is no more."""

from __future__ import annotations

from mapgap.core import SolveResult, Status, Stop
from mapgap.problems.fpga_gpu_partition import Instance, Plan

LATE = "the time ended while configurations were enumerated"


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
    """The result of a run that has not come to its configurations: the plan it was given, if any."""
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
