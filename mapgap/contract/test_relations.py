"""Optima that follow from each other: the relations that a library declares hold on its tiny instances.

No engine and no evaluator is asked whether it is right; two instances are solved, and one answer must follow from the
other. So this finds what a model and the evaluator get wrong together.
"""

from __future__ import annotations

import random
from functools import cache

import pytest

from mapgap.catalogue import registry
from mapgap.contract.known import exact_optimum, sign, tiny
from mapgap.contract.seeds import seeds
from mapgap.core import Relation

PROBLEMS = list(registry.problems())
RELATED = [problem for problem in PROBLEMS if registry.library(problem).relating is not None]
SEEDS = range(20)


@cache
def related(problem: str, seed: int) -> list[Relation]:
    """The relations of a tiny instance; what they draw depends on the seed alone."""
    return registry.library(problem).relations(tiny(problem, seed), random.Random(f"relations-{seed}"))


@pytest.mark.parametrize("seed", seeds(2, 50))
@pytest.mark.parametrize("problem", RELATED)
def test_the_optimum_follows_from_that_of_the_other_instance(problem: str, seed: int) -> None:
    for relation in related(problem, seed):
        value, other = exact_optimum(problem, tiny(problem, seed)), exact_optimum(problem, relation.instance)
        if relation.equal:
            assert other == (None if value is None else relation.factor * value), relation.label
        elif value is not None:
            assert other is not None, f"{relation.label}: no plan is left"
            assert sign(problem) * other <= sign(problem) * relation.factor * value, relation.label


@pytest.mark.parametrize("problem", PROBLEMS)
def test_every_relation_is_seen_at_work(problem: str) -> None:
    # On an instance that has a plan, and between two instances that differ: else the test above is empty.
    if problem not in RELATED:
        pytest.skip("the library declares no relations")
    labels: set[str] = set()
    at_work: set[str] = set()
    for seed in SEEDS:
        instance = tiny(problem, seed)
        labels |= {each.label for each in related(problem, seed)}
        others = [each for each in related(problem, seed) if each.instance.content_hash != instance.content_hash]
        new = {each.label for each in others} - at_work
        if new and exact_optimum(problem, instance) is not None:
            at_work |= new
    assert labels, "relations are declared, and no tiny instance has one"
    assert labels == at_work, f"never at work: {sorted(labels - at_work)}"
