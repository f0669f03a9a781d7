"""Placements of exo, llama.cpp, EdgeShard and Petals: their authors' own tests and listings, placements by hand, and
the optimum beside them.

Sources of the values: exo-explore/exo b5375f8, ``test_placement_utils.py`` and ``test_placement.py`` of
``src/exo/master/tests`` (layers of three nodes); 0fcee70^, ``test_ring_memory_weighted_partitioning_strategy.py`` and
``test_map_partitions.py`` of ``exo/topology``.
"""

import random

import numpy as np
import pytest

from mapgap.catalogue.registry import methods, problems
from mapgap.contract.seeds import seeds
from mapgap.core import Budget, InputError, Status
from mapgap.heuristics.hybrid_pipeline.exo import allocated
from mapgap.heuristics.hybrid_pipeline.llama_cpp import counted
from mapgap.problems.hybrid_pipeline import Device, DeviceType, Execution, Instance, Layer
from mapgap.problems.hybrid_pipeline.evaluate import evaluate

METHODS = methods("hybrid_pipeline")
PROBLEM = problems()["hybrid_pipeline"]
RULES = ("exo", "exo_ring", "llama_cpp", "edgeshard", "petals")


def model(memory, blocks, *, times=None, cache=0, rate=10**6, ends=True, **changes):
    """Equal blocks of weight 1 on boards of these memories, with embedding and head that take nothing."""
    names = [f"block{k}" for k in range(1, blocks + 1)]
    names = ["embedding", *names, "head"] if ends else names

    def layer(name):
        own = int(name.startswith("block"))
        return Layer(
            name=name, output_bytes=1, weight_bytes=own, state_memory=own, activation_memory=cache if own else 0
        )

    paces = times or [1] * len(memory)
    types = tuple(
        DeviceType(
            name=f"T{t}",
            memory=room,
            forward=tuple((pace if name.startswith("block") else 0,) for name in names),
            backward=((0,),) * len(names),
        )
        for t, (room, pace) in enumerate(zip(memory, paces, strict=True))
    )
    fields = {
        "name": "model",
        "mini_batch": 1,
        "micro_batch_sizes": (1,),
        "tick_ns": 1000,
        "memory_unit_bytes": 1,
        "types": types,
        "devices": tuple(Device(name=f"D{t}", type=t) for t in range(len(memory))),
        "bandwidth": tuple(tuple(rate * (a != b) for b in range(len(memory))) for a in range(len(memory))),
        "layers": tuple(map(layer, names)),
        "all_devices": False,
        "execution": Execution(training=False, replication=False),
    }
    return Instance(**(fields | changes))


def solved(method, instance, **options):
    return METHODS[method].solve(instance, Budget(60.0), **options)


def stages(result):
    """Device and number of layers of every stage."""
    return [(stage.devices[0], stage.stop - stage.start) for stage in result.plan.stages]


@pytest.mark.parametrize(
    ("memory", "layers", "expected"),
    [
        ((500, 500, 1000), 12, [3, 3, 6]),
        ((500, 500, 500), 12, [4, 4, 4]),
        ((312, 518, 1024), 12, [2, 3, 7]),
        ((900, 50, 50), 20, [18, 1, 1]),
        ((312, 468, 1092), 12, [2, 3, 7]),
    ],
)
def test_exo_allocates_what_its_own_tests_expect(memory, layers, expected):
    assert allocated(layers, [each / sum(memory) for each in memory]) == expected


def test_exo_takes_the_fewest_devices_of_most_memory():
    # Ten blocks of one unit: no board holds them; of two, 8 + 7 hold most. 10 * 8 / 15 = 5.33, 10 * 7 / 15 = 4.67.
    instance = model([3, 7, 8, 3], 10)
    assert stages(solved("exo", instance)) == [(1, 1 + 5), (2, 5 + 1)]
    assert stages(solved("exo", model([3, 7, 12, 30], 10, times=[1, 1, 1, 9]))) == [(3, 12)]  # however slow it is


def test_exo_overlooks_caches_and_is_out_of_memory():
    held = solved("exo", model([6, 6], 10))
    assert stages(held) == [(0, 6), (1, 6)]
    short = solved("exo", model([6, 6], 10, cache=1))
    assert short.status is Status.UNKNOWN
    assert short.reason.startswith("out of memory: ")
    assert "no cycle has sufficient memory" in solved("exo", model([2, 2], 10)).reason


