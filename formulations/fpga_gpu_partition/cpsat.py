"""CP-SAT model of the FPGA-GPU partition over configurations of modules (``configurations.py``).

Modules run one after the other, so a plan is one configuration per module that agree on the sides of the tensors
between them and share the fabric; the sums of ``problems/fpga_gpu_partition`` (rows (1) to (3) there) become rows.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from ortools.sat.python.cp_model import LinearExpr

from mapgap.core import Budget, PlanBase, SolveResult
from mapgap.formulations.fpga_gpu_partition.configurations import D, E, L, Tables, U
from mapgap.formulations.fpga_gpu_partition.questions import Question, minimise, parts
from mapgap.problems.fpga_gpu_partition import Instance, Plan
from mapgap.solvers.cpsat import CpSatModel
from mapgap.solvers.model import Part, Value, prove, row


class Model(CpSatModel):
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
        l[m] >= 0        latency of module m above L0[m], ticks
        e[m] >= 0        energy of module m above E0[m], units

    Program
        min  a * sum_m (E0[m] + e[m]) + b * sum_m (L0[m] + l[m])
        (1)  sum_c y[m,c] = 1                            for all m
        (2)  sum_c s[m,c,t] y[m,c] = f[t]                for all m, and all t in T that m makes or reads
        (3)  sum_m,c D[m,c] y[m,c] <= D_max
        (4)  sum_m,c U[m,c] y[m,c] <= U_max
        (5)  sum_c (L[m,c] - L0[m]) y[m,c] = l[m]        for all m
        (6)  sum_c (E[m,c] - E0[m]) y[m,c] = e[m]        for all m
        (7)  sum_m l[m] <= L_max - sum_m L0[m]           if given
        (8)  sum_m e[m] <= E_max - sum_m E0[m]           if given

    Latency and energy are sums per module first, (5) and (6), so that no row grows with the number of configurations of
    the whole network.
    """

    def __init__(self, tables: Tables, question: Question, without: Collection[int] = ()) -> None:
        super().__init__()
        self.tables, self.question = tables, question
        new_bool = self.program.new_bool_var
        self.y = [[new_bool(f"y[{m},{c}]") for c in range(len(table))] for m, table in enumerate(tables.modules)]
        self.f = {t: new_bool(f"f[{t}]") for t in tables.shared}
        self.l = self._above("l", L)
        self.e = self._above("e", E)
        a, b = question.energy_weight, question.latency_weight
        self.constant = question.value(*tables.least)
        weights = [a] * len(self.e) + [b] * len(self.l)
        self.program.minimize(LinearExpr.weighted_sum(self.e + self.l, weights))
        self.add_rows(without)

    def _above(self, name: str, column: int) -> list[Any]:
        """A variable per module for what it takes above its least latency (column L) or energy (E)."""
        return [
            self.program.new_int_var(0, int(table.above[:, column].max(initial=0)), f"{name}[{m}]")
            for m, table in enumerate(self.tables.modules)
        ]

    @row(1)
    def one_configuration(self) -> None:
        """Every module runs in one configuration."""
        for choices in self.y:
            self.program.add_exactly_one(choices)

    @row(2)
    def same_sides(self) -> None:
        """Modules agree on the side of every tensor between them."""
        for m, table in enumerate(self.tables.modules):
            for t, on_fpga in table.homes():
                there = LinearExpr.weighted_sum(self.y[m], on_fpga.tolist())
                self.program.add(there == self.f[t]).with_name(f"home[{t},{m}]")

    @row(3)
    def multipliers(self) -> None:
        """All configurations share the multipliers of the fabric."""
        self._fabric("multipliers", D, self.tables.instance.fabric.multipliers)

    @row(4)
    def memory_blocks(self) -> None:
        """All configurations share the M20K blocks of the fabric."""
        self._fabric("m20k", U, self.tables.instance.fabric.m20k)

    def _fabric(self, name: str, column: int, most: int) -> None:
        needs = [int(need) for table in self.tables.modules for need in table.values[:, column]]
        demand = LinearExpr.weighted_sum([y for choices in self.y for y in choices], needs)
        self.program.add(demand <= most).with_name(name)

    @row(5)
    def latency_of_a_module(self) -> None:
        """A module takes the latency of its configuration."""
        self._sums("l", L, self.l)

    @row(6)
    def energy_of_a_module(self) -> None:
        """A module takes the energy of its configuration."""
        self._sums("e", E, self.e)

    def _sums(self, name: str, column: int, sums: list[Any]) -> None:
        for m, (table, choices, total) in enumerate(zip(self.tables.modules, self.y, sums, strict=True)):
            above = LinearExpr.weighted_sum(choices, table.above[:, column].tolist())
            self.program.add(above == total).with_name(f"{name}[{m}]")

    @row(7)
    def latency_limit(self) -> None:
        """The network keeps the limit on latency."""
        if self.question.max_latency is not None:
            room = self.question.max_latency - self.tables.least[1]
            self.program.add(LinearExpr.sum(self.l) <= room).with_name("max latency")

    @row(8)
    def energy_limit(self) -> None:
        """The network keeps the limit on energy."""
        if self.question.max_energy is not None:
            room = self.question.max_energy - self.tables.least[0]
            self.program.add(LinearExpr.sum(self.e) <= room).with_name("max energy")

    def assignment(self, plan: PlanBase) -> Mapping[Any, int] | None:
        taken = self.tables.choice(plan)
        if taken is None:
            return None
        return {y: int(c == taken[m]) for m, choices in enumerate(self.y) for c, y in enumerate(choices)}

    def plan(self, value: Value) -> Plan:
        return self.tables.plan([[value(y) for y in choices].index(1) for choices in self.y])


def answer(tables: Tables, question: Question, budget: Budget, start: Plan | None) -> SolveResult:
    """Put one question to CP-SAT."""
    with budget.timed("build"):
        model = Model(tables, question)
    return prove(model, budget, start=start)


def models(instance: Instance) -> list[Part]:
    """The program of an instance with a linear objective.

    Raises
    ------
    InputError
        The objective is the product of energy and latency.
    """
    return parts(instance, Model)


def run(instance: Instance, budget: Budget, start: str | Plan | None = None) -> SolveResult:
    """Minimise the instance's objective with CP-SAT."""
    return minimise(instance, budget, answer, start)
