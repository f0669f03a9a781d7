"""The dynamic programme over ideals of Tarnawski et al. ("Efficient Algorithms for Device Placement of DNN Graph
Operators", NeurIPS 2020, Sec. 5.1.1; ``throughput-dp/dp.cpp`` of msr-fiddle/dnn-partitioning).

    dp[counts][I] = min over classes c of devices and ideals I' in I of max(dp[counts - c][I'], load_c(I - I'))

is the largest load of any device when the layers of the ideal I are on so many devices of each class: one part a
device, each part a difference of ideals. The load of a part is its time and what it pays for tensors.

Interpretation
--------------
1.  Their classes are accelerators and processors; here they are the types of devices, so several of each may be.
2.  A part pays, with its time, for every tensor that it makes for others or reads from them, once, in the forward and,
    in training, in the backward pass; those on ``hosts`` of the graph pay nothing. This is how they count, whatever the
    execution of the instance is; the rate is the smallest one between any devices.
3.  An accelerator holds state and activations of one micro-batch; the memory of hosts is not looked at. A plan that
    breaks a rule of the instance is rejected with the reason.
4.  Parts are not replicated, devices may stay idle, and the load is all that counts, whatever the objective is.
5.  First, layers without time join their only neighbour (``performTrivialNodeOptimizations``). More than 60,000 ideals
    are refused (``IDEALS_LIMIT``).
6.  ``linearize`` plans along one topological order, depth first, like ``dp.exe -linearize``. Which one depends on
    their numbering of nodes, so its values may differ: of ResNet-50 training it prints 78.6498 ms, 78.6318 are found
    here.
"""

from __future__ import annotations

import time
from collections import Counter
from fractions import Fraction
from itertools import product

import numpy as np

from mapgap.core import Budget, SolveResult, Status, Stop
from mapgap.heuristics.hybrid_pipeline.chain import report, result
from mapgap.problems.hybrid_pipeline import Instance, Plan, Stage
from mapgap.problems.hybrid_pipeline.certificate.graph import found, needs
from mapgap.problems.hybrid_pipeline.lowered.batching import every_micro_batch
from mapgap.problems.hybrid_pipeline.lowered.graph import blocks
from mapgap.problems.hybrid_pipeline.lowered.tables import Array

IDEALS_LIMIT = 60_000
NEVER = 2**61


