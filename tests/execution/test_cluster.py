"""Runs in parts on a cluster: what is known is shared, time is kept, a worker that dies costs its part only."""

import contextlib
import json
import os
import signal
import threading
import time

import pytest
from cli_support import inside, tiny
from parts import Numbers, Telling

from mapgap.catalogue import registry
from mapgap.catalogue.files import load_instance
from mapgap.core import Budget, InputError, Method
from mapgap.execution import cluster
from mapgap.execution.run import run_method

distributed = pytest.importorskip("distributed")


@contextlib.contextmanager
def two_workers():
    """Two workers of one thread; a part whose workers die twice is given up."""
    import dask

    with dask.config.set({"distributed.scheduler.allowed-failures": 1}):
        pool = distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None)
        with pool:
            yield pool


@pytest.fixture(scope="module")
def dask():
    with two_workers() as pool:
        yield pool


@pytest.fixture
def mortal():
    """A cluster of its own: on a busy machine a worker that was killed may not come back in time for another test."""
    with two_workers() as pool:
        yield pool


def do(dask, seconds=20.0, parts=Numbers, **tasks):
    method = Method("numbers", "suboperation_mapping", "exact", "test", lambda: None, parts=parts)
    with distributed.Client(dask.scheduler_address) as client:
        client.wait_for_workers(2, timeout=300)
        return cluster.solve(method, tiny(), Budget(seconds).start(), {"tasks": tasks}, client)


def test_parts_that_run_hear_what_others_have_found(dask):
    found = do(dask, quick=("after", 50, 0.0), slow=("after", 40, 15.0))
    first, last, _ = found.notes["found"]["slow"]
    assert first in (50, 10**6)
    assert last == 50
    assert (found.stop, found.notes["parts"], found.notes["cluster_threads"]) == ("proved", 2, 2)


def test_parts_that_cannot_matter_any_more_are_never_begun(dask):
    found = do(dask, a=("after", 5, 0.0), b=("after", 4, 0.0), c=("after", 9, 0.0), d=("after", 3, 0.0))
    assert set(found.notes["found"]) == {"a", "b", "d"}
    assert found.stop == "proved"


def test_a_part_has_its_share_of_the_time(dask):
    found = do(dask, seconds=60.0, **{f"p{k}": ("after", 9 - k, 0.0) for k in range(4)})
    limits = [limit for _, _, limit in found.notes["found"].values()]
    # Two threads: at the begin 4 parts are left, so that a thread has 2 of them; the last two have all that is left.
    # Which of them answers first is the workers' affair.
    assert all(limit <= most for limit, most in zip(sorted(limits), (30.0, 40.0, 60.0, 60.0), strict=True))
    assert max(limits) > 30.0


def test_the_run_ends_in_time_whatever_its_parts_do(dask):
    found = do(dask, seconds=0.5, stubborn=("after", 1, 4.0))
    assert (found.stop, found.notes["found"]) == ("time", {})
    time.sleep(3.0)  # the worker is busy with it still


def test_a_worker_that_dies_costs_its_part_only(mortal, tmp_path):
    found = do(mortal, doomed=("dying_once", 1, str(tmp_path)), other=("after", 0, 0.2))
    assert found.notes["found"]["doomed"] == "done"
    assert "other" in found.notes["found"]
    assert "parts_lost" not in found.notes


def test_a_part_that_kills_every_worker_is_left_out(mortal):
    found = do(mortal, deadly=("deadly", 2), other=("after", 1, 0.1))
    assert found.notes["parts_lost"] == ["deadly"]
    assert set(found.notes["found"]) == {"other"}


def test_the_error_of_a_part_is_the_error_of_the_run(dask):
    with pytest.raises(ValueError, match="this part fails"):
        do(dask, bad=("failing", 1))


def test_what_a_part_tells_is_known_before_it_ends(dask):
    found = do(dask, parts=Telling, slow=("telling", 1, 50, 15.0), other=("telling", 1, 40, 0.0))
    assert set(found.notes["heard"]) >= {("slow", 50), ("other", 40)}
    assert found.notes["found"]["slow"][0] <= 40  # of the other part, while this one ran


