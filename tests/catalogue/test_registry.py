"""Discovery: what the house forgets is an error, never a silent absence; what others forget is a warning."""

import sys
import warnings
from types import ModuleType

import pytest
from announced import announce, announce_problem
from cli_support import mapgap

from mapgap.catalogue import registry
from mapgap.catalogue.announced import BrokenEntryPoint
from mapgap.catalogue.files import library_files
from mapgap.core import InputError, Library, Method, Problem

SOURCE = """
from mapgap.core import Method, SolveResult, Status, Stop
def run(instance, budget):
    return SolveResult(Status.UNKNOWN, Stop.DONE)
METHODS = [Method(name, {problem!r}, "exact", "test", run, rank=rank) for name, rank in {methods!r}]
"""
PROBLEM_SOURCE = """
from mapgap.core import Evaluation, InstanceBase, PlanBase, Problem
PROBLEM = Problem({name!r}, "t", "p", "min", lambda i: "s", InstanceBase, PlanBase, lambda i, p: Evaluation(0))
"""
WINGS = ("problems", "instances", "heuristics", "formulations")


@pytest.fixture
def fresh():
    """A registry that has read nothing yet, and forgets what it reads."""
    registry.forget()
    with registry.plugins_of_this_run():
        yield
    registry.forget()


@pytest.fixture
def wings(tmp_path, monkeypatch, fresh):
    """Wings in a folder of their own, with one problem ``toy`` and nothing that solves it."""
    for wing in WINGS:
        (tmp_path / wing).mkdir()
        package = ModuleType(f"mapgap.{wing}")
        package.__path__ = [str(tmp_path / wing)]
        for name in [name for name in sys.modules if name.startswith(f"mapgap.{wing}")]:
            monkeypatch.delitem(sys.modules, name)
        monkeypatch.setitem(sys.modules, f"mapgap.{wing}", package)
    (tmp_path / "problems" / "toy.py").write_text(PROBLEM_SOURCE.format(name="toy"))
    yield tmp_path
    for name in [name for name in sys.modules if name.startswith(tuple(f"mapgap.{wing}." for wing in WINGS))]:
        del sys.modules[name]


def write(path, *methods, problem="toy"):
    """A table of methods: names, or names and ranks."""
    listed = [method if isinstance(method, tuple) else (method, 0) for method in methods]
    path.write_text(SOURCE.format(problem=problem, methods=listed))


def test_problems_are_modules_or_packages(wings):
    (wings / "problems" / "box").mkdir()
    (wings / "problems" / "box" / "__init__.py").write_text(PROBLEM_SOURCE.format(name="box"))
    assert registry.house() == ["box", "toy"]
    assert all(isinstance(registry.problems()[name], Problem) for name in ("box", "toy"))


@pytest.mark.parametrize("content", ["", "PROBLEM = 1"])
def test_a_problem_module_without_problem_is_an_error(wings, content):
    (wings / "problems" / "empty.py").write_text(content)
    with pytest.raises(RuntimeError, match="exports no PROBLEM"):
        registry.problems()


def test_a_problem_carries_its_module_name(wings):
    (wings / "problems" / "box.py").write_text(PROBLEM_SOURCE.format(name="bax"))
    with pytest.raises(RuntimeError, match="named 'bax'"):
        registry.problems()


def test_methods_of_both_wings_are_found_without_any_list(wings):
    write(wings / "heuristics" / "toy.py", "b")
    (wings / "formulations" / "toy").mkdir()
    write(wings / "formulations" / "toy" / "__init__.py", "c", "a")
    assert list(registry.methods("toy")) == ["a", "b", "c"]


@pytest.mark.parametrize("content", ["", "METHODS = 3", "METHODS = ['x']"])
def test_a_room_without_a_table_of_methods_is_an_error(wings, content):
    (wings / "heuristics" / "toy.py").write_text(content)
    with pytest.raises(RuntimeError, match="exports no list METHODS"):
        registry.methods("toy")


