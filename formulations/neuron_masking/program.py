"""What the integer programs of neuron masking share: decisions are the counts of a fleet under one cycle time.

Exact methods solve one device at a time (:mod:`mapgap.formulations.neuron_masking.fleet`) by the program of an instance
with one device; the program of a whole fleet is the same with more devices, and one per cycle time holds all plans.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

from mapgap.core import PlanBase
from mapgap.formulations.neuron_masking.fleet import scaled
from mapgap.problems.neuron_masking import Instance, Mask, Plan
from mapgap.problems.neuron_masking.lowered.chain import Chain
from mapgap.solvers.model import Model, Part, Value


class MaskProgram(Model):
    """An integer program over the counts ``n[d][i]`` of a fleet under one cycle time.

    It minimises minus the neurons, the contribution (for ``rate``, too) or the smallest share of the fleet.

    Attributes
    ----------
    instance : Instance
    cycle : int
        Index of the cycle time.
    chains : list of Chain, one per device
    n : list of list of variables, shape (devices, layers)
    """

    sign = -1

    def __init__(self, instance: Instance, cycle: int) -> None:
        self.instance, self.cycle = instance, cycle
        self.chains = [Chain.of(instance, d, cycle) for d in range(len(instance.devices))]
        self.n: list[list[Any]] = []

    def assignment(self, plan: PlanBase) -> Mapping[Any, int] | None:
        """The counts. A plan that keeps others than the neurons of largest contribution has no point: exact methods
        decide counts only (rule 9 of :mod:`mapgap.problems.neuron_masking`)."""
        if not isinstance(plan, Plan) or plan.cycle != self.cycle or len(plan.masks) != len(self.n):
            return None
        found: dict[Any, int] = {}
        for device, mask, row in zip(self.instance.devices, plan.masks, self.n, strict=True):
            if len(mask.kept) != len(row):
                return None
            for i, chosen in enumerate(mask.chosen or ()):
                if i >= len(row) or chosen not in (None, tuple(sorted(device.ranking(i)[: mask.kept[i]]))):
                    return None
            found.update(zip(row, mask.kept, strict=True))
        return found

    def plan(self, value: Value) -> Plan:
        masks = tuple(Mask(kept=tuple(value(n) for n in row)) for row in self.n)
        return Plan(cycle=self.cycle, masks=masks)

    def objective(self, value: int) -> int:
        """For ``rate`` the program's value stands for a contribution, which grows with the rate."""
        return scaled(self.instance, self.cycle, super().objective(value))


def parts(instance: Instance, program: Callable[[Instance, int, Collection[int]], MaskProgram]) -> list[Part]:
    """One program of the whole fleet per cycle time. None leaves a plan of counts out, complete or not."""

    def part(cycle: int) -> Part:
        def build(complete: bool = False, without: Collection[int] = ()) -> MaskProgram:
            return program(instance, cycle, without)

        return Part(f"cycle {instance.cycle_ms[cycle]} ms", build)

    return [part(cycle) for cycle in range(len(instance.cycle_ms))]
