"""What is done for one ratio, in this process or another: the LP, the destructive MIP, and plans rounded from both."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import numpy as np

from mapgap.core import DISTRUSTED, Budget, SolveResult, Status, Stop
from mapgap.formulations.suboperation_mapping.cpsat import Build, RatioModel, UnrelaxedRatioModel, solve_ratio
from mapgap.formulations.suboperation_mapping.list_anneal import list_anneal, starts
from mapgap.formulations.suboperation_mapping.phase_graph import PhaseGraph
from mapgap.formulations.suboperation_mapping.ratio_model import horizon
from mapgap.formulations.suboperation_mapping.stage_model import StageModel
from mapgap.formulations.suboperation_mapping.staged_ratio import StagedRatioModel
from mapgap.heuristics.suboperation_mapping.search.pool import SHORT, WORK, Search
from mapgap.problems.suboperation_mapping import Instance
from mapgap.problems.suboperation_mapping.lowered.arrays import Array, Lowered, lower
from mapgap.problems.suboperation_mapping.lowered.mapped import Mapped
from mapgap.problems.suboperation_mapping.lowered.ratios import Ratio
from mapgap.solvers.highs import MatrixOutcome
from mapgap.solvers.integer_lp import exact_bound

EXACT_TICKS = 100_000  #: up to here one tick is 10^4 times the feasibility tolerance of the scaled model
COLD = (0.001, 0.0005, 0.0002)  #: first temperatures that keep a good mapping, as shares of the makespan
ROUNDING_S = 1.0  #: seconds that a mapping may be improved for, even if finding it took all the time
LISTED = 5_000  #: decodings of a list scheduler that orders a rounded mapping
SAFETY = 1e-6  #: relative error granted to floating-point bounds (HiGHS tolerances are 1e-9 on times scaled to 1000)
UNRESOLVED = "HiGHS: the times of one row differ too much for doubles; its bounds are not used"
ModelKind = Literal["unrelaxed", "relaxed", "staged"]
"""Of the complete model: without the engine's linear relaxation, with it, and with the rows of the stages beside it."""
NO_PLAN = 2**62  #: bound of a ratio whose relaxation has no point


@dataclass(frozen=True)
class Reply:
    """What a process found for a ratio.

    Attributes
    ----------
    ratio : Ratio
    result : SolveResult
        About the plans of this ratio; ``claimed`` is the makespan of the plan.
    attained : float or None
        Objective of a mapping in the relaxation: the ratio's bound cannot rise above it.
    closed : bool
        The MIP was solved: the bound is all that the relaxation can prove.
    proof : dict, optional
        :attr:`RatioSolver.proof` of the bound, where the question asks for it.
    """

    ratio: Ratio
    result: SolveResult
    attained: float | None = None
    closed: bool = False
    proof: dict[str, Any] | None = None

    @property
    def bound(self) -> int:
        """No plan of the ratio has a smaller makespan."""
        return self.result.bound or 0


def known(bound: int, found: Mapped | None) -> SolveResult:
    """A bound on the plans of a ratio, and one of them if there is any; ``NO_PLAN`` says that there is none."""
    if bound >= NO_PLAN:
        return SolveResult(Status.INFEASIBLE, Stop.PROVED)
    if found is None:
        return SolveResult(Status.UNKNOWN, Stop.DONE, bound=bound)
    return SolveResult(Status.FEASIBLE, Stop.DONE, found.plan, bound, found.makespan)


def safe(bound: float, scale: float) -> int:
    """Integer lower bound in ticks behind a floating-point one."""
    return max(0, math.ceil(bound * scale * (1.0 - SAFETY) - 1e-6))