def test_exo_has_no_placement_where_a_device_without_a_layer_gets_one():
    # Memories 0, 9, 9: two devices are enough. With 10, 9 and 1 all three are needed, shares 10, 9 and 1 of 20.
    assert stages(solved("exo", model([0, 9, 9], 18, ends=False))) == [(1, 9), (2, 9)]
    assert stages(solved("exo", model([10, 9, 1], 20, ends=False))) == [(0, 10), (1, 9), (2, 1)]
    heavy = model([1, 1, 1], 2, ends=False)
    heavy = heavy.changed(layers=tuple(each.model_copy(update={"state_memory": 3}) for each in heavy.layers))
    assert "no cycle has sufficient memory" in solved("exo", heavy).reason
    heavy = heavy.changed(types=tuple(kind.model_copy(update={"memory": 2}) for kind in heavy.types))
    assert "2 layers are too few for 3 devices" in solved("exo", heavy).reason


@pytest.mark.parametrize(
    ("memory", "layers", "expected"),
    [
        ((3000, 1000, 6000), 10, [(2, 6), (0, 3), (1, 1)]),  # 0.6, 0.9, 1.0
        ((128, 192, 128), 32, [(1, 13), (0, 9), (2, 10)]),  # 0.42857, 0.71428, 0.99999: the last one goes to the end
    ],
)
def test_exos_ring_cuts_where_its_own_tests_do(memory, layers, expected):
    assert stages(solved("exo_ring", model(memory, layers, ends=False))) == expected


def test_exos_ring_leaves_out_devices_without_a_layer():
    found = solved("exo_ring", model([1000, 1], 4, ends=False))
    assert stages(found) == [(0, 3), (1, 1)]  # int(0.999 * 4) = 3, and the last device goes up to the end
    assert stages(solved("exo_ring", model([1000, 1, 999], 4, ends=False))) == [(0, 2), (2, 1), (1, 1)]


def test_llama_cpp_by_hand():
    # 33 layers with the output: part i / 33 is below 24/56 up to i = 14, below 48/56 up to i = 28.
    assert counted(np.array([24, 24, 8], np.float32), 33) == [15, 14, 4]
    assert stages(solved("llama_cpp", model([24, 24, 8], 32))) == [(0, 1 + 15), (1, 14), (2, 3 + 1)]
    assert counted(np.array([1, 1], np.float32), 2) == [1, 1]  # a part that is a sum belongs to the next device
    assert counted(np.array([0, 1, 0], np.float32), 5) == [0, 5, 0]


def test_llama_cpp_takes_the_devices_as_they_come():
    assert stages(solved("llama_cpp", model([30, 10], 7, ends=False))) == [(0, 6), (1, 1)]
    assert stages(solved("llama_cpp", model([10, 30], 7, ends=False))) == [(0, 2), (1, 5)]


def test_a_tensor_split_goes_before_memory():
    instance = model([30, 30], 7, ends=False)
    assert stages(solved("llama_cpp", instance, split="3,1")) == [(0, 6), (1, 1)]
    assert stages(solved("llama_cpp", instance, split="0,1")) == [(1, 7)]
    for text in ("1", "1,x", "0,0", "-1,2", "1,nan", "1,2,3"):
        with pytest.raises(InputError, match="expected 2 numbers by commas"):
            solved("llama_cpp", instance, split=text)


@pytest.mark.parametrize("method", RULES)
def test_where_one_board_is_all_there_is_every_rule_is_optimal(method):
    instance = model([40], 8)
    assert evaluate(instance, solved(method, instance).plan).objective == solved("label_dp", instance).bound == 8


