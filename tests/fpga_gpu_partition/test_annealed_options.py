"""The quick planner: compiled times are the evaluator's, plans never worse than the published ones and far closer."""

import random

import numpy as np
import pytest

from mapgap.catalogue import registry
from mapgap.catalogue.files import load_instance
from mapgap.core import Budget
from mapgap.heuristics.fpga_gpu_partition.search.annealing import Annealing
from mapgap.heuristics.fpga_gpu_partition.search.timing_kernels import State, module_cost
from mapgap.instances.fpga_gpu_partition import LIBRARY
from mapgap.problems.fpga_gpu_partition import OBJECTIVES, PROBLEM
from mapgap.problems.fpga_gpu_partition.evaluate import evaluate
from mapgap.problems.fpga_gpu_partition.lowered.tables import plan_of, tables_of

METHODS = registry.methods(PROBLEM.name)
FAST = METHODS["annealed_options"]
PUBLISHED = ("paper_rule", "paper_rule_folded")
FAMILIES = ("tiny", "realistic", "small", "scaling", "networks")


def objective(instance, method):
    result = METHODS[method].solve(instance, Budget(300.0))
    return None if result.plan is None else evaluate(instance, result.plan).objective


def test_it_is_the_fast_planner_of_the_problem():
    assert registry.fast_planner(PROBLEM.name).name == FAST.name


@pytest.mark.parametrize("family", FAMILIES)
def test_compiled_latency_and_energy_of_a_module_are_those_of_the_evaluator(family):
    for seed in range(3):
        instance = LIBRARY.generate(family, seed)
        tables, rng = tables_of(instance), random.Random(seed)
        layers = len(instance.layers)
        for share in (0.1, 0.5, 1.0):
            chosen = [
                rng.randrange(tables.first[i], tables.first[i + 1]) if rng.random() < share else int(tables.first[i])
                for i in range(layers)
            ]
            plan = plan_of(instance, chosen)
            copied = np.zeros((len(tables.bytes), 2), np.int64)
            state = State(np.array(chosen, np.int64), np.zeros(layers, np.int64), copied, np.zeros(4, np.int64))
            terms = evaluate(instance, plan).terms
            found = [module_cost(tables, state, m) for m in range(len(instance.modules))]
            expected = list(zip(terms["module_latency"], terms["module_energy"], strict=True))
            assert found == expected, (seed, share)


@pytest.mark.in_turn
@pytest.mark.parametrize(("family", "seeds"), [("tiny", 40), ("realistic", 40), ("small", 12)])
def test_never_worse_than_the_published_plans_and_at_most_half_their_gap(family, seeds):
    ours, theirs, compared = 0.0, 0.0, 0
    for seed in range(300, 300 + seeds):
        instance = LIBRARY.generate(family, seed)
        published = [value for name in PUBLISHED if (value := objective(instance, name)) is not None]
        quick, optimum = objective(instance, FAST.name), METHODS["label_setting"].solve(instance, Budget(300.0)).bound
        if published:
            assert optimum <= quick <= min(published), seed
            ours, theirs, compared = ours + quick / optimum - 1, theirs + min(published) / optimum - 1, compared + 1
        elif quick is not None:
            assert optimum <= quick
    assert compared >= 10
    assert ours <= theirs / 2


@pytest.mark.parametrize("objective_name", OBJECTIVES)
@pytest.mark.parametrize("name", ["dhm_mobilenetv2_x0_5_fold4", "dhm_squeezenet_fold1"])
def test_networks_of_the_library_within_a_tenth_of_the_published_gap(name, objective_name):
    instance = PROBLEM.retarget(load_instance(name), objective_name)
    quick, optimum = objective(instance, FAST.name), METHODS["label_setting"].solve(instance, Budget(300.0)).bound
    published = min(objective(instance, each) for each in PUBLISHED)
    assert 0 <= quick - optimum <= (published - optimum) / 10


def test_costs_kept_during_the_walk_are_those_of_its_plan():
    # Every move is measured by differences, and taken back by differences: nothing may drift.
    for family, seed in (("networks", 0), ("small", 3), ("tiny", 12), ("realistic", 4)):
        instance = LIBRARY.generate(family, seed)
        annealing = Annealing(instance)
        annealing.run(seed=1)
        terms = evaluate(instance, plan_of(instance, annealing.state.chosen)).terms
        names = ("latency", "energy", "multipliers", "m20k")
        assert list(annealing.walk.totals) == [terms[name] for name in names]


def test_a_whole_network_with_all_splits_has_a_plan_and_a_close_bound():
    # 155 layers with options of every split: one narrow pass has a plan, and the bound of the prices is close to it.
    instance = LIBRARY.generate("networks", 0)
    assert len(instance.layers) == 155
    result = METHODS["label_setting"].solve(instance, Budget(time_s=1200).start(), widths=(64,))
    value = evaluate(instance, result.plan).objective
    assert result.bound <= value <= 1.05 * result.bound
