"""Simulated annealing of the options of all layers, compiled; what leaves the limits costs, at prices that adapt."""

from __future__ import annotations

from typing import Annotated, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mapgap.heuristics.fpga_gpu_partition.search.timing_kernels import State, module_cost
from mapgap.kernels import Flag, Integer, Integers, Integers2, kernel
from mapgap.problems.fpga_gpu_partition.lowered.tables import FOLD, M20K, MULTIPLIERS, ON_GPU, Tables

Real = Annotated[float, "f8"]
Reals = Annotated[NDArray[np.float64], "f8[::1]"]


class Goal(NamedTuple):
    """The objective, and the limits on latency, energy, multipliers and M20K blocks.

    Attributes
    ----------
    product : bool
        Energy times latency; else ``energy_weight * E + latency_weight * L``.
    energy_weight, latency_weight : int
    room : (4,)
    """

    product: Flag
    energy_weight: Integer
    latency_weight: Integer
    room: Integers


class Walk(NamedTuple):
    """A plan under change.

    Attributes
    ----------
    costs : (modules, 2)
        Latency and energy of every module.
    totals : (4,)
        Latency, energy, multipliers, M20K.
    prices : (4,) float
        Of a unit beyond the limits.
    layers, before : (I,)
        Layers that the present move changes, and the options that they had.
    marked : (modules,)
        The number of the move that last looked at a module.
    spare : (modules, 2)
        Costs of the modules before the move.
    best : (I,)
        Options of the best plan within the limits.
    value : (1,) float
        Its value.
    clock : (2,)
        Layers timed, and moves.
    heat : (1,) float
        The temperature.
    """

    costs: Integers2
    totals: Integers
    prices: Reals
    layers: Integers
    before: Integers
    marked: Integers
    spare: Integers2
    best: Integers
    value: Reals
    clock: Integers
    heat: Reals


@kernel("f8(Goal,i8[::1])", Goal)
def value_of(goal: Goal, totals: Integers) -> float:
    """The objective."""
    if goal.product:
        return float(totals[0]) * float(totals[1])
    return float(goal.latency_weight * totals[0] + goal.energy_weight * totals[1])


@kernel("f8(Goal,i8[::1],f8[::1])", Goal)
def priced(goal: Goal, totals: Integers, prices: Reals) -> float:
    """The objective and what the limits are exceeded by, at its price."""
    cost = value_of(goal, totals)
    for k in range(4):
        if totals[k] > goal.room[k]:
            cost += prices[k] * (totals[k] - goal.room[k])
    return cost


@kernel("i8(Tables,State,Walk,i8,i8,i8)", Tables, State, Walk)
def put(tables: Tables, state: State, walk: Walk, count: int, i: int, o: int) -> int:
    """Give a layer another option as a part of the move; returns the number of layers that it changes."""
    totals = walk.totals
    old = state.chosen[i]
    if o == old:
        return count
    walk.layers[count], walk.before[count] = i, old
    totals[2] += tables.options[o, MULTIPLIERS] - tables.options[old, MULTIPLIERS]
    totals[3] += tables.options[o, M20K] - tables.options[old, M20K]
    state.chosen[i] = o
    return count + 1


@kernel("i8(Tables,i8,i8)", Tables)
def on_fpga(tables: Tables, i: int, fold: int) -> int:
    """A layer's option whole on the FPGA with this fold, or the one without a fold; -1 if there is none."""
    found = -1
    for o in range(tables.first[i], tables.first[i + 1]):
        if tables.options[o, ON_GPU] == 0:
            if tables.options[o, FOLD] == fold:
                return o
            if tables.options[o, FOLD] == 0:
                found = o
    return found


@kernel("i8(Tables,State,Walk,f8)", Tables, State, Walk)
def draw(tables: Tables, state: State, walk: Walk, kind: float) -> int:
    """A random move; returns the number of layers that it changes.

    One layer takes any option; or, besides, another one its first (the GPU); or neighbours in a module go to the GPU or
    to the FPGA with one fold.
    """
    first, count = tables.first, 0
    i = np.random.randint(len(first) - 1)
    o = np.random.randint(first[i], first[i + 1])
    if kind < 0.7:
        count = put(tables, state, walk, count, i, o)
        if kind < 0.2:
            j = np.random.randint(len(first) - 1)
            if j != i:
                count = put(tables, state, walk, count, j, first[j])
        return count
    m = tables.module[i]
    last = np.random.randint(i, tables.layers[m + 1])
    fold = tables.options[o, FOLD]
    for j in range(i, last + 1):
        target = first[j] if kind < 0.8 else on_fpga(tables, j, fold)
        if target >= 0:
            count = put(tables, state, walk, count, j, target)
    return count


