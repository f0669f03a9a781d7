"""The command line in processes of its own: every command, every exit code, Ctrl-C, and JSON that machines can read."""

import json
import os
import pty
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from cli_support import PLUGIN, inside, mapgap, tiny, wide

from mapgap import __version__
from mapgap.catalogue import files as loading

ALONE = 58  # see cli_support.tiny
FIELDS = {
    *("instance", "instance_hash", "problem", "method", "status", "stop", "objective", "unit", "bound", "gap"),
    *("certificate", "wall_s", "build_s", "peak_mb", "seed", "workers", "versions", "plan"),
}


@pytest.fixture(scope="module")
def instance(tmp_path_factory):
    return loading.save_expanded(tiny(), tmp_path_factory.mktemp("cli") / "tiny.yaml")


def solve(instance, method, *more, run=mapgap):
    return run("solve", instance, "--plugin", PLUGIN, "-m", f"t_{method}", *more)


def clean(done):
    """No traceback ever reaches a user."""
    assert "Traceback" not in done.stderr + done.stdout
    return done


def test_version():
    assert mapgap("--version").stdout == f"mapgap {__version__}\n"


@pytest.mark.in_turn
def test_solve_prints_one_json_object_with_the_promised_fields(instance, tmp_path):
    plan = tmp_path / "plan.json"
    done = solve(instance, "optimal", "--json", "-o", plan, "--seed", 3, "--gantt", tmp_path / "c.svg")
    assert done.returncode == 0
    (line,) = done.stdout.splitlines()
    record = json.loads(line)
    assert set(record) >= FIELDS
    assert (record["objective"], record["bound"], record["gap"], record["seed"]) == (ALONE, ALONE, 0.0, 3)
    assert (record["status"], record["certificate"]) == ("OPTIMAL", "claimed")
    assert record["instance_hash"] == tiny().content_hash
    assert json.loads(plan.read_text()) == record["plan"]
    assert (tmp_path / "c.svg").read_text().lstrip().startswith("<?xml")


def test_a_plan_survives_the_round_trip_through_check(instance, tmp_path):
    plan = tmp_path / "plan.json"
    solve(instance, "good", "-o", plan, run=wide)
    done = wide("check", instance, plan, "--json")
    found = json.loads(done.stdout)
    assert done.returncode == 0
    assert (found["feasible"], found["objective"], found["violations"]) == (True, ALONE, [])


def test_check_lists_all_violations_and_exits_5(instance, tmp_path):
    path = tmp_path / "plan.json"
    path.write_text('{"ratio": [4, 0], "order": [["FP/conv/0", "FP/conv/0", "FP/nowhere/0"], []]}')
    done = wide("check", instance, path, "--json")
    rules = {v["rule"] for v in json.loads(done.stdout)["violations"]}
    assert (done.returncode, rules) == (5, {"unknown operation", "assigned once"})
    text = clean(wide("check", instance, path))
    assert text.returncode == 5
    assert "FP/nowhere/0" in text.stderr


@pytest.mark.in_turn
@pytest.mark.parametrize(
    ("method", "code", "words"),
    [
        ("good", 0, ""),
        ("bounding", 0, ""),
        ("infeasible", 3, ""),
        ("empty", 4, ""),
        ("crashing", 4, "signal 6"),
        ("infeasible_plan", 5, "violation: assigned once: WU/fc/0"),
        ("wrong_claim", 5, "claims objective 57"),
        ("wrong_bound", 5, "claims bound 59"),
    ],
)
def test_exit_codes(instance, method, code, words):
    done = solve(instance, method, "--time-limit", 2, run=wide)
    assert done.returncode == code
    assert words in done.stderr


