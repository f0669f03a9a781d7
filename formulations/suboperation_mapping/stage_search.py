"""What is done for one ratio, in this process or another: the LP, the destructive MIP, and plans rounded from both."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, Literal

import numpy as np

from mapgap.core import DISTRUSTED, Budget, SolveResult, Status, Stop
from mapgap.formulations.suboperation_mapping.ascent import Ascent, shares_of
from mapgap.formulations.suboperation_mapping.boxes import of_ratio
from mapgap.formulations.suboperation_mapping.chain_boxes import Narrowing
from mapgap.formulations.suboperation_mapping.chain_plan import chain_plans
from mapgap.formulations.suboperation_mapping.cpsat import Build, RatioModel, UnrelaxedRatioModel, solve_ratio
from mapgap.formulations.suboperation_mapping.fluid_bound import SAFETY, safe
from mapgap.formulations.suboperation_mapping.located_frame import Box, Located
from mapgap.formulations.suboperation_mapping.params import Boxes, Stage
from mapgap.formulations.suboperation_mapping.phase_graph import PhaseGraph
from mapgap.formulations.suboperation_mapping.ratio_model import horizon
from mapgap.formulations.suboperation_mapping.stage_model import StageModel
from mapgap.formulations.suboperation_mapping.staged_ratio import StagedRatioModel
from mapgap.heuristics.suboperation_mapping.params import Annealing
from mapgap.heuristics.suboperation_mapping.search.pool import Search
from mapgap.problems.suboperation_mapping import Instance
from mapgap.problems.suboperation_mapping.lowered.arrays import Array, Lowered, lower
from mapgap.problems.suboperation_mapping.lowered.mapped import Mapped, well_balanced
from mapgap.problems.suboperation_mapping.lowered.ratios import Ratio
from mapgap.solvers.highs import MatrixOutcome, Relaxation
from mapgap.solvers.integer_lp import WholeRows

EXACT_TICKS = 100_000  #: up to here one tick is 10^4 times the feasibility tolerance of the scaled model
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
        The MIP was solved, or a chain was: the bound is all that the relaxation can prove.
    own : bool
        The bound is one of whole numbers of our own.
    """

    ratio: Ratio
    result: SolveResult
    attained: float | None = None
    closed: bool = False
    own: bool = False

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


