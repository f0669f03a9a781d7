"""Who may import whom: the whole graph of imports, read from the source, held to a table; and what a user waits for."""

import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest
from imports import attributes, imports, modules

ROOT = Path(__file__).parents[2]
MODULES = modules(ROOT / "mapgap", "mapgap")
NAMES = sorted(MODULES)

#: Rooms from the ground up: each may import all before it.
ROOMS = ("core", "catalogue", "records", "execution", "evidence", "reporting")
#: What a part of the house may import of the others. Rooms import no wing: the registry reaches them by name.
ALLOWED = {room: set(ROOMS[:k]) for k, room in enumerate(ROOMS)} | {
    "": {*ROOMS, "interface"},  # mapgap/__init__.py
    "interface": {*ROOMS, "", "solvers"},  # of the solvers what a model is, for files of models
    "importing": {"core", "catalogue"},  # beside evidence: it runs nothing, and no room needs it
    "cli": {*ROOMS, "importing", "interface", ""},
    "__main__": {"cli"},
    "contract": {*ROOMS, "interface", "solvers"},  # the tests that hold every problem and its models to their word
    "kernels": set(),
    "problems": {"core", "kernels"},
    "instances": {"core", "problems"},
    "heuristics": {"core", "problems", "kernels"},
    "formulations": {"core", "problems", "heuristics", "solvers", "kernels"},
    "solvers": {"core"},
    "studies": {*ROOMS, "problems", "instances"},
}
#: Modules that stand on nothing of the house, and who else may import them: what looks for proofs speaks of the
#: checker's programs and boxes.
LEAVES = {"mapgap.evidence.check": {"formulations", "solvers"}}
#: Libraries that only some parts may import.
LIBRARIES = {
    "rich": {"cli"},
    "typer": {"cli"},
    "ortools": {"solvers", "formulations", "contract"},
    "pulp": {"solvers", "formulations", "contract"},
    "highspy": {"solvers", "formulations", "contract"},
    "numba": {"kernels"},
    "psutil": {"execution"},
    "jinja2": {"reporting", "instances"},
    "matplotlib": {"reporting", "interface", "studies"},
    "sklearn": {"studies"},
    "onnx": {"importing"},
    "onnxruntime": {"importing"},
}
#: Modules that may import inside functions, and why.
LOCAL = {
    "mapgap.cli.app": "start-up: words of errors, where there are any",
    "mapgap.cli.catalogue": "start-up: graphs need NetworkX",
    "mapgap.cli.imports": "start-up: graphs need NetworkX; the extra onnx",
    "mapgap.cli.plans": "start-up: charts and pictures need Matplotlib",
    "mapgap.cli.reports": "start-up: reports need Matplotlib",
    "mapgap.cli.solve": "start-up: --gantt needs Matplotlib",
    "mapgap.execution.cluster": "the extra dask",
    "mapgap.reporting.overview": "the extra parquet",
    "mapgap.interface.comparison": "pandas, where it is installed",
    "mapgap.interface.display": "start-up: charts need Matplotlib",
    "mapgap.contract.test_models": "one engine per format of a written model",
}
HEAVY = {"numpy", "numba", "scipy", "matplotlib", "networkx", "pandas", "ortools", "pulp", "highspy"}


def part(module):
    """The part of the house a module belongs to: the name behind ``mapgap``."""
    return module.partition(".")[2].partition(".")[0]


def is_package(module):
    return MODULES[module].name == "__init__.py"


def home(name):
    """The module that an imported name comes from."""
    while name not in MODULES:
        name = name.rpartition(".")[0]
    return name


@cache
def imports_of(module):
    package = module if is_package(module) else module.rpartition(".")[0]
    return imports(MODULES[module].read_text(encoding="utf-8"), package)


def ours(found):
    return [each for each in found if each.name.partition(".")[0] == "mapgap"]


def within(module, package):
    return module == package or module.startswith(f"{package}.")


def private(word):
    return word.startswith("_") and not word.endswith("__")


