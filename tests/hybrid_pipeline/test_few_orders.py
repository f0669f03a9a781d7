"""The entry of hybrid pipelines: what it says of its plans, how it stops, where it loses less than Asteroid."""

import pytest

from mapgap.catalogue import registry
from mapgap.core import Budget, Stop
from mapgap.heuristics.hybrid_pipeline import few_orders
from mapgap.instances.hybrid_pipeline import LIBRARY
from mapgap.problems.hybrid_pipeline.evaluate import evaluate

METHODS = registry.methods("hybrid_pipeline")
ENTRY = METHODS["few_orders"]


@pytest.mark.parametrize("family", ["tiny", "small", "steady", "realistic", "executions"])
def test_every_plan_keeps_the_rules_and_has_the_value_that_the_search_says(family):
    plans = claims = 0
    for seed in range(300, 330):
        instance = LIBRARY.generate(family, seed)
        result = ENTRY.solve(instance, Budget(60.0))
        if result.plan is None:
            continue
        found = evaluate(instance, result.plan)
        assert found.feasible, seed
        plans += 1
        if result.claimed is not None:
            claims += 1
            assert result.claimed == found.objective, seed
    assert plans > 10
    assert (claims == 0) == (family == "executions")


@pytest.mark.nightly
def test_what_was_left_in_the_middle_is_gone_on_with():
    """The seven orders of eight different devices take more stages than the search prices at once."""
    instance = LIBRARY.generate("distinct", 0)
    short, long = (ENTRY.solve(instance, Budget(limit)) for limit in (2.0, 6.0))
    assert short.stop is long.stop is Stop.TIME
    values = [evaluate(instance, result.plan).objective for result in (short, long)]
    assert values == [short.claimed, long.claimed]
    assert values[1] <= values[0]


def test_without_time_there_is_no_plan():
    result = ENTRY.solve(LIBRARY.generate("small", 300), Budget(0.0))
    assert (result.plan, result.stop) == (None, Stop.TIME)


def test_an_order_stands_there_once():
    instance = LIBRARY.generate("small", 300)
    found = few_orders.orders(instance, [1] * len(instance.devices))
    assert len(found) == len(set(found))
    assert all(sorted(order) == list(range(len(instance.devices))) for order in found)
