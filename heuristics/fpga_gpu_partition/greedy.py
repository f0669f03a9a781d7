"""Greedy by gain per resource: the classical rule of thumb for a knapsack, on the instance's own objective.

A *move* gives one layer another option, or a run of consecutive layers of one module their FPGA options of one fold (so
that a fused run, whose inner tensors never cross the link, is one step).

1.  Start with everything on the GPU.
2.  Rate every move: decrease of the objective per share of the fabric that it takes (multipliers and M20K as fractions
    of the fabric, added); moves that do not fit or do not gain have no rate.
3.  Take the move with the highest rate; ties by order. Repeat from 2 until no move has a rate.

The gains of moves that a step cannot have changed much are kept from the round before and measured again before they
are taken (lazy evaluation, Minoux 1978), with the moves of the same module and of its neighbours measured anew.

Where the result breaks a limit on latency or energy, the limited quantity is decreased first, then the objective
while the limit holds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from mapgap.core import Budget, SolveResult
from mapgap.heuristics.fpga_gpu_partition.construction import evaluated, free_fabric, on_gpu, result
from mapgap.problems.fpga_gpu_partition import Instance, Option

Goal = Literal["objective", "latency", "energy"]


@dataclass(frozen=True)
class Move:
    """New options of the layers ``first``, ``first + 1``, … of one module."""

    module: int
    first: int
    options: tuple[Option, ...]


def moves_of(instance: Instance) -> list[Move]:
    """Every single option, and every run of at least two layers of a module on the FPGA with one fold."""
    found = []
    first = 0
    for number, module in enumerate(instance.modules):
        last = first + len(module.layers)
        for index in range(first, last):
            found += [Move(number, index, (option,)) for option in instance.layers[index].options]
        folds = sorted({o.fold for layer in module.layers for o in layer.options if o.kind == "fpga" and o.fold})
        for start in range(first, last):
            for end in range(start + 2, last + 1):
                for fold in folds:
                    run = [_on_fpga(instance, index, fold) for index in range(start, end)]
                    options = tuple(option for option in run if option is not None)
                    if len(options) == len(run):
                        found.append(Move(number, start, options))
        first = last
    return found


def _on_fpga(instance: Instance, index: int, fold: int) -> Option | None:
    """The layer's option on the FPGA with this fold; a join has only one."""
    held = [o for o in instance.layers[index].options if o.kind == "fpga"]
    return next((o for o in held if o.fold == fold), held[0] if len(held) == 1 and held[0].fold is None else None)


class Greedy:
    """The plan so far and what is known of every move."""

    def __init__(self, instance: Instance, goal: Goal, options: list[Option]) -> None:
        self.instance, self.goal, self.options = instance, goal, options
        self.value = self.worth(options)
        self.evaluations = 0

    def worth(self, options: list[Option]) -> int | None:
        """The goal's value; ``None`` for a plan that breaks a limit which the goal must keep."""
        found = evaluated(self.instance, options)
        if self.goal == "objective":
            return found.objective if found.feasible else None
        value: int = found.terms[self.goal]
        return value

    def after(self, move: Move) -> list[Option]:
        end = move.first + len(move.options)
        return [*self.options[: move.first], *move.options, *self.options[end:]]

    def rate(self, move: Move) -> float | None:
        """Gain per share of the fabric; ``None`` for a move that does not fit or gain."""
        options = self.after(move)
        free = free_fabric(self.instance, options)
        if options == self.options or min(free) < 0 or self.value is None:
            return None
        self.evaluations += 1
        value = self.worth(options)
        if value is None or value >= self.value:
            return None
        before = free_fabric(self.instance, self.options)
        whole = (self.instance.fabric.multipliers, self.instance.fabric.m20k)
        taken = sum((b - f) / max(1, w) for b, f, w in zip(before, free, whole, strict=True))
        return (self.value - value) / max(taken, 1e-9)

    def climb(self, budget: Budget) -> None:
        """Take the best move until none gains."""
        moves = moves_of(self.instance)
        rates: dict[int, float | None] = {}
        for index, move in enumerate(moves):  # step 2
            if budget.exhausted:
                break
            rates[index] = self.rate(move)
        while not budget.exhausted:
            best = self._best(moves, rates)
            if best is None:
                return
            move = moves[best]  # step 3
            self.options = self.after(move)
            self.value = self.worth(self.options)
            for index, other in enumerate(moves):
                if abs(other.module - move.module) <= 1:
                    rates[index] = self.rate(other)

    def _best(self, moves: list[Move], rates: dict[int, float | None]) -> int | None:
        """Index of the best move; old rates are measured again until the best of them stands."""
        fresh: set[int] = set()
        while True:
            known = [index for index, rate in rates.items() if rate is not None]
            if not known:
                return None
            best = max(known, key=lambda index: (rates[index] or 0.0, -index))
            if best in fresh:
                return best
            rates[best] = self.rate(moves[best])
            fresh.add(best)


def run(instance: Instance, budget: Budget) -> SolveResult:
    """Greedy on the instance's objective, after a phase on every limit that the start breaks."""
    options = on_gpu(instance)  # step 1
    evaluations = 0
    broken = {v.rule for v in evaluated(instance, options).violations}
    goals: list[Goal] = []
    if "latency limit" in broken:
        goals.append("latency")
    if "energy limit" in broken:
        goals.append("energy")
    goals.append("objective")
    for goal in goals:
        search = Greedy(instance, goal, options)
        search.climb(budget)
        options = search.options
        evaluations += search.evaluations
    return result(instance, budget, options, evaluations=evaluations)