def foreign_private_names(importer, found):
    """Names ``_x`` that are imported from outside the package that contains them."""
    wrong = []
    for each in ours(found):
        words = each.name.split(".")
        for k, word in enumerate(words):
            if private(word):
                owner = ".".join(words[:k])
                if owner in MODULES and not is_package(owner):  # an object of a module
                    owner = owner.rpartition(".")[0]
                if not within(importer, owner):
                    wrong.append((each.line, each.name))
    return wrong


def test_every_part_of_the_house_is_in_the_table():
    assert {part(module) for module in NAMES} <= set(ALLOWED)


@pytest.mark.parametrize("module", NAMES)
def test_parts_stand_on_lower_parts_only(module):
    targets = {(each.line, home(each.name)) for each in ours(imports_of(module))}
    here = part(module)
    allowed = {leaf for leaf, users in LEAVES.items() if here in users}
    wrong = [(n, m) for n, m in sorted(targets) if part(m) != here and part(m) not in ALLOWED[here]]
    assert [(n, m) for n, m in wrong if m not in allowed] == []


WRITERS = [name for name in NAMES if part(name) == "problems" and "certificate" in name.split(".")]
STANDALONE = [*LEAVES, *WRITERS]


@pytest.mark.parametrize("module", STANDALONE)
def test_what_a_certificate_rests_on_is_standard_library_only(module):
    # Anyone can run the checker and the writers of a problem without installing anything. The modules of a writer
    # import each other by names that hold in any folder.
    folder = ".".join(module.split(".")[:4])
    others = [each.name for each in imports_of(module) if not each.name.startswith(f"{folder}.")]
    assert {name.partition(".")[0] for name in others} <= {*sys.stdlib_module_names, "__future__"}
    assert f"import {folder}" not in (text := MODULES[module].read_text(encoding="utf-8"))
    assert f"from {folder}" not in text


@pytest.mark.parametrize("module", WRITERS)
def test_a_page_of_a_writer_has_fewer_than_120_lines(module):
    # What has to be believed is read by people.
    assert MODULES[module].read_text(encoding="utf-8").count("\n") < 120


@pytest.mark.parametrize("module", NAMES)
def test_libraries_are_imported_where_they_belong(module):
    found = [(each.line, each.name) for each in imports_of(module)]
    allowed = {name: parts for name, parts in LIBRARIES.items() if part(module) not in parts}
    assert [(line, name) for line, name in found if name.partition(".")[0] in allowed] == []


@pytest.mark.parametrize("module", NAMES)
def test_private_names_stay_in_their_package(module):
    assert foreign_private_names(module, imports_of(module)) == []


@pytest.mark.parametrize("module", NAMES)
def test_imports_stand_at_the_top(module):
    # Methods are declared by reference, so nothing has to hide in a function to be cheap.
    if module not in LOCAL:
        assert [(each.line, each.name) for each in imports_of(module) if each.local] == []


@pytest.mark.parametrize("module", [name for name in NAMES if part(name) == "problems" and ".lowered" not in name])
def test_a_specification_shares_nothing_with_methods(module):
    # What judges every plan must not contain what made them.
    assert [each.name for each in imports_of(module) if ".lowered" in each.name] == []


@pytest.mark.parametrize("path", sorted((ROOT / "tests").rglob("*.py")), ids=lambda path: path.stem)
def test_tests_touch_no_private_names_and_no_other_tests(path):
    source = path.read_text(encoding="utf-8")
    found = imports(source, "tests")
    assert foreign_private_names("tests", found) == []
    assert [each.name for each in found if each.name.partition(".")[0].startswith("test_")] == []
    known = {each.alias for each in ours(found)}
    assert [
        (line, f"{name}.{word}") for name, word, line in attributes(source) if name in known and private(word)
    ] == []


def test_the_reader_of_imports_reads_them_all():
    # The oracle's own oracle: relative, nested, renamed and guarded imports.
    source = (
        "import a.b\nfrom . import c\nfrom ..y import d as e\n"
        "def f():\n    import g\n    class C:\n        from h import i\n"
        "if X:\n    import j\n"
    )
    found = {(each.name, each.local, each.alias) for each in imports(source, "p.x")}
    assert found == {
        ("a.b", False, "a.b"),
        ("p.x.c", False, "c"),
        ("p.y.d", False, "e"),
        ("g", True, "g"),
        ("h.i", True, "i"),
        ("j", False, "j"),
    }


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
