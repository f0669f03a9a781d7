"""Best-first search over boxes of ratios and places of fused nodes, each bounded by a located program.

A linear program puts a fused node half on one accelerator and half on another, so that what follows gets its tensors
for nothing; in good plans all of them lie on few accelerators. So the box of smallest bound is divided by the place of
a fused node that lies on more than one, as far as can be from those that have a place; where there is none, by ratios.

The *roots*, one for every number of shares, come first, each by one program, that of the least bound of paths first: so
there is a bound of all of them early, and what is stronger and takes longer is asked only where it is the least.

Equal accelerators: as long as no node has a place on one of a class, all of the class are alike, so that without loss
of generality the node lies on the first of them, which is told apart from then on. What is left of the class stays
alike, for its permutations keep all places.
"""

from __future__ import annotations

import heapq
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from mapgap.core import Status
from mapgap.formulations.suboperation_mapping.boxes import Cutter, contains, few_ratios, of_ratio, ratios, roots, single
from mapgap.formulations.suboperation_mapping.located_frame import WHOLE, Box, Frame, Located
from mapgap.formulations.suboperation_mapping.located_model import LocatedModel
from mapgap.formulations.suboperation_mapping.path_bound import least_path, share_paths
from mapgap.formulations.suboperation_mapping.phase_graph import Node
from mapgap.problems.suboperation_mapping.lowered.ratios import Ratio
from mapgap.solvers.integer_lp import Engine

KEPT = 40  #: programs whose bases are kept


@dataclass(frozen=True)
class Bounded:
    """What a program says: a bound, what proves it, and how much of every fused node lies on one accelerator."""

    bound: int
    proof: dict[str, Any] | None = None
    parts: Mapping[Node, float] = field(default_factory=dict)


OfRatio = Callable[[Ratio, Located, float], Bounded]
"""``of_ratio(ratio, places, seconds)``: a bound for one ratio."""


@dataclass(order=True)
class Open:
    """A box with places of fused nodes, and its bound.

    Attributes
    ----------
    solved : bool
        By its own program, not only by a larger one's.
    loose : Node or None
        The fused node whose place is to divide it.
    taught : bool
        Others have proven the bound, not a program.
    """

    bound: int
    serial: int
    box: Box
    places: Located
    solved: bool = False
    proof: dict[str, Any] | None = None
    loose: Node | None = None
    taught: bool = False


