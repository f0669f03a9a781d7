"""A fleet as a series of single problems: one device under one cycle time each.

Given the cycle time the devices do not touch each other, so the value of a cycle time is the sum (for the smallest
share: the minimum) of single optima, and so is a bound. A longer cycle allows every mask of a shorter one: the longest
serves every objective but ``rate``, and the contribution of a cycle bounds that of all shorter ones.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from mapgap.core import Budget, PlanBase, PlanError, SolveResult, Status, Stop
from mapgap.formulations.neuron_masking.prices import quick_plan
from mapgap.problems.neuron_masking import MS_PER_HOUR, Instance, Mask, Plan
from mapgap.problems.neuron_masking.evaluate import diagnose
from mapgap.problems.neuron_masking.lowered.chain import Chain
from mapgap.solvers.model import Model, prove

SolveSingle = Callable[[Instance, Budget], SolveResult]
"""Solves an instance of one device and one cycle time that has a mask (see :meth:`Instance.single`)."""


def scaled(instance: Instance, cycle: int, value: int) -> int:
    """The objective of a fleet whose devices reach ``value`` together; for ``rate`` that is their contribution."""
    return MS_PER_HOUR * value // instance.cycle_ms[cycle] if instance.objective == "rate" else value


def joined(instance: Instance, values: Sequence[int]) -> int:
    """What the devices of a fleet reach together."""
    return min(values) if instance.objective == "smallest_share" else sum(values)


def solve(instance: Instance, budget: Budget, solve_single: SolveSingle) -> SolveResult:
    """Solve a fleet by ``solve_single``, which is only called for instances that have a mask.

    Raises
    ------
    PlanError
        A single result is refuted: a mask outside the limits or above its bound, a wrong claim or infeasibility.
    """
    if not _has_masks(instance, len(instance.cycle_ms) - 1):
        return SolveResult(Status.INFEASIBLE, Stop.PROVED, reason="; ".join(diagnose(instance)))
    search = _Search(instance, budget, solve_single)
    search.begin()
    return search.run()


def _has_masks(instance: Instance, cycle: int) -> bool:
    """Every device has a mask: costs grow with every n_i, so the least neurons of every layer decide."""
    chains = [Chain.of(instance, d, cycle) for d in range(len(instance.devices))]
    return all(chain.fits(chain.lower) for chain in chains)


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

    def begin(self) -> None:
        """Announce a plan at once; what the single problems find later need not be the better one.

        The search is more thorough than that of the quick planner, which also begins with ELFISH's counts.
        """
        plan = quick_plan(self.instance, self.budget, thorough=True)
        assert plan is not None  # the longest cycle time has masks
        chains = (Chain.of(self.instance, d, plan.cycle) for d in range(len(self.instance.devices)))
        values = [chain.worth(mask.kept) for chain, mask in zip(chains, plan.masks, strict=True)]
        self.value, self.plan = scaled(self.instance, plan.cycle, joined(self.instance, values)), plan

    def run(self) -> SolveResult:
        bounds: list[int] = []
        ceiling: int | None = None  # of the value of every shorter cycle
        for position, cycle in enumerate(self.cycles):
            if not _has_masks(self.instance, cycle):
                break  # nor does a shorter one
            if ceiling is not None and self._reached(scaled(self.instance, cycle, ceiling)):
                continue
            ceiling = self._cycle(cycle, len(self.cycles) - position)
            bounds.append(scaled(self.instance, cycle, ceiling))
        bound = max(bounds)
        if self._reached(bound):
            return SolveResult(Status.OPTIMAL, Stop.PROVED, self.plan, self.value, self.value, notes=self.notes)
        stop = next((stop for stop in self.stops if stop is not Stop.PROVED), Stop.TIME)
        if self.plan is None:
            return SolveResult(Status.UNKNOWN, stop, bound=bound, reason="no mask found in time", notes=self.notes)
        return SolveResult(Status.FEASIBLE, stop, self.plan, bound, self.value, notes=self.notes)

    def _reached(self, bound: int) -> bool:
        """The plan held is no worse."""
        return self.value is not None and bound <= self.value

    def _cycle(self, cycle: int, left: int) -> int:
        """Solve all devices under one cycle time; returns the bound of their joint value."""
        instance, count = self.instance, len(self.instance.devices)
        masks: list[Mask] = []
        values: list[int] = []
        bounds: list[int] = []
        first = self.plan.masks if self.plan is not None and self.plan.cycle == cycle else None
        for d in range(count):
            single = instance.single(d, cycle)
            part = Budget(
                time_s=self.budget.remaining_s / ((left - 1) * count + count - d),
                memory_mb=self.budget.memory_mb,
                workers=self.budget.workers,
                seed=self.budget.seed,
                listener=self._listener(cycle),
            ).start()
            found = self.solve_single(single, part)
            self.stops.append(found.stop)
            self.notes["singles"] += 1
            for key, each in found.notes.items():  # numbers, and lists of reasons
                self.notes[key] = self.notes[key] + each if key in self.notes else each
            chain = Chain.of(single)
            mask, value, bound = _checked(chain, found)
            if first is not None and (known := chain.worth(first[d].kept)) > value:
                if known > bound:
                    raise PlanError(f"a mask of {known} above the proven bound {bound}")
                mask, value = first[d], known
            bounds.append(bound)
            if mask is not None:
                masks.append(mask)
                values.append(value)
        if len(masks) == count:
            reached = scaled(instance, cycle, joined(instance, values))
            if self.value is None or reached > self.value:
                self.value, self.plan = reached, Plan(cycle=cycle, masks=tuple(masks))
                self.budget.report(plan=self.plan)
        return joined(instance, bounds)

    def _listener(self, cycle: int) -> Callable[[PlanBase | None, int | None], None] | None:
        """Hands on what a single problem announces if it is the whole; of a part it says nothing of the whole."""
        if len(self.instance.devices) > 1 or len(self.cycles) > 1:
            return None

        def hand_on(plan: PlanBase | None, bound: int | None) -> None:
            whole = Plan(cycle=cycle, masks=plan.masks) if isinstance(plan, Plan) else None
            self.budget.report(whole, None if bound is None else scaled(self.instance, cycle, bound))

        return hand_on


def _checked(chain: Chain, found: SolveResult) -> tuple[Mask | None, int, int]:
    """Mask, its worth and the bound of a single result, each checked in integers."""
    if found.status is Status.INFEASIBLE:
        raise PlanError("the engine finds no mask although the least neurons of every layer are one")
    whole = chain.worth(chain.upper)
    bound = whole if found.bound is None else min(whole, found.bound)
    if not isinstance(found.plan, Plan):
        return None, 0, bound
    mask = found.plan.masks[0]
    if not chain.fits(mask.kept):
        raise PlanError(f"the engine returns the mask {mask.kept}, which breaks a limit in integers")
    worth = chain.worth(mask.kept)
    if found.claimed is not None and found.claimed != worth:
        raise PlanError(f"the engine claims {found.claimed} for {mask.kept}, which is worth {worth}")
    if worth > bound:
        raise PlanError(f"a mask of {worth} above the proven bound {bound}")
    return mask, worth, bound


def steps(chain: Chain) -> int:
    """How often the contribution of the next neuron differs from that of the one before, over all layers.

    Where contributions do not count there are none (the smallest share).
    """
    found = 0
    for line, low, high in zip(chain.value, chain.lower, chain.upper, strict=False):
        gains = np.diff(np.asarray(line[low : high + 1], np.int64))
        found += 1 + int((np.diff(gains) != 0).sum())
    return found


def trusted(
    single: Instance,
    build: Callable[[Instance], Model],
    budget: Budget,
    *,
    step_s: float = 0.0,
    announce: bool = False,
    start: PlanBase | None = None,
) -> SolveResult:
    """What an engine proves of a single instance that has a mask, checked in integers.

    Parameters
    ----------
    build : callable
        Makes the model. Where the time left does not allow that, the start is the result.
    step_s : float
        Seconds that building and reading take per step of contribution, on a busy machine.
    start : plan, optional
        Announced, handed to the engine, and kept where the engine ends with less.
    """
    chain = Chain.of(single)

    def worth(plan: PlanBase) -> int | None:
        assert isinstance(plan, Plan)
        kept = plan.masks[0].kept
        return chain.worth(kept) if chain.fits(kept) else None

    known = None if start is None else worth(start)
    if known is not None:
        budget.report(plan=start)
    if step_s * steps(chain) > budget.remaining_s:
        status = Status.UNKNOWN if known is None else Status.FEASIBLE
        return SolveResult(status, Stop.TIME, None if known is None else start, claimed=known)
    model = build(single)
    if known is None:
        return prove(model, budget, announce=announce, value=worth, known=chain.worth(chain.lower))
    found = prove(model, budget, announce=announce, value=worth, start=start, known=known)
    reached = None if found.plan is None else worth(found.plan)
    if reached is not None and reached >= known:
        return found
    if found.bound == known:
        return replace(found, status=Status.OPTIMAL, stop=Stop.PROVED, plan=start, claimed=known, reason="")
    return replace(found, status=Status.FEASIBLE, plan=start, claimed=known, reason="")
