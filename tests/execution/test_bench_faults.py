"""Sweeps under fire: killed at random moments, full disks, dying workers, methods that misbehave."""

import contextlib
import json
import os
import random
import signal
import time
from pathlib import Path

import pytest
from cli_support import PLUGIN, tiny
from records import record

from mapgap.catalogue import registry
from mapgap.core import InputError, MapgapError
from mapgap.execution import sweep as bench
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


def test_no_scheduler_there_is_one_clear_error(tmp_path):
    pytest.importorskip("distributed")
    with pytest.raises(InputError, match=r"--dask tcp://127\.0\.0\.1:9: expected the address of a scheduler"):
        sweep(jobs(1), tmp_path / "runs.jsonl", dask="tcp://127.0.0.1:9")
