"""MIP of the FPGA-GPU partition over configurations of modules (``configurations.py``), solved by HiGHS.

Energy and latency need no variables here: they are sums over the choices directly. Only the sides f are shared between
modules; where they are fixed, this is a multiple-choice knapsack with two resources.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

import pulp

from mapgap.core import Budget, PlanBase, SolveResult, Status, Stop
from mapgap.formulations.fpga_gpu_partition.configurations import D, E, L, Tables, U
from mapgap.formulations.fpga_gpu_partition.questions import Question, minimise, parts
from mapgap.problems.fpga_gpu_partition import Instance, Plan
from mapgap.solvers.mip import MipModel
from mapgap.solvers.model import Part, Value, prove, row


class Model(MipModel):
    """One configuration per module, least ``a E + b L`` within limits.

    Sets
        M                modules
        C[m]             configurations of module m
        T                layers whose outputs cross a border between modules

    Data, all integers
        L[m,c], E[m,c]   latency in ticks and energy in units of a configuration; L0[m], E0[m] the least of a module
        D[m,c], U[m,c]   multipliers and M20K blocks of a configuration; D_max, U_max those of the fabric
        s[m,c,t]         1 if in configuration c of module m the output of layer t lies on the FPGA
        a, b             weights of energy and latency
        L_max, E_max     largest latency and energy, if given

    Variables
        y[m,c] in {0,1}  module m runs in configuration c
        f[t] in {0,1}    the output of layer t lies on the FPGA

    Program
        min  sum_m (a E0[m] + b L0[m]) + sum_m,c (a (E[m,c] - E0[m]) + b (L[m,c] - L0[m])) y[m,c]
        (1)  sum_c y[m,c] = 1                                          for all m
        (2)  sum_c s[m,c,t] y[m,c] = f[t]                              for all m, and all t in T that m makes or reads
        (3)  sum_m,c D[m,c] y[m,c] <= D_max
        (4)  sum_m,c U[m,c] y[m,c] <= U_max
        (5)  sum_m,c (L[m,c] - L0[m]) y[m,c] <= L_max - sum_m L0[m]    if given
        (6)  sum_m,c (E[m,c] - E0[m]) y[m,c] <= E_max - sum_m E0[m]    if given
    """

    def __init__(self, tables: Tables, question: Question, without: Collection[int] = ()) -> None:
        super().__init__("fpga_gpu_partition")
        self.tables, self.question = tables, question
        self.y = [[_binary(f"y_{m}_{c}") for c in range(len(table))] for m, table in enumerate(tables.modules)]
        self.f = {t: _binary(f"f_{t}") for t in tables.shared}
        self.latency, self.energy = self._above(L), self._above(E)
        self.constant = question.value(*tables.least)
        self.total = question.energy_weight * self.energy + question.latency_weight * self.latency
        self.program += self.total
        self.add_rows(without)

    def _above(self, column: int) -> Any:
        """Latency (column L) or energy (E) above the sum of the least values of the modules."""
        return self._sum([table.above[:, column] for table in self.tables.modules])

    def _sum(self, coefficients: list[Any]) -> Any:
        """Sum over all choices; ``coefficients`` per module."""
        terms = []
        for choices, values in zip(self.y, coefficients, strict=True):
            terms += [(y, int(v)) for y, v in zip(choices, values, strict=True)]
        return pulp.LpAffineExpression(terms)

    @row(1)
    def one_configuration(self) -> None:
        """Every module runs in one configuration."""
        for m, choices in enumerate(self.y):
            self.program += pulp.lpSum(choices) == 1, f"one_{m}"

    @row(2)
    def same_sides(self) -> None:
        """Modules agree on the side of every tensor between them."""
        for m, table in enumerate(self.tables.modules):
            for t, on_fpga in table.homes():
                there = [y for y, here in zip(self.y[m], on_fpga, strict=True) if here]
                self.program += pulp.lpSum(there) == self.f[t], f"home_{t}_{m}"

    @row(3)
    def multipliers(self) -> None:
        """All configurations share the multipliers of the fabric."""
        demand = self._sum([table.values[:, D] for table in self.tables.modules])
        self.program += demand <= self.tables.instance.fabric.multipliers, "multipliers"

    @row(4)
    def memory_blocks(self) -> None:
        """All configurations share the M20K blocks of the fabric."""
        demand = self._sum([table.values[:, U] for table in self.tables.modules])
        self.program += demand <= self.tables.instance.fabric.m20k, "m20k"

    @row(5)
    def latency_limit(self) -> None:
        """The network keeps the limit on latency."""
        if self.question.max_latency is not None:
            self.program += self.latency <= self.question.max_latency - self.tables.least[1], "max_latency"

    @row(6)
    def energy_limit(self) -> None:
        """The network keeps the limit on energy."""
        if self.question.max_energy is not None:
            self.program += self.energy <= self.question.max_energy - self.tables.least[0], "max_energy"

    def demand_less_than(self, value: int) -> None:
        """From now on only what is better than ``value`` is a solution."""
        self.program += self.total <= value - 1 - self.constant

    def assignment(self, plan: PlanBase) -> Mapping[Any, int] | None:
        taken = self.tables.choice(plan)
        if taken is None:
            return None
        return {y: int(c == taken[m]) for m, choices in enumerate(self.y) for c, y in enumerate(choices)}

    def plan(self, value: Value) -> Plan:
        return self.tables.plan([[value(y) for y in choices].index(1) for choices in self.y])


def _binary(name: str) -> Any:
    return pulp.LpVariable(name, cat="Binary")


def answer(tables: Tables, question: Question, budget: Budget, start: Plan | None) -> SolveResult:
    """Put one question to HiGHS, which takes no start.

    A bound from floating point is trusted to 10^-6 of its value only. Where that leaves whole units open, the engine is
    asked again for anything better; "infeasible" then closes the gap.
    """
    with budget.timed("build"):
        model = Model(tables, question)

    def value(plan: PlanBase) -> int | None:
        assert isinstance(plan, Plan)
        energy, latency = tables.worth(plan)
        late = question.max_latency is not None and latency > question.max_latency
        return None if late else question.value(energy, latency)

    result = prove(model, budget, value=value)
    while result.plan is not None and result.status is Status.FEASIBLE and result.stop is not Stop.TIME:
        held, best = result, question.value(*tables.worth(result.plan))
        model.demand_less_than(best)
        result = prove(model, budget, value=value)
        if result.status is Status.INFEASIBLE:
            return SolveResult(Status.OPTIMAL, Stop.PROVED, held.plan, best, best, notes=result.notes)
        if result.plan is None:
            return replace(held, stop=result.stop)
    return result


def models(instance: Instance) -> list[Part]:
    """The program of an instance with a linear objective.

    Raises
    ------
    InputError
        The objective is the product of energy and latency.
    """
    return parts(instance, Model)


def run(instance: Instance, budget: Budget, start: str | Plan | None = None) -> SolveResult:
    """Minimise the instance's objective with HiGHS."""
    return minimise(instance, budget, answer, start)
