"""Problems of the house declare everything that the contract can test; those of other packages may leave it out."""

from collections import defaultdict

import pytest

from mapgap.catalogue import registry
from mapgap.evidence.certify import exact_methods

PARTS = ("splitting", "shrinking", "sampling", "relating", "carrying", "implying")


@pytest.mark.parametrize("problem", registry.house())
def test_every_kind_of_method_is_there(problem):
    methods = registry.methods(problem)
    assert {"exact", "published", "baseline"} <= {method.kind for method in methods.values()}
    assert {"enumerate", "cpsat", "mip"} <= set(methods)


@pytest.mark.parametrize("problem", registry.house())
def test_exact_methods_of_different_engines_exist(problem):
    engines = [set(method.engines) for method in exact_methods(problem)]
    assert any(not a & b for a in engines for b in engines)


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("problem", registry.house())
def test_the_library_declares_all_its_parts(problem, part):
    assert getattr(registry.library(problem), part) is not None


@pytest.mark.parametrize("problem", registry.house())
def test_the_problem_says_why_there_is_no_plan_and_draws_those_there_are(problem):
    spec = registry.problems()[problem]
    assert spec.diagnose is not None
    assert spec.gantt is not None


def test_no_parameter_has_two_meanings():
    """An algorithm that has the parameters of several inherits each name from one of them."""
    for problem in registry.problems():
        for name, method in registry.methods(problem).items():
            declared = defaultdict(list)
            for base in type(method.tuned({})).__mro__:
                for key in vars(base).get("__annotations__", {}):
                    declared[key].append(base)
            for key, bases in declared.items():  # the first one, which counts, overrides all others
                assert all(issubclass(bases[0], base) for base in bases), (name, key, bases)