def test_one_part_has_the_whole_time_and_the_others_share_the_rest(dask):
    others = {f"p{k}": ("telling", 1, 50, 0.0) for k in range(3)}
    found = do(dask, seconds=60.0, parts=Telling, whole=("telling", 1, 50, 4.0), **others).notes["found"]
    assert found["whole"][1] > 50.0
    assert found["p0"][1] <= 20.0  # one thread is left for three parts


def test_a_part_that_can_change_nothing_any_more_is_not_waited_for(dask):
    found = do(dask, parts=Telling, endless=("telling", 5, 5, 15.0))
    assert (found.stop, found.notes["heard"], found.notes["found"]) == ("proved", [("endless", 5)], {})


def test_what_a_part_has_told_outlives_its_worker(mortal):
    found = do(mortal, parts=Telling, doomed=("telling_then_dying", 1, 30), other=("after", 1, 0.1))
    assert ("doomed", 30) in found.notes["heard"]
    assert found.notes["parts_lost"] == ["doomed"]
    assert "other" in found.notes["found"]


def test_a_worker_that_is_killed_costs_a_joint_search_its_part_only(mortal):
    instance, pids = registry.library("multi_model_splitting").generate("mixed_20x16", 200), []

    def kill():
        with distributed.Client(mortal.scheduler_address) as client:
            pids.extend(client.run(os.getpid).values())
            os.kill(pids[0], signal.SIGKILL)

    timer = threading.Timer(3.0, kill)
    timer.start()
    found = run_method(instance, "joint", Budget(8.0), cluster=mortal.scheduler_address)
    timer.join()
    assert pids
    assert (found.error, found.status) == (None, "FEASIBLE")
    assert found.bound > 0


@pytest.mark.parametrize("method", ["cpsat", "mip", "mip_cbc"])
def test_a_method_proves_on_a_cluster_what_it_proves_alone(dask, method):
    instance = registry.library("suboperation_mapping").generate("tiny", 2)
    alone = run_method(instance, method, Budget(30.0), isolate=False)
    spread = run_method(instance, method, Budget(30.0), cluster=dask.scheduler_address)
    assert spread.error is None
    assert (spread.status, spread.objective, spread.bound) == (alone.status, alone.objective, alone.bound)
    assert spread.notes["parts"] == spread.notes["ratios_searched"]


@pytest.mark.parametrize("objective", ["throughput", "latency"])
def test_seeds_of_a_joint_search_prove_on_a_cluster_what_one_proves_alone(dask, objective):
    for seed in (3, 4):
        instance = registry.library("multi_model_splitting").generate("small", seed)
        instance = registry.problems()["multi_model_splitting"].retarget(instance, objective)
        alone = run_method(instance, "joint", Budget(30.0), isolate=False)
        spread = run_method(instance, "joint", Budget(30.0), cluster=dask.scheduler_address)
        assert spread.error is None
        assert (spread.status, spread.objective, spread.bound) == (alone.status, alone.objective, alone.bound)


def test_an_instance_that_is_too_large_for_any_memory_is_infeasible_without_parts(dask):
    found = run_method(tiny(memory=1), "cpsat", Budget(30.0), cluster=dask.scheduler_address)
    assert (found.status, found.notes["parts"]) == ("INFEASIBLE", 0)
    assert "DRAM" in found.reason


def test_the_command_line(dask):
    done = inside("solve", "mtrain_example_fig5", "-m", "mip", "--dask", dask.scheduler_address, "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["objective"] == 36  # by brute force


def test_a_method_without_parts_is_bad_input():
    with pytest.raises(
        InputError, match=r"expected a method in independent parts \(cpsat, mip, mip_cbc\), found stage_mip"
    ):
        run_method(load_instance("mtrain_example_fig5"), "stage_mip", Budget(1.0), cluster="tcp://127.0.0.1:9")
