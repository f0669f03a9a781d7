"""Forks of warm processes: as fast as promised is for the studies; here, that nothing leaks from run to run."""

import os
import signal
import subprocess
import sys
import time

import psutil
import pytest
from cli_support import PLUGIN, tiny

from mapgap.catalogue import registry
from mapgap.core import Budget
from mapgap.execution import warm
from mapgap.execution.run import run_method

pytestmark = pytest.mark.skipif(not warm.available(), reason="needs Linux 5.3")

SUPERVISED = """
import sys
sys.path[:0] = sys.argv[1:]
from cli_support import PLUGIN, tiny
from mapgap.catalogue import registry
from mapgap.core import Budget
from mapgap.execution.run import run_method
registry.load_plugin(PLUGIN)
run_method(tiny(), "t_sleeping", Budget(time_s=600), plugins=[PLUGIN])
"""


@pytest.fixture(scope="module", autouse=True)
def rogues():
    with registry.plugins_of_this_run():
        registry.load_plugin(PLUGIN)
        yield


def run(name):
    return run_method(tiny(), name, Budget(time_s=20.0), plugins=[PLUGIN])


def gone(pids, within_s=20.0):
    until = time.monotonic() + within_s
    while time.monotonic() < until:
        if not any(psutil.pid_exists(p) and psutil.Process(p).status() != psutil.STATUS_ZOMBIE for p in pids):
            return True
        time.sleep(0.05)
    return False


def test_runs_share_a_warm_process_and_nothing_else():
    first, second = run("t_counting").notes, run("t_counting").notes
    assert first["parent"] == second["parent"] != os.getpid()
    assert first["pid"] != second["pid"]
    assert first["runs"] == second["runs"] == 1
    assert first["drawn"] != second["drawn"]


def test_the_surroundings_are_those_of_the_run(tmp_path, monkeypatch):
    run("t_counting")  # the warm process was started elsewhere
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ROGUE_MARK", "here")
    assert run("t_hiding").objective is not None
    assert (tmp_path / "here").exists()


def test_a_daemon_does_not_survive(tmp_path, monkeypatch):
    mark = tmp_path / "daemon"
    monkeypatch.setenv("ROGUE_MARK", str(mark))
    assert run("t_hiding").objective is not None
    assert gone([int(mark.read_text())])


def test_a_run_that_kills_the_warm_process_costs_only_the_warm_process():
    before = run("t_counting").notes["parent"]
    assert run("t_parricide").objective is not None
    assert gone([before])
    after = run("t_counting")
    assert after.error is None
    assert after.notes["parent"] != before


def test_without_warm_processes_a_run_is_the_same(monkeypatch):
    forked = run("t_good")
    monkeypatch.setattr(warm, "available", lambda: False)
    fresh = run("t_good")
    assert run("t_counting").notes["parent"] == os.getpid()
    assert (fresh.objective, fresh.status, fresh.plan, fresh.error) == (
        forked.objective,
        forked.status,
        forked.plan,
        None,
    )


def test_a_warm_process_that_cannot_start_is_replaced_by_a_fresh_one(monkeypatch):
    def start(key, note):
        raise warm.Gone

    monkeypatch.setattr(warm.Warm, "start", start)
    warm.POOL.close()
    assert run("t_counting").notes["parent"] == os.getpid()


@pytest.mark.in_turn
def test_few_warm_processes_wait(monkeypatch):
    monkeypatch.setattr(warm, "KEPT", 2)
    pool = warm.Pool()
    for k in range(4):
        pool.give_back(pool.take(warm.Key("json.tool", (str(k),), (), tuple(sys.path)), print))
    assert [each.key.arguments for each in pool.idle] == [("2",), ("3",)]
    processes = [each.process for each in pool.idle]
    pool.close()
    assert all(process.poll() is not None for process in processes)


@pytest.mark.in_turn
def test_nothing_outlives_a_killed_harness(tmp_path):
    mark = tmp_path / "announced"
    path = [str(PLUGIN.parent)]
    process = subprocess.Popen(
        [sys.executable, "-c", SUPERVISED, *path], env={**os.environ, "ROGUE_MARK": str(mark)}, cwd=tmp_path
    )
    until = time.monotonic() + 120
    while not mark.exists() and time.monotonic() < until:
        time.sleep(0.05)
    family = [child.pid for child in psutil.Process(process.pid).children(recursive=True)]
    assert len(family) >= 2  # the warm process and its child
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert gone(family)
