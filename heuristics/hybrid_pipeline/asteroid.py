"""Asteroid's planner (Algorithms 1 and 2), its ablations (Fig. 15a), and DAPPLE's planner, which is a relative.

Algorithm 2 cuts the layers and an *order* of the devices together: Q(l, n, p) is the best pipeline found for the last
l layers on the last n devices with p stages, Eq. (10); it is extended by one stage at the head, whose shares come from
Algorithm 1, and by a communication step, Eq. (11). One sub-pipeline is kept per state although two quantities of it
matter (the aligned dominant step and the AllReduce behind it), so that the search is a heuristic even for its order.

Interpretation
--------------
1.  Order: descending memory (Sec. 3.3). Boards of equal memory (NX and TX2) are not ordered by the paper: ``ties`` is
    ``fastest_first`` or ``slowest_first``.
2.  All N devices are used: the goal is min_p Q(L, N, p).
3.  Algorithm 1, line 7 makes fractions of samples; whole ones by floor and largest remainder, ties by place.
4.  Line 19 transfers ``block`` samples, one by default; the last, useless transfer is undone. Ties by place.
5.  "Maximum batch size under budget" is what fits beside weights, gradients and optimizer state with K_p stored
    micro-batches; a device that cannot hold the state makes the group infeasible.
6.  Times of Eqs. (4)-(6) are compared without building the steps; the closed form is equal (docs).
7.  A sub-pipeline that, with the transfer to it, already takes as long as the best pipeline is not extended; this
    changes no result.

Ablations: ``asteroid_naive`` takes all devices for the average one and overlooks memory, bandwidth and AllReduce;
``asteroid_inter_stage`` plans stages and groups with real times and links, but divides a micro-batch evenly and
overlooks memory. ``dapple`` (Fan et al., 2021) plans a synchronous pipeline with a pivot stage, which is Eqs. (4)-(6),
for homogeneous devices without regard to memory: average times, real links, equal shares, instance order.
"""

from __future__ import annotations

import time

from mapgap.core import Budget, InputError, SolveResult
from mapgap.heuristics.hybrid_pipeline.chain import Chain, chain, report, result
from mapgap.heuristics.hybrid_pipeline.kernels import BALANCED, EQUAL
from mapgap.problems.hybrid_pipeline import Instance, Plan
from mapgap.problems.hybrid_pipeline.shared.batching import every_micro_batch
from mapgap.problems.hybrid_pipeline.shared.observe import observed
from mapgap.problems.hybrid_pipeline.shared.order import memory_order


def algorithm_2(seen: Chain, block: int = 1, rule: int = BALANCED) -> tuple[Plan | None, int]:
    """Plan of Algorithm 2 along a chain, and the number of stages it evaluated."""
    if block < 1:
        raise InputError(f"block: expected at least 1 sample, found {block}")
    rows, evaluated = seen.planned(block, rule)
    return (seen.plan(rows, block, rule) if rows else None), evaluated


@observed
@every_micro_batch
def run_asteroid(instance: Instance, budget: Budget, ties: str = "fastest_first", block: int = 1) -> SolveResult:
    """Algorithms 1 and 2.

    Raises
    ------
    InputError
        Unknown ``ties``, or ``block`` below 1.
    """
    begin = time.process_time()
    order = memory_order(instance, ties)
    plan, evaluated = algorithm_2(chain(instance, order), block)
    names = [instance.devices[d].name for d in order]
    return report(budget, result(instance, plan, begin, order=names, stages_evaluated=evaluated))


@every_micro_batch
def run_naive(instance: Instance, budget: Budget) -> SolveResult:
    """Fig. 15(a), left bar: homogeneous devices, no memory, no links."""
    begin = time.process_time()
    seen = chain(instance, memory_order(instance), homogeneous=True, memory=False, communication=False)
    plan, evaluated = algorithm_2(seen, rule=EQUAL)
    return report(budget, result(instance, plan, begin, stages_evaluated=evaluated))


@every_micro_batch
def run_inter_stage(instance: Instance, budget: Budget) -> SolveResult:
    """Fig. 15(a), +A: real times and links between stages, equal shares inside, no memory."""
    begin = time.process_time()
    plan, evaluated = algorithm_2(chain(instance, memory_order(instance), memory=False), rule=EQUAL)
    return report(budget, result(instance, plan, begin, stages_evaluated=evaluated))


@every_micro_batch
def run_dapple(instance: Instance, budget: Budget) -> SolveResult:
    """DAPPLE's planner: homogeneous devices, real links, no memory."""
    begin = time.process_time()
    order = range(len(instance.devices))
    plan, evaluated = algorithm_2(chain(instance, order, homogeneous=True, memory=False), rule=EQUAL)
    return report(budget, result(instance, plan, begin, stages_evaluated=evaluated))
