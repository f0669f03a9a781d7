"""The first bounds of ``stage_mip``: all ratios in boxes, best-first."""

from __future__ import annotations

import heapq

from mapgap.formulations.suboperation_mapping import stage_search as search
from mapgap.formulations.suboperation_mapping.box_search import Bounded, BoxSearch
from mapgap.formulations.suboperation_mapping.boxes import few_ratios
from mapgap.formulations.suboperation_mapping.located_frame import Frame, Located
from mapgap.formulations.suboperation_mapping.stage_search import NO_PLAN, Reply
from mapgap.formulations.suboperation_mapping.stage_state import State
from mapgap.problems.suboperation_mapping.lowered.ratios import Ratio


class StageBoxes:
    """The search over boxes of ratios, box by box.

    With few accelerators a single ratio is bounded by the stage model with columns, whose most likely mapping is
    improved where that bound leaves room for a better plan. Where ratios have chains, questions about them soon prove
    more of most boxes.
    """

    def __init__(self, state: State, frame: Frame, chained: bool) -> None:
        self.state, self.params, self.chained = state, frame.params, chained
        self.recomputed = True  # every bound of the boxes is; no engine's word has entered it
        few = frame.orbits.count <= frame.params.columns
        own = max(state.budget.recomputed[-1:], default=0)
        self.search = BoxSearch(frame, self.ratio_bound if few else None, own)

    def ratio_bound(self, ratio: Ratio, places: Located, time_s: float) -> Bounded:
        """The column LP, and a plan where it leaves room for a better one."""
        state, one = self.state, search.solver(ratio)
        bound, outcome = one.located(time_s, places)
        self.recomputed &= bound < NO_PLAN
        room = state.makespan is None or bound < state.makespan
        if state.rounding and room and not state.budget.exhausted and not state.ratios[ratio].explored:
            state.take(Reply(ratio, search.known(0, one.rounded(state.budget.remaining_s, state.budget.seed))))
        state.ratios[ratio].explored = True
        return Bounded(bound, parts=one.model.parts_of(outcome))

    def waiting(self) -> bool:
        """Whether the smallest bound of all belongs to a box that can still be solved or divided."""
        state, heap = self.state, self.search.heap
        limit = NO_PLAN if state.makespan is None else state.makespan
        if self.search.roots:
            return True
        single = (state.ratios[next(self.search.ratios(each))] for each in self.search.finished)
        return bool(heap) and heap[0].bound < min([limit, *(k.bound for k in single if not k.infeasible)])

    def learn(self) -> bool:
        """Raise boxes to what questions have proven of all of their ratios, the least bound first; whether any was."""
        known, heap, raised = self.state.ratios, self.search.heap, False
        while heap:
            those = [known[ratio] for ratio in self.search.ratios(heap[0])]
            least = min(NO_PLAN if each.infeasible else each.bound for each in those)
            if least <= heap[0].bound:
                break
            self.recomputed &= least <= min(each.own for each in those)
            top = heapq.heappop(heap)
            top.bound, top.taught, raised = least, True, True
            heapq.heappush(heap, top)
        return raised

    def outdone(self) -> bool:
        """Raise boxes to what questions have proven; whether that is more of the weakest one than programs have."""
        if self.search.roots or not self.search.heap:
            return False
        if self.chained and self.learn():
            self.tell("chain")
        return self.search.heap[0].taught

    @property
    def rooted(self) -> bool:
        """Whether every root has been solved."""
        return not self.search.roots

    def step(self) -> None:
        """Solve or divide the box of smallest bound."""
        state = self.state
        limit = NO_PLAN if state.makespan is None else state.makespan
        learned = self.chained and self.learn()
        self.search.step(state.budget.remaining_s, limit)
        for each in self.search.changed:
            few = few_ratios(each.box, self.search.batch, self.search.parts, self.params.singles)
            for ratio in few or ():
                state.ratios[ratio].raise_to(self.search.of(ratio), own=self.recomputed)
        located = any(each.places for each in self.search.changed)
        self.tell("chain" if learned else "places" if located else "boxes")

    def tell(self, rung: str) -> None:
        """Raise all ratios to the least bound of any box."""
        state = self.state
        for each in self.search.finished:  # what was proven of single ratios since
            known = state.ratios[next(self.search.ratios(each))]
            self.recomputed &= known.bound <= max(each.bound, known.own)
            each.bound = max(each.bound, known.bound)
        bound = min(self.search.bound(), NO_PLAN - 1)
        state.raise_all(bound, own=self.recomputed)
        state.recomputed()
        state.announce(rung)
