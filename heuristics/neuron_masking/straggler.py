"""What the heuristics of neuron masking share: one device under one cycle time, and a search over cycle times."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mapgap.core import Budget, SolveResult, Status, Stop
from mapgap.problems.neuron_masking import MS_PER_HOUR, Device, Instance, Mask, Plan, costs

NOTHING_FITS = "the method found no mask within the limits; this proves nothing about other masks"


@dataclass(frozen=True)
class Straggler:
    """One device under one cycle time.

    Attributes
    ----------
    instance : Instance
    device : Device
    cycle : int
        Index of the cycle time.
    """

    instance: Instance
    device: Device
    cycle: int

    @property
    def neurons(self) -> list[int]:
        """N_i of every layer."""
        return [layer.neurons for layer in self.instance.layers]

    @property
    def least(self) -> list[int]:
        """Fewest neurons of every layer."""
        return [layer.least for layer in self.instance.layers]

    def usage(self, kept: Sequence[int]) -> tuple[tuple[int, int], ...]:
        """Pairs (used, limit) of Eq. (5): time, work and, in hard mode, memory."""
        cost = costs(self.instance, self.device, kept)
        rows = [(cost.time, self.device.time_limit[self.cycle]), (cost.work, self.device.work_limit[self.cycle])]
        if self.instance.memory_mode == "hard":
            rows.append((cost.memory, self.device.memory_limit))
        return tuple(rows)

    def fits(self, kept: Sequence[int]) -> bool:
        """Whether Eq. (5) holds."""
        return all(used <= limit for used, limit in self.usage(kept))


SolveOne = Callable[[Straggler], Mask | None]


def solve_fleet(instance: Instance, budget: Budget, solve_one: SolveOne) -> SolveResult:
    """Every device by ``solve_one``, under the longest cycle time, or for ``rate`` under each of them.

    Given the cycle time the devices are independent. A longer cycle allows all masks of a shorter one, so that only
    ``rate``, contribution per hour, can prefer a shorter one.
    """
    last = len(instance.cycle_ms) - 1
    best: Plan | None = None
    best_rate = -1
    for cycle in range(last, -1, -1) if instance.objective == "rate" else [last]:
        if best is not None and budget.exhausted:
            return SolveResult(Status.FEASIBLE, Stop.TIME, best)
        masks = [solve_one(Straggler(instance, device, cycle)) for device in instance.devices]
        if any(mask is None for mask in masks):
            continue
        plan = Plan(cycle=cycle, masks=tuple(mask for mask in masks if mask is not None))
        rate = MS_PER_HOUR * contribution(instance, plan) // instance.cycle_ms[cycle]
        if rate > best_rate:
            best, best_rate = plan, rate
            budget.report(plan=plan)
    if best is None:
        return SolveResult(Status.UNKNOWN, Stop.DONE, reason=NOTHING_FITS)
    return SolveResult(Status.FEASIBLE, Stop.DONE, best)


def contribution(instance: Instance, plan: Plan) -> int:
    """Sum of U over the kept neurons of all devices, without the checks of the evaluator."""
    total = 0
    for device, mask in zip(instance.devices, plan.masks, strict=True):
        for row, n, chosen in zip(device.contributions, mask.kept, mask.chosen or [None] * len(mask.kept), strict=True):
            total += sum(sorted(row, reverse=True)[:n] if chosen is None else (row[j] for j in chosen))
    return total
