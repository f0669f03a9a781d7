"""Rows that a binary switches on and off, and models whose switches leak.

An engine takes a binary for 1 that is short of it by its tolerance ``t``; in a row with a big M that leaves a slack of
``M t``. From half a unit on a row no longer says anything about integers, and engines were measured to prove what is
not so (``tests/data/regressions``).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import pulp

from mapgap.solvers.guard import GuardError

LEAK = 0.5
"""Units of a row that the tolerance may not reach."""


class BigM(NamedTuple):
    """A binary, the row that it switches, and its coefficient there."""

    size: float
    row: int
    variable: str


def big_m(program: pulp.LpProblem, above: float) -> BigM | None:
    """The largest big M above a size; ``None`` if there is none.

    In the row ``sum_k a_k x_k + f <= b`` with ``f`` the part of the variables that are not binary, let ``r`` be what is
    left of ``b`` at the value of ``x_j`` that makes the row strict. ``|a_j|`` is a big M if it is larger than what it
    switches (``|a_j| > |r|``) and of the size of all that ``f`` can be (``2 |a_j| >= max f``; an ``M`` that was made
    smaller for the row counts as well). Equations are no switches, nor are rows with a
    column of the objective that is not binary: what leaks there is a share of the objective (``T >= sum c x``).
    """
    costs = set() if program.objective is None else {id(v) for v in program.objective}
    found: BigM | None = None
    for number, row in enumerate(program.constraints()):
        if row.sense == pulp.LpConstraintEQ:
            continue
        sign = 1.0 if row.sense == pulp.LpConstraintLE else -1.0
        switches = [(v, sign * a) for v, a in row.items() if _binary(v) and abs(a) > above]
        if not switches:
            continue
        right = -sign * row.constant
        rest = [(v, sign * a) for v, a in row.items() if not _binary(v)]
        if not rest or any(id(v) in costs for v, _ in rest):
            continue
        most = sum(_most(v, a) for v, a in rest)
        for variable, a in switches:
            strict = right - max(a, 0.0)
            if abs(a) > abs(strict) and most <= 2 * abs(a) and (found is None or abs(a) > found.size):
                found = BigM(abs(a), number, str(variable.name))
    return found


def _binary(variable: Any) -> bool:
    return bool(variable.cat == pulp.LpInteger and variable.lowBound == 0 and variable.upBound == 1)


def _most(variable: Any, coefficient: float) -> float:
    """The largest value of one term."""
    bound = variable.upBound if coefficient > 0 else variable.lowBound
    return math.inf if bound is None else coefficient * bound


def check_big_m(found: BigM | None, tolerance: float, titles: Sequence[str] = ()) -> None:
    """Refuse a program whose largest big M lets half a unit through.

    Parameters
    ----------
    found : BigM or None
        The largest one.
    titles : sequence of str
        Of the rows.

    Raises
    ------
    GuardError
        Names the row and the size.
    """
    if found is not None and found.size > LEAK / tolerance * (1 - 1e-9):
        title = titles[found.row] if titles else f"number {found.row}"
        raise GuardError(
            f"row {title}: expected big M below {LEAK / tolerance:g} (at a tolerance of {tolerance:g}), "
            f"found {found.size:g} at {found.variable}; use coarser units"
        )
