"""The pages on adding a method and a problem show the example, their commands run, and its contract holds."""

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from announced import announce_project
from cli_support import mapgap

ROOT = Path(__file__).parents[2]
PAGES = ROOT / "docs" / "maintainers"
PROJECT = ROOT / "examples" / "gpu_placement"
EXAMPLE = re.compile(r"^```python (\S+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SHOWN = re.compile(r"^```\{listing\} (\S+)$", re.MULTILINE)
COMMANDS = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)

if not PAGES.is_dir():
    pytest.skip("the pages are not part of a wheel", allow_module_level=True)

METHOD, PROBLEM = ((PAGES / name).read_text() for name in ("method.md", "problem.md"))
HOUR = PROBLEM[: PROBLEM.index("## The contract")]
LINES = [line.partition("  #")[0] for block in COMMANDS.findall(HOUR) for line in block.splitlines()]


def test_the_page_shows_every_file_of_the_example():
    shown = {ROOT / place for place in SHOWN.findall(HOUR)}
    assert shown == {path for path in PROJECT.rglob("*") if path.suffix in (".py", ".toml", ".yaml")}


@pytest.mark.in_turn
def test_the_heuristic_of_ten_lines_runs(tmp_path):
    ((name, source),) = EXAMPLE.findall(METHOD)
    assert len([line for line in source.splitlines() if line.strip()]) <= 10
    (tmp_path / name).write_text(source)
    command = next(line for block in COMMANDS.findall(METHOD) for line in block.splitlines() if name in line)
    done = mapgap(*shlex.split(command)[1:], "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    runs = {run["method"]: run for run in map(json.loads, done.stdout.splitlines())}
    assert runs.keys() >= {"least_neurons", "elfish_greedy"}
    assert runs["least_neurons"]["status"] == "FEASIBLE"
    assert runs["least_neurons"]["objective"] < runs["elfish_greedy"]["objective"]


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """The example as ``pip install`` leaves it: its modules and its metadata on the path, and a folder to work in."""
    site, work = (tmp_path_factory.mktemp(name) for name in ("site", "work"))
    announce_project(site, PROJECT)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join([str(site), str(PROJECT / "src")]))
        yield work


@pytest.mark.nightly
def test_the_commands_of_the_hour_run_in_their_order(installed):
    commands = [line for line in LINES if line.startswith("mapgap ")]
    assert len(commands) >= 10
    for line in commands:
        done = mapgap(*shlex.split(line.replace("--budget 20", "--budget 2"))[1:], cwd=installed)
        assert done.returncode == 0, (line, done.stdout, done.stderr)
        assert "warning" not in done.stderr, (line, done.stderr)


@pytest.mark.in_turn
def test_the_gap_that_the_page_names(installed):
    line = next(line for line in LINES if "gpus_prism_trap -m" in line)
    (row,) = (row for row in mapgap(*line.split()[1:], cwd=installed).stdout.splitlines() if " prism " in row)
    assert " 138 " in row
    assert " 10.40% " in row


@pytest.mark.nightly  # .ci/run does it every time
@pytest.mark.parametrize(
    "arguments", [("--pyargs", "mapgap.contract", "-k", "gpu_placement"), (str(PROJECT / "tests"),)]
)
def test_the_example_keeps_the_contract_and_its_own_tests(installed, arguments):
    # Outside the checkout, as a third party does.
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *arguments]
    done = subprocess.run(command, cwd=installed, capture_output=True, text=True, check=False, timeout=900)
    assert done.returncode == 0, done.stdout[-3000:]
    assert " passed" in done.stdout, done.stdout[-300:]
