"""Instances of sub-operation mapping: lowering of networks, latency models, expansion, library files, generators."""

import itertools
import math

import numpy as np
import pytest
from experiments import build

from mapgap.catalogue.files import library_files, load_instance
from mapgap.core import ACTIVITY_LIMIT, InputError
from mapgap.instances.facts import load_network
from mapgap.instances.suboperation_mapping import LIBRARY, compact
from mapgap.instances.suboperation_mapping.accelerators import (
    IPS,
    Array2D,
    Board,
    best_array,
    board,
    cycles,
    flops,
    nanoseconds,
    traffic,
)
from mapgap.instances.suboperation_mapping.compact import Compact, expand
from mapgap.instances.suboperation_mapping.network import blocks_of
from mapgap.problems.suboperation_mapping import PROBLEM
from mapgap.problems.suboperation_mapping.instance import operations
from mapgap.problems.suboperation_mapping.lowered.arrays import lower

MTRAIN = ("alexnet", "vgg16", "resnet18", "tinyyolov3", "resnet56")


def layer_of(instance, name):
    return next(layer for layer in instance.layers if layer.name == name)


def edges_of(instance, name):
    """Producer names to bytes per sample."""
    return {instance.layers[edge.source].name: edge.bytes for edge in layer_of(instance, name).inputs}


def block_of(network, name):
    return next(block for block in blocks_of(network) if block.row.name == name)


# --- lowering -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [*MTRAIN, "mobilenetv2", "squeezenet1_1", "shufflenetv2_x0_5", "efficientnet_b1"])
def test_absorbing_loses_no_parameter_and_no_work(name):
    network, blocks = load_network(name), blocks_of(name)
    assert sum(block.row.params for block in blocks) == network.params
    split = [row for row in network.rows if row.type in ("conv", "fc")]
    assert sum(block.row.macs for block in blocks) == sum(row.macs for row in split)
    assert all(source < index for index, block in enumerate(blocks) for source in block.reads)


def test_pooled_and_unpooled_readers_of_one_tensor_pay_for_what_crosses():
    """TinyYOLOv3: conv5 reads conv4's normalised output pooled to 13 x 13, conv11 reads it at 26 x 26."""
    instance = build(1, "tinyyolov3", 3.0)
    assert edges_of(instance, "conv5") == {"conv4.bn": 4 * 256 * 13 * 13}
    # The concatenation has no operation: conv11 reads the up-sampled part and the skipped one.
    assert edges_of(instance, "conv11") == {"conv4.bn": 4 * 256 * 26 * 26, "conv10.bn": 4 * 128 * 26 * 26}
    assert edges_of(instance, "conv10") == {"conv7.bn": 4 * 256 * 13 * 13}
    assert layer_of(instance, "conv11").input_bytes == 4 * 384 * 26 * 26


def test_addition_belongs_to_its_latest_producer():
    instance = build(1, "resnet18", 3.0)
    identity = 4 * 64 * 56 * 56
    # conv1.bn is read through the 3 x 3 pool, by the first convolution and by the addition of the first block.
    assert edges_of(instance, "s1b0.c1") == {"conv1.bn": identity}
    assert edges_of(instance, "s1b0.c2.bn") == {"conv1.bn": identity, "s1b0.c2": identity}
    assert edges_of(instance, "s1b1.c1") == {"s1b0.c2.bn": identity}
    # With a projection the latest producer is the projection's normalisation.
    half = 4 * 128 * 28 * 28
    assert edges_of(instance, "s2b0.ds.bn") == {"s2b0.c2.bn": half, "s2b0.ds": half}
    assert edges_of(instance, "s2b1.c1") == {"s2b0.ds.bn": half}
    assert edges_of(instance, "fc") == {"s4b1.c2.bn": 4 * 512}  # behind the global pool


def test_padded_short_cut_of_resnet56_crosses_in_its_new_size():
    instance = build(1, "resnet56", 3.0)
    assert edges_of(instance, "s2b0.c2.bn") == {"s1b8.c2.bn": 4 * 32 * 16 * 16, "s2b0.c2": 4 * 32 * 16 * 16}


