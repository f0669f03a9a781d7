"""Heuristics of hybrid pipeline planning: hand-computed cases, brute force for Algorithm 2's order, the optimum."""

from itertools import combinations, pairwise

import numpy as np
import pytest
from pipelines import pipelines_along

from mapgap.catalogue.files import load_instance
from mapgap.catalogue.registry import methods
from mapgap.core import Budget, InputError, Status
from mapgap.heuristics.hybrid_pipeline import asteroid
from mapgap.heuristics.hybrid_pipeline.chain import chain
from mapgap.heuristics.hybrid_pipeline.pipelines import balanced_cuts
from mapgap.heuristics.hybrid_pipeline.replanning import old_groups, with_cuts
from mapgap.instances.hybrid_pipeline import LIBRARY
from mapgap.problems.hybrid_pipeline import Device, DeviceType, Instance, Layer, Plan, Stage
from mapgap.problems.hybrid_pipeline.evaluate import evaluate, memory_demand
from mapgap.problems.hybrid_pipeline.lowered.order import memory_order

HEURISTICS = (
    "asteroid",
    "asteroid_naive",
    "asteroid_inter_stage",
    "dapple",
    "on_device",
    "data_parallel",
    "eddl",
    "gpipe",
    "pipedream",
    "hetpipe",
)


def method(name):
    return methods("hybrid_pipeline")[name]


def solve(name, instance, **options):
    chosen = method(name)
    return chosen.solve(instance, Budget(300.0), **{**chosen.options, **options})


def linear(speeds, memory, layers, batch=4, rounds=4, rate=10**6):
    """Times speed * work * samples, half of them forward; one byte of a micro-batch moves in one tick at rate 10^6.

    ``layers`` are (work, output bytes, weight bytes, activation memory).
    """
    kinds = tuple(
        DeviceType(
            name=f"T{d}",
            memory=memory[d],
            forward=tuple(tuple(s * w * k for k in range(1, batch + 1)) for w, *_ in layers),
            backward=tuple(tuple(s * w * k for k in range(1, batch + 1)) for w, *_ in layers),
        )
        for d, s in enumerate(speeds)
    )
    n = len(speeds)
    return Instance(
        name="linear",
        mini_batch=batch * rounds,
        micro_batch_sizes=(batch,),
        tick_ns=1000,
        memory_unit_bytes=1,
        types=kinds,
        devices=tuple(Device(name=f"D{d}", type=d) for d in range(n)),
        bandwidth=tuple(tuple(rate for _ in range(n)) for _ in range(n)),
        layers=tuple(
            Layer(name=f"l{i}", output_bytes=a, weight_bytes=w, state_memory=w, activation_memory=m)
            for i, (_, a, w, m) in enumerate(layers)
        ),
        all_devices=False,
    )


# --- Algorithm 1 ----------------------------------------------------------------------------------------------------


def shares(instance, order=None, block=1):
    seen = chain(instance, order or range(len(instance.devices)))
    return asteroid.shares(seen, (0, seen.layers, 0, len(seen.order)), 0, block)


def test_shares_follow_speed():
    """Speeds 1 and 1/3: 8 samples split 6 to 2, both then need 12 ticks."""
    assert shares(linear((1, 3), (99, 99), [(1, 0, 0, 1)], batch=8)) == (6, 2)


def test_shares_go_to_who_has_memory():
    """The fast device holds 2 samples beside 3 units of weights, the rest goes to the slow one."""
    assert shares(linear((1, 3), (5, 99), [(1, 0, 3, 1)], batch=8)) == (2, 6)


def test_no_shares_where_weights_or_samples_do_not_fit():
    assert shares(linear((1, 1), (2, 99), [(1, 0, 3, 1)], batch=2)) is None  # 3 units of weights on each member
    assert shares(linear((1, 1), (5, 5), [(1, 0, 3, 1)], batch=8)) is None  # 2 samples each


