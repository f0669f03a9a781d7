"""The quick planner: compiled times are the evaluator's, plans never worse than the published ones and far closer."""

import random

import numpy as np
import pytest

from mapgap.catalogue import registry
from mapgap.core import Budget
from mapgap.heuristics.fpga_gpu_partition.search import annealing as search
from mapgap.heuristics.fpga_gpu_partition.search.annealing import Annealing
from mapgap.heuristics.fpga_gpu_partition.search.annealing_kernels import anneal
from mapgap.heuristics.fpga_gpu_partition.search.timing_kernels import State, module_cost
from mapgap.instances.fpga_gpu_partition import LIBRARY
from mapgap.problems.fpga_gpu_partition import PROBLEM
from mapgap.problems.fpga_gpu_partition.evaluate import evaluate
from mapgap.problems.fpga_gpu_partition.lowered.tables import plan_of, tables_of

METHODS = registry.methods(PROBLEM.name)
FAST = METHODS["annealed_options"]
PUBLISHED = ("paper_rule", "paper_rule_folded")
FAMILIES = ("tiny", "realistic", "small", "scaling", "networks")


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


def test_costs_kept_during_the_walk_are_those_of_its_plan():
    # Every move is measured by differences, and taken back by differences: nothing may drift.
    for family, seed in (("networks", 0), ("small", 3), ("tiny", 12), ("realistic", 4)):
        instance = LIBRARY.generate(family, seed)
        annealing = Annealing(instance)
        annealing.run(seed=1)
        terms = evaluate(instance, plan_of(instance, annealing.state.chosen)).terms
        names = ("latency", "energy", "multipliers", "m20k")
        assert list(annealing.walk.totals) == [terms[name] for name in names]


def test_a_walk_is_the_same_in_pieces_and_ends_with_its_budget(monkeypatch):
    instance, pieces = LIBRARY.generate("networks", 0), []
    parts, whole, none = (Annealing(instance) for _ in range(3))
    none.run(seed=1, budget=Budget(1e-9).start())
    assert none.walk.clock.tolist() == [0, 0]
    parts.run(seed=1, effort=3, budget=Budget(1000.0).start())
    monkeypatch.setattr(search, "anneal", lambda *given: pieces.append(anneal(*given[:-1], given[-2])))
    whole.run(seed=1, effort=3)
    assert len(pieces) == 1
    assert parts.walk.clock.tolist() == whole.walk.clock.tolist()
    assert (parts.value, parts.state.chosen.tolist()) == (whole.value, whole.state.chosen.tolist())


@pytest.mark.in_turn
def test_a_whole_network_with_all_splits_has_a_plan_and_a_close_bound():
    # 155 layers with options of every split: one narrow pass has a plan, and the bound of the prices is close to it.
    instance = LIBRARY.generate("networks", 0)
    assert len(instance.layers) == 155
    result = METHODS["label_setting"].solve(instance, Budget(time_s=1200).start(), widths=(64,))
    value = evaluate(instance, result.plan).objective
    assert result.bound <= value <= 1.05 * result.bound
