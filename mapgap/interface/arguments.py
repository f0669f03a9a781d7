"""The arguments of the public interface: checked before any work, everything that is wrong told at once."""

from __future__ import annotations

import json
import math
import operator
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from mapgap.catalogue import files, registry
from mapgap.catalogue.document import Document, add_errors
from mapgap.core import Budget, InputError, InstanceBase, Method, PlanBase, Problem, suggest
from mapgap.interface.results import Result

PlanLike = PlanBase | Result | Mapping[str, Any] | str | os.PathLike[str]
"""A plan, a result that holds one, its JSON data, or the path of a file with either."""


def chosen_method(problem: str, method: str | Method | None) -> Method:
    if method is None:
        return registry.strongest_exact(problem)
    if isinstance(method, str):
        return registry.find_method(problem, method)
    if not isinstance(method, Method):
        raise InputError(f"method: expected a name or a mapgap.Method, found {type(method).__name__}")
    if method.problem != problem:
        raise InputError(f"method {method.name!r} solves {method.problem}, the instance is one of {problem}")
    return method


def plugin_of(method: Method) -> Path | None:
    """The file that exports the method in its ``METHODS``; ``None`` for a method of the house, or of no file."""
    module = sys.modules.get(method.module)
    file = getattr(module, "__file__", None)
    return Path(file) if file is not None and method in getattr(module, "METHODS", ()) else None


def runs_of(
    loaded: Sequence[InstanceBase], methods: str | Method | Iterable[str | Method] | None
) -> list[tuple[InstanceBase, Method]]:
    """Every run of a comparison, so that whatever is wrong is told before the first one."""
    if not loaded:
        raise InputError("instances: expected at least one, found none")
    if methods is None:
        return [(one, method) for one in loaded for method in registry.methods(one.problem).values()]
    wanted: list[str | Method] = []
    for each in [methods] if isinstance(methods, (str, Method)) else methods:
        if each not in wanted:
            wanted.append(each)
    if not wanted:
        raise InputError("methods: expected at least one, found none")
    owners = {one.problem for one in loaded}
    for method in wanted:
        if isinstance(method, str) and not any(method in registry.methods(owner) for owner in owners):
            known = sorted({name for owner in owners for name in registry.methods(owner)})
            raise InputError(f"method: expected one of {', '.join(known)}; found {method!r}{suggest(method, known)}")
    return [
        (one, chosen_method(one.problem, method))
        for one in loaded
        for method in wanted
        if (method in registry.methods(one.problem) if isinstance(method, str) else method.problem == one.problem)
    ]


def refuse_namesakes(loaded: Sequence[InstanceBase]) -> None:
    """Two instances of one name could not be told apart in a comparison."""
    hashes: dict[str, str] = {}
    for one in loaded:
        if hashes.setdefault(one.name, one.content_hash) != one.content_hash:
            raise InputError(f"instances: two different ones are named {one.name!r}; change the name of one")


def refuse_unused(options: Mapping[str, Any], chosen: Sequence[Method]) -> None:
    known = sorted({name for method in chosen for name in method.settings}) if options else []
    strange = [name for name in options if name not in known]
    if strange:
        expected = f"expected an option of one of the methods ({', '.join(known) or 'they have none'})"
        raise InputError([f"options: {expected}; found {name!r}{suggest(name, known)}" for name in strange])


def budget_of(time_limit: float, memory_limit: int | None, workers: int, seed: int) -> Budget:
    """The limits, all of them checked."""
    findings = []
    if isinstance(time_limit, bool) or not _is_positive(time_limit):
        findings.append(f"time_limit: expected a positive number of seconds, found {time_limit!r}")
    whole: list[tuple[str, Any, int | None]] = [("workers", workers, 1), ("seed", seed, None)]
    if memory_limit is not None:
        whole.append(("memory_limit", memory_limit, 1))
    for name, value, least in whole:
        if isinstance(value, bool) or not hasattr(value, "__index__") or (least is not None and value < least):
            at_least = "" if least is None else f" of at least {least}"
            findings.append(f"{name}: expected an integer{at_least}, found {value!r}")
    if findings:
        raise InputError(findings)
    memory = None if memory_limit is None else operator.index(memory_limit)
    return Budget(float(time_limit), memory, operator.index(workers), operator.index(seed))


def _is_positive(value: Any) -> bool:
    try:
        return math.isfinite(value) and value > 0
    except TypeError:
        return False


def refuse_other_plans(problem: Problem, plan: Any) -> None:
    if not isinstance(plan, problem.plan_type):
        expected = f"expected a plan object of {problem.name} ({problem.plan_type.__module__})"
        raise InputError(f"plan: {expected}, found {type(plan).__module__}.{type(plan).__name__}")


def plan_of(problem: Problem, plan: PlanLike) -> PlanBase:
    """The plan object in whatever holds it."""
    if isinstance(plan, Result):
        if plan.plan is None:
            raise InputError(f"plan: expected a result with a plan, {plan.method} on {plan.instance.name} has none")
        plan = plan.plan
    if isinstance(plan, Mapping):
        return _plan_of_data(problem, plan)
    if isinstance(plan, (str, os.PathLike)):
        return files.load_plan(os.fspath(plan), problem.name)
    refuse_other_plans(problem, plan)
    return plan


def _plan_of_data(problem: Problem, data: Mapping[str, Any]) -> PlanBase:
    """The plan of JSON data; all findings at once."""
    wrapped = "plan" in data and "plan" not in problem.plan_type.model_fields
    if wrapped and data.get("problem", problem.name) != problem.name:
        raise InputError(f"problem: expected {problem.name!r}, found {data['problem']!r}")
    inner = data["plan"] if wrapped else data
    try:
        return problem.plan_type.model_validate_json(json.dumps(inner))
    except TypeError as error:
        raise InputError(f"plan: expected JSON data, found: {error}") from error
    except ValidationError as error:
        document = Document("plan", inner, marks=dict.fromkeys(_locations(inner, ()), (1, 1)))
        add_errors(document, error, problem.plan_type)
        raise InputError([f"plan: {text}" for _, _, text in document.findings]) from error


def _locations(data: Any, base: tuple[str | int, ...]) -> Iterable[tuple[str | int, ...]]:
    """The place of every value in nested data."""
    yield base
    if isinstance(data, Mapping):
        for key, value in data.items():
            yield from _locations(value, (*base, str(key)))
    elif isinstance(data, (list, tuple)):
        for index, value in enumerate(data):
            yield from _locations(value, (*base, index))
