"""Segment flow below growing limits, solved with HiGHS or CBC.

A short neighbourhood search makes a plan to start from, and limits lie below it. Only segments on a path within the
limit exist (``chains.py``), which keeps the program (``flow_model.py``) small. Because the best plan below a limit is
optimal, the first limit with a plan ends the search. What is open after a fifth of the time is likely to stay so for
long: then the neighbourhood search goes on until half of the time is used, unless many walks find nothing, and the
engine has the rest. Where a program could not be built in the time that is left, the search has it.

The engine's bound is rounded up with a relative tolerance; what that leaves open is closed by asking once more for a
plan between the bound and the plan found. From 5 * 10^6 ticks on the engine's tolerances exceed a tick, and it was seen
to deny a plan one tick below another: there this question goes to the search for certificates, which computes in whole
numbers.

HiGHS gets no start: every program below the best plan excludes that plan.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from mapgap.core import Budget, SolveResult, Status, Stop
from mapgap.formulations.multi_model_splitting.certificate import prove as refuted
from mapgap.formulations.multi_model_splitting.chains import Chain, ceiling, chains, floor, profiles, single_part
from mapgap.formulations.multi_model_splitting.flow_model import FlowModel
from mapgap.formulations.multi_model_splitting.starting import FLOOR, first_plan, margin_s, seek, segments_s, until
from mapgap.heuristics.multi_model_splitting.search.neighbourhood import Neighbourhood
from mapgap.problems.multi_model_splitting import Instance, Plan
from mapgap.problems.multi_model_splitting.diagnose import diagnose
from mapgap.problems.multi_model_splitting.evaluate import evaluate
from mapgap.solvers.mip import Engine, slack
from mapgap.solvers.model import Part, prove
from mapgap.solvers.turns import EngineError, in_turn

CLOSING = 10
"""Ticks between the limits from which any plan of latency between them will do; to refute it is easier."""
SLICE, SEARCH = 0.2, 0.5
"""Parts of the budget: what the engine gets before the search goes on, and when that one ends."""
HANDED_BACK = 0.3
"""Part of the time to build a program that reading its solution may take."""


def models(instance: Instance, engine: Engine = "highs") -> list[Part]:
    """The program below the largest limit."""

    def model(reduced: list[Chain], top: int, without: Collection[int]) -> FlowModel:
        return FlowModel(instance, reduced, top, engine=engine, without=without)

    return single_part(instance, model)


def models_cbc(instance: Instance) -> list[Part]:
    """The same for CBC."""
    return models(instance, "cbc")


def run(instance: Instance, budget: Budget, *, engine: Engine = "highs") -> SolveResult:
    """Best joint plan; the other engine begins anew where one contradicts itself between two limits."""
    if reasons := diagnose(instance):
        return SolveResult(Status.INFEASIBLE, Stop.PROVED, reason="; ".join(reasons))
    seeker = first_plan(instance, budget)
    return between(instance, budget, engine, 0, seeker.plan, seeker)


def between(
    instance: Instance,
    budget: Budget,
    engine: Engine,
    bound: int,
    plan: Plan | None,
    seeker: Neighbourhood | None = None,
) -> SolveResult:
    """The best joint plan, if a bound is proven and perhaps a plan known; ``seeker`` may look for better ones."""
    engines: tuple[Engine, ...] = ("highs", "cbc") if engine == "highs" else ("cbc", "highs")

    def ask(name: str) -> SolveResult:
        return _climb(instance, budget, "cbc" if name == "cbc" else "highs", bound, plan, seeker)

    found = in_turn(ask, engines)
    if seeker is not None and seeker.plan is not None:
        plan = seeker.plan
    if found.plan is None and plan is not None:  # no engine is to be believed
        value = evaluate(instance, plan).objective
        return replace(found, status=Status.FEASIBLE, plan=plan, bound=bound or None, claimed=value)
    return found


def _climb(
    instance: Instance, budget: Budget, engine: Engine, bound: int, plan: Plan | None, seeker: Neighbourhood | None
) -> SolveResult:
    """All limits with one engine. Bounds of the engine are told at the end only, when nothing has refuted them.

    Raises
    ------
    EngineError, GuardError
    """
    tables = profiles(instance)
    top = ceiling(instance, tables)
    bound = max(bound, floor(instance, tables, top, lambda: until(budget, FLOOR * budget.time_s)))
    budget.report(bound=bound if bound <= top else None)
    value = None if plan is None else evaluate(instance, plan).objective
    step, stop, opened, slice_s = max(1, bound // 10), Stop.PROVED, False, SLICE * budget.time_s
    asked = False
    while bound <= top if value is None else bound < value:
        if _left_s(budget) <= 0:
            stop = Stop.TIME
            break
        highest = top if value is None else value - 1
        limit = highest if opened else min(highest, bound + step)
        reduced = chains(instance, tables, limit)
        if reduced is None:
            bound, step = limit + 1, 3 * step
            if not asked and bound <= top:  # no engine has a part in it
                budget.report(bound=bound)
            continue
        margin = slack(limit)
        if value is not None and margin and (opened or bound >= value - margin):
            if refuted(instance.to_json(), value, budget) is not None:
                bound = value
            stop = Stop.TIME if budget.exhausted else Stop.DONE
            break
        if (built_s := segments_s(reduced)) > _left_s(budget):
            stop = Stop.TIME
            plan, value = _sought(seeker, budget, budget.time_s, bound, plan, value)
            break
        minimise = instance.objective == "throughput" or limit - bound >= CLOSING
        model = FlowModel(instance, reduced, limit, bound, minimise, engine)
        time_s = min(slice_s, max(0.0, _left_s(budget) - HANDED_BACK * built_s))
        asked, found = True, prove(model, budget, time_s=time_s, announce=False, turns=False)
        if found.status is Status.INFEASIBLE:
            bound, step = limit + 1 if limit == top else max(bound, limit + 1 - margin), 3 * step
            continue
        if isinstance(found.plan, Plan):
            claimed = found.claimed if minimise and found.claimed is not None else limit
            plan, value = found.plan, _checked(instance, found.plan, claimed + margin)
            budget.report(plan=plan)
            opened = True
        if minimise and found.bound is not None:
            bound = max(bound, found.bound - margin)
        if found.stop is Stop.TIME and slice_s < budget.time_s and seeker is not None:
            slice_s = budget.time_s
            plan, value = _sought(seeker, budget, SEARCH * budget.time_s, bound, plan, value)
        elif found.plan is None or found.stop in (Stop.TIME, Stop.INTERRUPTED):
            stop = found.stop
            break
    if value is not None and bound > value:
        raise EngineError(f"claims that no plan is below {bound} beside its own plan of {value}")
    if plan is not None and value is not None:
        if bound == value:
            return SolveResult(Status.OPTIMAL, Stop.PROVED, plan, value, value)
        return SolveResult(Status.FEASIBLE, stop, plan, bound, value)
    if bound <= top:
        return SolveResult(Status.UNKNOWN, stop, bound=bound, reason="no plan within the time")
    reason = "out of resource: no joint plan keeps all weight, bias and layer limits"
    return SolveResult(Status.INFEASIBLE, Stop.PROVED, reason=reason)


def _left_s(budget: Budget) -> float:
    return budget.remaining_s - margin_s(budget)


def _sought(
    seeker: Neighbourhood | None, budget: Budget, seconds: float, bound: int, plan: Plan | None, value: int | None
) -> tuple[Plan | None, int | None]:
    """The best plan and its objective after neighbourhood search until then, with a bound that an engine claims."""
    if seeker is None:
        return plan, value
    if plan is not None:
        seeker.offer(plan)
    seek(seeker, budget, seconds, bound)
    return seeker.plan, seeker.value


def _checked(instance: Instance, plan: Plan, claimed: int) -> int:
    """Objective of a plan, at most what the model claims."""
    found = evaluate(instance, plan)
    if not found.feasible or found.objective is None or found.objective > claimed:
        raise EngineError(f"claims {claimed} for a plan of {found.objective}, {found.violations}")
    return found.objective
