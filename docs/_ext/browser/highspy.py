"""As much of highspy as the lessons use, over HiGHS for WebAssembly (the npm package ``highs``).

There is no wheel of highspy that a site could bring along. A program is written as an LP file whenever it is solved.
"""

from __future__ import annotations

import json
from types import SimpleNamespace

import highs_in_browser  # the page's worker registers it: solve(text of an LP file) -> JSON

HighsModelStatus = SimpleNamespace(kOptimal="Optimal", kInfeasible="Infeasible")


class Expression:
    """A linear expression: factors by index of a variable, and a constant."""

    def __init__(self, terms=None, constant=0):
        self.terms, self.constant = dict(terms or {}), constant

    def __add__(self, other):
        terms, other = dict(self.terms), other if isinstance(other, Expression) else Expression(constant=other)
        for index, factor in other.terms.items():
            terms[index] = terms.get(index, 0) + factor
        return Expression(terms, self.constant + other.constant)

    def __mul__(self, factor):
        return Expression({index: factor * value for index, value in self.terms.items()}, factor * self.constant)

    __radd__, __rmul__ = __add__, __mul__

    def __neg__(self):
        return self * -1

    def __sub__(self, other):
        return self + -1 * other

    def __rsub__(self, other):
        return -self + other

    def __ge__(self, other):
        return self - other  # a row: this is at least zero

    def __le__(self, other):
        return -self + other


class highs_var(Expression):
    """A variable."""

    def __init__(self, index):
        super().__init__({index: 1})
        self.index = index


class Highs:
    """A linear program that can grow, shrink and be solved."""

    def __init__(self):
        self.bounds, self.rows, self.number = [], {}, 0

    def silent(self):
        """It never says anything."""

    def addVariable(self, lb=0, ub=None):
        self.bounds.append((lb, ub))
        return highs_var(len(self.bounds) - 1)

    def addConstr(self, row):
        self.number += 1
        self.rows[self.number] = row
        return self.number

    def removeConstr(self, row):
        del self.rows[row]

    def changeColBounds(self, index, low, high):
        self.bounds[index] = (low, high)

    def minimize(self, goal):
        factors = enumerate(goal.terms.get(index, 0) for index in range(len(self.bounds)))
        lines = ["Minimize", "obj:", *_terms(factors), "Subject To"]
        for number, row in self.rows.items():
            lines += [f"r{number}:", *_terms(row.terms.items()), f">= {-row.constant}"]
        lines.append("Bounds")
        for index, (low, high) in enumerate(self.bounds):
            lines.append(f"{low} <= x{index}" + ("" if high is None else f" <= {high}"))
        self.found = json.loads(highs_in_browser.solve("\n".join([*lines, "End", ""])))

    def getModelStatus(self):
        return self.found["Status"]

    def getInfo(self):
        return SimpleNamespace(objective_function_value=self.found["ObjectiveValue"])

    def val(self, expression):
        columns = self.found["Columns"]
        values = {index: columns.get(f"x{index}", {}).get("Primal", 0.0) for index in expression.terms}
        return expression.constant + sum(factor * values[index] for index, factor in expression.terms.items())


def _terms(factors):
    """A line each, since a line of an LP file has an end."""
    return [f"{'-' if factor < 0 else '+'} {abs(factor)} x{index}" for index, factor in factors]
