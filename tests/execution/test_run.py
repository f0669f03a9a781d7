"""The harness believes nothing and survives everything: rogue methods, one per way of misbehaving."""

import importlib
import json
import os
import signal
import threading
import time

import numpy as np
import psutil
import pytest
from cli_support import PLUGIN, tiny

from mapgap.catalogue import registry
from mapgap.catalogue.files import load_instance
from mapgap.core import Budget, InputError, Method, SolveResult, Status, Stop
from mapgap.execution import limits
from mapgap.execution.run import check_options, interrupt_all, run_method, run_uninterrupted
from mapgap.records.record import RunRecord, plain, relative

ALONE = 58  # see cli_support.tiny


@pytest.fixture(scope="module")
def rogues():
    with registry.plugins_of_this_run():
        yield {m.name.removeprefix("t_"): m for m in registry.load_plugin(PLUGIN)}


@pytest.fixture
def run(rogues):
    def go(name, time_s=20.0, **more):
        budget = Budget(time_s=time_s, memory_mb=more.pop("memory_mb", None), seed=more.pop("seed", 0))
        return run_method(tiny(), rogues[name], budget, plugins=[PLUGIN], **more)

    return go


@pytest.fixture
def no_grace(monkeypatch):
    monkeypatch.setattr("mapgap.execution.run.GRACE_S", 0.3)


@pytest.mark.parametrize("isolate", [True, False])
def test_a_good_method(run, isolate):
    record = run("good", isolate=isolate, seed=7)
    assert (record.status, record.stop, record.objective, record.exit_code) == ("FEASIBLE", "done", ALONE, 0)
    assert record.bound is record.gap is record.certificate is record.error is None
    # B alone (114) was announced first; every announced plan is re-evaluated
    assert [point.objective for point in record.trace] == [114, ALONE]
    assert record.seed == 7
    assert record.terms["makespan_s"] == pytest.approx(58e-6)
    assert (record.peak_mb is not None) == isolate
    assert 0 <= record.wall_s < 20


def test_a_record_is_json_and_back(run):
    record = run("optimal")
    text = json.dumps(record.to_json(), allow_nan=False)
    assert RunRecord.from_json(json.loads(text)).to_json() == record.to_json()
    required = "instance instance_hash problem method status stop objective unit bound gap certificate wall_s build_s"
    required += " peak_mb seed workers versions load plan"
    assert set(required.split()) <= set(json.loads(text))
    assert {"python", "mapgap", "ortools"} <= set(record.versions)


def test_a_consistent_optimum(run):
    record = run("optimal")
    assert (record.status, record.stop, record.objective, record.bound) == ("OPTIMAL", "proved", ALONE, ALONE)
    assert (record.gap, record.certificate, record.build_s, record.exit_code) == (0.0, "claimed", 0.5, 0)


def test_a_bound_method_answers_without_a_plan(run):
    record = run("bounding")
    assert (record.status, record.objective, record.bound, record.exit_code) == ("UNKNOWN", None, 5, 0)
    assert [point.bound for point in record.trace] == [3, 5]


@pytest.mark.parametrize("isolate", [True, False])
def test_an_unanswered_question_takes_no_announced_bound_back(run, isolate):
    record = run("unanswered", isolate=isolate)
    assert (record.status, record.bound) == ("UNKNOWN", 5)


def test_an_infeasible_instance(run):
    record = run("infeasible")
    assert (record.status, record.reason, record.exit_code) == ("INFEASIBLE", "DRAM: nothing fits", 3)


