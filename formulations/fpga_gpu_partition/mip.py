"""MIP of the FPGA-GPU partition over configurations of modules; symbols and rows (5) to (9) as in ``cpsat.py``.

Energy and latency need no variables here: they are sums over the choices directly. Only the sides f are shared between
modules; where they are fixed, this is a multiple-choice knapsack with two resources.
"""

from __future__ import annotations

from typing import Any

from mapgap.core import Budget, SolveResult, Status, Stop
from mapgap.formulations.fpga_gpu_partition.configurations import Tables
from mapgap.formulations.fpga_gpu_partition.questions import Answer, Question
from mapgap.formulations.fpga_gpu_partition.questions import run as search
from mapgap.problems.fpga_gpu_partition import Instance


class Model:
    """The model of one question."""

    def __init__(self, tables: Tables, question: Question) -> None:
        import pulp

        self.pulp: Any = pulp
        self.tables, self.question = tables, question
        self.problem: Any = pulp.LpProblem("fpga_gpu_partition", pulp.LpMinimize)
        self.y = [
            [pulp.LpVariable(f"y_{m}_{c}", cat="Binary") for c in range(len(table))]
            for m, table in enumerate(tables.modules)
        ]
        self.least = [int(sum(table.values[:, column].min() for table in tables.modules)) for column in range(2)]
        latency, energy = self._above(0), self._above(1)
        self.constant = question.latency_weight * self.least[0] + question.energy_weight * self.least[1]
        self.objective = question.energy_weight * energy + question.latency_weight * latency
        self.problem += self.objective
        for m, row in enumerate(self.y):  # (5)
            self.problem += pulp.lpSum(row) == 1, f"one_{m}"
        self._homes()
        self._fabric()
        self._limits(latency, energy)

    def _above(self, column: int) -> Any:
        """Latency (column 0) or energy (1) above the sum of the least values: (8) summed over the modules."""
        terms = []
        for table, row in zip(self.tables.modules, self.y, strict=True):
            values = table.values[:, column]
            terms += [(y, int(v - values.min())) for v, y in zip(values, row, strict=True)]
        return self.pulp.LpAffineExpression(terms)

    def _homes(self) -> None:
        """(6)"""
        f: dict[int, Any] = {}
        for m, table in enumerate(self.tables.modules):
            for sources, homes in ((table.inputs, table.input_on_fpga), (table.outputs, table.output_on_fpga)):
                for k, t in enumerate(sources):
                    if t not in f:
                        f[t] = self.pulp.LpVariable(f"f_{t}", cat="Binary")
                    there = [y for y, on_fpga in zip(self.y[m], homes[:, k], strict=True) if on_fpga]
                    self.problem += self.pulp.lpSum(there) == f[t], f"home_{t}_{m}"

    def _fabric(self) -> None:
        """(7)"""
        fabric = self.tables.instance.fabric
        for name, column, most in (("multipliers", 2, fabric.multipliers), ("m20k", 3, fabric.m20k)):
            terms = [
                (y, int(need))
                for table, row in zip(self.tables.modules, self.y, strict=True)
                for need, y in zip(table.values[:, column], row, strict=True)
            ]
            self.problem += self.pulp.LpAffineExpression(terms) <= most, name

    def _limits(self, latency: Any, energy: Any) -> None:
        """(9)"""
        question = self.question
        if question.max_latency is not None:
            self.problem += latency <= question.max_latency - self.least[0], "max_latency"
        if question.max_energy is not None:
            self.problem += energy <= question.max_energy - self.least[1], "max_energy"

    def decode(self, value: Any) -> list[int]:
        """One configuration per module."""
        return [[value(y) for y in row].index(1) for row in self.y]


def answer(tables: Tables, question: Question, budget: Budget, hint: list[int] | None) -> Answer:
    """Put one question to HiGHS, which takes no hint.

    A bound from floating point is trusted to 10^-6 of its value only. Where that leaves whole units open, the engine is
    asked again for anything better; "infeasible" then closes the gap.
    """
    from mapgap.solvers.mip import solve

    model = Model(tables, question)
    outcome = solve(model.problem, budget)
    if outcome.status is Status.INFEASIBLE:
        return Answer(outcome.status, Stop.PROVED)
    choice: list[int] | None = None
    bound = outcome.bound
    while outcome.solved and outcome.objective is not None:
        choice, held = model.decode(outcome.value), outcome.objective
        if outcome.status is Status.OPTIMAL or outcome.stop is Stop.TIME:
            break
        model.problem += model.objective <= held - 1
        outcome = solve(model.problem, budget)
        if outcome.status is Status.INFEASIBLE:
            return Answer(Status.OPTIMAL, Stop.PROVED, choice, held + model.constant)
    proven = outcome.status is Status.OPTIMAL
    status = Status.OPTIMAL if proven else (Status.UNKNOWN if choice is None else Status.FEASIBLE)
    bound = outcome.objective if proven else bound
    return Answer(status, outcome.stop, choice, None if bound is None else bound + model.constant)


def run(instance: Instance, budget: Budget) -> SolveResult:
    """Minimise the instance's objective with HiGHS."""
    return search(instance, budget, answer)
