"""One device alone: everything on the GPU (the paper's homogeneous platform), or as a whole on the FPGA.

``fpga_only`` gives every layer the option on the FPGA with the least multipliers and M20K, then speeds up the layer
that gains the most ticks per multiplier while the fabric lasts. Direct hardware mapping of a whole network rarely fits
("cannot fully substitute the GPU", abstract): the answer is then UNKNOWN.
"""

from __future__ import annotations

from mapgap.core import Budget, SolveResult, Status, Stop
from mapgap.heuristics.fpga_gpu_partition.construction import free_fabric, on_gpu, result
from mapgap.problems.fpga_gpu_partition import Instance, Option


def run_gpu(instance: Instance, budget: Budget) -> SolveResult:
    """Everything on the GPU."""
    options = on_gpu(instance)
    bound = [layer.name for layer, o in zip(instance.layers, options, strict=True) if o.kind != "gpu"]
    if bound:
        return SolveResult(Status.UNKNOWN, Stop.DONE, reason=f"no option on the GPU alone: layers {', '.join(bound)}")
    return result(instance, budget, options)


def run_fpga(instance: Instance, budget: Budget) -> SolveResult:
    """Every layer on the FPGA."""
    sides = [[o for o in layer.options if o.kind == "fpga"] for layer in instance.layers]
    bound = [
        layer.name
        for layer, held in zip(instance.layers, sides, strict=True)
        if not held and layer.operation != "input"
    ]
    if bound:
        return SolveResult(Status.UNKNOWN, Stop.DONE, reason=f"no option on the FPGA alone: layers {', '.join(bound)}")
    options = [
        min(held or layer.options, key=lambda o: (o.multipliers, o.m20k, o.fpga_ticks))
        for layer, held in zip(instance.layers, sides, strict=True)
    ]
    while min(free := free_fabric(instance, options)) >= 0:
        step = _best_step(options, sides, free)
        if step is None:
            break
        options[step[0]] = step[1]
    return result(instance, budget, options)


def _best_step(options: list[Option], sides: list[list[Option]], free: tuple[int, int]) -> tuple[int, Option] | None:
    """The faster option that saves the most ticks per multiplier and fits."""
    steps = [
        ((old.fpga_ticks - new.fpga_ticks) / max(1, new.multipliers - old.multipliers), -index, new)
        for index, (old, held) in enumerate(zip(options, sides, strict=True))
        for new in held
        if new.fpga_ticks < old.fpga_ticks
        and new.multipliers - old.multipliers <= free[0]
        and new.m20k - old.m20k <= free[1]
    ]
    if not steps:
        return None
    _, index, new = max(steps, key=lambda step: step[:2])
    return -index, new
