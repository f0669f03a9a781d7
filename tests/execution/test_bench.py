"""A sweep loses no finished run, doubles none, and records what goes wrong."""

import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from mapgap.catalogue import registry
from mapgap.core import InputError
from mapgap.execution.sweep import MethodJob, RunEnded, SweepBegan, SweepEnded, jobs_of, load_spec, sweep
from mapgap.records.files import read_runs, repair

PLUGIN = """
import time
from mapgap.core import Method, SolveResult, Status, Stop
from mapgap.problems.suboperation_mapping import Plan, operation_name
from mapgap.problems.suboperation_mapping.evaluate import operations

def first(instance, budget, delay=0.0):
    time.sleep(delay)
    ratio = (instance.batch,) + (0,) * (len(instance.accelerators) - 1)
    found = operations(instance, ratio)
    backward = [o for o in found if o[0] == "BP"][::-1]
    order = [o for o in found if o[0] == "FP"] + backward + [o for o in found if o[0] == "WU"]
    names = tuple(operation_name(instance, o) for o in order)
    plan = Plan(ratio=ratio, order=(names, *((),) * (len(instance.accelerators) - 1)))
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
    with registry.plugins_of_this_run():
        registry.load_plugin(path)
        yield path


def roomy(seed):
    """A tiny instance on which everything fits the first accelerator."""
    instance = registry.library("suboperation_mapping").generate("tiny", seed)
    big = tuple(a.model_copy(update={"memory": 10**6}) for a in instance.accelerators)
    return instance.model_copy(update={"accelerators": big})


def test_resume_skips_finished_runs_and_keeps_failures(plugin, tmp_path):
    path = tmp_path / "runs.jsonl"
    jobs = [MethodJob(roomy(s), m, 20.0) for s in (0, 1) for m in ("bench_first", "bench_raises")]
    records = sweep(jobs, path, parallel=2, plugins=(plugin,))
    assert [r.method for r in records] == [job.method for job in jobs]
    assert [bool(r.error) for r in records] == [False, True, False, True]
    assert "boom" in records[1].error
    before = path.read_text()
    again = sweep(jobs, path, parallel=2, plugins=(plugin,))
    assert [run.to_json() for run in again] == [run.to_json() for run in records]
    assert path.read_text() == before  # nothing was run again
    more = [*jobs, MethodJob(roomy(0), "bench_first", 20.0, seed=7)]
    assert len(sweep(more, path, plugins=(plugin,))) == 5
    assert len(read_runs(path)) == 5


def test_a_sweep_tells_what_it_does(plugin, tmp_path):
    path, told = tmp_path / "runs.jsonl", []
    jobs = [MethodJob(roomy(s), "bench_first", 20.0, workers=64) for s in (0, 1, 2)]
    sweep(jobs[:1], path, plugins=(plugin,))
    sweep(jobs, path, parallel=2, plugins=(plugin,), tell=told.append)
    began, *ended, account = told
    assert isinstance(began, SweepBegan)
    assert (began.total, began.done, began.parallel, began.workers) == (3, 1, 2, 64)
    assert began.oversubscribed
    assert all(isinstance(event, RunEnded) for event in ended)
    assert [event.done for event in ended] == [2, 3]
    assert {event.record.key for event in ended} == {job.key for job in jobs[1:]}
    assert isinstance(account, SweepEnded)
    assert (account.runs, account.parallel) == (2, 2)
    assert account.measured_s == sum(event.record.wall_s for event in ended)
    told.clear()
    sweep(jobs[:1], path, plugins=(plugin,), tell=told.append)  # nothing to do: no account
    assert [(type(event), event.oversubscribed) for event in told] == [(SweepBegan, told[0].cores < 64)]


def test_the_time_around_runs_is_what_the_slots_did_not_measure():
    # Two slots for 10 s are 20 s, of which four runs measured 12.
    assert SweepEnded(runs=4, parallel=2, elapsed_s=10.0, measured_s=12.0).around_s == 2.0


def test_key_of_a_record_is_the_key_of_its_job(plugin, tmp_path):
    job = MethodJob(roomy(3), "bench_first", 20.0, memory_mb=2000, seed=4, options={"delay": 0.01})
    (record,) = sweep([job], tmp_path / "runs.jsonl", plugins=(plugin,))
    assert record.key == job.key


def test_torn_last_line_is_cut_and_run_again(plugin, tmp_path):
    path = tmp_path / "runs.jsonl"
    jobs = [MethodJob(roomy(s), "bench_first", 20.0) for s in (0, 1)]
    sweep(jobs, path, plugins=(plugin,))
    whole = path.read_bytes()
    path.write_bytes(whole[:-20])  # killed while writing the second line
    assert len(read_runs(path)) == 1
    assert repair(path) > 0
    sweep(jobs, path, plugins=(plugin,))
    assert len(read_runs(path)) == 2
    assert {r.key for r in read_runs(path)} == {job.key for job in jobs}


@pytest.mark.in_turn
def test_killed_sweep_keeps_finished_runs(plugin, tmp_path):
    path = tmp_path / "runs.jsonl"
    script = textwrap.dedent(f"""
        import sys
        sys.path.insert(0, {str(Path(__file__).parent)!r})
        from pathlib import Path
        from mapgap.catalogue import registry
        from mapgap.execution.sweep import MethodJob, sweep
        from test_bench import roomy
        registry.load_plugin(Path({str(plugin)!r}))
        jobs = [MethodJob(roomy(s), "bench_first", 20.0, options={{"delay": 0.2}}) for s in range(50)]
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
    jobs = [MethodJob(roomy(s), "bench_first", 20.0, options={"delay": 0.2}) for s in range(len(done) + 1)]
    sweep(jobs, path, plugins=(plugin,))
    keys = [r.key for r in read_runs(path)]
    assert len(keys) == len(set(keys)) == len(done) + 1


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
