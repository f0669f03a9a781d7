"""The portfolio of hybrid pipelines on large clusters, and plans to start from."""

import pytest

from mapgap.catalogue import registry
from mapgap.core import Budget, Status
from mapgap.execution.run import run_method
from mapgap.formulations.hybrid_pipeline.label_dp import cheap
from mapgap.instances.hybrid_pipeline import LIBRARY
from mapgap.problems.hybrid_pipeline.evaluate import evaluate

METHODS = registry.methods("hybrid_pipeline")


def budget(seconds=300.0):
    return Budget(time_s=seconds).start()


@pytest.mark.nightly
def test_on_a_large_cluster_the_complete_planner_comes_first_and_the_record_names_it():
    instance = LIBRARY.generate("distinct", 1)
    assert not cheap(instance)
    record = run_method(instance, "portfolio", Budget(10.0), isolate=False)
    assert record.found_by in METHODS["portfolio"].members
    assert record.proved_by in METHODS["portfolio"].members
    used = record.notes["used_s"]
    assert list(used) == list(METHODS["portfolio"].members)
    assert used["order_search"] > 0.0
    assert record.status in (Status.OPTIMAL, Status.FEASIBLE)


@pytest.mark.in_turn
def test_a_start_is_never_lost():
    # One stage on all devices is far from the optimum; whoever has no time to look further keeps it.
    instance = LIBRARY.generate("distinct", 1)
    start = METHODS["data_parallel"].solve(instance, budget()).plan
    for name in ("label_dp", "cpsat", "mip", "mip_cbc"):
        result = METHODS[name].solve(instance, budget(0.0), start=start)
        assert evaluate(instance, result.plan).objective <= evaluate(instance, start).objective, name
