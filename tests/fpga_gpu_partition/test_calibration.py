"""Fits of the cost model of the FPGA-GPU partition: the committed ones explain Table I, new runs find their like."""

from dataclasses import fields

import numpy as np
import pytest

from mapgap.catalogue import registry
from mapgap.core import Budget
from mapgap.instances.facts import ROOT
from mapgap.instances.fpga_gpu_partition.compact import build
from mapgap.instances.fpga_gpu_partition.cost_model import CostModel, load_fit
from mapgap.instances.fpga_gpu_partition.lowering import graph_of
from mapgap.problems.fpga_gpu_partition import PROBLEM, Plan
from mapgap.studies.fpga_gpu_partition import calibration, gains
from mapgap.studies.fpga_gpu_partition.constants import fit_names, load_share
from mapgap.studies.fpga_gpu_partition.plan_cost import plan_cost


@pytest.fixture(scope="module")
def best():
    """The best committed fit."""
    return calibration.candidate(load_fit("fit1"), load_share("fit1"))


@pytest.mark.parametrize("name", fit_names())
def test_a_committed_fit_reproduces_table_1_within_its_stated_residual(name, best):
    found = calibration.candidate(load_fit(name), load_share(name))
    assert found.rms <= best.rms + calibration.TOLERANCE + 1e-4
    assert max(abs(residual) for residual in found.residuals) < 0.065  # "within 6.5 %", docs/fpga_gpu_calibration.md
    for key, (low, high) in calibration.RANGES.items():
        assert low * 0.999 <= getattr(found.model, key) <= high * 1.001
    assert gains.figure_1(found.model) > 0.999  # the FPGA wins on every layer of Fig. 1
    assert gains.peak_power_w(found.model) < 15.01


def test_file_of_fits_states_the_residuals_it_has():
    found = [calibration.candidate(load_fit(name), load_share(name)) for name in fit_names()]
    path = ROOT / "devices" / "dhm_fits.yaml"
    assert path.read_text(encoding="utf-8") == calibration.text(found)
    assert min(found, key=lambda item: item.rms) is found[0]
    assert len({item.share for item in found}) == 2


@pytest.mark.parametrize("fit", ["fit1", "fit3"])
@pytest.mark.parametrize("kind", gains.NETWORKS)
def test_forward_model_of_the_fit_is_the_evaluator(kind, fit):
    """The fit prices patterns in floating point; the evaluator, in rounded-up ticks, must say the same."""
    graph, blocks = gains.modules_of(kind)
    for block in blocks:
        shapes = graph.shapes_of(block)
        channels = gains.pattern(shapes, kind, 0.5)
        fold = gains.fold_of(shapes, channels)
        instance = build(graph.name, 32, module=block.name, cost_model=fit)
        names = ["gpu"] * (len(instance.layers) - len(shapes))
        for shape, g in zip(shapes, channels, strict=True):
            whole = shape.channels_in
            names.append("gpu" if g == 0 else f"fpga f{fold}" if g == whole else f"in {g}/{whole} f{fold}")
        for options, mapped in ((names, channels), (["gpu"] * len(names), [0] * len(shapes))):
            found = PROBLEM.evaluate(instance, Plan(options=tuple(options)))
            latency, energy = gains.module_cost(load_fit(fit), graph, block, mapped, fold)
            assert found.feasible
            assert float(latency) <= found.terms["latency"] + 0.5 <= float(latency) + 15
            assert float(energy) - 2 <= found.terms["energy"] <= float(energy) + 25


