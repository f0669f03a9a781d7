"""What other planners print on their own files, as optima of this problem under their executions.

Sources of the values: PipeDream's ``optimizer_graph_hierarchical`` with 4 machines and 1e9 bytes a second;
dnn-partitioning's dynamic programme over ideals on its layer graphs; PipeEdge's documentation of its scheduler.
"""

import numpy as np
import pytest
from pipelines import example
from published import adjoining, dnn_partitioning, pipedream, pipeedge, pipeedge_files

from mapgap.catalogue.registry import methods
from mapgap.core import Budget, Status
from mapgap.heuristics.hybrid_pipeline.chain import chain
from mapgap.heuristics.hybrid_pipeline.pipedream import stage_times
from mapgap.problems.hybrid_pipeline import Device, DeviceType, Layer, Plan, Stage
from mapgap.problems.hybrid_pipeline.evaluate import evaluate

METHODS = methods("hybrid_pipeline")
RELEASED = {"allreduce": "rotating", "allreduce_factor": 4, "communication": "free"}
"""PipeDream's released code: replicas take micro-batches in turn, 4 (m - 1) / m of the weights are added to the work of
a stage, transfers between stages are left out unless a compression ratio is given."""


def slowest(instance, plan):
    found = evaluate(instance, plan)
    assert found.feasible, found.violations
    return found.objective * instance.seconds_per_tick


def optimum(instance):
    result = METHODS["label_dp"].solve(instance, Budget(300.0))
    assert result.status is Status.OPTIMAL
    return slowest(instance, result.plan), result.plan


@pytest.mark.parametrize(("name", "printed", "stages"), [("vgg16", "0.17573", 2), ("gnmt", "0.025868", 4)])
def test_pipedreams_optimizer(name, printed, stages):
    """GNMT branches: its stages are cuts of the topological order, as PipeDream's are of its antichains."""
    instance = pipedream(name, 4, **RELEASED)
    seconds, plan = optimum(instance)
    digits = len(printed) - 2
    assert f"{seconds:.{digits}f}" == printed
    assert len(plan.stages) == stages
    own = METHODS["pipedream_released"].solve(instance, Budget(300.0))
    assert f"{slowest(instance, own.plan):.{digits}f}" == f"{own.notes['slowest_s']:.{digits}f}" == printed


@pytest.mark.parametrize(("reading", "ticks"), [("amortised", 12), ("paper", 20), ("released", 32)])
def test_pipedreams_stage_of_two_replicas(reading, ticks):
    # Two F: 24 for a micro-batch, 20 bytes of weights at a byte a tick, M = 4.
    # max(24 / 2, (2 * 20 / 2) / 4);  max(24, 2 * 20) / 2;  (24 + 4 * 20 / 2) / 2
    two = example(devices=tuple(Device(name=name, type=0) for name in ("F1", "F2")))
    seen = chain(two, (0, 1), homogeneous=True, memory=False)
    found = stage_times(seen, reading, np.array([24]), np.array([20]), (0, 2))
    assert found.tolist() == [ticks]


def test_the_paper_charges_transfers_and_the_released_code_does_not():
    # The only cut costs 2 * 24 ticks: the paper's planner replicates the network, 24 / 2 = 12 where weights are free.
    layers = tuple(
        Layer(name=name, output_bytes=12, weight_bytes=0, state_memory=0, activation_memory=0) for name in ("a", "b")
    )
    kind = DeviceType(name="F", memory=1, forward=((2, 4),) * 2, backward=((4, 8),) * 2)
    devices = (Device(name="F1", type=0), Device(name="F2", type=0))
    instance = example(layers=layers, types=(kind,), devices=devices)
    values = {name: METHODS[name].solve(instance, Budget(300.0)).notes["slowest_s"] for name in ("pipedream_paper",)}
    assert values["pipedream_paper"] == pytest.approx(12e-6)
    heavy = instance.changed(layers=tuple(layer.model_copy(update={"weight_bytes": 30}) for layer in layers))
    split = METHODS["pipedream_released"].solve(heavy, Budget(300.0))
    assert split.notes["slowest_s"] == pytest.approx(12e-6)  # one stage each
    assert len(split.plan.stages) == 2
    whole = METHODS["pipedream_paper"].solve(heavy, Budget(300.0))
    assert whole.notes["slowest_s"] == pytest.approx(48e-6)  # the cut: 48; replicas: max(24, 2 * 60) / 2 = 60


@pytest.mark.parametrize("machines", [2, 3, 4, 6])
@pytest.mark.parametrize("name", ["alexnet", "vgg16", "resnet50", "gnmt"])
def test_straight_pipelines_are_proven_optimal(name, machines):
    """One machine a stage: no lower than the work of all layers divided by the machines, nor than the longest layer."""
    instance = pipedream(name, machines, replication=False, communication="free")
    seconds, plan = optimum(instance)
    kind = instance.types[0]
    layers = [f[-1] + b[-1] for f, b in zip(kind.forward, kind.backward, strict=True)]
    least = max(max(layers), sum(layers) / machines) * instance.seconds_per_tick
    assert least <= seconds < least + max(layers) * instance.seconds_per_tick
    assert all(len(stage.devices) == 1 for stage in plan.stages)


@pytest.mark.parametrize(("name", "printed"), [("bert24_inference", "17.790"), ("resnet50_inference", "33.775")])
def test_dnn_partitionings_maximum_load(name, printed):
    """Their parts are differences of ideals. On both graphs an optimum lies along the topological order, where a part
    pays for all that crosses its two cuts, be it for another part."""
    seconds, _ = optimum(dnn_partitioning(name))
    assert f"{1000 * seconds:.3f}" == printed


@pytest.mark.parametrize(("model", "scale"), [("google/vit-base-patch16-224", 1), ("google/vit-large-patch16-224", 2)])
def test_pipeedges_schedule_is_evaluated_and_not_optimal(model, scale):
    """The printed schedule has eight pieces of 6 of 48 layers; ViT-Large has twice as many."""
    schedule, models, kinds, _ = pipeedge_files()
    pieces = {host: piece for entry in schedule for host, piece in entry.items()}
    assert adjoining(list(pieces.values()))
    assert scale * list(pieces.values())[-1][1] == models[model]["layers"]
    hosts = {host: "Minnowboard-E3845" if host.startswith("mb") else "RCC-VE-C2000" for host in pieces}
    instance = pipeedge(model, hosts)
    stages = tuple(
        Stage(start=scale * (first - 1), stop=scale * last, devices=(d,), shares=(8,))
        for d, (first, last) in enumerate(pieces.values())
    )
    printed = slowest(instance, Plan(micro_batch=8, stages=stages))
    times = {kind: kinds[kind]["model_profiles"][model][0]["time_s"] for kind in hosts.values()}
    by_hand = max(sum(times[hosts[host]][scale * (a - 1) : scale * b]) for host, (a, b) in pieces.items())
    assert printed == pytest.approx(by_hand, abs=1e-4)
    best, plan = optimum(instance)
    # All stages of a board type take as long as they can below the optimum: both types work, the slower one on less.
    assert best < printed
    assert printed / best > 1.05
    assert len(plan.stages) == 8
