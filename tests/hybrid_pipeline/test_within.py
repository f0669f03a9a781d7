"""Quartiles of profiles: the interval of a plan by hand, and the simplest plan within it against all plans."""

import json
import math
import random
from itertools import count

import graphs
import pytest
from graphs import random_graph
from pipelines import all_plans, example, executed, optimum

import mapgap
from mapgap.catalogue.registry import library, methods
from mapgap.contract.seeds import seeds
from mapgap.core import Budget, InputError
from mapgap.formulations.hybrid_pipeline.within import preferred, shape
from mapgap.problems.hybrid_pipeline import DeviceType, Execution, Instance, Plan, Quartiles, Stage
from mapgap.problems.hybrid_pipeline.evaluate import evaluate
from mapgap.problems.hybrid_pipeline.measured import interval


def spread(kind, lower, upper):
    """The type with quartiles at shares of its times; ``lower`` and ``upper`` give one per layer."""

    def table(rows, shares, whole):
        return tuple(tuple(whole(ticks * share) for ticks in row) for row, share in zip(rows, shares, strict=True))

    quartiles = Quartiles(
        forward_lower=table(kind.forward, lower, int),
        forward_upper=table(kind.forward, upper, math.ceil),
        backward_lower=table(kind.backward, lower, int),
        backward_upper=table(kind.backward, upper, math.ceil),
    )
    return kind.model_copy(update={"quartiles": quartiles})


def measured(seed):
    """A realistic instance without a failure whose profiles spread a little, much, or on some boards only."""
    rng = random.Random(f"measured-{seed}")
    base = next(made for k in count(100 * seed) if len((made := executed(k)).devices) < 4)
    wide = rng.choice((0.05, 0.3, 0.6, 0.9))
    kinds = []
    for kind in base.types:
        lower = [1 - wide * rng.random() for _ in base.layers]
        upper = [1 + wide * rng.random() for _ in base.layers]
        kinds.append(spread(kind, lower, upper) if rng.random() < 0.8 else kind)
    return base.changed(types=tuple(kinds), replanning=None)


def within_it(instance, best, all_plans=all_plans):
    """All plans that keep the rules and cannot be told apart from the best one, by the evaluator alone."""
    high = evaluate(instance.at("upper"), best).objective
    found = []
    for plan in all_plans(instance):
        seen = evaluate(instance.at("lower"), plan)
        if seen.feasible and seen.objective <= high:
            found.append(plan)
    return found


def agrees_with_all_plans(instance, method="label_dp", all_plans=all_plans):
    """What kind of answer it was: unmeasured, infeasible, the optimum itself, or a simpler plan."""
    best = methods("hybrid_pipeline")[method].solve(instance, Budget(300.0)).plan
    if best is None:
        return "infeasible"
    if not instance.measured:
        assert interval(instance, best) is None
        return "unmeasured"
    low, high = interval(instance, best)
    assert low == evaluate(instance.at("lower"), best).objective
    assert high == evaluate(instance.at("upper"), best).objective
    found = preferred(instance, best, Budget(300.0))
    assert found.complete
    indistinct = within_it(instance, best, all_plans)
    simplest = min(map(shape, indistinct), default=shape(best))
    if found.plan is None:
        assert simplest >= shape(best)
        return "itself"
    assert shape(found.plan) == simplest < shape(best)
    assert evaluate(instance, found.plan).feasible
    assert interval(instance, found.plan)[0] <= high
    # Of that shape the best by the medians, unless it can be told apart: then the best by the lower quartiles.
    like = [plan for plan in all_plans(instance) if shape(plan) == simplest and evaluate(instance, plan).feasible]
    value = min(evaluate(instance, plan).objective for plan in like)
    medians = [plan for plan in like if evaluate(instance, plan).objective == value]
    if all(plan in indistinct for plan in medians):
        assert evaluate(instance, found.plan).objective == value
    elif not any(plan in indistinct for plan in medians):
        lowest = min(evaluate(instance.at("lower"), plan).objective for plan in like)
        assert evaluate(instance.at("lower"), found.plan).objective == lowest
    return "simpler"


@pytest.mark.parametrize("seed", seeds(15, 300))
def test_the_simplest_plan_is_that_of_all_plans(seed):
    agrees_with_all_plans(measured(seed))