def test_infeasible_says_why(instance):
    # Of the time no proof is found, as there is a plan: the method is wrong.
    assert "DRAM: nothing fits" in solve(instance, "infeasible", "--time-limit", 1, run=wide).stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["solve", "nothing_of_that_name"], "expected a file or the name of a library instance"),
        (["solve", "nothing.yaml"], "found nothing there"),
        (["solve", "TINY", "-m", "t_god", "--plugin", PLUGIN], "did you mean 't_good'?"),
        (["solve", "TINY", "-m", "t_good", "--exact", "--plugin", PLUGIN], "found several"),
        (["solve", "TINY", "-m", "t_good", "--plugin", PLUGIN, "--set", "factr=1"], "did you mean 'factor'?"),
        (["solve", "TINY", "-m", "t_good", "--plugin", PLUGIN, "--set", "factor=x"], "expected an integer, found 'x'"),
        (["solve", "TINY", "-m", "t_good", "--plugin", PLUGIN, "--set", "fast=x"], "expected true or false"),
        (["solve", "TINY", "-m", "t_good", "--plugin", PLUGIN, "--set", "fast"], "expected name=value"),
        (["solve", "TINY", "-m", "t_good", "--plugin", PLUGIN, "--objective", "energy"], "one objective only"),
        (["solve", "TINY", "-m", "t_good", "--plugin", PLUGIN, "--gantt", "x.gif"], "expected a file name in .svg"),
        (["solve", "TINY", "-m", "t_good", "--plugin", PLUGIN, "-o", "no/where/x.json"], "an existing folder"),
        (["solve", "TINY", "--plugin", "nothing.py"], "found nothing there"),
        (["solve", "TINY", "--time-limit", "0"], "--time-limit"),
        (["check", "TINY", "nothing.json"], "expected a readable file"),
        (["list", "method"], "did you mean 'methods'?"),
        (["list", "--tag", "elfihs"], "found elfihs; did you mean 'elfish'?"),
        (["list", "instances", "--tag", "elfish", "--tag", "mtrain"], "found elfish, mtrain"),
        (["list", "--problem", "suboperation_maping"], "did you mean 'suboperation_mapping'?"),
        (["show", "suboperation_maping"], "did you mean 'suboperation_mapping'?"),
        (["generate", "suboperation_mapping", "tinny"], "did you mean 'tiny'?"),
        (["schema", "nothing"], "expected one of"),
        (["schema", "suboperation_mapping", "--form", "x"], "expected compact, expanded or plan"),
        (["bench", "nothing.yaml"], "nothing.yaml"),
        (["report", "nothing.jsonl"], "nothing.jsonl"),
        (["report", "a_file"], "a_file: expected at least one finished run, found none"),
        (["report", "a_file", "-o", "a_file"], "-o a_file: expected the name of a folder, found a file"),
        (["solve", "TINY", "-m", "t_good", "--plugin", PLUGIN, "-o", "."], "-o .: expected the name of a file"),
        (["solve", "TINY", "-m", "t_good", "--plugin", PLUGIN, "--gantt", "no/x.svg"], "no/x.svg: expected a file in"),
        (["expand", "TINY", "-o", "."], "-o .: expected the name of a file, found a folder"),
        (["expand", "TINY", "-o", "no/where.yaml"], "an existing folder"),
        (["check", "TINY", "a_file", "--gantt", "no/x.svg"], "--gantt no/x.svg: expected a file in an existing folder"),
        (["check", "TINY", "a_file"], "a_file:1:1: expected a mapping, found 'x'"),
        (["generate", "suboperation_mapping", "tiny", "-o", "a_file/x"], "found a file (a_file)"),
        (["attack", "suboperation_mapping", "-m", "heft", "-o", "a_file"], "found a file (a_file)"),
        (["attack", "nothing", "-m", "heft"], "problem: expected one of"),
        (["attack", "suboperation_mapping", "-m", "heftt"], "did you mean 'heft'?"),
        (["certify", "nothing"], "expected a file or the name of a library instance"),
        (["certify", "TINY", "--objective", "energy"], "one objective only"),
        (["study", "neuron_masking", "-o", "a_file"], "found a file (a_file)"),
        (["validate", "a_file"], "a_file:1:1: expected a mapping"),
        (["study", "nothing"], "nothing"),
        (["no_such_command"], "no_such_command"),
    ],
)
def test_bad_input_is_one_clear_message_and_exit_2(instance, tmp_path, monkeypatch, arguments, words):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a_file").write_text("x")
    done = clean(inside(*(instance if word == "TINY" else word for word in arguments)))
    assert done.returncode == 2
    assert words in done.stderr
    assert done.stdout == ""


