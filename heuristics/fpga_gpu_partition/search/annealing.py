"""A short annealing of the options of all layers: the search of the quick planner, and of the portfolio.

Moves and acceptance are in ``annealing_kernels.py``; only the modules that a move touches are timed anew. Limits may be
exceeded at a price per unit, which rises while the plan is outside and falls while it is inside: so the walk swings
around the border of the fabric, where good plans lie. The best plan inside is kept. The work is a number of layers
timed, no time: the same seed gives the same plan.
"""

from __future__ import annotations

import numpy as np

from mapgap.core import Budget
from mapgap.heuristics.fpga_gpu_partition.params import Annealing as Params
from mapgap.heuristics.fpga_gpu_partition.search.annealing_kernels import (
    Cooling,
    Goal,
    Walk,
    anneal,
    begin,
    keep,
    value_of,
)
from mapgap.heuristics.fpga_gpu_partition.search.timing_kernels import State, module_cost
from mapgap.kernels import Integers
from mapgap.problems.fpga_gpu_partition.instance import Instance, Plan
from mapgap.problems.fpga_gpu_partition.lowered.tables import M20K, MULTIPLIERS, plan_of, tables_of

NO_LIMIT = 2**40


def goal_of(instance: Instance) -> Goal:
    """Objective and limits."""
    weights = {"energy": (1, 0), "latency": (0, 1)}
    energy, latency = weights.get(instance.objective, (instance.energy_weight, instance.latency_weight))
    limits = (instance.latency_limit, instance.energy_limit, instance.fabric.multipliers, instance.fabric.m20k)
    room = np.array([NO_LIMIT if limit is None else limit for limit in limits], np.int64)
    return Goal(instance.objective == "edp", energy, latency, room)


class Annealing:
    """A walk through the plans of an instance, from the first option of every layer."""

    def __init__(self, instance: Instance, params: Params = Params()) -> None:
        self.params, self.instance = params, instance
        self.goal, self.tables = goal_of(instance), tables_of(instance)
        layers, modules = len(instance.layers), len(instance.modules)
        self.state = State(_zeros(layers), _zeros(layers), _zeros(len(self.tables.bytes), 2), _zeros(4))
        self.walk = Walk(
            costs=_zeros(modules, 2),
            totals=_zeros(4),
            prices=np.zeros(4),
            layers=_zeros(layers),
            before=_zeros(layers),
            marked=_zeros(modules),
            spare=_zeros(modules, 2),
            best=_zeros(layers),
            value=np.full(1, np.inf),
            clock=_zeros(2),
            heat=np.zeros(1),
        )
        self.state.chosen[:] = self.tables.first[:-1]
        for m in range(modules):
            self.walk.costs[m] = module_cost(self.tables, self.state, m)
        self.walk.totals[:2] = self.walk.costs.sum(axis=0)
        self.walk.totals[2:] = self.tables.options[self.state.chosen][:, [MULTIPLIERS, M20K]].sum(axis=0)
        keep(self.goal, self.state, self.walk)

    def run(self, seed: int, effort: int = 1, budget: Budget | None = None) -> None:
        """Anneal once, with so many times the work of the quick planner, or until a budget ends."""
        value = value_of(self.goal, self.walk.totals)
        self.walk.prices[:] = value / np.maximum(self.goal.room, 1)
        share = max(value, 1.0) / len(self.instance.modules)
        p = self.params
        piece = min(p.work, p.per_option * len(self.tables.options))  # between two looks at the clock
        cooling = Cooling(p.hot * share, p.cold * share, p.patience, p.swing)
        begin(self.walk, cooling, seed)
        while (done := self.walk.clock[0]) < effort * piece and not (budget is not None and budget.exhausted):
            anneal(self.tables, self.goal, self.state, self.walk, cooling, effort * piece, done + piece)

    @property
    def value(self) -> float:
        """What the best plan is worth; infinite if there is none."""
        return float(self.walk.value[0])

    @property
    def plan(self) -> Plan | None:
        """The best plan within the limits that the walk has seen."""
        if self.value == np.inf:
            return None
        return plan_of(self.instance, self.walk.best)


def _zeros(*shape: int) -> Integers:
    found: Integers = np.zeros(shape, np.int64)
    return found