def annealed(mapped: Mapped, time_s: float, seed: int) -> Mapped | None:
    """Anneal once, from a temperature that keeps the most of a mapping; ``None`` if nothing fits the DRAM."""
    one, params = mapped.lowered, Annealing()
    search = Search(one.instance, Budget(time_s, seed=seed).start(), params)
    steps = min(params.first_work // one.n, params.per_operation * one.n)
    search.anneal(one.ratio, mapped, min(params.hot), steps, seed)
    return search.best


class RatioSolver:
    """One ratio with its model, its LP and its lowered arrays."""

    def __init__(
        self, phases: PhaseGraph, ratio: Ratio, scale: float, columns: bool = True, params: Boxes = Boxes()
    ) -> None:
        self.ratio, self.scale = ratio, scale
        self.lowered: Lowered = lower(phases.instance, ratio)
        self.model = StageModel(phases, ratio, scale, columns, params=params)
        self.linear: MatrixOutcome | None = None
        self.floor = 0
        self.last = horizon(self.lowered)
        self.engine = Relaxation(self.model.matrix)

    @cached_property
    def rows(self) -> WholeRows:
        """Exact for the doubles of the model, which are those of the program: the scale is a power of two."""
        assert self.scale.is_integer()
        return WholeRows(self.model.matrix, -(-self.last // int(self.scale)))

    def relax(self, time_s: float) -> int:
        """Bound of the LP."""
        if self.linear is None:
            self.floor, outcome = self.located(time_s)
            self.linear = None if outcome.duals is None else outcome
        return self.floor

    def located(self, time_s: float, places: Located = ()) -> tuple[int, MatrixOutcome]:
        """Bound of the LP with fused nodes at places, and its point."""
        outcome = self.engine.solve(time_s, self.model.closed(places))
        if outcome.status is Status.INFEASIBLE and self.model.matrix.resolved:
            return NO_PLAN, outcome
        if outcome.duals is None:
            return 0, outcome
        exact = self.rows.bound(outcome.duals, self.model.closed(places))
        return max(0, math.ceil(exact * int(self.scale))), outcome

    def proof(self, outcome: MatrixOutcome) -> dict[str, Any] | None:
        """An LP's duals as doubles, ``[row, y, ...]``, with what the model was built with: columns and scale."""
        duals = outcome.duals
        if duals is None:
            return None
        rows = [x for i in duals.nonzero()[0].tolist() for x in (i, float(duals[i]))]
        return {"columns": self.model.spread, "scale": int(self.scale), "rows": rows}

    def rounded(self, time_s: float, seed: int) -> Mapped | None:
        """Improve the LP's most likely mapping."""
        if self.linear is None or self.linear.values is None:
            return self.improve(well_balanced(self.lowered), time_s, seed)
        return self.improve(self.model.locations(self.linear.values), time_s, seed)

    def improve(self, location: Array, time_s: float, seed: int) -> Mapped | None:
        """Anneal a mapping, and its order with it."""
        one = self.lowered
        plain = Mapped(one, location, one.topological, *one.timetable(location, one.topological))
        return annealed(plain, time_s, seed)

    def destroy(self, target: int, time_s: float, left_s: float, seed: int) -> Reply:
        """Look for a mapping whose relaxation ends by ``target``; prove that there is none, or round it.

        ``time_s`` for the engine, ``left_s`` in all.
        """
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
        left = left_s - (time.perf_counter() - begun)
        found = self.improve(self.model.locations(outcome.values), left, seed)
        attained = float(outcome.values[self.model.M]) * self.scale
        return Reply(self.ratio, known(bound, found), attained, outcome.status is Status.OPTIMAL)


@dataclass(frozen=True)
class _Context:
    """What a process works on."""

    phases: PhaseGraph
    scale: float
    params: Stage
    along: Narrowing
    ascents: dict[Ratio, Ascent] = field(default_factory=dict)
    beams: dict[Ratio, int] = field(default_factory=dict)  # labels of a state for the next plans of a ratio
    seconds: dict[str, float] = field(default_factory=lambda: {"bounds": 0.0, "plans": 0.0})  # along chains


_solvers: dict[Ratio, RatioSolver] = {}
_context: _Context | None = None


def prepare(instance: Instance, scale: float, params: Stage = Stage()) -> None:
    """Start of a process."""
    global _context
    _context = _Context(PhaseGraph(instance), scale, params, Narrowing(instance.to_json(), params, named=True))
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
        _solvers[ratio] = RatioSolver(context.phases, ratio, context.scale, params=context.params)
    return _solvers[ratio]


def chain_of_box(ratio: Ratio, groups: Box, goal: int) -> Reply:
    """What weights along a chain prove of all ratios of a box, one of which is named."""
    context = _here()
    return Reply(ratio, known(context.along.weighed(groups, goal), None), own=True)


def chain(ratio: Ratio, goal: int, time_s: float, seed: int) -> Reply:
    """One more try to prove a goal along a chain; from the second one on, plans by the weights that the first has.

    As long as they are better than the goal, with twice as many labels each time, and in no more time than bounds have.
    """
    context, budget, begun = _here(), Budget(time_s, seed=seed).start(), time.perf_counter()
    if ratio not in context.ascents:
        context.ascents[ratio] = context.along.ascent(context.along.kept(of_ratio(ratio)), goal)
        context.beams[ratio] = context.params.beam
    ascent, beam = context.ascents[ratio], context.beams[ratio]
    ascent.goal, found = goal, None
    diagram = None if ascent.over else ascent.diagram()
    whole = ascent.ratio == shares_of(ratio)
    turn = context.seconds["plans"] <= context.seconds["bounds"]
    if turn and beam and whole and diagram is not None and not diagram.chain.counted and ascent.root is not None:
        one, params = lower(context.phases.instance, ratio), replace(context.params, beam=beam)
        plain = chain_plans(diagram, ascent.weigh(diagram), goal, one, params, budget)
        for each in plain:
            plan = None if found and budget.exhausted else annealed(each, budget.remaining_s, seed)
            if plan is not None and (found is None or plan.makespan < found.makespan):
                found = plan
        context.beams[ratio] = 0 if found is None or found.makespan >= goal else 2 * beam
        context.seconds["plans"] += time.perf_counter() - begun
        begun = time.perf_counter()
    over = not ascent.climb(budget, diagram)
    context.seconds["bounds"] += time.perf_counter() - begun
    return Reply(ratio, known(ascent.bound, found), closed=over, own=True)


def explore(ratio: Ratio, rounding: bool, time_s: float, seed: int) -> Reply:
    """LP, and a plan from what it suggests."""
    one = solver(ratio)
    begun = time.perf_counter()
    bound = one.relax(time_s)
    found = one.rounded(time_s - (time.perf_counter() - begun), seed) if rounding else None
    return Reply(ratio, known(bound, found))


def destroy(ratio: Ratio, target: int, time_s: float, left_s: float, seed: int) -> Reply:
    """A mapping whose relaxation ends by the target, or the proof that there is none."""
    return solver(ratio).destroy(target, time_s, left_s, seed)


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
