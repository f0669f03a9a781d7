"""Columns of the MIP and CP-SAT models: costs against the evaluator, the filter against no filter and brute force."""

from itertools import pairwise

import numpy as np
import pytest
from pipelines import example

from mapgap.catalogue.files import load_instance
from mapgap.catalogue.registry import methods
from mapgap.contract.seeds import seeds
from mapgap.core import Budget, InputError, Status
from mapgap.formulations.hybrid_pipeline.columns import build
from mapgap.formulations.hybrid_pipeline.cpsat import ColumnCpSat
from mapgap.formulations.hybrid_pipeline.label.first_plan import OPEN
from mapgap.formulations.hybrid_pipeline.mip import ColumnMip
from mapgap.formulations.hybrid_pipeline.pricing import NEVER, least_time, stage_times
from mapgap.formulations.hybrid_pipeline.windows import Windows
from mapgap.instances.hybrid_pipeline import LIBRARY
from mapgap.problems.hybrid_pipeline import Stage
from mapgap.problems.hybrid_pipeline.evaluate import best_shares, evaluate, execution_times, warm_up
from mapgap.problems.hybrid_pipeline.lowered.arrays import lower
from mapgap.solvers.model import prove

METHODS = methods("hybrid_pipeline")
MODELS = {name: METHODS[name] for name in ("cpsat", "mip")}
TESTS = ("none", "window", "reach", "front")


def outcome(method, instance, **options):
    result = method.solve(instance, Budget(time_s=300.0), **options)
    if result.plan is None:
        return result.status, None
    checked = evaluate(instance, result.plan)
    assert checked.feasible, checked.violations
    assert checked.objective == result.bound
    return result.status, checked.objective


@pytest.mark.parametrize("seed", seeds(4, 40))
def test_filtered_is_unfiltered_is_brute_force(seed):
    instance = LIBRARY.generate("tiny", seed)
    truth = outcome(METHODS["enumerate"], instance)
    for name, method in MODELS.items():
        for keep in TESTS:
            assert outcome(method, instance, keep=keep) == truth, (name, keep)


@pytest.mark.parametrize("seed", seeds(3, 12))
def test_costs_are_those_of_the_evaluator(seed):
    instance = LIBRARY.generate("small", seed)
    instance = instance.with_micro_batch(instance.micro_batch_sizes[0])
    low = lower(instance)
    start, stop = np.triu_indices(low.layers + 1, 1)
    for group in range(1, len(low.groups)):
        devices = tuple(d for c, n in enumerate(low.groups[group].tolist()) for d in low.classes[c][:n])
        total = least_time(low, low.both, start, stop, group)
        for behind in range(3):
            times = stage_times(low, start, stop, group, low.kept(behind))
            for i, j, pair, least in zip(start.tolist(), stop.tolist(), times.tolist(), total.tolist(), strict=True):
                stage = Stage(start=i, stop=j, devices=devices, shares=(0,) * len(devices))
                shares = best_shares(instance, stage, low.batch, warm_up(behind, low.micro_batches))
                if shares is None:
                    assert pair == [NEVER, NEVER]
                else:
                    assert tuple(pair) == execution_times(instance, stage, shares)
                    assert least <= sum(pair)


def test_the_filter_keeps_every_plan_below_the_one_known():
    # Whatever U is: the stages of an optimum below it pass all tests.
    for seed in range(30):
        instance = LIBRARY.generate("small", seed)
        instance = instance.with_micro_batch(instance.micro_batch_sizes[0])
        result = METHODS["label_dp"].solve(instance, Budget(300.0))
        if result.plan is None:
            continue
        low = lower(instance)
        where = {d: c for c, members in enumerate(low.classes) for d in members}
        for upper in (result.bound + 1, result.bound + 20, 2 * result.bound + 1):
            windows = Windows(low, upper)
            for keep in TESTS[1:]:
                kept = {
                    (i, j, tuple(low.groups[g].tolist()))
                    for g, start, stop in windows.stages(keep)
                    for i, j in zip(start.tolist(), stop.tolist(), strict=True)
                }
                for stage in result.plan.stages:
                    counts = [0] * len(low.classes)
                    for device in stage.devices:
                        counts[where[device]] += 1
                    assert (stage.start, stage.stop, tuple(counts)) in kept, (seed, upper, keep)


@pytest.mark.parametrize("keep", TESTS[1:])
def test_a_poor_plan_before_is_improved(keep):
    # The plan known is the worst single stage instead of the best.
    def worst(low):
        found = [(OPEN, [])]
        for group in range(1, len(low.groups)):
            path = [(0, low.layers, group)]
            if low.limits(*path[0], 0) is not None:
                value = evaluate(low.instance, low.plan(path)).objective
                found += [] if value is None else [(value, path)]
        return max(found[1:], default=found[0])

    for seed in (0, 1, 2, 3, 6):
        instance = LIBRARY.generate("small", seed)
        instance = instance.with_micro_batch(instance.micro_batch_sizes[-1])
        truth = outcome(METHODS["label_dp"], instance)
        low = lower(instance)
        columns = build(low, Budget(300.0), keep, known=worst(low))
        for model in (ColumnCpSat, ColumnMip) if columns.columns else ():
            result = prove(model(columns), Budget(time_s=300.0))
            assert (result.status, result.claimed) == truth, (seed, model)
        assert columns.columns or truth[1] is None


def test_each_test_keeps_a_part_of_the_one_before():
    total = dict.fromkeys(TESTS, 0)
    for seed in range(12):
        instance = LIBRARY.generate("small", seed)
        low = lower(instance.with_micro_batch(instance.micro_batch_sizes[0]))
        sets = [set(build(low, Budget(300.0), keep).columns) for keep in TESTS]
        assert all(later <= earlier for earlier, later in pairwise(sets))
        for keep, columns in zip(TESTS, sets, strict=True):
            total[keep] += len(columns)
    assert total["front"] <= total["reach"] <= total["window"] < total["none"]


def test_a_network_of_the_library_is_proven_by_both_models():
    # ResNet50 on six boards: over 100,000 stages fit into the memories, less than a hundred pass the tests.
    instance = load_instance("asteroid_c_resnet50_1000mbps")
    known = METHODS["label_dp"].solve(instance, Budget(300.0))
    start = METHODS["order_search"].solve(instance, Budget(300.0)).plan
    for method in MODELS.values():
        result = method.solve(instance, Budget(time_s=300.0).start(), start=start)
        assert (result.status, result.bound) == (Status.OPTIMAL, known.bound)
        assert evaluate(instance, result.plan).objective == known.bound
        assert result.notes["columns"] < 100
    everything = Windows(lower(instance), NEVER).stages("none")
    assert sum(len(start) for _, start, _ in everything) > 100_000


def test_the_bound_of_a_large_value_is_exact_to_the_tick():
    # A tolerance of 1e-6 of 4.8 million ticks is more than one tick; the model counts from the plan known before.
    instance = load_instance("asteroid_c_resnet50_1000mbps")
    start = METHODS["order_search"].solve(instance, Budget(300.0)).plan
    result = MODELS["mip"].solve(instance, Budget(time_s=300.0).start(), start=start)
    assert result.claimed == result.bound > 10**6


def test_too_many_stages():
    instance = load_instance("asteroid_c_efficientnet_b1_100mbps")
    result = MODELS["cpsat"].solve(instance, Budget(300.0), keep="none")
    assert result.status is Status.UNKNOWN
    assert "too many" in result.reason


def test_unknown_filter():
    with pytest.raises(InputError, match="keep"):
        MODELS["mip"].solve(example(), Budget(300.0), keep="most")
