"""What does not follow: instances between which a rule with one condition less would prove what is wrong."""

import pytest

from mapgap.catalogue import registry
from mapgap.catalogue.files import load_instance
from mapgap.core import Budget


def optimum(instance):
    method = registry.strongest_exact(instance.problem)
    result = method.solve(instance, Budget(60.0).start())
    return registry.problems()[instance.problem].evaluate(instance, result.plan).objective


def tight_limit():
    """The optimum of energy is too slow for the limit."""
    library = registry.library("fpga_gpu_partition")
    for seed in range(60):
        free = library.generate("tiny", seed).changed(objective="energy", latency_limit=None, energy_limit=None)
        fastest = optimum(free.changed(objective="latency"))
        limited = free.changed(latency_limit=fastest)
        if optimum(limited) > optimum(free):
            yield limited, free


def sharing():
    """Two pipelines of one model and one signal."""
    library = registry.library("multi_model_splitting")
    for seed in range(60):
        shared = library.generate("tiny", seed)
        if shared.sharing and registry.problems()[shared.problem].diagnose(shared) == []:
            apart = shared.changed(sharing=False)
            yield apart, shared


def idle_devices():
    """A device that only costs an AllReduce."""
    library = registry.library("hybrid_pipeline")
    for seed in range(60):
        every = library.generate("tiny", seed)
        yield every.changed(all_devices=True), every.changed(all_devices=False)


def more_memory():
    """Shares follow from Eq. (7), so that more memory may cost ticks (family small, seed 136)."""
    roomy = registry.library("hybrid_pipeline").generate("small", 136)
    for factor in (2, 1):
        types = tuple(kind.model_copy(update={"memory": factor * kind.memory}) for kind in roomy.types)
        yield roomy.changed(types=types), roomy


def pairs(make, count=3):
    """Instances with plans and different optima; the first one's is worse."""
    found = []
    for worse, better in make():
        try:
            values = optimum(worse), optimum(better)
        except AttributeError:  # no plan
            continue
        if values[0] > values[1]:
            found.append((worse, better, *values))
        if len(found) == count:
            break
    return found


@pytest.mark.in_turn
@pytest.mark.parametrize("make", [tight_limit, sharing, idle_devices])
def test_a_restriction_proves_nothing_of_what_it_restricts(make):
    cases = pairs(make)
    assert cases
    for worse, better, high, low in cases:
        library = registry.library(worse.problem)
        assert library.imply(high, worse, better) is None
        assert library.imply(low, better, worse) == low


def test_more_memory_proves_nothing_where_shares_follow_from_it():
    (case,) = pairs(more_memory)
    roomy, plain, high, low = case
    assert high > low  # 2 ticks of 855
    library = registry.library("hybrid_pipeline")
    assert library.imply(high, roomy, plain) is None
    assert library.imply(low, plain, roomy) is None


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("synergy_w1_any", "synergy_w1_distributed"),  # a requirement that any device meets
        ("synergy_w1_any", "synergy_w1_overlapped"),
        ("synergy_w1_any", "synergy_w1_any@latency"),  # a cycle is no longer than all latencies together
        ("synergy_fig11a_5devices", "synergy_fig11a_4devices"),  # a device more
        ("synergy_fig11b_2pipelines", "synergy_fig11b_3pipelines"),  # a pipeline less
        ("asteroid_a_mobilenetv2_1000mbps", "asteroid_a_mobilenetv2_100mbps"),  # all links ten times as fast
        ("dhm_squeezenet_fold4", "dhm_squeezenet_fold1"),  # more options
        ("mtrain_c1_alexnet_15gbs", "mtrain_c1_alexnet_3gbs"),
        ("mtrain_scale_8fpga_resnet18_3gbs", "mtrain_scale_4fpga_resnet18_3gbs"),
    ],
)
def test_instances_of_the_library_imply_each_other_one_way(source, target):
    one, other = load_instance(source), load_instance(target)
    library = registry.library(one.problem)
    assert library.imply(1000, one, other) == 1000
    assert library.imply(1000, other, one) is None
