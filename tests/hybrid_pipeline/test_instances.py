"""Instances of hybrid pipeline planning: lowering, profiles, expansion, failure cases, library files."""

import json

import numpy as np
import pytest

from mapgap.catalogue.files import load_instance
from mapgap.core import InputError
from mapgap.instances.expanding import numbered
from mapgap.instances.facts import load_network
from mapgap.instances.hybrid_pipeline import LIBRARY
from mapgap.instances.hybrid_pipeline.compact import Compact, expand
from mapgap.instances.hybrid_pipeline.network import WORD, crossing, operators
from mapgap.instances.hybrid_pipeline.profiles import IMAGES, TABLE_1_BATCH, nanoseconds, over_roofline
from mapgap.instances.published_numbers import load_published

CIFAR = {"network": "mobilenetv2_cifar", "mini_batch": 256, "micro_batch": 16, "bandwidth_mbps": 100.0}


def compact(**fields):
    return Compact(name="x", **(CIFAR | fields))


def test_parameters_are_the_published_megabytes():
    """[26.104, 8.947, 94.852] MB of fp32 parameters with 10, 10 and 100 classes."""
    printed = load_published("asteroid")["params_mb"]
    names = ("efficientnet_b1_cifar", "mobilenetv2_cifar", "resnet50")
    found = [WORD * sum(layer.params for layer in operators(name)) / 1e6 for name in names]
    assert found == pytest.approx(printed, abs=1e-3)


def test_bert_without_embeddings_and_pooler_has_the_56_layers_of_the_paper():
    assert len(operators("bert_small")) == load_published("asteroid")["layers_bert"]


def test_a_cut_inside_a_residual_block_carries_the_shortcut():
    """ResNet-50, first block: behind c1 (64 x 56 x 56) the block input (64 x 56 x 56) crosses too: 2 x 200704 x 4."""
    names = [layer.name for layer in operators("resnet50")]
    sizes = crossing("resnet50")
    assert sizes[names.index("s1b0.c1")] == 2 * 200704 * 4
    assert sizes[names.index("maxpool")] == 200704 * 4  # no shortcut is open before the first block
    assert sizes[-1] == 0


def test_layer_sequences_keep_all_work():
    for name in ("efficientnet_b1_cifar", "mobilenetv2_cifar"):
        layers, network = operators(name), load_network(name)
        assert sum(layer.macs for layer in layers) == network.macs
        assert sum(layer.params for layer in layers) == network.params


@pytest.mark.parametrize(
    ("network", "device", "epoch_s"),
    [
        ("efficientnet_b1_cifar", "Nano", 26.7 * 60),
        ("efficientnet_b1_cifar", "TX2", 11.2 * 60),
        ("mobilenetv2_cifar", "Nano", 22 * 60),
        ("mobilenetv2_cifar", "TX2", 8.5 * 60),
        ("resnet50", "Nano", 3.48 * 3600),
        ("resnet50", "TX2", 1.14 * 3600),
    ],
)
def test_profiles_reproduce_table_1_and_stay_above_the_roofline(network, device, epoch_s):
    forward, backward = nanoseconds(network, device, TABLE_1_BATCH)
    epoch_ns = (forward[:, -1].sum() + backward[:, -1].sum()) * IMAGES / TABLE_1_BATCH
    assert epoch_ns / 1e9 == pytest.approx(epoch_s, rel=1e-9)
    assert over_roofline(network, device) >= 1


def test_profiles_saturate_and_order_the_boards():
    for network in ("efficientnet_b1_cifar", "mobilenetv2_cifar", "resnet50", "bert_small"):
        times = {d: sum(nanoseconds(network, d, 32)) for d in ("Nano", "TX2", "NX")}
        assert (times["Nano"].sum(axis=0) > times["TX2"].sum(axis=0)).all()
        assert (times["TX2"].sum(axis=0) > times["NX"].sum(axis=0)).all()
        per_sample = times["Nano"].sum(axis=0) / np.arange(1, 33)
        assert (np.diff(per_sample) < 0).all()  # a small share uses a device badly (Fig. 6)


def test_expansion_has_table_6_devices_and_mbit_as_bytes():
    instance = expand(compact(cluster="C"))
    assert [d.name for d in instance.devices] == ["NX", "TX2 1", "TX2 2", "Nano 1", "Nano 2", "Nano 3"]
    assert instance.bandwidth[0][1] == 12_500_000
    nano = instance.device_type(3)
    assert nano.memory == 2_800_000_000 // 1024  # 4 GB less 1.2 GB
    assert instance.layers[0].flops == 2 * operators("mobilenetv2_cifar")[0].macs


def test_numbering():
    assert numbered(["a", "b", "a"]) == ["a 1", "b", "a 2"]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({}, "cluster: expected either cluster or devices, found neither"),
        ({"cluster": "E"}, "cluster: expected one of A, B, C, D, nano8; found 'E'"),
        ({"devices": ("Nano", "Orin")}, "devices[1]: expected one of Nano, TX2, NX; found 'Orin'"),
        ({"cluster": "A", "micro_batch": 7}, "micro_batch: expected divisors of the mini-batch 256, found [7]"),
        ({"cluster": "A", "network": "vgg16"}, "network: expected one with a profile"),
        (
            {"cluster": "A", "bandwidth_mbps": ((0.0, 1.0),)},
            "a 5 x 5 matrix or one number, found rows of lengths [2]",
        ),
        ({"cluster": "A", "bandwidth_mbps": -1.0}, "bandwidth_mbps: expected a positive number of Mbit/s, found -1"),
    ],
)
def test_wrong_files_are_refused_with_the_field(fields, message):
    with pytest.raises(InputError) as error:
        expand(compact(**fields))
    assert message in str(error.value)


def test_failure_leaves_survivors_backups_and_the_old_latency():
    """Sec. 3.4: a single-device stage is backed up on the next stage, the last one on the first."""
    pipeline = [{"stop": 50, "devices": ["TX2", "Nano 1"]}, {"stop": 90, "devices": ["Nano 2"]}]
    pipeline.append({"stop": 116, "devices": ["Nano 3"]})
    failure = {"device": "Nano 3", "rounds": 10, "pipeline": pipeline}
    fields = {**CIFAR, "schema": 1, "problem": "hybrid_pipeline", "name": "x", "cluster": "D", "failure": failure}
    instance = expand(Compact.model_validate_json(json.dumps(fields)))
    old = instance.replanning
    assert [d.name for d in instance.devices] == ["TX2", "Nano 1", "Nano 2"]
    assert [stage.devices for stage in old.stages] == [(0, 1), (2,), ()]
    # Nano 3's layers 90-116 live on as the backup on the first device of the first stage.
    assert old.held == (((0, 50), (90, 116)), ((0, 50),), ((50, 90),))
    assert old.old_latency > 0
    broken = Compact.model_validate_json(json.dumps(fields | {"failure": failure | {"device": "Nano 9"}}))
    with pytest.raises(InputError, match="found 'Nano 9'"):
        expand(broken)


@pytest.mark.parametrize("name", ["asteroid_b_bert_small_1000mbps", "asteroid_nano8_mobilenetv2_100mbps"])
def test_library_instances_load(name):
    instance = load_instance(name)
    assert instance.mini_batch == 16 * instance.micro_batch_sizes[0]
    assert LIBRARY.problem == instance.problem
