"""The chain from Asteroid to the optimum: each restricted optimum against brute force, none better than the next."""

from itertools import combinations, pairwise, permutations

import pytest
from pipelines import pipelines_along

from mapgap.catalogue.files import load_instance
from mapgap.catalogue.registry import methods
from mapgap.contract.seeds import samples
from mapgap.core import Budget, InputError, Status
from mapgap.heuristics.hybrid_pipeline import nested
from mapgap.heuristics.hybrid_pipeline.asteroid import algorithm_2
from mapgap.heuristics.hybrid_pipeline.chain import chain
from mapgap.instances.hybrid_pipeline import LIBRARY
from mapgap.problems.hybrid_pipeline import Device, Stage
from mapgap.problems.hybrid_pipeline.evaluate import best_shares, evaluate, execution_times, migration_ticks, warm_up
from mapgap.problems.hybrid_pipeline.lowered.order import TIES, memory_order, memory_orders

FAMILY = [LIBRARY.generate("small", seed) for seed in range(60)]


def one_size(instance, **changes):
    return instance.with_micro_batch(instance.micro_batch_sizes[-1]).model_copy(update=changes)


def solve(name, instance, **options):
    """Objective of a method's plan, ``None`` without one."""
    result = methods("hybrid_pipeline")[name].solve(instance, Budget(300.0), **options)
    assert result.plan is not None or result.reason
    if result.plan is None:
        return None
    checked = evaluate(instance, result.plan)
    assert checked.feasible
    assert result.claimed in (None, checked.objective)
    return checked.objective


@pytest.mark.parametrize("ties", TIES)
def test_optimum_over_an_order_with_the_shares_of_algorithm_1(ties):
    found = 0
    for seed, family in enumerate(FAMILY):
        instance = one_size(family, replanning=None)
        seen = chain(instance, memory_order(instance, ties))
        values = [evaluate(instance, plan).objective for plan in pipelines_along(seen)]
        assert solve("asteroid_pareto", instance, ties=ties) == min(values, default=None), seed
        found += bool(values)
    assert found > 30


@pytest.mark.parametrize("engine", ["compiled", "python"])
@pytest.mark.parametrize("ties", TIES)
def test_optimum_over_an_order_with_the_shares_of_equation_7(ties, engine):
    """With a failure, too: the evaluator charges the shares of Eq. (7) to every cut and group."""
    failures = 0
    for seed, family in enumerate(FAMILY):
        instance = one_size(family)
        rounds = 1 if instance.replanning is None else instance.replanning.rounds
        values = [
            migration_ticks(instance, plan) + rounds * evaluate(instance, plan).terms["nested_ticks"]
            for plan in pipelines_along(chain(instance, memory_order(instance, ties)))
        ]
        assert solve("label_dp", instance, order=ties, engine=engine) == min(values, default=None), seed
        failures += instance.replanning is not None and bool(values)
    assert failures > 3


@pytest.mark.in_turn
@pytest.mark.parametrize("sample", samples(24, 120))
def test_every_restriction_is_at_least_its_relaxation(sample):
    strict = [0] * 6
    families = [LIBRARY.generate("steady", seed) for seed in sample]
    for family in [*FAMILY[: 2 * len(sample)], *families]:
        free = one_size(family, replanning=None, all_devices=False)
        forced = free.model_copy(update={"all_devices": True})
        along, best = (
            [
                solve("asteroid", free, ties=ties),
                solve("asteroid_pareto", free, ties=ties),
                solve("label_dp", free, order=ties),
            ]
            for ties in ("fastest_first", "best")
        )
        optimum = [solve("label_dp", forced), solve("label_dp", free)]
        pairs = [*pairwise([*along, *best[2:], *optimum]), (along[0], best[0])]
        for restricted, relaxed in pairwise([*best, *optimum]):
            assert restricted is None or relaxed <= restricted
        for k, (restricted, relaxed) in enumerate(pairs):
            assert restricted is None or relaxed <= restricted
            strict[k] += restricted is not None and relaxed < restricted
    assert len(sample) < 120 or min(strict) > 0  # each cause costs something somewhere


