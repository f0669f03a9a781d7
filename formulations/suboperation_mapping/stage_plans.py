"""The plans of ``stage_mip``: annealing between its questions, from simple mappings and from those that LPs suggest.

The search is that of ``anneal`` (:mod:`~mapgap.heuristics.suboperation_mapping.search.pool`). It has most of the time
at first and a small share of it later, when what an LP suggests is the better way to a plan. Ratios that are closed
take no part.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import replace
from itertools import chain

from mapgap.formulations.suboperation_mapping.phase_graph import PhaseGraph
from mapgap.formulations.suboperation_mapping.stage_model import CONFIGURATIONS
from mapgap.formulations.suboperation_mapping.stage_search import Reply, known
from mapgap.formulations.suboperation_mapping.stage_state import State
from mapgap.formulations.suboperation_mapping.windows import Windows
from mapgap.heuristics.suboperation_mapping.search.pool import Rounds, Search
from mapgap.heuristics.suboperation_mapping.search.short_rounds import short_rounds
from mapgap.heuristics.suboperation_mapping.search.starts import starts
from mapgap.problems.suboperation_mapping import Plan
from mapgap.problems.suboperation_mapping.lowered.arrays import lower
from mapgap.problems.suboperation_mapping.lowered.mapped import Mapped, timed
from mapgap.problems.suboperation_mapping.lowered.ratios import Ratio

STARTS = 0.2  #: share of the time in which MTrain-Converting ends, if it does
POLISHED = 0.15  #: share of the time for neighbourhoods
LENGTH = 0.3  #: of the first rounds, as a share of those of ``anneal``
EAGER, LAZY = 0.7, 0.25  #: share of the time at first, and later, when there are LPs to start from
PATIENT, PATIENT_S, MOST = 0.1, 2.0, 0.6  #: at first: a share of the time, at least seconds, of which at most a share
ROUNDS = (0.003, 0.01, 0.001, 0.03)  #: first temperatures of the rounds
COLUMN_S, PAIR_S = 1e-4, 2e-4  #: seconds of an LP per column of a stage, or per operation and pair of accelerators


def parts_of(ratio: Ratio) -> Ratio:
    """The ratio as a partition, the name under which its shares are known: largest first."""
    return tuple(sorted(ratio, reverse=True))


def lp_seconds(phases: PhaseGraph, ratio: Ratio, columns: bool) -> float:
    """About how long the LP of a ratio takes: enough to tell whether there is time for it."""
    accelerators, shares = len(ratio), sum(samples > 0 for samples in ratio)
    nodes = sum(not phases.fused(node) for node in phases.nodes)
    if columns and accelerators**shares <= CONFIGURATIONS:
        return COLUMN_S * float(nodes * accelerators ** (shares + 2))
    return PAIR_S * float(nodes * shares * accelerators**2)


class Plans:
    """The search for plans, as a step among others.

    Parameters
    ----------
    state : State
        Gets every better plan, and may have learned of others since.
    ratio : Ratio, optional
        The only one that is wanted.
    known : sequence of Mapped
        Plans to start from besides those of the heuristics.
    """

    def __init__(self, state: State, ratio: Ratio | None, known: Sequence[Mapped] = ()) -> None:
        self.state, self.budget = state, state.budget
        self.search = Search(state.instance, state.budget.quiet())
        self.over = False
        self.spent = 0.0  # seconds of annealing
        early = replace(self.budget, time_s=self.budget.elapsed_s + STARTS * self.budget.remaining_s)
        for start in chain(known, starts(state.instance, early, ratio)):
            if self.search.offer(start):
                self.enter()
            if self.budget.exhausted:
                break
        short_rounds(self.search, fixed=ratio is not None)
        self.enter()
        self.rounds = Rounds(self.search, ratio, LENGTH, ROUNDS, self.open)

    def open(self, ratio: Ratio) -> bool:
        """Whether the bound of a ratio leaves room for a better plan."""
        known, limit = self.state.ratios[parts_of(ratio)], self.state.makespan
        return not known.infeasible and (limit is None or known.bound < limit)

    def enter(self) -> None:
        """Tell the state of the best plan."""
        best = self.search.best
        if best is not None and (self.state.makespan is None or best.makespan < self.state.makespan):
            self.state.take(Reply(parts_of(best.lowered.ratio), known(0, best)))

    def learn(self) -> None:
        """Take what others have found into the pool."""
        for plan in self.state.news:
            lowered = lower(self.state.instance, plan.ratio)
            if self.search.offer(timed(lowered, *lowered.mapping(plan))):
                self.rounds.last, self.over = self.search.rounds, False
        self.state.news.clear()

    def due(self) -> bool:
        """Whether annealing has not had its share of the time."""
        time_s = self.budget.time_s
        eager = self.spent < max(PATIENT * time_s, min(PATIENT_S, MOST * time_s))
        share = EAGER if eager else LAZY
        return not self.over and not self.budget.exhausted and self.spent < share * self.budget.elapsed_s

    def round(self) -> bool:
        """Anneal once; ``False`` if the search has given up."""
        begun = time.perf_counter()
        before = self.search.best
        self.over = self.over or not self.rounds.next()
        self.spent += time.perf_counter() - begun
        if self.search.best is not before:
            self.enter()
        return not self.over

    def run(self, time_s: float = 0.0) -> None:
        """Anneal for so many seconds, then until the share of the time is used up."""
        self.learn()
        end = self.budget.elapsed_s + time_s
        while (self.due() or self.budget.elapsed_s < end) and not self.budget.exhausted and self.round():
            pass

    def promising(self) -> list[Ratio]:
        """The ratios of the best plans, as partitions."""
        return list(dict.fromkeys(parts_of(ratio) for ratio in self.search.ranked()))


class Neighbourhoods:
    """CP-SAT on neighbourhoods of the best plan, beside the annealing and for a small share of the time."""

    def __init__(self, state: State) -> None:
        self.state, self.spent = state, 0.0
        self.windows: Windows | None = None

    @property
    def due(self) -> bool:
        """Whether the share of the time is not used up."""
        return self.spent < POLISHED * self.state.budget.elapsed_s

    def run(self, time_s: float, most: float = math.inf) -> None:
        """Search so many neighbourhoods, or for so many seconds."""
        state, begun = self.state, time.perf_counter()
        plan = None if state.best is None else state.ratios[state.best].plan
        if plan is None or time_s <= 0.0:
            return
        if self.windows is None or self.windows.best.makespan != state.makespan:
            lowered = lower(state.instance, plan.ratio)
            start = timed(lowered, *lowered.mapping(plan))
            assert start is not None
            self.windows = Windows(start, state.budget.seed if self.windows is None else self.windows.turn)
        if not self.windows.over:
            found = self.windows.improve(time_s, most)
            bound = found.makespan if self.windows.over else 0
            state.take(Reply(parts_of(plan.ratio), known(bound, found)))
        self.spent += time.perf_counter() - begun


def best_plans(plans: Plans, state: State) -> list[Plan]:
    """The best plan of each ratio that was found by either, the best first."""
    found = {ratio: (makespan, plan) for ratio, plan, makespan in state.planned(state.ratios)}
    for mapped in plans.search.pool.values():
        ratio = parts_of(mapped.lowered.ratio)
        if ratio not in found or mapped.makespan < found[ratio][0]:
            found[ratio] = (mapped.makespan, mapped.plan)
    return [plan for _, plan in sorted(found.values(), key=lambda each: each[0])]
