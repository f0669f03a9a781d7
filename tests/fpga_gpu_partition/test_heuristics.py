"""The paper's rule and the baselines of the FPGA-GPU partition: patterns by hand, order, never below the optimum."""

import pytest

from mapgap.catalogue import registry
from mapgap.catalogue.files import load_instance
from mapgap.contract.seeds import seeds
from mapgap.core import Budget, Status
from mapgap.heuristics.fpga_gpu_partition import greedy, paper_rule
from mapgap.heuristics.fpga_gpu_partition.construction import on_gpu
from mapgap.instances.fpga_gpu_partition import LIBRARY
from mapgap.instances.fpga_gpu_partition.compact import build
from mapgap.problems.fpga_gpu_partition import PROBLEM, Plan
from mapgap.problems.fpga_gpu_partition.evaluate import evaluate
from mapgap.studies.fpga_gpu_partition.patterns import within_patterns

PAPERS = ("squeezenet", "mobilenetv2_x0_5", "shufflenetv2_x0_5")


def options_of(instance, result):
    return {layer.name: option for layer, option in zip(instance.layers, result.plan.options, strict=True)}


def run(method, instance, **options):
    return registry.methods(PROBLEM.name)[method].solve(instance, Budget(time_s=300.0), **options)


def test_pattern_of_a_fire_module_is_the_grouped_convolution():
    """Fig. 2b on fire2: 12 of 16 channels are the largest split; 12 * 64 * 9 = 6,912 products need fold 2."""
    instance = load_instance("dhm_squeezenet_fire2")
    result = run("paper_rule", instance)
    assert options_of(instance, result) == {
        "fire2.sq": "gpu",
        "fire2.e1": "gpu",
        "fire2.e3": "in 12/16 f2",
        "fire2.cat": "gpu",
    }
    assert evaluate(instance, result.plan).terms["multipliers"] == 6912 // 2
    folded = run("paper_rule_folded", instance)
    assert options_of(instance, folded)["fire2.e3"] == "in 12/16 f32"


def test_pattern_of_separable_modules_is_the_1x1_on_the_fpga():
    """Fig. 2a: 1x1 on the FPGA, depthwise on the GPU, for the bottleneck and both branches of a reduction unit."""
    bottleneck = load_instance("dhm_mobilenetv2_x0_5_b2")
    assert options_of(bottleneck, run("paper_rule", bottleneck)) == {
        "b2.exp": "fpga f1",
        "b2.dw": "gpu",
        "b2.proj": "fpga f1",
        "b2.add": "gpu",
    }
    unit = load_instance("dhm_shufflenetv2_x0_5_s2b0")
    on_fpga = {name for name, option in options_of(unit, run("paper_rule", unit)).items() if option != "gpu"}
    assert on_fpga == {"s2b0.r.pw1", "s2b0.l.pw", "s2b0.r.pw2"}


def test_modules_are_mapped_in_order_until_the_fabric_is_full():
    """SqueezeNet, fold 1: fire2 takes 8 of 16 channels (4,608), fire3 what fits 576 (1 of 16); 5,184 are gone."""
    instance = load_instance("dhm_squeezenet_fold1")
    result = run("paper_rule", instance)
    assert result.notes["modules_mapped"] == ["fire2", "fire3"]
    mapped = options_of(instance, result)
    assert (mapped["fire2.e3"], mapped["fire3.e3"]) == ("in 8/16 f1", "in 1/16 f1")
    assert evaluate(instance, result.plan).terms["multipliers"] == instance.fabric.multipliers == 5184


def test_module_that_does_not_fit_is_skipped_or_stops_the_rule():
    """MobileNetV2, fold 1: b0 needs 128, b1 384 + 768, every later module at least 3,072."""
    instance = build("mobilenetv2_x0_5", 1, multipliers=128 + 3072)
    assert run("paper_rule", instance).notes["modules_mapped"] == ["b0", "b1"]
    tight = build("mobilenetv2_x0_5", 1, multipliers=127)
    assert run("paper_rule", tight).notes["modules_mapped"] == []
    shuffled = build("shufflenetv2_x0_5", 1, multipliers=1200)
    # s2b0 needs three times 576; every later unit of the stage twice 576.
    assert run("paper_rule", shuffled).notes["modules_mapped"] == ["s2b1"]
    assert run("paper_rule", shuffled, stop=True).notes["modules_mapped"] == []


def test_single_layers_stay_on_the_gpu_unless_asked_for():
    instance = load_instance("dhm_vgg16_fold4")
    assert run("paper_rule", instance).notes["modules_mapped"] == []
    assert run("paper_rule", instance, singles=True).notes["modules_mapped"][0] == "conv1_1"


def test_rule_ignores_the_gain():
    """On a hopeless link the rule maps as ever and loses; nothing else may."""
    instance = build("mobilenetv2_x0_5", 4, bandwidth_gbs=0.05)
    rule, gpu = run("paper_rule_folded", instance), run("gpu_only", instance)
    assert rule.notes["modules_mapped"]
    assert evaluate(instance, rule.plan).objective > evaluate(instance, gpu.plan).objective
    assert evaluate(instance, run("greedy", instance).plan).objective <= evaluate(instance, gpu.plan).objective


def test_gpu_only_is_the_sum_of_the_layers():
    instance = load_instance("dhm_squeezenet_fold1")
    terms = evaluate(instance, run("gpu_only", instance).plan).terms
    assert terms["latency"] == sum(layer.option("gpu").gpu_ticks for layer in instance.layers)
    assert terms["multipliers"] == terms["transfers"] == 0


