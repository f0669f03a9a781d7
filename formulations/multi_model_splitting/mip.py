"""Segment flow below growing limits, solved with HiGHS or CBC.

A short neighbourhood search makes a plan to start from, and limits lie below it. Only segments on a path within the
limit exist (``chains.py``), which keeps the program (``flow_model.py``) small. Because the best plan below a limit is
optimal, the first limit with a plan ends the search. The engine's bound is rounded up with a relative tolerance; what
that leaves open is closed by asking once more for a plan between the bound and the plan found. From 5 * 10^6 ticks on
the engine's tolerances exceed a tick, and it was seen to deny a plan one tick below another: there this question goes
to the search for certificates, which computes in whole numbers.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from mapgap.core import Budget, SolveResult, Status, Stop
from mapgap.formulations.multi_model_splitting.certificate import prove as refuted
from mapgap.formulations.multi_model_splitting.chains import Chain, ceiling, chains, floor, profiles, single_part
from mapgap.formulations.multi_model_splitting.flow_model import FlowModel
from mapgap.formulations.multi_model_splitting.starting import first_plan
from mapgap.problems.multi_model_splitting import Instance, Plan
from mapgap.problems.multi_model_splitting.diagnose import diagnose
from mapgap.problems.multi_model_splitting.evaluate import evaluate
from mapgap.solvers.mip import Engine, slack
from mapgap.solvers.model import Part, prove
from mapgap.solvers.turns import EngineError, in_turn

CLOSING = 10
"""Ticks between the limits from which any plan of latency between them will do; to refute it is easier."""


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
    return between(instance, budget, engine, 0, first_plan(instance, budget).plan)


def between(instance: Instance, budget: Budget, engine: Engine, bound: int, plan: Plan | None) -> SolveResult:
    """The best joint plan, if a bound is proven and perhaps a plan known."""
    engines: tuple[Engine, ...] = ("highs", "cbc") if engine == "highs" else ("cbc", "highs")

    def ask(name: str) -> SolveResult:
        return _climb(instance, budget, "cbc" if name == "cbc" else "highs", bound, plan)

    found = in_turn(ask, engines)
    if found.plan is None and plan is not None:  # no engine is to be believed
        value = evaluate(instance, plan).objective
        return replace(found, status=Status.FEASIBLE, plan=plan, bound=bound or None, claimed=value)
    return found


def _climb(instance: Instance, budget: Budget, engine: Engine, bound: int, plan: Plan | None) -> SolveResult:
    """All limits with one engine. Bounds of the engine are told at the end only, when nothing has refuted them.

    Raises
    ------
    EngineError, GuardError
    """
    tables = profiles(instance)
    top = ceiling(instance, tables)
    bound = max(bound, floor(instance, tables, top))
    budget.report(bound=bound if bound <= top else None)
    value = None if plan is None else evaluate(instance, plan).objective
    step, stop, opened = max(1, bound // 10), Stop.PROVED, False
    while bound <= top if value is None else bound < value:
        if budget.exhausted:
            stop = Stop.TIME
            break
        highest = top if value is None else value - 1
        limit = highest if opened else min(highest, bound + step)
        step *= 3
        reduced = chains(instance, tables, limit)
        if reduced is None:
            bound = limit + 1
            continue
        margin = slack(limit)
        if value is not None and margin and (opened or bound >= value - margin):
            if refuted(instance.to_json(), value, budget) is not None:
                bound = value
            stop = Stop.TIME if budget.exhausted else Stop.DONE
            break
        minimise = instance.objective == "throughput" or limit - bound >= CLOSING
        model = FlowModel(instance, reduced, limit, bound, minimise, engine)
        found = prove(model, budget, announce=False, turns=False)
        if found.status is Status.INFEASIBLE:
            bound = limit + 1 if limit == top else max(bound, limit + 1 - margin)
            continue
        if isinstance(found.plan, Plan):
            plan = found.plan
            claimed = found.claimed if minimise and found.claimed is not None else limit
            value = _checked(instance, plan, claimed + margin)
            budget.report(plan=plan)
            opened = True
        if minimise and found.bound is not None:
            bound = max(bound, found.bound - margin)
        if found.plan is None or found.stop in (Stop.TIME, Stop.INTERRUPTED):
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


def _checked(instance: Instance, plan: Plan, claimed: int) -> int:
    """Objective of a plan, at most what the model claims."""
    found = evaluate(instance, plan)
    if not found.feasible or found.objective is None or found.objective > claimed:
        raise EngineError(f"claims {claimed} for a plan of {found.objective}, {found.violations}")
    return found.objective
