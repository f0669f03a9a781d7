"""Best-first search over boxes of ratios, each bounded by a located program."""

from __future__ import annotations

import heapq
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from mapgap.core import Status
from mapgap.formulations.suboperation_mapping.boxes import Cutter, few_ratios, of_ratio, ratios, roots, single
from mapgap.formulations.suboperation_mapping.located_frame import Box, Frame
from mapgap.formulations.suboperation_mapping.located_model import LocatedModel
from mapgap.problems.suboperation_mapping.lowered.ratios import Ratio

OfRatio = Callable[[Ratio, float], tuple[int, dict[str, Any] | None]]
"""``of_ratio(ratio, seconds)``: a bound for one ratio, and what proves it."""


@dataclass(order=True)
class Open:
    """A box and its bound; ``solved``: by its own program, not only by that of a larger box."""

    bound: int
    serial: int
    box: Box
    solved: bool
    proof: dict[str, Any] | None = None


class BoxSearch:
    """All ratios of an instance, in boxes with bounds.

    Parameters
    ----------
    frame : Frame
    one : callable, optional
        A program of one ratio that is stronger than the located one.

    Attributes
    ----------
    changed : list of Open
        Those that the last step has solved.
    """

    def __init__(self, frame: Frame, one: OfRatio | None = None) -> None:
        self.frame, self.one = frame, one
        self.batch, self.parts = frame.instance.batch, len(frame.instance.accelerators)
        self.cutter = Cutter(frame)
        self.serial = 0
        self.programs = 0
        self.heap: list[Open] = []
        self.finished: list[Open] = []
        self.changed: list[Open] = []
        for box in roots(self.batch, self.parts):
            self._push(0, box, None)

    def _push(self, bound: int, box: Box, proof: dict[str, Any] | None) -> None:
        self.serial += 1
        heapq.heappush(self.heap, Open(bound, self.serial, box, False, proof))

    def bound(self) -> int:
        """Smallest bound of any box."""
        return min((each.bound for each in self.all()), default=0)

    def all(self) -> Iterator[Open]:
        """Boxes with all ratios."""
        yield from self.finished
        yield from self.heap

    def ratios(self, each: Open) -> Iterator[Ratio]:
        return ratios(each.box, self.batch, self.parts)

    def step(self, time_s: float, cutoff: int | None = None, whole: bool = False) -> bool:
        """Solve or divide the box of smallest bound; ``False`` if nothing below the cutoff is left to do.

        Without a cutoff the search is over when the smallest bound belongs to one ratio. ``whole`` boxes are solved
        even if few ratios are in them.
        """
        if not self.heap or (cutoff is not None and self.heap[0].bound >= cutoff):
            return False
        if cutoff is None and self.finished and min(each.bound for each in self.finished) <= self.heap[0].bound:
            return False
        top, self.changed = heapq.heappop(self.heap), []
        if not top.solved and not single(top.box) and self.one is not None and not whole:
            few = few_ratios(top.box, self.batch, self.parts, self.frame.params.singles)
            if few is not None:
                for ratio in few:
                    self._push(top.bound, of_ratio(ratio), top.proof)
                return True
        if not top.solved:
            self._solve(top, time_s, whole)
            if single(top.box) and top.solved:
                self.finished.append(top)
            else:
                heapq.heappush(self.heap, top)
            return True
        for box in self.cutter.split(top.box):
            self._push(top.bound, box, top.proof)
        return True

    def _solve(self, top: Open, time_s: float, whole: bool) -> None:
        """Raise the bound of a box by its own program."""
        self.programs += 1
        self.changed = [top]
        begun = time.perf_counter()
        if single(top.box) and self.one is not None and not whole:
            ratio = next(self.ratios(top))
            bound, proof = self.one(ratio, time_s)
            top.solved = bound > 0 or time.perf_counter() - begun < time_s
        else:
            model = LocatedModel(self.frame, top.box)
            outcome = model.lp.solve(time_s - (time.perf_counter() - begun))
            bound, proof = model.bound(outcome), model.lp.proof(outcome)
            top.solved = outcome.status is Status.OPTIMAL or time.perf_counter() - begun < time_s
        if bound > top.bound:
            top.bound, top.proof = bound, {"box": [list(g) for g in top.box], **(proof or {})}
