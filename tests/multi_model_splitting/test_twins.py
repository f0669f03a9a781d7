"""Twins that coincide: what is planned as one pipeline is worth as much as several, and no engine is needed for it."""

import itertools
import random

import pytest

from mapgap.catalogue import registry
from mapgap.core import Budget, Status
from mapgap.heuristics.multi_model_splitting.search.neighbourhood import started
from mapgap.heuristics.multi_model_splitting.search.twins import TwinNeighbourhood, merged
from mapgap.problems.multi_model_splitting.evaluate import evaluate

METHODS = registry.methods("multi_model_splitting")
LIBRARY = registry.library("multi_model_splitting")


def solve(name, instance):
    return METHODS[name].solve(instance, Budget(time_s=300).start())


def sharing(families, seeds):
    for family, seed in itertools.product(families, seeds):
        instance = LIBRARY.generate(family, seed)
        if instance.sharing:
            yield instance


def test_coinciding_twins_load_and_need_what_one_pipeline_does():
    # Equal ends: then every task of a twin is its leader's, and a cycle time cannot tell one from many.
    tried = 0
    for instance in sharing(("tiny", "small"), range(60)):
        first = instance.pipelines[0]
        many = instance.changed(
            objective="throughput",
            pipelines=tuple(first.model_copy(update={"name": f"p{k + 1}"}) for k in range(4)),
            deployed=(),
        )
        found = merged(many)
        assert len(found.instance.pipelines) == 1
        assert found.leader == (0, 0, 0, 0)
        one = solve("ind_model", found.instance)
        if one.plan is None:
            continue
        alone, together = evaluate(found.instance, one.plan), evaluate(many, found.expanded(one.plan))
        assert together.feasible
        assert together.objective == alone.objective
        tried += 1
    assert tried >= 10


def test_pipelines_of_other_signals_models_or_sources_are_no_twins():
    for instance in sharing(("tiny", "small", "full"), range(60)):
        for rng in (None, random.Random(1)):
            found = merged(instance, rng)
            if found is None:
                continue
            for p, leader in enumerate(found.leader):
                mine, kept = instance.pipelines[p], found.instance.pipelines[leader]
                if mine != kept:
                    assert mine.signal
                    assert (mine.signal, mine.model) == (kept.signal, kept.model)
                    assert instance.sources(p) == found.instance.sources(leader)
    assert merged(LIBRARY.generate("small", 3).changed(sharing=False)) is None


@pytest.mark.in_turn
def test_the_search_with_twins_is_mostly_as_good_as_brute_force_and_never_better():
    hits = made = 0
    for instance in sharing(("tiny", "realistic"), range(60)):
        exact = solve("enumerate", instance)
        search = started(instance, make=TwinNeighbourhood)
        for _ in range(6):
            search.walk()
        if exact.plan is None:
            assert search.plan is None
            continue
        made += 1
        best = evaluate(instance, exact.plan).objective
        if search.value is not None:
            assert search.value == evaluate(instance, search.plan).objective >= best
            hits += search.value == best
    assert made >= 20
    assert hits >= 0.9 * made


def test_memory_that_only_holds_twins_once_has_a_plan_at_once():
    # Without coincidence there is none: the weights of both would not fit anywhere.
    small = LIBRARY.generate("tiny", 9).changed(sharing=True, deployed=())
    first = small.pipelines[0]
    twins = tuple(first.model_copy(update={"name": name}) for name in ("a", "b"))
    need = {
        "weights": sum(layer.weights for layer in first.layers),
        "bias": sum(layer.bias for layer in first.layers),
        "layers": len(first.layers),
    }
    devices = tuple(
        device.model_copy(update=need if d == 0 else dict.fromkeys(need, 0)) for d, device in enumerate(small.devices)
    )
    tight = small.changed(pipelines=twins, devices=devices)
    assert solve("enumerate", tight).status is Status.OPTIMAL
    assert solve("enumerate", tight.changed(sharing=False)).status is Status.INFEASIBLE
    assert TwinNeighbourhood(tight).plan is not None