def test_nothing_found(run):
    assert run("empty").exit_code == 4


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("infeasible_plan", "assigned once"),
        ("infeasible_report", "ratio"),
        ("wrong_claim", f"claims objective {ALONE - 1}, its plan evaluates to {ALONE}"),
        ("wrong_bound", f"bound {ALONE + 1}, above the objective {ALONE}"),
        ("wrong_optimum", f"OPTIMAL at objective {ALONE} with bound {ALONE - 1}"),
        ("wrong_infeasible", "claims INFEASIBLE"),
    ],
)
@pytest.mark.parametrize("isolate", [True, False])
def test_a_refuted_claim_is_a_loud_failure(run, name, words, isolate):
    record = run(name, isolate=isolate)
    assert words in record.error
    assert record.refuted
    assert (record.status, record.stop, record.exit_code) == ("UNKNOWN", "error", 5)
    assert record.objective is record.bound is record.gap is record.certificate is None


def test_a_refuted_plan_is_kept_with_its_violations(run):
    record = run("infeasible_plan")
    assert record.plan["ratio"] == [4, 0]
    assert [v["rule"] for v in record.violations] == ["assigned once"]


@pytest.mark.parametrize(
    ("name", "words", "kept"),
    [
        ("raising", "RuntimeError: the roof is on fire", ALONE),
        ("exiting", "exit code 7", ALONE),
        ("crashing", "signal 6", None),
        ("quitting", "SystemExit", None),
        ("no_plan", "expected the method to return a SolveResult, found dict", None),
        ("float_bound", "TypeError", None),
    ],
)
def test_a_method_that_dies_is_recorded_and_its_incumbent_kept(run, name, words, kept):
    record = run(name)
    assert words in record.error
    assert (record.stop, record.objective) == ("error", kept)
    assert record.status == ("UNKNOWN" if kept is None else "FEASIBLE")
    assert not record.refuted


@pytest.mark.in_turn
def test_hanging_is_killed_and_keeps_incumbent_and_bound(run, no_grace):
    record = run("sleeping", time_s=2.0)
    assert (record.status, record.stop, record.objective, record.bound) == ("FEASIBLE", "time", ALONE, 1)
    assert record.gap == ALONE - 1  # (58 - 1) / 1
    assert record.error is None
    assert "killed" in record.reason


@pytest.mark.in_turn
def test_hanging_without_a_plan(run, no_grace):
    record = run("silent", time_s=2.0)
    assert (record.status, record.stop, record.objective, record.exit_code) == ("UNKNOWN", "time", None, 4)


def test_a_run_stopped_by_its_limit_is_never_optimal(run):
    record = run("late_optimum")
    assert (record.status, record.stop, record.certificate) == ("FEASIBLE", "time", None)


def test_rubbish_on_the_outputs_disturbs_nothing(run):
    record = run("babbling")
    assert (record.objective, record.error) == (ALONE, None)
    assert "garbage" in record.output
    assert len(record.output) <= limits.TAIL_BYTES


def test_no_descendant_survives(run, monkeypatch):
    marker = f"marker-{os.getpid()}"
    monkeypatch.setenv("MAPGAP_TEST_MARKER", marker)
    assert run("breeding").objective == ALONE

    def left():
        alive = [p.info for p in psutil.process_iter(["cmdline", "status"]) if p.info["status"] != psutil.STATUS_ZOMBIE]
        return [info for info in alive if any(marker in word for word in info["cmdline"] or ())]

    until = time.monotonic() + 15.0  # for the system to end what was killed
    while left() and time.monotonic() < until:
        time.sleep(0.05)
    assert left() == []
    # What is left are keepers, each with one warm process, without children.
    for keeper in [p for p in psutil.Process().children() if "mapgap.execution.keeper" in p.cmdline()]:
        assert len(keeper.children()) == len(keeper.children(recursive=True)) == 1


@pytest.mark.in_turn
def test_a_leak_is_killed_at_the_memory_limit(run):
    record = run("leaking", memory_mb=600)
    assert (record.status, record.stop, record.objective) == ("FEASIBLE", "memory", ALONE)
    assert record.peak_mb > 600
    assert "600 MB" in record.reason


def test_a_memory_error_is_memory(run):
    assert run("exhausting").stop == "memory"


