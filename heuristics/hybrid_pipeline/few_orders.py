"""A few orders of the devices, one pipeline per state: stages priced as exactly as in the label search, no labels.

::

    1  orders of the devices: by memory (that of Algorithm 2); by speed; the fast ones at both ends, from
       either end; as listed; from the fastest on always over the best link, from either end; the old
       pipeline's, after a failure
    2  along each: best pipeline of p stages of the layers from i on, on the places from a on      extend
    3  the best of all pipelines of all layers                                                      search

It is Algorithm 2 with three differences. Orders are several; a place may stay idle where the instance allows it; shares
are those of Eq. (7) with the ties of rule 6, which is what the evaluator counts, not those of Algorithm 1. Of a state
the one sub-pipeline is kept that takes least by itself, as Algorithm 2 has it, migration included. The value of the
best pipeline so far, over all orders, prunes: a sub-pipeline, a transfer or a stage alone that is no less is left out,
and so are all longer stages that end with the same layer.

Interpretation
--------------
1.  Ties between devices go by speed, then by index; of equal orders there is one.
2.  Plans keep all rules by construction, and their value is known; they are not evaluated. What the execution or the
    objective of an instance has other than Asteroid is overlooked, as Asteroid does; then the plan is judged by the
    evaluator, and is none if it breaks a rule.
3.  When the time is over, the result is the best of the pipelines that were complete. Orders come one after the other.

An order costs at most the N^3 L^2 stages of Algorithm 2, on small instances far less because of the pruning. Numbers of
AllReduce products beyond 64 bits are not searched.
"""

from __future__ import annotations

import time
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mapgap.core import Budget, SolveResult, Status, Stop
from mapgap.heuristics.hybrid_pipeline.chain import Span, report, result
from mapgap.heuristics.hybrid_pipeline.nested import stage
from mapgap.kernels import Integer, Integers, Integers2, Integers3, kernel
from mapgap.problems.hybrid_pipeline import Execution, Instance, Plan, Stage
from mapgap.problems.hybrid_pipeline.lowered.arrays import migration
from mapgap.problems.hybrid_pipeline.lowered.batching import every_micro_batch
from mapgap.problems.hybrid_pipeline.lowered.tables import allreduce_fraction, transfers

NO_PLAN = 2**62
ASTEROID = Execution(), "latency"
"""Execution and objective of which the search knows every rule."""
WORK = 1_000_000
"""Stages priced between two looks at the clock, at least."""
ORDER, STAGES, PLACE, UPPER, FOUND, PRICED = range(6)
"""Where a search stands: order, stages and first place that come next; the best value, its number of stages, those
priced since the clock was looked at."""

Array = NDArray[Any]
"""Whole numbers of 64 bits; in a kernel NumPy's and Python's are one type."""


class Facts(NamedTuple):
    """Arrays of an instance, by device; along an order, by place.

    Attributes
    ----------
    forward, backward, both : (N, L + 1, B + 1)
        Ticks of the layers before a cut, by share.
    room : (N,)
        Memory units.
    state, activation, weights : (L + 1,)
        Sums over the layers before a cut: memory units, memory units per sample, bytes.
    comm : (W, L + 1)
        Ticks one way of a micro-batch across a cut, by bandwidth level, the slowest first.
    level : (N, N)
        Bandwidth level between two devices.
    reduce_num, reduce_den : (N + 1, W)
        AllReduce ticks per weight byte, a fraction, by members and bandwidth level (Eq. 5).
    move : (N, L + 1, L + 1) or (N, 1, 1)
        Migration ticks of layers ``[i, j)``; (N, 1, 1) without a failure.
    batch, micro_batches, rounds : int
        B, M and the factor of the latency in the objective.
    idle : int
        1 if devices may stay idle.
    """

    forward: Integers3
    backward: Integers3
    both: Integers3
    room: Integers
    state: Integers
    activation: Integers
    weights: Integers
    comm: Integers2
    level: Integers2
    reduce_num: Integers2
    reduce_den: Integers2
    move: Integers3
    batch: Integer
    micro_batches: Integer
    rounds: Integer
    idle: Integer


