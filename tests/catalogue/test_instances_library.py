"""The facts of the library: layer tables add up to what the literature says, devices and printed numbers load."""

import pytest

from mapgap.catalogue import registry
from mapgap.core import InputError
from mapgap.instances.facts import ROOT, load_devices, load_network, network_names, read_yaml
from mapgap.instances.published_numbers import load_published
from mapgap.instances.writing import library_files, main, specified

CNNS = [name for name in network_names() if name != "bert_small"]


@pytest.mark.parametrize("name", CNNS)
def test_network_totals_equal_the_sums_of_the_rows(name):
    network = load_network(name)
    for row in network.rows:
        assert row.out == row.cout * row.height * row.width, row.name
        if row.type == "conv":
            assert row.macs == row.out * row.cin // row.groups * row.kernel**2, row.name


@pytest.mark.parametrize(
    ("name", "params", "gmacs"),
    [  # torchvision model pages; darknet's 5.56 BFLOPs; He et al. 2016 (0.85 M, about 125.5 M multiply-accumulates)
        ("alexnet", 61_100_840, 0.714),
        ("vgg16", 138_365_992, 15.47),
        ("resnet18", 11_689_512, 1.81),
        ("tinyyolov3", 8_852_366, 2.78),
        ("resnet56", 853_018, 0.1255),
        ("resnet50", 25_557_032, 4.09),
    ],
)
def test_network_totals_are_the_known_ones(name, params, gmacs):
    network = load_network(name)
    assert network.params == params
    assert network.macs / 1e9 == pytest.approx(gmacs, rel=0.005)


def test_checks_of_the_files_hold():
    for name in CNNS:
        data = read_yaml(ROOT / "networks" / f"{name}.yaml")
        for check in data["checks"]:
            if isinstance(check.get("computed"), int) and check["what"] in data["totals"]:
                assert check["computed"] == data["totals"][check["what"]], name


def test_transformer_and_unknown_network_are_refused_by_field():
    with pytest.raises(InputError, match="network: expected a convolutional network, found 'bert_small'"):
        load_network("bert_small")
    with pytest.raises(InputError, match=r"network: expected one of .*; found 'resnet81'; did you mean 'resnet18'"):
        load_network("resnet81")


def test_devices_answer_to_part_and_board():
    table = load_devices("mtrain_fpga")
    assert table.of("XCZU9EG") == table.of("ZCU102")
    assert table.of("ZCU102")["dsp"].value == 2520
    assert table.clusters == {
        "C1": ("U50LV", "U30"),
        "C2": ("XCZU9EG", "XC7Z045", "XC7Z015"),
        "C3": ("VCU128", "ZCU102", "ZCU104"),
    }
    assert all(name in table.names() for cluster in table.clusters.values() for name in cluster)


def test_printed_numbers_load_by_identifier():
    printed = load_published("mtrain")
    assert printed["t3_resnet18_c2_mt_t"] == 5200.76
    assert printed["ratios_c3"] == 385
    with pytest.raises(InputError, match=r"paper: expected one of .*mtrain"):
        load_published("mtrian")


#: Library files that stand for themselves: the examples drawn in a paper.
BY_HAND = {"mtrain_example_fig5", "mtrain_example_fig6"}


@pytest.mark.parametrize(
    ("problem", "count"),
    [
        ("fpga_gpu_partition", 2 * 5 + 2 + 9),
        ("hybrid_pipeline", 4 * 4 * 2 + 8 * 2 + 2 + 4),
        ("multi_model_splitting", 4 * 3 + 4 * 2 + 6 * 2 + 2 + 2),
        ("neuron_masking", 4 * 4 + 3 + 3 + 5),
        ("suboperation_mapping", 3 * 5 * 6 + 4 * 3),
    ],
)
def test_library_files_are_what_the_writer_writes(problem, count):
    """A hand edit of a written file would be lost when it is written again."""
    found = {path.stem: path.read_text(encoding="utf-8") for path in registry.library(problem).folder.glob("*.yaml")}
    written = library_files(problem)
    assert len(written) == count
    assert {name: text for name, text in found.items() if name not in BY_HAND} == written


def test_the_writer_writes_every_problem_of_the_house_into_its_library(tmp_path):
    # The files of layer flow hold the numbers of published programs, one by one: nothing to write from tables.
    assert specified() == sorted(set(registry.house()) - {"layer_flow"})
    (tmp_path / "neuron_masking" / "library").mkdir(parents=True)
    main(["neuron_masking"], tmp_path)
    written = {path.stem: path.read_text(encoding="utf-8") for path in tmp_path.rglob("*.yaml")}
    assert written == library_files("neuron_masking")
