"""Discovery: what a module forgets is an error, never a silent absence."""

import dataclasses
import importlib
import sys
from types import SimpleNamespace

import pytest

from mapgap.catalogue import registry
from mapgap.core import InputError, Method, Problem

SOURCE = """
from mapgap.core import Method, SolveResult, Status, Stop
def run(instance, budget):
    return SolveResult(Status.UNKNOWN, Stop.DONE)
METHODS = [Method({name!r}, {problem!r}, "exact", "test", run, rank={rank})]
"""
PROBLEM_SOURCE = """
from mapgap.core import Evaluation, InstanceBase, PlanBase, Problem
PROBLEM = Problem({name!r}, "t", "p", "min", lambda i: "s", InstanceBase, PlanBase, lambda i, p: Evaluation(0))
"""
WINGS = ("problems", "instances", "heuristics", "formulations")


@pytest.fixture
def wings(tmp_path, monkeypatch):
    """Empty wings in a folder of their own, with one problem ``toy``."""
    for wing in WINGS:
        (tmp_path / wing).mkdir()
        package = importlib.import_module(f"mapgap.{wing}")
        monkeypatch.setattr(package, "__path__", [str(tmp_path / wing)])
    ours = [m for m in sys.modules if len(m.split(".")) > 2 and m.split(".")[1] in WINGS]
    saved = {m: sys.modules.pop(m) for m in ours}
    (tmp_path / "problems" / "toy.py").write_text(PROBLEM_SOURCE.format(name="toy"))
    registry.forget()
    with registry.plugins_of_this_run():
        yield tmp_path
    for name in [m for m in sys.modules if len(m.split(".")) > 2 and m.split(".")[1] in WINGS]:
        del sys.modules[name]
    sys.modules.update(saved)
    registry.forget()


def write(path, name="m", problem="toy", rank=0):
    """A file or, for a folder's name, a package that declares one method."""
    path.parent.mkdir(exist_ok=True, parents=True)
    path.write_text(SOURCE.format(name=name, problem=problem, rank=rank))


def test_problems_are_modules_or_packages(wings):
    (wings / "problems" / "box").mkdir()
    (wings / "problems" / "box" / "__init__.py").write_text(PROBLEM_SOURCE.format(name="box"))
    found = registry.problems()
    assert list(found) == ["box", "toy"]
    assert all(isinstance(problem, Problem) for problem in found.values())


@pytest.mark.parametrize(("content", "words"), [("", "exports no PROBLEM"), ("PROBLEM = 1", "exports no PROBLEM")])
def test_a_problem_module_without_problem_is_an_error(wings, content, words):
    (wings / "problems" / "empty.py").write_text(content)
    with pytest.raises(RuntimeError, match=words):
        registry.problems()


def test_a_problem_carries_its_module_name(wings):
    (wings / "problems" / "box.py").write_text(PROBLEM_SOURCE.format(name="bax"))
    with pytest.raises(RuntimeError, match="named 'bax'"):
        registry.problems()


def test_methods_of_both_wings_are_found_without_any_list(wings):
    write(wings / "heuristics" / "toy" / "__init__.py", "a")
    write(wings / "formulations" / "toy.py", "b")
    assert list(registry.methods("toy")) == ["a", "b"]


def test_listing_methods_imports_none_of_their_modules(wings):
    write(wings / "heuristics" / "toy" / "__init__.py", "a")
    table = wings / "heuristics" / "toy" / "__init__.py"
    table.write_text(table.read_text().replace("run, rank", '"mapgap.heuristics.toy.a:run", rank'))
    (wings / "heuristics" / "toy" / "a.py").write_text("raise RuntimeError('imported')")
    method = registry.methods("toy")["a"]
    assert method.module == "mapgap.heuristics.toy.a"
    with pytest.raises(RuntimeError, match="imported"):
        method.solve(None, None)


@pytest.mark.parametrize("content", ["", "METHODS = 3", "METHODS = ['x']"])
def test_a_wing_without_its_table_of_methods_is_an_error(wings, content):
    (wings / "heuristics" / "toy.py").write_text(content)
    with pytest.raises(RuntimeError, match="exports no list METHODS"):
        registry.methods("toy")


