"""What other planners print on their own files, as optima of this problem under their executions.

Sources of the values: PipeDream's ``optimizer_graph_hierarchical`` with 4 machines and 1e9 bytes a second;
dnn-partitioning's dynamic programme over ideals on its layer graphs; PipeEdge's documentation of its scheduler.
"""

import random
from itertools import combinations, pairwise, product

import numpy as np
import pytest
from graphs import least, random_graph
from pipelines import example
from published import adjoining, dnn_partitioning, pipedream, pipeedge, pipeedge_files

from mapgap.catalogue.registry import methods
from mapgap.contract.seeds import seeds
from mapgap.core import Budget, Status
from mapgap.heuristics.hybrid_pipeline.chain import chain
from mapgap.heuristics.hybrid_pipeline.dnn_partitioning import merged
from mapgap.heuristics.hybrid_pipeline.pipedream import stage_times
from mapgap.problems.hybrid_pipeline import Device, DeviceType, Execution, Graph, Instance, Layer, Plan, Stage
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


# --- Alpa -----------------------------------------------------------------------------------------------------------


def homogeneous(seed, **execution):
    """At most five layers on at most four equal devices whose memory binds."""
    rng = random.Random(f"alpa-{seed}")
    count, devices, batch = rng.randint(2, 5), rng.randint(1, 4), rng.choice((4, 12))
    base = [rng.randint(10**3, 10**6) for _ in range(count)]
    table = tuple(tuple(t * k // batch for k in range(1, batch + 1)) for t in base)
    kind = DeviceType(name="K", memory=rng.randint(60, 1500), forward=table, backward=table)
    return Instance(
        name="homogeneous",
        mini_batch=batch * rng.randint(1, 12),
        micro_batch_sizes=(batch,),
        tick_ns=1000,
        memory_unit_bytes=1,
        types=(kind,),
        devices=tuple(Device(name=f"D{d}", type=0) for d in range(devices)),
        bandwidth=((10**8,) * devices,) * devices,
        layers=tuple(
            Layer(
                name=f"l{i}",
                output_bytes=10**5,
                weight_bytes=rng.randint(0, 10**6),
                state_memory=rng.randint(1, 60),
                activation_memory=rng.randint(0, 10),
            )
            for i in range(count)
        ),
        all_devices=False,
        execution=Execution(**execution),
    )


def compositions(total, parts):
    """All ways to write a total as so many parts of at least 1."""
    for cuts in combinations(range(1, total), parts - 1):
        yield [b - a for a, b in pairwise((0, *cuts, total))]


def alpas_value(instance):
    """The least of its objective over all stages and submeshes, by its formulas; ``None`` if none fits."""
    (batch,), kind, layers = instance.micro_batch_sizes, instance.types[0], instance.layers
    rules, found = instance.execution, []
    for s in range(1, min(len(layers), len(instance.devices)) + 1):
        for sizes, groups in product(compositions(len(layers), s), compositions(len(instance.devices), s)):
            times, first = [], 0
            for p, (size, m) in enumerate(zip(sizes, groups, strict=True)):
                rows, share = range(first, first + size), -(-batch // m)
                first += size
                behind = s - p if rules.training else 1
                held = sum(layers[i].state_memory + behind * share * layers[i].activation_memory for i in rows)
                if held > kind.memory or (m > 1 and not rules.replication):
                    break
                times.append(
                    sum(kind.forward[i][share - 1] + rules.training * kind.backward[i][share - 1] for i in rows)
                )
            else:
                rounds = instance.mini_batch // batch
                found.append(sum(times) + (rounds - 1) * max(times) if rules.training else s * max(times))
    return min(found, default=None)


@pytest.mark.parametrize("seed", seeds(60, 600))
def test_alpas_programme_finds_the_least_of_its_formula(seed):
    for training in (True, False):
        instance = homogeneous(seed, training=training)
        result = METHODS["alpa"].solve(instance, Budget(300.0), gap=0.0)
        value = alpas_value(instance)
        if value is None:
            assert result.plan is None
        elif result.plan is not None or "rejected_plan" not in result.notes:
            assert round(result.notes["planned_s"] / instance.seconds_per_tick) == value
            assert {d for stage in result.plan.stages for d in stage.devices} == set(range(len(instance.devices)))


def test_alpas_pipeline_by_hand():
    """Layers of 3, 3 and 6 ticks for two samples and 2, 2 and 3 for one, two devices, four micro-batches.

    All on both, a sample each, takes 7 + 3 * 7 = 28, [3 + 3 | 6] 12 + 3 * 6 = 30, [3 | 3 + 6] 12 + 3 * 9 = 39.
    """
    instance = homogeneous(0)
    kind = instance.types[0].model_copy(
        update={"forward": ((1, 2), (1, 2), (2, 4)), "backward": ((1, 1), (1, 1), (1, 2)), "memory": 10**6}
    )
    instance = instance.changed(
        types=(kind,),
        mini_batch=8,
        micro_batch_sizes=(2,),
        layers=tuple(instance.layers[0].model_copy(update={"name": name}) for name in "abc"),
        devices=(Device(name="A", type=0), Device(name="B", type=0)),
        bandwidth=((1, 10**8), (10**8, 1)),
    )
    both = METHODS["alpa"].solve(instance, Budget(300.0))
    assert round(both.notes["planned_s"] * 1e6) == 28
    single = METHODS["alpa"].solve(instance.changed(execution=Execution(replication=False)), Budget(300.0))
    assert round(single.notes["planned_s"] * 1e6) == 30
    assert [list(stage.rows) for stage in single.plan.stages] == [[0, 1], [2]]


# --- dnn-partitioning -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", seeds(40, 400))
def test_dnn_partitionings_programme_finds_the_least_load_of_a_graph(seed):
    made = random_graph(seed, communication="tensors", replication=False, stored="one")
    unlimited = made.graph.model_copy(update={"hosts": ()})  # their hosts have no limit of memory, ours have
    made = made.changed(objective="bottleneck", all_devices=False, graph=unlimited)
    truth = least(made)
    result = METHODS["dnn_partitioning"].solve(made, Budget(300.0))
    if truth is None:
        assert result.plan is None
        return
    assert evaluate(made, result.plan).objective == truth
    assert round(result.notes["max_load_s"] / made.seconds_per_tick) == truth
    straight = METHODS["dnn_partitioning"].solve(made, Budget(300.0), linearize=True)
    assert straight.plan is None or evaluate(made, straight.plan).objective >= truth


def test_layers_without_time_join_their_only_neighbour():
    """a -> b -> d <- c, a and b without time: a has one neighbour, and then a with b has; c has time."""
    made = example()
    table = ((0, 0), (0, 0), (5, 5), (5, 5))
    kinds = tuple(kind.model_copy(update={"forward": table, "backward": table}) for kind in made.types)
    assert merged(made.changed(types=kinds, graph=Graph(edges=((0, 1), (1, 3), (2, 3))))) == [(0, 1), (0, 3)]
    assert merged(made.changed(graph=Graph(edges=((0, 1), (1, 3), (2, 3))))) == []
