"""Neighbourhood search and the quick planner: what is searched is what the evaluator says, and nothing is lost."""

import itertools
import random

import numpy as np
import pytest

from mapgap.catalogue import registry
from mapgap.catalogue.files import load_instance
from mapgap.contract.seeds import samples
from mapgap.core import Budget, Status
from mapgap.heuristics.multi_model_splitting.params import Neighbourhood as Params
from mapgap.heuristics.multi_model_splitting.search.neighbourhood import Neighbourhood, started
from mapgap.problems.multi_model_splitting import RESOURCES, UNITS, Requirement
from mapgap.problems.multi_model_splitting.evaluate import evaluate

METHODS = registry.methods("multi_model_splitting")
LIBRARY = registry.library("multi_model_splitting")
FAMILIES = ("tiny", "realistic", "small", "full", "mixed_4x4")


def worth(instance, plan):
    found = evaluate(instance, plan)
    assert found.feasible, found.violations
    return found.objective


def solve(name, instance, seed=0):
    return METHODS[name].solve(instance, Budget(time_s=300, seed=seed).start())


@pytest.mark.parametrize("family", FAMILIES)
def test_a_state_occupies_what_the_evaluator_counts(family):
    # Without sharing the tables of the search and the evaluator must agree to the tick and to the byte.
    for seed in range(20):
        instance = LIBRARY.generate(family, seed).changed(sharing=False)
        search = Neighbourhood(instance, seed, Params(steps=100))
        for _ in range(3):
            search.walk()
        if search.plan is None:
            continue
        terms = evaluate(instance, search.plan).terms
        state = search.best
        assert search.value == search.reached == worth(instance, search.plan)
        for d, device in enumerate(instance.devices):
            assert terms["load_ticks"][device.name] == dict(zip(UNITS, state.busy[:, d].tolist(), strict=True))
            used = [getattr(device, r) - int(state.free[k, d]) for k, r in enumerate(RESOURCES)]
            assert list(terms["used"][device.name].values()) == used


@pytest.mark.in_turn
def test_never_better_than_brute_force_and_mostly_as_good():
    hits = made = 0
    for family, seed in itertools.product(("tiny", "realistic"), range(40)):
        instance = LIBRARY.generate(family, seed).changed(sharing=False)
        exact = solve("enumerate", instance)
        plan = started(instance, seed).plan
        if exact.plan is None:
            assert plan is None
            continue
        best = worth(instance, exact.plan)
        made += 1
        if plan is not None:
            assert worth(instance, plan) >= best
            hits += worth(instance, plan) == best
    assert hits >= 0.9 * made  # small enough for any search worth its name


def test_operation_sharing_only_makes_a_plan_better():
    for seed in range(60):
        instance = LIBRARY.generate("tiny", seed)
        if not instance.sharing:
            continue
        search = Neighbourhood(instance, tuned=Params(steps=200))
        search.walk()
        if search.plan is not None and search.reached is not None:
            assert search.value == worth(instance, search.plan) <= search.reached


def test_the_search_ends_at_a_proven_bound():
    instance = load_instance("synergy_w1_overlapped")
    search = started(instance)
    steps = search.steps
    assert not search.walk(bound=search.value)
    assert search.settled
    assert search.steps == steps


def test_a_requirement_that_nothing_meets_has_no_plan():
    instance = LIBRARY.generate("tiny", 3)
    pipeline = instance.pipelines[0].model_copy(update={"source": Requirement(device="elsewhere")})
    lost = instance.changed(pipelines=(pipeline, *instance.pipelines[1:]))
    search = started(lost, over=iter([False] * 5 + [True] * 100).__next__)
    assert search.plan is None
    result = solve("ruin_and_recreate", lost)
    assert (result.status, result.plan) == (Status.UNKNOWN, None)
    assert "source" in result.reason


def test_more_than_64_devices_are_no_mask():
    # Which devices a path has visited is found by walking back, so that any number of them will do.
    instance = LIBRARY.generate("small", 1).changed(sharing=False)
    devices = tuple(
        instance.devices[k % len(instance.devices)].model_copy(update={"name": f"d{k + 1}"}) for k in range(70)
    )

    def wider(ticks):
        return tuple(ticks[k % len(ticks)] for k in range(70)) if ticks else ()

    def cut(old):
        names = ("load", "unload", "transmit", "receive")
        return old.model_copy(update={name: wider(getattr(old, name)) for name in names})

    pipelines = tuple(
        p.model_copy(
            update={
                "sensing": wider(p.sensing),
                "layers": tuple(x.model_copy(update={"inference": wider(x.inference)}) for x in p.layers),
                "boundaries": tuple(map(cut, p.boundaries)),
            }
        )
        for p in instance.pipelines
    )
    plan = started(instance.changed(devices=devices, pipelines=pipelines)).plan
    assert plan is not None
    assert evaluate(instance.changed(devices=devices, pipelines=pipelines), plan).feasible


@pytest.mark.parametrize("sample", samples(3, 12))
@pytest.mark.parametrize("family", FAMILIES)
def test_the_quick_planner_is_never_worse_than_synergy(family, sample):
    for seed in (300 + each for each in sample):
        instance = LIBRARY.generate(family, seed)
        published, quick = solve("synergy", instance), solve("ruin_and_recreate", instance)
        if published.plan is not None:
            assert worth(instance, quick.plan) <= worth(instance, published.plan)
        again = solve("ruin_and_recreate", instance)
        assert again.plan == quick.plan


def test_the_quick_planner_repairs_an_order():
    # Fig. 11a with two devices: data intensity plans the pipeline with the largest tensors first.
    instance = load_instance("synergy_fig11a_2devices")
    optimum = worth(instance, solve("cpsat", instance).plan)
    assert worth(instance, solve("synergy", instance).plan) > 2 * optimum
    assert worth(instance, solve("ruin_and_recreate", instance).plan) == optimum


@pytest.mark.in_turn
def test_offered_plans_are_where_the_search_goes_on():
    instance = LIBRARY.generate("mixed_4x4", 302)
    plan = solve("cpsat", instance).plan
    search = Neighbourhood(instance)
    assert search.offer(plan)
    assert search.value == worth(instance, plan)
    assert np.array_equal(search.state.busy, search.best.busy)
    rng = random.Random(1)
    broken = LIBRARY.random_plan(instance, rng)
    while evaluate(instance, broken).feasible:
        broken = LIBRARY.random_plan(instance, rng)
    assert not search.offer(broken)
    assert search.plan == plan