def test_offloading_repairs_what_proportional_shares_get_wrong():
    """Times of device 0 are 10 for any share (all launch): phase 1 splits 4 samples by the speeds at B = 4."""
    instance = linear((1, 1), (99, 99), [(1, 0, 0, 1)])
    flat = DeviceType(name="T0", memory=99, forward=((10,) * 4,), backward=((0,) * 4,))
    slow = DeviceType(name="T1", memory=99, forward=((10, 20, 30, 40),), backward=((0,) * 4,))
    instance = instance.model_copy(update={"types": (flat, slow)})
    # v = 1/10 and 1/40: shares 3.2 and 0.8, that is 3 and 1; both take 10 ticks and nothing moves.
    assert shares(instance) == (3, 1)
    steep = DeviceType(name="T1", memory=99, forward=((30, 40, 40, 40),), backward=((0,) * 4,))
    # The one sample on the steep device takes 30: it moves to the flat one, which still takes 10.
    assert shares(instance.model_copy(update={"types": (flat, steep)})) == (4, 0)


# --- Algorithm 2 ----------------------------------------------------------------------------------------------------


def test_algorithm_2_claims_the_latency_of_its_plan_and_is_no_better_than_enumeration():
    found = 0
    for seed in range(60):
        instance = LIBRARY.generate("small", seed)
        instance = instance.with_micro_batch(instance.micro_batch_sizes[-1]).model_copy(update={"replanning": None})
        for ties in ("fastest_first", "slowest_first"):
            seen = chain(instance, memory_order(instance, ties))
            plan, value, _, _ = asteroid.algorithm_2(seen)
            every = [evaluate(instance, p).terms["literal_ticks"] for p in pipelines_along(seen)]
            assert (plan is None) == (not every)
            if plan is not None:
                found += 1
                assert evaluate(instance, plan).terms["literal_ticks"] == value >= min(every)
    assert found > 60


def test_order_by_memory_and_both_tie_rules():
    instance = linear((3, 1, 2), (8, 8, 9), [(1, 0, 0, 1)])
    assert memory_order(instance) == [2, 1, 0]
    assert memory_order(instance, "slowest_first") == [2, 0, 1]
    with pytest.raises(InputError, match="ties"):
        memory_order(instance, "random")


def test_two_equal_devices_and_free_links_make_a_pipeline_where_weights_are_heavy():
    """Two layers, work 1 and weights 10^6 bytes each; replicating them costs an AllReduce of 10^6 ticks."""
    instance = linear((1, 1), (10**8, 10**8), [(1, 0, 10**6, 1), (1, 0, 10**6, 1)])
    result = solve("asteroid", instance)
    assert [(s.start, s.stop, s.devices) for s in result.plan.stages] == [(0, 1, (0,)), (1, 2, (1,))]
    # E = 8 per stage; M E + E = 4 * 8 + 8 = 40.
    assert evaluate(instance, result.plan).objective == 40


# --- baselines ------------------------------------------------------------------------------------------------------


def test_balanced_cuts_are_optimal():
    rng = np.random.default_rng(0)
    for _ in range(30):
        count, stages = 7, int(rng.integers(1, 4))
        work, transfer = rng.integers(0, 9, count), np.r_[0, rng.integers(0, 9, count - 1), 0]
        sums = np.r_[0, work.cumsum()]

        def worst(cuts, sums=sums, transfer=transfer):
            return max(max(sums[b] - sums[a] for a, b in pairwise(cuts)), *transfer[cuts])

        got = balanced_cuts(lambda p, j, s=sums: s[j] - s[:j], stages, count, transfer)
        best = min(worst([0, *inner, count]) for inner in combinations(range(1, count), stages - 1))
        assert worst(got) == best