@pytest.mark.in_turn
def test_the_best_order_is_the_best_of_all_that_descending_memory_permits():
    """All permutations by descending memory, also those that differ by interchangeable devices only."""
    several = 0
    for family in FAMILY[:30]:
        instance = one_size(family, replanning=None)
        orders = [
            order
            for order in permutations(range(len(instance.devices)))
            if all(instance.device_type(a).memory >= instance.device_type(b).memory for a, b in pairwise(order))
        ]
        several += len(orders) > 1
        along = [chain(instance, order) for order in orders]
        planned = [found.plan for found in map(algorithm_2, along) if found.plan is not None]
        assert solve("asteroid", instance, ties="best") == min(
            (evaluate(instance, plan).objective for plan in planned), default=None
        )
        values = [evaluate(instance, plan).terms["nested_ticks"] for seen in along for plan in pipelines_along(seen)]
        assert solve("label_dp", instance, order="best") == min(values, default=None)
    assert several > 5


def test_how_many_orders_descending_memory_permits():
    # B: 3 NX and 2 TX2 of 8 GB, 5! / (3! 2!); C: 1 NX and 2 TX2, then 3 Nano of 4 GB, 3! / 2!; links that differ tell
    # all six boards apart, and 3! 3! orders remain.
    assert len(memory_orders(load_instance("asteroid_b_resnet50_100mbps"), "best")) == 10
    assert len(memory_orders(load_instance("asteroid_c_resnet50_100mbps"), "best")) == 3
    rates = tuple(tuple(1000 + (a + 1) * (b + 1) for b in range(6)) for a in range(6))
    uneven = load_instance("asteroid_c_resnet50_100mbps").model_copy(update={"bandwidth": rates})
    assert len({tuple(order) for order in memory_orders(uneven, "best")}) == 36
    with pytest.raises(InputError, match="best"):
        memory_orders(uneven, "random")
    devices = tuple(Device(name=f"TX2 {d}", type=1) for d in range(8))
    apart = tuple(tuple(1000 + (a + 1) * (b + 1) for b in range(8)) for a in range(8))
    many = uneven.model_copy(update={"devices": devices, "bandwidth": apart})
    with pytest.raises(InputError, match=r"order: best: expected at most 5040 orders .* found 40320"):
        methods("hybrid_pipeline")["label_dp"].solve(many, Budget(300.0), order="best")


def test_an_order_makes_no_claim_about_other_plans():
    instance = one_size(FAMILY[1], replanning=None, all_devices=False)
    result = methods("hybrid_pipeline")["label_dp"].solve(instance, Budget(300.0), order="slowest_first")
    assert (result.bound, result.status in (Status.FEASIBLE, Status.UNKNOWN)) == (None, True)
    with pytest.raises(InputError, match="order"):
        methods("hybrid_pipeline")["label_dp"].solve(instance, Budget(300.0), order="random")


def test_equation_7_along_an_order_is_the_evaluators():
    checked = 0
    for family in FAMILY:
        instance = one_size(family, replanning=None)
        seen = chain(instance, range(len(instance.devices)))
        for a, b in combinations(range(len(seen.order) + 1), 2):
            for behind in range(2):
                kept = warm_up(behind, seen.tables.micro_batches)
                found = nested.times(seen, (0, 2, a, b), kept)
                bare = Stage(start=0, stop=2, devices=tuple(range(a, b)), shares=(0,) * (b - a))
                shares = best_shares(instance, bare, seen.tables.batch, kept)
                assert (shares is None) == (found is None)
                if shares is not None:
                    checked += 1
                    assert found[1:] == execution_times(instance, bare, shares)
    assert checked > 100


def test_order_among_equal_memories_matters_on_environment_c():
    """NX and TX2 have equal memories: fastest first costs 11 % and slowest first 6 % on EfficientNet-B1."""
    instance = load_instance("asteroid_c_efficientnet_b1_100mbps")
    values = [solve("label_dp", instance, order=ties) for ties in TIES] + [solve("label_dp", instance)]
    assert values[0] > values[1] > values[2]
