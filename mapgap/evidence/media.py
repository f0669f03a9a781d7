"""Plans of an instance on links that are shared (:mod:`mapgap.clock.replay`), beside the best single board."""

from __future__ import annotations

from dataclasses import dataclass, replace

from mapgap.catalogue import registry
from mapgap.clock.replay import MEDIA, Medium, full, round_s
from mapgap.core import Budget, InstanceBase, PlanBase

MOST_TASKS = 100_000
"""Of a plan that is replayed; a second or so."""
TOLD = 1.001
"""A plan that takes so many times as long on a medium, or less, is not compared with a single board: nothing turns that
is not level already, and the comparison loads planners."""


@dataclass(frozen=True)
class Media:
    """Seconds of a round of a plan by medium; and of the best single board, where a medium changes them.

    Attributes
    ----------
    links, ports, shared : float
    single : float, optional
    alone : str
        The method that leaves everything on one board.
    """

    links: float
    ports: float
    shared: float
    single: float | None = None
    alone: str = ""

    @property
    def turned(self) -> list[Medium]:
        """Media on which a single board is faster, though it is not on links of their own."""
        if self.single is None or self.single < self.links:
            return []
        return [medium for medium in MEDIA if getattr(self, medium) > self.single]


def media(instance: InstanceBase, plan: PlanBase, most: int = MOST_TASKS) -> Media | None:
    """A plan that breaks no rule on all media; ``None`` where plans of the problem are not run, or it has too many
    tasks."""
    clock = registry.problems()[instance.problem].clock
    if clock is None or len(clock.script(instance, plan, 1).tasks) > most:
        return None
    links, ports, shared = (replayed_s(instance, plan, medium) for medium in MEDIA)
    found = Media(links, ports, shared)
    if clock.alone is None or max(ports, shared) <= TOLD * links:
        return found
    alone = registry.methods(instance.problem)[clock.alone].solve(instance, Budget(60.0).start())
    if alone.plan is None:
        return found
    return replace(found, single=replayed_s(instance, alone.plan, "links"), alone=clock.alone)


def replayed_s(instance: InstanceBase, plan: PlanBase, medium: Medium) -> float:
    """Seconds of a round of a plan that breaks no rule on a medium, replayed.

    Of rounds that overlap so many are in flight as that medium needs: with a number that suits another one, the replay
    of a plan can be quicker where more is shared.
    """
    clock = registry.problems()[instance.problem].clock
    assert clock is not None
    script = clock.script(instance, plan, 1)
    if script.in_flight:
        there = instance.changed(medium=medium)
        script = full(lambda rounds, in_flight: clock.script(there, plan, rounds, in_flight), medium=medium)
    return round_s(script, medium)
