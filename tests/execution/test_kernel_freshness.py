"""Cached machine code is that of the present sources, whichever file a kernel takes a value, a table or a call from."""

import os
import subprocess
import sys

import pytest

FILES = {
    "lower.py": """
from mapgap.kernels import kernel

@kernel("i8(i8)")
def step(x):
    return x + 1
""",
    "middle.py": """
from layers import lower
from mapgap.kernels import kernel

@kernel("i8(i8)")
def walk(x):
    return 10 * lower.step(x)
""",
    "numbers.py": "LIMIT = 5\n",
    "tables.py": """
from typing import NamedTuple
from mapgap.kernels import Integer

class Pair(NamedTuple):
    first: Integer
    second: Integer
""",
    "upper.py": """
from layers.middle import walk
from layers.numbers import LIMIT
from layers.tables import Pair
from mapgap.kernels import kernel

@kernel("i8(Pair)", Pair)
def total(pair):
    return walk(pair.first) + 100 * pair.second + 1000 * LIMIT
""",
}
BEFORE = 10 * (2 + 1) + 100 * 3 + 1000 * 5
SCRIPT = """
import logging
import mapgap.kernels
told = []
class Handler(logging.Handler):
    def emit(self, record):
        told.append(record.kept)
mapgap.kernels.LOG.setLevel(logging.INFO)
mapgap.kernels.LOG.addHandler(Handler())
from layers import tables, upper
print(upper.total(tables.Pair(first=2, second=3)), told)
"""


@pytest.fixture
def layers(tmp_path, monkeypatch):
    """A package whose kernels use one another across files."""
    folder = tmp_path / "layers"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    for name, text in FILES.items():
        (folder / name).write_text(text)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")  # Python's own cache takes a change within a second for none
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    return folder


def change(layers, name, old, new):
    text = (layers / name).read_text()
    assert old in text
    (layers / name).write_text(text.replace(old, new))


def fresh_process(script=SCRIPT):
    """What a new process prints: the value, and whether it compiled."""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=os.environ, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize(
    ("name", "old", "new", "value"),
    [
        pytest.param("lower.py", "x + 1", "x + 2", BEFORE + 10, id="a kernel two files below"),
        pytest.param("numbers.py", "5", "6", BEFORE + 1000, id="a constant"),
        pytest.param(
            "tables.py",
            "first: Integer\n    second: Integer",
            "second: Integer\n    first: Integer",
            BEFORE,  # old machine code would read the first field as the second
            id="the order of fields",
        ),
    ],
)
def test_a_caller_is_compiled_anew_when_what_it_uses_changes(layers, name, old, new, value):
    assert fresh_process() == f"{BEFORE} [True]"
    assert fresh_process() == f"{BEFORE} []"
    change(layers, name, old, new)
    assert fresh_process() == f"{value} [True]"
    assert fresh_process() == f"{value} []"


def test_a_comment_below_recompiles_nothing_above(layers):
    fresh_process()
    above = {path: path.stat().st_mtime_ns for path in (layers / "__pycache__").glob("[mu]*.nbc")}
    assert len(above) == 2  # middle and upper
    change(layers, "lower.py", "x + 1", "x + 1  # one step")
    assert fresh_process() == f"{BEFORE} [True]"  # lower itself: Numba looks at its file
    assert {path: path.stat().st_mtime_ns for path in (layers / "__pycache__").glob("[mu]*.nbc")} == above


def test_a_class_of_the_old_sources_may_have_gone(layers):
    # Numba unpickles the index of a cache before it sees that it is old: the class in it must not be looked for.
    fresh_process()
    for name in ("tables.py", "upper.py"):
        change(layers, name, "Pair", "Couple")
    assert fresh_process(SCRIPT.replace("Pair", "Couple")) == f"{BEFORE} [True]"


def test_outdated_files_are_deleted_and_others_stay(layers):
    fresh_process()
    files = sorted(path.suffix for path in (layers / "__pycache__").iterdir())
    assert files == [".nbc"] * 3 + [".nbi"] * 3
    other = layers / "__pycache__" / "upper.total_of_all-0.py399.1.nbc"
    other.touch()
    for k in range(2, 5):
        change(layers, "lower.py", f"x + {k - 1}", f"x + {k}")
        change(layers, "upper.py", "\n@kernel", "\n\n@kernel")  # Numba's own names carry the line
        assert fresh_process() == f"{BEFORE + 10 * (k - 1)} [True]"
        assert other.exists()
        assert len(list((layers / "__pycache__").iterdir())) == len(files) + 1


def test_kernels_of_one_factory_keep_their_own_code(layers):
    (layers / "upper.py").write_text("""
from typing import NamedTuple
from mapgap.kernels import kernel

def times(factor):
    @kernel("i8(i8)")
    def product(x):
        return factor * x
    return product

twice, thrice = times(2), times(3)

class total:
    def __new__(cls, pair):
        return twice(pair.first), thrice(pair.second)
""")
    assert fresh_process() == "(4, 9) [True]"
    assert fresh_process() == "(4, 9) []"


def test_a_kernel_may_call_itself(layers):
    change(layers, "lower.py", "return x + 1", "return x + 1 if x < 3 else step(x - 1) + 4")
    script = SCRIPT + "print(upper.walk(5), told)"  # step(5) = step(2) + 3 * 4
    assert fresh_process(script).splitlines()[1] == "150 [True]"
    assert fresh_process(script).splitlines()[1] == "150 []"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("from numpy import int64 as rounded", "from numpy import int8 as rounded"),
        ("from math import floor as rounded", "from math import ceil as rounded"),
        (
            "import numba\nrounded = numba.njit(lambda x: x - 0.0)",
            "import numba\nrounded = numba.njit(lambda x: x + 1.0)",
        ),
    ],
)
def test_functions_that_are_no_kernels_are_followed(layers, before, after):
    (layers / "numbers.py").write_text(f"{before}\nLIMIT = 5\n")
    change(layers, "upper.py", "import LIMIT", "import LIMIT, rounded")
    change(layers, "upper.py", "1000 * LIMIT", "1000 * rounded(LIMIT + 300 + 0.5)")
    values = [fresh_process(), fresh_process()]
    assert values[0].split()[0] == values[1].split()[0]
    assert values[1].endswith("[]")
    change(layers, "numbers.py", before, after)
    cached = fresh_process()
    for path in (layers / "__pycache__").glob("*.nb?"):
        path.unlink()
    assert fresh_process() == cached
    assert cached.split()[0] != values[0].split()[0]


def test_a_kernel_with_an_object_that_cannot_be_followed_is_compiled_in_every_process(layers):
    (layers / "numbers.py").write_text("""
import enum
class Kind(enum.Enum):
    SMALL = 5
    LARGE = 6
LIMIT = Kind.SMALL
""")
    change(layers, "upper.py", "1000 * LIMIT", "1000 * (5 if LIMIT is LIMIT else 6)")
    first = fresh_process()
    assert first == f"{BEFORE} [True]"  # the kernels below are kept
    for _ in range(2):
        assert fresh_process() == f"{BEFORE} [False]"
