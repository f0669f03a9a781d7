"""Instances of multi-model splitting: layer tables against the paper, the latency model by hand, the library files."""

import math

import pytest
import yaml

from mapgap.catalogue.files import find_instances, load_instance
from mapgap.core import InputError
from mapgap.instances.multi_model_splitting.compact import Compact, CompactDevice, CompactPipeline, expand
from mapgap.instances.multi_model_splitting.models import FOLDER, TITLES, load_model
from mapgap.instances.published_numbers import load_published
from mapgap.problems.multi_model_splitting import PROBLEM, PipelinePlan, Plan, Requirement, Segment

#: Table 1 of the paper: layers, model bytes, "Avg. Out Size".
TABLE_1 = {
    "convnet5": (5, 71158, 14031),
    "kws": (9, 169472, 7976),
    "simplenet": (14, 166448, 9237),
    "widenet": (14, 313700, 10091),
    "ressimplenet": (17, 381792, 11217),
    "unet": (19, 279084, 74547),
    "efficientnetv2": (29, 627220, 66468),
    "mobilenetv2": (56, 821164, 296318),
}


def compact(models, devices=("MAX78000",) * 2, **more):
    made = tuple(CompactDevice(name=f"d{i}", type=kind) for i, kind in enumerate(devices, 1))
    pipelines = tuple(CompactPipeline(model=model) for model in models)
    return Compact(name="case", devices=made, pipelines=pipelines, **more)


@pytest.mark.parametrize("name", TABLE_1)
def test_layers_and_bytes_equal_table_1(name):
    model = load_model(name)
    layers, size, average = TABLE_1[name]
    assert (len(model.rows), model.model_bytes, model.printed_average) == (layers, size, average)


@pytest.mark.parametrize("name", ["convnet5", "kws", "simplenet", "efficientnetv2", "mobilenetv2", "unet"])
def test_printed_output_size_is_the_mean_number_of_cycles(name):
    model = load_model(name)
    assert round(model.average_cycles) == model.printed_average
    assert round(model.average_output) != model.printed_average


def test_printed_output_sizes_of_the_simple_networks_are_swapped():
    wide, res = load_model("widenet"), load_model("ressimplenet")
    assert round(wide.average_cycles * 14 / 17) == res.printed_average
    assert round(res.average_cycles * 17 / 14) == wide.printed_average


