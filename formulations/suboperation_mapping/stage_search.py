"""What one process does for one ratio: the LP, the destructive MIP, and plans rounded from both."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from mapgap.core import Budget
from mapgap.formulations.suboperation_mapping._list_anneal import list_anneal, starts
from mapgap.formulations.suboperation_mapping._ratios import Ratio
from mapgap.problems.suboperation_mapping import Instance
from mapgap.problems.suboperation_mapping.lowered import Array, Lowered, lower

if TYPE_CHECKING:
    from mapgap.solvers.highs import Answer

EXACT_TICKS = 100_000  #: up to here one tick is 10^4 times the feasibility tolerance of the scaled model
COLD = (0.001, 0.0005, 0.0002)  #: first temperatures that keep a good mapping, as shares of the makespan
HOT = (0.01,)  #: that forgets the start
MIXED = (0.005, 0.0005, 0.02)
SAFETY = 1e-6  #: relative error granted to floating-point bounds (HiGHS tolerances are 1e-9 on times scaled to 1000)


@dataclass(frozen=True)
class Found:
    """A plan of a ratio that fits the DRAM."""

    makespan: int
    location: Array
    sequence: Array


@dataclass(frozen=True)
class Reply:
    """What a process found for a ratio.

    Attributes
    ----------
    bound : int
        No plan of the ratio has a smaller makespan.
    found : Found or None
    attained : float or None
        Objective of a mapping in the relaxation: the ratio's bound cannot rise above it.
    closed : bool
        The MIP was solved: ``bound`` is all that the relaxation can prove.
    infeasible : bool
        No plan of the ratio fits the DRAM.
    """

    ratio: Ratio
    bound: int
    found: Found | None
    attained: float | None = None
    closed: bool = False
    infeasible: bool = False


def safe(bound: float, scale: float) -> int:
    """Integer lower bound in ticks behind a floating-point one."""
    return max(0, math.ceil(bound * scale * (1.0 - SAFETY) - 1e-6))


class RatioSolver:
    """One ratio with its model, its LP and its lowered arrays."""

    def __init__(self, instance: Instance, ratio: Ratio, scale: float, columns: bool = True) -> None:
        from mapgap.formulations.suboperation_mapping._stage_columns import StageModel

        self.ratio, self.scale = ratio, scale
        self.lowered: Lowered = lower(instance, ratio)
        self.model = StageModel(instance, ratio, scale, columns)
        self.answer: Answer | None = None
        self.floor = 0

    def relax(self, time_s: float) -> int:
        """Bound of the LP."""
        if self.answer is None:
            answer = self.model.matrix.solve(time_s, relaxed=True, simplex=True)
            if answer.bound is not None:
                self.answer = answer
                self.floor = safe(answer.bound, self.scale)
            elif answer.infeasible:
                self.floor = 2**62
        return self.floor

    def rounded(self, iterations: int, seed: int) -> Found | None:
        """Anneal from the LP's most likely mapping."""
        if self.answer is None or self.answer.values is None:
            return self.improve(starts(self.lowered)[-1], iterations, seed)
        return self.improve(self.model.locations(self.answer.values), iterations, seed)

    def improve(
        self, location: Array, iterations: int, seed: int, temperatures: tuple[float, ...] = COLD
    ) -> Found | None:
        """Anneal from a mapping; each seed has one of the first temperatures."""
        hot = temperatures[seed % len(temperatures)]
        result = list_anneal(self.lowered, location, iterations=iterations, seed=seed, hot=hot)
        return None if result is None else Found(*result)

    def destroy(self, target: int, time_s: float, seed: int, iterations: int) -> Reply:
        """Look for a mapping whose relaxation ends by ``target``; prove that there is none, or round it."""
        matrix = self.model.matrix
        begun = time.perf_counter()
        floor = self.relax(time_s)
        if floor > target or self.answer is None:
            return Reply(self.ratio, floor, None, closed=floor > target)
        limit = target / self.scale * (1.0 + SAFETY)
        upper = np.array(matrix.upper)
        assert self.answer.reduced is not None
        assert self.answer.bound is not None
        slack = limit - self.answer.bound
        unit = np.fromiter(self.model.columned, np.int64)
        # A column that is 0 or 1 in every schedule and costs more than the slack is 0 in all that end by the target.
        upper[unit[self.answer.reduced[unit] > slack + 1e-5]] = 0.0
        upper[self.model.M] = limit
        left = max(0.1, time_s - (time.perf_counter() - begun))
        answer = matrix.solve(left, relaxed=False, upper=upper, seed=seed)
        if answer.infeasible:
            # One tick more than the target where a tick is far above the tolerances of the engine.
            above = target + 1 if target <= EXACT_TICKS else safe(limit, self.scale)
            return Reply(self.ratio, max(floor, above), None)
        bound = max(floor, 0 if answer.bound is None else min(target, safe(answer.bound, self.scale)))
        if answer.values is None:
            return Reply(self.ratio, bound, None)
        found = self.improve(self.model.locations(answer.values), iterations, seed)
        return Reply(self.ratio, bound, found, float(answer.values[self.model.M]) * self.scale, answer.optimal)


_solvers: dict[Ratio, RatioSolver] = {}
_context: tuple[Instance, float, bool] | None = None


def prepare(instance: Instance, scale: float, columns: bool) -> None:
    """Start of a process."""
    global _context
    _context = (instance, scale, columns)
    _solvers.clear()


def solver(ratio: Ratio) -> RatioSolver:
    assert _context is not None
    if ratio not in _solvers:
        if len(_solvers) > 60:
            _solvers.pop(next(iter(_solvers)))
        _solvers[ratio] = RatioSolver(_context[0], ratio, _context[1], _context[2])
    return _solvers[ratio]


def survey(ratio: Ratio, iterations: int, seed: int, time_s: float) -> Reply:
    """LP without configuration columns, and a first plan."""
    assert _context is not None
    one = RatioSolver(_context[0], ratio, _context[1], columns=False)
    best: Found | None = None
    for start in starts(one.lowered)[::-1] if iterations else []:  # the spread first; the others if it fits no DRAM
        best = best or one.improve(start, iterations, seed, HOT)
    return Reply(ratio, one.relax(time_s), best)


def explore(ratio: Ratio, iterations: int, seed: int, time_s: float) -> Reply:
    """LP and a first plan."""
    one = solver(ratio)
    bound = one.relax(time_s)
    return Reply(ratio, bound, one.rounded(iterations, seed) if iterations else None)


def destroy(ratio: Ratio, target: int, time_s: float, seed: int, iterations: int) -> Reply:
    return solver(ratio).destroy(target, time_s, seed, iterations)


def polish(ratio: Ratio, found: Found, iterations: int, seed: int) -> Reply:
    """A longer annealing from a plan."""
    return Reply(ratio, 0, solver(ratio).improve(found.location, iterations, seed, MIXED))


def complete(ratio: Ratio, cutoff: int | None, time_s: float, seed: int) -> Reply:
    """The complete CP-SAT model: a plan below ``cutoff``, or the proof that there is none."""
    from mapgap.formulations.suboperation_mapping.cpsat import solve_ratio

    assert _context is not None
    # One worker and no start: the proof that nothing lies below a good cutoff is what takes the time.
    result = solve_ratio(lower(_context[0], ratio), cutoff, Budget(time_s, workers=1, seed=seed), time_s)
    best = result.best
    found = None if best is None else Found(best.makespan, best.location, best.sequence)
    return Reply(ratio, result.bound, found, infeasible=result.infeasible)
