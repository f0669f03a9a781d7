"""What every method of every problem keeps on tiny instances, with brute force as the judge."""

from __future__ import annotations

import pytest

from mapgap.catalogue import registry
from mapgap.contract.known import HEURISTIC_S, TIME_S, optimum, problem_of, sign, solved, tiny
from mapgap.contract.seeds import samples, seeds, some
from mapgap.core import Budget, Status

PROBLEMS = list(registry.problems())
DAILY, NIGHTLY = 6, 80
CASES = [(problem, method) for problem in PROBLEMS for method in registry.methods(problem)]


@pytest.mark.parametrize("problem", PROBLEMS)
def test_problem_is_complete(problem: str) -> None:
    # Tiny instances and brute force are what everything else is compared with.
    assert "tiny" in registry.library(problem).families
    assert "enumerate" in registry.methods(problem)
    assert registry.methods(problem)["enumerate"].kind == "exact"


@pytest.mark.parametrize(("problem", "name"), CASES)
def test_method_states_its_source(problem: str, name: str) -> None:
    method = registry.methods(problem)[name]
    assert method.reference
    assert method.summary
    assert name == name.lower()
    assert bool(method.engines) == (method.kind == "exact"), "an exact method says on whose word its proofs rest"


@pytest.mark.parametrize("problem", PROBLEMS)
def test_tiny_instances_include_infeasible_and_feasible_ones(problem: str) -> None:
    # Without both, the contracts below would not test what they claim.
    expected = {False} if problem_of(problem).always_feasible else {True, False}
    found: set[bool] = set()
    for seed in range(40):
        found.add(optimum(problem, seed) is None)
        if len(found) == 2 or (len(expected) == 1 and seed >= DAILY):
            break
    assert found == expected


@pytest.mark.parametrize("seed", seeds(DAILY, NIGHTLY))
@pytest.mark.parametrize(("problem", "name"), CASES)
def test_plan_is_feasible_and_bound_is_valid(problem: str, name: str, seed: int) -> None:
    method, best = registry.methods(problem)[name], optimum(problem, seed)
    result = solved(problem, name, seed, TIME_S if method.kind == "exact" else HEURISTIC_S)
    value = None
    if result.plan is not None:
        evaluation = problem_of(problem).evaluate(tiny(problem, seed), result.plan)
        assert evaluation.feasible, evaluation.violations
        value = evaluation.objective
        assert value is not None
        assert best is not None, "a plan for an instance that brute force finds infeasible"
        assert sign(problem) * value >= sign(problem) * best, "better than the enumerated optimum"
        if result.claimed is not None:
            assert result.claimed == value
    if result.bound is not None and best is not None:
        assert sign(problem) * result.bound <= sign(problem) * best, "a bound beyond the optimum"
    if result.status is Status.OPTIMAL:
        assert value == best == result.bound
    if result.status is Status.INFEASIBLE:
        assert best is None
        assert result.reason
    if result.plan is None:
        assert result.status in (Status.INFEASIBLE, Status.UNKNOWN)
    if method.kind == "exact":
        assert result.status is (Status.INFEASIBLE if best is None else Status.OPTIMAL), "tiny instances must be solved"


@pytest.mark.parametrize(("problem", "name"), some(15, CASES))
def test_same_seed_same_plan(problem: str, name: str) -> None:
    method = registry.methods(problem)[name]
    for seed in range(2):
        again = method.solve(tiny(problem, seed), Budget(TIME_S, seed=seed).start())
        assert again.plan == solved(problem, name, seed).plan


@pytest.mark.parametrize("sample", samples(DAILY, NIGHTLY))
@pytest.mark.parametrize("problem", PROBLEMS)
def test_round_trips_keep_content_and_hash(problem: str, sample: list[int]) -> None:
    spec = problem_of(problem)
    for seed in sample:
        instance = tiny(problem, seed)
        again = spec.instance_type.model_validate_json(instance.model_dump_json(by_alias=True))
        assert again == instance
        assert again.content_hash == instance.content_hash
        renamed = instance.model_copy(update={"name": "other", "source": "elsewhere", "tags": ("x",)})
        assert renamed.content_hash == instance.content_hash
        plan = solved(problem, "enumerate", seed).plan
        if plan is not None:
            assert spec.plan_type.model_validate_json(plan.model_dump_json()) == plan


@pytest.mark.parametrize("problem", PROBLEMS)
def test_reasons_are_given_only_where_there_is_no_plan(problem: str) -> None:
    diagnose = problem_of(problem).diagnose
    if diagnose is None:
        pytest.skip("the problem declares no diagnosis")
    for seed in range(40):
        reasons = diagnose(tiny(problem, seed))
        assert not reasons or optimum(problem, seed) is None, (seed, reasons)


@pytest.mark.parametrize("sample", samples(DAILY, NIGHTLY))
@pytest.mark.parametrize("problem", PROBLEMS)
def test_charts_show_time_that_runs_forward(problem: str, sample: list[int]) -> None:
    gantt = problem_of(problem).gantt
    if gantt is None:
        pytest.skip("the problem declares no chart")
    for seed in sample:
        plan = solved(problem, "enumerate", seed).plan
        for lane in gantt(tiny(problem, seed), plan) if plan is not None else ():
            for bar in lane.bars:
                assert 0 <= bar.start <= bar.start + bar.transfer <= bar.end * (1 + 1e-9), (seed, lane.name, bar)
