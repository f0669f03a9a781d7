"""How the papers can be read: every interpretation and free parameter of a problem, from ``<problem>/readings.yaml``.

A reading is switched by an ``option`` of the published method, a ``field`` of the compact form, or a ``rule`` of the
expanded form, and has ``values``, the default first; or it is ``fixed``, with the reason. What ranges over it elsewhere
than in the study ``readings`` stands in ``apart``, a table ``REPORT/TABLE``. ``pinned`` names numbered interpretations
of the docstrings in ``pins``.
"""

from __future__ import annotations

from functools import cache
from itertools import combinations, product
from typing import Any

from pydantic import Field, model_validator

from mapgap.core import Frozen, InputError
from mapgap.instances.facts import ROOT, read_yaml


class Reading(Frozen):
    """A place where a paper can be read in several ways, or leaves a parameter free; see the module."""

    name: str
    source: str
    says: str
    pinned: tuple[str, ...] = ()
    option: str | None = None
    field: str | None = None
    rule: str | None = None
    values: tuple[Any, ...] = ()
    fixed: str | None = None
    apart: str | None = None

    @model_validator(mode="after")
    def _check(self) -> Reading:
        switches = sum(each is not None for each in (self.option, self.field, self.rule))
        if switches > 1 or bool(switches) != bool(self.values):
            raise InputError(f"{self.name}: expected one of option, field and rule with values, or none of them")
        if (len(self.values) > 1) == (self.fixed is not None):
            raise InputError(f"{self.name}: expected either several values or, in fixed, the reason why there are none")
        return self

    @property
    def switchable(self) -> bool:
        return len(self.values) > 1


class Crossed(Frozen):
    """A method whose readings are crossed on a set of instances.

    Attributes
    ----------
    exact : str, optional
        The exact method where readings change instances; without it the ledger's plans and bounds count.
    set : str
        What the instances are, in words.
    instances : tuple of str
        Names, or patterns of names.
    pairs_with : str, optional
        Only pairs with this option are covered; by default all pairs are.
    """

    method: str
    exact: str | None = None
    set: str
    instances: tuple[str, ...]
    pairs_with: str | None = Field(default=None, alias="with")


class Readings(Frozen):
    """The readings of a problem's paper; ``pins`` names the modules whose docstrings number interpretations."""

    problem: str
    paper: str
    pins: dict[str, str]
    crossed: tuple[Crossed, ...]
    readings: tuple[Reading, ...]

    def of(self, options: set[str]) -> list[Reading]:
        """The switchable readings that concern a method with these options."""
        return [each for each in self.readings if each.switchable and (each.option is None or each.option in options)]


@cache
def readings_of(problem: str) -> Readings:
    """The readings of a problem.

    Raises
    ------
    InputError
        The file is not as it must be.
    """
    return Readings.model_validate(read_yaml(ROOT / problem / "readings.yaml"), strict=False)


def problems() -> list[str]:
    """The problems whose papers' readings are listed, alphabetically."""
    return sorted(path.parent.name for path in ROOT.glob("*/readings.yaml"))


def covering(readings: list[Reading], pairs_with: str | None = None) -> list[tuple[Any, ...]]:
    """Combinations of values such that any two values of two readings occur together, the defaults first.

    Greedy: each combination takes the values that cover most pairs that are left, the first of equal ones. With
    ``pairs_with`` only pairs with that option's values are covered.
    """
    sizes = [range(len(each.values)) for each in readings]
    pairs = [
        (i, j)
        for i, j in combinations(range(len(readings)), 2)
        if pairs_with is None or pairs_with in (readings[i].option, readings[j].option)
    ]
    left = {(i, a, j, b) for i, j in pairs for a, b in product(sizes[i], sizes[j])}
    left |= {(i, a, i, a) for i, size in enumerate(sizes) for a in size}
    rows = [(0,) * len(readings)]
    while True:
        row = rows[-1]
        left -= {each for each in left if row[each[0]] == each[1] and row[each[2]] == each[3]}
        if not left:
            return [tuple(each.values[k] for each, k in zip(readings, row, strict=True)) for row in rows]
        i, a, j, b = min(left)
        chosen: dict[int, int] = {i: a, j: b}
        for k, size in enumerate(sizes):
            if k not in chosen:
                chosen[k] = max(size, key=lambda v, k=k: (_covered(left, {**chosen, k: v}), -v))  # type: ignore[misc]
        rows.append(tuple(chosen[k] for k in range(len(readings))))


def _covered(left: set[tuple[int, int, int, int]], chosen: dict[int, int]) -> int:
    return sum(chosen.get(i) == a and chosen.get(j) == b for i, a, j, b in left)