def test_part_of_a_pooled_concatenation_shrinks_in_proportion():
    """SqueezeNet 1.1: pool3 follows the concatenation of two 64-channel parts, 55 x 55 to 27 x 27."""
    reads = block_of("squeezenet1_1", "fire4.sq").reads
    assert list(reads.values()) == [64 * 27 * 27] * 2


def test_only_layers_behind_the_first_have_bp():
    instance = build(1, "resnet18", 3.0)
    first = instance.layers[0]
    assert (first.network_input_bytes, first.inputs, first.bp) == (4 * 3 * 224 * 224, (), ())
    assert all(layer.bp for layer in instance.layers[1:])


def test_flops_count_three_passes_but_no_bp_of_the_first_layer():
    network = load_network("resnet18")
    assert build(1, "resnet18", 3.0).flops == 2 * 64 * (3 * network.macs - network.rows[0].macs)


# --- latency models -------------------------------------------------------------------------------------------------


def test_ef_train_formula_by_hand():
    """VGG-16 conv1_1 (3 to 64 channels, 224 x 224, 3 x 3) on 16 x 16 tiles: 4 * 1 * 224^2 * 9 cycles per sample."""
    block = block_of("vgg16", "conv1_1")
    assert cycles(block, "fp", "ef_train", 16, 16, 1) == 4 * 1 * 224 * 224 * 9
    assert cycles(block, "fp", "ef_train", 16, 16, 5) == 5 * 4 * 224 * 224 * 9
    # 64 x 3 channels on 48 x 2 tiles: 2 * 2 forward; BP exchanges the channels: 1 * 32.
    assert cycles(block, "wu", "ef_train", 48, 2, 1) == 2 * 2 * 224 * 224 * 9
    assert cycles(block, "bp", "ef_train", 48, 2, 1) == 1 * 32 * 224 * 224 * 9
    # 1,806,336 cycles at 100 MHz and 94.0% are 19.216... ms; DRAM (13.4 MB at 17.06 GB/s) takes under 1 ms.
    device = Board("ZCU102", 1280, 10**9, 17060, 100)
    ns = nanoseconds(block, "fp", Array2D("ef_train", (16, 16)), device, 1)
    assert ns == math.ceil(1_806_336 * 10 * 1000 / 940)


def test_fully_connected_layer_flattens_its_input():
    """VGG-16 fc6: 4096 outputs, 512 * 7 * 7 inputs."""
    block = block_of("vgg16", "fc6")
    assert cycles(block, "fp", "ef_train", 16, 16, 3) == 3 * 256 * 1568
    assert cycles(block, "bp", "ef_train", 16, 16, 3) == 3 * 1568 * 256


def test_grouped_convolution_works_group_by_group():
    """MobileNetV2's depth-wise layers have one input channel per group: only one multiplier per group is busy."""
    block = next(b for b in blocks_of("mobilenetv2") if b.row.groups > 1)
    row = block.row
    assert cycles(block, "fp", "ef_train", 16, 16, 1) == row.groups * row.height * row.width * row.kernel**2


def test_darkfpga_is_a_step_function_of_the_share():
    block = block_of("vgg16", "conv3_1")
    table = cycles(block, "fp", "darkfpga", 8, 32, np.arange(1, 65))
    assert len(set(table.tolist())) == 8
    assert table[0] == table[7] < table[8]
    assert table[63] == 8 * table[0] == 8 * 8 * 128 * 56 * 56 * 9  # 8 tiles * ceil(256/32) * 128 inputs


def test_normalisation_is_bound_by_dram():
    """ResNet-18 conv1.bn: one tensor of 802,816 words in and one out in FP; loss, stored input and loss in BP."""
    block = block_of("resnet18", "conv1.bn")
    tensor = 4 * 802_816
    assert traffic(block, "fp", 64) == 64 * 2 * tensor + 4 * 128
    assert traffic(block, "bp", 64) == 64 * 3 * tensor + 4 * 128
    ns = nanoseconds(block, "fp", Array2D("ef_train", (16, 16)), board("ZCU102"), 64)
    assert ns == math.ceil((64 * 2 * tensor + 4 * 128) / 17.06)


