"""From one ratio to the instance: every partition of the batch, most promising first, the best plan as cutoff."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import permutations
from typing import Any

import numpy as np

from mapgap.core import DISTRUSTED, Budget, OutOfTime, PlanBase, SolveResult, Status, Stop
from mapgap.formulations.suboperation_mapping.fluid_bound import fluid_bound
from mapgap.formulations.suboperation_mapping.path_bound import path_bound, share_paths
from mapgap.formulations.suboperation_mapping.phase_graph import PhaseGraph
from mapgap.heuristics.suboperation_mapping.search.pool import Rounds, Search
from mapgap.heuristics.suboperation_mapping.search.short_rounds import short_rounds
from mapgap.heuristics.suboperation_mapping.search.starts import starts
from mapgap.problems.suboperation_mapping import Instance, Plan
from mapgap.problems.suboperation_mapping.evaluate import diagnose
from mapgap.problems.suboperation_mapping.lowered.arrays import Lowered, lower
from mapgap.problems.suboperation_mapping.lowered.mapped import Mapped, timed
from mapgap.problems.suboperation_mapping.lowered.ratios import Ratio, partitions, pe_ratio
from mapgap.solvers.turns import EngineError

PASSES, LEAST_LEFT = 3, 0.05
"""Over the ratios that are still open; and the part of the budget without which no other pass begins."""
SEARCHED, ROUNDS = 0.15, 12
"""Part of the budget for annealing before the first model, and rounds of it."""

SOLVED = 0.5
"""Part of a ratio's time for its model; if that stays open, the rest is for annealing."""

MODEL_S, MODEL_SIZE = 0.1, 50
"""Seconds of a model's time below which it proves nothing, of so many operations, and more in proportion of larger
ones. Where ratios cannot have so much, annealing comes first."""

EVERY_PLACE = 5
"""Most accelerators whose permutations are all tried for a first plan; of more, the rotations of one order."""
BEGUN = 0.3
"""Part of the budget within which ratios are lowered and get first plans."""

QUESTION_S = 0.5
"""Least seconds of a question, as long as there are so many: of shorter ones none might be answered."""
MOST_SOUGHT = 9
"""Annealing gets as much time as a question took that was not answered, after a second one twice as much, up to so many
times: an engine that is stuck gets less and less until it answers again."""

SolveRatio = Callable[[Lowered, int | None, float], SolveResult]
"""``solve_ratio(lowered, cutoff, seconds)`` looks for plans of one ratio *below* the cutoff; its status, bound and plan
are about these. What :func:`nothing_below` says is that there are none."""


def watch(budget: Budget, share: float = 1.0) -> Callable[[], None]:
    """What a model calls while it is built; raises :class:`OutOfTime` after this share of the time that is left."""
    end = budget.elapsed_s + share * budget.remaining_s

    def look() -> None:
        if budget.exhausted or budget.elapsed_s > end:
            raise OutOfTime

    return look


def unbuilt(bound: int | None = None) -> SolveResult:
    """The time does not suffice for a model of the ratio."""
    return SolveResult(Status.UNKNOWN, Stop.TIME, bound=bound, reason="the time is too short for a model of the ratio")


def nothing_below(cutoff: int | None) -> SolveResult:
    """The ratio has no plan below the cutoff, or none at all."""
    if cutoff is None:
        return SolveResult(Status.INFEASIBLE, Stop.PROVED)
    return SolveResult(Status.UNKNOWN, Stop.PROVED, bound=cutoff)


def verified(lowered: Lowered, result: SolveResult) -> Mapped | None:
    """The plan of a model timed as early as possible; ``None`` without a plan, or if it exceeds the DRAM.

    Raises
    ------
    EngineError
        The model claims another makespan.
    """
    if result.plan is None:
        return None
    found = _timed(lowered, result.plan)
    if found is not None and result.claimed is not None and found.makespan != result.claimed:
        raise EngineError(f"claims {result.claimed} for a plan of {found.makespan}")
    return found


