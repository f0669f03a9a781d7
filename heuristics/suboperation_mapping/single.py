"""The single mapping strategy: the whole iteration on one accelerator (MTrain, Sec. VI-C).

With one share and no transfers the makespan is the sum of the computation. Which accelerator IP (DarkFPGA or EF-Train)
runs on the device is a property of the instance. Interpretation: the paper takes the most resource-abundant FPGA; here
the fastest one that fits is taken, or the one named by ``accelerator``. The order of execution is FP by layer, then
by falling layer WU before BP, which frees memory as early as possible.
"""

from __future__ import annotations

from mapgap.core import Budget, InputError, SolveResult
from mapgap.heuristics.suboperation_mapping.common import result
from mapgap.problems.suboperation_mapping import Instance
from mapgap.problems.suboperation_mapping.shared.lowered import lower
from mapgap.problems.suboperation_mapping.shared.mapped import Mapped, alone


def best_single(instance: Instance, accelerator: int | None = None) -> Mapped | None:
    """Everything on the fastest accelerator that fits (ties by index), or on the given one."""
    count = len(instance.accelerators)
    lowered = lower(instance, (instance.batch, *[0] * (count - 1)))
    tried = [alone(lowered, a) for a in (range(count) if accelerator is None else [accelerator])]
    return min((mapped for mapped in tried if mapped is not None), key=lambda mapped: mapped.makespan, default=None)


def run(instance: Instance, budget: Budget, accelerator: str = "") -> SolveResult:
    """Single mapping strategy, on the best accelerator or the one named.

    Raises
    ------
    InputError
        No accelerator of that name.
    """
    names = [a.name for a in instance.accelerators]
    if accelerator and accelerator not in names:
        raise InputError(f"accelerator: expected one of {', '.join(names)}, found {accelerator!r}")
    mapped = best_single(instance, names.index(accelerator) if accelerator else None)
    return result(mapped, budget, accelerator=None if mapped is None else names[int(mapped.location[0])])
