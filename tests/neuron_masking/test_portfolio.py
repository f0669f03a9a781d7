"""The portfolio of neuron masking, and methods that are a model and an engine."""

import pytest

from mapgap.catalogue import registry
from mapgap.core import Budget
from mapgap.execution.run import run_method
from mapgap.formulations.neuron_masking.fleet import whole_bound
from mapgap.instances.neuron_masking import LIBRARY
from mapgap.problems.neuron_masking.evaluate import evaluate

METHODS = registry.methods("neuron_masking")


def budget(seconds=60.0):
    return Budget(time_s=seconds).start()


@pytest.mark.parametrize("seed", range(700, 712))
def test_no_plan_is_worth_more_than_whole_models(seed):
    instance = LIBRARY.generate("tiny", seed)
    truth = METHODS["enumerate"].solve(instance, budget())
    assert truth.bound is None or whole_bound(instance) >= truth.bound


def test_a_model_and_an_engine_are_named_alone():
    alone = run_method(LIBRARY.generate("small", 3), "cpsat", Budget(30.0), isolate=False)
    assert (alone.found_by, alone.proved_by) == ("cpsat", "cpsat")


def test_more_questions_never_end_with_less():
    # Two devices, three cycle times: several singles, so that slices are short at first and grow.
    instance = LIBRARY.generate("fleet", 3)
    start = METHODS["uniform"].solve(instance, budget()).plan
    known, bounds = evaluate(instance, start).objective, []
    for seconds in (0.0, 1.0, 20.0):
        found = METHODS["lagrangian"].solve(instance, budget(seconds), start=start)
        assert found.claimed >= known
        known = found.claimed
        bounds.append(found.bound)
    assert bounds == sorted(bounds, reverse=True)
