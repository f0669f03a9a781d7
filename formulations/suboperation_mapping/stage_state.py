"""What the search over ratios knows: a record per ratio, the best plan, and the bound of the instance."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from mapgap.core import DISTRUSTED, Budget, Status
from mapgap.formulations.suboperation_mapping.stage_search import SAFETY, ModelKind, Reply
from mapgap.problems.suboperation_mapping import Instance, Plan
from mapgap.problems.suboperation_mapping.lowered.ratios import Ratio

FIRST_STEP = 0.002  #: first target above a ratio's bound, as a share of it
SMALLEST_STEP = 1e-4  #: of any target above a bound
FIRST_S = 10.0  #: seconds of the first destructive question


@dataclass
class RatioState:
    """One ratio: what is proven, what was found, and what to ask next.

    Attributes
    ----------
    bound : int
        No plan of the ratio has a smaller makespan.
    plan, makespan : Plan or None, int or None
        The best plan of the ratio.
    infeasible : bool
        No plan of the ratio fits the DRAM.
    exhausted : bool
        ``bound`` is all that the relaxation can prove; only the complete model can raise it.
    step : float
        How far above the bound the next target lies, as a share of it.
    seconds : float
        Time of the next question.
    cutoff : int or None
        Cutoff of the next question to the complete model; ``None``: the best plan.
    half : int or None
        Upper end of the distance that the next question of half of it divides; ``None``: the best plan.
    halving : bool
        Such a question is being answered.
    turn : int
        Questions to the complete model since the last that was answered.
    attained : int or None
        Makespan of a mapping in the relaxation, rounded up: the relaxation proves no larger bound.
    floor, proof : int, dict or None
        The last bound that came with duals, and these.
    """

    bound: int
    plan: Plan | None = None
    makespan: int | None = None
    infeasible: bool = False
    exhausted: bool = False
    step: float = FIRST_STEP
    seconds: float = FIRST_S
    cutoff: int | None = None
    half: int | None = None
    halving: bool = False
    turn: int = 0
    attained: int | None = None
    floor: int = 0
    proof: dict[str, Any] | None = None

    @property
    def target(self) -> int:
        """Of the next destructive question: a step above the bound, and nearer to it than to what is attained.

        Whatever is asked at or above what is attained has an answer that proves nothing.
        """
        target = int(self.bound * (1.0 + self.step))
        if self.attained is not None:
            distance = self.attained - self.bound
            near = distance <= SMALLEST_STEP * self.bound
            target = min(target, self.attained - 1 if near else self.bound + distance // 2)
        return max(self.bound, target)

    @property
    def settled(self) -> bool:
        """Whether the relaxation has a mapping that ends by the bound, as far as floating point tells."""
        return self.attained is not None and self.attained - self.bound <= margin(self.attained)


def margin(value: int) -> float:
    """Ticks that floating-point bounds concede to their engine."""
    return 1 + 3.0 * SAFETY * value


@dataclass
class State:
    """All ratios of an instance and the best plan of any.

    Attributes
    ----------
    best : Ratio or None
        The ratio of the best plan of all.
    partial : bool
        Not all ratios are searched; nothing is proven of the instance.
    news : list of Plan
        What was found since the annealing last looked.
    reported : int
        Bound that the budget was told last.
    distrusted : list of str
        Why the relaxation of some ratio is not used.
    least : int
        Largest bound that was entered for all ratios at once.
    kinds : list of ModelKind
        Of the complete model, in the order in which they are asked.
    """

    instance: Instance
    budget: Budget
    partial: bool
    ratios: dict[Ratio, RatioState]
    best: Ratio | None = None
    news: list[Plan] = field(default_factory=list)
    reported: int = 0
    distrusted: list[str] = field(default_factory=list)
    least: int = 0
    kinds: list[ModelKind] = field(default_factory=lambda: ["unrelaxed"])

    @classmethod
    def begin(cls, instance: Instance, budget: Budget, ratios: Iterable[Ratio], partial: bool) -> State:
        """Neither bounds nor plans."""
        return cls(instance, budget, partial, {ratio: RatioState(0) for ratio in ratios})

    @property
    def makespan(self) -> int | None:
        return None if self.best is None else self.ratios[self.best].makespan

    @property
    def bound(self) -> int:
        """Smallest bound of any ratio, never above the best plan."""
        values = [known.bound for known in self.ratios.values() if not known.infeasible]
        return min(values + ([] if self.makespan is None else [self.makespan]), default=0)

    def take(self, reply: Reply) -> None:
        """Enter a reply."""
        known, result, limit = self.ratios[reply.ratio], reply.result, self.makespan
        known.bound = max(known.bound, reply.bound)
        known.infeasible = known.infeasible or result.status is Status.INFEASIBLE
        if reply.proof is not None:
            known.floor, known.proof = reply.bound, reply.proof
        if reply.attained is not None:
            attained = math.ceil(reply.attained)
            known.attained = attained if known.attained is None else min(known.attained, attained)
        self.distrusted += (reason for reason in result.notes.get(DISTRUSTED, ()) if reason not in self.distrusted)
        if result.plan is None or result.claimed is None:
            return
        assert isinstance(result.plan, Plan)
        if known.makespan is None or result.claimed < known.makespan:
            known.plan, known.makespan = result.plan, result.claimed
            self.news.append(result.plan)
        if limit is None or result.claimed < limit:
            self.best = reply.ratio
            self.budget.report(plan=result.plan)

    def kind(self, ratio: Ratio) -> ModelKind:
        """In which the complete model of a ratio is asked next: in turn, until one answers."""
        return self.kinds[self.ratios[ratio].turn % len(self.kinds)]

    def raise_all(self, bound: int) -> None:
        """Enter a bound that holds for all ratios."""
        if bound > self.least:
            self.least = bound
            for known in self.ratios.values():
                known.bound = max(known.bound, bound)

    def announce(self) -> None:
        """Report the bound of the instance if it has risen."""
        if not self.partial and self.bound > self.reported:
            self.reported = self.bound
            self.budget.report(bound=self.bound)

    def open(self) -> list[Ratio]:
        """Ratios whose bound leaves room for a better plan, smallest bound first."""
        limit = self.makespan
        still = [r for r, k in self.ratios.items() if not k.infeasible and (limit is None or k.bound < limit)]
        return sorted(still, key=lambda r: self.ratios[r].bound)

    def planned(self, among: Iterable[Ratio]) -> list[tuple[Ratio, Plan, int]]:
        """The ratios that have a plan, with it and its makespan, best plan first."""
        known = [(r, self.ratios[r].plan, self.ratios[r].makespan) for r in among]
        held = [(r, plan, makespan) for r, plan, makespan in known if plan is not None and makespan is not None]
        return sorted(held, key=lambda each: each[2])

    def within_margin(self, ratio: Ratio) -> bool:
        """Whether what is left of the gap is what floating-point bounds concede to their engine."""
        limit = self.makespan
        return limit is not None and limit - self.ratios[ratio].bound <= margin(limit)

    def done(self, target_gap: float) -> bool:
        limit = self.makespan
        return limit is not None and limit - self.bound <= target_gap * self.bound