def test_a_plugin_whose_name_is_taken(instance):
    done = clean(inside("solve", instance, "--plugin", PLUGIN, "--plugin", PLUGIN, "-m", "t_good"))
    assert done.returncode == 2
    assert "two methods" in done.stderr


def test_validate_lists_every_error_of_every_file(instance, tmp_path):
    broken = tmp_path / "broken.yaml"
    lines = instance.read_text().replace("batch: 4", "batch: 0").replace("kind: fused", "kind: fussed").splitlines()
    broken.write_text("\n".join(lines))
    done = clean(inside("validate", broken, instance))
    assert done.returncode == 2
    assert f"{broken}:{lines.index('batch: 0') + 1}:8: batch: expected at least 1, found 0" in done.stderr
    assert f"{broken}:{lines.index('  kind: fussed') + 1}:9: layers[1].kind: expected" in done.stderr
    assert f"{instance}: ok ({tiny().content_hash})" in done.stdout
    report = json.loads(inside("validate", broken, instance, "--json").stdout)
    assert [(entry["ok"], len(entry["problems"])) for entry in report["files"]] == [(False, 2), (True, 0)]


def test_validate_refuses_an_instance_that_fits_no_device(tmp_path):
    path = loading.save_expanded(tiny(memory=8), tmp_path / "small.yaml")
    done = clean(inside("validate", path))
    assert done.returncode == 2
    assert "layer fc need 10 units, the largest DRAM has 8" in done.stderr


def test_several_methods_make_one_line_each(instance):
    both = ("solve", instance, "--plugin", PLUGIN, "-m", "t_good", "-m", "t_bounding")
    done = wide(*both, "--json", "--set", "factor=4", "--set", "name=a b")
    records = [json.loads(line) for line in done.stdout.splitlines()]
    assert [r["method"] for r in records] == ["t_good", "t_bounding"]
    assert records[0]["notes"] == {"factor": 4, "fast": True, "name": "a b"}
    assert done.returncode == 0
    table = wide(*both)
    assert "1060.00%" in table.stdout  # (58 - 5) / 5: the gap uses the bound of the other method


LIAR = """
from mapgap.core import *
def run(instance, budget):
    return SolveResult(Status.UNKNOWN, Stop.DONE, bound=10**6)
METHODS = [Method('liar', 'suboperation_mapping', 'bound', 'r', run)]
"""
LIE = "liar claims bound 1000000, but t_good has a plan of objective 58"


@pytest.fixture
def liar(tmp_path):
    path = tmp_path / "liar.py"
    path.write_text(LIAR)
    return path


def test_methods_that_contradict_each_other_fail(instance, liar):
    done = wide("solve", instance, "--plugin", PLUGIN, "--plugin", liar, "-m", "t_good", "-m", "liar")
    assert done.returncode == 5
    assert LIE in done.stderr


@pytest.mark.in_turn
def test_a_sweep_and_its_report_name_contradictions_and_fail(instance, liar, tmp_path):
    spec = tmp_path / "sweep.yaml"
    spec.write_text(f"schema: 1\nname: s\ninstances: [{instance}]\nmethods: [t_good, liar]\n")
    plugins = ("--plugin", PLUGIN, "--plugin", liar)
    done = clean(wide("bench", spec, *plugins, "--update-ledger", "--ledger", tmp_path / "ledger.yaml"))
    assert done.returncode == 5
    assert f"tiny_cnn: {LIE}" in done.stderr
    assert done.stdout.split() == [str(tmp_path / "s.jsonl")]
    assert not (tmp_path / "ledger.yaml").exists()  # nothing of it is entered
    assert "2 runs in" in done.stderr
    assert "s around it" in done.stderr
    done = clean(wide("report", tmp_path / "s.jsonl", "-o", tmp_path / "report", "--no-ledger"))
    assert done.returncode == 5
    assert LIE in done.stderr
    assert f"Contradiction: tiny_cnn: {LIE}." in (tmp_path / "report" / "report.md").read_text()