class BoxSearch:
    """All ratios of an instance, in boxes with bounds.

    Parameters
    ----------
    frame : Frame
    one : callable, optional
        A program of one ratio that is stronger than the located one.
    floor : int
        A bound of all ratios.

    Attributes
    ----------
    roots : list of Open
        Those that are not solved yet, the next one last.
    changed : list of Open
        Those that the last step has solved.
    """

    def __init__(self, frame: Frame, one: OfRatio | None = None, floor: int = 0) -> None:
        self.frame, self.one = frame, one
        self.batch, self.parts = frame.instance.batch, len(frame.instance.accelerators)
        self.cutter = Cutter(frame)
        self.serial = self.parts
        self.programs = 0
        self.heap: list[Open] = []
        self.finished: list[Open] = []
        self.changed: list[Open] = []
        self.kept: OrderedDict[tuple[Box, str], tuple[LocatedModel, Engine]] = OrderedDict()
        paths = share_paths(frame.phases)
        first = roots(self.batch, self.parts)
        bounds = [max(floor, least_path(paths, k)) for k, _ in enumerate(first, 1)]
        self.roots = sorted(
            (Open(bound, k, box, ()) for k, (bound, box) in enumerate(zip(bounds, first, strict=True))), reverse=True
        )

    def _push(self, parent: Open, box: Box, places: Located) -> None:
        self.serial += 1
        heapq.heappush(self.heap, Open(parent.bound, self.serial, box, places, proof=parent.proof))

    def bound(self) -> int:
        """Smallest bound of any box."""
        return min((each.bound for each in self.all()), default=0)

    def all(self) -> Iterator[Open]:
        """Boxes and places with all plans."""
        yield from self.roots
        yield from self.finished
        yield from self.heap

    def ratios(self, each: Open) -> Iterator[Ratio]:
        return ratios(each.box, self.batch, self.parts)

    def of(self, ratio: Ratio) -> int:
        """Smallest bound of any box with a ratio."""
        return min(each.bound for each in self.all() if contains(each.box, ratio))

    def step(self, time_s: float, cutoff: int | None = None) -> bool:
        """Solve or divide the box of smallest bound; ``False`` if nothing below the cutoff is left to do.

        Without a cutoff the search is over when the smallest bound belongs to one ratio whose fused nodes have places.
        """
        if self.roots:
            self._root(self.roots.pop(), time_s)
            return True
        if not self.heap or (cutoff is not None and self.heap[0].bound >= cutoff):
            return False
        if cutoff is None and self.finished and min(each.bound for each in self.finished) <= self.heap[0].bound:
            return False
        top, self.changed = heapq.heappop(self.heap), []
        few = None if top.solved else self._few(top.box)
        if few is not None and not single(top.box):
            for ratio in few:
                self._push(top, of_ratio(ratio), top.places)
            return True
        if not top.solved:
            self._solve(top, time_s, single(top.box) and self.one is not None)
            self._keep(top)
        elif top.loose is not None:
            for those in self._told_apart(top.places).orbits.members:
                self._push(top, top.box, (*top.places, (top.loose, those[0])))
        else:
            for box in self.cutter.split(top.box):
                self._push(top, box, top.places)
        return True

    def _few(self, box: Box) -> list[Ratio] | None:
        """The ratios of a box that are to be bounded one by one."""
        return None if self.one is None else few_ratios(box, self.batch, self.parts, self.frame.params.singles)

    def _root(self, root: Open, time_s: float) -> None:
        """Solve a root by a program of all of its ratios; few of them are asked again, one by one."""
        self._solve(root, time_s, alone=False)
        root.solved &= self._few(root.box) is None
        self._keep(root)

    def _keep(self, top: Open) -> None:
        if single(top.box) and top.solved and top.loose is None:
            self.finished.append(top)
        else:
            heapq.heappush(self.heap, top)

    def _told_apart(self, places: Located) -> Frame:
        return self.frame.told_apart({a for _, a in places}) if places else self.frame

    def _program(self, top: Open) -> tuple[LocatedModel, Engine]:
        """The located program of a box, with the accelerators told apart that have a fused node."""
        frame = self._told_apart(top.places)
        key = top.box, str(frame.orbits.members)
        if key not in self.kept:
            model = LocatedModel(frame, top.box)
            self.kept[key] = model, Engine(model.lp)
            if len(self.kept) > KEPT:
                self.kept.popitem(last=False)
        self.kept.move_to_end(key)
        return self.kept[key]

    def _solve(self, top: Open, time_s: float, alone: bool) -> None:
        """Raise the bound of a box by its own program, or by the one of its only ratio."""
        self.programs += 1
        self.changed = [top]
        begun = time.perf_counter()
        if alone and self.one is not None:
            found = self.one(next(self.ratios(top)), top.places, time_s)
            top.solved = found.bound > 0 or time.perf_counter() - begun < time_s
        else:
            model, engine = self._program(top)
            outcome = engine.solve(time_s - (time.perf_counter() - begun), model.closed(top.places))
            found = Bounded(model.bound(outcome), model.lp.proof(outcome), model.parts_of(outcome))
            top.solved = outcome.status is Status.OPTIMAL or time.perf_counter() - begun < time_s
        top.loose = self._loose(top.places, found.parts) if self.frame.params.places else None
        if found.bound > top.bound:
            places = [[*v, a] for v, a in top.places]
            top.bound, top.taught = found.bound, False
            top.proof = {"box": [list(g) for g in top.box], "places": places, **(found.proof or {})}

    def _loose(self, places: Located, parts: Mapping[Node, float]) -> Node | None:
        """The fused node on more than one accelerator that is farthest from those that have a place.

        Nodes near one with a place follow it in the program: it is dear to move a tensor twice.
        """
        fused = self.frame.fused
        placed = [fused.index(v) for v, _ in places] or [-1, len(fused)]
        distance = {
            v: (min(abs(i - p) for p in placed), -parts[v]) for i, v in enumerate(fused) if parts.get(v, 1.0) < WHOLE
        }
        return max(distance, key=lambda v: distance[v], default=None)
