"""What the search over ratios knows: a record per ratio, the best plan, and the bound of the instance."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field

from mapgap.core import DISTRUSTED, Budget, Status
from mapgap.formulations.suboperation_mapping.boxes import ratios as ratios_of
from mapgap.formulations.suboperation_mapping.fluid_bound import SAFETY
from mapgap.formulations.suboperation_mapping.located_frame import Box
from mapgap.formulations.suboperation_mapping.params import Stage
from mapgap.formulations.suboperation_mapping.ratio_sweep import parts_of
from mapgap.formulations.suboperation_mapping.stage_search import NO_PLAN, ModelKind, Reply
from mapgap.problems.suboperation_mapping import Instance, Plan
from mapgap.problems.suboperation_mapping.lowered.ratios import Ratio

SMALLEST_STEP = 1e-4  #: of any target above a bound: less is hardly more than what doubles tell apart


@dataclass
class RatioState:
    """One ratio: what is proven, what was found, and what to ask next.

    Attributes
    ----------
    bound : int
        No plan of the ratio has a smaller makespan.
    own : int
        The same, by whole numbers of our own alone; ``NO_PLAN`` says that there is none.
    plan, makespan : Plan or None, int or None
        The best plan of the ratio.
    infeasible : bool
        No plan of the ratio fits the DRAM.
    weighed, chained : bool
        There is a bound along a chain, by weights; and nothing more can be proven along it.
    rising : bool
        The last try along the chain has proven a step more.
    explored : bool
        The LP was asked, and its most likely mapping improved where that is worth it.
    exhausted : bool
        ``bound`` is all that the relaxation can prove; only the complete model can raise it.
    answered : bool
        The complete model is solved and can prove no more: it is a relaxation where links are shared.
    step : float
        How far above the bound the next target lies, as a share of it.
    seconds : float
        Time of the next question.
    cutoff : int or None
        Cutoff of the next question to the complete model; ``None``: the best plan.
    turn : int
        Questions to the complete model since the last that was answered.
    attained : int or None
        Makespan of a mapping in the relaxation, rounded up: the relaxation proves no larger bound.
    """

    bound: int
    own: int = 0
    plan: Plan | None = None
    makespan: int | None = None
    infeasible: bool = False
    weighed: bool = False
    chained: bool = False
    rising: bool = True
    explored: bool = False
    exhausted: bool = False
    answered: bool = False
    step: float = Stage.step
    seconds: float = Stage.question_s
    cutoff: int | None = None
    turn: int = 0
    attained: int | None = None

    def raise_to(self, bound: int, own: bool = False) -> None:
        """Enter a bound, of whole numbers of our own or not; ``NO_PLAN`` says that there is no plan."""
        self.own = max(self.own, bound if own else 0)
        if bound >= NO_PLAN:
            self.infeasible = True
        else:
            self.bound = max(self.bound, bound)

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
        Every plan that is the best of its ratio, for others to improve.
    ladder : dict of str to int
        The bound of the instance after each kind of work that has raised it, the last one at the end.
    distrusted : list of str
        Why the relaxation of some ratio is not used.
    least, sure : int
        Largest bound that was entered for all ratios at once, and largest one of whole numbers of our own.
    rounding : bool
        Mappings that the relaxation suggests are improved.
    kinds : list of ModelKind
        Of the complete model, in the order in which they are asked.
    """

    instance: Instance
    budget: Budget
    partial: bool
    ratios: dict[Ratio, RatioState]
    best: Ratio | None = None
    news: list[Plan] = field(default_factory=list)
    ladder: dict[str, int] = field(default_factory=dict)
    rounding: bool = True
    distrusted: list[str] = field(default_factory=list)
    least: int = 0
    sure: int = 0
    kinds: list[ModelKind] = field(default_factory=lambda: ["unrelaxed"])

    @classmethod
    def begin(
        cls, instance: Instance, budget: Budget, ratios: Iterable[Ratio], partial: bool, params: Stage = Stage()
    ) -> State:
        """Neither bounds nor plans."""
        known = {ratio: RatioState(0, step=params.step, seconds=params.question_s) for ratio in ratios}
        return cls(instance, budget, partial, known, rounding=params.rounding)

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
        known, result = self.ratios[reply.ratio], reply.result
        known.raise_to(reply.bound, own=reply.own)
        known.infeasible = known.infeasible or result.status is Status.INFEASIBLE
        if reply.attained is not None:
            attained = math.ceil(reply.attained)
            known.attained = attained if known.attained is None else min(known.attained, attained)
        self.distrusted += (reason for reason in result.notes.get(DISTRUSTED, ()) if reason not in self.distrusted)
        if result.plan is not None and result.claimed is not None:
            assert isinstance(result.plan, Plan)
            self.learn(result.plan, result.claimed)

    def learn(self, plan: Plan, makespan: int) -> None:
        """Enter a plan; the best one is announced."""
        ratio, limit = parts_of(plan.ratio), self.makespan
        known = self.ratios[ratio]
        if known.makespan is None or makespan < known.makespan:
            known.plan, known.makespan = plan, makespan
            self.news.append(plan)
        if limit is None or makespan < limit:
            self.best = ratio
            self.budget.report(plan=plan)

    def kind(self, ratio: Ratio) -> ModelKind:
        """In which the complete model of a ratio is asked next: in turn, until one answers."""
        return self.kinds[self.ratios[ratio].turn % len(self.kinds)]

    def raise_all(self, bound: int, own: bool = False) -> None:
        """Enter a bound that holds for all ratios."""
        sure = bound if own else 0
        if bound > self.least or sure > self.sure:
            self.least, self.sure = max(self.least, bound), max(self.sure, sure)
            for known in self.ratios.values():
                known.bound, known.own = max(known.bound, bound), max(known.own, sure)

    def raise_box(self, box: Box, bound: int) -> None:
        """Enter a bound of whole numbers of our own that holds for the ratios of a box."""
        for ratio in ratios_of(box, self.instance.batch, len(self.instance.accelerators)):
            self.ratios[ratio].raise_to(bound, own=True)

    def recomputed(self) -> None:
        """Note what is proven of all ratios by no engine's word."""
        bound = min(known.own for known in self.ratios.values())
        if not self.partial and max(self.budget.recomputed[-1:], default=0) < bound < NO_PLAN:
            self.budget.recomputed.append(bound)

    def announce(self, rung: str) -> None:
        """Report the bound of the instance if that kind of work has raised it."""
        bound = self.bound
        if not self.partial and bound > max(self.ladder.values(), default=0):
            self.ladder.pop(rung, None)
            self.ladder[rung] = bound
            self.budget.report(bound=bound)

    def open(self) -> list[Ratio]:
        """Ratios whose bound leaves room for a better plan, smallest bound first."""
        limit = self.makespan
        still = [r for r, k in self.ratios.items() if not k.infeasible and (limit is None or k.bound < limit)]
        return sorted(still, key=lambda r: self.ratios[r].bound)

    def within_margin(self, ratio: Ratio) -> bool:
        """Whether what is left of the gap is what floating-point bounds concede to their engine."""
        limit = self.makespan
        return limit is not None and limit - self.ratios[ratio].bound <= margin(limit)

    def done(self, target_gap: float) -> bool:
        limit = self.makespan
        return limit is not None and limit - self.bound <= target_gap * self.bound
