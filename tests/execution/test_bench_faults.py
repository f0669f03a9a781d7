"""Sweeps under fire: killed at random moments, full disks, dying workers, methods that misbehave."""

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml
from cli_support import PLUGIN, tiny
from records import record

from mapgap.catalogue import registry
from mapgap.core import InputError, MapgapError
from mapgap.execution import cluster
from mapgap.execution import sweep as bench
from mapgap.execution.changes import Changed
from mapgap.execution.sweep import MethodJob, RunEnded, sweep
from mapgap.records import files
from mapgap.records.files import append, read_runs

TRIALS = 50


def fast(job, plugins=(), tell=None):
    """A finished run of :func:`mapgap.execution.sweep.perform`, without the run: some milliseconds, some kilobytes."""
    time.sleep(0.001)
    who = {"instance_hash": job.instance.content_hash, "time_limit_s": job.time_s, "seed": job.seed}
    return record(job.instance.name, job.method, plan={"order": list(range(2000))}, **who)


def jobs(count):
    instance = tiny()
    return [MethodJob(instance, "t_good", 5.0, seed=seed) for seed in range(count)]


def killed_after(growth, path, todo):
    """Fork a sweep and send it SIGKILL once its file has grown by some bytes; whether it was still at work."""
    target = growth + (path.stat().st_size if path.exists() else 0)
    child = os.fork()
    if child == 0:
        try:
            sweep(todo, path, parallel=2)
        finally:
            os._exit(0)
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and not (path.exists() and path.stat().st_size >= target):
        time.sleep(0.0005)
    with contextlib.suppress(ProcessLookupError):
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    return os.WIFSIGNALED(status)


@pytest.mark.in_turn
def test_kill_9_at_fifty_random_moments_loses_nothing_and_doubles_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(bench, "perform", fast)
    rng = random.Random(0)
    path, todo = tmp_path / "runs.jsonl", jobs(3000)
    before: list[str] = []
    killed = 0
    for _ in range(TRIALS):
        killed += killed_after(rng.randrange(30_000), path, todo)
        lines = path.read_text().splitlines() if path.exists() else []
        assert lines[: len(before)] == before, "a finished run was lost or changed"
        whole = lines
        try:
            json.loads(lines[-1] if lines else "{}")
        except json.JSONDecodeError:
            whole = lines[:-1]  # torn by this kill; the next start cuts it off
        before = whole
    assert killed == TRIALS
    assert len(before) > 50
    records = sweep(todo[: len(before) + 20], path)
    keys = [run.key for run in read_runs(path)]
    assert len(keys) == len(set(keys))
    assert {job.key for job in todo[: len(before) + 20]} <= set(keys)
    assert len(records) == len(before) + 20


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_full_disk_ends_the_sweep_with_one_clear_error(monkeypatch):
    monkeypatch.setattr(bench, "perform", fast)
    with pytest.raises(MapgapError, match=r"/dev/full: cannot write the run .*space"):
        append(Path("/dev/full"), fast(jobs(1)[0]))


def test_a_write_that_fails_half_way_leaves_whole_lines(tmp_path, monkeypatch):
    monkeypatch.setattr(bench, "perform", fast)
    path = tmp_path / "runs.jsonl"
    sweep(jobs(2), path)
    whole = path.read_bytes()

    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files.os, "fsync", full)
    with pytest.raises(MapgapError, match="No space left"):
        sweep(jobs(3), path)
    assert path.read_bytes() == whole
    monkeypatch.undo()
    monkeypatch.setattr(bench, "perform", fast)
    assert len(sweep(jobs(3), path)) == 3


def test_a_run_file_that_is_a_folder_is_an_input_error(tmp_path, monkeypatch):
    monkeypatch.setattr(bench, "perform", fast)
    (tmp_path / "runs.jsonl").mkdir()
    with pytest.raises(MapgapError, match="found a folder"):
        sweep(jobs(1), tmp_path / "runs.jsonl")


@pytest.fixture
def rogues():
    with registry.plugins_of_this_run():
        registry.load_plugin(PLUGIN)
        yield


@pytest.mark.in_turn
def test_methods_that_misbehave_are_recorded_and_the_sweep_goes_on(rogues, tmp_path, monkeypatch):
    monkeypatch.setenv("MAPGAP_TEST_MARKER", "bench-faults")
    expected = {
        "t_raising": "error",
        "t_exiting": "error",
        "t_crashing": "error",
        "t_quitting": "error",
        "t_silent": "time",
        "t_babbling": "done",
        "t_good": "done",
    }
    todo = [MethodJob(tiny(), method, 1.0, memory_mb=600) for method in expected]
    records = sweep(todo, tmp_path / "runs.jsonl", parallel=2, plugins=(PLUGIN,))
    assert {run.method: run.stop for run in records} == expected
    assert len(read_runs(tmp_path / "runs.jsonl")) == len(expected)


