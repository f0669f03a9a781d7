"""Knapsack greedy on estimates that add up: about as much work as the published rule, but with a look at the gain.

1.  Start with every layer whole on the GPU. Ticks and energy are weighed by the instance's objective, standby power
    included; energy times latency is linearised at the start.
2.  The *saving* of a layer on the FPGA is its weighed cost on the GPU less that on the FPGA, alone.
3.  Take options by falling saving per share of the fabric (the share to the power ``flat``, as large layers else come
    too late) while they fit, one per layer (Dantzig 1957).
4.  Twice more (``passes``) from the start, with half of the transfers (``damped``) that the plan before would need
    subtracted.

No plan is timed. Where nothing but the fabric is limited, the result keeps the limits by construction.
"""

from __future__ import annotations

from collections.abc import Sequence

from mapgap.core import Budget, SolveResult, Status, Stop
from mapgap.heuristics.fpga_gpu_partition.construction import free_fabric, on_gpu, plan_of, result, taken
from mapgap.heuristics.fpga_gpu_partition.params import Additive as Params
from mapgap.problems.fpga_gpu_partition import Instance, Option

Move = tuple[float, float, int, Option]
"""Saving, 1 / share of the fabric, layer, option."""


def weights(instance: Instance, start: Sequence[Option]) -> tuple[float, float]:
    """What a unit of energy and a tick cost (step 1)."""
    standby = instance.standby_mw * instance.tick_ns / (1000 * instance.energy_unit_nj)
    if instance.objective == "edp":
        ticks = sum(option.gpu_ticks + option.fpga_ticks for option in start)
        return ticks, sum(option.gpu_energy + option.fpga_energy for option in start) + 2 * standby * ticks
    energy, latency = {"energy": (1, 0), "latency": (0, 1)}.get(
        instance.objective, (instance.energy_weight, instance.latency_weight)
    )
    return energy, latency + energy * standby


def moves_of(instance: Instance, start: Sequence[Option], energy: float, tick: float, flat: float) -> list[Move]:
    """Every option on the FPGA with its saving (step 2)."""
    whole, blocks = max(1, instance.fabric.multipliers), max(1, instance.fabric.m20k)
    found = []
    for index, (layer, old) in enumerate(zip(instance.layers, start, strict=True)):
        before = energy * (old.gpu_energy + old.fpga_energy) + tick * (old.gpu_ticks + old.fpga_ticks)
        for new in layer.options:
            if new.kind == "fpga":
                share = (new.multipliers - old.multipliers) / whole + (new.m20k - old.m20k) / blocks
                saving = before - energy * new.fpga_energy - tick * new.fpga_ticks
                found.append((saving, max(share, 1e-6) ** -flat, index, new))
    return found


def packed(
    start: Sequence[Option], room: tuple[int, int], moves: Sequence[Move], extra: Sequence[float]
) -> list[Option]:
    """Options by falling rate while they fit (step 3); ``extra`` is what transfers cost a layer that moves."""
    rated = [((saving - extra[i]) * inverse, i, new) for saving, inverse, i, new in moves if saving > extra[i]]
    rated.sort(key=lambda each: -each[0])
    chosen, (multipliers, m20k) = list(start), room
    for _, index, new in rated:
        old = chosen[index]
        if old is start[index]:
            left = multipliers + old.multipliers - new.multipliers, m20k + old.m20k - new.m20k
            if min(left) >= 0:
                chosen[index], (multipliers, m20k) = new, left
    return chosen


def transfers(instance: Instance, energy: float, tick: float, options: Sequence[Option]) -> list[float]:
    """What moving a layer to the FPGA adds in transfers, with the others where they are; less than 0 if it saves."""

    def price(size: int) -> float:
        return energy * instance.transfer_energy(size) + tick * instance.transfer_ticks(size)

    prices = [price(sum(layer.outputs)) for layer in instance.layers]
    prices.append(price(instance.input_bytes))  # of source -1
    there = [option.home == "fpga" for option in options] + [False]
    readers: list[list[bool]] = [[] for _ in prices]
    extra = []
    for index, layer in enumerate(instance.layers):
        for read in layer.reads:
            readers[read.source].append(there[index])
        extra.append(sum(-prices[r.source] if there[r.source] else prices[r.source] for r in layer.reads))
    for index in range(len(extra)):
        after = readers[index] or [False]
        extra[index] += prices[index] * ((not all(after)) - any(after))
    return extra


def run(instance: Instance, budget: Budget, params: Params = Params()) -> SolveResult:
    """The options after the last pass."""
    chosen = start = on_gpu(instance)
    room = free_fabric(instance, start)
    energy, tick = weights(instance, start)
    moves, extra = moves_of(instance, start, energy, tick, params.flat), [0.0] * len(start)
    for k in range(params.passes):
        chosen = packed(start, room, moves, extra)
        if k + 1 < params.passes:
            extra = [params.damped * each for each in transfers(instance, energy, tick, chosen)]
    fits = min(taken((instance.fabric.multipliers, instance.fabric.m20k), chosen)) >= 0
    if not fits or instance.latency_limit is not None or instance.energy_limit is not None:
        return result(instance, budget, chosen)
    plan = plan_of(chosen)
    budget.report(plan=plan)
    return SolveResult(Status.FEASIBLE, Stop.DONE, plan)
