"""The quick planner: never worse than Asteroid, far closer to the optimum, the same at every run."""

import pytest

from mapgap.catalogue import registry
from mapgap.catalogue.files import load_instance
from mapgap.core import Budget
from mapgap.instances.hybrid_pipeline import LIBRARY
from mapgap.problems.hybrid_pipeline.evaluate import evaluate

METHODS = registry.methods("hybrid_pipeline")
FAST = METHODS["order_search"]


def objective(instance, result):
    if result.plan is None:
        return None
    found = evaluate(instance, result.plan)
    assert found.feasible
    return found.objective


def test_it_is_the_fast_planner_of_the_problem():
    assert registry.fast_planner("hybrid_pipeline").name == FAST.name


def compared(instance):
    """Objectives of the quick planner and of Asteroid, with either tie rule, and the optimum."""
    quick = objective(instance, FAST.solve(instance, Budget(300.0)))
    theirs = [objective(instance, METHODS["asteroid"].solve(instance, Budget(300.0), ties=ties)) for ties in TIES]
    return quick, theirs, METHODS["label_dp"].solve(instance, Budget(300.0)).bound


TIES = ("fastest_first", "slowest_first")


@pytest.mark.parametrize("family", ["tiny", "small", "steady", "realistic", "executions"])
def test_never_worse_than_asteroid_and_at_most_half_its_gap(family):
    gaps = [0.0, 0.0]
    plans = 0
    for seed in range(300, 340):
        quick, (theirs, others), optimum = compared(LIBRARY.generate(family, seed))
        for value in (theirs, others):
            if value is not None:
                assert optimum <= quick <= value, seed
        if theirs and optimum:
            plans += 1
            gaps[0] += quick / optimum - 1
            gaps[1] += theirs / optimum - 1
    assert plans > 10
    assert gaps[0] <= gaps[1] / 2


@pytest.mark.parametrize(
    "name",
    [
        "asteroid_b_bert_small_100mbps",
        "asteroid_c_efficientnet_b1_100mbps",
        "asteroid_d_resnet50_100mbps",
    ],
)
def test_the_library(name):
    instance = load_instance(name)
    quick, (theirs, _), optimum = compared(instance)
    assert quick - optimum <= (theirs - optimum) / 2
    assert theirs > optimum


def test_more_devices_than_all_groups_are_searched_for():
    instance = LIBRARY.generate("distinct", 0)  # eight, all different
    quick, theirs, optimum = compared(instance)
    assert optimum <= quick < min(theirs)


def test_the_same_plan_at_every_run():
    for family, seed in (("distinct", 0), ("scaling", 9)):
        instance = LIBRARY.generate(family, seed)
        plans = {FAST.solve(instance, Budget(time_s=limit)).plan for limit in (60.0, 60.0)}
        assert len(plans) == 1


def test_no_plan_is_no_proof():
    instance = next(
        case
        for case in (LIBRARY.generate("tiny", seed) for seed in range(200))
        if METHODS["enumerate"].solve(case, Budget(300.0)).plan is None
    )
    result = FAST.solve(instance, Budget(300.0))
    assert (result.plan, result.bound) == (None, None)
    assert result.reason
