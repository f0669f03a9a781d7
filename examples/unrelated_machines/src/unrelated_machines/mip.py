"""MIP model for HiGHS: the same program on another engine, so that two independent proofs can agree."""

from collections.abc import Collection, Mapping
from typing import Any

import pulp

from mapgap.core import Budget, SolveResult
from mapgap.solvers.mip import MipModel
from mapgap.solvers.model import Part, Value, prove, row
from unrelated_machines.instance import Instance, Plan


class Model(MipModel):
    """The assignment model.

    Sets and data: machines i, jobs j; ``p[i, j]`` ticks, 0 where machine i cannot do job j.
    Variables: ``x[i, j]`` in {0, 1}, job j is done by machine i; ``C >= 0`` the makespan in ticks.

    Minimise C subject to

    (1)  sum_i x[i, j] = 1                for every job j
    (2)  x[i, j] = 0                      where machine i cannot do job j
    (3)  sum_j p[i, j] x[i, j] <= C       for every machine i
    (4)  sum_i p[i, j] x[i, j] <= C       for every job j (implied; tightens the relaxation)
    """

    def __init__(self, instance: Instance, without: Collection[int] = ()) -> None:
        super().__init__("unrelated_machines")
        self.machines, self.jobs = range(len(instance.machines)), range(len(instance.jobs))
        self.times = instance.times
        self.x = {(i, j): pulp.LpVariable(f"x_{i}_{j}", cat=pulp.LpBinary) for i in self.machines for j in self.jobs}
        self.makespan = pulp.LpVariable("C", lowBound=0, cat=pulp.LpInteger)
        self.program += self.makespan
        self.add_rows(without)

    def time(self, i: int, j: int) -> int:
        """p[i, j]."""
        return self.times[i][j] or 0

    @row(1)
    def one_machine_per_job(self) -> None:
        """Every job is done by one machine."""
        for j in self.jobs:
            self.program += pulp.lpSum(self.x[i, j] for i in self.machines) == 1, f"one_machine_{j}"

    @row(2)
    def able_machines_only(self) -> None:
        """No machine does a job that it cannot do."""
        for i in self.machines:
            for j in self.jobs:
                if self.times[i][j] is None:
                    self.program += self.x[i, j] == 0, f"able_{i}_{j}"

    @row(3)
    def machines_are_done(self) -> None:
        """Every machine is done by the makespan."""
        for i in self.machines:
            load = pulp.lpSum(self.time(i, j) * self.x[i, j] for j in self.jobs)
            self.program += load <= self.makespan, f"machine_{i}"

    @row(4, implied=True)
    def jobs_are_done(self) -> None:
        """No job takes longer than the makespan."""
        for j in self.jobs:
            length = pulp.lpSum(self.time(i, j) * self.x[i, j] for i in self.machines)
            self.program += length <= self.makespan, f"job_{j}"

    def assignment(self, plan: Plan) -> Mapping[Any, int]:
        """x of a plan."""
        return {x: int(plan.machines[j] == i) for (i, j), x in self.x.items()}

    def plan(self, value: Value) -> Plan:
        """The machine with x = 1 of every job."""
        return Plan(machines=tuple(next(i for i in self.machines if value(self.x[i, j])) for j in self.jobs))


def models(instance: Instance) -> list[Part]:
    """One program holds all plans; nothing is left out of it, ``complete`` or not."""
    return [Part("", lambda complete=False, without=(): Model(instance, without))]


def run(instance: Instance, budget: Budget) -> SolveResult:
    """Solve the model."""
    return prove(Model(instance), budget)
