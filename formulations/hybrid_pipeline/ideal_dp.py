"""Exact dynamic programme over the ideals of a graph of layers.

A pipeline's end is a set U of layers that holds with a layer all that read it. Its label (D, A) is that of
:mod:`mapgap.formulations.hybrid_pipeline.label_dp`, with U in the place of the first layer: putting a stage V - U in
front gives a larger set V, and both labels rise with D and A as there. A stage's times and memory are differences of
sums over V and U, and what crosses a cut is a function of the set; tensors that stages pay for one by one are counted
on the way from U to V. So the Pareto labels by set, devices used and stages behind hold the optimum of all topological
orders at once.

What makes it fast: sets are numbered once; from a set only those are looked at that some group reaches below the upper
bound, and only if the devices left can do the work left (their speeds as in the fluid bound). The upper bound comes in
steps: is there a plan below 1.001 times what is proven, below 1.004 times, … A *no* is a better bound, a *yes* the
optimum.

Where there are more sets than ``ideals``, plans come from exact searches along several orders, and the bound from the
work of all layers and from every single layer, which is the same for all orders.

Blocks without time and memory that have one neighbour only, which knows all their tensors, are joined to it: there they
cost nothing, and no further tensor crosses.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from mapgap.core import Budget, InputError, OutOfTime, SolveResult, Status, Stop, read_start
from mapgap.formulations.hybrid_pipeline import label_dp
from mapgap.formulations.hybrid_pipeline.ideals import search
from mapgap.formulations.hybrid_pipeline.ideals.lattice import Lattice, crossing, lattice, sums, tabled
from mapgap.formulations.hybrid_pipeline.label.order_search import fluid_bound
from mapgap.formulations.hybrid_pipeline.label.tables import Stages
from mapgap.formulations.hybrid_pipeline.params import Ideals as Params
from mapgap.problems.hybrid_pipeline import Instance, Plan, Stage
from mapgap.problems.hybrid_pipeline.evaluate import best_shares, diagnose, evaluate, warm_up
from mapgap.problems.hybrid_pipeline.lowered.arrays import Lowered, lower
from mapgap.problems.hybrid_pipeline.lowered.batching import every_micro_batch
from mapgap.problems.hybrid_pipeline.lowered.graph import ORDER, Blocks, blocks, chain_along, on_graph, orders
from mapgap.problems.hybrid_pipeline.lowered.tables import Array

OPEN = 2**61
"""No plan is known."""
MOST_LABELS = 2**24
"""What a search holds where nobody says how much memory there is."""


class _States(NamedTuple):
    """States of the devices; rows are (devices used, stages behind, group in front)."""

    rows: list[tuple[int, int, int]]
    steps: search.Steps


class _Best:
    """The best plan so far."""

    def __init__(self, instance: Instance, budget: Budget) -> None:
        self.instance, self.budget = instance, budget
        self.plan: Plan | None = None
        self.value = OPEN

    def offer(self, plan: Plan | None) -> None:
        """Keep a plan if it is feasible and better."""
        if plan is None or plan.micro_batch != self.instance.micro_batch_sizes[0]:
            return
        found = evaluate(self.instance, plan)
        if found.feasible and found.objective is not None and found.objective < self.value:
            self.plan, self.value = plan, found.objective
            self.budget.report(plan=plan)


def joined(instance: Instance, low: Lowered) -> Blocks:
    """The blocks, those without any cost joined to their only neighbour."""
    pairs: list[tuple[int, int]] = []
    found = blocks(instance)
    layers, kinds = instance.layers, instance.types
    most = low.kept(low.micro_batches + len(instance.devices)) * low.batch
    needed = sum(layer.state_memory + most * layer.activation_memory for layer in layers)
    roomy = all(kind.memory >= needed for kind in kinds)
    reduces = instance.execution.training and instance.execution.replication

    def free(i: int) -> bool:
        facts = layers[i]
        if not roomy and (facts.state_memory or facts.activation_memory):
            return False
        return not (reduces and facts.weight_bytes) and not any(k.forward[i][-1] or k.backward[i][-1] for k in kinds)

    def able(members: tuple[int, ...]) -> set[int]:
        return {t for t in range(len(kinds)) if all(instance.supports(t, i) for i in members)}

    costless = {i for i in range(len(layers)) if free(i)} if not instance.all_devices else set[int]()
    while True:
        before: tuple[frozenset[int], ...] = found.before
        shared: list[set[int] | None] = [None] * len(found)  # blocks that know all tensors of a block
        for known, _ in (*found.tensors, *found.gradients):
            for b in known:
                others = shared[b]
                shared[b] = set(known) if others is None else others & set(known)
        taken: set[int] = set()
        fresh = []
        for b, members in enumerate(found.members):
            near, common = found.after[b] | before[b], shared[b]
            if len(near) != 1 or not costless.issuperset(members) or not (common is None or near <= common):
                continue
            (other,) = near
            if b in taken or other in taken or not able(members) >= able(found.members[other]):
                continue
            taken |= {b, other}
            fresh.append((members[0], found.members[other][0]))
        if not fresh:
            return found
        pairs += fresh
        found = blocks(instance, pairs)


def _block_tables(instance: Instance, low: Lowered, found: Blocks) -> tuple[Array, Array]:
    """(C, n, B + 1) forward and backward ticks of blocks by class and share."""
    tables = []
    for sums_before in (low.forward, low.backward):
        single = np.diff(sums_before, axis=1)
        tables.append(np.stack([single[:, list(members)].sum(axis=1) for members in found.members], axis=1))
    return tables[0], tables[1]


def _states(instance: Instance, low: Lowered, area_of: Array, most: int | None = None) -> _States:
    """All states that can come, with at most so many stages, the empty one first; a move leads to a later one."""
    rules, moves = instance.execution, low.moves
    varies = rules.training and rules.stored in ("warm_up", "behind") and bool(low.activation[-1])
    deep = (varies and rules.replication) or most is not None
    deepest = low.levels if most is None else most
    heads = not low.uniform and rules.communication == "step"
    used = [int(low.groups[s].sum()) for s in range(len(low.groups))]
    rows: list[tuple[int, int, int]] = [(0, 0, 0)]
    place = {rows[0]: 0}
    first, group, target, level = [0], list[int](), list[int](), list[int]()
    pending = 0
    order: list[tuple[int, int, int]] = rows
    while pending < len(order):  # breadth first by devices used keeps moves ascending, as every move uses one at least
        s, q, head = order[pending]
        for k in range(int(moves.first[s]), int(moves.first[s + 1])):
            g, t = int(moves.group[k]), int(moves.target[k])
            if q == most:
                continue
            row = (t, min(q + 1, deepest) if deep else 0, g if heads else 0)
            if row not in place:
                place[row] = len(order)
                order.append(row)
            group.append(g)
            target.append(place[row])
            level.append(int(low.level[g, head]) if heads and s else 0)
        first.append(len(group))
        pending += 1
    complete = low.complete(instance.all_devices)
    behind = [q if deep else used[s] for s, q, _ in order]
    asked = np.zeros(len(low.groups), np.bool_)
    asked[group] = True
    return _States(
        order,
        search.Steps(
            np.array(first, np.int64),
            np.array(group, np.int64),
            np.array(target, np.int64),
            np.array(level, np.int64),
            np.array([low.kept(q) for q in behind], np.int64),
            np.array([int((low.groups[-1] - low.groups[s]) @ area_of) for s, _, _ in order], np.int64),
            np.array([complete[s] for s, _, _ in order], np.bool_),
            asked,
        ),
    )


def _areas(forward: Array, backward: Array, low: Lowered) -> tuple[Array, Array]:
    """(n,) work of blocks and (C,) what a device of a class does of it in a tick.

    A device of class c that takes y samples of a block is busy ``t(y) >= y r_c`` with ``r_c`` the least of t(y) / y.
    With any speeds s_c, B samples cost the devices together at least ``B min_c s_c r_c`` parts of work.
    """
    both = (forward + backward)[:, :, 1:].astype(np.float64)
    rate = (both / np.arange(1, low.batch + 1)).min(axis=2)  # (C, n)
    total = rate.sum(axis=1)
    speed = np.array([round(2**16 * total.min() / t) if t > 0 else 2**16 for t in total], np.int64).clip(1)
    parts = np.floor(low.batch * (speed[:, None] * rate).min(axis=0) * (1 - 2**-40)).astype(np.int64)
    return parts, speed


class _Search:
    """The lattice with all that the compiled loops read."""

    def __init__(self, instance: Instance, low: Lowered, found: Blocks, sets: Lattice, most: int | None = None) -> None:
        self.instance, self.low, self.found, self.sets = instance, low, found, sets
        rules, n = instance.execution, len(found)
        forward, backward = _block_tables(instance, low, found)
        parts, speed = _areas(forward, backward, low)
        batch = low.batch
        if not rules.replication:  # a member takes the whole micro-batch or nothing
            forward, backward = forward[:, :, [0, batch]], backward[:, :, [0, batch]]
            batch = 1
        classes, _, width = forward.shape

        def table(values: Array) -> Array:
            flat = sums(sets.parent, sets.added, np.ascontiguousarray(values.transpose(1, 0, 2).reshape(n, -1)))
            return np.ascontiguousarray(flat.reshape(-1, classes, width).transpose(1, 0, 2))

        f, b = table(forward), table(backward)
        layers = instance.layers
        kinds = [instance.devices[members[0]].type for members in low.classes]
        facts = [
            [sum(layers[i].state_memory for i in members) for members in found.members],
            [sum(layers[i].activation_memory for i in members) * (low.batch // batch) for members in found.members],
            [sum(layers[i].weight_bytes for i in members) for members in found.members],
            parts.tolist(),
            *([sum(not instance.supports(t, i) for i in m) for m in found.members] for t in kinds),
        ]
        columns = sums(sets.parent, sets.added, np.array(facts, np.int64).T.copy())
        state, activation, weights, area = (np.ascontiguousarray(columns[:, k]) for k in range(4))
        tensors, gradients = tabled(found.tensors, n), tabled(found.gradients, n)
        sizes = crossing(tensors, sets.bits, sets.parent, sets.added) * low.batch
        rates = sorted({rate for d, row in enumerate(instance.bandwidth) for e, rate in enumerate(row) if d != e})
        ticks = np.zeros((1, len(sizes)), np.int64)  # one alone sends nothing
        if len(instance.devices) > 1:
            moved = [[instance.transfer_ticks(int(size), rate) for size in sizes.tolist()] for rate in low.rates]
            ticks = np.array(moved, np.int64)
        how = rules.communication
        zero = np.zeros_like(ticks)
        hosts = instance.graph.hosts if instance.graph is not None else ()
        paying = np.array([t not in hosts for t in kinds], np.bool_)
        self.tensors, self.gradients = tensors, gradients
        self.stages = Stages(f, b, f + b, state, activation, low.room, low.groups, batch)
        self.states = _states(instance, low, speed, most)
        self.costs = search.Costs(
            np.ascontiguousarray(columns[:, 4:].T),
            ticks if how == "step" else zero,
            ticks[0] if how == "load" else zero[0],
            weights,
            low.reduce_num,
            low.reduce_den,
            int(low.every_step),
            np.logical_and(low.groups > 0, ~paying) @ np.ones(classes, np.bool_),
            int(how == "tensors" and len(rates) > 0),
            low.batch * 10**9,
            (rates[0] if rates else 1) * instance.tick_ns,
            area[-1] - area,
        )
        form = low.form
        self.rule = search.Rule(*form[:5], int(bool(form.excess)))
        self.pairs = self.labels = 0

    @property
    def least(self) -> int:
        """No plan is below what the block takes that takes longest where it is fastest.

        Of n devices one takes ``ceil(B / n)`` samples at least.
        """
        instance, low = self.instance, self.low
        members = len(instance.devices) if instance.execution.replication else 1
        share = -(-low.batch // members) - 1
        found = 0
        for block in self.found.members:
            times = []
            for t in {instance.devices[each[0]].type for each in low.classes}:
                kind = instance.types[t]
                if all(instance.supports(t, i) for i in block):
                    forward = sum(kind.forward[i][share] for i in block)
                    back = sum(kind.backward[i][share] for i in block) if instance.execution.training else 0
                    times.append(forward + back)
            found = max(found, min(times, default=0))
        return found * low.form.factor

    def below(self, upper: int, budget: Budget) -> tuple[Stop | None, Plan | None]:
        """The best plan below a value, if there is one; why that was not settled."""
        count, states = len(self.sets.parent), len(self.states.rows)
        head = np.full((count, states), -1, np.int64)
        pool = np.zeros((1 << 16, 6), np.int64)
        at = np.array([1, upper, -1, 0], np.int64)
        pool[0, 2:] = (-1, -1, 0, 0)
        head[0, 0] = 0
        stamp, queue = np.full(count, -1, np.int64), np.zeros(count, np.int64)
        limit = None if budget.memory_mb is None else budget.memory_mb << 20
        place, stop = 0, None
        while place < count - 1:
            if budget.exhausted:
                stop = Stop.TIME
                break
            labels = search.Labels(head, pool, at)
            place = search.advance(
                self.sets, self.tensors, self.gradients, self.stages, self.costs, self.states.steps, self.rule, labels,
                stamp, queue, place, 5_000_000,
            )  # fmt: skip
            if place < 0:
                if len(pool) >= MOST_LABELS if limit is None else 2 * pool.nbytes >= limit:  # copied to grow
                    stop = Stop.MEMORY
                    break
                pool = np.concatenate((pool, np.zeros_like(pool)))
                place = -1 - place
                stamp[:] = -1
        self.pairs += int(at[search.PAIRS])
        self.labels = max(self.labels, int(at[search.ADDED]))
        found = int(at[search.LABEL])
        return stop, self._plan(pool, found) if found >= 0 else None

    def _plan(self, pool: Array, label: int) -> Plan:
        stages: list[Stage] = []
        path = []
        while label > 0:
            path.append((int(pool[label, 4]), int(pool[int(pool[label, 3]), 4]), int(pool[label, 5])))
            label = int(pool[label, 3])
        free = [list(members) for members in self.low.classes]
        rules, (batch,) = self.instance.execution, self.instance.micro_batch_sizes
        for p, (whole, part, group) in enumerate(path):
            inside = self._members(whole) - self._members(part)
            layers = tuple(sorted(i for block in inside for i in self.found.members[block]))
            devices = tuple(
                sorted(free[c].pop(0) for c, count in enumerate(self.low.groups[group]) for _ in range(int(count)))
            )
            bare = Stage(layers=layers, devices=devices, shares=())
            kept = warm_up(len(path) - 1 - p, self.low.micro_batches, rules)
            shares = best_shares(self.instance, bare, batch, kept)
            assert shares is not None
            stages.append(bare.model_copy(update={"shares": shares}))
        return Plan(micro_batch=batch, stages=tuple(stages))

    def _members(self, number: int) -> set[int]:
        row = self.sets.bits[number]
        return {b for b in range(len(self.found)) if int(row[b >> 6]) >> (b & 63) & 1}


def least(instance: Instance, most: int, stages: int, budget: Budget, params: Params = Params()) -> Plan | None:
    """The best plan of an objective of ``most`` at most in at most so many stages; ``None`` without one.

    Raises
    ------
    OutOfTime
        That was not settled: too many ideals, or labels, or the time is over.
    """
    low = lower(instance)
    found = joined(instance, low)
    sets = lattice(found.after, params.ideals)
    if sets is None:
        raise OutOfTime
    stop, plan = _Search(instance, low, found, sets, stages).below(most + 1, budget)
    if stop is not None:
        raise OutOfTime
    return plan


def along_orders(instance: Instance, found: Blocks, best: _Best, count: int) -> Iterator[str]:
    """The best plans along some orders; what each search proves of its order."""
    for order in orders(found, count, best.budget.seed):
        if best.budget.exhausted:
            return
        try:
            chain = chain_along(instance, found, order)
        except InputError:
            return  # its sums are too large for a chain
        part = Budget(best.budget.remaining_s, best.budget.memory_mb, best.budget.workers, best.budget.seed)
        result = label_dp.run(chain, part)
        if isinstance(result.plan, Plan):
            best.offer(on_graph(result.plan, found, order))
        yield ORDER if result.status is Status.OPTIMAL else ""


@every_micro_batch
def run(instance: Instance, budget: Budget, start: str | Plan | None = None, params: Params = Params()) -> SolveResult:
    """The optimum on the graph, or, of too many ideals, plans along orders and a bound for all orders.

    A chain is the graph with one order. A failure case is always a chain, along which the labels, with the migration
    in them, are those of ``label_dp``.

    Raises
    ------
    InputError
        ``start`` is no plan of the problem.
    """
    reasons = diagnose(instance)
    if instance.replanning is not None:
        return label_dp.run(instance, budget, start=start)
    if reasons:
        return SolveResult(Status.INFEASIBLE, Stop.PROVED, reason="; ".join(reasons))
    too_large = label_dp.too_large(instance, label_dp.PAIRED)
    if too_large:
        return SolveResult(Status.UNKNOWN, Stop.MEMORY, reason=too_large)
    low, best = lower(instance), _Best(instance, budget)
    best.offer(read_start(start, Plan, instance))
    bound = fluid_bound(lower(instance, tuple(range(len(instance.devices)))))
    found = joined(instance, low)
    sets = lattice(found.after, params.ideals)
    notes: dict[str, Any] = {"blocks": len(found), "ideals": None if sets is None else len(sets.parent)}
    orders = params.orders if sets is None else 1
    words = [text for text in along_orders(instance, found, best, orders) if text]
    if sets is not None:
        return _exact(_Search(instance, low, found, sets), best, bound, params, notes)
    notes["orders"] = len(words)
    budget.report(bound=min(bound, best.value))
    reason = f"more than {params.ideals} ideals; no plan on the graph is below {min(bound, best.value)}"
    if best.plan is None:
        return SolveResult(Status.UNKNOWN, Stop.MEMORY, bound=bound, reason=reason, notes=notes)
    if bound >= best.value:
        return SolveResult(Status.OPTIMAL, Stop.PROVED, best.plan, best.value, best.value, notes=notes)
    reason = f"{ORDER}; {reason}" if words else reason
    return SolveResult(Status.FEASIBLE, Stop.MEMORY, best.plan, bound, best.value, reason=reason, notes=notes)


def _exact(this: _Search, best: _Best, bound: int, params: Params, notes: dict[str, Any]) -> SolveResult:
    """Upper bounds from what is proven on, until one holds."""
    budget, stop = best.budget, None
    bound = min(max(bound, this.least), best.value)
    steps = [*params.gaps, None]
    while bound < best.value and stop is None:
        gap = steps.pop(0) if len(steps) > 1 else None
        upper = best.value if gap is None else min(best.value, bound + 1 + int(gap * bound))
        stop, plan = this.below(upper, budget)
        known = best.value
        best.offer(plan)
        if stop is None:
            bound = best.value if plan is not None or upper == known else upper
            budget.report(bound=min(bound, best.value))
        if plan is not None and stop is None:
            break
        if gap is None and stop is None and plan is None:
            break
    notes |= {"pairs": this.pairs, "labels": this.labels}
    if best.plan is None:
        if stop is None:
            text = "no stages of the graph fit on the devices"
            return SolveResult(Status.INFEASIBLE, Stop.PROVED, reason=text, notes=notes)
        return SolveResult(Status.UNKNOWN, stop, bound=bound, notes=notes)
    if stop is None:
        return SolveResult(Status.OPTIMAL, Stop.PROVED, best.plan, best.value, best.value, notes=notes)
    reason = f"no plan on the graph is below {bound}"
    return SolveResult(Status.FEASIBLE, stop, best.plan, bound, best.value, reason=reason, notes=notes)