class Table(NamedTuple):
    """One pipeline of p stages of the layers from i on, on the places from a on; all of shape (P + 1, N + 1, L + 1).

    Attributes
    ----------
    value : R (D + A) + G, or ``NO_PLAN``
    dominant, excess, moved : D, A and G
    first, last, cut
        Places and end of its first stage.
    """

    value: Integers3
    dominant: Integers3
    excess: Integers3
    moved: Integers3
    first: Integers3
    last: Integers3
    cut: Integers3


@kernel("i8[::1](i8[:,::1],i8)")
def sums(rows: Array, column: int) -> Array:
    """Sums of a column over the rows before each."""
    found = np.zeros(len(rows) + 1, np.int64)
    for i in range(len(rows)):
        found[i + 1] = found[i] + rows[i, column]
    return found


@kernel("i8[:,:,::1](i8[:,:,:,::1],i8[::1],i8,i8)")
def times(tables: Array, kind: Array, phase: int, batch: int) -> Array:
    """``(N, L + 1, B + 1)`` ticks of the layers before a cut in a phase."""
    layers = tables.shape[2]
    found = np.zeros((len(kind), layers + 1, batch + 1), np.int64)
    for d in range(len(kind)):
        for i in range(layers):
            for y in range(1, batch + 1):
                found[d, i + 1, y] = found[d, i, y] + tables[kind[d], phase, i, y - 1]
    return found


@kernel("Facts(i8[:,:,:,::1],i8[::1],i8[::1],i8[:,::1],i8[:,::1],i8[:,::1],i8[:,:,::1],i8[:,:,::1],i8,i8,i8,i8)", Facts)
def facts(
    tables: Array,
    kind: Array,
    room: Array,
    layers: Array,
    comm: Array,
    level: Array,
    fractions: Array,
    move: Array,
    batch: int,
    micro_batches: int,
    rounds: int,
    idle: int,
) -> Facts:
    """The arrays of an instance; ``layers`` are (L, 3): state memory, activation memory, weight bytes."""
    forward, backward = times(tables, kind, 0, batch), times(tables, kind, 1, batch)
    state, activation, weights = sums(layers, 0), sums(layers, 1), sums(layers, 2)
    num, den = fractions[0], fractions[1]
    links = comm, level, num, den
    return Facts(
        forward, backward, forward + backward, room, state, activation, weights, *links, move, batch, micro_batches,
        rounds, idle,
    )  # fmt: skip


@kernel("Facts(Facts,i8[::1])", Facts)
def along(seen: Facts, order: Array) -> Facts:
    """The same by place of an order."""
    n = len(order)
    level = np.empty((n, n), np.int64)
    for a in range(n):
        for b in range(n):
            level[a, b] = seen.level[order[a], order[b]]
    forward, backward, both = seen.forward[order], seen.backward[order], seen.both[order]
    room, move, comm, num, den = seen.room[order], seen.move[order], seen.comm, seen.reduce_num, seen.reduce_den
    return Facts(
        forward, backward, both, room, seen.state, seen.activation, seen.weights, comm, level, num, den, move,
        seen.batch, seen.micro_batches, seen.rounds, seen.idle,
    )  # fmt: skip


@kernel("Table(i8,i8,i8)", Table)
def no_pipelines(most: int, places: int, layers: int) -> Table:
    """A table without pipelines."""
    shape = (most + 1, places + 1, layers + 1)
    value = np.full(shape, NO_PLAN, np.int64)
    dominant, excess, moved = np.zeros(shape, np.int64), np.zeros(shape, np.int64), np.zeros(shape, np.int64)
    first, last, cut = np.zeros(shape, np.int64), np.zeros(shape, np.int64), np.zeros(shape, np.int64)
    return Table(value, dominant, excess, moved, first, last, cut)


