"""Cached machine code is that of the present sources, whichever file a kernel takes a value, a table or a call from."""

import os
import shutil
import subprocess
import sys

import pytest

from mapgap.contract.seeds import some
from mapgap.kernels import HOUSE, KEPT, sources

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
        told.append(record.obstacle)
mapgap.kernels.LOG.setLevel(logging.INFO)
mapgap.kernels.LOG.addHandler(Handler())
from layers import tables, upper
print(upper.total(tables.Pair(first=2, second=3)), told)
"""
NEW = "['']"  #: told when something is compiled that will be kept


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
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "cache"))
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


CHANGES = [
    ("lower.py", "x + 1", "x + 2", BEFORE + 10),  # a kernel two files below
    ("numbers.py", "5", "6", BEFORE + 1000),
    # Old machine code would read the first field as the second.
    ("tables.py", "first: Integer\n    second: Integer", "second: Integer\n    first: Integer", BEFORE),
]


@pytest.mark.in_turn
@pytest.mark.parametrize(("name", "old", "new", "value"), some(1, CHANGES))
def test_a_caller_is_compiled_anew_when_what_it_uses_changes(layers, name, old, new, value):
    assert fresh_process() == f"{BEFORE} {NEW}"
    assert fresh_process() == f"{BEFORE} []"
    change(layers, name, old, new)
    assert fresh_process() == f"{value} {NEW}"
    assert fresh_process() == f"{value} []"


def kept(layers):
    """Folders of machine code, the last used one first."""
    return sorted((layers.parent / "cache" / "mapgap").iterdir(), key=lambda path: -path.stat().st_mtime_ns)


@pytest.mark.nightly
def test_a_class_of_the_old_sources_may_have_gone(layers):
    # Numba unpickles the index of a cache before it sees that it is old: the class in it must not be looked for.
    fresh_process()
    for name in ("tables.py", "upper.py"):
        change(layers, name, "Pair", "Couple")
    assert fresh_process(SCRIPT.replace("Pair", "Couple")) == f"{BEFORE} {NEW}"


@pytest.mark.nightly
def test_old_sources_find_their_code_again_and_outdated_folders_are_deleted(layers):
    fresh_process()
    (first,) = kept(layers)
    others = [first.with_name(f"{k:020}") for k in range(KEPT + 2)]
    for k, path in enumerate(others):
        path.mkdir()
        os.utime(path, (k, k))
    change(layers, "numbers.py", "5", "6")
    assert fresh_process() == f"{BEFORE + 1000} {NEW}"
    assert kept(layers)[1:] == [first, *others[:2:-1]]  # the last used ones
    change(layers, "numbers.py", "6", "5")
    assert fresh_process() == f"{BEFORE} []"


@pytest.mark.nightly
def test_what_is_edited_under_a_process_is_not_kept(layers):
    # It has read the sources before the edit, and imports what was edited.
    late = (
        "from pathlib import Path\nfrom layers import lower\n"
        f"path = Path({str(layers / 'numbers.py')!r})\npath.write_text('LIMIT = 6\\n')\n"
    )
    script = SCRIPT.replace("from layers import tables, upper", f"{late}from layers import tables, upper")
    assert fresh_process(script) == f"{BEFORE + 1000} {NEW}"
    change(layers, "numbers.py", "6", "5")
    assert fresh_process() == f"{BEFORE} {NEW}"


@pytest.mark.in_turn
def test_every_module_of_a_kernel_of_the_house_is_hashed():
    # By the arrows between the rooms a kernel can take values from no other module.
    found = {str(path.relative_to(HOUSE)) for path in sources(HOUSE)}
    assert {"kernels.py", "core/data.py"} < found
    text = {path: path.read_text(encoding="utf-8") for path in HOUSE.glob("*/**/*.py")}
    assert {str(path.relative_to(HOUSE)) for path in text if "from mapgap.kernels import" in text[path]} < found


@pytest.mark.in_turn
@pytest.mark.skipif(os.name == "nt", reason="folders of users are private")
def test_machine_code_that_others_could_have_put_there_is_never_run(layers):
    fresh_process()
    (good,) = kept(layers)
    change(layers, "numbers.py", "5", "6")
    fresh_process()
    planted, _ = kept(layers)
    shutil.rmtree(planted)
    good.rename(planted)  # code that says 5 where the sources say 6: only its place can tell
    assert fresh_process() == f"{BEFORE} []"

    def link(folder):
        folder.symlink_to(folder.rename(folder.with_name("elsewhere")))

    def unlink(folder):
        folder.unlink()
        folder.with_name("elsewhere").rename(folder)

    above, root = planted.parent, hasattr(os, "geteuid") and os.geteuid() == 0
    for folder, spoil, restore in [
        (planted, lambda path: path.chmod(0o702), lambda path: path.chmod(0o700)),
        (above, lambda path: path.chmod(0o720), lambda path: path.chmod(0o700)),
        (above, link, unlink),
        *[
            (each, lambda path: os.chown(path, 65534, -1), lambda path: os.chown(path, 0, -1))
            for each in (planted, above)
        ]
        * root,  # nobody else can give a folder away
    ]:
        spoil(folder)
        value, told = fresh_process().split(" ", 1)
        assert value == str(BEFORE + 1000)
        assert told == f"['{folder} belongs to another user, or others can write to it']"
        restore(folder)


@pytest.mark.nightly
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
    assert fresh_process() == f"(4, 9) {NEW}"
    assert fresh_process() == "(4, 9) []"


@pytest.mark.nightly
def test_a_kernel_may_call_itself(layers):
    change(layers, "lower.py", "return x + 1", "return x + 1 if x < 3 else step(x - 1) + 4")
    script = SCRIPT + "print(upper.walk(5), told)"  # step(5) = step(2) + 3 * 4
    assert fresh_process(script).splitlines()[1] == f"150 {NEW}"
    assert fresh_process(script).splitlines()[1] == "150 []"


FOLLOWED = [
    ("from numpy import int64 as rounded", "from numpy import int8 as rounded"),
    ("from math import floor as rounded", "from math import ceil as rounded"),
    ("import numba\nrounded = numba.njit(lambda x: x - 0.0)", "import numba\nrounded = numba.njit(lambda x: x + 1.0)"),
]


@pytest.mark.in_turn
@pytest.mark.parametrize(("before", "after"), some(1, FOLLOWED))
def test_functions_that_are_no_kernels_are_followed(layers, before, after):
    (layers / "numbers.py").write_text(f"{before}\nLIMIT = 5\n")
    change(layers, "upper.py", "import LIMIT", "import LIMIT, rounded")
    change(layers, "upper.py", "1000 * LIMIT", "1000 * rounded(LIMIT + 300 + 0.5)")
    values = [fresh_process(), fresh_process()]
    assert values[0].split()[0] == values[1].split()[0]
    assert values[1].endswith("[]")
    change(layers, "numbers.py", before, after)
    cached = fresh_process()
    for path in kept(layers):
        shutil.rmtree(path)
    assert fresh_process() == cached
    assert cached.split()[0] != values[0].split()[0]
