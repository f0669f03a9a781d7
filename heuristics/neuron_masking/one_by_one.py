"""Neuron by neuron: mask where a neuron costs most, or where it contributes least for its cost.

Both start from the whole model, mask one neuron at a time until Eq. (5) holds, and then add single neurons back while
any fits. The cost of a neuron is what the broken (when adding: all) limits of Eq. (5) would gain, each relative to its
limit, with the neurons kept at that moment: masking a layer makes its neighbours cheaper.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf

from mapgap.core import Budget, SolveResult
from mapgap.heuristics.neuron_masking import uniform
from mapgap.heuristics.neuron_masking.straggler import Straggler, solve_fleet
from mapgap.problems.neuron_masking import SHARE, Instance, Mask, costs

Score = Callable[[float, float], float]
"""Of the value and the relative cost of a neuron; the neuron of the lowest score is masked first, added last."""


class State:
    """A mask that changes by single neurons, with W and M of Eqs. (1), (2) kept up to date."""

    def __init__(self, straggler: Straggler, kept: list[int]) -> None:
        self.straggler, self.kept = straggler, kept
        self.layers = straggler.instance.layers
        self.hard = straggler.instance.memory_mode == "hard"
        cost = costs(straggler.instance, straggler.device, kept)
        self.work, self.memory = cost.work, cost.memory
        self.values = [sorted(row, reverse=True) for row in straggler.device.contributions]

    def step(self, i: int) -> tuple[int, int]:
        """Work and memory units of one neuron of layer i beside its present neighbours."""
        layer = self.layers[i]
        before = self.kept[i - 1] if i else self.straggler.instance.inputs
        work, memory = layer.work * before, layer.weights * before + layer.features
        if i + 1 < len(self.layers):
            after = self.layers[i + 1]
            work += after.work * self.kept[i + 1]
            memory += after.weights * self.kept[i + 1]
        return work, memory

    def usage(self, work: int, memory: int) -> list[tuple[int, int]]:
        """Pairs (used, limit) of Eq. (5) for W and M; Eq. (4)'s time."""
        device, cycle = self.straggler.device, self.straggler.cycle
        spilled = 0 if self.hard else max(0, memory - device.memory_limit)
        time = work + device.overhead
        time += -(-device.transfer.ticks * memory // device.transfer.per)
        time += -(-device.spill.ticks * spilled // device.spill.per)
        rows = [(time, device.time_limit[cycle]), (work, device.work_limit[cycle])]
        return [*rows, (memory, device.memory_limit)] if self.hard else rows

    def fits(self, work: int, memory: int) -> bool:
        return all(used <= limit for used, limit in self.usage(work, memory))

    def has_room(self, i: int) -> bool:
        """Whether one more neuron of layer i fits."""
        work, memory = self.step(i)
        return self.fits(self.work + work, self.memory + memory)

    def price(self, i: int, sign: int) -> float:
        """Relative cost of a neuron: of the broken limits when masking (sign -1), of all when adding (sign 1)."""
        work, memory = self.step(i)
        now = self.usage(self.work, self.memory)
        then = self.usage(self.work + sign * work, self.memory + sign * memory)
        return sum(
            abs(after - used) / max(1, limit)
            for (used, limit), (after, _) in zip(now, then, strict=True)
            if sign > 0 or used > limit
        )

    def value(self, i: int, rank: int) -> float:
        """What the ``rank``-th neuron of a layer (from 0, by contribution) adds to the objective."""
        objective = self.straggler.instance.objective
        if objective == "neurons":
            return 1.0
        if objective == "smallest_share":  # the layer of the smallest share first
            return SHARE * (1.0 - rank / self.layers[i].neurons)
        return float(self.values[i][rank])

    def change(self, i: int, sign: int) -> None:
        work, memory = self.step(i)
        self.work += sign * work
        self.memory += sign * memory
        self.kept[i] += sign


def _ratio(value: float, price: float) -> float:
    return value / price if price > 0 else inf


def solve_one(straggler: Straggler, budget: Budget, score: Score) -> Mask | None:
    """Mask until Eq. (5) holds, then fill up."""
    if not straggler.fits(straggler.least):
        return None
    state = State(straggler, straggler.neurons)
    while not state.fits(state.work, state.memory):
        if budget.exhausted:
            return Mask(kept=tuple(straggler.least))
        options = [i for i, layer in enumerate(state.layers) if state.kept[i] > layer.least]
        state.change(min(options, key=lambda i: score(state.value(i, state.kept[i] - 1), state.price(i, -1))), -1)
    while not budget.exhausted:
        options = [i for i, layer in enumerate(state.layers) if state.kept[i] < layer.neurons and state.has_room(i)]
        if not options:
            break
        state.change(max(options, key=lambda i: score(state.value(i, state.kept[i]), state.price(i, 1))), 1)
    return Mask(kept=tuple(state.kept))


def largest_cost_first(instance: Instance, budget: Budget) -> SolveResult:
    """Mask the most expensive neuron first, whatever it contributes."""
    return solve_fleet(instance, budget, lambda straggler: solve_one(straggler, budget, lambda _, price: -price))


def contribution_per_cost(instance: Instance, budget: Budget) -> SolveResult:
    """Mask the neuron of least objective per cost first."""
    return solve_fleet(instance, budget, lambda straggler: solve_one(straggler, budget, _ratio))


def by_objective(instance: Instance, budget: Budget) -> SolveResult:
    """The largest common share where the smallest share counts (it is optimal there), else contribution per cost."""
    rule = uniform.run if instance.objective == "smallest_share" else contribution_per_cost
    return rule(instance, budget)
