"""Runs that attack the harness with forged messages, and with processes that stop, kill and hide."""

import time
from pathlib import Path

import psutil
import pytest
from cli_support import tiny

from mapgap.catalogue import registry
from mapgap.core import Budget
from mapgap.execution import warm
from mapgap.execution.run import run_method
from mapgap.execution.sweep import MethodJob, sweep
from mapgap.records.files import read_runs

PLUGIN = Path(__file__).parents[1] / "support" / "hostile_plugin.py"
ALONE = 58  # by hand, see the docstring of cli_support.tiny
MESSAGES = ("foreign_result", "wrong_time", "forged_enumerated", "second_start", "brackets", "endless_line", "no_text")
HARMLESS = ("stops_parent", "kills_parent_and_hides", "hides", "breeds", "floods_output", "leaves_a_child")


@pytest.fixture(autouse=True)
def hostile():
    with registry.plugins_of_this_run():
        registry.load_plugin(PLUGIN)
        yield


@pytest.fixture
def pids(tmp_path, monkeypatch):
    """The file in which the methods note what they have started; all of it must be gone."""
    path = tmp_path / "pids"
    monkeypatch.setenv("HOSTILE_PIDS", str(path))
    yield path
    left = [int(line) for line in path.read_text().split()] if path.exists() else []
    until = time.monotonic() + 10
    while time.monotonic() < until and any(map(alive, left)):
        time.sleep(0.05)
    assert [pid for pid in left if alive(pid)] == []


def alive(pid):
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


def run(name, time_s=20.0):
    return run_method(tiny(), f"h_{name}", Budget(time_s=time_s), plugins=[PLUGIN])


@pytest.mark.parametrize("name", MESSAGES)
def test_a_bad_message_ends_the_run_and_the_plan_before_it_counts(name):
    record = run(name)  # it would sleep for ten minutes
    assert record.error.startswith("bad message: ")
    assert (record.stop, record.status, record.objective, record.certificate) == ("error", "FEASIBLE", ALONE, None)
    assert record.wall_s < 20.0


@pytest.mark.skipif(not warm.available(), reason="needs Linux 5.3")
@pytest.mark.parametrize("name", HARMLESS)
def test_whatever_a_run_starts_is_gone_and_its_plan_counts(name, pids):
    record = run(name)
    assert (record.error, record.objective) == (None, ALONE)
    assert run("good").objective == ALONE  # the next run has what it needs


@pytest.mark.skipif(not warm.available(), reason="needs Linux 5.3")
def test_a_daemon_that_keeps_stopping_the_warm_process_is_ended(pids):
    assert run("stops_parent_for_ever").objective == ALONE
    assert run("good").objective == ALONE


@pytest.mark.in_turn
@pytest.mark.parametrize(("name", "stop"), [("stops_itself", "time"), ("ignores_everything", "time")])
def test_a_run_that_cannot_be_asked_to_end_is_ended(name, stop):
    record = run(name, 0.5)
    assert (record.stop, record.error) == (stop, None)


def test_notes_of_endless_depth_are_an_error_of_the_run():
    assert "RecursionError" in run("notes_of_endless_depth").error


def test_a_run_that_was_killed_from_outside_is_repeated_once(tmp_path, monkeypatch):
    monkeypatch.setenv("HOSTILE_MARK", str(tmp_path / "mark"))
    path = tmp_path / "runs.jsonl"
    todo = [MethodJob(tiny(), "h_killed_once", 20.0)]
    (first,) = sweep(todo, path, plugins=(PLUGIN,))
    assert (first.killed, first.attempt, first.stop) == (True, 1, "error")
    assert "killed from outside (signal 9)" in first.error
    (second,) = sweep(todo, path, plugins=(PLUGIN,))
    assert (second.killed, second.attempt, second.objective) == (False, 2, ALONE)
    assert [each.attempt for each in read_runs(path)] == [2]
    assert len(path.read_text().splitlines()) == 2  # nothing is rewritten


def test_a_run_that_is_killed_again_is_not_done_a_third_time(tmp_path):
    path = tmp_path / "runs.jsonl"
    todo = [MethodJob(tiny(), "h_ends_by_terminate", 20.0)]
    attempts = [sweep(todo, path, plugins=(PLUGIN,))[0].attempt for _ in range(3)]
    assert attempts == [1, 2, 2]
    assert len(path.read_text().splitlines()) == 2
