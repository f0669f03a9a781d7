"""A plan to start from: an argument of a method, as an object or as a file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from mapgap.core.data import InstanceBase, PlanBase
from mapgap.core.errors import InputError
from mapgap.core.results import Evaluation

Plan = TypeVar("Plan", bound=PlanBase)


def read_start(
    start: str | Plan | None,
    plan_type: type[Plan],
    instance: InstanceBase,
    evaluate: Callable[[Any, Any], Evaluation] | None = None,
) -> Plan | None:
    """The plan that an argument ``start`` stands for; ``None`` for none.

    Parameters
    ----------
    start : str, plan, or None
        A plan, or its file, or a folder in which the file has the name of the instance (``instances/best_known`` for
        sweeps). Empty for none.
    evaluate : callable, optional
        Of the problem: a plan that breaks a rule is none. Without, whoever takes the plan looks at its rules.

    Raises
    ------
    InputError
        No such file, or one without a plan of the problem.
    """
    plan = start if isinstance(start, PlanBase) else _read(start, plan_type, instance) if start else None
    return None if plan is None or (evaluate is not None and not evaluate(instance, plan).feasible) else plan


def _read(start: str, plan_type: type[Plan], instance: InstanceBase) -> Plan:
    file = Path(start)
    try:
        if file.is_dir():
            file /= f"{instance.name}.json"
        return plan_type.model_validate_json(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"start: expected a plan file for {instance.name}, found {str(file)!r}: {error}") from error