@kernel("UniTuple(i8,3)(Facts,i8,i8,i8,i8,i8)", Facts)
def priced(seen: Facts, i: int, j: int, a: int, b: int, behind: int) -> tuple[int, int, int]:
    """``(T, E_f, E_b)`` of a stage with so many behind it; -1 where memory does not suffice."""
    stored = min(2 * behind + 1, seen.micro_batches) * (seen.activation[j] - seen.activation[i])
    state, batch = seen.state[j] - seen.state[i], seen.batch
    if b - a > 1:
        found: tuple[int, int, int] = stage(
            seen.forward, seen.backward, seen.both, seen.room, Span(i, j, a, b, state, stored, batch)
        )
        return found
    if state + stored * batch > seen.room[a]:
        return -1, -1, -1
    ef = seen.forward[a, j, batch] - seen.forward[a, i, batch]
    eb = seen.backward[a, j, batch] - seen.backward[a, i, batch]
    return ef + eb, ef, eb


@kernel("void(Table,i8,i8,i8)", Table)
def idle_place(table: Table, p: int, a: int, i: int) -> None:
    """What begins behind place ``a`` also is on the places from ``a`` on."""
    if table.value[p, a + 1, i] < table.value[p, a, i]:
        table.value[p, a, i], table.cut[p, a, i] = table.value[p, a + 1, i], table.cut[p, a + 1, i]
        table.dominant[p, a, i], table.excess[p, a, i] = table.dominant[p, a + 1, i], table.excess[p, a + 1, i]
        table.moved[p, a, i], table.first[p, a, i] = table.moved[p, a + 1, i], table.first[p, a + 1, i]
        table.last[p, a, i] = table.last[p, a + 1, i]