class RatioSolver:
    """One ratio with its model, its LP and its lowered arrays."""

    def __init__(self, phases: PhaseGraph, ratio: Ratio, scale: float, columns: bool = True) -> None:
        self.ratio, self.scale = ratio, scale
        self.lowered: Lowered = lower(phases.instance, ratio)
        self.model = StageModel(phases, ratio, scale, columns)
        self.linear: MatrixOutcome | None = None
        self.floor = 0
        self.last = horizon(self.lowered)

    def relax(self, time_s: float) -> int:
        """Bound of the LP."""
        if self.linear is None:
            outcome = self.model.matrix.solve(time_s, relaxed=True, simplex=True)
            if outcome.duals is not None:
                self.linear = outcome
                # Exact for the doubles of the model, which are those of the program: the scale is a power of two.
                assert self.scale.is_integer()
                exact = exact_bound(self.model.matrix, outcome.duals, -(-self.last // int(self.scale)))
                self.floor = max(0, math.ceil(exact * int(self.scale)))
            elif outcome.status is Status.INFEASIBLE and self.model.matrix.resolved:
                self.floor = NO_PLAN
        return self.floor

    @property
    def proof(self) -> dict[str, Any] | None:
        """The LP's duals as doubles, ``[row, y, ...]``, with what the model was built with: columns and scale."""
        if self.floor == NO_PLAN or self.linear is None or self.linear.duals is None:
            return None
        duals = self.linear.duals
        rows = [x for i in duals.nonzero()[0].tolist() for x in (i, float(duals[i]))]
        return {"columns": self.model.spread, "scale": int(self.scale), "rows": rows}

    def rounded(self, time_s: float, seed: int) -> Mapped | None:
        """Improve the LP's most likely mapping."""
        if self.linear is None or self.linear.values is None:
            return self.improve(starts(self.lowered)[-1], time_s, seed)
        return self.improve(self.model.locations(self.linear.values), time_s, seed)

    def improve(self, location: Array, time_s: float, seed: int) -> Mapped | None:
        """Order a mapping by an annealed list scheduler, then anneal mapping and order together.

        Both from that order and from the topological one, whose weight updates come early: either may be better.
        """
        one, hot = self.lowered, COLD[seed % len(COLD)]
        search = Search(one.instance, Budget(time_s, seed=seed).start())
        listed = list_anneal(one, location, iterations=LISTED, seed=seed, hot=hot)
        search.offer(listed)
        plain = Mapped(one, location, one.topological, *one.timetable(location, one.topological))
        for parent in (plain, listed):
            if parent is not None and not search.budget.exhausted:
                search.anneal(self.ratio, parent, hot, min(WORK // one.n, SHORT * one.n), seed)
        return search.best

    def destroy(self, target: int, time_s: float, seed: int) -> Reply:
        """Look for a mapping whose relaxation ends by ``target``; prove that there is none, or round it."""
        matrix = self.model.matrix
        if not matrix.resolved:  # nothing to learn from the relaxation
            return Reply(self.ratio, replace(known(0, None), notes={DISTRUSTED: [UNRESOLVED]}), 0.0, closed=True)
        target = min(target, self.last)
        begun = time.perf_counter()
        floor = self.relax(time_s)
        if floor > target or self.linear is None:
            return Reply(self.ratio, known(floor, None), closed=floor > target)
        # Where a tick is near the engine's tolerances, a limit whose proof is worth one tick more than the target.
        limit = (target if target <= EXACT_TICKS else target + 1) / self.scale * (1.0 + SAFETY)
        upper = np.array(matrix.upper)
        assert self.linear.reduced is not None
        assert self.linear.bound is not None
        slack = limit - self.linear.bound
        unit = np.fromiter(self.model.columned, np.int64)
        # A column that is 0 or 1 in every schedule and costs more than the slack is 0 in all that end by the target.
        upper[unit[self.linear.reduced[unit] > slack + 1e-5]] = 0.0
        upper[self.model.M] = limit
        left = max(0.1, time_s - (time.perf_counter() - begun))
        outcome = matrix.solve(left, relaxed=False, upper=upper, seed=seed)
        if outcome.status is Status.INFEASIBLE:
            return Reply(self.ratio, known(NO_PLAN if target == self.last else max(floor, target + 1), None))
        bound = max(floor, 0 if outcome.bound is None else min(target, safe(outcome.bound, self.scale)))
        if outcome.values is None:
            return Reply(self.ratio, known(bound, None))
        left = time_s - (time.perf_counter() - begun)
        found = self.improve(self.model.locations(outcome.values), max(left, ROUNDING_S), seed)
        attained = float(outcome.values[self.model.M]) * self.scale
        return Reply(self.ratio, known(bound, found), attained, outcome.status is Status.OPTIMAL)


@dataclass(frozen=True)
class _Context:
    """What a process works on."""

    phases: PhaseGraph
    scale: float
    columns: bool


_solvers: dict[Ratio, RatioSolver] = {}
_context: _Context | None = None


def prepare(instance: Instance, scale: float, columns: bool) -> None:
    """Start of a process."""
    global _context
    _context = _Context(PhaseGraph(instance), scale, columns)
    _solvers.clear()


def _here() -> _Context:
    assert _context is not None
    return _context


def solver(ratio: Ratio) -> RatioSolver:
    """The solver of a ratio; the last ones are kept."""
    context = _here()
    if ratio not in _solvers:
        if len(_solvers) > 60:
            _solvers.pop(next(iter(_solvers)))
        _solvers[ratio] = RatioSolver(context.phases, ratio, context.scale, context.columns)
    return _solvers[ratio]


def survey(ratio: Ratio, seed: int, time_s: float) -> Reply:
    """LP without configuration columns."""
    context = _here()
    one = RatioSolver(context.phases, ratio, context.scale, columns=False)
    return Reply(ratio, known(one.relax(time_s), None), proof=one.proof)


def explore(ratio: Ratio, seed: int, time_s: float) -> Reply:
    """LP, and a plan from what it suggests."""
    one = solver(ratio)
    begun = time.perf_counter()
    bound = one.relax(time_s)
    return Reply(ratio, known(bound, one.rounded(time_s - (time.perf_counter() - begun), seed)))


def destroy(ratio: Ratio, target: int, time_s: float, seed: int) -> Reply:
    """A mapping whose relaxation ends by the target, or the proof that there is none."""
    return solver(ratio).destroy(target, time_s, seed)


def complete(ratio: Ratio, cutoff: int | None, time_s: float, seed: int, kind: ModelKind) -> Reply:
    """The complete model in one of its kinds: a plan below ``cutoff``, or the proof of none."""
    phases = _here().phases
    lowered = lower(phases.instance, ratio)
    # One worker and no start: the proof that nothing lies below a good cutoff is what takes the time.
    budget = Budget(time_s, workers=1, seed=seed)
    builds: dict[ModelKind, Build] = {
        "unrelaxed": UnrelaxedRatioModel,
        "relaxed": RatioModel,
        "staged": partial(StagedRatioModel, phases),
    }
    return Reply(ratio, solve_ratio(lowered, cutoff, budget, time_s, build=builds[kind]))