def test_weights_of_a_small_share_are_bound_by_dram():
    """fc6 of VGG-16 has 411 MB of weights: one sample is limited by reading them, not by the array."""
    block, device = block_of("vgg16", "fc6"), board("ZCU102")
    ns = int(nanoseconds(block, "fp", Array2D("ef_train", (22, 22)), device, 1))
    assert ns == math.ceil(int(traffic(block, "fp", 1)) / 17.06)


def test_ef_train_reaches_its_published_throughput():
    """46.99 GFLOPS on the ZCU102 (16 x 16 array at 100 MHz, VGG-16): the figure that fixed the efficiency."""
    blocks, device = blocks_of("vgg16"), Board("ZCU102", 1280, 4 * 10**9, 17060, 100)
    array = Array2D("ef_train", (16, 16))
    total = sum(int(nanoseconds(block, phase, array, device, 16)) for block in blocks for phase in block.phases)
    assert flops(blocks, 16) / total == pytest.approx(46.99, rel=0.001)


@pytest.mark.parametrize("ip", IPS)
def test_no_pair_of_tiles_beats_the_enumeration(ip):
    """All pairs on a small board: EF-Train's choice is the best, DarkFPGA's keeps 90% with the smallest batch tile."""
    blocks, device, batch = blocks_of("lenet5"), Board("tiny", 60, 10**9, 10**6, 100), 6

    def total(first, second):
        array = Array2D(ip, (first, second))
        return sum(int(nanoseconds(b, p, array, device, batch)) for b in blocks for p in b.phases)

    pairs = {(a, b): total(a, b) for a, b in itertools.product(range(1, 13), repeat=2) if a * b <= 12}
    array, ns = best_array(blocks, device, batch, ip)
    assert pairs[array.tiles] == ns
    best = min(ns for (first, _), ns in pairs.items() if ip == "ef_train" or first <= batch)
    if ip == "ef_train":
        assert ns == best
    else:
        assert ns * 90 <= best * 100
        assert all(other * 90 > best * 100 for (first, _), other in pairs.items() if first < array.tiles[0])


# --- expansion ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cluster", [1, 2, 3])
@pytest.mark.parametrize("network", MTRAIN)
def test_tables_never_fall_with_the_share(network, cluster):
    instance = build(cluster, network, 3.0)
    for layer in instance.layers:
        for table in (layer.fp, layer.bp, layer.wu):
            for row in table:
                assert list(row) == sorted(row)
                assert row[0] > 0


def test_tick_is_the_finest_power_of_ten_that_the_validator_accepts():
    for instance in (build(1, "resnet18", 3.0), build(2, "vgg16", 0.125)):
        finer = instance.model_dump(by_alias=True)
        finer["tick_ns"] //= 10
        for layer in finer["layers"]:
            for phase in ("fp", "bp", "wu"):  # a finer tick has at least 10 times as many, less the rounding up
                layer[phase] = tuple(tuple(10 * (t - 1) for t in row) for row in layer[phase])
        with pytest.raises(ValueError, match="tick_ns"):
            type(instance).model_validate(finer)


def test_cluster_and_devices_are_two_ways_to_say_the_same():
    devices = Compact(name="x", network="alexnet", devices=("U50LV", "U30"), batch=64, bandwidth_gbs=3.0)
    matrix = Compact(
        name="y", network="alexnet", devices=("U50LV", "U30"), batch=64, bandwidth_gbs=((0.0, 3.0), (3.0, 0.0))
    )
    named = build(1, "alexnet", 3.0)
    assert named.content_hash == expand(devices).content_hash == expand(matrix).content_hash
    assert named.batch == 64
    assert named.accelerators[0].memory == 8 * 10**9 // 1024
    assert [a.pes for a in named.accelerators] == [5952, 3456]
    assert build(2, "alexnet", 3.0).batch == 16
    assert named.content_hash != build(1, "alexnet", 3.0, batch=32).content_hash


