"""CP-SAT model: one Boolean per machine and job."""

from collections.abc import Collection, Mapping
from typing import Any

from mapgap.core import Budget, SolveResult
from mapgap.solvers.cpsat import CpSatModel
from mapgap.solvers.model import Part, Value, prove, row
from unrelated_machines.instance import Instance, Plan


class Model(CpSatModel):
    """The assignment model.

    Sets and data: machines i, jobs j; ``p[i, j]`` ticks, 0 where machine i cannot do job j.
    Variables: ``x[i, j]`` in {0, 1}, job j is done by machine i; ``C`` the makespan in ticks.

    Minimise C subject to

    (1)  sum_i x[i, j] = 1                for every job j
    (2)  x[i, j] = 0                      where machine i cannot do job j
    (3)  sum_j p[i, j] x[i, j] <= C       for every machine i
    (4)  sum_i p[i, j] x[i, j] <= C       for every job j (implied; tightens the relaxation)
    """

    def __init__(self, instance: Instance, without: Collection[int] = ()) -> None:
        super().__init__()
        self.machines, self.jobs = range(len(instance.machines)), range(len(instance.jobs))
        self.times = instance.times
        self.x = {(i, j): self.program.new_bool_var(f"x[{i},{j}]") for i in self.machines for j in self.jobs}
        most = sum(time for row in self.times for time in row if time is not None)
        self.makespan = self.program.new_int_var(0, most, "C")
        self.add_rows(without)
        self.program.minimize(self.makespan)

    def time(self, i: int, j: int) -> int:
        """p[i, j]."""
        return self.times[i][j] or 0

    @row(1)
    def one_machine_per_job(self) -> None:
        """Every job is done by one machine."""
        for j in self.jobs:
            self.program.add(sum(self.x[i, j] for i in self.machines) == 1)

    @row(2)
    def able_machines_only(self) -> None:
        """No machine does a job that it cannot do."""
        for i in self.machines:
            for j in self.jobs:
                if self.times[i][j] is None:
                    self.program.add(self.x[i, j] == 0)

    @row(3)
    def machines_are_done(self) -> None:
        """Every machine is done by the makespan."""
        for i in self.machines:
            self.program.add(sum(self.time(i, j) * self.x[i, j] for j in self.jobs) <= self.makespan)

    @row(4, implied=True)
    def jobs_are_done(self) -> None:
        """No job takes longer than the makespan."""
        for j in self.jobs:
            self.program.add(sum(self.time(i, j) * self.x[i, j] for i in self.machines) <= self.makespan)

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
