"""Explanations against the evaluator, brute force and instances solved by hand."""

import json
import random
from itertools import pairwise

import pytest
from cli_support import inside

from mapgap.catalogue import registry
from mapgap.catalogue.files import load_instance, load_plan
from mapgap.contract.seeds import some
from mapgap.core import Budget, Exchange, Explainer, InputError
from mapgap.evidence.explain import explain, relink
from mapgap.evidence.ledger import Ledger
from mapgap.execution.run import run_method
from mapgap.problems.suboperation_mapping.evaluate import predecessors
from mapgap.problems.suboperation_mapping.explain import chain
from mapgap.problems.suboperation_mapping.instance import parse_operation

PROBLEMS = [
    "fpga_gpu_partition",
    "hybrid_pipeline",
    "layer_flow",
    "multi_model_splitting",
    "neuron_masking",
    "suboperation_mapping",
]


def test_every_problem_of_the_house_explains_its_plans():
    assert sorted(registry.house()) == PROBLEMS
    assert all(registry.problems()[name].explain is not None for name in PROBLEMS)


def feasible_plans(problem, family="tiny", seeds=range(6), tries=40):
    """Instances with random plans that keep the rules."""
    spec, library = registry.problems()[problem], registry.library(problem)
    for seed in seeds:
        instance, rng = library.generate(family, seed), random.Random(seed)
        plans = [library.random_plan(instance, rng) for _ in range(tries)]
        yield instance, [plan for plan in plans if spec.evaluate(instance, plan).feasible]


def optimum(instance):
    """By listing all plans."""
    record = run_method(instance, "enumerate", Budget(300), isolate=False)
    assert record.certificate == "enumerated", record.reason
    return record.objective


@pytest.mark.parametrize("problem", PROBLEMS)
def test_the_way_between_two_plans_ends_at_the_other_and_adds_up(problem):
    """Gains over steps that keep the rules add up to the difference; ``alone`` is what the evaluator says."""
    spec = registry.problems()[problem]
    sign = 1 if spec.sense == "min" else -1
    pairs = 0
    for instance, plans in feasible_plans(problem, "small" if problem == "neuron_masking" else "tiny"):
        for plan, other in pairwise(plans[:5]):
            steps = relink(spec, spec.explain, instance, plan, other)
            first, last = (spec.evaluate(instance, each).objective for each in (plan, other))
            exchanges = {each.label: each for each in spec.explain.exchanges(instance, plan, other)}
            if not steps:
                assert first == last
                continue
            pairs += 1
            assert steps[-1].value == last
            assert sum(step.gain for step in steps if step.gain is not None) == sign * (first - last)
            assert sorted(step.label for step in steps) == sorted(exchanges)
            for step in steps if len(steps) > 1 else ():
                alone = spec.evaluate(instance, exchanges[step.label].apply(plan))
                assert step.alone == (alone.objective if alone.feasible else None)
    assert pairs > 3


@pytest.mark.in_turn
@pytest.mark.parametrize("problem", some(2, PROBLEMS))
def test_relaxations_bring_what_brute_force_says(problem):
    """The interval holds the difference of the two optima."""
    spec, library = registry.problems()[problem], registry.library(problem)
    sign = 1 if spec.sense == "min" else -1
    checked = 0
    for seed in range(20):
        instance = library.generate("tiny", seed)
        base = run_method(instance, "enumerate", Budget(200), isolate=False)
        if base.plan is None or base.certificate != "enumerated":
            continue
        plan = spec.plan_type.model_validate_json(json.dumps(base.plan))
        found = explain(instance, plan=plan, source="enumerate", budget=Budget(10))
        assert (found.value, found.optimum) == (base.objective, base.objective)
        cases = {case.label: case.instance for case in spec.explain.relaxations(instance)}
        assert [each.label for each in found.relaxed] == list(cases)
        for each in found.relaxed:
            record = run_method(cases[each.label], "enumerate", Budget(5), isolate=False)
            if record.certificate == "enumerated" and record.objective is not None:
                gain = sign * (base.objective - record.objective)
                assert each.low is not None
                assert each.high is not None
                assert each.low <= gain <= each.high, (instance.name, each)
                checked += 1
        if checked > 4:
            break
    assert checked > 3