def test_ip_can_be_forced():
    for ip, title in (("ef_train", "EF-Train"), ("darkfpga", "DarkFPGA")):
        forced = Compact(name="x", network="alexnet", cluster=1, bandwidth_gbs=3.0, ip=ip)
        assert [a.name for a in expand(forced).accelerators] == [f"U50LV ({title})", f"U30 ({title})"]


def test_equal_boards_are_numbered():
    twins = Compact(name="x", network="alexnet", devices=("U30", "U30"), batch=4, bandwidth_gbs=1.0)
    first, second = (a.name for a in expand(twins).accelerators)
    assert (first[:5], second[:5]) == ("U30 1", "U30 2")


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"network": "resnet81"}, "network: expected one of .* found 'resnet81'; did you mean 'resnet18'"),
        ({"network": "bert_small"}, "network: expected a convolutional network, found 'bert_small'"),
        ({"cluster": None}, "cluster: expected either cluster or devices, found neither"),
        ({"devices": ("U30",)}, "cluster: expected either cluster or devices, found both"),
        ({"cluster": None, "batch": 4, "devices": ()}, "devices: expected at least one FPGA, found none"),
        ({"cluster": None, "batch": 4, "devices": ("U31",)}, r"devices\[0\]: expected one of .*; found 'U31'"),
        ({"cluster": None, "devices": ("U30",)}, "batch: expected a number of samples .*, found none"),
        ({"bandwidth_gbs": 0.0}, "bandwidth_gbs: expected a positive number of GB/s, found 0.0"),
        ({"bandwidth_gbs": ((1.0,),)}, "bandwidth_gbs: expected a 2 x 2 matrix or one number"),
        ({"bandwidth_gbs": ((1.0, -1.0), (1.0, 1.0))}, r"bandwidth_gbs\[0\]\[1\]: expected a positive number"),
    ],
)
def test_what_cannot_be_expanded_is_named(fields, expected):
    wrong = Compact(**{"name": "x", "network": "alexnet", "cluster": 1, "bandwidth_gbs": 3.0, **fields})
    with pytest.raises(InputError, match=expected):
        expand(wrong)


def test_layers_that_fit_no_dram_are_named(monkeypatch):
    """fc6 of VGG-16 needs 822 MB for weights and gradients; a board of 0.5 GB cannot hold it."""
    monkeypatch.setattr(compact, "board", lambda name: Board(name, 900, 5 * 10**8, 12500, 150))
    with pytest.raises(InputError, match=r"network: expected layers .* found vgg16's fc6 with 822116352 bytes"):
        build(2, "vgg16", 3.0)


def test_all_findings_come_at_once():
    with pytest.raises(InputError) as error:
        build(1, "no", -1.0)
    assert [finding.location for finding in error.value.findings] == [("network",), ("bandwidth_gbs",)]
    with pytest.raises(InputError) as error:
        expand(Compact(name="x", network="alexnet", devices=("U31", "U32"), bandwidth_gbs=-1.0))
    places = [finding.location for finding in error.value.findings]
    assert places == [("devices", 0), ("devices", 1), ("batch",), ("bandwidth_gbs",)]


# --- library files --------------------------------------------------------------------------------------------------


@pytest.mark.in_turn
def test_every_library_file_expands_and_hashes_deterministically():
    names = [name for name, path in library_files().items() if path.parents[1].name == "suboperation_mapping"]
    assert len(names) >= 104
    for name in names:
        instance = load_instance(name)
        assert instance.name == name
        assert "ublished" in instance.source
        assert instance.tags[0] == "mtrain"
        assert PROBLEM.diagnose(instance) == []
        if name.endswith("_3gbs"):
            assert load_instance(name).content_hash == instance.content_hash
            assert type(instance).model_validate_json(instance.model_dump_json(by_alias=True)) == instance


def test_partitions_of_the_batch():
    """33, 30 and 374; the paper prints 33, 33 and 385, the partitions of B + 1 (rule 8)."""

    def partitions(total, parts):
        """Partitions of ``total`` into at most ``parts`` parts, by p(n, k) = p(n, k - 1) + p(n - k, k)."""
        if total < 0 or parts == 0:
            return int(total == 0)
        return partitions(total, parts - 1) + partitions(total - parts, parts)

    found = [(build(c, "alexnet", 3.0).batch, len(build(c, "alexnet", 3.0).accelerators)) for c in (1, 2, 3)]
    assert found == [(64, 2), (16, 3), (64, 3)]
    assert [partitions(b, n) for b, n in found] == [33, 30, 374]
    assert [partitions(b + 1, n) for b, n in found] == [33, 33, 385]