def worth(lowered: Lowered, plan: PlanBase) -> int | None:
    """Makespan of a plan of the ratio timed as early as possible; ``None`` if it exceeds the DRAM."""
    found = _timed(lowered, plan)
    return None if found is None else found.makespan


def _timed(lowered: Lowered, plan: PlanBase) -> Mapped | None:
    assert isinstance(plan, Plan)
    return timed(lowered, *lowered.mapping(plan))


def critical_path(lowered: Lowered) -> int:
    """The larger of the longest path and the area, both with the fastest accelerator and without transfers."""
    fastest = lowered.timing.compute.min(axis=1)
    end = np.zeros(lowered.n, np.int64)
    for o in lowered.topological:
        end[o] = fastest[o] + end[lowered.predecessors(o)].max(initial=0)
    return max(int(end.max()), -(-int(fastest.sum()) // lowered.accelerators))


def simple_start(lowered: Lowered) -> Mapped | None:
    """The best of: every share on an accelerator of its own, fused layers with the first share."""
    tried = []
    for places in _placements(lowered):
        location = np.array([places[max(share, 0)] for _, _, share in lowered.operations], np.int64)
        tried.append(timed(lowered, location, lowered.topological))
    return min((found for found in tried if found is not None), key=lambda found: found.makespan, default=None)


def _placements(lowered: Lowered) -> Iterator[tuple[int, ...]]:
    """Accelerators of the shares: all permutations of a few, rotations from the fastest to the slowest of many."""
    count = lowered.accelerators
    if count <= EVERY_PLACE:
        yield from permutations(range(count))
        return
    work = lowered.timing.compute.sum(axis=0).tolist()
    fastest = sorted(range(count), key=lambda a: (work[a], a))
    for k in range(count):
        yield tuple(fastest[k:] + fastest[:k])


class Annealing:
    """Annealing beside the questions to an engine: no model begins with less than the quick planners have.

    Parameters
    ----------
    share, most : float
        At first for this part of the budget, and so many rounds.
    """

    def __init__(self, instance: Instance, budget: Budget, ratio: Ratio, share: float, most: float) -> None:
        only = ratio or None
        self.search = Search(instance, Budget(share * budget.remaining_s, seed=budget.seed).start())
        for start in starts(instance, self.search.budget, only):
            self.search.offer(start)
            if self.search.budget.exhausted:
                break
        short_rounds(self.search, fixed=only is not None)
        self.rounds, self.over, self.owed_s = Rounds(self.search, only), False, 0.0
        self._run(math.inf, most)

    def _run(self, seconds: float, most: float = math.inf) -> Mapped | None:
        budget, end = self.search.budget, self.search.rounds + most
        late = budget.elapsed_s + seconds
        while not self.over and self.search.rounds < end and not budget.exhausted and budget.elapsed_s < late:
            self.over = not self.rounds.next()
        return self.search.best

    def seek(self, seconds: float, known: Mapped | None, left_s: float) -> Mapped | None:
        """The best plan after so many more seconds of ``left_s``, or when rounds promise nothing more.

        A round finds most at its end, so none is cut; what the last one takes too long is missing from the next call.
        """
        self.search.offer(known)
        self.search.budget = Budget(left_s, seed=self.search.budget.seed).start()
        self.owed_s += seconds
        found = self._run(self.owed_s)
        self.owed_s -= self.search.budget.elapsed_s
        return found


@dataclass
class Sweep:
    """What is known of all ratios, of which each is solved by itself.

    Attributes
    ----------
    graphs : list of Lowered
        Of the ratios, most promising first; without those for which the time did not suffice.
    partial : bool
        Only one ratio is asked for: nothing is proven of the instance.
    """

    instance: Instance
    budget: Budget
    graphs: list[Lowered]
    partial: bool = False
    annealing: Annealing | None = None
    best: Mapped | None = None
    bounds: dict[Ratio, int] = field(default_factory=dict)
    infeasible: set[Ratio] = field(default_factory=set)
    reasons: dict[Ratio, str] = field(default_factory=dict)
    distrusted: list[str] = field(default_factory=list)

    @classmethod
    def begin(cls, instance: Instance, budget: Budget, ratio: Ratio = ()) -> Sweep:
        """Lower every partition of the batch (or one ratio), bound each, announce a first plan and a better one.

        Where the time does not suffice for a model of every ratio, it is for annealing.
        """
        ratios = [ratio] if ratio else list(partitions(instance.batch, len(instance.accelerators)))
        least_s = MODEL_S * max(1.0, lower(instance, ratio or pe_ratio(instance)).n / MODEL_SIZE)
        scarce = SOLVED * budget.remaining_s < least_s * len(ratios)
        found = cls(instance, budget, [], bool(ratio), bounds=dict.fromkeys(ratios, 0))
        found._lower(ratios[:1] if scarce else ratios)
        share, most = (1.0 - LEAST_LEFT, math.inf) if scarce else (SEARCHED, ROUNDS)
        found.annealing = Annealing(instance, budget, ratio, share, most)
        found.offer(found.annealing.search.best)
        if scarce:
            found._lower(ratios[1:])
        if scarce or len(found.graphs) < len(ratios):
            phases = PhaseGraph(instance)
            least, paths = fluid_bound(phases), share_paths(phases)
            found.bounds = {each: max(bound, least, path_bound(paths, each)) for each, bound in found.bounds.items()}
        found.graphs.sort(key=lambda graph: (found.bounds[graph.ratio], graph.ratio))
        return found

    def _lower(self, ratios: list[Ratio]) -> None:
        """The first ratio, and more while there is time."""
        late = self.budget.elapsed_s + BEGUN * self.budget.remaining_s
        for each in ratios:
            if self.graphs and self.budget.elapsed_s > late:
                break
            graph = lower(self.instance, each)
            self.graphs.append(graph)
            self.bounds[each] = critical_path(graph)
            self.offer(simple_start(graph))

    @property
    def settled(self) -> set[Ratio]:
        """Ratios without a plan, and those that a model was refused for."""
        return self.infeasible | self.reasons.keys()

    @property
    def cutoff(self) -> int | None:
        """Makespan of the best plan."""
        return None if self.best is None else self.best.makespan

    def open(self, ratio: Ratio) -> bool:
        """The ratio may hold a better plan."""
        return self.cutoff is None or self.bounds[ratio] < self.cutoff

    def enter(self, graph: Lowered, result: SolveResult) -> None:
        """Take what a run on one ratio has found, and announce it."""
        self.learn(graph.ratio, result)
        self.offer(verified(graph, result))
        if not self.partial:
            self.budget.report(bound=self.bound())

    def learn(self, ratio: Ratio, result: SolveResult) -> None:
        """Enter what was proven of a ratio, or why nothing was."""
        self.bounds[ratio] = max(self.bounds[ratio], result.bound or 0)
        if result.status is Status.INFEASIBLE:
            self.infeasible.add(ratio)
        if result.stop is Stop.DONE and result.reason:
            self.reasons[ratio] = result.reason
        self.distrusted += result.notes.get(DISTRUSTED, ())

    def offer(self, found: Mapped | None) -> None:
        if found is not None and (self.best is None or found.makespan < self.best.makespan):
            self.best = found
            self.budget.report(plan=found.plan)

    def seek(self, seconds: float) -> None:
        """Anneal for so long."""
        if self.annealing is not None and seconds > 0.0:
            self.offer(self.annealing.seek(seconds, self.best, self.budget.remaining_s))

    def bound(self) -> int | None:
        """Smallest bound over the ratios that may hold a plan, never above the incumbent."""
        open_bounds = [b for r, b in self.bounds.items() if r not in self.infeasible]
        if self.best is not None:
            open_bounds.append(self.best.makespan)
        return min(open_bounds, default=None)

    def conclude(self, stop: Stop, searched: int) -> SolveResult:
        """The result of all ratios."""
        best, bound, partial = self.best, self.bound(), self.partial
        notes: dict[str, Any] = {"ratios": len(self.bounds), "ratios_searched": searched}
        if self.distrusted:
            notes[DISTRUSTED] = list(dict.fromkeys(self.distrusted))
        reason = refusals(self.reasons)
        if len(self.infeasible) == len(self.bounds):
            reason = no_ratio_fits(self.instance, len(self.bounds))
            return SolveResult(Status.UNKNOWN if partial else Status.INFEASIBLE, stop, reason=reason, notes=notes)
        if best is None:
            return SolveResult(Status.UNKNOWN, stop, bound=None if partial else bound, reason=reason, notes=notes)
        proven = not partial and bound == best.makespan
        return SolveResult(
            status=Status.OPTIMAL if proven else Status.FEASIBLE,
            stop=Stop.PROVED if proven else (Stop.DONE if stop is Stop.PROVED else stop),
            plan=best.plan,
            bound=None if partial else bound,
            claimed=best.makespan,
            reason="" if proven else reason,
            notes=notes,
        )


def sweep(instance: Instance, budget: Budget, solve_ratio: SolveRatio, ratio: Ratio = ()) -> SolveResult:
    """Solve every partition of the batch (or one ``ratio``), most promising first, each with the incumbent as cutoff.

    The bound of the instance is the smallest over all ratios; under a given ``ratio`` nothing is proven of the instance
    and the bound is ``None``.
    """
    reasons = diagnose(instance)
    if reasons:
        return SolveResult(Status.INFEASIBLE, Stop.PROVED, reason="; ".join(reasons))
    state = Sweep.begin(instance, budget, ratio)
    stop, count, sought = Stop.PROVED, 0, 0
    for _ in range(PASSES):  # what the ratios of a pass have left over is for those that are still open
        left = [graph for graph in state.graphs if state.open(graph.ratio) and graph.ratio not in state.settled]
        for position, graph in enumerate(left):
            if not state.open(graph.ratio):
                continue
            if budget.exhausted or stop is Stop.INTERRUPTED:
                stop = Stop.TIME if stop is Stop.PROVED else stop
                break
            count += 1
            begun = budget.elapsed_s
            share = max(QUESTION_S, SOLVED * budget.remaining_s / (len(left) - position))
            result = solve_ratio(graph, state.cutoff, min(share, SOLVED * budget.remaining_s))
            if result.stop is not Stop.PROVED:
                stop = result.stop  # an interruption ends the loop above, so nothing overwrites it
            state.enter(graph, result)
            sought = min(sought + 1, MOST_SOUGHT) if result.stop is Stop.TIME else 0
            state.seek(sought * (budget.elapsed_s - begun))
        if stop is Stop.INTERRUPTED or budget.remaining_s < LEAST_LEFT * budget.time_s:
            break
    if stop is not Stop.INTERRUPTED and any(state.open(r) for r in state.bounds if r not in state.infeasible):
        state.seek(budget.remaining_s)  # where models were refused, or did not fit into the time
    return state.conclude(stop, count)


def refusals(reasons: Mapping[Ratio, str]) -> str:
    """Why some ratios were left undecided: the first reason, and how many ratios have another like it."""
    if not reasons:
        return ""
    ratio, first = next(iter(reasons.items()))
    more = f"; {len(reasons) - 1} other ratio(s) were refused as well" if len(reasons) > 1 else ""
    return f"ratio {','.join(map(str, ratio))}: {first}{more}"


def no_ratio_fits(instance: Instance, count: int) -> str:
    """The reason of an instance that has no plan at all."""
    sizes = ", ".join(f"{a.name} {a.memory}" for a in instance.accelerators)
    return f"DRAM: no mapping and order of any of the {count} ratios fits ({sizes} units)"
