"""Single rows of an integer program in compiled loops: what each allows, until nothing moves much."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from mapgap.core import SUM_LIMIT
from mapgap.kernels import Flags, Integers, kernel

Terms = dict[int, int]
ROUNDS = 12
"""Most rounds of single rows, and of secants, per box."""
NARROWER = 0.9
"""A range has to shrink to this part of itself for another round."""


class Rows(NamedTuple):
    """Rows ``sum of a x <= bound``, one after the other, and the rows of each variable.

    Attributes
    ----------
    begins : (rows + 1,) int64
    variables, factors : (terms,) int64
    bounds : (rows,) int64
    firsts : (variables + 1,) int64
    users : (terms,) int64
    """

    begins: Integers
    variables: Integers
    factors: Integers
    bounds: Integers
    firsts: Integers
    users: Integers


def rows_of(rows: Sequence[tuple[Terms, int]], largest: Sequence[int]) -> Rows:
    """Rows of variables of which none is larger; arrays of Python's integers where 64 bits may not be enough."""
    sums = (abs(bound) + sum(abs(a) * largest[j] for j, a in row.items()) for row, bound in rows)
    kind = np.int64 if max(sums, default=0) < SUM_LIMIT else object
    variables = np.array([j for row, _ in rows for j in row], np.int64)
    lengths = np.array([len(row) for row, _ in rows], np.int64)
    return Rows(
        np.append(0, np.cumsum(lengths)),
        variables,
        np.array([a for row, _ in rows for a in row.values()], kind),
        np.array([bound for _, bound in rows], kind),
        np.append(0, np.cumsum(np.bincount(variables, minlength=len(largest)))),
        np.repeat(np.arange(len(rows)), lengths)[np.argsort(variables, kind="stable")],
    )


@kernel("i8(Rows,i8[::1],i8[::1],b1[::1],i8[::1])", Rows)
def tightened(rows: Rows, lower: Integers, upper: Integers, waiting: Flags, useful: Integers) -> int:
    """Tighten bounds by the rows that wait, and by those with a variable that moved, until none does.

    Parameters
    ----------
    lower, upper : (variables,) int64
        Changed in place, as ``Box.tighten`` of the checker does.
    waiting : (rows,) bool
        Changed: those that wait after so many rounds.
    useful : (ROUNDS rows,) int64
        Filled with the rows that did something, in turn.

    Returns
    -------
    int
        How many did; less than 0 if the last one of them leaves nothing, and of those before there are ``-1 - result``.
    """
    count = 0
    moved = np.zeros(len(lower), np.bool_)
    for _ in range(ROUNDS):
        looked = np.flatnonzero(waiting)
        waiting[:] = False
        moved[:] = False
        for i in looked:
            slack = rows.bounds[i]
            for t in range(rows.begins[i], rows.begins[i + 1]):
                j, a = rows.variables[t], rows.factors[t]
                slack -= a * (lower[j] if a > 0 else upper[j])
            if slack < 0:
                useful[count] = i
                return -1 - count
            some = False
            for t in range(rows.begins[i], rows.begins[i + 1]):
                j, a = rows.variables[t], rows.factors[t]
                then = upper[j] - lower[j]
                if abs(a) * then <= slack:
                    continue
                some = True
                if a > 0:
                    upper[j] = lower[j] + slack // a
                else:
                    lower[j] = upper[j] - slack // -a
                moved[j] |= upper[j] - lower[j] <= NARROWER * then
            if some:
                useful[count] = i
                count += 1
        for j in np.flatnonzero(moved):
            for t in range(rows.firsts[j], rows.firsts[j + 1]):
                waiting[rows.users[t]] = True
        if not moved.any():
            break
    return count


class Propagation:
    """Single rows, for boxes of lists of bounds."""

    def __init__(self, rows: Sequence[tuple[Terms, int]], lower: Sequence[int], upper: Sequence[int]) -> None:
        self.rows = rows_of(rows, [max(abs(low), abs(high)) for low, high in zip(lower, upper, strict=True)])
        self.waiting, self.useful = np.zeros(len(rows), bool), np.zeros(ROUNDS * len(rows), np.int64)
        self.kind = self.rows.bounds.dtype
        self.tightened: Any = tightened if self.kind == np.int64 else tightened.py_func  # type: ignore[attr-defined]

    def __call__(self, box: Any, waiting: set[int]) -> tuple[list[int], bool]:
        """Tighten a box by the rows that wait; which rows did something, and whether any point may be left.

        Parameters
        ----------
        box : Box
            With ``lower`` and ``upper``, lists that others take the place of.
        waiting : set of int
            Changed: rows that wait after so many rounds.
        """
        lower, upper = np.array(box.lower, self.kind), np.array(box.upper, self.kind)
        self.waiting[:] = False
        self.waiting[list(waiting)] = True
        count = self.tightened(self.rows, lower, upper, self.waiting, self.useful)
        box.lower, box.upper = lower.tolist(), upper.tolist()
        waiting.clear()
        waiting.update(np.flatnonzero(self.waiting).tolist())
        return self.useful[: count if count >= 0 else -count].tolist(), bool(count >= 0)