def test_example_of_figure_5_has_twelve_operations():
    instance = load_instance("mtrain_example_fig5")
    assert len(operations(instance, (2, 1))) == 12
    assert len(operations(instance, (3, 0))) == 7  # Fig. 1 (a): l1 to l7, no share split off


def best_mapping(instance, ratio):
    """Smallest makespan over all mappings and orders of a ratio, and FP locations that attain it."""
    lowered = lower(instance, ratio)
    preds = [set(lowered.predecessors(o)) for o in range(lowered.n)]
    orders = [
        np.array(order, np.int64)
        for order in itertools.permutations(range(lowered.n))
        if all(order.index(p) < position for position, o in enumerate(order) for p in preds[o])
    ]
    best, where = None, set()
    for location in itertools.product(range(lowered.accelerators), repeat=lowered.n):
        for order in orders:
            makespan = lowered.makespan(np.array(location, np.int64), order)
            if best is None or makespan < best:
                best, where = makespan, set()
            if makespan == best:
                where.add(tuple(location[o] for o, operation in enumerate(lowered.operations) if operation[0] == "FP"))
    return best, where


def test_example_of_figure_6():
    """4:2 is best with all of FP on accelerator 1, 5:1 uses both and is shorter (the figure's two statements)."""
    instance = load_instance("mtrain_example_fig6")
    assert best_mapping(instance, (4, 2)) == (26, {(0, 0, 0)})
    best, where = best_mapping(instance, (5, 1))
    assert best == 24
    assert where == {(0, 1, 0)}


# --- generators -----------------------------------------------------------------------------------------------------


def test_tiny_instances_are_small_enough_to_enumerate():
    for seed in range(200):
        instance = LIBRARY.generate("tiny", seed)
        n, batch = len(instance.accelerators), instance.batch
        for ratio in itertools.product(range(batch + 1), repeat=n):
            if sum(ratio) == batch:  # at most 3^7 mappings of one ratio
                assert len(operations(instance, ratio)) <= (7 if n == 3 else 8), seed


def test_generators_are_seeded_and_varied():
    for name in LIBRARY.families:
        instances = [LIBRARY.generate(name, seed) for seed in range(60)]
        again = [LIBRARY.generate(name, seed) for seed in range(60)]
        assert [i.content_hash for i in instances] == [i.content_hash for i in again], name
        assert len({i.content_hash for i in instances}) == 60
        assert {layer.kind for i in instances for layer in i.layers} == {"split", "fused"}
    shapes = [LIBRARY.generate("tiny", seed) for seed in range(200)]
    assert {len(i.accelerators) for i in shapes} == {1, 2, 3}
    assert any(len(layer.inputs) > 1 for i in shapes for layer in i.layers)
    assert any(len(set(i.bandwidth[0][1:] + i.bandwidth[1][:1])) > 1 for i in shapes if len(i.accelerators) > 1)
    small = [LIBRARY.generate("small", seed) for seed in range(40)]
    assert all(5 <= len(i.layers) <= 8 and 4 <= i.batch <= 8 and len(i.accelerators) in (2, 3) for i in small)


def test_generated_tables_never_fall_with_the_share():
    for name, seed in itertools.product(LIBRARY.families, range(30)):
        instance = LIBRARY.generate(name, seed)
        assert all(list(row) == sorted(row) for la in instance.layers for t in (la.fp, la.bp, la.wu) for row in t)


def test_limits_are_far_from_what_solvers_get_wrong():
    """All compute of the largest library instances stays below 2^30 ticks."""
    instance = load_instance("mtrain_scale_8fpga_resnet18_0p5gbs")
    total = sum(max(max(row) for row in table) for la in instance.layers for table in (la.fp, la.bp, la.wu) if table)
    assert total < ACTIVITY_LIMIT
