"""CP-SAT model of the FPGA-GPU partition over configurations of modules (``configurations.py``).

========  ============================================================================  ===============
Symbol    Meaning                                                                       Shape
========  ============================================================================  ===============
y[m, c]   module m runs in configuration c                                              configurations
f[t]      the output of layer t, read by later modules, lies on the FPGA                such layers
e[m]      energy of module m above the least of its configurations, energy units        modules
l[m]      latency of module m above the least of its configurations, ticks              modules
========  ============================================================================  ===============

With least values E0[m], L0[m], demands D[m, c] and U[m, c] (multipliers, M20K) of the configurations::

    min  a * sum_m (E0 + e)[m] + b * sum_m (L0 + l)[m]
    (5)  sum_c y[m, c] = 1                                                 per module
    (6)  sum over c with t on the FPGA of y[m, c] = f[t]                   per module that makes or reads t
    (7)  sum_m,c D[m, c] y[m, c] <= multipliers, the same for U and M20K
    (8)  e[m] = sum_c (E - E0)[m, c] y[m, c], the same for l
    (9)  latency at most max_latency, energy at most max_energy

Energy and latency are sums per module first (8), so that no row grows with the number of configurations of the
whole network.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mapgap.core import Budget, SolveResult, Status
from mapgap.formulations.fpga_gpu_partition.configurations import Tables
from mapgap.formulations.fpga_gpu_partition.questions import Answer, Question
from mapgap.formulations.fpga_gpu_partition.questions import run as search
from mapgap.problems.fpga_gpu_partition import Instance


class Model:
    """The model of one question."""

    def __init__(self, tables: Tables, question: Question) -> None:
        from ortools.sat.python import cp_model

        self.model: Any = cp_model.CpModel()
        self.expression: Any = cp_model.LinearExpr
        self.tables = tables
        self._choose()
        self._homes()
        self._fabric()
        self.latency_above, latency_base = self._sums("l", 0)
        self.energy_above, energy_base = self._sums("e", 1)
        self._limits(question, latency_base, energy_base)
        self.constant = question.energy_weight * energy_base + question.latency_weight * latency_base
        weights = [question.energy_weight] * len(self.y) + [question.latency_weight] * len(self.y)
        self.model.minimize(self.sum(self.energy_above + self.latency_above, weights))

    def sum(self, variables: list[Any], weights: list[int] | None = None) -> Any:
        """Weighted sum; an expression even where there is nothing to add."""
        return self.expression.weighted_sum(variables, weights or [1] * len(variables))

    def _choose(self) -> None:
        """(5)"""
        self.y = [
            [self.model.new_bool_var(f"y[{m},{c}]") for c in range(len(table))]
            for m, table in enumerate(self.tables.modules)
        ]
        for row in self.y:
            self.model.add_exactly_one(row)

    def _homes(self) -> None:
        """(6)"""
        f: dict[int, Any] = {}
        for m, table in enumerate(self.tables.modules):
            for sources, homes in ((table.inputs, table.input_on_fpga), (table.outputs, table.output_on_fpga)):
                for k, t in enumerate(sources):
                    if t not in f:
                        f[t] = self.model.new_bool_var(f"f[{t}]")
                    there = [y for y, on_fpga in zip(self.y[m], homes[:, k], strict=True) if on_fpga]
                    self.model.add(self.sum(there) == f[t]).with_name(f"home[{t},{m}]")

    def _fabric(self) -> None:
        """(7)"""
        fabric = self.tables.instance.fabric
        for name, column, most in (("multipliers", 2, fabric.multipliers), ("m20k", 3, fabric.m20k)):
            needs = [int(need) for table in self.tables.modules for need in table.values[:, column]]
            demand = self.sum([y for row in self.y for y in row], needs)
            self.model.add(demand <= most).with_name(name)

    def _sums(self, name: str, column: int) -> tuple[list[Any], int]:
        """(8): the variables of one quantity and the sum of its least values."""
        above, base = [], 0
        for m, (table, row) in enumerate(zip(self.tables.modules, self.y, strict=True)):
            values = table.values[:, column]
            least, most = int(values.min()), int(values.max())
            base += least
            variable = self.model.new_int_var(0, most - least, f"{name}[{m}]")
            self.model.add(self.sum(row, [int(v) - least for v in values]) == variable).with_name(f"{name}[{m}]")
            above.append(variable)
        return above, base

    def _limits(self, question: Question, latency_base: int, energy_base: int) -> None:
        """(9)"""
        if question.max_latency is not None:
            self.model.add(self.sum(self.latency_above) <= question.max_latency - latency_base).with_name("max latency")
        if question.max_energy is not None:
            self.model.add(self.sum(self.energy_above) <= question.max_energy - energy_base).with_name("max energy")

    def hint(self, choice: list[int]) -> dict[Any, int]:
        """Values of the choices of a plan."""
        return {y: int(c == number) for row, number in zip(self.y, choice, strict=True) for c, y in enumerate(row)}

    def decode(self, value: Any) -> list[int]:
        """One configuration per module."""
        return [int(np.argmax([value(y) for y in row])) for row in self.y]


def answer(tables: Tables, question: Question, budget: Budget, hint: list[int] | None) -> Answer:
    """Put one question to CP-SAT."""
    from mapgap.solvers.cpsat import solve

    model = Model(tables, question)
    outcome = solve(model.model, budget, hint=None if hint is None else model.hint(hint))
    if outcome.status is Status.INFEASIBLE:
        return Answer(outcome.status, outcome.stop)
    choice = model.decode(outcome.value) if outcome.solved else None
    bound = None if outcome.bound is None else outcome.bound + model.constant
    return Answer(outcome.status, outcome.stop, choice, bound)


def run(instance: Instance, budget: Budget) -> SolveResult:
    """Minimise the instance's objective with CP-SAT."""
    return search(instance, budget, answer)
