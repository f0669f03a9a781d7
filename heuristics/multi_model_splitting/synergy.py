"""Synergy: pipeline by pipeline the best execution plan, given the plans before (Algorithm 1, Secs. 5.1 to 5.4).

::

     1  input: pipelines P, devices D, metric m
     2  output: best joint execution plan E*
     3  P <- SortByDataSize(P), E* <- {}
     4  for each pipeline p in P do
     5      E_p  <- ExecutionPlanGeneration(p, D)                  (Sec. 5.1)
     6      E'_p <- JointPlanGeneration(E_p, E*)                   (Sec. 5.2)
     7      if m == throughput then
     8          E* <- arg max over e in E'_p of Throughput(E*, e)  (Sec. 5.4)
     9      else if m == latency then
    10          E* <- arg min over e in E'_p of Latency(E*, e)     (Sec. 5.4)
    11      end if
    12  end for

Interpretation: candidates with equal cycle time are compared by latency, then the first one is kept; the paper does
not say. Merging equal tasks of several pipelines is not looked for while planning; the evaluator merges what coincides.

Ablations of Fig. 6: *without joint resources* every pipeline is planned as if it were alone, *without source and
target* the models are planned jointly and the ends are assigned afterwards.
"""

from __future__ import annotations

from mapgap.core import Budget, SolveResult, Status, Stop
from mapgap.heuristics.multi_model_splitting.every_order import EveryOrder
from mapgap.heuristics.multi_model_splitting.search.joint_plan import finished, out_of_time
from mapgap.heuristics.multi_model_splitting.synergy_algorithm import algorithm_1, plans_of
from mapgap.problems.multi_model_splitting import Instance


def run(instance: Instance, budget: Budget, order: str = "data_intensity") -> SolveResult:
    """Algorithm 1; ``order`` is data_intensity, io_bytes, given, or best (every order of up to six pipelines).

    Raises
    ------
    InputError
        No such order rule, or too many pipelines to try every order.
    """
    if order != "best":
        return algorithm_1(instance, budget, order)
    every = EveryOrder(instance, budget)
    if every.best is not None:
        return finished(instance, plans_of(every.best[1]), budget, **every.notes)
    if budget.exhausted:
        return out_of_time("the first order")
    example = algorithm_1(instance, budget, "data_intensity")
    reason = f"in every order; by data intensity {example.reason}"
    return SolveResult(Status.UNKNOWN, Stop.DONE, reason=reason, notes=every.notes)


def run_without_joint(instance: Instance, budget: Budget) -> SolveResult:
    """Fig. 6: Synergy that plans every pipeline as if it were alone; the sum of the plans may exceed a device."""
    return algorithm_1(instance, budget, "given", joint=False)


def run_without_ends(instance: Instance, budget: Budget, order: str = "data_intensity") -> SolveResult:
    """Fig. 6: Synergy that assigns source and target after the models are split.

    Raises
    ------
    InputError
        No such order rule.
    """
    return algorithm_1(instance, budget, order, ends=False)
