"""Tests in turn: each runs by day with one commit of some and by night with the others; whoever names them gets all."""

import subprocess
import sys

import pytest

from mapgap.contract.seeds import TURNS

CASES = 40
PAGE = f"""
import pytest

@pytest.mark.in_turn
@pytest.mark.parametrize("case", range({CASES}))
def test_long(case):
    pass

def test_short():
    pass
"""


@pytest.fixture
def ran(tmp_path, monkeypatch):
    """Names of the tests that a command collects, with a rotation."""
    (tmp_path / "test_page.py").write_text(PAGE)

    def collected(rotation, *arguments):
        monkeypatch.setenv("MAPGAP_SEED", str(rotation))
        command = [sys.executable, "-m", "pytest", "-p", "mapgap.contract.seeds", "-q", "--collect-only", *arguments]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        return {line.rpartition("::")[2] for line in done.stdout.splitlines() if "::" in line}

    return collected


@pytest.mark.in_turn
def test_as_many_commits_as_there_are_turns_run_every_case_once(ran):
    days = [ran(rotation) for rotation in range(TURNS)]
    assert all("test_short" in day for day in days)
    long = [day - {"test_short"} for day in days]
    assert sum(len(each) for each in long) == len(set.union(*long)) == CASES
    assert ran(0, "-m", "nightly") == set.union(*long) - long[0]


@pytest.mark.in_turn
def test_named_tests_are_all_run(ran):
    assert len(ran(0, "test_page.py::test_long")) == len(ran(0, "-k", "long")) == CASES
