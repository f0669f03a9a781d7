"""The search of ``mapgap certify`` as a method: a lower bound whose every part is proven in whole numbers; no plan.

It climbs towards the makespan of a plan (:mod:`certificate`), that of ``start`` or of the quick planner, which takes
some hundredths of a second. A better plan saves tries at what cannot be proven. No certificate is written.
"""

from __future__ import annotations

from mapgap.core import Budget, SolveResult, Status, Stop
from mapgap.formulations.suboperation_mapping.certificate import Climb
from mapgap.formulations.suboperation_mapping.params import Certificate as Params
from mapgap.heuristics.suboperation_mapping.annealed_converting import begin
from mapgap.heuristics.suboperation_mapping.params import QuickPlanner
from mapgap.heuristics.suboperation_mapping.search.pool import Search
from mapgap.problems.suboperation_mapping import Instance, Plan
from mapgap.problems.suboperation_mapping.evaluate import diagnose
from mapgap.problems.suboperation_mapping.lowered.mapped import started


def run(instance: Instance, budget: Budget, start: str | Plan | None = None, params: Params = Params()) -> SolveResult:
    """The least of what is proven of all ratios.

    Raises
    ------
    InputError
        ``start`` is none of this instance.
    """
    if reasons := diagnose(instance):
        return SolveResult(Status.INFEASIBLE, Stop.PROVED, reason="; ".join(reasons))
    plan = started(instance, start)
    if plan is None:
        begin(quick := Search(instance, budget.quiet(), QuickPlanner()))
        plan = quick.best
    if plan is None:
        return SolveResult(Status.UNKNOWN, Stop.DONE, reason="no plan is known whose makespan could be the goal")
    search = Climb(instance.to_json(), plan.makespan, budget, params)
    search.run()
    stop = Stop.TIME if budget.exhausted else Stop.DONE
    return SolveResult(Status.UNKNOWN, stop, bound=search.bound, notes={"tried": search.asked})
