"""Instances solved by hand, and the 50 of the benchmark. What every problem owes besides is in ``mapgap.contract``."""

import json
from fractions import Fraction
from pathlib import Path

import pytest

from gpu_placement import PROBLEM, Instance, Plan, check
from gpu_placement.instances.compact import Compact, expand
from gpu_placement.instances.families import adrs, benchmark
from mapgap.catalogue import registry
from mapgap.catalogue.files import load_instance
from mapgap.contract.seeds import some
from mapgap.core import Budget, InputError

CASES = json.loads((Path(__file__).parents[1] / "certificates.json").read_text())["instances"]


def solved(instance, method):
    return registry.methods("gpu_placement")[method].solve(instance, Budget(60.0).start())


def pressure(instance, method):
    return PROBLEM.evaluate(instance, solved(instance, method).plan).objective


def test_evaluator_divides_demand_by_what_is_free():
    found = PROBLEM.evaluate(load_instance("gpus_by_hand"), Plan(gpus=(0, 0, 1)))
    # 100 * (3 + 1) / (20 - 16) and 100 * 1 / (20 - 4) = 6.25, rounded up.
    assert (found.objective, found.terms["pressure"]) == (100, {"left": 100, "right": 7})
    assert found.feasible


def test_evaluator_lists_every_broken_rule():
    instance = load_instance("gpus_tenants")
    found = PROBLEM.evaluate(instance, Plan(gpus=(0, 0, 0, 0, 3, 1)))
    assert [(v.rule, v.where) for v in found.violations] == [
        ("gpu", "phi_4"),
        ("limit", "gpu1"),  # 3 GB are left of 80 for nearly all demand
        ("apart", "llama_8b"),
        ("together", "adapter"),
    ]
    (full,) = PROBLEM.evaluate(load_instance("gpus_by_hand"), Plan(gpus=(0, 0, 0))).violations
    assert (full.rule, full.amount) == ("memory", 1)
    (short,) = PROBLEM.evaluate(instance, Plan(gpus=(0, 1))).violations
    assert (short.rule, short.amount) == ("models", 4)


@pytest.mark.parametrize("method", ["packing", "cpsat", "mip", "enumerate"])
@pytest.mark.parametrize(
    ("name", "optimum"),
    [
        ("gpus_by_hand", 30),
        # Large beside one of the equal models: 100 * 11 / 8 = 137.5. Alone: 10, and 100 * 20 / 16 = 125 for the others.
        ("gpus_prism_trap", 125),
    ],
)
def test_optimum_by_hand(name, optimum, method):
    assert pressure(load_instance(name), method) == optimum


def test_heuristics_fall_into_their_traps():
    instance = load_instance("gpus_prism_trap")
    assert pressure(instance, "prism") == 138
    assert pressure(instance, "first_fit") == 350  # all on one GPU: 100 * 21 / 6


def test_exact_methods_agree_with_each_other():
    instance = load_instance("gpus_tenants")
    assert len({pressure(instance, method) for method in ("packing", "cpsat", "mip", "enumerate")}) == 1


def test_compact_form_rounds_demands_up_and_names_what_is_wrong():
    fields = {"name": "x", "gpus": 2, "models": {"a": {"size": 7, "rate": 1, "slo": 11}}}
    assert expand(Compact(**fields)).demands == (230,)  # 2520 / 11 = 229.09
    with pytest.raises(InputError) as error:
        expand(Compact(**fields, apart=(("a", "aa"),)))
    assert error.value.problems == ["apart[0][1]: expected a model, found 'aa'; did you mean 'a'?"]


def test_data_of_another_shape_are_refused_by_place():
    fields = {"name": "x", "gpus": ("g",), "memory": 8, "models": ("a", "b"), "sizes": (1, 2)}
    with pytest.raises(ValueError, match=r"demands: expected 2 values, one per model, found 1"):
        Instance(**fields, demands=(1,))
    with pytest.raises(ValueError, match=r"apart\[0\]: expected the numbers of two models"):
        Instance(**fields, demands=(1, 1), apart=((1, 1),))


def test_an_instance_without_a_plan_says_why():
    lost = Instance(name="x", gpus=("g",), memory=8, models=("a",), sizes=(8,), demands=(1,))
    assert PROBLEM.diagnose(lost) == ["a: its 8 GB leave nothing free of 8 GB"]
    assert solved(lost, "area_bound").status == "INFEASIBLE"
    assert solved(lost, "packing").status == "INFEASIBLE"


# The benchmark


def test_the_family_is_the_benchmark():
    """As SkyDiscover 59643ef8 makes it with ``numpy.random.seed(42)``: its first instance has 8 GPUs and 16 models."""
    assert [(case["gpus"], [tuple(each) for each in case["models"]]) for case in CASES] == benchmark()
    assert (benchmark()[0][0], benchmark()[0][1][0]) == (8, (24, 8, 9))
    assert {len(models) for _, models in benchmark()} == {10, 12, 14, 16, 18}
    assert adrs(3).demands == tuple(2520 * rate // slo for _, rate, slo in benchmark()[3][1])


def test_greedy_has_the_score_that_upstream_prints():
    values = [check.value(*case, list(solved(adrs(k), "prism").plan.gpus)) for k, case in enumerate(benchmark())]
    assert round(float(check.score(values)), 4) == 21.8916


def test_the_largest_possible_score():
    top = check.score([Fraction(case["value"]) for case in CASES])
    assert round(float(top), 4) == 26.2560
    assert all(
        printed > top + Fraction(1, 200) for printed in (Fraction("26.37"), Fraction("30.52"), Fraction("26.27"))
    )


@pytest.mark.parametrize("number", some(12, list(range(50))))
def test_the_optimum_of_the_benchmark_is_checked_without_a_solver(number):
    found = check.checked(CASES[number])
    # The integers of the house round up: 252,000 times the value, to the next whole number.
    assert pressure(adrs(number), "packing") == -(-252_000 * found.numerator // found.denominator)


def test_the_check_refuses_what_is_not_optimal():
    gpus, models = benchmark()[11]
    plan = list(solved(adrs(11), "prism").plan.gpus)
    worse = {"number": 11, "gpus": gpus, "models": models, "plan": plan, "value": str(check.value(gpus, models, plan))}
    with pytest.raises(ValueError, match="there is a plan below"):
        check.checked(worse)
    with pytest.raises(ValueError, match="is worth"):
        check.checked({**CASES[11], "value": str(Fraction(CASES[11]["value"]) / 2)})
    with pytest.raises(ValueError, match="expected a GPU for every model"):
        check.checked({**CASES[11], "plan": [gpus] * len(models)})


@pytest.mark.parametrize(("weights", "capacity", "bins"), [([5, 5, 5], 10, 2), ([6, 5, 5], 10, 2), ([6, 6, 6], 10, 3)])
def test_fewest_bins_by_hand(weights, capacity, bins):
    assert check.fewest_bins(weights, capacity) == bins
