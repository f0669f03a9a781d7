"""Relaxations of optimistic classes: no bound is above an optimum, sums in front of cuts lose no plan."""

from itertools import pairwise

import pytest

from mapgap.catalogue.registry import methods
from mapgap.core import Budget, Status, Stop
from mapgap.formulations.hybrid_pipeline import relaxation
from mapgap.formulations.hybrid_pipeline.label.first_plan import OPEN
from mapgap.formulations.hybrid_pipeline.label.order_search import OrderSearch, fluid_bound
from mapgap.formulations.hybrid_pipeline.label.search import CompiledSearch
from mapgap.formulations.hybrid_pipeline.label_python import Interpreted
from mapgap.formulations.hybrid_pipeline.params import LabelSearch
from mapgap.instances.hybrid_pipeline import LIBRARY
from mapgap.instances.hybrid_pipeline.families import clusters
from mapgap.problems.hybrid_pipeline.evaluate import evaluate
from mapgap.problems.hybrid_pipeline.lowered.arrays import lower
from mapgap.problems.hybrid_pipeline.lowered.groups import interchangeable

METHODS = methods("hybrid_pipeline")
FAMILIES = ("tiny", "realistic", "small", "executions", "steady")


def one_size(family, seed):
    instance = LIBRARY.generate(family, seed)
    return instance.with_micro_batch(instance.micro_batch_sizes[-1])


def several_classes(seed):
    """Six devices of three kinds on 12 layers, times of 10^3 to 10^6 ticks, links that differ for odd seeds."""
    return clusters(seed, 12, (1, 2, 3), uneven=seed % 2 == 1).changed(all_devices=seed % 4 < 2)


def optimum(instance):
    """By the search in Python, which knows neither relaxations nor sums of several stages; ``None`` without a plan."""
    low = lower(instance)
    value, path, _ = Interpreted(low, instance.all_devices)(list(range(low.layers + 1)), OPEN)
    return value if path else None


def cuts(low):
    return list(range(low.layers + 1))


