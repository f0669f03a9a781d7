"""The first bounds of ``stage_mip``: all ratios in boxes, best-first."""

from __future__ import annotations

import time
from typing import Any

from mapgap.formulations.suboperation_mapping import stage_search as search
from mapgap.formulations.suboperation_mapping.box_search import BoxSearch
from mapgap.formulations.suboperation_mapping.located_frame import Frame
from mapgap.formulations.suboperation_mapping.stage_plans import Plans
from mapgap.formulations.suboperation_mapping.stage_search import NO_PLAN, Reply
from mapgap.formulations.suboperation_mapping.stage_state import State
from mapgap.problems.suboperation_mapping.lowered.ratios import Ratio

CLOSE = 0.02  #: share above the smallest bound of all within which a ratio is annealed as soon as it is bounded

LEAST_S, LEAST = 1.0, 0.3  #: seconds that a program may take at least, as a share of the time at most


class Boxes:
    """The search over boxes of ratios, as a step of the search for a plan.

    Parameters
    ----------
    state : State
    columns : bool
        A single ratio is bounded by the stage model with columns, and annealed where that bound is near the best plan.
    """

    def __init__(self, state: State, plans: Plans, frame: Frame, columns: bool) -> None:
        self.state, self.plans = state, plans
        self.rounded: set[Ratio] = set()
        self.search = BoxSearch(frame, self.ratio_bound if columns else None)

    def ratio_bound(self, ratio: Ratio, time_s: float) -> tuple[int, dict[str, Any] | None]:
        """The column LP, and a plan where it leaves room for a better one."""
        state, one = self.state, search.solver(ratio)
        bound = one.relax(time_s)
        limit = state.makespan
        room = limit is None or (bound < limit and bound <= state.bound * (1.0 + CLOSE))
        if room and not state.budget.exhausted and ratio not in self.rounded:
            self.rounded.add(ratio)
            found = one.rounded(state.budget.remaining_s, state.budget.seed)
            state.take(Reply(ratio, search.known(0, found)))
        return bound, None

    def waiting(self) -> bool:
        """Whether the smallest bound of all belongs to a box that can still be solved or divided."""
        state, heap = self.state, self.search.heap
        limit = NO_PLAN if state.makespan is None else state.makespan
        single = [next(self.search.ratios(each)) for each in self.search.finished]
        known = [state.ratios[r] for r in single]
        return bool(heap) and heap[0].bound < min([limit, *(k.bound for k in known if not k.infeasible)])

    def run(self, time_s: float) -> None:
        """Raise the smallest bound for some seconds, or until it belongs to a single ratio."""
        state, begun = self.state, time.perf_counter()
        changed, least = False, min(LEAST_S, LEAST * state.budget.time_s)
        self.plans.run()
        while self.waiting() and not state.budget.exhausted and time.perf_counter() - begun < time_s:
            left = min(state.budget.remaining_s, max(least, time_s - (time.perf_counter() - begun)))
            self.search.step(left, NO_PLAN if state.makespan is None else state.makespan)
            self.enter_finished()
            state.raise_all(min(self.search.bound(), NO_PLAN - 1))
            state.announce()
            self.plans.run()
            changed = True
        if changed:
            self.settle()

    def enter_finished(self) -> None:
        """Enter the bounds of single ratios, and take what was proven of them since."""
        for each in self.search.finished:
            known = self.state.ratios[next(self.search.ratios(each))]
            if each.bound >= NO_PLAN:
                known.infeasible = True
            else:
                each.bound = known.bound = max(known.bound, each.bound)

    def settle(self) -> None:
        """Enter the bound of every box for its ratios."""
        for each in self.search.all():
            for ratio in self.search.ratios(each):
                known = self.state.ratios[ratio]
                if each.bound >= NO_PLAN:
                    known.infeasible = True
                else:
                    known.bound = max(known.bound, each.bound)
        self.state.announce()
