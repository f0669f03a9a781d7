"""Instances of the FPGA-GPU partition: lowering, resources by hand, expansion, library."""

import numpy as np
import pytest

from mapgap.catalogue.files import library_files, load_instance
from mapgap.core import InputError
from mapgap.instances.facts import load_network
from mapgap.instances.fpga_gpu_partition import LIBRARY
from mapgap.instances.fpga_gpu_partition.compact import Compact, Measured, build, expand
from mapgap.instances.fpga_gpu_partition.cost_model import (
    fabric,
    load_fit,
    m20k_blocks,
    multipliers,
    weights,
)
from mapgap.instances.fpga_gpu_partition.lowering import graph_of
from mapgap.problems.fpga_gpu_partition import PROBLEM, Plan

NETWORKS = ("squeezenet1_0", "squeezenet1_1", "mobilenetv2_x0_5", "shufflenetv2_x0_5", "resnet18", "vgg16")


def shape_of(network, name):
    return next(shape for shape in graph_of(network).shapes if shape.row.name == name)


def layer_of(instance, name):
    return next(layer for layer in instance.layers if layer.name == name)


def option_of(instance, layer, name):
    return layer_of(instance, layer).option(name)


# --- lowering -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [*NETWORKS, "tinyyolov3", "efficientnet_b1", "alexnet"])
def test_lowering_keeps_all_work_and_only_reads_backwards(name):
    network, graph = load_network(name), graph_of(name)
    assert sum(shape.row.macs for shape in graph.shapes) == network.macs
    assert all(tensor.layer < index for index, shape in enumerate(graph.shapes) for tensor in shape.reads)
    assert [block.first for block in graph.blocks[1:]] == [block.last + 1 for block in graph.blocks[:-1]]
    assert graph.blocks[-1].last == len(graph.shapes) - 1


@pytest.mark.parametrize(
    ("network", "kind", "count"),
    [("squeezenet1_0", "fire", 8), ("mobilenetv2_x0_5", "bottleneck", 17), ("shufflenetv2_x0_5", "unit", 16)],
)
def test_number_of_modules_is_that_of_the_architecture(network, kind, count):
    assert sum(block.kind == kind for block in graph_of(network).blocks) == count


def test_channel_split_makes_two_parts_of_one_tensor():
    """ShuffleNetV2: 48 channels of 28 x 28; one half enters the branch, the other goes to the concatenation."""
    half = 24 * 28 * 28
    names = ("s2b0.cat_shuffle", "s2b1.r.pw1", "s2b1.cat_shuffle")
    before, first, last = (shape_of("shufflenetv2_x0_5", name) for name in names)
    assert before.parts == [half, half]
    assert [(t.part, t.elements) for t in first.reads] == [(1, half)]
    assert [(t.part, t.elements) for t in last.reads] == [(0, half), (0, half)]


def test_pooling_shrinks_the_tensor_before_it():
    """SqueezeNet 1.0 pools behind fire4, 54 x 54 to 27 x 27."""
    assert shape_of("squeezenet1_0", "fire4.cat").parts == [256 * 27 * 27]
    assert [t.elements for t in shape_of("squeezenet1_0", "fire4.cat").reads] == [128 * 54 * 54] * 2


def test_longer_branch_is_issued_first():
    """In a reduction unit the right branch (three layers) starts before the left one (two)."""
    graph = graph_of("shufflenetv2_x0_5")
    unit = next(block for block in graph.blocks if block.name == "s2b0")
    names = [shape.row.name.removeprefix("s2b0.") for shape in graph.shapes_of(unit)]
    assert names == ["r.pw1", "l.dw", "r.dw", "l.pw", "r.pw2", "cat_shuffle"]


