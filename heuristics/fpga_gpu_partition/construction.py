"""What the heuristics of the FPGA-GPU partition share: a plan under construction and the result of a run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mapgap.core import Budget, Evaluation, SolveResult, Status, Stop
from mapgap.problems.fpga_gpu_partition import Instance, Option, Plan
from mapgap.problems.fpga_gpu_partition.evaluate import evaluate


def on_gpu(instance: Instance) -> list[Option]:
    """Every layer whole on the GPU; where there is no such option, the one that takes the least of the fabric."""
    return [
        min(layer.options, key=lambda o: (o.kind != "gpu", o.multipliers, o.m20k, o.gpu_ticks))
        for layer in instance.layers
    ]


def taken(free: tuple[int, int], options: Sequence[Option], sign: int = 1) -> tuple[int, int]:
    """What is free after options are taken, or with sign -1 given back."""
    return (
        free[0] - sign * sum(option.multipliers for option in options),
        free[1] - sign * sum(option.m20k for option in options),
    )


def free_fabric(instance: Instance, options: Sequence[Option]) -> tuple[int, int]:
    """Multipliers and M20K blocks left over; negative where the options exceed the fabric."""
    return taken((instance.fabric.multipliers, instance.fabric.m20k), options)


def plan_of(options: Sequence[Option]) -> Plan:
    return Plan(options=tuple(option.name for option in options))


def evaluated(instance: Instance, options: Sequence[Option]) -> Evaluation:
    return evaluate(instance, plan_of(options))


def result(instance: Instance, budget: Budget, options: Sequence[Option], **notes: Any) -> SolveResult:
    """FEASIBLE with the plan, or UNKNOWN with the rules that it breaks."""
    found = evaluated(instance, options)
    if not found.feasible:
        broken = "; ".join(f"{v.rule}: {v.message}" for v in found.violations)
        return SolveResult(
            Status.UNKNOWN, Stop.DONE, reason=f"the method's plan breaks {broken}; this proves nothing", notes=notes
        )
    plan = plan_of(options)
    budget.report(plan=plan)
    mapped = sum(option.kind != "gpu" for option in options if option.multipliers)
    return SolveResult(Status.FEASIBLE, Stop.DONE, plan, notes={"layers_on_fpga": mapped, **notes})
