"""The portfolio of neuron masking, and methods that are a model and an engine."""

import pytest

from mapgap.catalogue import registry
from mapgap.core import Budget, Status
from mapgap.execution.run import run_method
from mapgap.formulations.neuron_masking.fleet import whole_bound
from mapgap.instances.neuron_masking import LIBRARY
from mapgap.problems.neuron_masking.evaluate import evaluate

METHODS = registry.methods("neuron_masking")


def budget(seconds=60.0):
    return Budget(time_s=seconds).start()


@pytest.mark.parametrize("seed", range(700, 712))
def test_every_exact_method_proves_what_enumeration_finds(seed):
    instance = LIBRARY.generate("tiny", seed)
    truth = METHODS["enumerate"].solve(instance, budget())
    for name in ("portfolio", "lagrangian", "cpsat", "mip"):
        found = METHODS[name].solve(instance, budget())
        assert (found.status, found.bound) == (truth.status, truth.bound), name
    if truth.bound is not None:
        assert whole_bound(instance) >= truth.bound


@pytest.mark.parametrize(("family", "seed"), [("small", 720), ("fleet", 721), ("realistic", 722), ("scaling", 723)])
def test_no_heuristic_is_better(family, seed):
    instance = LIBRARY.generate(family, seed)
    found = METHODS["portfolio"].solve(instance, budget(10.0))
    assert found.bound >= found.claimed
    for method in METHODS.values():
        if method.kind in ("published", "baseline"):
            plan = method.solve(instance, budget()).plan
            if plan is not None:
                assert found.claimed >= evaluate(instance, plan).objective, method.name


def test_the_record_names_who_found_and_who_proved():
    record = run_method(LIBRARY.generate("small", 3), "portfolio", Budget(30.0), isolate=False)
    assert record.status == Status.OPTIMAL
    assert record.found_by in METHODS["portfolio"].members
    assert record.proved_by in METHODS["portfolio"].members
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
