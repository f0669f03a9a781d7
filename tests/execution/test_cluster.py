"""Sweeps on clusters: certificates, versions, results that do not hold, and clusters that die."""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import warnings

import pytest
from cli_support import PLUGIN, tiny
from records import changed

from mapgap.catalogue import registry
from mapgap.core import InputError
from mapgap.execution import cluster
from mapgap.execution.cluster import ClusterGone, OpenCluster, checked
from mapgap.execution.sweep import MethodJob, RunEnded, sweep
from mapgap.records.files import read_runs

distributed = pytest.importorskip("distributed")

#: A scheduler and workers in processes, with TLS if files are given; the address, then until standard input ends.
CLUSTER = """
import sys, dask, distributed
if __name__ == "__main__":
    workers, ttl, *tls = sys.argv[1:]
    dask.config.set({"distributed.scheduler.worker-ttl": ttl})
    keys = {}
    if tls:
        ca, cert, key = tls
        keys = {"tls_ca_file": ca, "require_encryption": True}
        for role in ("scheduler", "worker", "client"):
            keys |= {f"tls_{role}_cert": cert, f"tls_{role}_key": key}
    made = distributed.LocalCluster(
        n_workers=int(workers), threads_per_worker=1, dashboard_address=None, host="127.0.0.1",
        protocol="tls://" if tls else None, security=distributed.Security(**keys) if tls else None)
    print(made.scheduler_address, *(each.pid for each in made.workers.values()), flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def rogues():
    with registry.plugins_of_this_run():
        registry.load_plugin(PLUGIN)
        yield


@pytest.fixture
def started(tmp_path):
    """``started(workers, ttl, *tls)``: process, address and workers of a cluster in a process of its own."""
    alive = []

    def start(workers=1, ttl="5 minutes", *tls):
        (tmp_path / "made.py").write_text(CLUSTER)
        command = [sys.executable, str(tmp_path / "made.py"), str(workers), ttl, *map(str, tls)]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
        process = subprocess.Popen(command, text=True, start_new_session=True, cwd=tmp_path, **pipes)
        alive.append(process)
        address, *pids = process.stdout.readline().split()
        return process, address, list(map(int, pids))

    yield start
    for process in alive:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def jobs(count, method="t_good"):
    return [MethodJob(tiny(), method, 5.0, seed=seed) for seed in range(count)]


@pytest.fixture(scope="module")
def honest(tmp_path_factory):
    with registry.plugins_of_this_run():
        registry.load_plugin(PLUGIN)
        (record,) = sweep(jobs(1), tmp_path_factory.mktemp("honest") / "runs.jsonl", plugins=(PLUGIN,))
    return record


def test_an_honest_result_is_taken_as_it_is(honest):
    assert checked(honest, jobs(1)[0].key, tiny()) is honest


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"objective": 57}, "a plan that has objective 58 here, not 57"),
        ({"plan": {"ratio": [4, 0], "order": [[], []]}}, "a plan that has objective None here, not 58"),
        ({"plan": {"x": 1}}, "something that is no plan"),
        ({"plan": None}, "an objective without a plan"),
        ({"versions": {"mapgap": "0.0.1"}}, "found mapgap 0.0.1"),
    ],
)
def test_a_result_that_does_not_hold_is_a_failed_run(honest, changes, words):
    # 58 ticks: alone on A, by the timetable in ``cli_support.tiny``.
    assert honest.objective == 58
    versions = {**honest.versions, **changes.pop("versions", {})}
    found = checked(changed(honest, versions=versions, **changes), honest.key, tiny())
    assert (found.objective, found.bound, found.stop, found.refuted) == (None, None, "error", True)
    assert words in found.error


@pytest.mark.parametrize("changes", [{"seed": 7}, {"instance_hash": "0" * 16}, {"method": "t_other"}])
def test_a_result_of_another_job_ends_the_sweep(honest, changes):
    with pytest.raises(ClusterGone, match="expected a run of tiny_cnn, found one of"):
        checked(changed(honest, **changes), honest.key, tiny())


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("address: tls://127.0.0.1:1\nca_file: a\n", "expected ca_file, cert, key, found ca_file only"),
        ("address: tls://127.0.0.1:1\nca_file: a\ncert: b\nkey: c\n", "expected files of certificates, found no"),
        ("address: tls://127.0.0.1:1\n", "expected certificates"),
        ("schema: 1\n", "expected a file with the field 'address'"),
    ],
)
def test_what_is_wrong_with_the_file_of_a_cluster_is_said(tmp_path, text, words):
    file = tmp_path / "cluster.yaml"
    file.write_text(text)
    with pytest.raises(InputError, match=words):
        cluster.connect(str(file))


@pytest.mark.in_turn
def test_a_cluster_without_certificates_is_warned_of_unless_it_is_here(monkeypatch):
    monkeypatch.setattr(cluster, "CONNECT_S", 0.1)
    for address, said in (("tcp://192.0.2.2:8786", 1), ("tcp://127.0.0.1:9", 0), ("localhost:9", 0), ("[::1]:9", 0)):
        with warnings.catch_warnings(record=True, action="always") as caught, pytest.raises(InputError):
            cluster.connect(address)
        assert sum(each.category is OpenCluster for each in caught) == said, address


@pytest.mark.nightly
@pytest.mark.skipif(shutil.which("openssl") is None, reason="makes certificates")
def test_the_recipe_with_certificates_runs_and_turns_strangers_away(rogues, started, tmp_path):
    for who in ("ours", "other"):
        command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=x", "-days", "2"]
        files = ["-keyout", str(tmp_path / f"{who}.key"), "-out", str(tmp_path / f"{who}.pem")]
        subprocess.run([*command, *files], check=True, capture_output=True)
    _, address, _ = started(1, "5 minutes", *(tmp_path / name for name in ("ours.pem", "ours.pem", "ours.key")))
    assert address.startswith("tls://")
    for who in ("ours", "other"):
        text = f"address: {address}\nca_file: {who}.pem\ncert: {who}.pem\nkey: {who}.key\n"
        (tmp_path / f"{who}.yaml").write_text(text)
    records = sweep(jobs(2), tmp_path / "runs.jsonl", plugins=(PLUGIN,), dask=str(tmp_path / "ours.yaml"))
    assert {run.objective for run in records} == {58}
    for stranger in (str(tmp_path / "other.yaml"), address.replace("tls", "tcp")):
        with pytest.raises(InputError, match="expected the address of a scheduler"):
            sweep(jobs(1), tmp_path / "other.jsonl", dask=stranger)


@pytest.mark.nightly
def test_workers_with_other_versions_are_refused_by_name(started, tmp_path, monkeypatch):
    _, address, _ = started()
    monkeypatch.setattr(cluster, "versions", lambda: {"python": "3.11.0", "mapgap": "9.9"})
    with pytest.raises(InputError, match=r"worker tcp://.*: expected mapgap 9\.9, found mapgap "):
        cluster.connect(address)


@pytest.mark.nightly
def test_a_scheduler_that_dies_ends_the_sweep_and_keeps_its_runs(rogues, started, tmp_path):
    process, address, _ = started()
    path = tmp_path / "runs.jsonl"

    def kill(event):
        if isinstance(event, RunEnded):
            os.killpg(process.pid, signal.SIGKILL)

    with pytest.raises(ClusterGone, match="the same command goes on with the others"):
        sweep(jobs(8), path, plugins=(PLUGIN,), tell=kill, dask=address)
    kept = len(read_runs(path))
    assert 0 < kept < 8
    assert len(sweep(jobs(8), path, plugins=(PLUGIN,))) == 8
    assert len(read_runs(path)) == 8


@pytest.mark.nightly
def test_a_worker_that_is_stopped_gives_its_runs_to_others_and_two_clients_do_not_mix(rogues, started, tmp_path):
    _, address, pids = started(2, "4s")
    files = [tmp_path / f"{k}.jsonl" for k in range(2)]

    def stop(event):
        if isinstance(event, RunEnded):
            with contextlib.suppress(ProcessLookupError):  # it was stopped for too long, and another one is there
                os.kill(pids[0], signal.SIGSTOP)

    second = os.fork()
    if second == 0:
        try:
            sweep(jobs(6), files[1], plugins=(PLUGIN,), dask=address)
        finally:
            os._exit(0)
    records = sweep(jobs(6), files[0], plugins=(PLUGIN,), tell=stop, dask=address)
    os.waitpid(second, 0)
    assert [run.seed for run in records] == list(range(6))
    for file in files:
        assert sorted(run.key for run in read_runs(file)) == sorted(job.key for job in jobs(6))
