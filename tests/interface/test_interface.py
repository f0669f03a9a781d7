"""The functions of the public interface against what the command line and the evaluator say."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import model_plugin
import pytest
import rogue_plugin
from cli_support import inside, tiny

import mapgap
from mapgap.catalogue import files, registry
from mapgap.problems.suboperation_mapping import Plan

SUPPORT = Path(__file__).parents[1] / "support"
ON_A, ON_B = 58, 114  # ticks of the plans of the plug-in; see cli_support.tiny
ROGUE = {method.name.removeprefix("t_"): method for method in rogue_plugin.METHODS}
GOOD = ROGUE["good"]
LENET = "elfish_lenet_straggler1"
SHORT = {"time_limit": 5, "ledger": False}


def on_b():
    return rogue_plugin.alone(tiny(), 1)


# load


def test_load_takes_a_name_a_path_and_an_instance(tmp_path):
    path = files.save_expanded(tiny(), tmp_path / "tiny.yaml")
    assert mapgap.load(path) == mapgap.load(str(path)) == mapgap.load(tiny()) == tiny()
    by_name = mapgap.load(LENET)
    compact = files.load_model(files.resolve(LENET), registry.library("neuron_masking").compact_type)
    assert by_name == mapgap.load(compact)
    assert by_name.content_hash == json.loads(inside("show", LENET, "--json").stdout)["instance_hash"]


def test_load_takes_another_objective():
    name = mapgap.instances("fpga_gpu_partition")[0]
    other = next(o for o in mapgap.problems()["fpga_gpu_partition"].objectives if o != mapgap.load(name).objective)
    assert mapgap.load(name, other) == mapgap.load(f"{name}@{other}") == mapgap.load(mapgap.load(name), objective=other)


def test_load_tells_everything_that_is_wrong(tmp_path):
    with pytest.raises(mapgap.InputError, match="did you mean 'elfish_lenet_straggler"):
        mapgap.load(LENET[:-1])
    data = tiny().to_json() | {"batch": 0, "flopz": 1}
    (tmp_path / "bad.json").write_text(json.dumps(data))
    with pytest.raises(mapgap.InputError) as caught:
        mapgap.load(tmp_path / "bad.json")
    assert len(caught.value.problems) == 2
    with pytest.raises(mapgap.InputError, match="expected a name, a path or an instance; found int"):
        mapgap.load(3)


# solve


@pytest.mark.in_turn
def test_solve_is_what_the_command_line_does():
    result = mapgap.solve(LENET, seed=3)
    record = json.loads(inside("solve", LENET, "--json", "--seed", 3).stdout)
    for field in ("method", "status", "objective", "bound", "plan", "seed", "instance_hash", "unit"):
        assert result.record.to_json()[field] == record[field], field
    assert result.status is mapgap.Status.OPTIMAL
    assert result.plan.to_json() == record["plan"]
    assert result.instance == mapgap.load(LENET)


def test_solve_takes_limits_and_options():
    result = mapgap.solve(tiny(), GOOD, options={"factor": 7}, time_limit=9, memory_limit=900, workers=2, seed=5)
    record = result.record
    assert (record.time_limit_s, record.memory_limit_mb, record.workers, record.seed) == (9, 900, 2, 5)
    assert result.notes["factor"] == 7
    assert (result.objective, result.status, result.stop) == (ON_A, mapgap.Status.FEASIBLE, mapgap.Stop.DONE)
    assert result.plan == rogue_plugin.alone(tiny())
    assert [point.objective for point in result.trace] == [ON_B, ON_A]


def test_a_method_of_a_notebook_runs_in_this_process():
    seen = []

    def mine(instance, budget):
        seen.append(os.getpid())
        return mapgap.SolveResult(mapgap.Status.FEASIBLE, mapgap.Stop.DONE, on_b())

    method = mapgap.Method("mine", "suboperation_mapping", "baseline", "here", mine)
    assert mapgap.solve(tiny(), method).objective == ON_B
    assert seen == [os.getpid()]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("wrong_claim", "claims objective 57"),
        ("wrong_bound", "claims bound 59"),
        ("infeasible_plan", "breaks 1 rule"),
        ("wrong_optimum", "OPTIMAL"),
    ],
)
def test_a_refuted_claim_is_an_error_that_keeps_the_record(name, words):
    with pytest.raises(mapgap.PlanError, match=words) as caught:
        mapgap.solve(tiny(), ROGUE[name], **SHORT)
    result = caught.value.result
    assert isinstance(caught.value, mapgap.RunError)
    assert (result.record.refuted, result.objective, result.plan, result.gap) == (True, None, None, None)
    assert "FAILED" in repr(result)


@pytest.mark.parametrize("name", ["raising", "crashing", "exiting"])
def test_a_method_that_dies_is_an_error_that_keeps_what_was_verified(name):
    with pytest.raises(mapgap.RunError) as caught:
        mapgap.solve(tiny(), ROGUE[name], **SHORT)
    assert not isinstance(caught.value, mapgap.PlanError)
    assert caught.value.result.error


def test_infeasible_and_nothing_found_are_answers():
    proven = mapgap.solve(tiny(), ROGUE["infeasible"], **SHORT)
    assert (proven.status, proven.plan, proven.objective, proven.gap) == (mapgap.Status.INFEASIBLE, None, None, None)
    nothing = mapgap.solve(tiny(), ROGUE["empty"], **SHORT)
    assert (nothing.status, nothing.plan) == (mapgap.Status.UNKNOWN, None)


def test_every_bad_argument_is_told():
    with pytest.raises(mapgap.InputError) as caught:
        mapgap.solve(tiny(), GOOD, time_limit=0, workers=0, seed=1.5, memory_limit=True)
    assert [problem.partition(":")[0] for problem in caught.value.problems] == [
        *("time_limit", "workers", "seed", "memory_limit")
    ]
    for limit in (float("inf"), float("nan"), "60", None, True):
        with pytest.raises(mapgap.InputError, match="time_limit"):
            mapgap.solve(tiny(), GOOD, time_limit=limit)
    with pytest.raises(mapgap.InputError, match="did you mean 'factor'"):
        mapgap.solve(tiny(), GOOD, options={"factr": 1})
    with pytest.raises(mapgap.InputError, match="did you mean 'single_accelerator'"):
        mapgap.solve(tiny(), "single_acelerator")
    with pytest.raises(mapgap.InputError, match="solves suboperation_mapping"):
        mapgap.solve(LENET, GOOD)
    with pytest.raises(mapgap.InputError, match=r"expected a name or a mapgap\.Method"):
        mapgap.solve(tiny(), 3)


@pytest.mark.in_turn
def test_a_hanging_method_from_a_file_is_killed_its_incumbent_kept_and_progress_called_or_shown(capfd):
    seen = []
    result = mapgap.solve(tiny(), ROGUE["sleeping"], time_limit=1.0, progress=lambda *state: seen.append(state))
    assert seen[-1][1:] == (ON_A, 1)
    assert (result.stop, result.objective, result.bound) == (mapgap.Stop.TIME, ON_A, 1)
    mapgap.solve(tiny(), ROGUE["sleeping"], time_limit=1.0, progress=True)
    assert "t_sleeping on tiny_cnn: 0 s, incumbent 58, bound 1, gap 5700.00%" in capfd.readouterr().err
    mapgap.solve(tiny(), GOOD, progress=False)
    assert capfd.readouterr() == ("", "")


def test_the_gap_is_to_the_best_bound_of_any_method():
    # The greedy proves nothing; the ledger knows the optimum of the library instance.
    alone = mapgap.solve(LENET, "elfish_greedy", ledger=False)
    assert (alone.bound, alone.best_bound, alone.gap, alone.gap_to_best) == (None, None, None, 0.0)
    optimum = mapgap.solve(LENET, ledger=False).objective
    known = mapgap.solve(LENET, "elfish_greedy")
    assert (known.bound, known.best_bound, known.best_plan) == (None, optimum, optimum)
    assert known.gap == known.gap_to_best == abs(known.objective - optimum) / optimum


# threads, event loops, Ctrl-C


def test_in_threads_and_in_an_event_loop():
    before = threading.active_count()  # other tests of this process have some
    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(lambda seed: mapgap.solve(tiny(), GOOD, seed=seed, ledger=False), range(4)))
    assert [result.objective for result in found] == [ON_A] * 4

    async def cell():
        here = mapgap.solve(tiny(), GOOD, ledger=False)
        beside = await asyncio.to_thread(mapgap.solve, tiny(), GOOD, ledger=False)
        return here.objective, beside.objective

    assert asyncio.run(cell()) == (ON_A, ON_A)
    assert threading.active_count() < before + 20


SCRIPT = """
import rogue_plugin, mapgap
from cli_support import tiny
methods = {each.name: each for each in rogue_plugin.METHODS}
try:
    FUNCTION
