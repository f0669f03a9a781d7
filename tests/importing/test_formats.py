"""What each reader takes from its files, against numbers read off the files or worked out by hand."""

import functools
import itertools
import json
import sys

import foreign
import pytest

from mapgap.core import InputError
from mapgap.core.workload import Settings
from mapgap.importing.conservation import check
from mapgap.importing.formats import layer_graph
from mapgap.importing.recognise import read, recognise
from mapgap.importing.source import Source

ROOT = foreign.FOLDER


def refused(paths, **given):
    """What the readers say of files that they cannot read."""
    with pytest.raises(InputError) as caught:
        read(paths, Settings(given))
    return "\n".join(caught.value.problems)


def test_pipedream_sizes_and_times_are_those_of_a_mini_batch(tmp_path):
    path = tmp_path / "small.graph.txt"
    path.write_text(foreign.SMALL)
    graph = read([path], Settings({"batch": 4}))
    # node1 is an input: PipeDream's optimizer removes it.
    assert graph.order() == ["node2", "node3"]
    assert graph.layer("node2").output_bytes == 8  # 32 bytes of four samples
    assert graph.layer("node2").weight_bytes == 256
    time = graph.times["profiled"]["node2"][4]
    assert (time.forward, time.backward) == (3e6, 6e6)


@pytest.mark.parametrize(("name", "printed"), [("vgg16", "0.17573"), ("gnmt", "0.025868")])
def test_pipedream_graphs_lead_to_what_its_optimizer_prints(name, printed):
    # optimizer_graph_hierarchical.py with four machines and 10^9 B/s prints these slowest stages. Its recurrence, over
    # cuts in topological order: m machines run a stage in (compute + 4 (m - 1) / m weights / bandwidth) / m.
    graph = read([ROOT / "pipedream" / f"{name}.graph.txt"])
    order = graph.order()
    times = [graph.times["profiled"][layer][1] for layer in order]
    compute = [0.0, *itertools.accumulate(1e-9 * (time.forward + time.backward) for time in times)]
    weights = [0, *itertools.accumulate(graph.layer(layer).weight_bytes for layer in order)]

    def stage(first, last, machines):
        moved = 4 * (machines - 1) / machines * (weights[last] - weights[first]) / 1e9
        return (compute[last] - compute[first] + moved) / machines

    @functools.cache
    def slowest(last, machines):
        found = [stage(0, last, machines)]
        for first in range(1, last):
            found += [max(slowest(first, machines - m), stage(first, last, m)) for m in range(1, machines)]
        return min(found)

    assert f"{slowest(len(order), 4):.{len(printed) - 2}f}" == printed


def test_pipedream_names_every_broken_line(tmp_path):
    path = tmp_path / "bad.txt"
    lines = foreign.SMALL.splitlines()
    lines[1] = lines[1].replace("3.0", "fast")
    path.write_text("\n".join([*lines, "\tnode2 -- node9"]))
    said = refused([path])
    assert "bad.txt:2: expected" in said
    assert "found forward_compute_time=fast" in said
    assert "bad.txt:6: expected layers of this file, found node9" in said


def test_dnn_partitioning_counts_devices_and_folds_the_backward_pass():
    graph = read([ROOT / "dnn_partitioning" / "resnet50_training.json"])
    assert len(graph.graph) == 177  # 354 nodes, half of them gradients
    assert graph.kinds["fpga"].names == tuple(f"fpga{k}" for k in range(1, 7))
    assert graph.kinds["fpga"].memory_bytes == 17_185_374_208
    time = graph.times["fpga"]["node77"][1]
    assert (time.forward, time.backward) == (pytest.approx(1.236e6), pytest.approx(1.442e6))
    inference = read([ROOT / "dnn_partitioning" / "bert24_inference.json"])
    assert inference.times["cpu"]["node3"][1].forward == pytest.approx(6.96e6)
    assert inference.times["cpu"]["node3"][1].backward is None


def test_pipeedge_needs_its_three_files_and_the_name_of_the_model():
    files = [ROOT / "pipeedge" / f"{name}.yml" for name in ("devices", "models", "device_types")]
    graph = read(files, Settings({"model": "google/vit-base-patch16-224"}))
    assert len(graph.graph) == 48
    assert graph.times["Minnowboard-E3845"]["layer1"][8].forward == pytest.approx(462.70322799682617e6)
    assert graph.layer("layer1").output_bytes == 302_592 * 4
    assert graph.kinds["Minnowboard-E3845"].names == ("mb-0", "mb-1", "mb-2", "mb-3")
    # The page of PipeEdge lists boards of a type that it has no profile of, and has a profile of one without boards.
    assert graph.kinds["RCC-VE-C2000"].names == ("rcc-0", "rcc-1", "rcc-2", "rcc-3")
    assert any("RCC-VE-C2558" in text for origin in graph.origins for text in origin.assumed)
    assert "missing: model: expected one of google/vit-base-patch16-224, google/vit-large-patch16-224" in refused(files)
    assert "found only devices.yml, models.yml" in refused(files[:2])


