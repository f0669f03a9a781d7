"""The adversary: what it reports is reproducible, certain, and survives the file."""

import random

import pytest

from mapgap import registry
from mapgap.attack import Attack, _nonzero, integers, main_attack, mutate, rounded, widen
from mapgap.core import Budget, InputError
from mapgap.loading import load_instance


def value(problem, method, instance):
    spec = registry.problems()[problem]
    result = registry.methods(problem)[method].run(instance, Budget(20.0))
    return None if result.plan is None else spec.evaluate(instance, result.plan).objective


def _zeros(instance):
    data = instance.to_json()
    return set(integers(data)) - set(_nonzero(data))


def test_an_attack_ends_with_a_replayable_worst_case(tmp_path):
    problem, method = "suboperation_mapping", "mtrain_converting"
    search, path = main_attack(problem, method, time_s=8.0, family="tiny", folder=tmp_path)
    hit = search.worst
    assert search.tried > 10
    assert hit.ratio > 1.0
    instance = load_instance(path)
    assert instance.content_hash == hit.instance.content_hash
    # Brute force and a fresh run of the heuristic say the same.
    assert value(problem, "enumerate", instance) == hit.plan == hit.bound
    assert value(problem, method, instance) == hit.value
    assert hit.ratio == hit.limit == hit.value / hit.plan


@pytest.mark.parametrize("problem", registry.problems())
def test_changed_and_smaller_instances_are_valid_and_different(problem):
    library = registry.library(problem)
    instance = library.generators["tiny"](1)
    ranges = {}
    for seed in range(20):
        widen(ranges, library.generators["tiny"](seed))
    rng = random.Random(0)
    changed = [mutate(instance, ranges, rng) for _ in range(20)]
    assert sum(other is not None for other in changed) >= 10
    for other in [*(o for o in changed if o is not None), *rounded(instance, ranges)]:
        assert other.content_hash != instance.content_hash
        assert type(instance).model_validate_json(other.model_dump_json(by_alias=True)) == other
        assert _zeros(other) == _zeros(instance)  # they say that something is absent
    assert library.shrink is not None
    size = len(list(integers(instance.to_json())))
    for other in library.shrink(instance):
        assert len(list(integers(other.to_json()))) <= size
        assert type(instance).model_validate_json(other.model_dump_json(by_alias=True)) == other


def test_an_optimal_method_has_no_worst_case():
    problem = registry.problems()["suboperation_mapping"]
    method = registry.methods(problem.name)["mtrain_dfs"]
    exact = registry.methods(problem.name)["enumerate"]
    search = Attack(problem, method, "tiny", 1.0, exact=exact)
    instance = registry.library(problem.name).generators["tiny"](0)
    hit = search.measure(instance)
    assert hit is None or hit.ratio >= 1.0


@pytest.mark.parametrize(
    ("family", "method", "words"), [("tyni", "mtrain_dfs", "--family"), ("tiny", "cpsat", "published")]
)
def test_bad_requests(family, method, words):
    with pytest.raises(InputError, match=words):
        main_attack("suboperation_mapping", method, time_s=1.0, family=family)
