"""A plan to start from: an argument of a method, as an object or as a file."""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

from mapgap.core.data import InstanceBase, PlanBase
from mapgap.core.errors import InputError

Plan = TypeVar("Plan", bound=PlanBase)


def read_start(start: str | Plan | None, plan_type: type[Plan], instance: InstanceBase) -> Plan | None:
    """The plan that an argument ``start`` stands for; ``None`` for none.

    Parameters
    ----------
    start : str, plan, or None
        A plan, or its file, or a folder in which the file has the name of the instance (``instances/best_known`` for
        sweeps). Empty for none. Whether the plan keeps the rules is not looked at here.

    Raises
    ------
    InputError
        No such file, or one without a plan of the problem.
    """
    if start is None or isinstance(start, PlanBase):
        return start
    if not start:
        return None
    file = Path(start)
    try:
        if file.is_dir():
            file /= f"{instance.name}.json"
        return plan_type.model_validate_json(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"start: expected a plan file for {instance.name}, found {str(file)!r}: {error}") from error
