"""A fleet as a series of single problems: one device under one cycle time each.

Given the cycle time the devices do not touch each other, so the value of a cycle time is the sum (for the smallest
share: the minimum) of single optima, and so is a bound. A longer cycle allows every mask of a shorter one: the longest
serves every objective but ``rate``, and the contribution of a cycle bounds that of all shorter ones.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from mapgap.core import Budget, PlanBase, PlanError, SolveResult, Status, Stop, read_start
from mapgap.formulations.neuron_masking.params import Fleet as Params
from mapgap.problems.neuron_masking import MS_PER_HOUR, Instance, Mask, Plan
from mapgap.problems.neuron_masking.evaluate import diagnose
from mapgap.problems.neuron_masking.lowered.chain import Chain
from mapgap.solvers.model import Model, prove

SolveSingle = Callable[[Instance, Budget, Plan | None], SolveResult]
"""``solve_single(single, budget, start)`` solves an instance of one device and one cycle time that has a mask (see
:meth:`Instance.single`)."""


def scaled(instance: Instance, cycle: int, value: int) -> int:
    """The objective of a fleet whose devices reach ``value`` together; for ``rate`` that is their contribution."""
    return MS_PER_HOUR * value // instance.cycle_ms[cycle] if instance.objective == "rate" else value


def joined(instance: Instance, values: Sequence[int]) -> int:
    """What the devices of a fleet reach together."""
    return min(values) if instance.objective == "smallest_share" else sum(values)


def solve(
    instance: Instance,
    budget: Budget,
    solve_single: SolveSingle,
    start: str | Plan | None = None,
    params: Params = Params(),
) -> SolveResult:
    """Solve a fleet by ``solve_single``, which is only called for instances that have a mask.

    Raises
    ------
    PlanError
        A single result is refuted: a mask outside the limits or above its bound, a wrong claim or infeasibility.
    """
    if not _has_masks(instance, len(instance.cycle_ms) - 1):
        return SolveResult(Status.INFEASIBLE, Stop.PROVED, reason="; ".join(diagnose(instance)))
    return _Search(instance, budget, solve_single, read_start(start, Plan, instance), params).run()


def whole_bound(instance: Instance) -> int:
    """What the unmasked models would be worth, under the cycle time that serves best."""
    chains = [Chain.of(instance, d) for d in range(len(instance.devices))]
    value = joined(instance, [chain.worth(chain.upper) for chain in chains])
    return max(scaled(instance, cycle, value) for cycle in cycles(instance))


def cycles(instance: Instance) -> list[int]:
    """Cycle times that may be the best, the longest first."""
    found = list(reversed(range(len(instance.cycle_ms))))
    return found if instance.objective == "rate" else found[:1]


def _has_masks(instance: Instance, cycle: int) -> bool:
    """Every device has a mask: costs grow with every n_i, so the least neurons of every layer decide."""
    chains = [Chain.of(instance, d, cycle) for d in range(len(instance.devices))]
    return all(chain.fits(chain.lower) for chain in chains)


@dataclass
class _Single:
    """One device under one cycle time: the best mask known, its worth, and a bound."""

    instance: Instance
    chain: Chain
    bound: int
    mask: Mask | None = None
    worth: int = 0
    stop: Stop = Stop.TIME

    @property
    def settled(self) -> bool:
        """Nothing is left to find or to prove, or the engine has given up."""
        return self.stop in (Stop.DONE, Stop.PROVED) or (self.mask is not None and self.worth >= self.bound)

    def take(self, mask: Mask | None, worth: int, bound: int) -> None:
        """Enter what a question has brought."""
        self.bound = min(self.bound, bound)
        if mask is not None and (self.mask is None or worth > self.worth):
            self.mask, self.worth = mask, worth
        if self.mask is not None and self.worth > self.bound:
            raise PlanError(f"a mask of {self.worth} above the proven bound {self.bound}")


class _Search:
    """Cycle times from the longest down; what stays open is asked again for twice as long."""

    def __init__(
        self, instance: Instance, budget: Budget, solve_single: SolveSingle, start: Plan | None, params: Params
    ) -> None:
        self.instance, self.budget, self.solve_single, self.params = instance, budget, solve_single, params
        self.value: int | None = None
        self.plan: Plan | None = None
        self.notes: dict[str, Any] = {"singles": 0}
        self.cycles = [cycle for cycle in cycles(instance) if _has_masks(instance, cycle)]
        self.fleets = {cycle: self._fleet(cycle, start) for cycle in self.cycles}

    def _fleet(self, cycle: int, start: Plan | None) -> list[_Single]:
        """The singles of a cycle time, with the masks of the start if it has this cycle time and they fit."""
        found = []
        for d in range(len(self.instance.devices)):
            single = self.instance.single(d, cycle)
            chain = Chain.of(single)
            found.append(_Single(single, chain, chain.worth(chain.upper)))
            mask = start.masks[d] if start is not None and start.cycle == cycle else None
            if mask is not None and mask.chosen is None and chain.fits(mask.kept):
                found[-1].take(mask, chain.worth(mask.kept), found[-1].bound)
        return found

    def run(self) -> SolveResult:
        seconds = self.params.first_s
        for cycle in self.cycles:
            self._join(cycle)
        self.budget.report(bound=self.bound)
        while True:
            for cycle in self.cycles:
                if self._reached(self._ceiling(cycle)):
                    continue
                for single in self.fleets[cycle]:
                    if not single.settled and not self.budget.exhausted:
                        self._ask(cycle, single, seconds)
                self._join(cycle)
            self.budget.report(bound=self.bound)
            if self._reached(self.bound) or self.budget.exhausted or not self._open():
                return self.result()
            seconds *= 2.0

    def _open(self) -> list[_Single]:
        """Singles that may still bring something."""
        return [
            single
            for cycle in self.cycles
            if not self._reached(self._ceiling(cycle))
            for single in self.fleets[cycle]
            if not single.settled
        ]

    def _ceiling(self, cycle: int) -> int:
        """No plan of this cycle time is worth more: its own bounds, and those of longer ones."""
        known = [joined(self.instance, [s.bound for s in self.fleets[c]]) for c in self.cycles if c >= cycle]
        return scaled(self.instance, cycle, min(known))

    @property
    def bound(self) -> int:
        """No plan is worth more."""
        return max(self._ceiling(cycle) for cycle in self.cycles)

    def result(self) -> SolveResult:
        bound = self.bound
        if self._reached(bound):
            return SolveResult(Status.OPTIMAL, Stop.PROVED, self.plan, self.value, self.value, notes=self.notes)
        stops = [single.stop for fleet in self.fleets.values() for single in fleet]
        stop = next((stop for stop in stops if stop is not Stop.PROVED), Stop.TIME)
        if self.plan is None:
            return SolveResult(Status.UNKNOWN, stop, bound=bound, reason="no mask found in time", notes=self.notes)
        return SolveResult(Status.FEASIBLE, stop, self.plan, bound, self.value, notes=self.notes)

    def _reached(self, bound: int) -> bool:
        """The plan held is no worse."""
        return self.value is not None and bound <= self.value

    def _ask(self, cycle: int, single: _Single, seconds: float) -> None:
        """One question; whoever is the last gets all the time that is left."""
        left = self.budget.remaining_s if len(self._open()) == 1 else seconds
        part = replace(self.budget.part(left), listener=self._listener(cycle))
        start = None if single.mask is None else Plan(masks=(single.mask,))
        found = self.solve_single(single.instance, part, start)
        single.stop = found.stop
        self.notes["singles"] += 1
        for key, each in found.notes.items():  # numbers, and lists of reasons
            self.notes[key] = self.notes[key] + each if key in self.notes else each
        single.take(*_checked(single.chain, found))

    def _join(self, cycle: int) -> None:
        """The plan of the masks of a cycle time, if every device has one."""
        fleet = self.fleets[cycle]
        masks = [single.mask for single in fleet if single.mask is not None]
        if len(masks) == len(fleet):
            reached = scaled(self.instance, cycle, joined(self.instance, [single.worth for single in fleet]))
            if self.value is None or reached > self.value:
                self.value, self.plan = reached, Plan(cycle=cycle, masks=tuple(masks))
                self.budget.report(plan=self.plan)

    def _listener(self, cycle: int) -> Callable[[PlanBase | None, int | None], None] | None:
        """Hands on what a single problem announces if it is the whole; of a part it says nothing of the whole."""
        if self.budget.listener is None or len(self.instance.devices) > 1 or len(self.cycles) > 1:
            return None

        def hand_on(plan: PlanBase | None, bound: int | None) -> None:
            whole = Plan(cycle=cycle, masks=plan.masks) if isinstance(plan, Plan) else None
            bound = None if bound is None else min(bound, joined(self.instance, [s.bound for s in self.fleets[cycle]]))
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


def trusted(
    single: Instance,
    build: Callable[[Instance], Model],
    budget: Budget,
    *,
    announce: bool = False,
    start: PlanBase | None = None,
) -> SolveResult:
    """What an engine proves of a single instance that has a mask, checked in integers.

    Parameters
    ----------
    start : plan, optional
        Handed to the engine, and kept where the engine ends with less.
    """
    chain = Chain.of(single)

    def worth(plan: PlanBase) -> int | None:
        assert isinstance(plan, Plan)
        kept = plan.masks[0].kept
        return chain.worth(kept) if chain.fits(kept) else None

    known = None if start is None else worth(start)
    with budget.timed("build"):
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