def test_two_methods_of_one_name_are_an_error(wings):
    write(wings / "heuristics" / "toy.py", "same")
    write(wings / "formulations" / "toy.py", "same")
    with pytest.raises(RuntimeError, match="two methods of 'toy' are named 'same'"):
        registry.methods("toy")


def test_a_method_filed_under_another_problem_is_an_error(wings):
    write(wings / "heuristics" / "toy.py", problem="other")
    with pytest.raises(RuntimeError, match="claims problem 'other'"):
        registry.methods("toy")


def test_the_strongest_exact_method_has_the_highest_rank(wings):
    with pytest.raises(InputError, match="no exact method"):
        registry.strongest_exact("toy")
    write(wings / "formulations" / "toy.py", "a", rank=1)
    write(wings / "heuristics" / "toy.py", "b", rank=2)
    registry.forget()
    assert registry.strongest_exact("toy").name == "b"


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "cannot be imported"),
        ("", "cannot be imported"),
        ("LIBRARY = 3", "is no mapgap.core.Library"),
        ("from mapgap.core import Library\nLIBRARY = Library('other', None, '', '', {})", "is no mapgap.core.Library"),
    ],
)
def test_a_library_is_demanded(wings, content, words):
    if content is not None:
        (wings / "instances" / "toy.py").write_text(content)
    with pytest.raises(RuntimeError, match=words):
        registry.library("toy")


def test_plugins(wings, tmp_path):
    write(wings / "heuristics" / "toy.py", "a")
    write(tmp_path / "plug" / "p.py", "p")
    with registry.plugins_of_this_run():
        loaded = registry.load_plugin(tmp_path / "plug" / "p.py")
        assert [m.name for m in loaded] == ["p"]
        assert list(registry.methods("toy")) == ["a", "p"]
    assert list(registry.methods("toy")) == ["a"]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "found nothing there"),
        ("import nothing_of_that_name", "ModuleNotFoundError"),
        ("def f(:", "SyntaxError"),
        ("x = 1", "exports no list METHODS"),
        (SOURCE.format(name="p", problem="nowhere", rank=0), "unknown problem 'nowhere'"),
    ],
)
def test_broken_plugins_are_input_errors(wings, tmp_path, content, words):
    path = tmp_path / "plugin.py"
    if content is not None:
        path.write_text(content)
    with pytest.raises(InputError, match=words):
        registry.load_plugin(path)


def entries(monkeypatch, group, *loads):
    """Entry points of a group that load these things, or raise them."""

    def entry(number, thing):
        def load():
            if isinstance(thing, Exception):
                raise thing
            return thing

        return SimpleNamespace(name=f"e{number}", value=f"m:e{number}", load=load)

    found = [entry(number, thing) for number, thing in enumerate(loads)]
    monkeypatch.setattr(registry, "entry_points", lambda group: found if group == wanted else [])
    wanted = group
    registry.forget()


def method(name, problem="toy"):
    return Method(name, problem, "baseline", "r", lambda i, b: None)


def test_entry_points_add_methods_and_lists_of_them(wings, monkeypatch):
    entries(monkeypatch, "mapgap.methods", [method("first"), method("second")], method("third"))
    assert list(registry.methods("toy")) == ["first", "second", "third"]


def test_an_entry_point_adds_a_problem(wings, monkeypatch):
    other = dataclasses.replace(registry.problems()["toy"], name="other")
    entries(monkeypatch, "mapgap.problems", other)
    assert list(registry.problems()) == ["other", "toy"]


@pytest.mark.parametrize(
    ("thing", "words"),
    [
        (ImportError("no such module"), "ImportError: no such module"),
        (3, "expected a mapgap.core.Method or a list of them, found int"),
        ([method("fine"), 3], "expected a mapgap.core.Method or a list of them, found int"),
        (method("a"), "there is a method named 'a' already"),
    ],
)
def test_an_entry_point_that_cannot_be_used_is_left_out_with_a_warning(wings, monkeypatch, thing, words):
    # Somebody else's package must not break this one.
    write(wings / "heuristics" / "toy.py", "a")
    entries(monkeypatch, "mapgap.methods", thing, method("good"))
    with pytest.warns(registry.BrokenEntryPoint, match=words):
        assert list(registry.methods("toy")) == ["a", "good"]
