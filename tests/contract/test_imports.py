"""Who may import whom, read from the source: every wing stands on the ones below it and on nothing else."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
WINGS = ("mapgap", "problems", "instances", "heuristics", "formulations", "solvers")
SOLVER_LIBRARIES = {"ortools", "pulp", "highspy"}
#: What a wing may import of the house, besides itself. The names are prefixes of modules.
ALLOWED = {
    "problems": {"mapgap.core"},
    "instances": {"mapgap.core", "problems"},
    "heuristics": {"mapgap.core", "problems"},
    "formulations": {"mapgap.core", "problems", "solvers"},
    "solvers": {"mapgap.core"},
    "mapgap": {"instances"},  # problems and methods are reached through the registry, by name
}
FILES = [path for wing in WINGS for path in sorted((ROOT / wing).rglob("*.py"))]


def imports(path, *, top_level=False):
    """Absolute names of all imports of a file; with ``top_level`` only those that run when it is imported."""
    tree = ast.parse(path.read_text())
    package = ".".join(path.relative_to(ROOT).with_suffix("").parts[:-1])
    stack, found = [tree], []
    while stack:
        node = stack.pop()
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parts = package.split(".")
                base = ".".join([*parts[: len(parts) - node.level + 1], *([base] if base else [])])
            found += [f"{base}.{alias.name}" for alias in node.names]
        if top_level and isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            continue
        if top_level and isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            continue
        stack.extend(ast.iter_child_nodes(node))
    return found


def identity(path):
    return str(path.relative_to(ROOT))


def within(name, prefix):
    return name == prefix or name.startswith(f"{prefix}.")


@pytest.mark.parametrize("path", FILES, ids=identity)
def test_wings_stand_on_lower_wings_only(path):
    wing = path.relative_to(ROOT).parts[0]
    ours = [name for name in imports(path) if name.split(".")[0] in WINGS and not within(name, wing)]
    wrong = [name for name in ours if not any(within(name, allowed) for allowed in ALLOWED[wing])]
    assert wrong == []


@pytest.mark.parametrize("path", [p for p in FILES if p.relative_to(ROOT).parts[0] != "solvers"], ids=identity)
def test_solver_libraries_load_lazily(path):
    # A module that imports a solver at import time makes every command slow, and two solvers cannot always share
    # a process.
    assert [name for name in imports(path, top_level=True) if name.split(".")[0] in SOLVER_LIBRARIES] == []


def test_the_registry_loads_no_solver_library():
    # What the rule above is for, seen from outside: indirect imports count too.
    code = (
        "import sys; from mapgap.catalogue import registry\n"
        "for problem in registry.problems():\n    registry.methods(problem)\n"
        f"loaded = {SOLVER_LIBRARIES!r} & set(sys.modules)\n"
        "assert not loaded, loaded"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("path", [p for p in FILES if p.parts[-2:] == ("mapgap", "core.py")], ids=identity)
def test_core_knows_nothing_of_the_house(path):
    assert [name for name in imports(path) if name.split(".")[0] in WINGS] == []


def test_the_reader_of_imports_reads_them_all(tmp_path):
    # The oracle's own oracle: relative, nested and guarded imports.
    folder = tmp_path / "heuristics" / "x"
    folder.mkdir(parents=True)
    source = "import a.b\nfrom . import c\nfrom ..y import d\ndef f():\n    import e\n    from g import h\n"
    (folder / "m.py").write_text(source)
    global ROOT
    before, ROOT = ROOT, tmp_path
    try:
        assert set(imports(folder / "m.py")) == {"a.b", "heuristics.x.c", "heuristics.y.d", "e", "g.h"}
        assert set(imports(folder / "m.py", top_level=True)) == {"a.b", "heuristics.x.c", "heuristics.y.d"}
    finally:
        ROOT = before


@pytest.mark.parametrize("arguments", [["--help"], ["solve", "--help"], ["--version"]])
def test_help_imports_nothing_heavy(arguments):
    code = (
        "import sys; from mapgap.cli import main\n"
        f"sys.argv = ['mapgap', *{arguments!r}]\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "heavy = {'ortools', 'numba', 'pulp', 'highspy', 'matplotlib', 'numpy', 'problems'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
