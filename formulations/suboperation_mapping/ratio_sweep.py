"""From one ratio to the instance: questions to one engine about every partition of the batch.

1.  *Bounds*: of every ratio the longest path of a share (:mod:`path_bound`), and one flow for all (:mod:`fluid_bound`).
2.  *Passes* over the ratios that are open, smallest bound first. The engine is asked for a plan below the best one that
    is known: the plan given as ``start``, everything on one accelerator, the well-balanced scheme of a ratio, or what
    the engine has found. No other search takes part.
3.  The first pass gives every ratio a few tenths of a second, each further one more (:class:`Sweep`). So a longer run
    begins like a shorter one. Where a ratio was not answered, the next question asks only for a plan in the lower half
    of what its bound leaves, then of what is left of that: the nearer the cutoff, the easier the proof.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from mapgap.core import DISTRUSTED, Budget, InputError, OutOfTime, PlanBase, SolveResult, Status, Stop
from mapgap.formulations.suboperation_mapping.fluid_bound import fluid_bound
from mapgap.formulations.suboperation_mapping.params import Sweep as Params
from mapgap.formulations.suboperation_mapping.path_bound import path_bound, share_paths
from mapgap.formulations.suboperation_mapping.phase_graph import PhaseGraph
from mapgap.formulations.suboperation_mapping.ratio_model import WAITS, shares_links
from mapgap.problems.suboperation_mapping import Instance, Plan
from mapgap.problems.suboperation_mapping.evaluate import diagnose
from mapgap.problems.suboperation_mapping.lowered.arrays import Lowered, lower
from mapgap.problems.suboperation_mapping.lowered.mapped import Mapped, best_single, started, timed, well_balanced
from mapgap.problems.suboperation_mapping.lowered.ratios import Ratio, partitions
from mapgap.solvers.turns import EngineError

SolveRatio = Callable[[Lowered, int | None, float], SolveResult]
"""``solve_ratio(lowered, cutoff, seconds)`` looks for plans of one ratio *below* the cutoff; its status, bound and plan
are about these. What :func:`nothing_below` says is that there are none."""


def watch(budget: Budget) -> Callable[[], None]:
    """What a model calls while it is built; raises :class:`OutOfTime` when the time is over."""

    def look() -> None:
        if budget.exhausted:
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
        The model claims another makespan, though it times all that takes time.
    """
    if result.plan is None:
        return None
    found = _timed(lowered, result.plan)
    exact = not shares_links(lowered)
    if exact and found is not None and result.claimed is not None and found.makespan != result.claimed:
        raise EngineError(f"claims {result.claimed} for a plan of {found.makespan}")
    return found


def relaxed(lowered: Lowered, result: SolveResult) -> SolveResult:
    """What an answer about a model says of plans on shared links: its bound, and its plan timed there.

    Where the model is solved and the plan takes longer, or exceeds the DRAM, it can say no more (``Stop.DONE``).

    Raises
    ------
    EngineError
        The model claims a bound that its plan refutes.
    """
    bound, found = max(result.bound or 0, 0), verified(lowered, result)
    if found is not None and found.makespan < bound:
        raise EngineError(f"claims bound {bound} beside its own plan of {found.makespan}")
    if found is not None and found.makespan == bound:
        return replace(result, status=Status.OPTIMAL, stop=Stop.PROVED, bound=bound, claimed=bound)
    if result.status is Status.OPTIMAL:
        result = replace(result, stop=Stop.DONE, reason=WAITS)
    if found is None:
        return replace(result, status=Status.UNKNOWN, plan=None, claimed=None, bound=bound)
    return replace(result, status=Status.FEASIBLE, bound=bound, claimed=found.makespan)


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


def parts_of(ratio: Ratio) -> Ratio:
    """The ratio as a partition, the name under which its shares are known: largest first."""
    return tuple(sorted(ratio, reverse=True))


def known_plan(instance: Instance, start: str | Plan | None, only: Ratio = ()) -> Mapped | None:
    """The plan to begin with: ``start``, or everything on one accelerator where no ratio is asked for.

    Raises
    ------
    InputError
        ``start`` is none of this instance, or not of the only ratio that is wanted.
    """
    mapped = started(instance, start)
    if mapped is not None and only and parts_of(mapped.lowered.ratio) != parts_of(only):
        raise InputError(f"start: expected a plan of the ratio {list(only)}, found {list(mapped.lowered.ratio)}")
    single = None if only else best_single(instance)
    plans = [each for each in (mapped, single) if each is not None]
    return min(plans, key=lambda each: each.makespan, default=None)