def test_two_methods_of_one_name_are_an_error(wings):
    write(wings / "heuristics" / "toy.py", "same")
    write(wings / "formulations" / "toy.py", "same")
    with pytest.raises(RuntimeError, match="two methods of 'toy' are named 'same'"):
        registry.methods("toy")


def test_a_method_filed_under_another_problem_is_an_error(wings):
    write(wings / "heuristics" / "toy.py", "a", problem="other")
    with pytest.raises(RuntimeError, match="claims problem 'other'"):
        registry.methods("toy")


def test_the_strongest_exact_method_has_the_highest_rank(wings):
    with pytest.raises(InputError, match="no exact method"):
        registry.strongest_exact("toy")
    write(wings / "formulations" / "toy.py", ("a", 1), ("b", 2), ("c", 0))
    registry.forget()
    assert registry.strongest_exact("toy").name == "b"


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "cannot be imported"),
        ("", "cannot be imported"),
        ("LIBRARY = 3", "is no mapgap.core.Library of this problem"),
        (
            "from mapgap.core import Library\nLIBRARY = Library('x', '', '', '', {})",
            "is no mapgap.core.Library of this",
        ),
    ],
)
def test_a_library_is_demanded(wings, content, words):
    name = f"box{abs(hash((content, words)))}"  # what a reference names is read once
    (wings / "problems" / f"{name}.py").write_text(PROBLEM_SOURCE.format(name=name))
    if content is not None:
        (wings / "instances" / f"{name}.py").write_text(content)
    with pytest.raises(RuntimeError, match=words):
        registry.library(name)


def test_plugins(wings, tmp_path):
    write(wings / "heuristics" / "toy.py", "a")
    write(tmp_path / "plugin.py", "p")
    assert [m.name for m in registry.load_plugin(tmp_path / "plugin.py")] == ["p"]
    assert isinstance(registry.methods("toy")["p"], Method)
    assert set(registry.methods("toy")) == {"a", "p"}


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "found nothing there"),
        ("import nothing_of_that_name", "ModuleNotFoundError"),
        ("def f(:", "SyntaxError"),
        ("x = 1", "exports no list METHODS"),
        (SOURCE.format(problem="nowhere", methods=[("p", 0)]), "unknown problem 'nowhere'"),
    ],
)
def test_broken_plugins_are_input_errors(wings, tmp_path, content, words):
    path = tmp_path / "plugin.py"
    if content is not None:
        path.write_text(content)
    with pytest.raises(InputError, match=words):
        registry.load_plugin(path)


@pytest.fixture
def site(tmp_path, monkeypatch, fresh):
    """A folder of the path, for packages that are installed and their metadata."""
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.syspath_prepend(folder)
    before = set(sys.modules)
    yield folder
    for name in set(sys.modules) - before:
        if getattr(sys.modules[name], "__file__", None) and str(folder) in str(sys.modules[name].__file__):
            del sys.modules[name]