@pytest.mark.in_turn
@pytest.mark.parametrize("family", [*FAMILIES, "several_classes"])
def test_no_relaxation_is_above_the_optimum_and_no_sum_in_front_loses_a_plan(family):
    params = LabelSearch(growth=1)  # every partition, each with the sums of the one before
    seen, exact, coarse = 0, 0, 0
    for seed in range(2 if family == "several_classes" else 25):
        instance = several_classes(seed) if family == "several_classes" else one_size(family, seed)
        best, low = optimum(instance), lower(instance)
        if best is None:
            continue
        upper = best + max(1, best // 10)
        found = relaxation.Refinement(instance, Budget(time_s=1000), params.moves, params)
        while found.left:
            found.step(upper)
            assert found.bound <= best, (seed, found.bounds)
            (moves, search, _), (_, bound) = found.searched[-1], found.bounds[-1]
            alone = CompiledSearch(search.low, instance.all_devices, relaxed=True)
            assert alone(cuts(search.low), upper)[0] == bound, (seed, "the same without sums in front")
            fronts = search.fronts(upper)
            every = CompiledSearch(low, instance.all_devices)
            place = relaxation.merged(low, search.low)
            every.use((fronts[0][place], fronts[1][place]))
            assert every(cuts(low), upper)[0] == best, (seed, moves)
            coarse += bound < best
        seen += 1
        exact += found.bound == best
    assert seen > 1
    assert exact > 0 or family == "several_classes"
    assert coarse > 0 or family == "tiny"


def test_sums_for_plans_below_a_smaller_bound_are_given_back():
    """Where a larger bound has no sums, as for want of memory, a search has none: the old ones leave out its plans."""
    params, instance = LabelSearch(growth=1), several_classes(3)
    low = lower(instance)
    best = CompiledSearch(low, instance.all_devices)(cuts(low), OPEN)[0]
    found = relaxation.Refinement(instance, Budget(time_s=1000), params.moves, params)
    while found.left:
        found.step(best)
    search, kept = (CompiledSearch(low, instance.all_devices) for _ in range(2))
    for each in (search, kept):
        found.lend(each, params.moves, best * 3 // 4)
    assert not kept(cuts(low), best + 1)[1]  # so it matters
    for _, coarse, _ in found.searched:
        coarse.most_stages = 0
    found.lend(search, params.moves, best + 1)
    assert search(cuts(low), best + 1)[0] == best


def test_a_relaxation_has_the_best_of_every_class():
    """Layer by layer the least time, so never more than any member takes for a stage; and the largest memory."""
    instance = one_size("small", 3)
    parts = [list(range(len(instance.devices)))]
    low = relaxation.relaxed(instance, parts)
    single = lower(instance, merge=False)
    assert low.size.tolist() == [len(instance.devices)]
    assert low.room[0] == max(single.room)
    for start in range(low.layers):
        for stop in range(start + 1, low.layers + 1):
            times = single.both[:, stop] - single.both[:, start]
            assert (low.both[0, stop] - low.both[0, start] <= times.min(axis=0)).all()
            if stop == start + 1:
                assert (low.both[0, stop] - low.both[0, start] == times.min(axis=0)).all()


def test_partitions_go_from_one_class_to_all():
    instance = LIBRARY.generate("distinct", 3)
    ladder = relaxation.partitions(instance)
    assert [len(parts) for parts in ladder] == list(range(1, 13))
    for coarse, fine in pairwise(ladder):
        assert all(any(set(part) <= set(whole) for whole in coarse) for part in fine)
    assert sorted(ladder[-1]) == sorted(interchangeable(instance))


@pytest.mark.in_turn
@pytest.mark.parametrize("seed", [3, 5, 6])  # 12 devices, 20, 20 with links that differ
def test_two_or_three_classes_bound_better_than_shared_work(seed):
    """All devices at full efficiency and at once, as the fluid has it, is far from any pipeline."""
    instance = LIBRARY.generate("distinct", seed)
    known = OrderSearch(instance)
    known.first()
    found = relaxation.Refinement(instance, Budget(time_s=1000), LabelSearch.moves)
    fluid = fluid_bound(lower(instance, tuple(range(len(instance.devices)))))
    while found.bound <= 1.1 * fluid and len(found.bounds) < 3:
        found.step(known.value)
    assert 1.1 * fluid < found.bound <= known.value
    order = found.order()
    assert sorted(order) == list(range(len(instance.devices)))


def test_algorithm_2_returns_what_it_has_when_the_time_is_over():
    """Q(L, N, 1) is one stage on all devices; with more time there are more stages, and no plan gets worse."""

    class Looks(Budget):
        """Exhausted after so many looks at it."""

        left = 0

        @property
        def exhausted(self):
            self.left -= 1
            return self.left < 0

    instance = LIBRARY.generate("scaling", 5)
    values, stages = [], []
    for looks in (4, 8, 12, 100):  # of one kind for every number of stages and of places, four each
        budget = Looks()
        budget.left = looks
        result = METHODS["asteroid"].solve(instance, budget)
        if result.plan is None:
            assert (result.status, result.stop) == (Status.UNKNOWN, Stop.TIME)
            assert "time was over" in result.reason
            continue
        values.append(evaluate(instance, result.plan).objective)
        stages.append(len(result.plan.stages))
        assert result.stop is (Stop.DONE if looks == 100 else Stop.TIME)
    assert values == sorted(values, reverse=True)
    assert stages[0] < stages[-1]
    for name in ("asteroid", "asteroid_pareto", "asteroid_inter_stage", "pipedream"):
        result = METHODS[name].solve(instance, Budget(time_s=0.0))
        assert (result.status, result.stop, result.plan) == (Status.UNKNOWN, Stop.TIME, None)