@pytest.mark.parametrize("fit", ["fit1", "fit3"])
def test_parallel_units_of_the_forward_model_are_the_evaluators(fit):
    """Sec. V-B's unit with reduction: depthwise layers half on the FPGA, all else on the GPU."""
    graph, blocks = gains.modules_of("unit")
    halved = [block for block in blocks if gains.reduces(graph.shapes_of(block))]
    assert len(halved) == 3  # one at the head of every stage
    for block in halved:
        shapes = graph.shapes_of(block)
        channels = gains.pattern(shapes, "unit", 0.5, "parallel")
        fold = gains.fold_of(shapes, channels)
        instance = build(graph.name, 32, module=block.name, cost_model=fit, splits="depthwise")
        names = ["gpu"] * (len(instance.layers) - len(shapes))
        names += [
            f"ch {g}/{shape.channels_in} f{fold}" if g else "gpu" for shape, g in zip(shapes, channels, strict=True)
        ]
        found = PROBLEM.evaluate(instance, Plan(options=tuple(names)))
        latency, energy = gains.module_cost(load_fit(fit), graph, block, channels, fold)
        assert found.feasible
        assert float(latency) <= found.terms["latency"] + 0.5 <= float(latency) + 15
        assert float(energy) - 2 <= found.terms["energy"] <= float(energy) + 25


@pytest.mark.in_turn
@pytest.mark.parametrize("method", ["paper_rule_folded", "greedy", "label_setting"])
@pytest.mark.parametrize("network", gains.NETWORKS.values())
def test_cost_of_a_plan_under_many_constants_is_the_evaluators(network, method):
    """Whole networks: without rounding, under two sets of constants at once, as the evaluator has it under either."""
    graph, fits = graph_of(network), [load_fit("fit2"), load_fit("fit4")]
    both = CostModel(**{f.name: np.array([getattr(fit, f.name) for fit in fits]) for f in fields(CostModel)})
    for fold in (1, 4):
        instances = [build(network, fold, cost_model=name) for name in ("fit2", "fit4")]
        plan = registry.methods(PROBLEM.name)[method].solve(instances[0], Budget(time_s=300.0)).plan
        energy, latency = plan_cost(instances[0], graph, both, plan.options)
        for index, instance in enumerate(instances):
            terms = PROBLEM.evaluate(instance, plan).terms
            jobs = 3 * len(instance.layers)  # times are rounded up by less than one tick each
            assert latency[index] <= terms["latency"] <= latency[index] + jobs
            assert energy[index] <= terms["energy"] <= energy[index] + 2 * jobs


def test_one_seed_gives_one_run_and_a_longer_one_is_better():
    first, worth = calibration.evolve(5, 0.5, generations=15, people_per_constant=3)
    again, same = calibration.evolve(5, 0.5, generations=15, people_per_constant=3)
    assert np.array_equal(first, again)
    assert np.array_equal(worth, same)
    longer = calibration.evolve(5, 0.5, generations=60, people_per_constant=3)[1]
    assert longer.min() < worth.min()


@pytest.mark.in_turn
def test_a_short_run_reaches_the_level_of_the_committed_fits(best):
    """The committed rows came from another stream of random numbers; a quarter of a run finds what counts as equal."""
    found, worth = calibration.evolve(2, 0.5, generations=100, people_per_constant=5)
    assert worth.min() <= best.rms + calibration.TOLERANCE
    fitted = calibration.candidate(calibration.decode(found[:, worth.argmin()]), 0.5)
    assert fitted.rms <= worth.min()  # the loss is the residual and what the bounds of the paper are broken by
    assert max(abs(residual) for residual in fitted.residuals) < 0.065


def test_candidates_kept_are_as_good_as_the_best_of_their_run():
    _, worth = calibration.evolve(1, 0.75, generations=30, people_per_constant=5)
    assert worth.max() <= worth.min() + calibration.TOLERANCE


@pytest.mark.in_turn
def test_whole_expansion_on_the_fpga_does_not_explain_table_1(best):
    """Share 1 saves the GPU's launch of the expansion, which a speed-up of 1.01 excludes."""
    _, worth = calibration.evolve(0, 1.0, generations=150, people_per_constant=7)
    assert worth.min() > 2 * best.rms
