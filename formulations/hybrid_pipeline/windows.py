"""Stages that a plan better than a known one can have: the filter in front of the models over columns.

Let U be the value of a plan at hand. The objective ``R (D + A) + G`` of a plan with a stage (E, Ta, migration), with
the sums ``sum E`` and ``sum Ef`` of all steps (links included) in front of it, is at least

    R max(M E + sum E,  M E + Ta + sum Ef) + migration

(for other objectives and executions with the factors of ``lowered.Form``):

the aligned step of the stage is in D; its AllReduce excess ``Ta - sum Eb`` is in A, and ``sum E - sum Eb = sum Ef``.
The step over the link behind the stage (c each way) gives ``R (2 M c + E + sum E)`` in the same way. T of Eq. (7) with
the memory of a last stage (K = 1) is at most E, and the smallest ``max_d F_d`` at most Ef. So the stages of a plan
below U pass three tests, each of which uses the survivors of the one before:

1. *window*: the bound above with nothing in front is below U. T, Ta and migration never fall as a stage grows, so per
   group and first layer a bisection finds the last layer;
2. *reach*: devices not in the group can cover the layers in front and those behind with stages inside windows, no two
   of them used twice, over links of which ``2 R M c < U``;
3. *front*: the bound is below U with the least sums that stages in front can have, again with enough devices left to
   cover the layers behind.

Nothing is assumed about the plan except that its value is *below* U: what is dropped may be part of plans of value U
or more. A model over the survivors and the stages of the plan at hand therefore has the optimum of the instance.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from functools import cached_property
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mapgap.core import Budget, OutOfTime
from mapgap.formulations.hybrid_pipeline.pricing import NEVER, least_time
from mapgap.problems.hybrid_pipeline.lowered.arrays import Lowered
from mapgap.problems.hybrid_pipeline.lowered.tables import Array

Filter = Literal["none", "window", "reach", "front"]


class Span(NamedTuple):
    """Layers ``[start, stop)`` on a group, with what its tests need: least T, least forward time, ticks."""

    start: int
    stop: int
    group: int
    total: int
    forward: int
    allreduce: int
    migration: int


class Windows:
    """The three tests against the value of a known plan.

    Parameters
    ----------
    upper : int
        U; ``NEVER`` or more lets every stage pass that fits into the memory.
    budget : Budget
        The tests end with :class:`OutOfTime` when it is exhausted.
    """

    def __init__(self, low: Lowered, upper: int, budget: Budget | None = None) -> None:
        self.low, self.upper, self.budget = low, upper, budget
        self.full, self.last = len(low.groups) - 1, low.layers
        #: c of the fastest link, by cut; none at the ends
        self.link: list[int] = [0, *low.comm.min(axis=0)[1:-1].tolist(), 0]
        self.open = np.array([low.form.factor * low.form.ways * low.rounds * c < upper for c in self.link])
        moves = low.moves
        used = np.repeat(np.arange(self.full + 1), np.diff(moves.first)).tolist()
        #: by group, the groups that may be in front or behind; by group of devices, the groups that are part of it
        self.fits: dict[int, list[int]] = defaultdict(list)
        self.parts: dict[int, list[int]] = defaultdict(list)
        for behind, group, both in zip(used, moves.group.tolist(), moves.target.tolist(), strict=True):
            self.fits[group].append(behind)
            self.parts[both].append(group)

    def look(self) -> None:
        """Raise where the time is over."""
        if self.budget is not None and self.budget.exhausted:
            raise OutOfTime

    def least(self, start: Array, stop: Array, group: int) -> Array:
        """Least value of a plan with such a stage, from the stage alone, (S,)."""
        low = self.low
        busy = low.form.factor * least_time(low, low.both, start, stop, group)
        return low.rounds * (busy + self._allreduce(start, stop, group)) + self._migration(start, stop, group)

    def _allreduce(self, start: Array, stop: Array, group: int) -> Array:
        # Python integers: bytes times the numerator may pass 64 bits.
        return np.array(
            [self.low.allreduce(i, j, group) for i, j in zip(start.tolist(), stop.tolist(), strict=True)], np.int64
        )

    def _migration(self, start: Array, stop: Array, group: int) -> Array:
        if self.low.move.shape[1] == 1:
            return np.zeros(len(start), np.int64)
        moved: Array = self.low.move[self.low.groups[group] > 0][:, start, stop].max(axis=0)
        return moved

    @cached_property
    def ends(self) -> Array:
        """(G, L): the last layer up to which a stage passes the first test; its first layer where none does."""
        first = np.arange(self.last)
        found = np.tile(first, (self.full + 1, 1))
        for group in self.fits:
            least, most = first, np.full(self.last, self.last)
            self.look()
            while (least < most).any():
                middle = (least + most + 1) // 2
                passes = self.least(first, middle, group) < self.upper
                least, most = np.where(passes, middle, least), np.where(passes, most, middle - 1)
            found[group] = least
        return found

    def _all_parts(self, used: int) -> Iterator[int]:
        """Groups other than the empty one that are part of ``used``, whether a stage may have them or not."""
        low = self.low
        return (g for g in range(1, used + 1) if (low.groups[g] <= low.groups[used]).all())

    @cached_property
    def front(self) -> NDArray[np.bool_]:
        """(G, L + 1): at most these devices can cover the layers in front of the cut."""
        found = np.zeros((self.full + 1, self.last + 1), np.bool_)
        found[:, 0] = True
        for used in range(1, self.full + 1):
            self.look()
            for group in self.parts[used]:
                for start in np.flatnonzero(found[used - group, : self.last]).tolist():
                    found[used, start + 1 : self.ends[group, start] + 1] = True
            found[used] &= self.open
        return found

    @cached_property
    def back(self) -> NDArray[np.bool_]:
        """(G, L + 1): at most these devices can cover the layers behind the cut."""
        found = np.zeros((self.full + 1, self.last + 1), np.bool_)
        found[:, self.last] = True
        for used in range(1, self.full + 1):
            self.look()
            for group in self.parts[used]:
                for start in range(self.last):
                    found[used, start] |= found[used - group, start + 1 : self.ends[group, start] + 1].any()
            found[used] &= self.open
        return found

    def inside(self, reach: bool) -> Iterator[tuple[int, Array, Array]]:
        """(group, start, stop) of all stages that pass the first test, with ``reach`` the second one too."""
        first, last = np.meshgrid(np.arange(self.last), np.arange(1, self.last + 1), indexing="ij")
        for group in sorted(self.fits):
            self.look()
            passes = (first < last) & (last <= self.ends[group][:, None])
            if reach:
                rest = self.full - group
                covered = np.zeros_like(passes)
                for used in (0, *self._all_parts(rest)):
                    covered |= self.front[used][:-1, None] & self.back[rest - used][None, 1:]
                passes &= covered
            start, cut = np.nonzero(passes)
            yield group, start, cut + 1

    def spans(self) -> list[Span]:
        """The stages that pass the second test in the order of their first layers."""
        low, found = self.low, []
        for group, start, stop in self.inside(reach=True):
            rows = (
                start,
                stop,
                np.full(len(start), group),
                least_time(low, low.both, start, stop, group),
                least_time(low, low.forward, start, stop, group),
                self._allreduce(start, stop, group),
                self._migration(start, stop, group),
            )
            found += [Span(*row) for row in zip(*(row.tolist() for row in rows), strict=True)]
        return sorted(found)

    def bound(self, span: Span, both: int, forward: int) -> int:
        """Least value of a plan with this stage behind steps of these sums of E and E_f."""
        form = self.low.form
        own = form.aligned * both + form.drain * (both + span.total)
        step = form.busy * span.total + max(own, form.excess * (span.allreduce + forward))
        if span.stop < self.last:
            way = form.ways * self.link[span.stop]
            step = max(step, form.busy * way + form.aligned * span.total + own + form.drain * way)
        return self.low.rounds * step + span.migration

    def stages(self, keep: Filter) -> Iterator[tuple[int, Array, Array]]:
        """(group, start, stop) of all stages that pass the tests up to ``keep``."""
        if keep != "front":
            yield from self.inside(reach=keep == "reach")
            return
        found = np.array([span[:3] for span in self.passing()], np.int64).reshape(-1, 3)
        for group in np.unique(found[:, 2]).tolist():
            start, stop, _ = found[found[:, 2] == group].T
            yield group, start, stop

    def passing(self) -> list[Span]:
        """All stages that pass the third test."""
        spans = self.spans()
        sums = self._least_sums(spans)
        covers = [[False] * (self.last + 1) for _ in range(self.full + 1)]  # by at most these devices, up to the end
        for row in covers:
            row[self.last] = True
        kept = []
        for span in reversed(spans):
            self.look()
            passes = False
            for behind in self.fits[span.group]:
                both, forward = sums[self.full - span.group - behind][span.start]
                if covers[behind][span.stop] and self.bound(span, both, forward) < self.upper:
                    covers[behind + span.group][span.start] = passes = True
            if passes:
                kept.append(span)
        return kept[::-1]

    def _least_sums(self, spans: list[Span]) -> list[list[tuple[int, int]]]:
        """Least sums of E and of E_f in front of every cut with at most the devices of a group, (G, L + 1)."""
        sums = [[(0, 0)] + [(NEVER, NEVER)] * self.last for _ in range(self.full + 1)]
        for span in spans:  # whatever ends at its first layer has come before
            self.look()
            c = self.link[span.stop]
            for used in self.fits[span.group]:
                both, forward = sums[used][span.start]
                if both < NEVER and self.bound(span, both, forward) < self.upper:
                    row = sums[used + span.group]
                    old = row[span.stop]
                    row[span.stop] = (
                        min(old[0], both + span.total + self.low.form.ways * c),
                        min(old[1], forward + span.forward + c),
                    )
        return sums
