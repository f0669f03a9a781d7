"""Algorithm 2 on a distorted view of the instance: Asteroid's ablations (Fig. 15a), and DAPPLE, which is a relative.

``asteroid_naive`` takes all devices for the average one and overlooks memory, bandwidth and AllReduce;
``asteroid_inter_stage`` plans stages and groups with real times and links, but divides a micro-batch evenly and
overlooks memory. ``dapple`` (Fan et al., 2021) plans a synchronous pipeline with a pivot stage, which is Eqs. (4)-(6),
for homogeneous devices without regard to memory: average times, real links, equal shares, instance order.
"""

from __future__ import annotations

import time

from mapgap.core import Budget, SolveResult
from mapgap.heuristics.hybrid_pipeline.asteroid import EQUAL, algorithm_2
from mapgap.heuristics.hybrid_pipeline.chain import Chain, chain, report, result
from mapgap.problems.hybrid_pipeline import Instance
from mapgap.problems.hybrid_pipeline.lowered.batching import every_micro_batch
from mapgap.problems.hybrid_pipeline.lowered.order import memory_order


def _equal_shares(seen: Chain, budget: Budget, begin: float) -> SolveResult:
    """Algorithm 2 with equal shares on a view; its plan is judged on the real instance."""
    found = algorithm_2(seen, rule=EQUAL, budget=budget)
    made = result(seen.instance, found.plan, begin, found.finished, stages_evaluated=found.evaluated)
    return report(budget, made)


@every_micro_batch
def run_naive(instance: Instance, budget: Budget) -> SolveResult:
    """Fig. 15(a), left bar: homogeneous devices, no memory, no links."""
    begin = time.process_time()
    seen = chain(instance, memory_order(instance), homogeneous=True, memory=False, communication=False)
    return _equal_shares(seen, budget, begin)


@every_micro_batch
def run_inter_stage(instance: Instance, budget: Budget) -> SolveResult:
    """Fig. 15(a), +A: real times and links between stages, equal shares inside, no memory."""
    begin = time.process_time()
    return _equal_shares(chain(instance, memory_order(instance), memory=False), budget, begin)


@every_micro_batch
def run_dapple(instance: Instance, budget: Budget) -> SolveResult:
    """DAPPLE's planner: homogeneous devices, real links, no memory."""
    begin = time.process_time()
    order = range(len(instance.devices))
    return _equal_shares(chain(instance, order, homogeneous=True, memory=False), budget, begin)