def measured_graph(seed):
    """A small random graph whose profiles spread."""
    base, rng = random_graph(seed), random.Random(f"measured-graph-{seed}")
    wide = rng.choice((0.05, 0.3, 0.6, 0.9))
    kinds = []
    for kind in base.types:
        lower, upper = ([1 + sign * wide * rng.random() for _ in base.layers] for sign in (-1, 1))
        kinds.append(spread(kind, lower, upper) if rng.random() < 0.8 else kind)
    return base.changed(types=tuple(kinds))


@pytest.mark.parametrize("seed", seeds(25, 400))
def test_the_simplest_plan_on_a_graph_is_that_of_all_plans(seed):
    agrees_with_all_plans(measured_graph(seed), "ideal_dp", graphs.all_plans)


@pytest.mark.in_turn
def test_every_answer_comes_up_on_graphs():
    kinds = {agrees_with_all_plans(measured_graph(seed), "ideal_dp", graphs.all_plans) for seed in range(400, 440)}
    assert kinds >= {"itself", "simpler", "infeasible", "unmeasured"}


def test_every_answer_comes_up():
    kinds = [agrees_with_all_plans(instance) for instance in map(measured, range(40))]
    assert {"itself", "simpler"} <= set(kinds)


def noisy(share):
    """The worked example's inference; every time may be so much shorter or longer."""
    base = example(execution=Execution(training=False), objective="bottleneck")
    kinds = tuple(spread(kind, [1 - share] * 4, [1 + share] * 4) for kind in base.types)
    return base.changed(types=kinds)


def test_the_worked_example_by_hand():
    # Two samples: l1-l3 on F take 6, l4 on S 4, the cut c = 4; F alone takes 8. With a quarter less or more, in whole
    # ticks, a layer takes 1 to 3 on F and 3 to 5 on S: the stages 3 to 9 and 3 to 5, F alone 4 to 12.
    best = Plan(
        micro_batch=2,
        stages=(Stage(start=0, stop=3, devices=(0,), shares=(2,)), Stage(start=3, stop=4, devices=(1,), shares=(2,))),
    )
    assert evaluate(noisy(0.25), best).objective == optimum(noisy(0.25)) == 6
    assert interval(noisy(0.25), best) == (4, 9)
    found = preferred(noisy(0.25), best, Budget(60.0))
    assert shape(found.plan) == (1, 0)
    assert evaluate(noisy(0.25), found.plan).objective == 8
    assert interval(noisy(0.25), found.plan) == (4, 12)
    assert found.words == "1 board and no cut in place of 2 boards and 1 cut"
    quiet = preferred(noisy(0.0), best, Budget(60.0))
    assert (quiet.plan, quiet.complete) == (None, True)


@pytest.mark.in_turn
def test_the_same_from_python():
    result = mapgap.solve(noisy(0.25), ledger=False)
    assert (result.objective, result.within.low, result.within.high) == (6, 4, 9)
    assert shape(result.within.plan) == (1, 0)
    assert (result.within.value, result.within.plan_low, result.within.plan_high) == (8, 4, 12)
    assert mapgap.solve(example(), ledger=False).within is None  # nothing was measured
    assert mapgap.solve(noisy(0.25), "asteroid", ledger=False).within is None  # nothing is proven


def test_quartiles_are_left_out_of_files_and_hashes_where_there_are_none():
    assert all("quartiles" not in kind for kind in example().to_json()["types"])
    some = noisy(0.5)
    assert some.content_hash != example(execution=Execution(training=False), objective="bottleneck").content_hash
    assert Instance.model_validate_json(json.dumps(some.to_json())) == some


def test_quartiles_beyond_the_medians_are_refused():
    base = example()
    wrong = spread(base.types[0], [1] * 4, [1] * 4)
    upper = tuple(tuple(ticks - 1 for ticks in row) for row in wrong.forward)
    broken = wrong.quartiles.model_copy(update={"forward_upper": upper})
    with pytest.raises((InputError, ValueError), match="expected a quartile not below the median 1, found 0"):
        base.changed(types=(DeviceType(**{**dict(wrong), "quartiles": broken}), base.types[1]))


def test_the_checker_does_not_care_for_quartiles():
    instance = noisy(0.25)
    value = optimum(instance)
    proof = library("hybrid_pipeline").prove(instance.to_json(), value, Budget(60.0))
    assert proof == {}
    assert library("hybrid_pipeline").prove(instance.to_json(), value + 1, Budget(60.0)) is None
