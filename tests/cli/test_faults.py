"""The command line where the system fails: closed streams, full disks, few descriptors, poor locales. One message."""

import json
import os
import subprocess
import sys

import pytest

from mapgap.contract.seeds import some
from mapgap.records.files import read_runs

NAME = "elfish_lenet_straggler1"
SOLVE = f"solve {NAME} -m uniform --time-limit 20"


def shell(tmp_path, command, **environment):
    """A command line of a shell in which ``$M`` is mapgap: its exit code, output and error output."""
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=tmp_path,
        env={**os.environ, "M": f"{sys.executable} -m mapgap", **environment},
        capture_output=True,
        timeout=900,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr.decode(errors="replace")


def the_one_message(stderr):
    lines = [line for line in stderr.splitlines() if line.startswith("error: ")]
    assert len(lines) == 1, stderr
    assert "Traceback" not in stderr
    return lines[0]


@pytest.mark.in_turn
@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("$M list >&-", "standard output: expected to be open, found closed"),
        ("$M list >/dev/full", "standard output: expected a place that can be written, found: No space left"),
        (f"$M {SOLVE} -o /dev/full", "/dev/full: expected a file that can be written, found: No space left"),
        (
            f"ulimit -f 0; $M expand {NAME} -o out.yaml",
            "out.yaml: expected a file that can be written",
        ),
        (f"ulimit -n 9; $M {SOLVE}", "Too many open files"),
        (f"mkfifo f; $M check {NAME} f", "f: expected a readable file, found a fifo"),
        ("mkfifo f; $M verify ./f", "./f: expected a certificate file, found a fifo"),
        (f"$M solve {NAME} --plugin /dev/zero", "--plugin /dev/zero: expected a Python file, found a device"),
        ("$M report '[/x]'", "[/x]: expected a run file"),
        ("$M solve '[/b].yaml'", "[/b].yaml: expected a file, found nothing there"),
        (f"$M expand {NAME} -o {'x' * 300}", "File name too long"),
        (f"mkdir d; cd d; rmdir ../d; $M {SOLVE}", "the working folder: expected one that exists"),
    ],
)
def test_one_message_and_exit_code_2(tmp_path, command, words):
    code, _, stderr = shell(tmp_path, command)
    assert code == 2
    assert words.lower() in the_one_message(stderr).lower()


def test_a_failed_write_leaves_the_old_file(tmp_path):
    (tmp_path / "out.yaml").write_text("old")
    code, _, _ = shell(tmp_path, f"ulimit -f 0; $M expand {NAME} -o out.yaml")
    assert code == 2
    assert [(each.name, each.read_text()) for each in tmp_path.iterdir()] == [("out.yaml", "old")]


@pytest.mark.in_turn
def test_an_ascii_locale_and_few_descriptors_change_no_answer(tmp_path):
    ascii_only = {"PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "LC_ALL": "C"}
    code, stdout, _ = shell(tmp_path, f"ulimit -n 40; $M {SOLVE} && $M list problems", **ascii_only)
    assert code == 0
    assert b"\\u2500" in stdout  # the line under a heading
    assert stdout.isascii()


@pytest.mark.in_turn
@pytest.mark.parametrize("limit", some(1, ["0.001", "1e9"]))
def test_no_limit_is_too_short_or_too_long(tmp_path, limit):
    """Every method ends, and what it did not prove it does not say."""
    code, stdout, stderr = shell(tmp_path, f"$M solve {NAME} --all --json --time-limit {limit}")
    assert code == 0, stderr
    told = [json.loads(line) for line in stdout.splitlines()]
    assert len(told) > 5
    for each in told:
        assert each["error"] is None, each
        assert each["status"] != "OPTIMAL" or each["objective"] == 234, each  # certified in the library


@pytest.mark.nightly
def test_a_sweep_is_read_and_packed_while_it_is_written(tmp_path):
    folder = tmp_path / "page"
    folder.mkdir()
    (folder / "sweep.yaml").write_text(
        "schema: 1\nname: runs\ninstances: ['elfish_lenet*']\nmethods: [uniform, elfish_greedy]\n"
        "budget: {time_s: 5}\nseeds: [0, 1]\n"
    )
    begin = "$M bench page/sweep.yaml >log 2>&1 & p=$!; until test -s page/runs.jsonl; do sleep 0.1; done"
    meanwhile = "$M report page/runs.jsonl -o page >>out 2>>err; echo $?; $M pack page >>out 2>>err; echo $?"
    command = f"{begin}; while kill -0 $p 2>/dev/null; do {meanwhile}; done; wait $p; echo end $?"
    _, stdout, _ = shell(tmp_path, command)
    said = (tmp_path / "err").read_text()
    assert "Traceback" not in said, said
    *codes, end, last = stdout.decode().split()
    assert (end, last) == ("end", "0"), (tmp_path / "log").read_text()
    assert set(codes) <= {"0", "2"}
    assert ("2" in codes) == ("error: " in said)
    done = shell(tmp_path, "$M pack page && $M report page/runs.jsonl -o page --json")
    assert done[0] == 0, done
    runs = list(read_runs(folder / "runs.jsonl"))
    assert len(runs) == len({each.key for each in runs}) == 4 * len({each.instance for each in runs}) > 4


def test_both_streams_closed_is_an_exit_code(tmp_path):
    assert shell(tmp_path, "$M list >&- 2>&-")[0] == 2


def test_a_reader_that_has_seen_enough_is_no_error(tmp_path):
    assert shell(tmp_path, "set -o pipefail; $M list instances | head -1")[0] == 0


@pytest.mark.in_turn
def test_control_characters_of_data_are_shown(tmp_path):
    name = "\x1b[2J[red].yaml"
    (tmp_path / name).write_text('schema: 1\nproblem: "\\e]0;x\\a"\n')
    code, stdout, stderr = shell(tmp_path, f"$M validate '{name}'")
    assert code == 2
    assert b"\x1b" not in stdout
    assert "\x1b" not in stderr
    assert "\\x1b[2J[red].yaml" in stderr