def test_oversubscribed_cores_are_a_warning(instance, tmp_path):
    spec = tmp_path / "sweep.yaml"
    spec.write_text(
        f"schema: 1\nname: s\ninstances: [{instance}]\nmethods: [t_good, t_raising]\nbudget: {{workers: 1000}}\n"
    )
    done = clean(wide("bench", spec, "--plugin", PLUGIN))
    assert done.returncode == 0
    assert "warning: 1 jobs x 1000 workers on" in done.stderr
    assert "t_raising: RuntimeError: the roof is on fire" in done.stderr


@pytest.mark.parametrize("columns", ["40", "80", "200"])
def test_numbers_are_never_cropped(instance, monkeypatch, columns):
    # A number that loses its end looks like a smaller one.
    monkeypatch.setenv("COLUMNS", columns)
    shown = inside("solve", instance, "--plugin", PLUGIN, "-m", "t_good", "-m", "t_bounding").stdout
    (row,) = [line for line in shown.splitlines() if "t_good" in line]
    assert row.split()[:5] == ["t_good", "baseline", "FEASIBLE", "done", "58"]
    assert "1060.00%" in row


def test_expand_writes_what_loads_again(instance, tmp_path):
    out = tmp_path / "expanded.yaml"
    assert inside("expand", instance, "-o", out).returncode == 0
    assert loading.load_instance(out) == tiny()
    assert json.loads(inside("expand", instance, "--json").stdout) == tiny().to_json()


def test_list_show_and_schema_are_json(instance):
    listed = json.loads(inside("list", "--json", "--plugin", PLUGIN).stdout)
    assert set(listed) == {"problems", "methods", "instances"}
    assert {"name", "problem", "kind", "reference"} <= set(listed["methods"][0])
    assert "t_good" in {m["name"] for m in listed["methods"]}
    assert json.loads(inside("list", "instances", "--tag", "no_such_tag", "--json").stdout) == {"instances": []}
    assert json.loads(inside("show", instance, "--json").stdout)["instance_hash"] == tiny().content_hash
    assert json.loads(inside("show", "t_good", "--plugin", PLUGIN, "--json").stdout)["kind"] == "baseline"
    assert json.loads(inside("show", "suboperation_mapping", "--json").stdout)["paper"].startswith("MTrain")
    assert json.loads(inside("schema", "suboperation_mapping").stdout)["type"] == "object"


def test_generate_writes_instances_that_validate(tmp_path):
    arguments = ("generate", "suboperation_mapping", "tiny", "--seed", 5, "--count", 2, "--json")
    paths = json.loads(inside(*arguments, "-o", tmp_path / "a").stdout)["files"]
    again = json.loads(inside(*arguments, "-o", tmp_path / "b").stdout)["files"]
    assert len(paths) == 2
    hashes = [loading.load_instance(path).content_hash for path in paths]
    assert hashes == [loading.load_instance(path).content_hash for path in again]
    assert len(set(hashes)) == 2


def test_machines_get_an_empty_list_where_no_instance_carries_a_tag():
    done = inside("list", "instances", "--tag", "nowhere", "--json")
    assert (done.returncode, json.loads(done.stdout)) == (0, {"instances": []})


