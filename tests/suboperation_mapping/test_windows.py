"""Neighbourhoods: a plan only gets better, and one neighbourhood of all operations ends at the optimum of its ratio."""

import pytest
from experiments import build

from mapgap.contract.seeds import seeds
from mapgap.core import Budget, Status
from mapgap.formulations.suboperation_mapping import enumerate as enumeration
from mapgap.formulations.suboperation_mapping.windows import Windows, neighbourhood
from mapgap.instances.suboperation_mapping import LIBRARY
from mapgap.problems.suboperation_mapping import PROBLEM
from mapgap.problems.suboperation_mapping.lowered.arrays import lower
from mapgap.problems.suboperation_mapping.lowered.mapped import timed, well_balanced
from mapgap.solvers.model import prove


def started(instance, ratio):
    lowered = lower(instance, ratio)
    return timed(lowered, well_balanced(lowered), lowered.topological)


@pytest.mark.parametrize("seed", seeds(4, 20))
def test_a_neighbourhood_of_all_operations_ends_at_the_optimum_of_the_ratio(seed):
    """Tiny instances have at most as many operations as the first neighbourhood; brute force knows the optimum."""
    instance = LIBRARY.generate("tiny", seed)
    brute = enumeration.run(instance, Budget(300.0).start())
    if brute.status is not Status.OPTIMAL:
        pytest.skip("no plan fits the DRAM")
    start = started(instance, brute.plan.ratio)
    if start is None:
        pytest.skip("the simple start does not fit the DRAM")
    search = Windows(start, seed)
    found = search.improve(30.0)
    optimum = PROBLEM.evaluate(instance, brute.plan).objective  # of all ratios, and attained in this one
    assert search.over
    assert found.makespan == optimum
    assert PROBLEM.evaluate(instance, found.plan).objective == found.makespan


def test_what_is_not_free_stays():
    """Real layers, 98 operations: accelerators of all others are kept, and their order on each accelerator."""
    start = started(build(1, "tinyyolov3", 3.0), (32, 32))
    free = set(range(20, 36))
    result = prove(neighbourhood(start, free), Budget(5.0).start(), announce=False)
    assert result.plan is not None
    location, sequence = start.lowered.mapping(result.plan)
    others = [o for o in range(start.lowered.n) if o not in free]
    assert (location[others] == start.location[others]).all()
    for a in range(start.lowered.accelerators):
        before = [o for o in start.sequence.tolist() if o not in free and start.location[o] == a]
        after = [o for o in sequence.tolist() if o not in free and location[o] == a]
        assert before == after
    found = timed(start.lowered, location, sequence)
    assert found.makespan < start.makespan


@pytest.mark.in_turn
def test_a_plan_only_gets_better():
    """AlexNet on cluster 1, 46 operations: neighbourhoods of 16 take a quarter off the well-balanced scheme."""
    start = started(build(1, "alexnet", 3.0), (32, 32))
    search, seen = Windows(start, 1), [start.makespan]
    for _ in range(12):
        seen.append(search.improve(30.0, most=1).makespan)
    assert seen == sorted(seen, reverse=True)
    assert seen[-1] < 0.75 * start.makespan
