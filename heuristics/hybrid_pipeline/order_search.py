"""A quick planner of the house: exact along orders of the devices, then over all groups as far as little work goes.

::

    1  the best pipeline along the order of Algorithm 2 (by memory, the fastest first)
    2  the same along the other orders that descending memory permits by its ties, as listed, by speed
    3  all groups, below the value found, until the work is used up
    4  along neighbours of the best order: two devices exchanged, or one moved

Steps 1 and 2 are the label search of docs/hybrid_pipeline_label_dp.md with groups that are runs of an order, devices in
between idle where the instance allows it. No plan of Algorithm 2 is better than the result of step 1: it uses runs of
that order, and rule 6 of the problem credits no shares but those of Eq. (7). Step 1 is always finished; the others stop
after so much work (moves and places looked at, stages priced), counted and not timed, so that a run can be repeated.
"""

from __future__ import annotations

import time

from mapgap.core import Budget, SolveResult
from mapgap.heuristics.hybrid_pipeline.chain import report, result
from mapgap.problems.hybrid_pipeline import Instance, Plan
from mapgap.problems.hybrid_pipeline.shared.batching import every_micro_batch
from mapgap.problems.hybrid_pipeline.shared.first_plan import Path, approach
from mapgap.problems.hybrid_pipeline.shared.label_search import CompiledSearch
from mapgap.problems.hybrid_pipeline.shared.lowered import lower, move_count
from mapgap.problems.hybrid_pipeline.shared.order import memory_order
from mapgap.problems.hybrid_pipeline.shared.order_search import OrderSearch

WORK = 1_000_000
"""What steps 2 to 4 may do on any instance: some tens of milliseconds."""

SHARE = 20
"""They may also do N^3 L^2 / 20, which takes them less time than Algorithm 2 takes for its N^3 L^2 steps."""


@every_micro_batch
def run(instance: Instance, budget: Budget) -> SolveResult:
    """The best plan of the four steps."""
    begin = time.process_time()
    search = OrderSearch(instance, budget, announce=lambda plan: budget.report(plan=plan))
    search.along(tuple(memory_order(instance)))
    devices, layers = len(instance.devices), len(instance.layers)
    search.work = work = max(WORK, devices**3 * layers**2 // SHARE)
    search.run()
    if move_count(instance) * layers <= work and not search.over:
        everywhere(search)
    search.improve()
    return report(budget, result(instance, search.plan, begin, orders=search.searches))


def everywhere(search: OrderSearch) -> None:
    """Step 3, with the work that is left; a better plan is entered into the search."""
    low = lower(search.instance)
    if low.overflows:
        return
    everyone = search.instance.all_devices
    engine = CompiledSearch(low, everyone, search.budget, search.work)
    plans: list[Plan] = []

    def better(path: Path) -> None:
        plans.append(low.plan(path))
        search.announce(plans[-1])

    value, _, _ = approach(low, engine, (search.value, []), better)
    if engine.stop is None:
        value, path, _ = engine(list(range(low.layers + 1)), value)
        if path:
            better(path)
    search.work = 0 if engine.stop is None else engine.work  # over all groups nothing is left to find
    if plans:
        search.value, search.plan = value, plans[-1]