@pytest.mark.in_turn
@pytest.mark.parametrize("command", ["solve", "list"])
def test_a_reader_who_has_seen_enough_changes_nothing(instance, tmp_path, command):
    plan = tmp_path / "plan.json"
    more = [str(instance), "--plugin", str(PLUGIN), "-m", "t_good", "-o", str(plan)] if command == "solve" else []
    process = subprocess.Popen(
        [sys.executable, "-m", "mapgap", command, *more], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    process.stdout.close()  # as ``| head -0`` does
    stderr = process.stderr.read()
    assert (process.wait(timeout=900), stderr) == (0, "")
    assert plan.exists() == (command == "solve")


def start(instance, *more, **options):
    command = [sys.executable, "-m", "mapgap", "solve", str(instance), "--plugin", str(PLUGIN), "-m", "t_sleeping"]
    mark_of(instance).unlink(missing_ok=True)
    env = {**os.environ, **options.pop("env", {}), "ROGUE_MARK": str(mark_of(instance))}
    return subprocess.Popen([*command, *map(str, more)], text=True, env=env, **options)


def mark_of(instance):
    """File that the method makes when it has announced its plan."""
    return Path(instance).with_suffix(".mark")


def workers_of(process):
    import psutil

    return [p for p in psutil.Process(process.pid).children(recursive=True) if p.is_running()]


def wait_for_incumbent(process, mark):
    """Until the method has announced its plan and the command had time to take it."""
    deadline = time.monotonic() + 60
    while not mark.exists():
        assert time.monotonic() < deadline
        time.sleep(0.05)
    time.sleep(0.5)
    return workers_of(process)


@pytest.mark.in_turn
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_prints_and_writes_the_incumbent(instance, tmp_path, number):
    plan = tmp_path / "plan.json"
    process = start(instance, "--json", "-o", plan, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    children = wait_for_incumbent(process, mark_of(instance))
    process.send_signal(number)
    stdout, stderr = process.communicate(timeout=900)
    assert process.returncode == 130
    record = json.loads(stdout)
    assert (record["stop"], record["status"], record["objective"]) == ("interrupted", "FEASIBLE", ALONE)
    assert json.loads(plan.read_text()) == record["plan"]
    assert "Traceback" not in stderr
    assert not [child for child in children if child.is_running() and child.status() != "zombie"]


@pytest.mark.in_turn
def test_an_interrupted_sweep_stops_its_runs_and_can_go_on(instance, tmp_path):
    spec = tmp_path / "sweep.yaml"
    spec.write_text(f"schema: 1\nname: s\ninstances: [{instance}]\nmethods: [t_sleeping]\nseeds: [0, 1]\n")
    command = [sys.executable, "-m", "mapgap", "bench", str(spec), "--plugin", str(PLUGIN)]
    mark = tmp_path / "announced"
    env = {**os.environ, "ROGUE_MARK": str(mark)}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env)
    children = wait_for_incumbent(process, mark)
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=900)
    assert process.returncode == 130
    assert "Traceback" not in stderr
    assert not [child for child in children if child.is_running() and child.status() != "zombie"]
    # What was interrupted is no finished run: the next start does it again.
    runs = tmp_path / "s.jsonl"
    records = [json.loads(line) for line in runs.read_text().splitlines()] if runs.exists() else []
    assert {record["stop"] for record in records} <= {"interrupted"}


@pytest.mark.in_turn
def test_a_killed_harness_leaves_no_solver_behind(instance):
    process = start(instance, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    children = wait_for_incumbent(process, mark_of(instance))
    assert children
    process.kill()
    process.wait()
    deadline = time.monotonic() + 10
    while any(child.is_running() and child.status() != "zombie" for child in children):
        assert time.monotonic() < deadline, "the solver outlived the harness"
        time.sleep(0.1)


@pytest.mark.in_turn
def test_progress_stands_on_a_terminal_only(instance):
    main, terminal = pty.openpty()
    env = {**os.environ, "TERM": "xterm", "COLUMNS": "150"}
    process = start(instance, "--time-limit", 1, stdout=subprocess.PIPE, stderr=terminal, env=env)
    os.close(terminal)
    shown = b""
    while select.select([main], [], [], 30)[0]:
        try:
            part = os.read(main, 4096)
        except OSError:
            break
        shown += part
    stdout, _ = process.communicate()
    os.close(main)
    assert b"incumbent 58" in shown
    assert b"bound 1" in shown
    assert "incumbent" not in stdout
    assert process.returncode == 0