# --- resources ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("network", "layer", "count"),
    [
        ("squeezenet1_0", "fire2.e3", 16 * 64 * 9),
        ("squeezenet1_0", "fire2.sq", 96 * 16),
        ("mobilenetv2_x0_5", "b1.dw", 48 * 9),  # depthwise: one filter per channel
        ("mobilenetv2_x0_5", "b1.exp", 8 * 48),
        ("shufflenetv2_x0_5", "s2b0.r.pw1", 24 * 24),
        ("vgg16", "fc6", 25088 * 4096),
    ],
)
def test_multipliers_are_the_weights_at_fold_1(network, layer, count):
    shape = shape_of(network, layer)
    assert weights(shape) == multipliers(weights(shape), 1) == count
    assert multipliers(count, 4) == -(-count // 4)


def test_weights_are_the_parameters_less_biases():
    for name in NETWORKS:
        for shape in graph_of(name).shapes:
            if shape.kind != "join":
                assert shape.row.params - weights(shape) in (0, shape.row.cout), shape.row.name


def test_fabric_holds_figure_1s_largest_layer_but_not_its_double():
    """Sec. III-B: 64 filters of 5x5 on 3 channels are the most that fits; the next size tried would be 128."""
    assert 64 * 5 * 5 * 3 == 4800 <= fabric().multipliers == 4800 + 2 * 192 < 128 * 5 * 5 * 3
    assert fabric().m20k == 587


def test_no_fire_module_fits_literally():
    """0 of 8 whole 3x3 expansions, 2 of 8 halves: Table I was not measured with literal direct hardware mapping."""
    expansions = [shape for shape in graph_of("squeezenet1_0").shapes if shape.row.name.endswith(".e3")]
    assert sum(weights(shape) <= fabric().multipliers for shape in expansions) == 0
    halves = [weights(shape, channels_in=shape.channels_in // 2) for shape in expansions]
    assert sum(half <= fabric().multipliers for half in halves) == 2


def test_line_buffers_by_hand():
    """3x3 on 16 channels of width 54: two rows; 6,912 bits fit one block, but 128 bits per cycle need four."""
    assert m20k_blocks(shape_of("squeezenet1_0", "fire2.e3"), 16) == 2 * 4
    # VGG-16's conv1_2: 224 * 64 * 8 bits = 5.6 blocks, 512 bits per cycle = 12.8 blocks per row.
    assert m20k_blocks(shape_of("vgg16", "conv1_2"), 64) == 2 * 13
    assert m20k_blocks(shape_of("squeezenet1_0", "fire2.sq"), 96) == 0


# --- expansion ------------------------------------------------------------------------------------------------------


def test_options_of_an_expansion_by_hand():
    """fire2.e3: 16 to 64 channels, 54 x 54. 8 of 16 input channels at fold 1: 4,608 multipliers, 54*54*8 bytes in."""
    instance, model = build("squeezenet1_0", 4), load_fit("fit1")
    option = option_of(instance, "fire2.e3", "in 8/16 f1")
    assert (option.multipliers, option.channels, option.fold, option.split) == (4608, 8, 1, "input")
    assert option.fpga_reads == option.gpu_reads == (54 * 54 * 8,)
    assert option.fpga_makes == option.gpu_makes == 54 * 54 * 64  # partial sums of the whole output
    assert option.fpga_ticks == np.ceil(54 * 54 / model.clock_mhz)
    assert option.gpu_ticks == np.ceil(model.launch_us + 26_873_856 / 2 / (model.conv_gmacs * 1e3))
    made = option_of(instance, "fire2.e3", "out 32/64 f2")
    assert made.multipliers == 16 * 32 * 9 // 2
    assert made.fpga_reads == (54 * 54 * 16,)
    assert made.fpga_makes == 54 * 54 * 32
    assert option_of(instance, "fire2.e3", "fpga f1") is None  # 9,216 multipliers
    assert option_of(instance, "fire2.e3", "fpga f2").multipliers == 4608


def test_stride_streams_every_input_pixel():
    """b1.dw halves 112 x 112: the FPGA takes a cycle per input pixel, not per output pixel."""
    option = option_of(build("mobilenetv2_x0_5", 4), "b1.dw", "fpga f4")
    assert option.fpga_ticks == np.ceil(112 * 112 / load_fit("fit1").clock_mhz)


def test_split_layers_are_a_choice():
    few, many = build("mobilenetv2_x0_5", 1), build("mobilenetv2_x0_5", 1, splits="all")
    assert not any(o.kind == "split" for o in layer_of(few, "b1.exp").options)
    kinds = {o.split for layer in many.layers for o in layer.options if o.split}
    assert kinds == {"input", "output", "channel"}
    assert option_of(many, "b1.dw", "ch 24/48 f1").multipliers == 24 * 9


def test_bandwidth_fabric_and_measured_values_replace_the_models():
    slow = build("squeezenet1_0", 1, bandwidth_gbs=0.5, link_us=10.0)
    assert (slow.link.bytes_per_second, slow.link.setup_ticks) == (5 * 10**8, 10)
    small = build("squeezenet1_0", 4, multipliers=100, m20k=4)
    assert small.fabric.multipliers == 100
    assert all(o.multipliers <= 100 and o.m20k <= 4 for layer in small.layers for o in layer.options)
    measured = (Measured(layer="fire2.sq", option="gpu", gpu_us=7, gpu_uj=9),)
    option = option_of(build("squeezenet1_0", 1, measured=measured), "fire2.sq", "gpu")
    assert (option.gpu_ticks, option.gpu_energy) == (7, 9)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"network": "resnet81"}, "network: expected one of .* found 'resnet81'"),
        ({"module": "fire99"}, "module: expected one of conv1, fire2, .*; found 'fire99'"),
        ({"cost_model": "fit99"}, "cost_model: expected one of fit1, .*; found 'fit99'"),
        (
            {"measured": (Measured(layer="x", option="gpu", gpu_us=1),)},
            r"measured\[0\]: expected an option .* found 'gpu'",
        ),
    ],
)
def test_what_cannot_be_expanded_is_named(fields, expected):
    with pytest.raises(InputError, match=expected):
        expand(Compact(**{"name": "x", "network": "squeezenet1_0", **fields}))


def test_single_unit_keeps_the_halves_of_its_input_apart():
    instance = load_instance("dhm_shufflenetv2_x0_5_s2b1")
    assert instance.layers[0].outputs == (18816, 18816)
    assert [o.name for o in instance.layers[0].options] == ["gpu"]
    assert (instance.layers[1].reads[0].source, instance.layers[1].reads[0].part) == (0, 1)


# --- library --------------------------------------------------------------------------------------------------------


def test_every_library_file_expands():
    names = [name for name, path in library_files().items() if path.parent == LIBRARY.folder]
    papers = ("squeezenet", "mobilenetv2_x0_5", "shufflenetv2_x0_5")
    assert {f"dhm_{network}_fold{fold}" for network in papers for fold in (1, 4)} <= set(names)
    for name in names:
        instance = load_instance(name)
        assert instance.name == name
        assert "ublished" in instance.source
        assert PROBLEM.diagnose(instance) == []
        alone = PROBLEM.evaluate(instance, Plan(options=tuple("gpu" for _ in instance.layers)))
        assert alone.feasible
        assert alone.terms["transfers"] == 0
