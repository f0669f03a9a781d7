"""A fleet as a series of single problems: one device under one cycle time each.

Given the cycle time the devices do not touch each other, so the value of a cycle time is the sum (for the smallest
share: the minimum) of single optima, and so is a bound. A longer cycle allows every mask of a shorter one: the longest
serves every objective but ``rate``, and the contribution of a cycle bounds that of all shorter ones.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from mapgap.core import Budget, PlanError, SolveResult, Status, Stop
from mapgap.formulations.neuron_masking._chain import Chain
from mapgap.problems.neuron_masking import MS_PER_HOUR, Instance, Mask, Plan
from mapgap.problems.neuron_masking.evaluate import diagnose

Report = Callable[[Sequence[int] | None, int | None], None]


@dataclass(frozen=True)
class Single:
    """What is known of one device under one cycle time that has a mask.

    Attributes
    ----------
    stop : Stop
        PROVED when ``bound`` equals the value of ``kept``.
    value : int or None
        Value of ``kept``.
    kept : tuple of int or None
    bound : int
        Nothing is better.
    notes : mapping
    """

    stop: Stop
    value: int | None
    kept: tuple[int, ...] | None
    bound: int
    notes: dict[str, Any] = field(default_factory=dict)


SolveSingle = Callable[[Chain, Budget, Report], Single]


class _Search:
    """Cycle times from the longest down."""

    def __init__(self, instance: Instance, budget: Budget, solve_single: SolveSingle) -> None:
        self.instance, self.budget, self.solve_single = instance, budget, solve_single
        self.value: int | None = None
        self.plan: Plan | None = None
        self.stops: list[Stop] = []
        self.notes: dict[str, Any] = {"singles": 0}
        self.cycles = list(reversed(range(len(instance.cycle_ms))))
        if instance.objective != "rate":
            self.cycles = self.cycles[:1]

    def scaled(self, value: int, cycle: int) -> int:
        """Objective of a fleet whose devices reach ``value`` together."""
        return MS_PER_HOUR * value // self.instance.cycle_ms[cycle] if self.instance.objective == "rate" else value

    def joined(self, values: Sequence[int]) -> int:
        return min(values) if self.instance.objective == "smallest_share" else sum(values)

    def run(self) -> SolveResult:
        bounds: list[int] = []
        ceiling: int | None = None  # of the value of every shorter cycle
        for position, cycle in enumerate(self.cycles):
            if not _has_masks(self.instance, cycle):
                break  # nor does a shorter one
            if ceiling is not None and self.value is not None and self.scaled(ceiling, cycle) <= self.value:
                continue
            ceiling = self._cycle(cycle, len(self.cycles) - position)
            bounds.append(self.scaled(ceiling, cycle))
        bound = max(bounds)
        if self.value is not None and bound <= self.value:
            return SolveResult(Status.OPTIMAL, Stop.PROVED, self.plan, self.value, self.value, notes=self.notes)
        stop = next((stop for stop in self.stops if stop is not Stop.PROVED), Stop.TIME)
        if self.plan is None:
            return SolveResult(Status.UNKNOWN, stop, bound=bound, reason="no mask found in time", notes=self.notes)
        return SolveResult(Status.FEASIBLE, stop, self.plan, bound, self.value, notes=self.notes)

    def _cycle(self, cycle: int, left: int) -> int:
        """Solve all devices under one cycle time; returns the bound of their joint value."""
        count = len(self.instance.devices)
        alone = count == 1 and len(self.cycles) == 1
        masks: list[tuple[int, ...]] = []
        values: list[int] = []
        bounds: list[int] = []

        def report(kept: Sequence[int] | None, bound: int | None) -> None:
            if alone:  # improvements of a part say nothing of the whole
                plan = None if kept is None else Plan(cycle=cycle, masks=(Mask(kept=tuple(kept)),))
                self.budget.report(plan=plan, bound=None if bound is None else self.scaled(bound, cycle))

        for d in range(count):
            chain = Chain.of(self.instance.single(d, cycle))
            part = Budget(
                time_s=self.budget.remaining_s / ((left - 1) * count + count - d),
                memory_mb=self.budget.memory_mb,
                workers=self.budget.workers,
                seed=self.budget.seed,
            ).start()
            found = self.solve_single(chain, part, report)
            self.stops.append(found.stop)
            self.notes["singles"] += 1
            for key, number in found.notes.items():
                self.notes[key] = self.notes.get(key, 0) + number
            bounds.append(found.bound)
            if found.value is not None and found.value > found.bound:
                raise PlanError(f"a mask of {found.value} above the proven bound {found.bound}")
            if found.kept is not None and found.value is not None:
                masks.append(found.kept)
                values.append(found.value)
        if len(masks) == count:
            value = self.scaled(self.joined(values), cycle)
            if self.value is None or value > self.value:
                self.value = value
                self.plan = Plan(cycle=cycle, masks=tuple(Mask(kept=kept) for kept in masks))
                self.budget.report(plan=self.plan)
        return self.joined(bounds)


def _has_masks(instance: Instance, cycle: int) -> bool:
    """Every device has a mask: costs grow with every n_i, so the least neurons of every layer decide."""
    chains = [Chain.of(instance.single(d, cycle)) for d in range(len(instance.devices))]
    return all(chain.fits(chain.lower) for chain in chains)


def solve(instance: Instance, budget: Budget, solve_single: SolveSingle) -> SolveResult:
    """Solve a fleet by ``solve_single``, which is only called for instances that have a mask."""
    if not _has_masks(instance, len(instance.cycle_ms) - 1):
        return SolveResult(Status.INFEASIBLE, Stop.PROVED, reason="; ".join(diagnose(instance)))
    return _Search(instance, budget, solve_single).run()
