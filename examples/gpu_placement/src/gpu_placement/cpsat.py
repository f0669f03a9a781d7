"""CP-SAT model: one Boolean per GPU and model."""

from collections.abc import Collection, Mapping
from typing import Any

from gpu_placement.instance import SCALE, Instance, Plan
from mapgap.core import Budget, SolveResult
from mapgap.solvers.cpsat import CpSatModel
from mapgap.solvers.model import Part, Value, prove, row


class Model(CpSatModel):
    """The assignment model.

    Sets and data: GPUs i, models j; ``M`` GB of a GPU, ``s[j]`` GB and ``d[j]`` demand of a model, ``Z`` the limit.
    Variables: ``x[i, j]`` in {0, 1}, model j is on GPU i; ``z`` in [0, Z] the largest pressure; ``v[i, j] >= 0``, which
    stands for ``z x[i, j]``.

    Minimise z subject to

    (1)  sum_i x[i, j] = 1                                        for every model j
    (2)  x[i, a] + x[i, b] <= 1                                   for every pair (a, b) apart and GPU i
    (3)  x[i, a] = x[i, b]                                        for every pair (a, b) together and GPU i
    (4)  v[i, j] >= z - Z (1 - x[i, j])                           for every GPU i and model j
    (5)  100 sum_j d[j] x[i, j] + sum_j s[j] v[i, j] <= M z       for every GPU i
    (6)  sum_j s[j] x[i, j] <= M - 1                              for every GPU i (implied: demands are at least 1)
    """

    def __init__(self, instance: Instance, without: Collection[int] = ()) -> None:
        super().__init__()
        self.instance = instance
        self.gpus, self.models = range(len(instance.gpus)), range(len(instance.models))
        pairs = [(i, j) for i in self.gpus for j in self.models]
        self.x = {(i, j): self.program.new_bool_var(f"x[{i},{j}]") for i, j in pairs}
        self.v = {(i, j): self.program.new_int_var(0, instance.limit, f"v[{i},{j}]") for i, j in pairs}
        self.pressure = self.program.new_int_var(0, instance.limit, "z")
        self.add_rows(without)
        self.program.minimize(self.pressure)

    @row(1)
    def one_gpu_per_model(self) -> None:
        """Every model is on one GPU."""
        for j in self.models:
            self.program.add(sum(self.x[i, j] for i in self.gpus) == 1)

    @row(2)
    def pairs_apart(self) -> None:
        """Two models that must be apart share no GPU."""
        for a, b in self.instance.apart:
            for i in self.gpus:
                self.program.add(self.x[i, a] + self.x[i, b] <= 1)

    @row(3)
    def pairs_together(self) -> None:
        """Two models that must be together share theirs."""
        for a, b in self.instance.together:
            for i in self.gpus:
                self.program.add(self.x[i, a] == self.x[i, b])

    @row(4)
    def products(self) -> None:
        """v is z where x is 1."""
        for i, j in self.x:
            limit = self.instance.limit
            self.program.add(self.v[i, j] >= self.pressure - limit * (1 - self.x[i, j]))

    @row(5)
    def pressures(self) -> None:
        """No GPU has a larger pressure than z."""
        for i in self.gpus:
            demand = SCALE * sum(self.instance.demands[j] * self.x[i, j] for j in self.models)
            taken = sum(self.instance.sizes[j] * self.v[i, j] for j in self.models)
            self.program.add(demand + taken <= self.instance.memory * self.pressure)

    @row(6, implied=True)
    def memory_is_left(self) -> None:
        """Every GPU keeps 1 GB free."""
        for i in self.gpus:
            weights = sum(self.instance.sizes[j] * self.x[i, j] for j in self.models)
            self.program.add(weights <= self.instance.memory - 1)

    def assignment(self, plan: Plan) -> Mapping[Any, int]:
        """x of a plan."""
        return {x: int(plan.gpus[j] == i) for (i, j), x in self.x.items()}

    def plan(self, value: Value) -> Plan:
        """The GPU with x = 1 of every model."""
        return Plan(gpus=tuple(next(i for i in self.gpus if value(self.x[i, j])) for j in self.models))


def models(instance: Instance) -> list[Part]:
    """One program holds all plans; nothing is left out of it, ``complete`` or not."""
    return [Part("", lambda complete=False, without=(): Model(instance, without))]


def run(instance: Instance, budget: Budget) -> SolveResult:
    """Solve the model."""
    return prove(Model(instance), budget)
