"""What a problem says of a plan to somebody who asks why it is not better."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from mapgap.core.data import InstanceBase
from mapgap.core.declarations import Case, PlanTable


@dataclass(frozen=True)
class Binding:
    """What determines the value of a plan.

    Attributes
    ----------
    sentence : str
        In one or two sentences.
    table : PlanTable
        Its parts, the heaviest first or in the order of time.
    bars : frozenset of (str, str)
        Lane and label of the bars of the plan's chart that are meant.
    """

    sentence: str
    table: PlanTable
    bars: frozenset[tuple[str, str]] = frozenset()


@dataclass(frozen=True)
class Exchange:
    """One decision in which a plan differs from another.

    Attributes
    ----------
    label : str
        The decision and what replaces what.
    apply : callable
        ``apply(plan)`` is the plan with the other one's decision. The plan is the first one, or that with exchanges
        applied that stand before this one in the list. The result may break rules.
    """

    label: str
    apply: Callable[[Any], Any]


@dataclass(frozen=True)
class Explainer:
    """Three functions of a problem, declared as ``Problem.explain``.

    Attributes
    ----------
    binding : callable
        ``f(instance, plan) -> Binding``; the plan has a value.
    relaxations : callable
        ``f(instance) -> list of Case``: the instance with more of something.
    exchanges : callable
        ``f(instance, plan, other) -> list of Exchange``: all applied, they make the other plan, or one like it.
    """

    binding: Callable[[Any, Any], Binding]
    relaxations: Callable[[Any], Sequence[Case]]
    exchanges: Callable[[Any, Any, Any], Sequence[Exchange]]


def relaxed(instance: InstanceBase, label: str, **changes: Any) -> list[Case]:
    """The instance with some fields replaced (plain data), as a case; none where they leave an instance's limits."""
    data = {**instance.to_json(), **changes, "name": f"{instance.name}, {label}"}
    try:
        return [Case(label, type(instance).model_validate_json(json.dumps(data)))]
    except ValidationError:
        return []
