"""One command per file leads to the value that the planner of its authors prints."""

import json

import pytest
from cli_support import inside

RELEASED = (
    "--devices", 4, "--link", 8000, "--memory", 100, "--set", "batch=12", "--set", "mini_batch=12",
    "--set", "communication=free", "--set", "allreduce=rotating", "--set", "allreduce_factor=4",
)  # fmt: skip
LOADS = ("--set", "training=false", "--set", "replication=false", "--set", "communication=load")


@pytest.mark.in_turn
@pytest.mark.parametrize(
    ("file", "flags", "printed", "digits"),
    [
        ("pipedream/vgg16.graph.txt", RELEASED, 0.17573, 5),
        ("pipedream/gnmt.graph.txt", RELEASED, 0.025868, 6),
        ("dnn_partitioning/bert24_inference.json", LOADS, 0.017790, 6),
        ("dnn_partitioning/resnet50_inference.json", LOADS, 0.033775, 6),
    ],
)
def test_the_printed_value_is_the_optimum(file, flags, printed, digits, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    common = ("--set", "cuts=all", "--set", "objective=bottleneck")
    done = inside("import", file, *flags, *common, "-o", tmp_path / "mine.yaml", "--certify", "--json")
    assert done.returncode == 0, done.stderr
    made, solved, proof = map(json.loads, done.stdout.splitlines())
    assert made["file"] == str(tmp_path / "mine.yaml")
    assert solved["status"] == "OPTIMAL"
    assert proof["bound"] == solved["objective"]
    tick_ns = int(solved["unit"].split()[2])
    assert round(solved["objective"] * tick_ns * 1e-9, digits) == printed