@pytest.mark.parametrize("name", TITLES)
def test_cycles_follow_the_equation_of_section_5_4_1(name):
    """(In_col + Out_col Out_ch) In_row ceil(In_ch / 64), the input taken after pooling, from the raw columns."""
    data = yaml.safe_load((FOLDER / f"{name}.yaml").read_text())
    checked = 0
    for values in data["rows"]:
        row = dict(zip(data["columns"], values, strict=True))
        if row["op"] == "conv2d":
            size = row["pk"] or 1
            rows, columns = ((row[k] - size) // (row["ps"] or 1) + 1 for k in ("hin", "win"))
            expected = (columns + row["wout"] * row["cout"]) * rows * math.ceil(row["cin"] / 64)
            assert row["cyc_eq"] == expected, row["i"]
            checked += 1
    assert checked or name == "kws"  # one-dimensional convolutions and a classifier


def test_mean_layer_of_unet_takes_1_45_ms():
    # 1,373,940 cycles / 19 layers / 50 MHz = 1.446 ms; Fig. 7 prints 1.5 ms.
    layers = expand(compact(["unet"])).pipelines[0].layers
    assert sum(layer.inference[0] for layer in layers) / 19 == pytest.approx(1446.25, abs=0.5)


def test_durations_of_a_cut_model_are_those_worked_out_by_hand():
    """ConvNet5 from d1 to d1, layers 0..3 on d1, layer 4 on d2.

    Boundaries (bytes): input 784, after layer 3 192, output 10. Radio 109.8 us per byte: 192 bytes 21,082 us, 10 bytes
    1,098 us, each sent and received. Copies 0.0746 us per byte: 784 -> 58, 192 -> 14 (twice), 10 -> 1. Cycles 47824,
    13636, 3648, 208, 176 at 50 MHz: 956 + 273 + 73 + 4 = 1306 and 4 us.
    """
    instance = expand(compact(["convnet5"]))
    segments = (Segment(device=0, first=0, last=4), Segment(device=1, first=4, last=5))
    found = PROBLEM.evaluate(instance, Plan(pipelines=(PipelinePlan(source=0, target=0, segments=segments),)))
    assert found.feasible
    assert found.terms["load_ticks"]["d1"] == {"sensor": 0, "mcu": 58 + 14, "accelerator": 1306, "radio": 21082 + 1098}
    assert found.terms["load_ticks"]["d2"] == {"sensor": 0, "mcu": 14 + 1, "accelerator": 4, "radio": 21082 + 1098}
    assert found.objective == 22180
    assert found.terms["latency_ticks"] == 2 * 22180 + 72 + 1306 + 15 + 4


def test_all_eight_models_fit_where_the_paper_says():
    # Sec. 7.1.1: EfficientNetV2 and MobileNetV2 fit a MAX78002 and no MAX78000; the others fit a MAX78000.
    for name in TITLES:
        instance = expand(compact([name], ("MAX78000", "MAX78002")))
        whole = {}
        for d in (0, 1):
            segments = (Segment(device=d, first=0, last=len(instance.pipelines[0].layers)),)
            plan = Plan(pipelines=(PipelinePlan(source=d, target=d, segments=segments),))
            whole[d] = PROBLEM.evaluate(instance, plan).feasible
        assert whole == {0: name not in ("efficientnetv2", "mobilenetv2"), 1: True}


def test_live_bytes_count_every_tensor_that_is_read_later():
    plain, live = load_model("unet").boundary_bytes(), load_model("unet").boundary_bytes(live=True)
    # Before layer 7 live: outputs of 6 (4032), 5 (8064, read by 7), 4 (16128, by 11), 3 (18432, by 13).
    assert (plain[7], live[7]) == (4032, 4032 + 8064 + 16128 + 18432)
    assert (plain[0], plain[-1]) == (live[0], live[-1]) == (48**3, 64 * 48**2)
    assert load_model("simplenet").boundary_bytes() == load_model("simplenet").boundary_bytes(live=True)
    assert all(a >= b for name in TITLES for a, b in zip(*_both(name), strict=True))


def _both(name):
    return load_model(name).boundary_bytes(live=True), load_model(name).boundary_bytes()


def test_parameters_reach_the_tables():
    instance = expand(
        compact(["convnet5", "kws"], radio_us_per_byte=2.0, copy_us_per_byte=0.5, sensing_ms={"audio": 3.5})
    )
    image, audio = instance.pipelines
    assert (image.sensing, audio.sensing) == ((0, 0), (3500, 3500))
    assert image.boundaries[0].transmit == image.boundaries[0].receive == (1568, 1568)
    assert image.boundaries[0].load == (392, 392)
    assert [p.name for p in expand(compact(["kws", "kws", "unet"])).pipelines] == ["KWS", "KWS_2", "UNet"]


def test_the_max78002_is_four_times_as_fast_and_larger():
    small, large = expand(compact(["unet"], ("MAX78000", "MAX78002"))).devices
    assert (small.weights, small.bias, small.layers) == (442368, 2048, 32)
    assert (large.weights, large.bias, large.layers) == (2 * 1024**2, 8192, 128)
    first = expand(compact(["unet"], ("MAX78000", "MAX78002"))).pipelines[0].layers[0]
    assert first.inference == (2995, 749)  # 149,760 cycles at 50 and 200 MHz


def test_unknown_names_are_refused_all_at_once():
    with pytest.raises(InputError) as caught:
        expand(compact(["convnet6"], ("MAX78001",), sensing_ms={"smell": 1.0}))
    text = str(caught.value)
    assert "devices[0].type: expected one of MAX78000, MAX78002; found 'MAX78001'" in text
    assert "pipelines[0].model" in text
    assert "did you mean 'convnet5'" in text
    assert "sensing_ms: expected image or audio, found smell" in text
    places = [finding.location for finding in caught.value.findings]
    assert places == [("devices", 0, "type"), ("pipelines", 0, "model"), ("sensing_ms",)]


def test_coarser_tick_when_microseconds_do_not_fit():
    instance = expand(compact(["mobilenetv2"] * 6, ("MAX78002",) * 16))
    assert instance.tick_ns == 10_000
    assert instance.pipelines[0].boundaries[0].transmit[0] == 33731  # 3072 bytes * 109.8 us


def test_library_holds_every_instance_of_the_paper():
    names = set(find_instances("synergy_*"))
    assert {f"synergy_w{i}_{m}" for i in (1, 2, 3, 4) for m in ("distributed", "overlapped", "any")} <= names
    assert {f"synergy_fig11a_{n}devices" for n in (2, 3, 4, 5)} <= names
    assert {f"synergy_fig11b_{n}pipelines" for n in range(1, 7)} <= names
    assert {"synergy_fig12_4x78000", "synergy_fig12_3x78000_1x78002", "synergy_fig6_any"} <= names
    instance = load_instance("synergy_fig12_3x78000_1x78002")
    assert [p.name for p in instance.pipelines] == ["ConvNet5", "UNet", "EfficientNetV2"]
    assert [d.layers for d in instance.devices] == [32, 32, 32, 128]
    assert instance.pipelines[1].source == instance.pipelines[1].target == Requirement(device="d2")
    assert all(load_instance(name).tick_ns == 1000 for name in names)


def test_printed_numbers_are_those_of_the_paper():
    printed = load_published("synergy")
    assert (printed["w1_syn_tput"], printed["het4_ratio"], printed["map_any"]) == (4.2, 8.8, 16.8)