def test_the_optimum_by_hand_beside_the_rules():
    # Board 0 holds all ten blocks at 4 ticks, board 1 six of them at 1. A cut costs one tick.
    # Six on board 1 and four on board 0: 6 + 16 + 1 = 23. exo: all on board 0. Ring and split by memory 10 : 6.
    instance = model([10, 6], 10, times=[4, 1], ends=False)
    # EdgeShard finds the optimum. Petals: board 0 joins first and holds all, board 1 the first six, where throughput is
    # equal; the way through board 1 and then 0 is the quicker one.
    values = {name: evaluate(instance, solved(name, instance).plan).objective for name in (*RULES, "label_dp")}
    rules = {"exo": 40, "exo_ring": 6 * 4 + 4 + 1, "llama_cpp": 7 * 4 + 3 + 1, "edgeshard": 23, "petals": 23}
    assert values == rules | {"label_dp": 23}
    assert solved("enumerate", instance).bound == 23


@pytest.mark.parametrize("seed", seeds(20, 400))
def test_no_rule_is_better_than_brute_force(seed):
    rng = random.Random(f"language-models-{seed}")
    boards, blocks = rng.randint(1, 3), rng.randint(1, 5)
    memory = [rng.randint(0, 2 * blocks) for _ in range(boards)]
    times = [rng.randint(1, 9) for _ in range(boards)]
    objective = rng.choice(("latency", "bottleneck"))
    instance = model(memory, blocks, times=times, cache=rng.randint(0, 1), objective=objective, mini_batch=3)
    best = solved("enumerate", instance)
    exact = solved("label_dp", instance)
    assert exact.status is best.status
    assert exact.bound == best.bound
    for name in RULES:
        found = solved(name, instance)
        if best.status is Status.INFEASIBLE:
            assert found.plan is None
        elif found.plan is not None:
            assert evaluate(instance, found.plan).objective >= best.bound
        if name == "edgeshard" and objective == "bottleneck" and best.status is not Status.INFEASIBLE:
            assert evaluate(instance, found.plan).objective == best.bound  # over all sets of devices


# EdgeShard's listing: milliseconds of the 34 layers of Llama 2 7B on an Orin NX, an AGX Orin and an RTX 3090. The first
# and the last layer take 0.488 GB, the others 0.754.
LISTED = (
    [
        0.476,
        5.759,
        6.402,
        6.133,
        6.333,
        5.662,
        6.071,
        6.056,
        5.691,
        6.029,
        5.955,
        6.012,
        6.09,
        6.15,
        5.979,
        6.095,
        5.981,
    ]
    + [5.981, 5.84, 6.074, 6.218, 6.052, 5.625, 5.985, 5.912, 6.145, 6.063, 6.027, 6.082, 6.067, 6.019, 6.016, 6.093]
    + [5.482],
    [0.627, 5.498, 5.48, 5.454, 5.402, 5.376, 5.36, 5.439, 5.357, 5.261, 5.207, 5.25, 5.276, 5.27, 5.334, 5.242, 5.288]
    + [5.226, 5.22, 5.16, 5.211, 5.206, 5.167, 5.168, 5.158, 5.229, 5.23, 5.164, 5.199, 5.272, 5.201, 5.304, 5.255]
    + [4.482],
    [
        0.077,
        0.766,
        0.819,
        0.797,
        0.804,
        0.798,
        0.784,
        0.801,
        0.782,
        0.779,
        0.832,
        0.799,
        0.793,
        0.788,
        0.79,
        0.78,
        0.783,
    ]
    + [0.761, 0.815, 0.8, 0.797, 0.788, 0.784, 0.779, 0.781, 0.817, 0.818, 0.798, 0.783, 0.785, 0.783, 0.783, 0.782]
    + [0.648],
)


def listed(card_gb):
    """Two Orin NX, two AGX Orin and a card of so much memory; microseconds, 950 Mbit/s and 2.1 ms a message."""
    places = (0, 0, 1, 1, 2)
    base = model([1] * 5, 34, ends=False)
    message = 4 * 4096 * 4 * 8 / 1000 / 950 + 2.1
    layers = tuple(
        layer.model_copy(update={"output_bytes": round(1e6 * message), "state_memory": 754 if 0 < k < 33 else 488})
        for k, layer in enumerate(base.layers)
    )
    types = tuple(
        kind.model_copy(update={"memory": room, "forward": tuple((round(1000 * each),) for each in LISTED[place])})
        for kind, room, place in zip(base.types, (14000, 14000, 29000, 29000, card_gb * 1000), places, strict=True)
    )
    rates = tuple(tuple(10**9 * (a != b) for b in range(5)) for a in range(5))
    return base.changed(layers=layers, types=types, bandwidth=rates)