@pytest.fixture
def struck(tmp_path, monkeypatch):
    """Send this process a signal when the method that sleeps has announced its plan."""
    mark = tmp_path / "announced"
    monkeypatch.setenv("ROGUE_MARK", str(mark))

    def strike(number):
        while not mark.exists():
            time.sleep(0.05)
        time.sleep(0.5)
        os.kill(os.getpid(), number)

    return lambda number: threading.Thread(target=strike, args=(number,), daemon=True).start()


def test_sigterm_ends_whoever_would_go_on_to_the_next_run(rogues, struck):
    struck(signal.SIGTERM)
    with pytest.raises(SystemExit) as ended:
        run_uninterrupted(tiny(), rogues["sleeping"], Budget(20.0), plugins=[PLUGIN])
    assert ended.value.code == 130


def test_ctrl_c_as_a_run_ends_goes_to_its_caller(run, monkeypatch):
    cleanup = limits._Child.kill  # noqa: SLF001

    def late(child):
        os.kill(os.getpid(), signal.SIGINT)
        return cleanup(child)

    monkeypatch.setattr("mapgap.execution.limits._Child.kill", late)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # tests in the background begin without it
    try:
        with pytest.raises(KeyboardInterrupt):
            run("good")
    finally:
        signal.signal(signal.SIGINT, before)


def test_ctrl_c_keeps_the_incumbent(run, struck):
    struck(signal.SIGINT)
    before = signal.getsignal(signal.SIGINT)
    record = run("sleeping")
    assert (record.stop, record.status, record.objective, record.exit_code) == ("interrupted", "FEASIBLE", ALONE, 130)
    assert signal.getsignal(signal.SIGINT) is before


@pytest.mark.in_turn
def test_interrupt_all_reaches_runs_in_threads(run):
    found = []
    thread = threading.Thread(target=lambda: found.append(run("sleeping")))
    thread.start()
    try:
        time.sleep(1.0)
        interrupt_all()
        thread.join(timeout=20)
    finally:
        limits.INTERRUPT.clear()
    assert found[0].stop == "interrupted"


@pytest.mark.in_turn
def test_the_observer_sees_verified_values(run, no_grace):
    seen = []
    run("sleeping", time_s=2.0, observer=lambda elapsed, objective, bound: seen.append((objective, bound)))
    assert seen[-1] == (ALONE, 1)


def test_options_reach_the_method(run):
    assert run("good", options={"factor": 3}).notes == {"factor": 3, "fast": True, "name": "x"}


def test_bad_requests_are_input_errors(run, rogues):
    with pytest.raises(InputError, match="did you mean 'factor'"):
        run("good", options={"factr": 3})
    with pytest.raises(InputError, match="did you mean 't_good'"):
        run_method(tiny(), "t_goood", Budget())
    other = Method("m", "other", "exact", "r", lambda instance, budget: SolveResult(Status.UNKNOWN, Stop.DONE))
    with pytest.raises(InputError, match="solves other"):
        run_method(tiny(), other, Budget())


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("eager", 0, "eager: expected a number above 0, found 0"),
        ("eager", "x", "eager: expected a number above 0, found 'x'"),
        ("alone", 2.5, "alone: expected a whole number above 0, found 2.5"),
        ("alone", True, "alone: expected a whole number above 0, found True"),
    ],
)
def test_a_parameter_is_of_the_kind_of_its_default(name, value, expected):
    portfolio = registry.methods("suboperation_mapping")["portfolio"]
    with pytest.raises(InputError, match=expected):
        check_options(portfolio, {name: value})


def test_lists_among_the_parameters():
    widths = registry.methods("fpga_gpu_partition")["label_setting"]
    check_options(widths, {"widths": [1, 2]})
    for wrong in ([], [1, 0], 5, [1, "x"]):
        with pytest.raises(InputError, match="widths: expected a list of what is in"):
            check_options(widths, {"widths": wrong})


