"""The single mapping strategy: the whole iteration on one accelerator (MTrain, Sec. VI-C).

With one share and no transfers the makespan is the sum of the computation. Which accelerator IP (DarkFPGA or EF-Train)
runs on the device is a property of the instance. Interpretation: the paper takes the most resource-abundant FPGA; here
the fastest one that fits is taken, or the one named by ``accelerator``. The order of execution is FP by layer, then
by falling layer WU before BP; where the DRAM does not hold that, any in which it holds everything.
"""

from __future__ import annotations

from mapgap.core import Budget, InputError, SolveResult
from mapgap.heuristics.suboperation_mapping.common import result
from mapgap.problems.suboperation_mapping import Instance
from mapgap.problems.suboperation_mapping.lowered.mapped import best_single


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
