"""Files that attack: recognised and read in time, in memory, with one message, and nothing written elsewhere."""

import os
import random
import resource
import time

import pytest
from cli_support import inside
from hostile_files import (
    chain,
    double_outputs,
    empty_operators,
    function_bomb,
    nested_messages,
    special,
    subgraphs,
    write,
)

from mapgap.cli import imports
from mapgap.contract.seeds import rotation
from mapgap.core import InputError
from mapgap.importing.recognise import recognise
from mapgap.importing.source import Source

pytest.importorskip("onnx")


BOARDS = """
schema: 1
form: cluster
link_mbps: 100
boards:
  a: {gflops: 10, memory_gbps: 5, memory_gb: 4}
  b: {gflops: 10, memory_gbps: 5, memory_gb: 4}
"""


def attempt(path, folder):
    """Import a file; what was printed, and the CPU seconds and 2^20 bytes that it took."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    began = time.monotonic()
    boards = folder.parent / "boards.yaml"
    done = inside("import", path, "--cluster", boards, "--inference", "-o", folder / "made.yaml")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return done, cpu_s, after.ru_maxrss / 1024, time.monotonic() - began


def check(path, folder):
    around = set(folder.parent.rglob("*")) | {folder / "made.yaml"}
    done, cpu_s, _, _ = attempt(path, folder)
    text = f"{path.name}: {done.returncode}: {done.stderr[-500:]}"
    assert done.returncode in (0, 2), text
    assert "Traceback" not in done.stderr, text
    assert bool(done.stderr.strip()) >= (done.returncode == 2), text
    assert cpu_s < 5 + path.stat().st_size / 2**20, text
    assert set(folder.parent.rglob("*")) <= around, text
    (folder / "made.yaml").unlink(missing_ok=True)
    return done


@pytest.mark.parametrize(
    "count", [pytest.param(14, marks=pytest.mark.in_turn), pytest.param(500, marks=pytest.mark.nightly)]
)
def test_hostile_files_are_read_or_refused_in_time(tmp_path, monkeypatch, count):
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    (tmp_path / "boards.yaml").write_text(BOARDS)
    slow = set()
    for seed in range(rotation() * 14, rotation() * 14 + count):
        path = write(tmp_path, seed)
        done = check(path, work)
        slow |= {path.stem.partition("_")[2]} if "found what takes" in done.stderr else set()
        path.unlink()
    assert len(slow) < 6, slow
    path = tmp_path / "short.onnx"
    path.write_bytes(chain(random.Random(1), 50))
    assert check(path, work).returncode == 0  # one is harmless: the limits are not why the others are refused


@pytest.mark.in_turn
@pytest.mark.parametrize("make", [function_bomb, subgraphs, empty_operators, nested_messages])
def test_a_model_is_not_measured_that_cannot_be_read(tmp_path, make):
    pytest.importorskip("onnxruntime")
    path = tmp_path / "x.onnx"
    path.write_bytes(make(random.Random(1)))
    done = inside("profile", path, "-o", tmp_path / "times.json")
    assert (done.returncode, done.stdout) == (2, "")
    assert str(path) in done.stderr.replace("\n", ""), done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "times.json").exists()


def test_what_is_no_regular_file_is_one_error(tmp_path):
    for path in special(tmp_path):
        done = inside("import", path, "--devices", 2, "--link", 100, "--memory", 1, "-o", tmp_path / "made.yaml")
        assert (done.returncode, done.stdout) == (2, ""), path
        assert str(path) in done.stderr.replace("\n", " "), done.stderr
        assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    "text", ["{" * 300_000, "\n" * 300_000 + "a", "n -- a -- " + "a" * 300_000, "[" + " " * 300_000, "a -- " * 60_000]
)
def test_recognition_takes_linear_time(tmp_path, text):
    path = tmp_path / "x.graph.txt"
    path.write_text(text)
    began = time.process_time()
    assert recognise(Source.open(path)) is None
    assert time.process_time() - began < 2


def test_a_tensor_that_two_operators_write_is_refused(tmp_path):
    path = tmp_path / "x.onnx"
    path.write_bytes(double_outputs(None))
    assert f"{path}: expected every tensor to be written by one operator, found 'y'" in inside("show", path).stderr


def test_half_a_character_is_named_with_its_place(tmp_path):
    path = tmp_path / "x.json"
    path.write_text('{"format": "mapgap-layer-graph",\n "name": "\\ud800"}')
    found = inside("show", path)
    assert found.returncode == 2
    assert f"{path}:2:11: expected whole characters, found one half of a pair: \\ud800" in found.stderr
    path.write_text(
        '{"nodes": ["\\\\ud800", "\\ud83d\\ude00"], "edges": [], "maxCPUs": 1}'
    )  # a backslash; a whole pair
    assert "whole characters" not in inside("show", path).stderr


@pytest.mark.in_turn
@pytest.mark.parametrize(
    ("work", "words"),
    [
        (lambda: time.sleep(60), "found what takes more than 1.5 s"),
        (lambda: sum(iter(int, 1)), "found what takes more than"),
        (lambda: bytearray(2**32), "found what takes more than 100 MB"),
        (lambda: os._exit(3), "found what takes the end of its process"),
        (lambda: os.kill(os.getpid(), 9), "an end by SIGKILL, as where 100 MB are not enough"),
    ],
)
def test_a_limit_is_one_clear_error(tmp_path, monkeypatch, work, words):
    for name, value in (("CPU_S", 0.15), ("CPU_PER_MB", 0), ("MEMORY_MB", 100)):
        monkeypatch.setattr(imports, name, value)
    with pytest.raises(InputError, match=words):
        imports.confined([tmp_path / "x.onnx"], work)
