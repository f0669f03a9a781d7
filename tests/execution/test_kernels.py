"""Kernels compile once per installation, say so once, cost no run its time, and work where nothing can be written."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import textwrap
import time
from pathlib import Path

import pytest
from cli_support import PLUGIN, mapgap, tiny

from mapgap.catalogue.files import save_expanded
from mapgap.execution import warm

LIBRARY = """
from typing import NamedTuple
import numpy as np
from mapgap.kernels import Integer, Integers, kernel

class Tables(NamedTuple):
    values: Integers
    factor: Integer

@kernel("i8(Tables)", Tables)
def total(tables):
    found = 0
    for k in range(len(tables.values)):
        found += tables.factor * tables.values[k]
    return found

@kernel("i8(Tables)", Tables)
def twice(tables):
    return 2 * total(tables)
"""
METHOD = """
import time
import numpy as np
from kernel_library import Tables, twice
from mapgap.core import SolveResult, Status, Stop

LOADED = time.monotonic()

def run(instance, budget):
    value = int(twice(Tables(np.arange(4), 10)))
    return SolveResult(Status.UNKNOWN, Stop.DONE, bound=1, notes={"value": value, "loaded": LOADED})
"""
TABLE = """
import sys
sys.path.insert(0, {folder!r})
from mapgap.core import Method
METHODS = [Method("compiled", "suboperation_mapping", "bound", "r", "kernel_method:run")]
"""
SAYS = "compiling kernels, once per installation"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A plug-in whose method has kernels, in a folder without a cache."""
    (tmp_path / "kernel_library.py").write_text(LIBRARY)
    (tmp_path / "kernel_method.py").write_text(METHOD)
    (tmp_path / "plugin.py").write_text(TABLE.format(folder=str(tmp_path)))
    save_expanded(tiny(), tmp_path / "tiny.yaml")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path


def solve(folder):
    done = mapgap("solve", folder / "tiny.yaml", "--plugin", folder / "plugin.py", "-m", "compiled", "--json")
    assert done.returncode == 0, done.stderr
    record = json.loads(done.stdout)
    assert record["wall_s"] <= time.monotonic() - record["notes"]["loaded"], "compiling is charged"
    assert record["notes"]["value"] == 2 * 10 * (0 + 1 + 2 + 3)
    return done.stderr


@pytest.mark.in_turn
def test_the_first_run_says_that_it_compiles_and_is_not_charged_for_it(folder):
    told = solve(folder)
    assert told.count(SAYS) == 1
    told = solve(folder)
    assert told == ""


@pytest.mark.in_turn
@pytest.mark.skipif(not warm.available(), reason="elsewhere all processes are fresh")
def test_a_fresh_process_says_it_too(folder):
    script = textwrap.dedent(f"""
        import time
        from pathlib import Path
        from cli_support import tiny
        from mapgap.catalogue import registry
        from mapgap.core import Budget
        from mapgap.execution import warm
        from mapgap.execution.run import run_method
        warm.available = lambda: False
        plugin = Path({str(folder / "plugin.py")!r})
        registry.load_plugin(plugin)
        told = []
        record = run_method(tiny(), "compiled", Budget(20.0), plugins=[plugin], tell=told.append)
        assert record.notes["value"] == 120, record.error
        assert record.wall_s <= time.monotonic() - record.notes["loaded"]
        print(told)
    """)
    path = os.pathsep.join([str(folder), str(PLUGIN.parent)])
    for expected in ("[Compiling(obstacle='')]", "[]"):
        done = subprocess.run(
            [sys.executable, "-c", script],
            capture_output=True,
            text=True,
            env={**os.environ, "PYTHONPATH": path},
            check=False,
        )
        assert done.stdout.strip() == expected, done.stderr


@pytest.mark.in_turn
def test_where_no_cache_can_be_written_methods_still_run(folder):
    (folder / "cache").write_text("no folder")
    for _ in range(2):
        told = solve(folder)
        assert told.count("compiling kernels, in every process: no cache can be written") == 1


@pytest.mark.in_turn
@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can become nobody")
def test_nobody_without_a_home_can_solve(folder, monkeypatch, request):
    # A folder of its own: workers of the tests may close that of their own at any time.
    place = Path(tempfile.mkdtemp())
    request.addfinalizer(lambda: shutil.rmtree(place))
    shutil.copytree(folder, place, dirs_exist_ok=True)
    place.chmod(0o755)
    # The review's failure: RuntimeError: cannot cache function, no locator available.
    script = textwrap.dedent(f"""
        import os, sys
        import numba
        from mapgap.core import SolveResult
        numba.njit("f8(f8)")(lambda x: 2 * x)  # imports what a compilation needs, while it may be read
        os.environ.pop("XDG_CACHE_HOME", None)
        os.environ["HOME"] = "/nonexistent"
        os.setgid(65534)
        os.setuid(65534)
        sys.path.insert(0, {str(place)!r})
        import kernel_method
        print(kernel_method.run(None, None).notes["value"])
    """)
    monkeypatch.delenv("NUMBA_CACHE_DIR")
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd="/", check=False)
    assert done.stdout.strip() == "120", done.stderr
    assert not list(folder.rglob("*.nbi"))


@pytest.mark.in_turn
def test_of_two_processes_one_waits_for_the_others_machine_code(folder):
    script = (
        "import logging, mapgap.kernels as k\n"
        "from numba.core import event\n"
        "heard = []\n"
        "k._Listener.on_start = lambda self, found: heard.append(1)\n"
        "input()\n"  # both begin together
        "import kernel_library\n"
        "print(len(heard))\n"
    )
    both = [
        subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    for each in both:
        each.stdin.write("\n")
        each.stdin.flush()
    assert sum(int(each.communicate()[0]) for each in both) == 2  # each of two kernels once
