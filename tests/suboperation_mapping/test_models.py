"""Exact models of sub-operation mapping against brute force and against the evaluator.

``MAPGAP_CROSSCHECK=1000 pytest tests/test_formulations_models.py`` cross-checks that many instances.
"""

import os

import numpy as np
import pytest

from mapgap.core import Budget, Status
from mapgap.formulations.suboperation_mapping import cpsat, enumerate, mip
from mapgap.formulations.suboperation_mapping._ratios import dram_binds, horizon, partitions
from mapgap.instances.suboperation_mapping import LIBRARY
from mapgap.problems.suboperation_mapping import PROBLEM
from mapgap.problems.suboperation_mapping.lowered import lower
from mapgap.solvers.cpsat import solve

SEEDS = int(os.environ.get("MAPGAP_CROSSCHECK", "80"))
BINDING = [
    s
    for s in range(60)
    if (i := LIBRARY.generate("tiny", s))
    and not PROBLEM.diagnose(i)
    and dram_binds(lower(i, next(partitions(i.batch, len(i.accelerators)))))
]


def tiny(seed):
    return LIBRARY.generate("tiny", seed)


def budget():
    return Budget(time_s=60).start()


@pytest.mark.parametrize("seed", range(SEEDS))
def test_models_agree_with_brute_force(seed):
    """Same status, objective and bound from enumeration, CP-SAT and MIP; every plan passes the evaluator."""
    instance = tiny(seed)
    truth = enumerate.run(instance, budget())
    assert truth.enumerated or truth.reason
    for method in (cpsat.run, mip.run):
        result = method(instance, budget())
        assert (result.status, result.claimed, result.bound) == (truth.status, truth.claimed, truth.bound)
        if result.plan is None:
            assert "DRAM" in result.reason
        else:
            checked = PROBLEM.evaluate(instance, result.plan)
            assert checked.feasible
            assert checked.objective == truth.claimed


@pytest.mark.parametrize("seed", range(12))
def test_cbc_agrees_with_brute_force(seed):
    instance = tiny(seed)
    result, truth = mip.run_cbc(instance, budget()), enumerate.run(instance, budget())
    assert (result.status, result.claimed, result.bound) == (truth.status, truth.claimed, truth.bound)


def random_mapping(lowered, rng):
    """A random location and a random sequence that respects the precedences."""
    done, sequence = set(), []
    while len(sequence) < lowered.n:
        ready = [
            o
            for o in range(lowered.n)
            if o not in done and {int(p) for p in lowered.pred[lowered.pred_ptr[o] : lowered.pred_ptr[o + 1]]} <= done
        ]
        sequence.append(ready[rng.integers(len(ready))])
        done.add(sequence[-1])
    return rng.integers(0, lowered.accelerators, lowered.n), np.array(sequence, np.int64)


@pytest.mark.parametrize("seed", [*range(15), *BINDING[:10]])
def test_fixed_plan_is_feasible_in_the_model_iff_it_is(seed):
    """All starts and locations fixed to a random plan: the strict model accepts exactly what the evaluator accepts."""
    instance, rng = tiny(seed), np.random.default_rng(seed)
    for ratio in partitions(instance.batch, len(instance.accelerators)):
        lowered = lower(instance, ratio)
        location, sequence = random_mapping(lowered, rng)
        checked = PROBLEM.evaluate(instance, lowered.plan(location, sequence))
        start, end = lowered.timetable(location, sequence)
        model = cpsat.Model(lowered, strict=True, symmetry=False)
        for o in range(lowered.n):
            model.model.add(model.start[o] == int(start[o]))
            model.model.add(model.x[o][int(location[o])] == 1)
        outcome = solve(model.model, budget())
        assert outcome.solved == checked.feasible
        if outcome.solved:
            assert outcome.objective == checked.objective == int(end.max()) <= horizon(lowered)


@pytest.mark.parametrize("seed", BINDING[:8])
def test_dram_flips_feasibility(seed):
    """With one unit less than the smallest sum of weights nothing fits; with all demands there is always a plan."""
    instance = tiny(seed)
    roomy = tuple(a.model_copy(update={"memory": 10**6}) for a in instance.accelerators)
    assert cpsat.run(instance.model_copy(update={"accelerators": roomy}), budget()).status is Status.OPTIMAL
    none = tuple(a.model_copy(update={"memory": 0}) for a in instance.accelerators)
    for method in (cpsat.run, mip.run):
        assert method(instance.model_copy(update={"accelerators": none}), budget()).status is Status.INFEASIBLE


@pytest.mark.parametrize("seed", range(0, 40, 4))
def test_fixed_mapping_is_ordered_optimally(seed):
    """The ordering model against all sequences of one mapping."""
    instance, rng = tiny(seed), np.random.default_rng(seed)
    lowered = lower(instance, next(partitions(instance.batch, len(instance.accelerators))))
    location, hint = random_mapping(lowered, rng)
    values = []
    for sequence in enumerate.sequences(lowered):
        start, end = lowered.timetable(location, sequence)
        if lowered.memory_excess(location, start, end) == 0:
            values.append(int(end.max()))
    sequence, makespan, bound = cpsat.order_fixed_mapping(lowered, location, budget(), hint_sequence=hint)
    assert makespan == min(values, default=None)
    if makespan is not None:
        assert bound == makespan == lowered.makespan(location, sequence)


def test_partitions_are_counted_as_in_the_specification():
    counts = [len(list(partitions(b, n))) for b, n in ((64, 2), (16, 3), (64, 3))]
    assert counts == [33, 30, 374]


def test_one_ratio_proves_nothing_of_the_instance():
    instance = tiny(0)
    ratio = ",".join(map(str, next(partitions(instance.batch, len(instance.accelerators)))))
    result = cpsat.run(instance, budget(), ratio=ratio)
    assert result.bound is None
    assert result.status is not Status.OPTIMAL


def test_large_instances_are_not_enumerated():
    result = enumerate.run(LIBRARY.generate("small", 0), budget())
    assert result.status is Status.UNKNOWN
    assert "enumerate" in result.reason or "tried" in result.reason