def test_a_method_the_child_cannot_find_is_recorded():
    # A method that only this process knows: the run fails, the harness does not.
    lost = Method("lost", "suboperation_mapping", "exact", "r", lambda i, b: SolveResult(Status.UNKNOWN, Stop.DONE))
    record = run_method(tiny(), lost, Budget(time_s=5))
    assert record.stop == "error"
    assert "lost" in record.error


@pytest.mark.parametrize(
    ("objective", "bound", "sign", "expected"),
    [
        (110, 100, 1, 0.1),
        (90, 100, -1, 0.1),
        (90, 100, 1, None),  # a plan better than the bound has no gap
        (110, 100, -1, None),
        (5, None, 1, None),
        (None, 5, 1, None),
        (0, 0, 1, 0.0),
        (3, 0, 1, None),
        (-90, -100, 1, 0.1),
    ],
)
def test_gap_is_never_infinite_nor_of_a_refuted_bound(objective, bound, sign, expected):
    assert relative(objective, bound, sign) == (None if expected is None else pytest.approx(expected))


@pytest.mark.in_turn
@pytest.mark.parametrize("isolate", [True, False])
def test_imports_happen_before_the_clock(tmp_path, monkeypatch, isolate):
    # The module of a method imports a solver and compiles kernels; a run must not be charged for that.
    slow = tmp_path / f"slow_module_{isolate}.py"
    slow.write_text(
        "import time\ntime.sleep(0.5)\nloaded = time.monotonic()\n"
        "from mapgap.core import SolveResult, Status, Stop\n"
        "def run(instance, budget):\n    return SolveResult(Status.UNKNOWN, Stop.DONE, notes={'loaded': loaded})\n"
    )
    plugin = tmp_path / "plugin.py"
    plugin.write_text(
        "from mapgap.core import Method\n"
        f"METHODS = [Method('slow', 'suboperation_mapping', 'baseline', 'r', '{slow.stem}:run')]\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    with registry.plugins_of_this_run():
        registry.load_plugin(plugin)
        record = run_method(tiny(), "slow", Budget(time_s=20.0), plugins=[plugin], isolate=isolate)
    assert record.error is None
    assert record.wall_s <= time.monotonic() - record.notes["loaded"]


@pytest.mark.parametrize("problem", sorted(registry.problems()))
def test_every_method_has_a_module_to_import_ahead(problem):
    for method in registry.methods(problem).values():
        assert importlib.import_module(method.module).__name__ == method.module


def test_notes_become_plain_json():
    notes = {"a": np.int64(3), 2: (np.arange(2), float("inf")), "s": Status.OPTIMAL, "o": object}
    assert json.loads(json.dumps(plain(notes), allow_nan=False)) == {
        "a": 3,
        "2": [[0, 1], None],
        "s": "OPTIMAL",
        "o": str(object),
    }


def test_among_equal_plans_the_returned_one_is_kept():
    """A method may report a plan and return another of the same objective that it prefers for other reasons."""
    instance = load_instance("synergy_w1_any")
    first = registry.methods(instance.problem)["synergy"].solve(instance, Budget()).plan
    places = {0: 3, 3: 0}  # the devices are alike: exchanging two of them changes nothing but the plan
    content = first.to_json()
    for pipeline in content["pipelines"]:
        for part in (pipeline, *pipeline["segments"]):
            for key in {"device", "source", "target"} & set(part):
                part[key] = places.get(part[key], part[key])
    second = type(first).model_validate_json(json.dumps(content))

    def both(instance, budget):
        budget.report(plan=first)
        return SolveResult(Status.FEASIBLE, Stop.DONE, second)

    method = Method("both", instance.problem, "baseline", "test", both)
    record = run_method(instance, method, Budget(), isolate=False)
    assert first != second
    assert record.plan == second.to_json()
    assert len(record.trace) == 1