@pytest.mark.in_turn
def test_a_dask_cluster_survives_the_death_of_a_worker(rogues, tmp_path):
    distributed = pytest.importorskip("distributed")
    path = tmp_path / "runs.jsonl"
    cluster = distributed.LocalCluster(n_workers=3, threads_per_worker=1, processes=True, dashboard_address=None)
    with cluster:
        victims = [worker.pid for worker in cluster.workers.values()]
        killed = []

        def kill_one(event):
            if isinstance(event, RunEnded) and not killed:
                killed.append(victims[0])
                os.kill(victims[0], signal.SIGKILL)

        todo = [MethodJob(tiny(), "t_good", 5.0, seed=seed) for seed in range(12)]
        records = sweep(todo, path, plugins=(PLUGIN,), tell=kill_one, dask=cluster.scheduler_address)
    assert killed
    assert [run.seed for run in records] == list(range(12))
    assert {run.stop for run in records} == {"done"}
    keys = [run.key for run in read_runs(path)]
    assert sorted(keys) == sorted(job.key for job in todo)


@pytest.mark.in_turn
def test_no_scheduler_there_is_one_clear_error(tmp_path, monkeypatch):
    pytest.importorskip("distributed")
    monkeypatch.setattr(cluster, "CONNECT_S", 1)
    with pytest.raises(InputError, match=r"--dask tcp://127\.0\.0\.1:9: expected the address of a scheduler"):
        sweep(jobs(1), tmp_path / "runs.jsonl", dask="tcp://127.0.0.1:9")


HOLDER = """
import sys, time
from pathlib import Path
from mapgap.records.files import locked
with locked(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(600)
"""


def test_two_sweeps_cannot_share_a_run_file_and_the_lock_dies_with_its_process(tmp_path, monkeypatch):
    monkeypatch.setattr(bench, "perform", fast)
    path = tmp_path / "runs.jsonl"
    holder = subprocess.Popen([sys.executable, "-c", HOLDER, str(path)], stdout=subprocess.PIPE)
    try:
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(InputError, match="expected a run file that no other sweep writes to, found one in use"):
            sweep(jobs(1), path)
        assert path.read_bytes() == b""
    finally:
        holder.kill()
        holder.wait()
        holder.stdout.close()
    assert len(sweep(jobs(1), path)) == 1


def test_a_fresh_start_is_refused_before_the_file_is_emptied(tmp_path, monkeypatch):
    monkeypatch.setattr(bench, "perform", fast)
    path = tmp_path / "runs.jsonl"
    sweep(jobs(2), path)
    whole = path.read_bytes()
    with files.locked(path), pytest.raises(InputError, match="found one in use"):
        sweep(jobs(1), path, resume=False)
    assert path.read_bytes() == whole
    sweep(jobs(1), path, resume=False)
    assert len(read_runs(path)) == 1


def test_what_has_changed_since_the_runs_of_a_file_is_said(tmp_path, monkeypatch):
    monkeypatch.setattr(bench, "perform", fast)
    path, told = tmp_path / "runs.jsonl", []
    old, new = tiny(), tiny(memory=99)
    assert old.name == new.name
    earlier = record(
        old.name, "t_good", instance_hash=old.content_hash, time_limit_s=5.0, seed=0, cpu="abacus", revision="r0"
    )
    append(path, earlier)
    sweep([MethodJob(new, "t_good", 5.0)], path, tell=told.append)
    words = [event.words for event in told if isinstance(event, Changed)]
    assert f"{old.name} has changed: 1 run of {old.content_hash} stay in the file, beside those of" in words[0]
    assert any(text.startswith("CPU is ") and text.endswith("runs in the file have abacus") for text in words)
    assert any(text.startswith("revision is ") and text.endswith("runs in the file have r0") for text in words)
    assert [run.instance_hash for run in read_runs(path)] == [old.content_hash, new.content_hash]
    told.clear()
    (tmp_path / "new.jsonl").write_bytes(b"")
    sweep([MethodJob(new, "t_good", 5.0)], tmp_path / "new.jsonl", tell=told.append)
    assert not any(isinstance(event, Changed) for event in told)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"name": ""}, "name: expected"),
        ({"name": "a/../../b"}, "expected a word that can name a file"),
        ({"method_options": {"t_absent": {}}}, "method_options: expected a method of this sweep .* found 't_absent'"),
        ({"method_options": {"t_good": {"colour": 1}}}, "option of t_good: expected one of: .* found 'colour'"),
        ({"seeds": [2**31]}, "seeds.*: expected at most 2147483647"),
        ({"budget": {"time_s": float("inf")}}, "time_s: expected"),
    ],
)
def test_sweeps_that_cannot_be_done_are_refused_before_the_first_run(rogues, tmp_path, changes, words):
    spec = tmp_path / "spec.yaml"
    data = {"schema": 1, "name": "x", "instances": ["mtrain_c1_alexnet_3gbs"], "methods": ["t_good"], **changes}
    spec.write_text(yaml.safe_dump(data))
    with pytest.raises(InputError, match=words):
        bench.bench(spec, plugins=(PLUGIN,))
    assert [each.name for each in tmp_path.iterdir()] == ["spec.yaml"]
