"""Bounds and plans that a library passes from one instance to another hold: every pair of tiny instances is tried.

The pairs are a tiny instance, its smaller ones, those its relations name, and all of them under the other objectives.
Optima are those of the strongest exact method, which the other modules of the contract hold to brute force.
"""

from __future__ import annotations

import random
from functools import cache
from itertools import permutations

import pytest

from mapgap.catalogue import registry
from mapgap.contract.known import exact_optimum, problem_of, sign, tiny
from mapgap.contract.seeds import samples, seeds
from mapgap.core import Budget, InstanceBase

PROBLEMS = list(registry.problems())
IMPLYING = [problem for problem in PROBLEMS if registry.library(problem).implying is not None]
CARRYING = [problem for problem in PROBLEMS if registry.library(problem).carrying is not None]
SEEDS = range(12)
MOST = 24  #: instances beside each other


@cache
def kin(problem: str, seed: int) -> list[InstanceBase]:
    """A tiny instance and others that resemble it, each once."""
    library, instance, rng = registry.library(problem), tiny(problem, seed), random.Random(f"kin-{seed}")
    others = [relation.instance for relation in library.relations(instance, random.Random(f"relations-{seed}"))]
    smaller = list(library.shrink(instance))
    others += rng.sample(smaller, min(4, len(smaller)))
    found = {each.content_hash: each for each in (instance, *others)}
    for objective in problem_of(problem).objectives:
        other = problem_of(problem).retarget(instance, objective)
        found.setdefault(other.content_hash, other)
    first, *rest = found.values()
    return [first, *rng.sample(rest, min(MOST - 1, len(rest)))]


@pytest.mark.in_turn
@pytest.mark.parametrize("seed", seeds(1, 30))
@pytest.mark.parametrize("problem", IMPLYING)
def test_what_is_implied_is_a_bound(problem: str, seed: int) -> None:
    library = registry.library(problem)
    for source, target in permutations(kin(problem, seed), 2):
        value, other = exact_optimum(problem, source), exact_optimum(problem, target)
        if value is None:
            continue  # every bound holds of an instance without a plan, so none follows
        bound = library.imply(value, source, target)
        if bound is not None and other is not None:
            assert sign(problem) * bound <= sign(problem) * other, f"{source.name} -> {target.name}"
        weaker = library.imply(value - 5 * sign(problem), source, target)
        assert (weaker is None) == (bound is None), "whether something follows must not depend on the bound"


@pytest.mark.parametrize("problem", IMPLYING)
def test_something_is_implied_that_is_tight_and_something_that_is_not(problem: str) -> None:
    # Else the test above may be empty, or the rules may hold of equal instances only.
    tight = loose = 0
    for seed in SEEDS:
        for source, target in permutations(kin(problem, seed), 2):
            value, other = exact_optimum(problem, source), exact_optimum(problem, target)
            if value is None or other is None:
                continue
            bound = registry.library(problem).imply(value, source, target)
            tight += bound == other
            loose += bound is not None and bound != other
        if tight and loose:
            return
    raise AssertionError(f"{tight} tight bounds and {loose} loose ones")


@pytest.mark.in_turn
@pytest.mark.parametrize("sample", samples(3, 24))
@pytest.mark.parametrize("problem", CARRYING)
def test_carried_plans_are_plans_and_some_are_optimal(problem: str, sample: list[int]) -> None:
    library, spec, optimal = registry.library(problem), problem_of(problem), 0
    for seed in sample:
        instances = kin(problem, seed)
        for source in instances[:2]:
            result = registry.strongest_exact(problem).solve(source, Budget(60.0).start())
            for target in instances if result.plan is not None else ():
                assert result.plan is not None
                for plan in library.carry(result.plan, source, target):
                    assert isinstance(plan, spec.plan_type)
                    evaluation = spec.evaluate(target, plan)  # broken rules are counted, never a crash
                    if evaluation.feasible and source is not target:
                        optimal += evaluation.objective == exact_optimum(problem, target)
    assert optimal