except KeyboardInterrupt as stop:
    assert isinstance(stop, mapgap.Interrupted), stop
    print(repr(stop.result))
    print(str(stop))
else:
    print("not stopped")
print("still here:", mapgap.solve(tiny(), methods["t_good"]).objective)
"""


@pytest.mark.in_turn
@pytest.mark.parametrize(
    ("call", "words"),
    [
        (
            "mapgap.solve(tiny(), methods['t_sleeping'], time_limit=60)",
            "t_sleeping on tiny_cnn: FEASIBLE, 58 ticks of 1000 ns, gap 5700.00% to bound 1, stopped by interrupted",
        ),
        ("mapgap.compare(tiny(), [methods[n] for n in ('t_good', 't_sleeping', 't_optimal')])", "t_sleeping"),
    ],
)
def test_control_c_stops_and_keeps_the_incumbent(tmp_path, call, words):
    mark = tmp_path / "announced"
    path = os.pathsep.join([str(SUPPORT), os.environ.get("PYTHONPATH", "")])
    process = subprocess.Popen(
        [sys.executable, "-c", SCRIPT.replace("FUNCTION", call)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": path, "ROGUE_MARK": str(mark)},
    )
    deadline = time.monotonic() + 300
    while not mark.exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=900)
    assert process.returncode == 0, err
    assert words in out
    assert "sys.last_value.result" in out
    assert "t_optimal" not in out
    assert f"still here: {ON_A}" in out


# compare


def test_compare_shares_the_best_bound():
    found = mapgap.compare(tiny(), [GOOD, ROGUE["bounding"], ROGUE["optimal"]], **SHORT)
    good, bounding, optimal = found
    assert [result.method for result in found] == list(found.methods) == ["t_good", "t_bounding", "t_optimal"]
    assert (good.bound, good.best_bound, good.gap) == (None, ON_A, 0.0)
    assert (bounding.bound, bounding.gap) == (5, None)
    assert (found.best, found.bound) == (good, ON_A)
    assert found.of("t_optimal") == (optimal,)
    assert (len(found), found[-1], found[:2]) == (3, optimal, (good, bounding))


@pytest.mark.in_turn
def test_compare_takes_everything_a_problem_has():
    found = mapgap.compare(LENET, time_limit=5)
    assert set(found.methods) == set(mapgap.methods("neuron_masking"))
    assert {result.gap for result in found if result.status is mapgap.Status.OPTIMAL} == {0.0}


def test_compare_on_instances_of_several_problems():
    found = mapgap.compare([LENET, tiny()], ["uniform", GOOD], **SHORT)
    assert [(result.instance.name, result.method) for result in found] == [(LENET, "uniform"), ("tiny_cnn", "t_good")]
    assert found.instances == (LENET, "tiny_cnn")
    assert found.on("tiny_cnn").best.objective == ON_A
    with pytest.raises(mapgap.InputError, match=r"take \.on\(NAME\) of 2"):
        _ = found.best
    with pytest.raises(mapgap.InputError, match="expected one of"):
        found.on("nowhere")


def test_a_failed_method_is_a_row_and_a_warning():
    with pytest.warns(mapgap.FailedRunWarning, match="claims objective 57"):
        found = mapgap.compare(tiny(), [ROGUE["wrong_claim"], GOOD], **SHORT)
    assert [bool(result.error) for result in found] == [True, False]
    assert found.best.method == "t_good"
    assert "UNKNOWN (failed)" in repr(found)


def test_contradictions_are_said_loudly_and_leave_no_gap():
    bold = mapgap.Method("bold", "suboperation_mapping", "exact", "lies", lambda i, b: _result(bound=100))
    with pytest.warns(mapgap.ContradictionWarning, match="bold claims bound 100, but t_good has a plan"):
        found = mapgap.compare(tiny(), [GOOD, bold], **SHORT)
    assert len(found.contradictions) == 1
    assert [(result.gap, result.best_bound) for result in found] == [(None, None)] * 2
    assert found.best.objective == ON_A
    assert repr(found).startswith("CONTRADICTION: ")
    assert "Contradiction:" in found._repr_html_()
    assert "CONTRADICTED" in repr(found[0])
    assert "Contradiction:" in found[0]._repr_html_()


def _result(bound):
    return mapgap.SolveResult(mapgap.Status.UNKNOWN, mapgap.Stop.DONE, bound=bound)


def test_compare_refuses_before_the_first_run():
    with pytest.raises(mapgap.InputError, match="did you mean 'uniform'"):
        mapgap.compare(LENET, ["elfish_greedy", "unifrom"])
    with pytest.raises(mapgap.InputError, match="did you mean 'factor'"):
        mapgap.compare(tiny(), [GOOD], options={"factr": 1})
    with pytest.raises(mapgap.InputError, match="two different ones are named 'tiny_cnn'"):
        mapgap.compare([tiny(), tiny(memory=99)], [GOOD])
    for nothing in ([], ()):
        with pytest.raises(mapgap.InputError, match="expected at least one"):
            mapgap.compare(nothing, [GOOD])
        with pytest.raises(mapgap.InputError, match="expected at least one"):
            mapgap.compare(tiny(), nothing)


# check and evaluate


def test_check_reads_whatever_holds_a_plan(tmp_path):
    result = mapgap.solve(tiny(), GOOD)
    plan = files.save_plan(result.plan, tmp_path / "plan.json")
    run = result.save(tmp_path / "run.json")
    data = result.plan.to_json()
    for form in (result.plan, result, data, {"plan": data}, result.record.to_json(), plan, str(run)):
        found = mapgap.check(tiny(), form)
        assert (bool(found), found.objective, found.violations, found.plan) == (True, ON_A, (), result.plan)


def test_check_lists_every_broken_rule():
    broken = {"ratio": [4, 0], "order": [["FP/conv/0", "FP/conv/0", "FP/nowhere/0"], []]}
    found = mapgap.check(tiny(), broken)
    assert not found
    assert {violation.rule for violation in found.violations} == {"unknown operation", "assigned once"}
    assert all(violation.message in repr(found) for violation in found.violations)


def test_check_survives_a_plan_on_which_the_evaluator_fails(monkeypatch):
    found = mapgap.check(tiny(), Plan(ratio=(), order=()))
    assert not found.feasible
    assert found.violations


def test_check_refuses_what_is_no_plan(tmp_path):
    with pytest.raises(mapgap.InputError) as caught:
        mapgap.check(tiny(), {"ratio": ["x", 0], "odrer": []})
    told = "\n".join(caught.value.problems)
    assert "plan: ratio[0]: expected an integer, found 'x'" in told
    assert "did you mean 'order'" in told
    with pytest.raises(mapgap.InputError, match="expected a plan object of suboperation_mapping"):
        mapgap.check(tiny(), mapgap.solve(LENET, "uniform").plan)
    with pytest.raises(mapgap.InputError, match="expected 'suboperation_mapping', found 'neuron_masking'"):
        mapgap.check(tiny(), mapgap.solve(LENET, "uniform").record.to_json())
    with pytest.raises(mapgap.InputError, match="expected a result with a plan"):
        mapgap.check(tiny(), mapgap.solve(tiny(), ROGUE["empty"], **SHORT))
    with pytest.raises(mapgap.InputError, match="JSON data"):
        mapgap.check(tiny(), {"ratio": object()})


def test_evaluate_is_the_evaluator_itself():
    assert mapgap.evaluate(tiny(), on_b()) == mapgap.problems()["suboperation_mapping"].evaluate(tiny(), on_b())
    with pytest.raises(mapgap.InputError, match="expected a plan object"):
        mapgap.evaluate(tiny(), on_b().to_json())


# export and back


@pytest.fixture
def models(monkeypatch):
    """The methods of the plug-in with integer programs, as if the house had them."""
    with_models = {method.name: method for method in model_plugin.METHODS}
    listed = registry.methods
    monkeypatch.setattr(registry, "methods", lambda problem: {**listed(problem), **with_models})


@pytest.mark.usefixtures("models")
def test_export_and_the_way_back(tmp_path):
    assert mapgap.export(tiny(), tmp_path / "m.lp", "t_mip") == [tmp_path / "m.lp"]
    (tmp_path / "m.sol").write_text("use_A 0\nuse_B 1\n")
    plan = mapgap.read_solution(tiny(), tmp_path / "m.sol", "t_mip")
    assert (plan, mapgap.check(tiny(), plan).objective) == (on_b(), ON_B)
    every = mapgap.export(tiny(), str(tmp_path / "m.mps"), "t_parts", "*")
    assert [path.name for path in every] == ["m_only_A.mps", "m_only_B.mps"]
    with pytest.raises(mapgap.InputError, match="the instance has 2 integer programs"):
        mapgap.export(tiny(), tmp_path / "m.mps", "t_parts")
    (tmp_path / "m.sol").write_text("use_B 1\n")
    assert mapgap.read_solution(tiny(), tmp_path / "m.sol", "t_parts", "only B") == on_b()


# what exists


def test_listings_agree_with_the_command_line():
    listed = json.loads(inside("list", "--json").stdout)
    assert list(mapgap.problems()) == [each["name"] for each in listed["problems"]]
    for problem in mapgap.problems():
        names = [each["name"] for each in listed["methods"] if each["problem"] == problem]
        assert list(mapgap.methods(problem)) == names
    assert mapgap.instances() == [each["name"] for each in listed["instances"]]
    assert mapgap.methods(tiny()).keys() == mapgap.methods("suboperation_mapping").keys()


def test_instances_by_problem_and_tags():
    listed = json.loads(inside("list", "instances", "--json").stdout)["instances"]
    tags = next(each["tags"] for each in listed if len(each["tags"]) > 1)
    assert mapgap.instances(tag=tags) == [each["name"] for each in listed if set(tags) <= set(each["tags"])]
    assert mapgap.instances(tag=tags[0]) == [each["name"] for each in listed if tags[0] in each["tags"]]
    only = [each["name"] for each in listed if each["problem"] == "neuron_masking"]
    assert mapgap.instances("neuron_masking") == only
    for ask in (mapgap.instances, mapgap.methods):
        with pytest.raises(mapgap.InputError, match="did you mean 'neuron_masking'"):
            ask("neuron_maskin")


def test_listings_show_themselves():
    assert "Asteroid" in repr(mapgap.problems())
    assert "<table>" in mapgap.methods("neuron_masking")._repr_html_()
