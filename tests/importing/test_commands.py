"""From a foreign file to a certified plan in one command, for every format and every problem; and what is asked for."""

import json

import foreign
import pytest
from cli_support import inside

from mapgap.catalogue.files import load_instance
from mapgap.contract.seeds import some

ROOT = foreign.FOLDER
TWO = ("--devices", 2, "--link", 1000, "--memory", 16)


@pytest.fixture(autouse=True)
def wide(monkeypatch):
    """So that no text of a table folds, however long the paths are."""
    monkeypatch.setenv("COLUMNS", "500")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Files of other tools, a model, and clusters."""
    folder = tmp_path_factory.mktemp("foreign")
    foreign.write_json(folder / "ort.json", foreign.EVENTS)
    foreign.write_json(folder / "layers.json", foreign.TRT_LAYERS)
    foreign.write_json(folder / "times.json", foreign.TRT_PROFILE)
    models = pytest.importorskip("mapgap.importing.models")
    models.write(folder)
    (folder / "boards.yaml").write_text(
        "schema: 1\nform: cluster\nlink_mbps: 100\nboards:\n"
        "  nx: {board: NX}\n  mine: {memory_gb: 4, gflops: 200, memory_gbps: 25.6, launch_us: 40}\n"
    )
    (folder / "sides.yaml").write_text(
        "schema: 1\nform: cluster\nlink_mbps: 20000\nboards:\n"
        "  gpu: {board: NX, facts: {watts: 10}}\n"
        "  fpga: {memory_gb: 1, gflops: 500, memory_gbps: 20, facts: {watts: 4, multipliers: 5184, m20k: 587}}\n"
    )
    return folder


FORMATS = {
    "pipedream": (["pipedream/vgg16.graph.txt"], TWO),
    "dnn_partitioning": (["dnn_partitioning/bert24_inference.json"], ()),
    "pipeedge": (
        [f"pipeedge/{name}.yml" for name in ("models", "device_types", "devices")],
        ("--set", "model=google/vit-base-patch16-224", "--set", "state_copies=1"),
    ),
    "galvatron": (
        ["galvatron/computation_profiling_bf16_llama2-7b_all.json"],
        (*TWO, "--set", "layers=4", "--set", "output_bytes=16777216", "--set", "weight_bytes=404750336"),
    ),
    "nnscaler": (["nnscaler/comp", "nnscaler/attention.txt"], TWO),
    "onnx_runtime": (["ort.json"], (*TWO, "--inference")),
    "tensorrt": (["layers.json", "times.json"], TWO),
    "onnx": (["mobile_tiny.onnx"], ("--cluster", "boards.yaml", "--inference")),
    "hugging_face": (["hugging_face/tinyllama_1_1b.json"], ("--cluster", "boards.yaml", "--set", "bits=4")),
}


@pytest.mark.in_turn
@pytest.mark.parametrize("name", FORMATS)
def test_one_command_leads_to_a_certified_plan(name, folder, monkeypatch, tmp_path):
    monkeypatch.chdir(folder)
    files, flags = FORMATS[name]
    out = tmp_path / "mine.yaml"
    done = inside("import", *files, *flags, "--certify", "-o", out)
    assert done.returncode == 0, done.stderr
    assert "status            OPTIMAL" in done.stdout
    assert "the plan is optimal" in done.stdout
    assert f"written to {out}" in " ".join(done.stdout.split())
    instance = load_instance(out)
    assert "sha256" in instance.source


PROBLEMS = {
    "hybrid_pipeline": ("mobile_tiny.onnx", "boards.yaml", "--training"),
    "multi_model_splitting": ("mobile_tiny.onnx", "boards.yaml", "--also", "lenet5.onnx", "--objective", "latency"),
    "suboperation_mapping": ("lenet5.onnx", "boards.yaml", "--set", "batch=2", "--set", "cuts=articulation"),
    "neuron_masking": ("lenet5.onnx", "boards.yaml", "--set", "samples=1000", "--set", "cycle_s=1"),
    "fpga_gpu_partition": ("mobile_tiny.onnx", "sides.yaml", "--set", "fold=4"),
}


@pytest.mark.in_turn
@pytest.mark.parametrize("problem", some(2, PROBLEMS))
def test_every_problem_is_made_of_a_model(problem, folder, monkeypatch, tmp_path):
    monkeypatch.chdir(folder)
    file, boards, *flags = PROBLEMS[problem]
    out = tmp_path / "mine.yaml"
    made = inside("import", file, "--cluster", boards, "--problem", problem, *flags, "-o", out, "--json")
    assert made.returncode == 0, made.stderr
    said = json.loads(made.stdout)
    assert (said["problem"], said["file"]) == (problem, str(out))
    assert load_instance(out).content_hash == said["instance_hash"]
    assert inside("validate", out).returncode == 0
    solved = inside("solve", out, "--time-limit", 20)
    assert solved.returncode == 0, solved.stderr
    assert "plan: " in solved.stdout


@pytest.mark.parametrize("problem", ["hybrid_pipeline", "multi_model_splitting", "suboperation_mapping"])
def test_latencies_of_the_cluster_are_those_of_the_instance(problem, folder, monkeypatch, tmp_path):
    monkeypatch.chdir(folder)
    out, boards = tmp_path / "mine.yaml", tmp_path / "late.yaml"
    boards.write_text(
        "schema: 1\nform: cluster\nboards:\n"
        "  a: {gflops: 10, memory_gbps: 10, memory_gb: 4, count: 2}\n  b: {gflops: 20, memory_gbps: 10, memory_gb: 4}\n"
        "link_mbps: 1000\nlatency_us: 300\nlinks: [{between: [a, b], mbps: 100, latency_us: 50}]\n"
    )
    file, _, *flags = PROBLEMS[problem]
    made = inside("import", file, "--cluster", boards, "--problem", problem, *flags, "-o", out)
    assert made.returncode == 0, made.stderr
    assert load_instance(out).latency_ns == ((0, 300_000, 50_000), (300_000, 0, 50_000), (50_000, 50_000, 0))


@pytest.mark.in_turn
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["mobile_tiny.onnx"], "missing: cluster: expected boards"),
        (["pipedream/vgg16.graph.txt", "--devices", 2, "--memory", 1], "missing: link between board and board"),
        (["pipedream/vgg16.graph.txt", "--devices", 2, "--link", 10], "missing: memory of board1: expected memory_gb"),
        (["pipedream/vgg16.graph.txt", *TWO, "--set", "micro_bach=3"], "did you mean 'micro_batch'"),
        (["pipedream/vgg16.graph.txt", *TWO, "--set", "cuts=al"], "--set cuts=al: expected one of articulation, all"),
        (["pipedream/vgg16.graph.txt", *TWO, "--problem", "hybrid"], "problem: expected one of"),
        (["pipedream/vgg16.graph.txt", "--link", 10], "--link, --memory: expected them beside --devices"),
        (
            ["mobile_tiny.onnx", "--cluster", "boards.yaml", "--devices", 2],
            "expected either a cluster file or --devices",
        ),
        (["mobile_tiny.onnx", "--cluster", "boards.yaml", "--profile", "nxx=times.json"], "did you mean 'nx'"),
        (["mobile_tiny.onnx", "--cluster", "boards.yaml", "--problem", "neuron_masking"], "missing: samples: expected"),
        (["mobile_tiny.onnx", "--cluster", "boards.yaml", "--problem", "fpga_gpu_partition"], "boards: expected two"),
        (["mobile_tiny.onnx", "--cluster", "boards.yaml"], "missing: --training or --inference"),
        (["ort.json", *TWO, "--training", "--inference"], "--training, --inference: expected one of them, found both"),
        (["nothing.txt", *TWO], "nothing.txt: expected a readable file"),
    ],
)
def test_what_is_missing_or_wrong_is_named(folder, monkeypatch, tmp_path, arguments, said):
    monkeypatch.chdir(folder)
    done = inside("import", *arguments, "-o", tmp_path / "mine.yaml")
    assert done.returncode == 2
    assert said in done.stderr
    assert not (tmp_path / "mine.yaml").exists()


PURPOSES = {
    "pipedream": True,
    "dnn_partitioning": False,
    "pipeedge": False,
    "galvatron": True,
    "nnscaler": True,
    "tensorrt": False,
}


@pytest.mark.in_turn
@pytest.mark.parametrize("name", PURPOSES)
def test_files_that_say_whether_they_train_are_believed_unless_a_flag_is_given(name, folder, monkeypatch, tmp_path):
    monkeypatch.chdir(folder)
    files, flags = FORMATS[name]
    for flag, training in ((), PURPOSES[name]), (("--training",), True), (("--inference",), False):
        assert inside("import", *files, *flags, *flag, "-o", tmp_path / "mine.yaml").returncode == 0
        assert load_instance(tmp_path / "mine.yaml").execution.training is training


@pytest.mark.in_turn
def test_backward_times_that_were_not_measured_are_labelled_everywhere(folder, monkeypatch, tmp_path):
    monkeypatch.chdir(folder)
    mine = tmp_path / "mine.yaml"
    words = "backward times were not measured"

    def said(*arguments, **made):
        done = inside(*arguments, **made)
        assert done.returncode == 0, done.stderr
        return " ".join(done.stdout.split())

    given = ("import", "mobile_tiny.onnx", "--cluster", "boards.yaml", "-o", mine)
    assert words not in said(*given, "--inference", "--solve")
    assert words not in said("import", "pipedream/vgg16.graph.txt", *TWO, "-o", mine)  # measured
    assert words in said(*given, "--training")
    assert words in json.loads(said(*given, "--training", "--json"))["assumed"][0]
    assert words in said("show", mine)
    assert words in said("solve", mine, "--fast")
    assert words in json.loads(said("solve", mine, "--fast", "--json"))["notes"]["assumed"][0]
    assert words in said("explain", mine, "--no-relax")
    assert words in json.loads(said("explain", mine, "--no-relax", "--json"))["assumed"][0]


def layer_graph(times):
    """A profile of two layers of equal kinds; ``times`` gives (lower quartile, median, upper quartile) in ms."""
    layers = [
        {"name": name, "operation": "Conv", "reads": reads, "output_bytes": 8, "weight_bytes": 8, "macs": 1}
        for name, reads in (("first", []), ("second", ["first"]))
    ]
    rows = {
        layer["name"]: {"1": {"forward": 1e6 * median, "low": 1e6 * low, "high": 1e6 * high}}
        for layer, (low, median, high) in zip(layers, times, strict=True)
    }
    return {
        "format": "mapgap-layer-graph", "schema": 1, "name": "noisy", "input_bytes": 8, "layers": layers,
        "times": {"here": rows},
    }  # fmt: skip


@pytest.mark.in_turn
def test_quartiles_of_a_profile_reach_every_output(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "noisy.json").write_text(json.dumps(layer_graph([(6, 10, 14), (0.1, 0.2, 0.3)])))
    flags = ("--devices", 2, "--link", 1000, "--memory", 1, "--set", "mini_batch=1", "--set", "objective=bottleneck")
    done = inside("import", "noisy.json", *flags, "--inference", "-o", "mine.yaml")
    assert done.returncode == 0, done.stderr
    instance = load_instance(tmp_path / "mine.yaml")
    kind = instance.types[0]
    assert kind.quartiles.forward_lower == ((60_000,), (1_000,))  # ticks of 100 ns
    assert kind.quartiles.forward_upper == ((140_000,), (3_000,))
    # Two boards: the first layer alone, 10 ms (6 to 14). One board: 10.2 ms (6.1 to 14.3), 2 % worse, and overlaps.
    told = " ".join(inside("solve", "mine.yaml", "-o", "plan.json").stdout.split())
    assert "objective 100,000 ticks" in told
    assert "within the measurement 60,000 ticks of 100 ns (6 ms) to 140,000 ticks of 100 ns (14 ms)" in told
    assert "simpler plan 1 board and no cut in place of 2 boards and 1 cut" in told
    assert "102,000 ticks of 100 ns (10.2 ms): 2.00% worse than the optimum" in told
    checked = inside("check", "mine.yaml", "plan.within.json", "--json")
    assert json.loads(checked.stdout)["objective"] == 102_000
    notes = json.loads(inside("solve", "mine.yaml", "--json").stdout)["notes"]["within_measurement"]
    assert (notes["low"], notes["high"], notes["value"]) == (60_000, 140_000, 102_000)
    assert (notes["plan_low"], notes["plan_high"], notes["complete"]) == (61_000, 143_000, True)
    told = json.loads(inside("explain", "mine.yaml", "--plan", "plan.json", "--no-relax", "--json").stdout)
    assert told["interval"] == [60_000, 140_000]
    assert "within quartiles" in inside("explain", "mine.yaml", "--plan", "plan.json", "--no-relax").stdout
    # Measurements that spread less keep the two boards; none at all says nothing.
    (tmp_path / "noisy.json").write_text(json.dumps(layer_graph([(9.95, 10, 10.05), (0.19, 0.2, 0.21)])))
    inside("import", "noisy.json", *flags, "--inference", "-o", "mine.yaml")
    told = " ".join(inside("solve", "mine.yaml").stdout.split())
    assert "simpler plan no plan on fewer boards" in told


def test_assumed_backward_times_spread_as_their_forward_times(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "noisy.json").write_text(json.dumps(layer_graph([(6, 10, 14), (0.1, 0.2, 0.3)])))
    flags = ("--devices", 2, "--link", 1000, "--memory", 1, "--training", "--set", "backward=1.5")
    assert inside("import", "noisy.json", *flags, "-o", "mine.yaml").returncode == 0
    kind = load_instance(tmp_path / "mine.yaml").types[0]
    tables = (kind.quartiles.backward_lower, kind.backward, kind.quartiles.backward_upper)
    assert [[row[0] for row in table] for table in tables] == [[90_000, 1_500], [150_000, 3_000], [210_000, 4_500]]


def test_of_inference_the_latency_and_the_throughput_are_certified(folder, monkeypatch, tmp_path):
    monkeypatch.chdir(folder)
    mine = tmp_path / "mine.yaml"
    flags = ("--cluster", "boards.yaml", "--inference", "--certify", "-o", mine, "--name", "mine", "--json")
    done = inside("import", "lenet5.onnx", *flags)
    assert done.returncode == 0, done.stderr
    _, latency, first, bottleneck, second = map(json.loads, done.stdout.splitlines())
    assert (latency["instance"], bottleneck["instance"]) == ("mine", "mine@bottleneck")
    for run, proof in ((latency, first), (bottleneck, second)):
        assert run["objective"] == run["bound"] == proof["bound"]
        assert inside("verify", proof["file"]).returncode == 0


def test_a_network_with_groups_is_no_case_for_neurons(folder, monkeypatch):
    monkeypatch.chdir(folder)
    given = ("--set", "samples=10", "--set", "cycle_s=1", "--problem", "neuron_masking")
    done = inside("import", "mobile_tiny.onnx", "--cluster", "boards.yaml", *given)
    assert done.returncode == 2
    assert "found groups" in done.stderr or "expected a plain chain" in done.stderr


def test_a_measured_model_is_an_import_of_its_own(folder, monkeypatch, tmp_path):
    monkeypatch.chdir(folder)
    pytest.importorskip("onnxruntime")
    measured = tmp_path / "prof.json"
    done = inside("profile", "lenet5.onnx", "--batch", "1,2", "--threads", "1,2", "--repetitions", 3, "-o", measured)
    assert done.returncode == 0, done.stderr
    data = json.loads(measured.read_text())
    assert set(data["times"]) == {"threads1", "threads2"}
    points = data["times"]["threads1"]["fc1"]
    assert set(points) == {"1", "2"}
    assert all(0 < point["low"] <= point["forward"] <= point["high"] for point in points.values())
    boards = tmp_path / "two.yaml"
    boards.write_text(
        "schema: 1\nform: cluster\nlink_mbps: 1000\nboards:\n"
        "  one: {kind: threads1, memory_gb: 1}\n  two: {kind: threads2, memory_gb: 1}\n"
    )
    done = inside("import", measured, "--cluster", boards, "--training", "-o", tmp_path / "mine.yaml", "--solve")
    assert done.returncode == 0, done.stderr
    # The same file as the profile of a board beside one without: that one is estimated.
    boards.write_text(
        "schema: 1\nform: cluster\nlink_mbps: 1000\nboards:\n"
        "  here: {memory_gb: 1, gflops: 50, memory_gbps: 10}\n  there: {memory_gb: 1, gflops: 25, memory_gbps: 5}\n"
    )
    flags = ("--cluster", boards, "--profile", f"here={measured}#threads2")
    done = inside("import", "lenet5.onnx", *flags, "--inference", "-o", tmp_path / "other.yaml")
    assert done.returncode == 0, done.stderr
    assert "Times of there are estimated" in " ".join(done.stdout.split())
    assert "the profile of here" in " ".join(done.stdout.split())


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["lenet5.onnx", "--batch", "0"], "--batch 0: expected whole numbers from 1 to 4096"),
        (["lenet5.onnx", "--threads", "x"], "--threads x: expected whole numbers"),
        (["lenet5.onnx", "--provider", "Abacus"], "CPUExecutionProvider; found 'Abacus'"),
        (["lenet5.onnx", "--optimise", "all"], "--optimise: expected none or basic"),
        (["times.json"], "expected an ONNX model"),
    ],
)
def test_profile_refuses_what_it_cannot_measure(folder, monkeypatch, tmp_path, arguments, said):
    monkeypatch.chdir(folder)
    pytest.importorskip("onnxruntime")
    done = inside("profile", *arguments, "-o", tmp_path / "prof.json")
    assert done.returncode == 2
    assert said in " ".join(done.stderr.split())


def test_show_prints_the_graph_of_a_foreign_file(folder, monkeypatch):
    monkeypatch.chdir(folder)
    shown = inside("show", "mobile_tiny.onnx").stdout
    assert "block2_add |" in shown  # a single tensor crosses behind the residual connection,
    assert "block2_project |" not in shown  # and two do inside
    (row,) = [line for line in shown.splitlines() if line.startswith("  stem |")]
    assert row.split()[-3:] == ["65,536", "1,792", "442,368"]  # 16 x 32 x 32 values; 27 x 16 + 16; 27 products for each
    data = json.loads(inside("show", "pipedream/vgg16.graph.txt", "--json").stdout)
    assert data["format"] == "mapgap-layer-graph"
    assert len(data["layers"]) == 40
