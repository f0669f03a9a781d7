"""A quick planner of the house: exact along orders of the devices, then over all groups as far as little work goes.

::

    1  the best pipeline along the order of Algorithm 2 (by memory, the fastest first)
    2  the same along the other orders that descending memory permits by its ties, as listed, by speed
    3  all groups, below the value found, until the work is used up
    4  along neighbours of the best order: two devices exchanged, or one moved

Steps 1 and 2 are the label search of docs/methods/hybrid_pipeline.md with groups that are runs of an order, devices in
between idle where the instance allows it. No plan of Algorithm 2 is better than the result of step 1: it uses runs of
that order, and rule 6 of the problem credits no shares but those of Eq. (7). Step 1 is always finished; the others stop
after so much work (moves and places looked at, stages priced). The steps are those of
``mapgap.formulations.hybrid_pipeline.label.order_search``.
"""

from __future__ import annotations

import time

from mapgap.core import Budget, SolveResult
from mapgap.formulations.hybrid_pipeline.label.order_search import OrderSearch
from mapgap.formulations.hybrid_pipeline.params import OrderSearch as Params
from mapgap.heuristics.hybrid_pipeline.chain import report, result
from mapgap.problems.hybrid_pipeline import Instance
from mapgap.problems.hybrid_pipeline.lowered.batching import every_micro_batch


@every_micro_batch
def run(instance: Instance, budget: Budget, params: Params = Params()) -> SolveResult:
    """The best plan of the four steps."""
    begin = time.process_time()
    search = OrderSearch(instance, budget, announce=lambda plan: budget.report(plan=plan), params=params)
    search.quick()
    return report(budget, result(instance, search.plan, begin, not budget.exhausted, orders=search.searches))
