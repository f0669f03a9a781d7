"""Sweeps under signals, methods that attack, workers of a cluster that die: no finished run is lost, none is doubled,
and no process is left."""

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import psutil
import pytest
from account import keep
from cli_support import tiny

from mapgap.catalogue import registry
from mapgap.catalogue.files import save_expanded
from mapgap.contract.seeds import SCALE
from mapgap.execution.sweep import MethodJob, RunEnded, sweep
from mapgap.records.files import read_runs

PLUGIN = Path(__file__).parents[1] / "support" / "hostile_plugin.py"
GONE_S = 15.0
SHARED_MACHINE_S = 20.0
"""What a run may wait for the processor beyond its limit and its grace."""


def gone(pids):
    """Those of the processes that still live after a while."""
    until = time.monotonic() + GONE_S
    while (left := [pid for pid in pids if alive(pid)]) and time.monotonic() < until:
        time.sleep(0.05)
    return left


def alive(pid):
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


def family(pid):
    """Keepers, warm processes and runs below a sweep."""
    try:
        return [child.pid for child in psutil.Process(pid).children(recursive=True)]
    except psutil.Error:
        return []


def strike(rng, pid):
    """Hit a sweep, or something below it, with a signal; what was done, in words."""
    below = family(pid)
    target = rng.choice(below) if below and rng.random() < 0.5 else pid
    number = rng.choice((signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGSTOP, signal.SIGHUP))
    if number == signal.SIGHUP and target == pid:
        number = signal.SIGKILL
    with contextlib.suppress(OSError):
        os.kill(target, number)
    return f"{number.name} to {'the sweep' if target == pid else 'what it started'}"


def whole_lines(path):
    """The lines of a run file without a torn last one."""
    lines = path.read_bytes().split(b"\n")[:-1] if path.exists() else []
    for line in lines:
        json.loads(line)
    return lines


def kills(tmp_path, rounds):
    """Start, strike and end one sweep again and again; counts of what was done."""
    rng, counts = random.Random(2026), Counter()
    instance, spec, path = tmp_path / "tiny.yaml", tmp_path / "spec.yaml", tmp_path / "runs.jsonl"
    save_expanded(tiny(), instance)
    seeds = list(range(8_000))
    data = {"schema": 1, "name": "kills", "instances": [str(instance)], "methods": ["h_good"], "seeds": seeds}
    spec.write_text(json.dumps(data | {"budget": {"time_s": 5}}), encoding="utf-8")
    command = [sys.executable, "-m", "mapgap", "bench", str(spec), "--jobs", "2", "--plugin", str(PLUGIN)]
    before = []
    for _ in range(rounds):
        process = subprocess.Popen([*command, "-o", str(path)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        size = path.stat().st_size if path.exists() else 0
        until = time.monotonic() + 30
        while time.monotonic() < until and process.poll() is None:
            if path.exists() and path.stat().st_size > size:  # it has begun: from now on any moment
                break
            time.sleep(0.02)
        time.sleep(rng.random() * 0.5)
        seen = {*family(process.pid)}
        counts[strike(rng, process.pid)] += 1
        time.sleep(rng.random() * 0.5)
        seen |= {*family(process.pid)}
        process.kill()
        process.wait()
        assert gone(seen) == []
        lines = whole_lines(path)
        assert lines[: len(before)] == before, "a finished run was lost or changed"
        before = lines
    runs = [json.loads(line) for line in before]
    finished = [run["seed"] for run in runs if run["stop"] != "interrupted" and not run["killed"]]
    assert len(finished) == len(set(finished)), "a run was done twice"
    assert len({run.key for run in read_runs(path)}) == len(read_runs(path))
    return counts, len(finished), len(runs) - len(finished)


@pytest.mark.in_turn
def test_a_sweep_survives_some_signals(tmp_path):
    counts, finished, _ = kills(tmp_path, 3)
    assert counts.total() == 3
    assert finished > 0


@pytest.mark.nightly
def test_a_sweep_survives_two_hundred_signals(tmp_path):
    began = time.monotonic()
    counts, finished, broken = kills(tmp_path, max(1, round(200 * SCALE)))
    figures = {"rounds": counts.total(), **dict(sorted(counts.items())), "finished runs": finished}
    keep("kills", began, **figures, **{"interrupted or killed": broken, "lost": 0, "doubled": 0, "processes left": 0})


@pytest.mark.nightly
def test_methods_that_attack_cost_their_budget_and_leave_nothing(tmp_path, monkeypatch):
    began, limit_s = time.monotonic(), 2.0
    pids, path = tmp_path / "pids", tmp_path / "runs.jsonl"
    monkeypatch.setenv("HOSTILE_PIDS", str(pids))
    monkeypatch.setenv("HOSTILE_MARK", str(tmp_path / "mark"))
    with registry.plugins_of_this_run():
        names = [method.name for method in registry.load_plugin(PLUGIN)]
        spent = []
        for name in names:
            start = time.monotonic()
            sweep([MethodJob(tiny(), name, limit_s, memory_mb=600)], path, plugins=(PLUGIN,))
            spent.append(time.monotonic() - start)
            assert spent[-1] < limit_s * 1.05 + 2.0 + SHARED_MACHINE_S, name
    assert gone([int(line) for line in pids.read_text().split()]) == []
    runs = read_runs(path)
    assert [run.method for run in runs] == names
    stops = Counter(f"stopped: {run.stop}" for run in runs)
    bad = sum((run.error or "").startswith("bad message") for run in runs)
    figures = {"methods": len(names), **stops, "bad messages": bad, "longest (s)": round(max(spent), 1)}
    keep("rogues", began, **figures, **{"processes left": 0})


@pytest.mark.nightly
def test_two_dask_workers_one_of_which_dies_twenty_times(tmp_path):
    distributed = pytest.importorskip("distributed")
    began, rng, done, killed = time.monotonic(), random.Random(2026), 0, 0
    for k in range(max(1, round(20 * SCALE))):
        path = tmp_path / f"runs{k}.jsonl"
        cluster = distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None)
        with cluster, registry.plugins_of_this_run():
            registry.load_plugin(PLUGIN)
            victims = {worker.pid for worker in cluster.workers.values()}
            seen, moment, struck = set(), rng.randrange(1, 9), []

            def kill_one(event, victims=victims, seen=seen, moment=moment, struck=struck):
                if isinstance(event, RunEnded) and event.done >= moment and not struck:
                    struck.append(rng.choice(sorted(victims)))
                    seen.update(family(struck[0]))
                    os.kill(struck[0], signal.SIGKILL)

            todo = [MethodJob(tiny(), "h_good", 20.0, seed=number) for number in range(12)]
            runs = sweep(todo, path, plugins=(PLUGIN,), tell=kill_one, dask=cluster.scheduler_address)
        assert struck
        assert [(run.seed, run.stop) for run in runs] == [(number, "done") for number in range(12)]
        assert sorted(run.key for run in read_runs(path)) == sorted(job.key for job in todo)
        assert gone(seen) == []
        done, killed = done + len(runs), killed + len(struck)
    keep("dask", began, **{"workers killed": killed, "runs": done, "lost": 0, "doubled": 0, "processes left": 0})
