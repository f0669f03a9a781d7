"""The quick planner: where it searches beyond Asteroid, and what it says without a plan."""

import pytest

from mapgap.catalogue import registry
from mapgap.core import Budget
from mapgap.instances.hybrid_pipeline import LIBRARY
from mapgap.problems.hybrid_pipeline.evaluate import evaluate

METHODS = registry.methods("hybrid_pipeline")
FAST = METHODS["order_search"]


@pytest.mark.in_turn
def test_more_devices_than_all_groups_are_searched_for():
    instance = LIBRARY.generate("distinct", 0)  # eight, all different
    plans = [
        METHODS["asteroid"].solve(instance, Budget(300.0), ties=f"{each}_first").plan for each in ("fastest", "slowest")
    ]
    quick, *theirs = (evaluate(instance, plan).objective for plan in (FAST.solve(instance, Budget(300.0)).plan, *plans))
    assert METHODS["label_dp"].solve(instance, Budget(300.0)).bound <= quick < min(theirs)


def test_no_plan_is_no_proof():
    instance = next(
        case
        for case in (LIBRARY.generate("tiny", seed) for seed in range(200))
        if METHODS["enumerate"].solve(case, Budget(300.0)).plan is None
    )
    result = FAST.solve(instance, Budget(300.0))
    assert (result.plan, result.bound) == (None, None)
    assert result.reason
