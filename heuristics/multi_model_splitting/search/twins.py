"""Pipelines that may run as one (rule 9): searched for as one, and planned as several that coincide.

Pipelines of the same signal, the same model and the same possible sources are *twins*. Where all tasks of a twin
coincide with those of another one, only the transfer of its output is its own. The neighbourhood search counts the
tasks of every pipeline, so it does not see what coincidence saves; in the instance without the second and further
twins there is nothing else to see. Which twins should coincide is not known: all of them first, then some at random.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

from mapgap.heuristics.multi_model_splitting import params
from mapgap.heuristics.multi_model_splitting.search.neighbourhood import ANY, DEFAULT, Neighbourhood
from mapgap.problems.multi_model_splitting import Instance, Pipeline, PipelinePlan, Plan


@dataclass(frozen=True)
class Merged:
    """An instance in which some twins are one pipeline.

    Attributes
    ----------
    whole, instance : Instance
        With all pipelines, and without those that coincide with an earlier one.
    leader : tuple of int
        Per pipeline of ``whole`` the one of ``instance`` that it coincides with.
    """

    whole: Instance
    instance: Instance
    leader: tuple[int, ...]

    def expanded(self, plan: Plan) -> Plan:
        """A plan of ``instance`` as one of ``whole``; a twin that may not end where its leader does ends nearby."""
        found: list[PipelinePlan] = []
        for p, leader in enumerate(self.leader):
            decisions, targets = plan.pipelines[leader], self.whole.targets(p)
            if decisions.target in targets or not targets:
                found.append(decisions)
                continue
            here, output = decisions.segments[-1].device, self.whole.pipelines[p].boundaries[-1]
            target = here if here in targets else min(targets, key=lambda t: output.receive[t])
            found.append(decisions.model_copy(update={"target": target}))
        return Plan(pipelines=tuple(found))


def merged(instance: Instance, rng: random.Random | None = None) -> Merged | None:
    """The instance in which all twins are one pipeline, or some at random; ``None`` if none are."""
    if not instance.sharing:
        return None
    known: dict[tuple[object, ...], list[int]] = {}
    leader: list[int] = []
    kept: list[Pipeline] = []
    for p, pipeline in enumerate(instance.pipelines):
        signal = pipeline.signal or p  # pipelines that name no signal are nobody's twins
        places = known.setdefault((signal, pipeline.model, tuple(instance.sources(p))), [])
        place = rng.choice([*places, len(kept)]) if rng else [*places, len(kept)][0]
        if place == len(kept):
            kept.append(pipeline)
            places.append(place)
        leader.append(place)
    if len(kept) == len(leader):
        return None
    return Merged(instance, instance.changed(pipelines=tuple(kept), deployed=()), tuple(leader))


class TwinNeighbourhood(Neighbourhood):
    """The neighbourhood search, which takes turns with one in which twins coincide, where there are any."""

    def __init__(self, instance: Instance, seed: int = 0, tuned: params.Neighbourhood = DEFAULT) -> None:
        super().__init__(instance, seed, tuned)
        self.rng, self.turns = random.Random(seed), 0
        self._merge(merged(instance))

    def walk(self, bound: int = 0, work: int = ANY) -> bool:
        """A walk of either search; see :meth:`Neighbourhood.walk`."""
        found = super().walk(bound, work)
        if self.together is None or (self.value is not None and self.value <= bound):
            return found
        self.together.walk(0, work)
        found = self._take() or found
        self.turns += 1
        if self.turns % 3 == 0:
            self._merge(merged(self.instance, self.rng) or self.merged)
        return found

    def _merge(self, found: Merged | None) -> None:
        """Have other twins coincide."""
        self.merged = found
        self.together = None if found is None else Neighbourhood(found.instance, self.rng.randrange(2**31), self.tuned)
        self._take()

    def _take(self) -> bool:
        """Offer the best plan in which twins coincide; whether it is better than what is known."""
        if self.merged is None or self.together is None or self.together.plan is None:
            return False
        better = self.offer(self.merged.expanded(self.together.plan))
        self.quiet = 0 if better else self.quiet
        return better
