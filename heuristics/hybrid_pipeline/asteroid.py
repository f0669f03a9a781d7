"""Asteroid's planner: Algorithms 1 and 2 of Ye et al. (MobiCom 2024), Sec. 3.3, as compiled loops.

Algorithm 2 cuts the layers and an *order* of the devices together: Q(l, n, p) is the best pipeline found for the last
l layers on the last n devices with p stages, Eq. (10); it is extended by one stage at the head, whose shares come from
Algorithm 1, and by a communication step, Eq. (11). One sub-pipeline is kept per state although two quantities of it
matter (the aligned dominant step and the AllReduce behind it), so that the search is a heuristic even for its order.

::

    Algorithm 1                                                  here
     1  MemoryAwareBalancing(G, beta)                            balance
     2-5    no device left: fail; no sample left: return
     6-9    every d: y_d += min(v_d / sum v * beta, bs_d), what fits
    10-12   again with the devices and the samples that are left
    13  StragglerWorkloadOffloading()                            offload
    15-20   a block of samples from the slowest device to the
            fastest one with memory, while that helps
    21-22 balance the micro-batch, then offload                  allocate

    Algorithm 2                                                  here
     1-2 for p, n                                                plan
     3-5 for l, n', l'                                           extend
     6      E_f and E_b by Algorithm 1 and Eq. (8)               allocate, slowest
     7      dominant step by Eq. (11)                            extend
     8-9    T_w, T_e, T_a and latency by Eqs. (4)-(6)            extend
    10   Q(l, n, p) by Eq. (10)                                  extend
    (configurations are recorded on the way)                     trace

Lines are counted as Sec. 3.3 counts them, without those that only close a loop.

Interpretation
--------------
1.  Order: descending memory (Sec. 3.3). Boards of equal memory (NX and TX2) are not ordered by the paper: ``ties`` is
    ``fastest_first``, ``slowest_first``, or ``best`` for the best plan over all orders that descending memory permits.
2.  All N devices are used: the goal is min_p Q(L, N, p).
3.  Algorithm 1, line 8 makes fractions of samples; whole ones by floor and largest remainder, ties by place.
4.  Line 17 transfers ``block`` samples, one by default; the last, useless transfer is undone. Ties by place.
5.  "Maximum batch size under budget" is what fits beside weights, gradients and optimizer state with K_p stored
    micro-batches; a device that cannot hold the state makes the group infeasible.
6.  Times of Eqs. (4)-(6) are compared without building the steps; the closed form is equal (docs).
7.  A sub-pipeline that, with the transfer to it, already takes as long as the best pipeline is not extended; this
    changes no result.
8.  When the time is over, the result is min_p Q(L, N, p) over the numbers of stages p that are done. There may be no
    plan among them: few stages may not fit into the memories.
"""

from __future__ import annotations

import time
from dataclasses import replace
from itertools import product
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mapgap.core import Budget, Finding, InputError, SolveResult, Stop
from mapgap.heuristics.hybrid_pipeline.chain import Chain, Row, Rows, Span, Tables, best_of, chain, report, result
from mapgap.kernels import Integers3, kernel
from mapgap.problems.hybrid_pipeline import Instance, Plan, Stage
from mapgap.problems.hybrid_pipeline.lowered.batching import every_micro_batch
from mapgap.problems.hybrid_pipeline.lowered.observe import observed
from mapgap.problems.hybrid_pipeline.lowered.order import memory_orders

BALANCED, EQUAL = 0, 1
"""How a stage divides a micro-batch: Algorithm 1, or evenly whatever device and memory."""
NO_PLAN = 2**62

Array = NDArray[Any]
"""Whole numbers of 64 bits; in a kernel NumPy's and Python's are one type."""


# The tables of times and memories come one by one: a tuple of arrays costs the inner loops twice the time.