def test_galvatron_times_are_per_sample_and_sizes_are_asked_for():
    files = sorted((ROOT / "galvatron").glob("*all.json")) + sorted((ROOT / "galvatron").glob("*1nodes*"))
    graph = read(files, Settings({"layers": 3, "output_bytes": 10, "weight_bytes": 20}))
    assert graph.order() == ["layer1", "layer2", "layer3", "other"]
    # (layernum[4] - layernum[2]) / 2 of the same file, for two samples: (42.117… - 24.935…) / 2 ms.
    assert graph.times["profiled"]["layer2"][2].forward == pytest.approx(
        (42.117263793945305 - 24.93551368713379) / 2 * 1e6
    )
    assert graph.kinds["profiled"].link_bytes_per_second == pytest.approx(162.118e9)
    said = refused(files)
    assert all(f"missing: {name}: expected" in said for name in ("layers", "output_bytes", "weight_bytes"))


def test_galvatrons_layers_are_its_whole_runs():
    """Runs of 2 and 4 layers at batch 1 took 15.0786 and 23.8711 ms: 32 layers take 15.0786 + 30 * 4.39625 ms."""
    files = sorted((ROOT / "galvatron").glob("*all.json"))
    sizes = {"layers": 32, "output_bytes": 10, "weight_bytes": 20, "other_weight_bytes": 7}
    graph = read(files, Settings(sizes))
    held = {(each.total.quantity, each.total.batch): each for each in check(graph)}
    assert held["weights", 0].total.amount == 32 * 20 + 7
    assert held["kernels", 1].total.amount == pytest.approx((15.0786208152771 + 30 * 4.396252679824831) * 1e6)
    assert len(held) == 13
    assert all(abs(each.ratio - 1) < 1e-9 for each in held.values())


def test_galvatron_files_that_disagree_with_themselves_are_refused(tmp_path):
    (path,) = (ROOT / "galvatron").glob("*all.json")
    data = json.loads(path.read_text())
    sizes = {"layers": 4, "output_bytes": 10, "weight_bytes": 20, "other_weight_bytes": 10**6}
    lost = foreign.write_json(tmp_path / "lost.json", {k: v for k, v in data.items() if "other" not in k})
    with pytest.raises(
        InputError, match="expected all weights of the model in its layers, found 80 of 1,000,080 bytes"
    ):
        check(read([lost], Settings(sizes)))
    slower = foreign.write_json(tmp_path / "slower.json", data | {"layernum[4]_bsz4_seq2048": 85.0})
    with pytest.raises(InputError, match="expected all time of operators of the model in its layers"):
        check(read([slower], Settings(sizes)))


def test_nnscaler_operators_follow_the_list(tmp_path):
    graph = read([ROOT / "nnscaler" / "comp", ROOT / "nnscaler" / "attention.txt"])
    assert len(graph.graph) == 9
    first = graph.layer("linear1")
    assert (first.weight_bytes, first.output_bytes) == (1_048_576, 128 * 512 * 4)
    # Two linear layers of 512 x 512 float32; fw_span of the nine entries adds up to 0.167494 ms.
    held = {each.total.quantity: each for each in check(graph)}
    assert held["weights"].total.amount == held["weights"].held == 2 * 512 * 512 * 4
    assert held["kernels"].held == pytest.approx(held["kernels"].total.amount)
    assert held["kernels"].total.amount == pytest.approx(0.167494e6, rel=1e-5)
    # Of the two entries of this shape the one whose input has a gradient counts.
    assert graph.times["profiled"]["linear1"][2].forward == pytest.approx(0.024814344942569733e6)
    other = tmp_path / "list.txt"
    other.write_text("torch.matmul (2, 8, 128, 64)-(1, 1)\n")
    assert "list.txt:1: expected shapes that were profiled for torch.matmul" in refused(
        [ROOT / "nnscaler" / "comp", other]
    )


def test_onnx_runtime_takes_the_median_without_the_first_run(tmp_path):
    graph = read([foreign.write_json(tmp_path / "run.json", foreign.EVENTS)])
    assert graph.order() == ["first", "relu", "second"]
    # 90, 91, 92 us: the first warms up, the median of the others is 91.5.
    assert graph.times["profiled"]["first"][4].forward == pytest.approx(91_500)
    assert graph.layer("first").output_bytes == 200  # 800 bytes of four samples


def test_tensorrt_files_make_one_graph(tmp_path):
    layers = foreign.write_json(tmp_path / "layers.json", foreign.TRT_LAYERS)
    times = foreign.write_json(tmp_path / "times.json", foreign.TRT_PROFILE)
    graph = read([layers, times])
    assert list(graph.graph.edges) == [("conv1 + relu1", "fc")]
    assert graph.layer("conv1 + relu1").output_bytes == 16 * 8 * 8 * 2  # half precision
    assert graph.layer("fc").weight_bytes == 20_480
    assert graph.times["profiled"]["conv1 + relu1"][1].forward == pytest.approx(190_000)  # the median, not the mean
    assert read([times]).order() == ["conv1 + relu1", "fc"]
    entry = {"name": "other", "averageMs": 1.0}
    wrong = foreign.write_json(tmp_path / "wrong.json", [*foreign.TRT_PROFILE, entry])
    assert "expected layers of the layer information, found 'other'" in refused([layers, wrong])