@kernel("i8(Facts,Table,i8,i8,i8)", Facts, Table)
def extend(seen: Facts, table: Table, p: int, a: int, upper: int) -> int:
    """Step 2: pipelines below ``upper`` of p stages on the places from ``a`` on; stages priced."""
    value, dominant, excess, moved, first, last, cut = table
    m, rounds, count = seen.micro_batches, seen.rounds, 0
    places, layers, most, fastest = len(seen.room), len(seen.state) - 1, len(value) - 1, len(seen.comm) - 1
    value[p, a] = NO_PLAN
    inside = fastest
    for b in range(a + 1, places + (p == 1)):  # the end of the first stage's places
        for x in range(a, b - 1):
            inside = min(inside, seen.level[x, b - 1])
        if p == 1 and b < places and not seen.idle:
            continue
        num, den = seen.reduce_num[b - a, inside], seen.reduce_den[b - a, inside]
        for j in range(layers, layers - 1 if p == 1 else 0, -1):  # the end of its layers
            c = behind = late = gone = 0
            if p > 1:
                if value[p - 1, b, j] >= upper:
                    continue
                near = fastest
                for x in range(a, b):
                    for y in range(first[p - 1, b, j], last[p - 1, b, j]):
                        near = min(near, seen.level[x, y])
                c = seen.comm[near, j]
                behind, late, gone = dominant[p - 1, b, j], excess[p - 1, b, j], moved[p - 1, b, j]
                if rounds * max(behind + 2 * c, 2 * m * c) >= upper:
                    continue
            for i in range(j - 1 if p < most else 0, -1, -1):  # its first layer
                if i == 0 and a > 0 and not seen.idle:
                    continue  # no place is left for the devices in front
                total, ef, eb = priced(seen, i, j, a, b, p - 1)
                count += 1
                if total < 0 or rounds * m * total >= upper:
                    break  # a longer stage stores and takes no less
                e, late_here = ef + eb, -((-(seen.weights[j] - seen.weights[i]) * num) // den)
                large, there = m * e, 0
                if p > 1:
                    large = max(large, 2 * m * c + e, behind + 2 * c + e)
                    late_here, there = max(late_here, late - eb - c), gone
                if seen.move.shape[1] > 1:
                    for x in range(a, b):
                        there = max(there, seen.move[x, i, j])
                found = rounds * (large + late_here) + there
                if found < min(upper, value[p, a, i]):
                    value[p, a, i], first[p, a, i], last[p, a, i], cut[p, a, i] = found, a, b, j
                    dominant[p, a, i], excess[p, a, i], moved[p, a, i] = large, late_here, there
    if seen.idle and a + 1 < places:
        for i in range(layers):
            idle_place(table, p, a, i)
    return count


@kernel("void(Facts,Table,i8,i8[::1],i8[:,::1])", Facts, Table)
def trace(seen: Facts, table: Table, stages: int, order: Array, path: Array) -> None:
    """Rows of the pipeline of all layers with that many stages: first layer, end, and the share of every device.

    A device without a part in the stage has -1. The largest shares within the limits of Eqs. (7), (8) add up to a
    micro-batch at least; who comes later takes what is left.
    """
    a = i = 0
    for k in range(stages):
        p = stages - k
        j, b = table.cut[p, a, i], table.last[p, a, i]
        a = table.first[p, a, i]
        total, ef, eb = priced(seen, i, j, a, b, p - 1)
        stored = min(2 * p - 1, seen.micro_batches) * (seen.activation[j] - seen.activation[i])
        path[k, 0], path[k, 1] = i, j
        path[k, 2:] = -1
        left = seen.batch
        for d in range(a, b):
            room, y = seen.room[d] - seen.state[j] + seen.state[i], 0
            while (
                y < left
                and stored * (y + 1) <= room
                and seen.both[d, j, y + 1] - seen.both[d, i, y + 1] <= total
                and seen.forward[d, j, y + 1] - seen.forward[d, i, y + 1] <= ef
                and seen.backward[d, j, y + 1] - seen.backward[d, i, y + 1] <= eb
            ):
                y += 1
            path[k, 2 + order[d]] = y
            left -= y
        a, i = b, j


@kernel("void(Facts,i8[:,::1],Table,i8[::1],i8[:,::1])", Facts, Table)
def search(seen: Facts, orders: Array, table: Table, at: Array, path: Array) -> None:
    """Steps 2 and 3 from where the search stands, until all orders are done or :data:`WORK` is; the best ``path``."""
    most = len(table.value) - 1
    at[PRICED] = 0
    while at[ORDER] < len(orders):
        order = orders[at[ORDER]]
        here = along(seen, order)
        while at[STAGES] <= most:
            if at[PRICED] >= WORK:
                return
            p, a = at[STAGES], at[PLACE]
            at[PRICED] += extend(here, table, p, a, at[UPPER])
            if a == 0 and table.value[p, 0, 0] < at[UPPER]:
                at[UPPER], at[FOUND] = table.value[p, 0, 0], p
                trace(here, table, p, order, path)
            at[PLACE] -= 1
            if at[PLACE] < 0:
                at[PLACE] = len(order) - 1
                at[STAGES] += 1
        at[STAGES] = 1
        at[ORDER] += 1


def orders(instance: Instance, slow: list[int]) -> list[tuple[int, ...]]:
    """Step 1; ``slow`` are the ticks of each device for all layers and a whole micro-batch."""
    devices = range(len(slow))
    speed = sorted(devices, key=slow.__getitem__)
    near, left = speed[:1], speed[1:]
    while left:
        near.append(max(left, key=instance.bandwidth[near[-1]].__getitem__))
        left.remove(near[-1])
    ends = speed[::2] + speed[1::2][::-1]
    memory = [instance.types[device.type].memory for device in instance.devices]
    found = [sorted(speed, key=lambda d: -memory[d]), speed, ends, ends[::-1], [*devices], near[::-1], near]
    if instance.replanning is not None:
        old = [d for stage in instance.replanning.stages for d in stage.devices]
        found.append(old + [d for d in devices if d not in old])
    return list(dict.fromkeys(map(tuple, found)))


def links(instance: Instance) -> tuple[list[int], Array, Array]:
    """Bandwidths from the slowest on; ``level`` of :class:`Facts`; numerators and denominators, (2, N + 1, W)."""
    devices = range(len(instance.devices))
    rates = sorted({row[e] for d, row in enumerate(instance.bandwidth) for e in devices if d != e}) or [1]
    place = {rate: w for w, rate in enumerate(rates)}
    level = [[place[row[e]] if d != e else 0 for e in devices] for d, row in enumerate(instance.bandwidth)]
    parts = [[allreduce_fraction(instance, members, rate) for rate in rates] for members in range(len(devices) + 1)]
    fractions = [[[part[k] for part in row] for row in parts] for k in range(2)]
    if max(map(max, fractions[0])) * sum(layer.weight_bytes for layer in instance.layers) >= 2**62:
        return rates, np.array(level, np.int64), np.zeros((2, 0, 0), np.int64)
    return rates, np.array(level, np.int64), np.array(fractions, np.int64)


@every_micro_batch
def run(instance: Instance, budget: Budget) -> SolveResult:
    """The best pipeline along the orders."""
    begin = time.process_time()
    (batch,) = instance.micro_batch_sizes
    kind = [device.type for device in instance.devices]
    rates, level, fractions = links(instance)
    if not fractions.size:
        return SolveResult(Status.UNKNOWN, Stop.DONE, reason="AllReduce products of 2^62 and more are not searched")
    tables = np.array([(each.forward, each.backward) for each in instance.types], np.int64)
    ticks = tables[..., batch - 1].sum(axis=(1, 2)).tolist()
    tried = orders(instance, [ticks[k] for k in kind])
    layers = [(each.state_memory, each.activation_memory, each.weight_bytes) for each in instance.layers]
    seen = facts(
        tables,
        np.array(kind, np.int64),
        np.array([instance.types[k].memory for k in kind], np.int64),
        np.array(layers, np.int64),
        transfers(instance, batch, rates),
        level,
        fractions,
        migration(instance, [[d] for d in range(len(kind))]),
        batch,
        instance.mini_batch // batch,
        1 if instance.replanning is None else instance.replanning.rounds,
        int(not instance.all_devices),
    )
    places, most = len(kind), min(len(kind), len(layers))
    table, path = no_pipelines(most, places, len(layers)), np.empty((most, 2 + places), np.int64)
    at = np.array([0, 1, places - 1, NO_PLAN, 0, 0], np.int64)
    while at[ORDER] < len(tried) and not budget.exhausted:
        search(seen, np.array(tried, np.int64), table, at, path)
    finished = bool(at[ORDER] == len(tried))
    notes: dict[str, Any] = {"orders": int(at[ORDER])}
    plan = plan_of(batch, path[: at[FOUND]].tolist()) if at[FOUND] else None
    if plan is None or instance.graph is not None or (instance.execution, instance.objective) != ASTEROID:
        return report(budget, result(instance, plan, begin, finished, **notes))
    budget.report(plan=plan)
    notes["cpu_s"] = time.process_time() - begin
    stop = Stop.DONE if finished else Stop.TIME
    return SolveResult(Status.FEASIBLE, stop, plan, claimed=int(at[UPPER]), notes=notes)


def plan_of(batch: int, path: list[list[int]]) -> Plan:
    """The plan of the rows of :func:`trace`."""
    stages = []
    for start, stop, *shares in path:
        devices = tuple([d for d, share in enumerate(shares) if share >= 0])
        stages.append(Stage(start=start, stop=stop, devices=devices, shares=tuple([shares[d] for d in devices])))
    return Plan(micro_batch=batch, stages=tuple(stages))
