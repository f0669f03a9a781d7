"""A sweep loses no finished run, doubles none, and records what goes wrong."""

import json
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from mapgap.catalogue import registry
from mapgap.core import InputError
from mapgap.execution.sweep import Job, jobs_of, load_spec, read_runs, record_key, repair, sweep

PLUGIN = """
import time
from mapgap.core import Method, SolveResult, Status, Stop
from mapgap.problems.suboperation_mapping import Plan
from mapgap.problems.suboperation_mapping.lowered import lower

def first(instance, budget, delay=0.0):
    time.sleep(delay)
    ratio = (instance.batch,) + (0,) * (len(instance.accelerators) - 1)
    lowered = lower(instance, ratio)
    plan = lowered.plan(lowered.topological * 0, lowered.topological)
    return SolveResult(Status.FEASIBLE, Stop.DONE, plan)

def raises(instance, budget):
    raise RuntimeError("boom")

METHODS = [
    Method("bench_first", "suboperation_mapping", "baseline", "test", first, "all on the first", {"delay": 0.0}),
    Method("bench_raises", "suboperation_mapping", "baseline", "test", raises, "raises"),
]
"""


@pytest.fixture(scope="module")
def plugin(tmp_path_factory):
    path = tmp_path_factory.mktemp("plugin") / "bench_plugin.py"
    path.write_text(PLUGIN)
    registry.load_plugin(path)
    yield path
    registry._plugins[:] = [m for m in registry._plugins if not m.name.startswith("bench_")]


def roomy(seed):
    """A tiny instance on which everything fits the first accelerator."""
    instance = registry.library("suboperation_mapping").generate("tiny", seed)
    big = tuple(a.model_copy(update={"memory": 10**6}) for a in instance.accelerators)
    return instance.model_copy(update={"accelerators": big})


def test_resume_skips_finished_runs_and_keeps_failures(plugin, tmp_path):
    path = tmp_path / "runs.jsonl"
    jobs = [Job(roomy(s), m, 20.0) for s in (0, 1) for m in ("bench_first", "bench_raises")]
    records = sweep(jobs, path, parallel=2, plugins=(plugin,))
    assert [r["method"] for r in records] == [job.method for job in jobs]
    assert [bool(r["error"]) for r in records] == [False, True, False, True]
    assert "boom" in records[1]["error"]
    before = path.read_text()
    assert sweep(jobs, path, parallel=2, plugins=(plugin,)) == records
    assert path.read_text() == before  # nothing was run again
    more = [*jobs, Job(roomy(0), "bench_first", 20.0, seed=7)]
    assert len(sweep(more, path, plugins=(plugin,))) == 5
    assert len(read_runs(path)) == 5


def test_key_of_a_record_is_the_key_of_its_job(plugin, tmp_path):
    job = Job(roomy(3), "bench_first", 20.0, memory_mb=2000, seed=4, options={"delay": 0.01})
    (record,) = sweep([job], tmp_path / "runs.jsonl", plugins=(plugin,))
    assert record_key(record) == job.key


def test_torn_last_line_is_cut_and_run_again(plugin, tmp_path):
    path = tmp_path / "runs.jsonl"
    jobs = [Job(roomy(s), "bench_first", 20.0) for s in (0, 1)]
    sweep(jobs, path, plugins=(plugin,))
    whole = path.read_bytes()
    path.write_bytes(whole[:-20])  # killed while writing the second line
    assert len(read_runs(path)) == 1
    assert repair(path) > 0
    sweep(jobs, path, plugins=(plugin,))
    assert len(read_runs(path)) == 2
    assert {record_key(r) for r in read_runs(path)} == {job.key for job in jobs}


def test_killed_sweep_keeps_finished_runs(plugin, tmp_path):
    path = tmp_path / "runs.jsonl"
    script = textwrap.dedent(f"""
        import sys
        sys.path.insert(0, {str(Path(__file__).parent)!r})
        from pathlib import Path
        from mapgap.catalogue import registry
        from mapgap.execution.sweep import Job, sweep
        from test_bench import roomy
        registry.load_plugin(Path({str(plugin)!r}))
        jobs = [Job(roomy(s), "bench_first", 20.0, options={{"delay": 0.2}}) for s in range(50)]
        sweep(jobs, Path({str(path)!r}), plugins=(Path({str(plugin)!r}),))
    """)
    process = subprocess.Popen([sys.executable, "-c", script])
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and (not path.exists() or path.read_bytes().count(b"\n") < 2):
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.wait()
    repair(path)
    done = read_runs(path)
    assert 2 <= len(done) < 50
    jobs = [Job(roomy(s), "bench_first", 20.0, options={"delay": 0.2}) for s in range(len(done) + 1)]
    sweep(jobs, path, plugins=(plugin,))
    keys = [record_key(r) for r in read_runs(path)]
    assert len(keys) == len(set(keys)) == len(done) + 1


def test_garbage_in_a_run_file_names_its_line(tmp_path):
    path = tmp_path / "runs.jsonl"
    path.write_text('{"instance_hash": "x"}\nnot json\n{"instance_hash": "y"}\n')
    with pytest.raises(InputError, match=r"runs\.jsonl:2: expected one JSON object per line"):
        read_runs(path)
    path.write_text(json.dumps([1]) + "\n")
    with pytest.raises(InputError, match=r":1: expected a run record"):
        read_runs(path)
    with pytest.raises(InputError, match="found none"):
        read_runs(tmp_path / "missing.jsonl")


def test_spec_errors_are_named(tmp_path):
    path = tmp_path / "spec.yaml"
    path.write_text("schema: 1\nname: x\ninstances: [no_such_*]\nmethods: [mtrain_*]\n")
    with pytest.raises(InputError, match="no_such_"):
        jobs_of(load_spec(path))
    path.write_text("schema: 1\nname: x\ninstances: [mtrain_example_fig5]\nmethods: [nothing_*]\n")
    with pytest.raises(InputError, match="nothing_"):
        jobs_of(load_spec(path))
    path.write_text("schema: 1\nname: x\ninstances: []\nmethods: [a]\nbudjet: {}\n")
    with pytest.raises(InputError) as caught:
        load_spec(path)
    assert any("spec.yaml:3" in problem for problem in caught.value.problems)
    assert any("spec.yaml:5" in problem and "budjet" in problem for problem in caught.value.problems)


def test_globs_and_tags_choose_instances(tmp_path):
    path = tmp_path / "spec.yaml"
    path.write_text(
        "schema: 1\nname: x\ninstances: ['mtrain_c1_resnet18_*']\ntags: [3gbs]\n"
        "methods: [single_accelerator, 'mtrain_mapping_step?']\nseeds: [0, 1]\nbudget: {time_s: 5, workers: 2}\n"
    )
    jobs = jobs_of(load_spec(path))
    assert {job.instance.name for job in jobs} == {"mtrain_c1_resnet18_3gbs"}
    assert len(jobs) == 4 * 2
    assert {(job.time_s, job.workers) for job in jobs} == {(5.0, 2)}


def test_kinds_restrict_the_methods(tmp_path):
    path = tmp_path / "spec.yaml"
    head = "schema: 1\nname: x\ninstances: [elfish_lenet_straggler4]\n"
    path.write_text(head + "methods: ['*_per_cost', 'u*']\nkinds: [baseline]\n")
    assert [job.method for job in jobs_of(load_spec(path))] == ["contribution_per_cost", "uniform"]
    path.write_text(head + "methods: [mip]\nkinds: [baseline, bound]\n")
    with pytest.raises(InputError, match="expected a method of kind baseline or bound"):
        jobs_of(load_spec(path))