@kernel("b1(i8[:,:,::1],i8[::1],Span,i8[::1])", Span)
def balance(both: Array, room: Array, stage: Span, share: Array) -> bool:
    """Algorithm 1, phase 1 (MemoryAwareBalancing) into ``share``; False where the memory holds no micro-batch."""
    i, j, a, b, state, stored, batch = stage
    n = b - a
    cap = np.empty(n, np.int64)
    speed = np.empty(n, np.float64)
    for d in range(n):
        left = room[a + d] - state
        if left < 0:
            return False  # every member holds the weights
        cap[d] = batch if stored == 0 else min(batch, left // stored)  # line 7: bs_d
        speed[d] = 1.0 / max(1, both[a + d, j, batch] - both[a + d, i, batch])  # Eq. (9)
        share[d] = 0
    rest = batch
    quota = np.empty(n, np.int64)
    fraction = np.empty(n, np.float64)
    while rest > 0:  # lines 4-5 and 10-12: once more with what is left and the devices that have memory
        total = 0.0
        for d in range(n):
            if cap[d] > share[d]:
                total += speed[d]
        if total == 0.0:
            return False  # lines 2-3
        given = 0
        for d in range(n):  # line 6
            quota[d], fraction[d] = 0, -1.0
            if cap[d] > share[d]:
                exact = speed[d] / total * rest
                quota[d] = int(exact)
                fraction[d] = exact - quota[d]
                given += quota[d]
        for _ in range(rest - given):  # whole samples: floor, then largest remainder
            best = -1
            for d in range(n):
                if fraction[d] >= 0.0 and (best < 0 or fraction[d] > fraction[best]):
                    best = d
            if best < 0:
                break
            quota[best] += 1
            fraction[best] = -1.0
        before = rest
        for d in range(n):  # lines 8-9
            more = min(quota[d], cap[d] - share[d])
            share[d] += more
            rest -= more
        if rest == before:
            return False
    return True


@kernel("void(i8[:,:,::1],i8[::1],Span,i8,i8[::1])", Span)
def offload(both: Array, room: Array, stage: Span, block: int, share: Array) -> None:
    """Algorithm 1, phase 2 (StragglerWorkloadOffloading): blocks move while that makes the slowest device faster."""
    i, j, a, b, state, stored, _ = stage
    n = b - a
    if n == 1:
        return
    while True:  # lines 15, 20
        slow, slowest = 0, -1  # lines 14, 16, 18
        for d in range(n):
            ticks = both[a + d, j, share[d]] - both[a + d, i, share[d]]
            if ticks > slowest:
                slow, slowest = d, ticks
        fast, fastest = -1, 0
        for d in range(n):
            left = room[a + d] - state - stored * share[d]
            if d == slow or left < stored:
                continue
            ticks = both[a + d, j, share[d]] - both[a + d, i, share[d]]
            if fast < 0 or ticks < fastest:
                fast, fastest = d, ticks
        if fast < 0:
            return
        moved = min(block, share[slow])  # line 17
        if stored > 0:
            moved = min(moved, (room[a + fast] - state) // stored - share[fast])
        if moved <= 0:
            return
        share[slow] -= moved
        share[fast] += moved
        straggler = 0  # line 19
        for d in range(n):
            straggler = max(straggler, both[a + d, j, share[d]] - both[a + d, i, share[d]])
        if straggler >= slowest:  # the transfer did not help: undo it
            share[slow] += moved
            share[fast] -= moved
            return


@kernel("b1(i8[:,:,::1],i8[::1],Span,i8,i8,i8[::1])", Span)
def allocate(both: Array, room: Array, stage: Span, block: int, rule: int, share: Array) -> bool:
    """Shares of a stage under a rule; False where it has none: T(i -> j, G) is infinite."""
    if rule == EQUAL:
        n = stage.b - stage.a
        for d in range(n):
            share[d] = stage.batch // n + (1 if d < stage.batch % n else 0)
        return True
    if not balance(both, room, stage, share):  # Algorithm 1, line 21
        return False
    offload(both, room, stage, block, share)  # line 22
    return True


@kernel("i8(i8[:,:,::1],Span,i8[::1])", Span, inline="always")
def slowest(table: Array, stage: Span, share: Array) -> int:
    """Eq. (8): the largest time of a member."""
    i, j, a, b, _, _, _ = stage
    top = 0
    for d in range(b - a):
        top = max(top, table[a + d, j, share[d]] - table[a + d, i, share[d]])
    return top


@kernel("i8[:,::1](i8[:,:,:,::1],i8)")
def trace(parents: Array, stages: int) -> Array:
    """Rows of the pipeline of all layers and places with that many stages."""
    n, l = parents.shape[2] - 1, parents.shape[3] - 1  # noqa: E741
    places, count = n, l
    path = np.zeros((stages, 4), np.int64)
    for k in range(stages):
        n2, l2 = parents[0, stages - k, n, l], parents[1, stages - k, n, l]
        path[k, 0], path[k, 1], path[k, 2], path[k, 3] = count - l, count - l2, places - n, places - n2
        n, l = n2, l2  # noqa: E741
    return path


class Table(NamedTuple):
    """Q(l, n, p): one sub-pipeline of the last l layers on the last n places with p stages.

    Attributes
    ----------
    dominant, excess : (P + 1, N + 1, L + 1)
        max_i (M E_i + sum_{j<i} E_j), ``NO_PLAN`` without a sub-pipeline, and max_s (Ta_s - sum_{j<s} Eb_j), whose sum
        is Eq. (4); ticks.
    parents : (2, P + 1, N + 1, L + 1)
        n' and l' of the sub-pipeline behind the first stage.
    """

    dominant: Integers3
    excess: Integers3
    parents: Annotated[Array, "i8[:,:,:,::1]"]


@kernel("i8(Tables,Table,i8,i8,i8,i8)", Tables, Table)
def extend(tables: Tables, table: Table, p: int, n: int, block: int, rule: int) -> int:
    """Algorithm 2, lines 3-10: Q(l, n, p) for all l from the sub-pipelines of p - 1 stages; stages evaluated."""
    forward, backward, both, room, state, activation, weights, comm, level, reduce_num, reduce_den, batch, m = tables
    dominant, excess, parents = table.dominant, table.excess, table.parents
    count, places = forward.shape[1] - 1, forward.shape[0]
    share = np.zeros(places, np.int64)
    evaluated = 0
    kept = min(2 * p - 1, m)  # K of the new first stage, with p - 1 stages behind it
    for l in range(1, count + 1):  # line 3  # noqa: E741
        if (n == places) != (l == count):
            continue  # never part of a longer pipeline, nor a complete one
        best = NO_PLAN
        i, a = count - l, places - n
        for n2 in range(0 if p == 1 else p - 1, 1 if p == 1 else n):  # line 4
            for l2 in range(0 if p == 1 else p - 1, 1 if p == 1 else l):  # line 5
                j, b, c = count - l2, places - n2, 0
                if p > 1:
                    if dominant[p - 1, n2, l2] == NO_PLAN:
                        continue
                    c = comm[level[a, b, places - parents[0, p - 1, n2, l2]], j]
                    if dominant[p - 1, n2, l2] + excess[p - 1, n2, l2] + c >= best:
                        continue  # no stage in front makes up for that
                evaluated += 1
                stored = kept * (activation[j] - activation[i])
                stage = Span(i, j, a, b, state[j] - state[i], stored, batch)
                if not allocate(both, room, stage, block, rule, share):  # line 6: Algorithm 1 …
                    continue
                ef, eb = slowest(forward, stage, share), slowest(backward, stage, share)  # … and Eq. (8)
                reduce = -((-(weights[j] - weights[i]) * reduce_num[a, b]) // reduce_den[a, b])  # Eq. (5)
                large, late = m * (ef + eb), reduce
                if p > 1:  # line 7: Eq. (11)
                    large = max(large, 2 * m * c + ef + eb)
                    large = max(large, dominant[p - 1, n2, l2] + 2 * c + ef + eb)
                    late = max(late, excess[p - 1, n2, l2] - eb - c)
                if large + late < best:  # lines 8-10: Eqs. (4)-(6), (10)
                    best = large + late
                    dominant[p, n, l], excess[p, n, l] = large, late
                    parents[0, p, n, l], parents[1, p, n, l] = n2, l2
    return evaluated


def plan(seen: Chain, block: int, rule: int, budget: Budget | None = None) -> tuple[int, int, Array, bool]:
    """Algorithm 2: the best latency found, stages evaluated, rows (first layer, end, first place, end); whether all
    numbers of stages were tried before the time was over."""
    layers, places = seen.layers, len(seen.order)
    most = min(layers, places)
    shape = (most + 1, places + 1, layers + 1)
    table = Table(np.full(shape, NO_PLAN, np.int64), np.zeros(shape, np.int64), np.zeros((2, *shape), np.int64))
    evaluated, finished = 0, True
    for p, n in product(range(1, most + 1), range(1, places + 1)):  # lines 1-2
        if budget is not None and budget.exhausted:
            finished = False
            break
        evaluated += extend(seen.tables, table, p, n, block, rule)
    whole = table.dominant[:, places, layers]
    latency = np.where(whole == NO_PLAN, NO_PLAN, whole + table.excess[:, places, layers])
    stages = int(latency.argmin())  # min_p Q(L, N, p)
    value = int(latency[stages])
    return value, evaluated, trace(table.parents, stages if value < NO_PLAN else 0), finished


def shares(seen: Chain, row: Row, behind: int, block: int = 1, rule: int = BALANCED) -> tuple[int, ...] | None:
    """Shares of a stage with ``behind`` stages after it, ``None`` where the memory is too small."""
    share, tables = np.zeros(row[3] - row[2], np.int64), seen.tables
    stage = seen.span(row, min(2 * behind + 1, tables.micro_batches))
    fits = allocate(tables.both, tables.room, stage, block, rule, share)
    return tuple(share.tolist()) if fits else None


def plan_of(seen: Chain, rows: Rows, block: int = 1, rule: int = BALANCED) -> Plan | None:
    """The plan of stages along the order; ``None`` where one of them has no shares."""
    stages = []
    for p, row in enumerate(rows):
        found = shares(seen, row, len(rows) - 1 - p, block, rule)
        if found is None:
            return None
        pairs = sorted(zip(seen.order[row[2] : row[3]], found, strict=True))
        devices, given = zip(*pairs, strict=True)
        stages.append(Stage(start=row[0], stop=row[1], devices=devices, shares=given))
    return Plan(micro_batch=seen.tables.batch, stages=tuple(stages))


class Planned(NamedTuple):
    """What Algorithm 2 finds: a plan (or none), its latency in ticks, the number of stages it evaluated, and whether it
    came to its end."""

    plan: Plan | None
    latency: int
    evaluated: int
    finished: bool


def algorithm_2(seen: Chain, block: int = 1, rule: int = BALANCED, budget: Budget | None = None) -> Planned:
    """Algorithm 2 along a chain; when the time is over, the best plan of the numbers of stages done.

    Raises
    ------
    InputError
        ``block`` is below 1.
    """
    if block < 1:
        raise InputError(Finding(f"expected at least 1 sample, found {block}", ("block",)))
    latency, evaluated, path, finished = plan(seen, block, rule, budget)
    rows = [(i, j, a, b) for i, j, a, b in path.tolist()]
    return Planned(plan_of(seen, rows, block, rule) if rows else None, latency, evaluated, finished)


@observed
@every_micro_batch
def run(instance: Instance, budget: Budget, ties: str = "fastest_first", block: int = 1) -> SolveResult:
    """Algorithms 1 and 2.

    Raises
    ------
    InputError
        Unknown ``ties``, or ``block`` below 1.
    """
    begin = time.process_time()
    orders = memory_orders(instance, ties)
    outcomes, evaluated = [], 0
    for order in orders:
        found = algorithm_2(chain(instance, order), block, budget=budget)
        evaluated += found.evaluated
        names = [instance.devices[d].name for d in order]
        outcomes.append(result(instance, found.plan, begin, found.finished, order=names, orders=len(orders)))
        if budget.exhausted:
            break
    best = best_of(instance, outcomes)
    stop = best.stop if found.finished and len(outcomes) == len(orders) else Stop.TIME
    return report(budget, replace(best, stop=stop, notes={**best.notes, "stages_evaluated": evaluated}))
