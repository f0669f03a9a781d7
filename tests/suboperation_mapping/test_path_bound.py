"""The longest path of a share: by hand, against the operations of a ratio, and below brute force."""

import pytest

from mapgap.contract.seeds import seeds
from mapgap.core import Budget
from mapgap.formulations.suboperation_mapping import enumerate, stage_mip
from mapgap.formulations.suboperation_mapping.path_bound import least_path, path_bound, share_paths
from mapgap.formulations.suboperation_mapping.phase_graph import PhaseGraph
from mapgap.formulations.suboperation_mapping.ratio_sweep import critical_path
from mapgap.instances.suboperation_mapping import LIBRARY
from mapgap.problems.suboperation_mapping import Accelerator, Edge, Instance, Layer
from mapgap.problems.suboperation_mapping.lowered.arrays import lower
from mapgap.problems.suboperation_mapping.lowered.ratios import partitions


def ratios(instance):
    return list(partitions(instance.batch, len(instance.accelerators)))


def test_two_layers_by_hand():
    """A split layer and a fused one, two accelerators, two samples."""
    split = {"fp": ((10, 20), (9, 30)), "wu": ((12, 20), (15, 30))}
    conv = Layer(name="conv", kind="split", network_input_bytes=8, output_bytes=5, weight_bytes=3, **split)
    norm = Layer(
        name="norm",
        kind="fused",
        inputs=(Edge(source=0, bytes=5),),
        output_bytes=5,
        weight_bytes=0,
        fp=((4,), (6,)),
        bp=((5,), (3,)),
    )
    instance = Instance(
        name="two layers",
        batch=2,
        tick_ns=1,
        memory_unit_bytes=1,
        flops=100,
        accelerators=tuple(Accelerator(name=n, memory=1000, pes=1) for n in "AB"),
        bandwidth=((1, 10**9), (10**9, 1)),
        layers=(conv, norm),
    )
    paths = share_paths(PhaseGraph(instance))
    # FP conv, FP norm, BP norm, WU conv: of one sample 9 on B, 4 on A, 3 on B, 12 on A; of two 20, 4, 3, 20.
    assert paths == [9 + 4 + 3 + 12, 20 + 4 + 3 + 20]
    assert path_bound(paths, (2, 0)) == 47
    assert path_bound(paths, (1, 1)) == least_path(paths, 2) == 28


@pytest.mark.parametrize("family", ["tiny", "small", "branching", "realistic"])
def test_paths_of_the_operations_of_a_ratio(family):
    """The path of a share is one of the ratio's graph; the longest of that may change shares at a fused layer."""
    equal = 0
    for seed in range(8):
        instance = LIBRARY.generate(family, seed)
        paths = share_paths(PhaseGraph(instance))
        for ratio in ratios(instance)[:50]:
            lowered = lower(instance, ratio)
            fastest = lowered.timing.compute.min(axis=1)
            end = {}
            for o in lowered.topological.tolist():
                end[o] = fastest[o] + max((end[p] for p in lowered.predecessors(o).tolist()), default=0)
            assert path_bound(paths, ratio) <= max(end.values()) <= critical_path(lowered)
            equal += path_bound(paths, ratio) == max(end.values())
    assert equal > 0


@pytest.mark.parametrize("seed", seeds(4, 20))
def test_no_path_exceeds_brute_force(seed):
    instance = LIBRARY.generate("tiny", seed)
    best = enumerate.run(instance, Budget(time_s=300).start()).claimed
    if best is None:
        return
    paths = share_paths(PhaseGraph(instance))
    assert least_path(paths, len(instance.accelerators)) <= min(path_bound(paths, r) for r in ratios(instance)) <= best


def test_stage_mip_is_never_below_the_paths():
    """Without time for a program the bound is that of the paths, where they exceed the flow."""
    instance = LIBRARY.generate("realistic", 1)
    paths = share_paths(PhaseGraph(instance))
    bound = stage_mip.run(instance, Budget(time_s=0.01).start()).bound
    assert bound is not None
    assert bound >= min(path_bound(paths, ratio) for ratio in ratios(instance))
