"""Contracts that every method of every problem keeps. They run over the registry, so nothing can be forgotten."""

import os
from functools import cache

import pytest

from mapgap.catalogue import registry
from mapgap.core import Budget, Status

SEEDS = range(int(os.environ.get("MAPGAP_CONTRACT_SEEDS", "10")))
CASES = [(problem, method) for problem in registry.problems() for method in registry.methods(problem)]


@cache
def tiny(problem, seed):
    return registry.library(problem).generate("tiny", seed)


@cache
def solved(problem, method, seed):
    return registry.methods(problem)[method].solve(tiny(problem, seed), Budget(time_s=30.0, seed=seed))


@cache
def optimum(problem, seed):
    """Brute force: ``None`` when no plan is feasible."""
    result = solved(problem, "enumerate", seed)
    assert result.enumerated, f"{problem} tiny seed {seed} is too large to enumerate"
    if result.plan is None:
        assert result.status is Status.INFEASIBLE
        return None
    return registry.problems()[problem].evaluate(tiny(problem, seed), result.plan).objective


@pytest.mark.parametrize("problem", registry.problems())
def test_problem_is_complete(problem):
    kinds = {m.kind for m in registry.methods(problem).values()}
    assert {"exact", "published", "baseline"} <= kinds
    assert "tiny" in registry.library(problem).families
    assert {"enumerate", "cpsat", "mip"} <= set(registry.methods(problem))


@pytest.mark.parametrize(("problem", "name"), CASES)
def test_method_states_its_source(problem, name):
    method = registry.methods(problem)[name]
    assert method.reference
    assert method.summary
    assert name == name.lower()


@pytest.mark.parametrize("problem", registry.problems())
def test_tiny_instances_include_infeasible_and_feasible_ones(problem):
    # Without both, the contracts below would not test what they claim.
    found = {optimum(problem, seed) is None for seed in range(40)}
    assert found == {True, False}


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("problem", "name"), CASES)
def test_plan_is_feasible_and_bound_is_valid(problem, name, seed):
    method, best = registry.methods(problem)[name], optimum(problem, seed)
    spec = registry.problems()[problem]
    sign = -1 if spec.sense == "max" else 1
    result = solved(problem, name, seed)
    value = None
    if result.plan is not None:
        evaluation = spec.evaluate(tiny(problem, seed), result.plan)
        assert evaluation.feasible, evaluation.violations
        value = evaluation.objective
        assert best is not None, "a plan for an instance that brute force finds infeasible"
        assert sign * value >= sign * best, "better than the enumerated optimum"
        if result.claimed is not None:
            assert result.claimed == value
    if result.bound is not None and best is not None:
        assert sign * result.bound <= sign * best, "a bound beyond the optimum"
    if result.status is Status.OPTIMAL:
        assert value == best == result.bound
    if result.status is Status.INFEASIBLE:
        assert best is None
        assert result.reason
    if result.plan is None:
        assert result.status in (Status.INFEASIBLE, Status.UNKNOWN)
    if method.kind == "exact":
        assert result.status is (Status.INFEASIBLE if best is None else Status.OPTIMAL), "tiny instances must be solved"


@pytest.mark.parametrize(("problem", "name"), CASES)
def test_same_seed_same_plan(problem, name):
    method = registry.methods(problem)[name]
    for seed in range(2):
        again = method.solve(tiny(problem, seed), Budget(time_s=30.0, seed=seed))
        assert again.plan == solved(problem, name, seed).plan


@pytest.mark.parametrize("problem", registry.problems())
def test_round_trips_keep_content_and_hash(problem):
    spec = registry.problems()[problem]
    for seed in SEEDS:
        instance = tiny(problem, seed)
        again = spec.instance_type.model_validate_json(instance.model_dump_json(by_alias=True))
        assert again == instance
        assert again.content_hash == instance.content_hash
        renamed = instance.model_copy(update={"name": "other", "source": "elsewhere", "tags": ("x",)})
        assert renamed.content_hash == instance.content_hash
        plan = solved(problem, "enumerate", seed).plan
        if plan is not None:
            assert spec.plan_type.model_validate_json(plan.model_dump_json()) == plan