def test_onnx_counts_products_and_bytes(tmp_path):
    models = pytest.importorskip("mapgap.importing.models")
    path = tmp_path / "lenet5.onnx"
    path.write_bytes(models.build("lenet5"))
    graph = read([path])
    # conv1: 28 x 28 pixels, 6 filters of 1 x 5 x 5; conv2: 14 x 14, 16 of 6 x 5 x 5; dense 784 x 120, 120 x 84, 84 x 10
    macs = {name: graph.layer(name).macs for name in graph.graph if graph.layer(name).macs}
    assert macs == {"conv1": 117_600, "conv2": 470_400, "fc1": 94_080, "fc2": 10_080, "fc3": 840}
    assert graph.layer("conv1").weight_bytes == 4 * (6 * 25 + 6)
    assert graph.layer("conv1").output_bytes == 4 * 6 * 28 * 28
    assert graph.input_bytes == 4 * 28 * 28
    assert graph.layer("fc1").attributes["channels_in"] == 784


def test_onnx_asks_for_open_dimensions_by_name(tmp_path):
    onnx = pytest.importorskip("onnx")
    model = onnx.load_model_from_string(foreign.small_onnx())
    model.graph.input[0].type.tensor_type.shape.dim[1].dim_param = "width"
    path = tmp_path / "open.onnx"
    path.write_bytes(model.SerializeToString())
    assert "missing: width: expected dimension 1 of the input 'x'" in refused([path])
    assert len(read([path], Settings({"width": 3})).graph) == 3


@pytest.mark.parametrize("name", ["lenet5", "mobile_tiny", "attention_tiny"])
def test_models_are_the_same_on_every_machine(name):
    models = pytest.importorskip("mapgap.importing.models")
    assert models.build(name) == models.build(name)


def test_the_own_graph_comes_back_as_it_was(tmp_path):
    graph = read([ROOT / "pipedream" / "alexnet.graph.txt"])
    data = layer_graph.write(graph, {}, "note")
    again = read([foreign.write_json(tmp_path / "graph.json", data)])
    assert again.order() == graph.order()
    assert set(again.graph.edges) == set(graph.graph.edges)
    assert again.times == graph.times
    assert all(again.layer(name) == graph.layer(name) for name in graph.graph)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("hello\n", "expected one of: mapgap's own layer graph"),
        ('{"nodes": [1, 2', "found.json:1:16: expected valid JSON"),
        ("[]", "found none of them"),
        ("{}", "found none of them"),
        (json.dumps({"nodes": [{"id": 1}], "edges": [], "maxFPGAs": 1}), "nodes[0]: expected the field 'fpgaLatency'"),
        (json.dumps({"nodes": 3, "edges": [], "maxFPGAs": 1}), "nodes: expected a list, found 3"),
    ],
)
def test_other_files_are_refused_in_one_sentence(tmp_path, text, said):
    path = tmp_path / "found.json"
    path.write_text(text)
    assert said in refused([path])


def test_files_of_several_formats_are_refused(tmp_path):
    times = foreign.write_json(tmp_path / "times.json", foreign.TRT_PROFILE)
    assert "expected files of one format" in refused([ROOT / "pipedream" / "vgg16.graph.txt", times])


def test_formats_are_told_by_their_content(tmp_path):
    # The same bytes under a name that says nothing.
    for folder, name, expected in (
        ("pipedream", "gnmt.graph.txt", "pipedream"),
        ("dnn_partitioning", "bert24_inference.json", "dnn_partitioning"),
        ("pipeedge", "models.yml", "pipeedge"),
        ("galvatron", "computation_profiling_bf16_llama2-7b_all.json", "galvatron"),
        ("nnscaler", "attention.txt", "nnscaler"),
    ):
        copy = tmp_path / "file"
        copy.write_bytes((ROOT / folder / name).read_bytes())
        found = recognise(Source.open(copy))
        assert found is not None
        assert found.name == expected


def test_a_cycle_is_named(tmp_path):
    path = tmp_path / "cycle.txt"
    path.write_text(foreign.SMALL + "\tnode3 -- node2\n")
    assert "expected layers without a cycle, found node2 -> node3" in refused([path])


def test_a_model_without_the_package_that_reads_it_is_one_sentence(tmp_path, monkeypatch):
    path = tmp_path / "dense.onnx"
    path.write_bytes(foreign.small_onnx())
    monkeypatch.setitem(sys.modules, "onnx", None)
    monkeypatch.delitem(sys.modules, "mapgap.importing.formats.onnx_model", raising=False)
    assert refused([path]) == "ONNX model: expected the package onnx; install it by: pip install 'mapgap[onnx]'"
    assert len(read([ROOT / "pipedream" / "vgg16.graph.txt"]).graph) == 40  # text needs no such package