def test_single_device_is_the_fastest_that_fits():
    instance = linear((1, 2, 3), (3, 99, 99), [(1, 0, 2, 1)])
    assert solve("on_device", instance).plan.stages[0].devices == (1,)
    assert solve("on_device", instance, device="D2").plan.stages[0].devices == (2,)
    with pytest.raises(InputError, match="expected one of D0, D1, D2"):
        solve("on_device", instance, device="D7")


def test_out_of_memory_is_unknown_with_the_device():
    """B = 4 needs 3 + 4 units on D0; GPipe does not look."""
    instance = linear((1, 1), (5, 99), [(1, 0, 3, 1), (1, 0, 3, 1)])
    result = solve("gpipe", instance)
    assert (result.status, result.plan) == (Status.UNKNOWN, None)
    assert "out of memory: D0" in result.reason


def test_hetpipe_volume_is_equation_1():
    """G > 1: 2 G P + sum 2 beta a; both workers together train the whole mini-batch."""
    layers = [(5, 3, 10, 1), (5, 3, 20, 1)]
    one = solve("hetpipe", linear((1, 1), (999, 999), layers, rate=10**9))
    notes = one.notes
    expected = {1: 2 * 16 * 3, 2: 2 * 2 * 30}[notes["workers"]]
    assert notes["hdp_volume_mb"] == pytest.approx(expected / 1e6)


def test_published_volume_of_data_parallelism_is_equation_2():
    """G = 1 of Eq. (2): 2 (5 - 1) P with P = 26.104 MB on five Nano."""
    instance = load_instance("asteroid_a_efficientnet_b1_100mbps")
    plan = solve("data_parallel", instance).plan
    assert evaluate(instance, plan).terms["communication_mb"] == pytest.approx(8 * 26.103976)


def test_no_heuristic_is_below_the_optimum():
    checked = 0
    for family in ("tiny", "small"):
        for seed in range(50):
            instance = LIBRARY.generate(family, seed)
            optimum = solve("label_dp", instance)
            for name in HEURISTICS:
                result = solve(name, instance)
                assert result.plan is not None or result.reason
                if result.plan is not None:
                    checked += 1
                    assert optimum.status is Status.OPTIMAL
                    assert evaluate(instance, result.plan).objective >= optimum.bound
    assert checked > 300


def test_a_device_with_share_0_still_holds_the_weights():
    instance = linear((1, 99), (9, 2), [(1, 0, 3, 1)])
    plan = Plan(micro_batch=4, stages=(Stage(start=0, stop=1, devices=(0, 1), shares=(4, 0)),))
    assert memory_demand(instance, plan.stages[0], 0, 1) == 3
    assert [v.where for v in evaluate(instance, plan).violations] == ["D1"]
    assert solve("data_parallel", instance).plan is None


def test_several_micro_batch_sizes_are_searched():
    instance = linear((1, 1), (99, 99), [(1, 1, 0, 1), (1, 1, 0, 1)], batch=4, rounds=4)
    both = instance.model_copy(update={"micro_batch_sizes": (2, 4)})
    values = {size: evaluate(both, solve("asteroid", both.with_micro_batch(size)).plan).objective for size in (2, 4)}
    assert evaluate(both, solve("asteroid", both).plan).objective == min(values.values())


# --- after a failure --------------------------------------------------------------------------------------------------


def test_cuts_only_finds_the_best_cuts_of_the_surviving_groups():
    checked = 0
    for seed in range(400):
        instance = LIBRARY.generate("small", seed)
        if instance.replanning is None or len(instance.micro_batch_sizes) > 1:
            continue
        groups, count = old_groups(instance), len(instance.layers)
        plans = [with_cuts(instance, groups, [*cuts, count]) for cuts in combinations(range(1, count), len(groups) - 1)]
        values = [e.objective for e in (evaluate(instance, plan) for plan in plans if plan is not None) if e.feasible]
        result = solve("cuts_only", instance)
        assert (None if result.plan is None else evaluate(instance, result.plan).objective) == min(values, default=None)
        checked += len(values) > 1
    assert checked > 20
