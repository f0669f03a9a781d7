"""What certificates rest on, names that stay at home, and what a user waits for. Who imports whom: pyproject.toml."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CHECKER = ROOT / "mapgap" / "evidence" / "check.py"
WRITERS = sorted((ROOT / "mapgap" / "problems").glob("*/certificate"))
HEAVY = {"numpy", "numba", "scipy", "matplotlib", "networkx", "pandas", "ortools", "pulp", "highspy"}


def imports(path):
    """All imports of a file, also inside functions: the module as it is written, and the names."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((each.name, []) for each in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield "." * node.level + (node.module or ""), [each.name for each in node.names]


def test_what_a_certificate_rests_on_is_standard_library_only():
    # Anyone can run the checker and the writers of a problem without installing anything. The modules of a writer
    # import each other by names that hold in any folder.
    assert len(WRITERS) == 6
    for path in [CHECKER, *(path for folder in WRITERS for path in folder.rglob("*.py"))]:
        found = {name for name, _ in imports(path)}
        beside = {name for name in found if name.startswith(".") and not name.startswith("..") and path != CHECKER}
        assert {name.partition(".")[0] for name in found - beside} <= sys.stdlib_module_names, path


def test_a_page_of_a_writer_has_fewer_than_120_lines():
    # What has to be believed is read by people.
    pages = {path: path.read_text(encoding="utf-8").count("\n") for each in WRITERS for path in each.rglob("*.py")}
    assert {path: count for path, count in pages.items() if count >= 120} == {}


@pytest.mark.in_turn
def test_nobody_imports_private_names_or_tests():
    files = [path for folder in ("mapgap", "tests") for path in (ROOT / folder).glob("**/*.py")]
    files += [path for wing in (ROOT / "mapgap").iterdir() if wing.is_symlink() for path in wing.rglob("*.py")]
    assert len(files) > 500
    for path in files:
        for module, names in imports(path):
            words = [word for name in names for word in (*module.split("."), name)]
            assert [w for w in words if w.startswith("_") and not w.endswith("__")] == [], path
            assert not module.startswith("test_"), path


def loaded_after(code):
    """Which heavy libraries a program has imported at its end."""
    done = subprocess.run(
        [sys.executable, "-c", f"import sys\n{code}\nprint('LOADED', *sorted({HEAVY!r} & set(sys.modules)))"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()[-1].split()[1:]


@pytest.mark.in_turn
@pytest.mark.parametrize(
    "arguments",
    [
        ["--help"],
        ["solve", "--help"],
        ["study", "--help"],
        ["import", "--help"],
        ["--version"],
        ["list"],
        ["list", "instances"],
        ["list", "--json"],
        ["show", "neuron_masking/cpsat"],
        ["schema", "neuron_masking"],
    ],
    ids=" ".join,
)
def test_nobody_waits_for_what_a_command_does_not_need(arguments):
    code = (
        f"sys.argv = ['mapgap', *{arguments!r}]\nfrom mapgap.cli import main\n"
        "try:\n    main()\nexcept SystemExit as end:\n    assert not end.code, end.code\n"
    )
    assert loaded_after(code) == []


def test_importing_the_package_and_asking_the_registry_is_cheap():
    assert loaded_after("import mapgap") == []
    every = "from mapgap.catalogue import registry\nfor name in registry.problems():\n    registry.methods(name)\n"
    assert loaded_after(f"{every}    registry.library(name)") == []


def test_checking_certificates_needs_no_solver_and_no_numpy():
    code = (
        "from mapgap.evidence.verify import verify_all\nfound = verify_all(['synergy_w1_*', 'dhm_squeezenet_fold4'])\n"
    )
    assert loaded_after(f"{code}assert len(found) > 6 and all(each.holds for each in found)") == []


def test_checking_a_file_needs_no_solver(tmp_path):
    code = "from mapgap.catalogue.files import check_file\ncheck_file('elfish_lenet_straggler1')"
    assert set(loaded_after(code)) <= {"numpy"}
