"""What the expansions of all problems share: findings that come together, the finest tick, names that differ."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from pydantic import ValidationError

from mapgap.core import Finding, InputError, InstanceBase, Location
from mapgap.instances.facts import unknown

Made = TypeVar("Made", bound=InstanceBase)
Value = TypeVar("Value")
Matrix = tuple[tuple[float, ...], ...]
BYTES_PER_SECOND = {"GB/s": 1e9, "Mbit/s": 1e6 / 8}


def collect(findings: list[Finding], make: Callable[[], Value], below: Location = ()) -> Value | None:
    """The value, or ``None`` with its findings noted, as those of a part of the whole that lies ``below``."""
    try:
        return make()
    except InputError as error:
        findings += [finding.below(below) for finding in error.findings]
        return None


def either(first: str, second: str, *given: object) -> None:
    """Two fields of which one stands for the other.

    Raises
    ------
    InputError
        Both values are given, or both are ``None``.
    """
    if sum(value is not None for value in given) != 1:
        found = "neither" if given[0] is None else "both"
        raise InputError(Finding(f"expected either {first} or {second}, found {found}", (first,)))


def finest(make: Callable[[int], Made], ticks: Iterable[int], otherwise: Finding | None = None) -> Made:
    """``make(tick_ns)`` for the first tick, from the finest on, with which the sums of the instance are safe.

    Raises
    ------
    InputError, pydantic.ValidationError
        Something else is wrong with the instance, or every tick is too fine (then ``otherwise``).
    """
    found: list[Finding] = []
    for tick_ns in ticks:
        try:
            return make(tick_ns)
        except ValidationError as error:
            found = findings_of(error)
            if ("tick_ns",) not in [finding.location for finding in found]:
                if not found:
                    raise
                raise InputError(found) from error
    raise InputError(otherwise or found)


def findings_of(error: ValidationError) -> list[Finding]:
    """What the validators of an instance found."""
    raised = [each.get("ctx", {}).get("error") for each in error.errors(include_url=False)]
    return [finding for each in raised if isinstance(each, InputError) for finding in each.findings]


def all_known(names: Sequence[str], known: list[str], kind: str) -> None:
    """Are there devices, and all of a known kind?

    Raises
    ------
    InputError
        Every name that is none, at its place.
    """
    if not names:
        raise InputError(Finding(f"expected at least one {kind}, found none", ("devices",)))
    strange = [unknown(("devices", i), name, known) for i, name in enumerate(names) if name not in known]
    if strange:
        raise InputError([finding for error in strange for finding in error.findings])


def bandwidths(field: str, rates: float | Matrix, n: int, unit: str) -> tuple[tuple[int, ...], ...]:
    """Whole bytes per second between ``n`` devices; 1 on the diagonal, whatever is given there.

    Parameters
    ----------
    field : str
        Of the compact form.
    rates : float or matrix of float
        For every pair, or from row to column.
    n : int
    unit : {"GB/s", "Mbit/s"}
        Of the rates.

    Raises
    ------
    InputError
    """
    scale = BYTES_PER_SECOND[unit]
    rows = rates if isinstance(rates, tuple) else ((rates,) * n,) * n
    if len(rows) != n or any(len(row) != n for row in rows):
        found = f"found rows of lengths {[len(row) for row in rows]}"
        raise InputError(Finding(f"expected a {n} x {n} matrix or one number, {found}", (field,)))
    wrong = [
        Finding(
            f"expected a positive number of {unit}, found {rate}",
            (field, i, j) if isinstance(rates, tuple) else (field,),
        )
        for i, row in enumerate(rows)
        for j, rate in enumerate(row)
        if i != j and not (math.isfinite(scale * rate) and round(scale * rate) >= 1)
    ]
    if wrong:
        raise InputError(dict.fromkeys(wrong))
    return tuple(
        tuple(1 if i == j else round(scale * rate) for j, rate in enumerate(row)) for i, row in enumerate(rows)
    )


def numbered(names: Sequence[str]) -> list[str]:
    """``Nano 1``, ``Nano 2``, … where a name occurs more than once."""
    return [name if names.count(name) == 1 else f"{name} {names[: i + 1].count(name)}" for i, name in enumerate(names)]