def test_whole_networks_do_not_fit_the_fpga_but_a_module_does():
    """The abstract: DHM "cannot fully substitute the GPU"."""
    for name in PAPERS:
        result = run("fpga_only", load_instance(f"dhm_{name}_fold4"))
        assert result.status is Status.UNKNOWN
        assert "no option on the FPGA" in result.reason or "multipliers" in result.reason
    module = load_instance("dhm_mobilenetv2_x0_5_b1")
    result = run("fpga_only", module)
    # All fit at full speed. The depthwise layer halves both sides of its input: with fold 4 it still keeps up with
    # one input pixel per cycle, so that more multipliers would buy nothing.
    assert options_of(module, result) == {"b1.exp": "fpga f1", "b1.dw": "fpga f4", "b1.proj": "fpga f1"}


@pytest.mark.in_turn
@pytest.mark.parametrize("objective", PROBLEM.objectives)
@pytest.mark.parametrize("name", PAPERS)
def test_no_heuristic_is_below_the_proven_optimum(name, objective):
    instance = PROBLEM.retarget(load_instance(f"dhm_{name}_fold1"), objective)
    best = run("mip", instance)
    assert best.status is Status.OPTIMAL
    for method in ("gpu_only", "paper_rule", "paper_rule_folded", "greedy"):
        found = evaluate(instance, run(method, instance).plan)
        assert found.feasible
        assert found.objective >= best.bound, method


def test_greedy_moves_runs_of_layers_at_once():
    """b1 wholly on the FPGA needs two transfers; with fold 4 the three layers take 96 + 108 + 192 multipliers."""
    module = load_instance("dhm_mobilenetv2_x0_5_b1")
    assert all(option.startswith("fpga") for option in run("greedy", module).plan.options)
    none = build("mobilenetv2_x0_5", 1, module="b1", multipliers=0)
    assert set(run("greedy", none).plan.options) == {"gpu"}


@pytest.mark.parametrize("seed", seeds(3, 12))
def test_greedy_ends_where_no_move_gains(seed):
    instance = LIBRARY.generate("small", seed)
    result = run("greedy", instance)
    if result.plan is None:
        return
    options = [layer.option(name) for layer, name in zip(instance.layers, result.plan.options, strict=True)]
    search = greedy.Greedy(instance, "objective", options)
    assert all(search.rate(move) is None for move in greedy.moves_of(instance))
    start = Plan(options=tuple(option.name for option in on_gpu(instance)))
    first = evaluate(instance, start)
    if first.feasible:
        assert evaluate(instance, result.plan).objective <= first.objective


def test_greedy_rates_no_move_when_its_time_is_over():
    """On networks of thousands of layers rating all moves once takes minutes."""
    instance = LIBRARY.generate("networks", 205)
    result = registry.methods(PROBLEM.name)["greedy"].solve(instance, Budget(time_s=0.0).start())
    assert result.notes["evaluations"] == 0
    assert result.plan is None or set(result.plan.options) == {o.name for o in on_gpu(instance)}


def test_greedy_reaches_a_latency_limit_that_the_gpu_alone_breaks():
    instance = load_instance("dhm_mobilenetv2_x0_5_fold4")
    alone = evaluate(instance, run("gpu_only", instance).plan).terms["latency"]
    limited = instance.model_copy(update={"latency_limit": alone * 4 // 5})
    assert run("gpu_only", limited).status is Status.UNKNOWN
    assert evaluate(limited, run("greedy", limited).plan).feasible


def test_rule_reads_labels_and_no_times():
    """Prices multiplied by any factor leave the rule's plan as it is."""
    instance = load_instance("dhm_shufflenetv2_x0_5_fold4")
    other = build("shufflenetv2_x0_5", 4, cost_model="fit4", link_us=1.0)
    for fold in (False, True):
        first, second = (paper_rule.partition(i, fold, False, False)[0] for i in (instance, other))
        assert [o.name for o in first] == [o.name for o in second]


@pytest.mark.parametrize("fold", [1, 4])
@pytest.mark.parametrize("network", PAPERS)
def test_plans_of_the_rule_are_within_the_patterns_and_nothing_else_is(network, fold):
    """Two files state Fig. 2: the rule, and the instance in which every layer keeps what its pattern allows."""
    whole = load_instance(f"dhm_{network}_fold{fold}")
    inside = within_patterns(whole, "inside")
    for method in ("paper_rule", "paper_rule_folded"):
        plan = run(method, whole).plan
        assert evaluate(inside, plan).objective == evaluate(whole, plan).objective
    for before, after in zip(whole.modules, inside.modules, strict=True):
        allowed = paper_rule.pattern(before, singles=False) if len(before.layers) > 1 else [[]]
        kept = [[option for option in layer.options if option.kind != "gpu"] for layer in after.layers]
        assert kept == [list(options) for options in allowed]


def test_units_with_reduction_split_their_depthwise_layers_in_parallel():
    """Sec. V-B: three units halve the pixels; the others keep the 1x1 on the FPGA."""
    whole = load_instance("dhm_shufflenetv2_x0_5_depthwise_fold4")
    inside = within_patterns(whole, "inside", parallel=True)
    split, moved = [], []
    for module in inside.modules:
        kinds = {option.kind for layer in module.layers for option in layer.options} - {"gpu"}
        if kinds:
            (kind,) = kinds
            (split if kind == "split" else moved).append(module.name)
    assert len(split) == 3
    assert len(moved) == 13
    assert all(name.endswith("b0") for name in split)
