"""What the house declares by reference exists: problems, methods, libraries, and the names that packages re-export."""

import dataclasses
import importlib

import pytest

from mapgap.catalogue import registry
from mapgap.core import InstanceBase, PlanBase, Problem, lazily, resolve


@pytest.mark.parametrize("name", registry.problems())
def test_a_problem_is_what_it_refers_to(name):
    problem = registry.problems()[name]
    assert issubclass(problem.instance_type, InstanceBase)
    assert issubclass(problem.plan_type, PlanBase)
    assert callable(problem.evaluate)
    assert all(callable(each) for each in (problem.gantt, problem.diagnose) if each is not None)
    assert all(isinstance(each, str) for each in problem.objectives)


@pytest.mark.parametrize("name", registry.problems())
def test_a_library_and_all_methods_are_what_they_refer_to(name):
    library = registry.library(name)
    for field in dataclasses.fields(library):
        if field.name not in ("problem", "folder", "families"):
            resolve(getattr(library, field.name))
    assert all(callable(resolve(each)) for each in library.families.values())
    for method in registry.methods(name).values():
        assert callable(resolve(method.run))
        assert method.models is None or callable(resolve(method.models))


@pytest.mark.parametrize("name", registry.problems())
def test_a_package_has_every_name_that_it_announces(name):
    package = importlib.import_module(f"mapgap.problems.{name}")
    assert all(hasattr(package, each) for each in package.__all__)
    with pytest.raises(AttributeError, match=rf"module 'mapgap\.problems\.{name}' has no attribute 'nothing'"):
        package.nothing  # noqa: B018


def test_a_problem_may_be_declared_with_the_things_themselves():
    declared = registry.problems()["neuron_masking"]
    direct = Problem(
        "neuron_masking", "t", "p", "max", declared.unit, declared.instance_type, declared.plan_type, declared.evaluate
    )
    assert (direct.instance_type, direct.gantt, direct.objectives) == (declared.instance_type, None, ())
    assert dataclasses.replace(direct, name="other").evaluate is declared.evaluate
    with pytest.raises(AttributeError):
        Problem("x", "t", "p", "min", str, "mapgap.core:nothing", PlanBase, str).instance_type  # noqa: B018


def test_names_are_looked_for_in_the_order_of_the_modules():
    find = lazily("mapgap", "core", "records.record")
    assert find("RunRecord").__name__ == "RunRecord"
    assert find("InputError").__module__ == "mapgap.core.errors"
    for name in ("nothing", "__path__", "_T"):
        with pytest.raises(AttributeError):
            find(name)