@dataclass
class Sweep:
    """What is known of all ratios, of which each is solved by itself.

    Attributes
    ----------
    bounds : dict
        Of every ratio.
    partial : bool
        Only one ratio is asked for: nothing is proven of the instance.
    searched : int
        Questions so far.
    halved : dict
        How often the distance between bound and best plan is halved in the next question about a ratio.
    """

    instance: Instance
    budget: Budget
    bounds: dict[Ratio, int]
    partial: bool = False
    best: Mapped | None = None
    searched: int = 0
    infeasible: set[Ratio] = field(default_factory=set)
    reasons: dict[Ratio, str] = field(default_factory=dict)
    distrusted: list[str] = field(default_factory=list)
    halved: dict[Ratio, int] = field(default_factory=dict)

    @classmethod
    def begin(cls, instance: Instance, budget: Budget, ratio: Ratio = (), start: str | Plan | None = None) -> Sweep:
        """Every partition of the batch (or one ratio), each with a bound, and a first plan."""
        known = known_plan(instance, start, ratio)
        ratios = [ratio] if ratio else list(partitions(instance.batch, len(instance.accelerators)))
        with budget.timed("bounds"):
            phases = PhaseGraph(instance)
            flow, paths = fluid_bound(phases), share_paths(phases)
        found = cls(instance, budget, {each: max(flow, path_bound(paths, each)) for each in ratios}, bool(ratio))
        if not found.partial:
            budget.recomputed.append(min(path_bound(paths, each) for each in ratios))
        found.offer(known)
        found.announce()
        return found

    @property
    def cutoff(self) -> int | None:
        """Makespan of the best plan."""
        return None if self.best is None else self.best.makespan

    def open(self, ratio: Ratio) -> bool:
        """The ratio may hold a better plan."""
        return self.cutoff is None or self.bounds[ratio] < self.cutoff

    def waiting(self) -> list[Ratio]:
        """The ratios to ask for: open, neither without a plan nor refused; smallest bound first."""
        settled = self.infeasible | self.reasons.keys()
        return sorted((r for r in self.bounds if self.open(r) and r not in settled), key=lambda r: (self.bounds[r], r))

    def graph(self, ratio: Ratio) -> Lowered:
        """The ratio as arrays, with what they say: a path over several shares, and a simple plan."""
        graph = lower(self.instance, ratio)
        self.bounds[ratio] = max(self.bounds[ratio], critical_path(graph))
        self.offer(timed(graph, well_balanced(graph), graph.topological))
        return graph

    def aim(self, ratio: Ratio) -> int | None:
        """The cutoff of the next question about a ratio."""
        bound, cutoff = self.bounds[ratio], self.cutoff
        return None if cutoff is None else max(bound + 1, bound + ((cutoff - bound) >> self.halved.get(ratio, 0)))

    def learn(self, ratio: Ratio, result: SolveResult) -> None:
        """Where a question was answered, the next one asks for half of the rest, else for less."""
        halved = self.halved.get(ratio, 0)
        answered = result.stop is Stop.PROVED or result.plan is not None
        self.halved[ratio] = min(halved, 1) if answered else halved + 1

    def enter(self, graph: Lowered, result: SolveResult) -> None:
        """Take what a question about one ratio has found, and announce it."""
        ratio = graph.ratio
        self.searched += 1
        self.bounds[ratio] = max(self.bounds[ratio], result.bound or 0)
        if result.status is Status.INFEASIBLE:
            self.infeasible.add(ratio)
        if result.stop is Stop.DONE and result.reason:
            self.reasons[ratio] = result.reason
        self.distrusted += result.notes.get(DISTRUSTED, ())
        self.offer(verified(graph, result))
        self.announce()

    def offer(self, found: Mapped | None) -> None:
        """Take a plan if it is the best one."""
        if found is not None and (self.best is None or found.makespan < self.best.makespan):
            self.best = found
            self.budget.report(plan=found.plan)

    def announce(self) -> None:
        """Report the bound of the instance."""
        if not self.partial:
            self.budget.report(bound=self.bound())

    def bound(self) -> int | None:
        """Smallest bound over the ratios that may hold a plan, never above the incumbent."""
        open_bounds = [b for r, b in self.bounds.items() if r not in self.infeasible]
        if self.best is not None:
            open_bounds.append(self.best.makespan)
        return min(open_bounds, default=None)

    def conclude(self, stop: Stop) -> SolveResult:
        """The result of all ratios."""
        best, bound, partial = self.best, self.bound(), self.partial
        notes: dict[str, Any] = {"ratios": len(self.bounds), "ratios_searched": self.searched}
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


def questions(state: Sweep, solve_ratio: SolveRatio, params: Params) -> Iterator[Stop]:
    """Ask about one ratio after the other; yields why each answer ended."""
    seconds = params.question_s
    while left := state.waiting():
        for ratio in left:
            if not state.open(ratio):
                continue
            with state.budget.timed("build"):
                graph = state.graph(ratio)
            state.announce()  # before an engine is asked, which may end so late that its answer is lost
            if state.open(ratio):
                result = solve_ratio(graph, state.aim(ratio), min(seconds, state.budget.remaining_s))
                state.learn(ratio, result)
                state.enter(graph, result)
                yield result.stop
        seconds *= params.growth


def sweep(
    instance: Instance,
    budget: Budget,
    solve_ratio: SolveRatio,
    ratio: Ratio = (),
    start: str | Plan | None = None,
    params: Params = Params(),
) -> SolveResult:
    """Ask about every partition of the batch (or one ``ratio``) until each is answered or the time is over.

    The bound of the instance is the smallest over all ratios; under a given ``ratio`` nothing is proven of the instance
    and the bound is ``None``.
    """
    if reasons := diagnose(instance):
        return SolveResult(Status.INFEASIBLE, Stop.PROVED, reason="; ".join(reasons))
    state = Sweep.begin(instance, budget, ratio, start)
    stop = Stop.PROVED
    if not budget.exhausted:
        for stop in questions(state, solve_ratio, params):
            if stop is Stop.INTERRUPTED or budget.exhausted:
                break
    if stop is not Stop.INTERRUPTED:
        stop = Stop.TIME if state.waiting() else Stop.PROVED
    return state.conclude(stop)


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