@kernel("i8(Tables,State,Walk,i8,i8)", Tables, State, Walk)
def measure(tables: Tables, state: State, walk: Walk, count: int, turn: int) -> int:
    """Costs of all modules that the move touches, into the totals; returns the number of layers timed."""
    work = 0
    for k in range(count):
        i = walk.layers[k]
        for t in range(tables.touched[i], tables.touched[i + 1]):
            m = tables.modules[t]
            if walk.marked[m] == turn:
                continue
            walk.marked[m] = turn
            latency, energy = module_cost(tables, state, m)
            for column, cost in ((0, latency), (1, energy)):
                walk.spare[m, column] = walk.costs[m, column]
                walk.totals[column] += cost - walk.costs[m, column]
                walk.costs[m, column] = cost
            work += tables.layers[m + 1] - tables.layers[m]
    return work


@kernel("void(Tables,State,Walk,i8,i8)", Tables, State, Walk)
def undo(tables: Tables, state: State, walk: Walk, count: int, turn: int) -> None:
    """Take the move back."""
    for k in range(count - 1, -1, -1):
        i, old = walk.layers[k], walk.before[k]
        now = state.chosen[i]
        walk.totals[2] += tables.options[old, MULTIPLIERS] - tables.options[now, MULTIPLIERS]
        walk.totals[3] += tables.options[old, M20K] - tables.options[now, M20K]
        state.chosen[i] = old
        for t in range(tables.touched[i], tables.touched[i + 1]):
            m = tables.modules[t]
            if walk.marked[m] == turn:
                for column in range(2):
                    walk.totals[column] += walk.spare[m, column] - walk.costs[m, column]
                    walk.costs[m, column] = walk.spare[m, column]
                walk.marked[m] = -1


@kernel("b1(Goal,State,Walk)", Goal, State, Walk)
def keep(goal: Goal, state: State, walk: Walk) -> bool:
    """Keep the plan if it is within the limits and the best so far; returns whether it is within them."""
    for k in range(4):
        if walk.totals[k] > goal.room[k]:
            return False
    value = value_of(goal, walk.totals)
    if value < walk.value[0]:
        walk.value[0] = value
        walk.best[:] = state.chosen
    return True


class Cooling(NamedTuple):
    """Temperatures from ``hot`` to ``cold``; every ``patience`` steps prices change by the factor ``swing``."""

    hot: Real
    cold: Real
    patience: Integer
    swing: Real


@kernel("void(Goal,Walk,f8)", Goal, Walk)
def reprice(goal: Goal, walk: Walk, swing: float) -> None:
    """Dearer where a limit is exceeded, cheaper where it is kept."""
    for k in range(4):
        walk.prices[k] *= swing if walk.totals[k] > goal.room[k] else 1 / swing


@kernel("void(Walk,Cooling,i8)", Walk, Cooling)
def begin(walk: Walk, cooling: Cooling, seed: int) -> None:
    """Hot again."""
    np.random.seed(seed)
    walk.marked[:] = -1
    walk.clock[:] = 0
    walk.heat[0] = cooling.hot


@kernel("void(Tables,Goal,State,Walk,Cooling,i8,i8)", Tables, Goal, State, Walk, Cooling)
def anneal(tables: Tables, goal: Goal, state: State, walk: Walk, cooling: Cooling, work: int, until: int) -> None:
    """Moves until about ``work`` layers were timed, while it cools, or so many of them.

    A move that costs more is taken with the probability of Metropolis et al. (1953).
    """
    now, heat = priced(goal, walk.totals, walk.prices), walk.heat[0]
    done, turn = walk.clock
    while done < min(work, until):
        turn += 1
        done += 1
        if turn % cooling.patience == 0:
            reprice(goal, walk, cooling.swing)
            now = priced(goal, walk.totals, walk.prices)
            heat = cooling.hot * (cooling.cold / cooling.hot) ** (done / work)
        count = draw(tables, state, walk, np.random.random())
        if count == 0:
            continue
        done += measure(tables, state, walk, count, turn)
        then = priced(goal, walk.totals, walk.prices)
        if then <= now or np.random.random() < np.exp((now - then) / heat):
            now = then
            keep(goal, state, walk)
        else:
            undo(tables, state, walk, count, turn)
    walk.clock[0], walk.clock[1], walk.heat[0] = done, turn, heat
