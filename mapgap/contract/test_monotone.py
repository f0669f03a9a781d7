"""More time never weakens a bound or a plan: a longer run of an exact method continues a shorter one.

Nor has any method a better bound in a tenth of the time than the strongest exact method of its problem.
"""

from __future__ import annotations

import pytest

from mapgap.catalogue import registry
from mapgap.contract.known import sign
from mapgap.contract.races import weaker
from mapgap.contract.seeds import seeds, some
from mapgap.core import Budget, Method
from mapgap.evidence.races import BRUTE_FORCE, library_instances
from mapgap.execution.run import run_method

METHODS = [
    method
    for problem in registry.problems()
    for method in registry.methods(problem).values()
    if method.kind == "bound" or (method.kind == "exact" and method.rank >= BRUTE_FORCE)
]
LIMITS = [
    pytest.param((0.05, 0.5), id="day"),
    pytest.param((0.05, 0.5, 2.0), id="night", marks=pytest.mark.nightly),
]
"""Seconds; the first ends most runs long before they are done."""


@pytest.mark.in_turn
@pytest.mark.parametrize("limits", LIMITS)
@pytest.mark.parametrize("seed", seeds(1, 10))
@pytest.mark.parametrize("method", some(8, METHODS), ids=lambda method: f"{method.problem}-{method.name}")
def test_a_larger_limit_never_ends_with_a_weaker_bound_or_a_worse_plan(
    method: Method, seed: int, limits: tuple[float, ...]
) -> None:
    library = registry.library(method.problem)
    family = "small" if "small" in library.families else "tiny"
    instance = library.generate(family, 2000 + seed)
    assert weaker([run_method(instance, method, Budget(limit)) for limit in limits]) == []


TENTH_S = 2.0
"""Seconds of every other method."""


@pytest.mark.nightly
@pytest.mark.parametrize("number", some(1, range(3)))
@pytest.mark.parametrize("problem", registry.problems())
def test_nobody_has_a_better_bound_in_a_tenth_of_the_time(problem: str, number: int) -> None:
    methods = [method for method in METHODS if method.problem == problem]
    strongest, s = max(methods, key=lambda method: method.rank), sign(problem)
    instances = [*library_instances(problem, 3)]
    instance = instances[number % len(instances)]
    ours = run_method(instance, strongest, Budget(10 * TENTH_S))
    for method in methods:
        if method is not strongest and ours.status not in ("OPTIMAL", "INFEASIBLE"):
            bound = run_method(instance, method, Budget(TENTH_S)).sure_bound
            assert bound is None or (ours.bound is not None and s * ours.bound >= s * bound), method.name