def test_a_critical_chain_has_no_pause_and_every_link_waits_for_the_one_before():
    for instance, plans in feasible_plans("suboperation_mapping"):
        evaluate = registry.problems()["suboperation_mapping"].evaluate
        for plan in plans[:5]:
            steps = chain(instance, plan)
            assert steps[0][2] == 0
            assert steps[-1][3] == evaluate(instance, plan).objective
            order = [[parse_operation(instance, name) for name in names] for names in plan.order]
            for (before, _, _, end, _), (after, _, start, _, _) in pairwise(steps):
                assert start == end
                follows = any((before, after) in pairwise(names) for names in order)
                assert follows or before in [p for p, _ in predecessors(instance, plan.ratio, after)]


def test_a_bottleneck_names_all_tasks_of_the_longest_load():
    """Times of the rows add up to the cycle, to the rounding of four digits."""
    instance = load_instance("synergy_w4_distributed")
    plan = load_plan(Ledger.load().plan_path(instance.name), instance.problem)
    told = registry.problems()[instance.problem].explain.binding(instance, plan)
    assert sum(float(row[3].removesuffix(" %")) for row in told.table.rows) == pytest.approx(100, abs=0.2)


def test_two_decisions_that_depend_on_each_other_are_told_in_turn():
    """By hand: f = 10 at first; x alone 14, y alone 12, both 3. So y goes first (12), then x (3)."""
    values = {(0, 0): 10, (1, 0): 14, (0, 1): 12, (1, 1): 3}

    class Plan(tuple):
        __slots__ = ()

    class Evaluation:
        def __init__(self, plan):
            self.objective, self.violations, self.feasible = values[plan], (), True

    told = Explainer(
        binding=lambda instance, plan: None,
        relaxations=lambda instance: [],
        exchanges=lambda instance, plan, other: [
            Exchange("x", lambda p: Plan((1, p[1]))),
            Exchange("y", lambda p: Plan((p[0], 1))),
        ],
    )

    class Problem:
        sense = "min"

        @staticmethod
        def evaluate(instance, plan):
            return Evaluation(plan)

    steps = relink(Problem, told, None, Plan((0, 0)), Plan((1, 1)))
    assert [(s.label, s.alone, s.value, s.gain) for s in steps] == [("y", 12, 12, -2), ("x", 14, 3, 9)]


@pytest.mark.in_turn
def test_the_command_says_it_in_text_as_json_and_as_a_picture(tmp_path):
    name = "synergy_fig11a_2devices"
    said = inside("explain", name, "--no-relax", "-o", str(tmp_path / "why.svg"))
    assert said.returncode == 0
    assert "what the plan's value is made of" in said.stdout
    assert (tmp_path / "why.svg").read_text().count("<svg") == 1
    said = inside("explain", name, "--no-relax", "--json", "--method", "synergy")
    data = json.loads(said.stdout)
    assert (said.returncode, data["instance"], data["method"], data["relaxations"]) == (0, name, "synergy", [])
    (tmp_path / "plan.json").write_text(json.dumps(data["best_plan"]))
    said = inside("explain", name, "--no-relax", "--json", "--plan", str(tmp_path / "plan.json"))
    assert said.returncode == 0
    assert json.loads(said.stdout)["steps"] == []


def test_a_plan_that_breaks_a_rule_is_refused_with_the_rule(tmp_path):
    instance = load_instance("dhm_vgg16_fold4")
    spec = registry.problems()[instance.problem]
    plan = spec.plan_type(options=tuple(layer.options[-1].name for layer in instance.layers))
    assert not spec.evaluate(instance, plan).feasible  # the last option of every layer is the largest on the fabric
    with pytest.raises(
        InputError, match=r"expected a plan that keeps the rules of dhm_vgg16_fold4, found: multipliers"
    ):
        explain(instance, plan=plan, source="plan.json", budget=Budget(1))
