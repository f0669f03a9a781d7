"""What every library keeps: files, random families, case splits, smaller instances, random plans."""

from __future__ import annotations

import random

import pytest

from mapgap.catalogue import registry
from mapgap.catalogue.files import json_schema, library_files, load_instance
from mapgap.contract.known import best, exact_optimum, optimum, problem_of, tiny
from mapgap.contract.seeds import samples
from mapgap.core import InstanceBase

PROBLEMS = list(registry.problems())
FAMILIES = [(problem, family) for problem in PROBLEMS for family in registry.library(problem).families]


@pytest.mark.in_turn
@pytest.mark.parametrize("problem", PROBLEMS)
def test_files_load_under_their_names(problem: str) -> None:
    folder = registry.library(problem).folder
    for name, path in library_files().items():
        if path.parent == folder:
            instance = load_instance(name)
            assert (instance.name, instance.problem) == (name, problem)
            assert instance.source, f"{name} does not say where its data come from"


@pytest.mark.parametrize("problem", PROBLEMS)
def test_every_form_has_a_schema(problem: str) -> None:
    for form in ("compact", "expanded", "plan"):
        assert json_schema(problem, form)["properties"]


@pytest.mark.in_turn
@pytest.mark.parametrize(("problem", "family"), FAMILIES)
def test_same_seed_same_instance(problem: str, family: str) -> None:
    library = registry.library(problem)
    first, again, other = (library.generate(family, seed) for seed in (1, 1, 2))
    assert first == again
    assert first.content_hash != other.content_hash
    assert isinstance(first, problem_of(problem).instance_type)


@pytest.mark.in_turn
@pytest.mark.parametrize("sample", samples(15, 60))
@pytest.mark.parametrize("problem", PROBLEMS)
def test_the_best_case_is_the_optimum(problem: str, sample: list[int]) -> None:
    library = registry.library(problem)
    if library.splitting is None:
        pytest.skip("the library declares no case split")
    split = 0
    for seed in sample:
        cases = library.cases(tiny(problem, seed))
        if cases:
            split += 1
            values = [exact_optimum(problem, case.instance) for case in cases]
            known = best(problem, [value for value in values if value is not None])
            assert known == optimum(problem, seed), (seed, [case.label for case in cases])
    assert split, "no tiny instance is split"


@pytest.mark.parametrize("sample", samples(5, 40))
@pytest.mark.parametrize("problem", PROBLEMS)
def test_smaller_instances_are_smaller(problem: str, sample: list[int]) -> None:
    library = registry.library(problem)
    if library.shrinking is None:
        pytest.skip("the library declares no smaller instances")
    found = 0
    for seed in sample:
        instance = tiny(problem, seed)
        for other in library.shrink(instance):
            found += 1
            assert other.content_hash != instance.content_hash
            assert size(other) <= size(instance)
            assert type(instance).model_validate_json(other.model_dump_json(by_alias=True)) == other
    assert found


def size(instance: InstanceBase) -> int:
    """How many values an optimiser sees."""
    return instance.model_dump_json(exclude={"name", "source", "tags"}).count(",")


@pytest.mark.parametrize("problem", PROBLEMS)
def test_random_plans_keep_and_break_rules(problem: str) -> None:
    library = registry.library(problem)
    if library.sampling is None:
        pytest.skip("the library declares no random plans")
    rng = random.Random(0)
    seen = {True: 0, False: 0}
    for seed in range(20):
        instance = tiny(problem, seed)
        for _ in range(10):
            plan = library.random_plan(instance, rng)
            assert isinstance(plan, problem_of(problem).plan_type)
            evaluation = problem_of(problem).evaluate(instance, plan)
            seen[evaluation.feasible] += 1
            value, least = evaluation.objective, optimum(problem, seed)
            if evaluation.feasible and value is not None:
                assert least is not None
                assert best(problem, [value, least]) == least, "better than the enumerated optimum"
    needed = [True] if problem_of(problem).always_feasible else [True, False]
    assert all(seen[kind] >= 10 for kind in needed), f"too few plans (feasible, infeasible): {seen}"