@pytest.mark.parametrize(
    ("card_gb", "took_ms", "expected"),
    [(22, 49.0228, [(0, 1), (4, 29), (2, 4)]), (30, 29.1249, [(0, 1), (4, 33)])],
)
def test_edgeshards_listing_on_its_own_data(card_gb, took_ms, expected):
    # What algorithm/7B_partition_latency.py gives with all links of 950 Mbit/s and no way back, from the source node.
    instance = listed(card_gb)
    found = solved("edgeshard", instance, source="D0")
    assert stages(found) == expected
    assert evaluate(instance, found.plan).objective == pytest.approx(1000 * took_ms, abs=2)
    assert solved("label_dp", instance).bound <= evaluate(instance, found.plan).objective


def test_edgeshards_path_that_comes_back_has_no_plan():
    # With 24 GB its path is node 0, then 31 layers on the card, one on an AGX Orin, and the last one on the card again.
    found = solved("edgeshard", listed(24), source="D0")
    assert found.plan is None
    assert "comes back" in found.reason
    with pytest.raises(InputError, match="expected a device"):
        solved("edgeshard", listed(24), source="D9")


def test_edgeshard_forgets_the_path_that_leaves_more_memory():
    # Of all seeds of this shape one where the kept path is worse than the optimum, or leads nowhere.
    worse = 0
    for seed in range(60):
        rng = random.Random(seed)
        instance = model([rng.randint(2, 6) for _ in range(3)], 8, times=[rng.randint(1, 9) for _ in range(3)])
        best, found = solved("label_dp", instance), solved("edgeshard", instance)
        if best.plan is not None:
            worse += found.plan is None or evaluate(instance, found.plan).objective > best.bound
    assert worse > 0


def test_petals_by_hand():
    # Ends take nothing. Board 0 joins first and holds blocks 1 to 4; board 1 the first three where nobody is, 5 to 7,
    # board 2 the last three. Board 1 does 5 to 7, up to its end, board 2 does 8: 4 + 3 + 1 ticks and two hops.
    instance = model([4, 3, 3], 8)
    found = solved("petals", instance)
    assert stages(found) == [(0, 1 + 4), (1, 3), (2, 1 + 1)]
    assert found.notes["held"] == [(0, 4), (4, 7), (5, 8)]
    assert evaluate(instance, found.plan).objective == 8 + 2
    short = solved("petals", model([4, 3], 8))
    assert short.plan is None
    assert "a block is on no server" in short.reason


def test_petals_prefers_a_quick_server_that_overlaps():
    # Both hold everything; the quick one is taken whole.
    assert stages(solved("petals", model([9, 9], 8, times=[5, 1]))) == [(1, 10)]


def told(instance, method="label_dp"):
    return dict(PROBLEM.describe(instance, solved(method, instance).plan).notes)


def test_plans_are_told_as_the_programs_take_them():
    instance = model([10, 6], 10, times=[4, 1])
    # Six blocks on the quick board, four on the other one; the head comes last, wherever that is.
    plan = solved("label_dp", instance).plan
    order = [f"D{stage.devices[0]}" for stage in plan.stages]
    counts = {"D0": 4, "D1": 6}
    blocks = [counts[name] for name in order]
    parts = [*blocks[:-1], blocks[-1] + 1]
    assert told(instance) == {
        "llama.cpp": f"--device {','.join(order)} --tensor-split {parts[0]},{parts[1]}",
        "exo": f"{order[0]} [0, {blocks[0]}); {order[1]} [{blocks[0]}, 10) of 10 layers",
    }
    assert told(model([10, 6], 10, ends=False)) == {}


@pytest.mark.parametrize("seed", seeds(20, 200))
def test_a_tensor_split_leads_llama_cpp_to_the_plan(seed):
    rng = random.Random(f"tensor-split-{seed}")
    boards, blocks = rng.randint(1, 6), rng.randint(6, 90)
    ends = sorted(rng.sample(range(1, blocks), boards - 1))
    parts = [b - a for a, b in zip([0, *ends], [*ends, blocks], strict=True)]
    parts[-1] += 1  # the output
    assert counted(np.array(parts, np.float32), blocks + 1) == parts
