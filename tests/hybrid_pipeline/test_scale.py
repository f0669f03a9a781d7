"""Clusters of many devices: the exact methods announce at once, end in time, and are no worse than any heuristic."""

import time

import pytest

from mapgap.catalogue.registry import methods
from mapgap.contract.seeds import samples
from mapgap.core import Budget, Status, Stop
from mapgap.formulations.hybrid_pipeline.label.order_search import OrderSearch, fluid_bound, orders
from mapgap.instances.hybrid_pipeline import LIBRARY
from mapgap.problems.hybrid_pipeline.evaluate import evaluate
from mapgap.problems.hybrid_pipeline.lowered.arrays import lower
from mapgap.problems.hybrid_pipeline.lowered.groups import interchangeable

METHODS = methods("hybrid_pipeline")
OWN_ORDERS = {"dnn_partitioning", "edgeshard", "few_orders", "petals"}
HEURISTICS = [name for name, m in METHODS.items() if m.kind in ("published", "baseline")]
EIGHT_UNEVEN, TWENTY, TWENTY_UNEVEN = 1, 5, 6  # of the family distinct


def objective(instance, plan):
    found = evaluate(instance, plan)
    assert found.feasible
    return found.objective


def solve(name, instance, seconds):
    """The result, and what was announced: (seconds, plan, bound) each."""
    told = []
    budget = Budget(time_s=seconds, listener=lambda plan, bound: told.append((budget.elapsed_s, plan, bound)))
    begin = time.perf_counter()
    result = METHODS[name].solve(instance, budget)
    return result, told, time.perf_counter() - begin


@pytest.mark.in_turn
@pytest.mark.parametrize("seed", [TWENTY, TWENTY_UNEVEN])
def test_twenty_devices_that_all_differ(seed):
    instance = LIBRARY.generate("distinct", seed)
    result, told, _ = solve("portfolio", instance, 2.0)
    assert (result.status, result.stop in (Stop.TIME, Stop.MEMORY)) == (Status.FEASIBLE, True)
    assert 0 < result.bound <= result.claimed == objective(instance, result.plan)
    assert told[0][1] is not None  # the quick planner's; a bound follows
    assert any(bound is not None for *_, bound in told)
    alone, _, _ = solve("label_dp", instance, 0.1)
    assert "20 devices in 20 classes" in alone.reason


@pytest.mark.in_turn
def test_no_heuristic_is_better_than_a_search_that_had_no_time():
    instance = LIBRARY.generate("distinct", EIGHT_UNEVEN)
    best = OrderSearch(instance)
    best.run()
    compared = 0
    for name in HEURISTICS:
        if METHODS[name].fast or name == "asteroid_pareto":
            continue
        # On devices that all differ alpa takes what it is given.
        result = METHODS[name].solve(instance, Budget(1.0).start())
        if result.plan is not None:
            compared += 1
            assert best.value <= objective(instance, result.plan), name
    assert compared > 3


def along(instance, plan, order):
    """Whether the groups of a plan are runs of an order, one behind the other; like devices are one device."""
    of = {device: c for c, members in enumerate(interchangeable(instance)) for device in members}
    left = [of[d] for d in order]
    for stage in plan.stages:
        group = sorted(of[d] for d in stage.devices)
        while left and sorted(left[: len(group)]) != group and not instance.all_devices:
            left.pop(0)
        if sorted(left[: len(group)]) != group:
            return False
        del left[: len(group)]
    return True


@pytest.mark.parametrize("sample", samples(12, 60))
def test_orders_hold_every_plan_of_the_heuristics_on_small_instances(sample):
    """Rule 6: the best plan along the orders is no worse than any plan whose groups are runs of one of them.

    Some methods choose orders of their own; of the others every plan is along one.
    """
    compared, elsewhere = 0, set()
    for seed in sample:
        instance = LIBRARY.generate("small", seed)
        instance = instance.with_micro_batch(instance.micro_batch_sizes[-1])
        best = OrderSearch(instance)
        best.run()
        if best.plan is not None:
            assert best.value == objective(instance, best.plan)
        for name in HEURISTICS:
            if METHODS[name].fast:
                continue
            result = METHODS[name].solve(instance, Budget(300.0))
            if result.plan is None:
                continue
            if any(along(instance, result.plan, order) for order in orders(instance)):
                compared += 1
                assert best.value <= objective(instance, result.plan), (seed, name)
            else:
                elsewhere.add(name)
    assert compared > 5 * len(sample)
    assert elsewhere <= OWN_ORDERS


def test_models_of_too_many_stages_have_the_plan_they_began_with_and_a_bound():
    instance = LIBRARY.generate("distinct", TWENTY)
    start = METHODS["data_parallel"].solve(instance, Budget(300.0)).plan
    for name in ("cpsat", "mip"):
        result = METHODS[name].solve(instance, Budget(time_s=5.0).start(), start=start)
        assert (result.status, result.plan) == (Status.FEASIBLE, start)
        assert "too many stages" in result.reason
        assert result.bound <= objective(instance, result.plan)


def test_a_model_of_too_many_columns_is_not_built():
    refused = 0
    for seed in range(6):
        instance = LIBRARY.generate("small", seed)
        optimum = METHODS["label_dp"].solve(instance, Budget(300.0)).bound
        for name in ("cpsat", "mip", "mip_cbc"):
            result = METHODS[name].solve(instance, Budget(time_s=300.0).start(), columns=1)
            if result.plan is not None:
                assert result.bound <= optimum <= objective(instance, result.plan)
            refused += result.stop is Stop.MEMORY
    assert refused > 3


def test_a_search_that_is_stopped_knows_a_bound():
    """Stopped at any point, the bound is none above the optimum, and it says so."""
    instance = LIBRARY.generate("distinct", 0)
    optimum = METHODS["label_dp"].solve(instance, Budget(300.0)).bound
    seen = set()
    for work in (1, 10_000, 100_000, 1_000_000):
        search = OrderSearch(instance, work=work)
        search.run()
        seen.add(search.value >= optimum)
    assert seen == {True}
    for seconds in (0.0, 0.05, 0.2):
        result, _, _ = solve("label_dp", instance, seconds)
        assert result.bound <= optimum
        assert result.plan is None or result.claimed >= optimum


def test_no_plan_is_below_the_fluid_bound():
    for seed in range(80):
        for family in ("small", "executions", "steady"):
            instance = LIBRARY.generate(family, seed)
            instance = instance.with_micro_batch(instance.micro_batch_sizes[0])
            result = METHODS["label_dp"].solve(instance, Budget(300.0))
            if result.plan is not None:
                assert fluid_bound(lower(instance)) <= result.claimed, (family, seed)


def test_orders_that_equal_devices_make_the_same_are_tried_once():
    alike = LIBRARY.generate("scaling", 2)  # three types: by memory the first two are tied, the listing is one of them
    assert len(orders(alike)) == len({tuple(alike.devices[d].type for d in order) for order in orders(alike)})