def warned(*questions):
    """What the registry says of entry points while it answers, and the answers."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        answers = [question() for question in questions]
    assert all(each.category is BrokenEntryPoint for each in caught)
    return [str(each.message) for each in caught], *answers


def test_a_package_adds_a_problem_with_methods_and_library(site):
    announce_problem(site, "package_whole", "whole")
    said, found, methods = warned(registry.problems, lambda: registry.methods("whole"))
    assert said == []
    assert list(methods) == ["only"]
    assert set(found) > set(registry.house())
    assert isinstance(registry.library("whole"), Library)


def test_a_package_adds_methods_to_a_problem_of_the_house(site):
    write(site / "package_more.py", "third", problem="neuron_masking")
    announce(site, "package_more", {"mapgap.methods": {"more": "package_more:METHODS"}})
    said, methods = warned(lambda: registry.methods("neuron_masking"))
    assert said == []
    assert "third" in methods


BROKEN = [
    # group, value, source, what is said
    (
        "problems",
        "package_x:PROBLEM",
        "import nothing_of_that_name",
        "ModuleNotFoundError: No module named 'nothing_of",
    ),
    ("problems", "package_x:PROBLEM", "def f(:", "SyntaxError"),
    ("problems", "package_x:PROBLEM", "PROBLEMS = 3", "AttributeError"),
    ("problems", "package_x:PROBLEM", "PROBLEM = 3", "expected a mapgap.core.Problem, found int"),
    ("problems", "package_x:PROBLEM", PROBLEM_SOURCE.format(name="neuron_masking"), "a problem named 'neuron_masking'"),
    ("problems", "package_x:PROBLEM", PROBLEM_SOURCE.format(name="xx"), "xx: mapgap.instances.xx:LIBRARY cannot be"),
    ("methods", "package_x:METHODS", "1 / 0", "ZeroDivisionError"),
    (
        "methods",
        "package_x:METHODS",
        "METHODS = ['cpsat']",
        "expected a mapgap.core.Method or a list of them, found str",
    ),
    ("methods", "package_x:METHODS", SOURCE.format(problem="nn", methods=[("m", 0)]), "names unknown problem 'nn'"),
    (
        "methods",
        "package_x:METHODS",
        SOURCE.format(problem="neuron_masking", methods=[("new", 0), ("cpsat", 0)]),
        "there is a method named 'cpsat' already",
    ),
]


@pytest.mark.parametrize(("group", "value", "source", "words"), BROKEN)
def test_a_broken_package_is_left_out_with_a_warning(site, group, value, source, words):
    # Somebody else's package must not break this one.
    before = {name: set(registry.methods(name)) for name in registry.problems()}
    registry.forget()
    announce(site, "package_x", {f"mapgap.{group}": {"x": value}}, source)
    said, found, _ = warned(registry.problems, lambda: registry.methods("neuron_masking"))
    assert {name: set(registry.methods(name)) for name in found} == before
    assert len(said) == 1
    assert said[0].startswith(f"entry point mapgap.{group}: x = {value} of package package_x is left out: ")
    assert words in said[0]


def test_of_two_packages_with_one_problem_name_the_first_is_kept_with_its_own_methods(site):
    # The methods of the other one solve instances of another type; they must not be listed here.
    announce_problem(site, "package_a", "twice", method="first")
    announce_problem(site, "package_b", "twice", method="second")
    said, found, methods = warned(registry.problems, lambda: registry.methods("twice"))
    assert found["twice"].title == "title of package_a"
    assert list(methods) == ["first"]
    assert [text.split(" is left out: ") for text in said] == [
        [
            "entry point mapgap.problems: package_b = package_b:PROBLEM of package package_b",
            "there is a problem named 'twice' already",
        ],
        [
            "entry point mapgap.methods: package_b = package_b:METHODS of package package_b",
            "method 'second' is one of another problem named 'twice'",
        ],
    ]


def test_a_library_file_whose_name_is_taken_is_left_out(site):
    announce_problem(site, "package_files", "filed")
    (site / "package_files_files").mkdir()
    for name in ("elfish_lenet_straggler1", "of_its_own"):
        (site / "package_files_files" / f"{name}.yaml").touch()
    library_files.cache_clear()
    try:
        said, files = warned(library_files)
    finally:
        library_files.cache_clear()
    assert files["of_its_own"].parent == site / "package_files_files"
    assert files["elfish_lenet_straggler1"].parent != site / "package_files_files"
    assert len(said) == 1
    assert "there is a library instance named 'elfish_lenet_straggler1' already" in said[0]


@pytest.mark.in_turn
def test_the_command_line_says_it_in_one_line(site, monkeypatch):
    announce(site, "package_x", {"mapgap.problems": {"x": "package_x:PROBLEM"}}, "import nothing_of_that_name")
    monkeypatch.setenv("PYTHONPATH", str(site))
    done = mapgap("list", "problems", "--json")
    assert done.returncode == 0
    lines = [line for line in done.stderr.splitlines() if "package_x" in line]
    assert lines == [
        "warning: entry point mapgap.problems: x = package_x:PROBLEM of package package_x is left out: "
        "ModuleNotFoundError: No module named 'nothing_of_that_name'"
    ]
    assert "Warning" not in done.stderr
