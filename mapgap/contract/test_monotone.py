"""More time never weakens a bound or a plan: a longer run of an exact method continues a shorter one."""

from __future__ import annotations

from itertools import pairwise

import pytest

from mapgap.catalogue import registry
from mapgap.contract.known import sign
from mapgap.contract.seeds import seeds, some
from mapgap.core import Budget, Method
from mapgap.evidence.races import BRUTE_FORCE
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


@pytest.mark.parametrize("limits", LIMITS)
@pytest.mark.parametrize("seed", seeds(1, 10))
@pytest.mark.parametrize("method", some(8, METHODS), ids=lambda method: f"{method.problem}-{method.name}")
def test_a_larger_limit_never_ends_with_a_weaker_bound_or_a_worse_plan(
    method: Method, seed: int, limits: tuple[float, ...]
) -> None:
    library = registry.library(method.problem)
    family = "small" if "small" in library.families else "tiny"
    instance, s = library.generate(family, 2000 + seed), sign(method.problem)
    records = [run_method(instance, method, Budget(limit)) for limit in limits]
    assert not any(record.error for record in records)
    for shorter, longer in pairwise(records):
        if shorter.bound is not None and longer.status != "INFEASIBLE":
            assert longer.bound is not None
            assert s * longer.bound >= s * shorter.bound
        if shorter.objective is not None:
            assert longer.objective is not None
            assert s * longer.objective <= s * shorter.objective
