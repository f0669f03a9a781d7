"""What the modules of the contract share: tiny instances and what is known of them, each computed once."""

from __future__ import annotations

from functools import cache
from typing import Any

from mapgap.catalogue import registry
from mapgap.core import Budget, InstanceBase, Problem, SolveResult, Status

TIME_S = 300.0
"""More than any method may need on a tiny instance."""


def problem_of(name: str) -> Problem:
    return registry.problems()[name]


def sign(problem: str) -> int:
    """1 where less is better, -1 where more is."""
    return -1 if problem_of(problem).sense == "max" else 1


HEURISTIC_S = 0.5
"""Of a method that proves nothing: one that goes on for longer has its plan by then."""


@cache
def tiny(problem: str, seed: int) -> Any:
    """An instance of the family ``tiny``."""
    return registry.library(problem).generate("tiny", seed)


@cache
def solved(problem: str, method: str, seed: int, time_s: float = TIME_S) -> SolveResult:
    """What a method says of a tiny instance."""
    return registry.methods(problem)[method].solve(tiny(problem, seed), Budget(time_s, seed=seed).start())


@cache
def optimum(problem: str, seed: int) -> int | None:
    """The optimum of a tiny instance by brute force; ``None`` when no plan is feasible."""
    result = solved(problem, "enumerate", seed)
    assert result.enumerated, f"{problem}: tiny instance {seed} is too large to enumerate: {result.reason}"
    return _worth(problem, tiny(problem, seed), result)


_exact: dict[tuple[str, str], int | None] = {}


def exact_optimum(problem: str, instance: InstanceBase) -> int | None:
    """The optimum of any small instance by the strongest exact method; ``None`` when no plan is feasible."""
    key = (problem, instance.content_hash)
    if key not in _exact:
        method = registry.strongest_exact(problem)
        result = method.solve(instance, Budget(TIME_S).start())
        assert result.status in (Status.OPTIMAL, Status.INFEASIBLE), f"{method.name} does not solve {instance.name}"
        _exact[key] = _worth(problem, instance, result)
    return _exact[key]


def _worth(problem: str, instance: InstanceBase, result: SolveResult) -> int | None:
    if result.plan is None:
        assert result.status is Status.INFEASIBLE, result.reason
        return None
    return problem_of(problem).evaluate(instance, result.plan).objective


def best(problem: str, values: list[int]) -> int | None:
    """The best of some objectives; ``None`` for none."""
    return min(values, key=lambda value: sign(problem) * value, default=None)
