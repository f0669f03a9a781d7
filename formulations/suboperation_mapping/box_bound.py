"""Lower bounds from located programs: all ratios at once, and best-first over boxes of ratios.

``fluid_bound`` solves one program for every number of shares; together their boxes hold all ratios. ``box_bound`` goes
on from there: the box of smallest bound is divided where the latency tables have their largest steps, until the time is
over or the smallest bound belongs to one ratio. With few accelerators one ratio is bounded by the stage model with its
columns, which is stronger. ``docs/methods/suboperation_mapping.md`` proves the rows.

Every bound is recomputed from rounded duals in whole numbers. The option ``duals`` names a file for them
(:mod:`duals_file`).
"""

from __future__ import annotations

from functools import lru_cache

from mapgap.core import Budget, SolveResult, Status, Stop
from mapgap.formulations.suboperation_mapping.box_search import KEPT, Bounded, BoxSearch
from mapgap.formulations.suboperation_mapping.duals_file import write_duals
from mapgap.formulations.suboperation_mapping.fluid_bound import fluid_bound as flow_bound
from mapgap.formulations.suboperation_mapping.located_frame import Frame, Located
from mapgap.formulations.suboperation_mapping.params import Boxes
from mapgap.formulations.suboperation_mapping.path_bound import least_path, share_paths
from mapgap.formulations.suboperation_mapping.stage_search import NO_PLAN, RatioSolver
from mapgap.problems.suboperation_mapping import Instance
from mapgap.problems.suboperation_mapping.evaluate import diagnose
from mapgap.problems.suboperation_mapping.lowered.ratios import Ratio


def model_scale(frame: Frame) -> float:
    """Ticks in the stage model's unit of time: a power of two near a thousandth of a simple plan."""
    return float(1 << max(0, (frame.limit // 1000).bit_length() - 1))


class Columns:
    """The stage model's bounds of single ratios, with its duals as doubles."""

    def __init__(self, frame: Frame) -> None:
        self.frame, self.solvers = frame, lru_cache(KEPT)(self.solver)

    def solver(self, ratio: Ratio) -> RatioSolver:
        return RatioSolver(self.frame.phases, ratio, model_scale(self.frame), params=self.frame.params)

    def bound(self, ratio: Ratio, places: Located, time_s: float) -> Bounded:
        """Of one ratio, with fused nodes at places."""
        solver = self.solvers(ratio)
        bound, outcome = solver.located(time_s, places)
        return Bounded(bound, solver.proof(outcome), solver.model.parts_of(outcome))


def search_of(frame: Frame, floor: int = 0) -> BoxSearch:
    """The search over all ratios of an instance, none of which has a bound below the floor."""
    few = frame.orbits.count <= frame.params.columns
    return BoxSearch(frame, Columns(frame).bound if few else None, floor)


def fluid_bound(instance: Instance, budget: Budget, duals: str = "", params: Boxes = Boxes()) -> SolveResult:
    """The least bound of the boxes of all ratios with one, two, … shares; no plan."""
    return _run(instance, budget, duals, params, divide=False)


def box_bound(instance: Instance, budget: Budget, duals: str = "", params: Boxes = Boxes()) -> SolveResult:
    """The least bound of boxes that are divided best-first; no plan."""
    return _run(instance, budget, duals, params, divide=True)


def _run(instance: Instance, budget: Budget, duals: str, params: Boxes, divide: bool) -> SolveResult:
    reasons = diagnose(instance)
    if reasons:
        return SolveResult(Status.INFEASIBLE, Stop.PROVED, reason="; ".join(reasons))
    frame = Frame(instance, params)
    ladder: dict[str, int] = {}

    def climb(rung: str, bound: int) -> None:
        """Announce a bound that is larger than all before."""
        if bound > max(ladder.values(), default=-1):
            ladder[rung] = bound
            budget.report(bound=bound)

    climb("path", least_path(share_paths(frame.phases), frame.orbits.count))
    climb("flow", flow_bound(frame.phases))
    search = search_of(frame, max(ladder.values()))
    done = False
    while not budget.exhausted and not done:
        done = not (divide or search.roots) or not search.step(budget.remaining_s)
        climb("places" if any(each.places for each in search.changed) else "boxes", search.bound())
    rung, bound = max(ladder.items(), key=lambda each: each[1])
    if duals:
        write_duals(duals, instance, bound, [(each.box, each.bound, each.proof) for each in sorted(search.all())])
    notes = {
        "boxes": sum(1 for _ in search.all()),
        "programs": search.programs,
        "classes": [len(those) for those in frame.orbits.members],
        "rung": rung,
        "ladder": [list(each) for each in ladder.items()],
    }
    if bound >= NO_PLAN:
        return SolveResult(Status.INFEASIBLE, Stop.PROVED, reason="DRAM: no ratio fits", notes=notes)
    return SolveResult(Status.UNKNOWN, Stop.DONE if done else Stop.TIME, bound=bound, notes=notes)
