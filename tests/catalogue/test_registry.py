"""Discovery: what a module forgets is an error, never a silent absence."""

import sys
from types import ModuleType

import pytest

from mapgap.catalogue import registry
from mapgap.core import InputError, Library, Method, Problem

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


def forget():
    for cached in (registry.problems, registry.library, registry._built_in):
        cached.cache_clear()


@pytest.fixture
def wings(tmp_path, monkeypatch):
    """Empty wings in a folder of their own, with one problem ``toy``."""
    names = ("problems", "instances", "heuristics", "formulations")
    for wing in names:
        (tmp_path / wing).mkdir()
        (tmp_path / wing / "__init__.py").touch()
    ours = [m for m in sys.modules if m.split(".")[0] in names]
    saved = {m: sys.modules.pop(m) for m in ours}
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(registry, "_plugins", [])
    (tmp_path / "problems" / "toy.py").write_text(PROBLEM_SOURCE.format(name="toy"))
    forget()
    yield tmp_path
    for name in [m for m in sys.modules if m.split(".")[0] in names]:
        del sys.modules[name]
    sys.modules.update(saved)
    forget()


def write(path, name="m", problem="toy", rank=0):
    path.parent.mkdir(exist_ok=True, parents=True)
    (path.parent / "__init__.py").touch()
    path.write_text(SOURCE.format(name=name, problem=problem, rank=rank))


def test_problems_are_modules_or_packages(wings):
    (wings / "problems" / "box").mkdir()
    (wings / "problems" / "box" / "__init__.py").write_text(PROBLEM_SOURCE.format(name="box"))
    (wings / "problems" / "_private.py").touch()
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
    write(wings / "heuristics" / "toy" / "a.py", "a")
    write(wings / "formulations" / "toy" / "b.py", "b")
    (wings / "formulations" / "toy" / "_helper.py").touch()
    assert list(registry.methods("toy")) == ["a", "b"]


def test_a_method_module_may_be_a_single_file(wings):
    write(wings / "heuristics" / "toy.py", "a")
    assert list(registry.methods("toy")) == ["a"]


@pytest.mark.parametrize("content", ["", "METHODS = 3", "METHODS = ['x']"])
def test_a_method_module_without_methods_is_an_error(wings, content):
    write(wings / "heuristics" / "toy" / "a.py")
    (wings / "heuristics" / "toy" / "a.py").write_text(content)
    with pytest.raises(RuntimeError, match="exports no list METHODS"):
        registry.methods("toy")


def test_two_methods_of_one_name_are_an_error(wings):
    write(wings / "heuristics" / "toy" / "a.py", "same")
    write(wings / "formulations" / "toy" / "b.py", "same")
    with pytest.raises(RuntimeError, match="two methods of 'toy' are named 'same'"):
        registry.methods("toy")


def test_a_method_filed_under_another_problem_is_an_error(wings):
    write(wings / "heuristics" / "toy" / "a.py", problem="other")
    with pytest.raises(RuntimeError, match="claims problem 'other'"):
        registry.methods("toy")


def test_the_strongest_exact_method_has_the_highest_rank(wings):
    with pytest.raises(InputError, match="no exact method"):
        registry.strongest_exact("toy")
    registry._built_in.cache_clear()
    write(wings / "formulations" / "toy" / "a.py", "a", rank=1)
    write(wings / "formulations" / "toy" / "b.py", "b", rank=2)
    assert registry.strongest_exact("toy").name == "b"


@pytest.mark.parametrize("exported", [None, 3, Library("other", object, None, {})])
def test_a_library_is_demanded(monkeypatch, exported):
    module = ModuleType("instances.toy")
    if exported is not None:
        module.LIBRARY = exported
    monkeypatch.setitem(sys.modules, "instances.toy", module)
    registry.library.cache_clear()
    with pytest.raises(RuntimeError, match="exports no LIBRARY"):
        registry.library("toy")
    registry.library.cache_clear()


def test_plugins(wings, tmp_path):
    write(wings / "heuristics" / "toy" / "a.py", "a")
    write(tmp_path / "plug" / "p.py", "p")
    loaded = registry.load_plugin(tmp_path / "plug" / "p.py")
    assert [m.name for m in loaded] == ["p"]
    assert isinstance(registry.methods("toy")["p"], Method)


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


def test_an_entry_point_adds_methods(wings, monkeypatch):
    def load():
        return [Method("third", "toy", "baseline", "r", lambda i, b: None)]

    entry = type("Entry", (), {"load": staticmethod(load)})
    monkeypatch.setattr(registry, "entry_points", lambda group: [entry] if group == "mapgap.methods" else [])
    assert list(registry.methods("toy")) == ["third"]
