"""What a problem says of a plan: as a table, as a chart, and to somebody who asks why it is not better."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from mapgap.core.data import Case, InstanceBase, PlanBase


@dataclass(frozen=True)
class GanttBar:
    """One bar of a chart: ``[start, end)`` in seconds, of which the first ``transfer`` seconds move data."""

    start: float
    end: float
    label: str
    group: str
    transfer: float = 0.0


@dataclass(frozen=True)
class GanttLane:
    """One row of a chart: a device or a unit of a device."""

    name: str
    bars: tuple[GanttBar, ...]


@dataclass(frozen=True)
class PlanTable:
    """A plan as people read it.

    Attributes
    ----------
    columns : tuple of str
    rows : tuple of tuple
        Texts and numbers; ``None`` where there is nothing.
    right : tuple of str
        Columns of numbers.
    notes : tuple of (str, str)
        Names and texts below the table.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    right: tuple[str, ...] = ()
    notes: tuple[tuple[str, str], ...] = ()


PREFIXES = (("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3), ("", 1.0), ("m", 1e-3), ("u", 1e-6), ("n", 1e-9))


def quantity(value: float, unit: str) -> str:
    """A value with four digits and the prefix that keeps it readable: ``26.37 ms``, ``1.5 GB``; never kiloseconds."""
    rounded = value if unit == "s" and abs(value) >= 1000 else float(f"{value:.4g}")
    for prefix, scale in PREFIXES:
        if abs(rounded) >= scale and not (unit == "s" and scale > 1) and not (unit == "B" and scale < 1):
            digits = ",.0f" if abs(rounded / scale) >= 1000 else ".4g"
            return f"{rounded / scale:{digits}} {prefix}{unit}"
    return f"0 {unit}"


_UNIT = re.compile(r"(?:ticks of )?(\d+) (?:(ns|nJ)|nJ x (\d+) ns)")


def plainly(value: int | None, unit: str) -> str | None:
    """Seconds, joules, or energy times delay, of a value; ``None`` where its unit is none of these."""
    match = _UNIT.fullmatch(unit)
    if match is None or value is None:
        return None
    if match[3]:
        return f"{value * int(match[1]) * int(match[3]) * 1e-12:.4g} mJ ms"
    return quantity(value * int(match[1]) * 1e-9, "s" if match[2] == "ns" else "J")


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
class Preferred:
    """The simplest of the plans that the spread of the measurement does not tell apart from the best one.

    Attributes
    ----------
    plan : PlanBase, optional
        ``None`` where no simpler one than the best was found.
    words : str
        In how far it is simpler: "1 board and no cut in place of 2 boards and 1 cut"; or that none is.
    complete : bool
        All plans were searched.
    """

    plan: PlanBase | None
    words: str
    complete: bool


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