class Parts:
    """Loads of all parts."""

    def __init__(self, instance: Instance, ideals: list[int]) -> None:
        (batch,) = instance.micro_batch_sizes
        rules, layers = instance.execution, instance.layers
        self.ideals, self.members = ideals, _members(ideals, len(layers))
        inside = self.members.astype(np.int64)
        self.kinds = sorted({device.type for device in instance.devices})
        memory = [layer.state_memory + batch * layer.activation_memory for layer in layers]
        self.memory = inside @ np.array(memory, np.int64)
        hosts = instance.graph.hosts if instance.graph is not None else ()
        self.host = [kind in hosts for kind in self.kinds]
        self.room = [instance.types[kind].memory for kind in self.kinds]
        self.work, self.lacking = [], []
        for kind in self.kinds:
            tables = instance.types[kind]
            times = [
                forward[batch - 1] + rules.training * backward[batch - 1]
                for forward, backward in zip(tables.forward, tables.backward, strict=True)
            ]
            self.work.append(inside @ np.array(times, np.int64))
            lacking = [not instance.supports(kind, i) for i in range(len(layers))]
            self.lacking.append(inside @ np.array(lacking, np.int64))
        rates = [rate for d, row in enumerate(instance.bandwidth) for e, rate in enumerate(row) if d != e]
        ways = (False, True) if rules.training else (False,)
        self.moved = []
        for back in ways if rates else ():
            moved = [t for t in instance.tensors(gradients=back) if t.size and len(t.layers) > 1]
            known = np.stack([inside[:, list(t.layers)].sum(axis=1) for t in moved]) if moved else None
            if known is not None:
                sizes = np.array([t.size for t in moved], np.int64)
                self.moved.append((known.astype(np.int32), np.array([len(t.layers) for t in moved], np.int32), sizes))
        self.batch, self.rate = batch, Fraction(batch * 10**9, min(rates, default=1) * instance.tick_ns)

    def loads(self, j: int) -> tuple[Array, list[Array]]:
        """Ideals within ideal j, and by class the load of j without each of them."""
        within = np.flatnonzero(~(self.members[:j] & ~self.members[j]).any(axis=1))
        paid = np.zeros(len(within), np.int64)
        for known, all_of_it, sizes in self.moved:
            apart = known[:, j, None] - known[:, within]
            crossing = sizes @ ((apart > 0) & (apart < all_of_it[:, None]))
            exact = int(crossing.max(initial=0)) * self.rate.numerator < NEVER
            bytes_moved = crossing if exact else crossing.astype(object)
            paid += (-(-bytes_moved * self.rate.numerator // self.rate.denominator)).astype(np.int64)
        found = []
        memory = self.memory[j] - self.memory[within]
        for c, work in enumerate(self.work):
            load = work[j] - work[within] + (0 if self.host[c] else paid)
            refused = self.lacking[c][j] > self.lacking[c][within]
            if not self.host[c]:
                refused |= memory > self.room[c]
            found.append(np.where(refused, NEVER, load))
        return within, found


def _members(ideals: list[int], layers: int) -> np.ndarray[tuple[int, int], np.dtype[np.bool_]]:
    """(N, L): whether an ideal holds a layer."""
    width = -(-layers // 8)
    packed = np.frombuffer(b"".join(each.to_bytes(width, "little") for each in ideals), np.uint8)
    rows = np.unpackbits(packed.reshape(len(ideals), width), axis=1, bitorder="little")
    return rows[:, :layers].astype(np.bool_)


def merged(instance: Instance) -> list[tuple[int, int]]:
    """Pairs of a layer without time and the only one that it reads or that reads it."""
    idle = {
        i for i in range(len(instance.layers)) if not any(k.forward[i][-1] or k.backward[i][-1] for k in instance.types)
    }
    pairs: list[tuple[int, int]] = []
    while True:
        seen = blocks(instance, pairs)
        fresh = [
            (members[0], seen.members[next(iter(after | before))][0])
            for members, after, before in zip(seen.members, seen.after, seen.before, strict=True)
            if len(after | before) == 1 and idle.issuperset(members)
        ]
        if not fresh:
            return pairs
        pairs += fresh


def all_ideals(instance: Instance) -> list[int]:
    """Sets of layers, by rising size; none if there are too many."""
    data = instance.to_json()
    graph = data.get("graph") or {}
    together = [*graph.get("together", []), *merged(instance)]
    return found(needs({**data, "graph": {**graph, "together": together}}), IDEALS_LIMIT)


def prefixes(instance: Instance) -> list[int]:
    """The ideals along one order of the layers, depth first."""
    seen = blocks(instance, merged(instance))
    ideals = [0]
    for block in seen.order(lambda ready: ready[-1]):
        ideals.append(ideals[-1] | sum(1 << i for i in seen.members[block]))
    return ideals


@every_micro_batch
def run(instance: Instance, budget: Budget, linearize: bool = False) -> SolveResult:
    """The plan of least maximum load."""
    begin = time.process_time()
    ideals = prefixes(instance) if linearize else all_ideals(instance)
    if not ideals:
        reason = f"more than {IDEALS_LIMIT:,} ideals; --set linearize=true plans along one order"
        return SolveResult(Status.UNKNOWN, Stop.DONE, reason=reason)
    parts = Parts(instance, ideals)
    most = Counter(device.type for device in instance.devices)
    states = sorted(product(*(range(most[kind] + 1) for kind in parts.kinds)), key=sum)
    place = {state: k for k, state in enumerate(states)}
    before = [[(c, place[(*s[:c], s[c] - 1, *s[c + 1 :])]) for c in range(len(s)) if s[c]] for s in states]
    least = np.full((len(states), len(ideals)), NEVER, np.int64)
    least[:, 0] = 0
    for j in range(1, len(ideals)):
        if budget.exhausted:
            return result(instance, None, begin, finished=False)
        within, loads = parts.loads(j)
        for k, ways in enumerate(before):
            for c, earlier in ways:
                value = min(int(least[earlier, j]), int(np.maximum(least[earlier, within], loads[c]).min()))
                least[k, j] = min(int(least[k, j]), value)
    rows = _backtracked(parts, before, least)
    load = int(least[-1, -1]) * instance.seconds_per_tick if rows else None
    plan = _plan(instance, parts, rows)
    return report(budget, result(instance, plan, begin, ideals=len(ideals), max_load_s=load))


def _backtracked(parts: Parts, before: list[list[tuple[int, int]]], least: Array) -> list[tuple[int, int, int]]:
    """Parts of the best plan, the first one first: ideals in front and behind, class."""
    state, j, rows = len(before) - 1, len(parts.ideals) - 1, list[tuple[int, int, int]]()
    if least[state, j] >= NEVER:
        return []
    while j > 0:
        idle = next((earlier for _, earlier in before[state] if least[earlier, j] == least[state, j]), None)
        if idle is not None:
            state = idle
            continue
        within, loads = parts.loads(j)
        for c, earlier in before[state]:
            values = np.maximum(least[earlier, within], loads[c])
            if values.min() == least[state, j]:
                i = int(within[values.argmin()])
                rows.append((i, j, c))
                state, j = earlier, i
                break
    return rows[::-1]


def _plan(instance: Instance, parts: Parts, rows: list[tuple[int, int, int]]) -> Plan | None:
    if not rows:
        return None
    free = [[d for d, device in enumerate(instance.devices) if device.type == kind] for kind in parts.kinds]
    stages = []
    for i, j, c in rows:
        layers = tuple(np.flatnonzero(parts.members[j] & ~parts.members[i]).tolist())
        stages.append(Stage(layers=layers, devices=(free[c].pop(0),), shares=(parts.batch,)))
    if instance.graph is None:
        stages = [Stage(start=s.rows[0], stop=s.rows[-1] + 1, devices=s.devices, shares=s.shares) for s in stages]
    return Plan(micro_batch=parts.batch, stages=tuple(stages))
