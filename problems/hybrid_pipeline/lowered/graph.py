"""Graphs of layers (rules 15 to 17): blocks that no stage takes apart, orders of them, and the chain along an order.

A *block* is a set of layers that lie in one stage of every plan: the co-location classes, and what lies on a cycle once
they are contracted (a layer between two of one class is in their stage, too). Blocks form a graph without cycles.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pydantic import ValidationError

from mapgap.core import InputError, SolveResult, Status, Stop
from mapgap.problems.hybrid_pipeline.evaluate import evaluate
from mapgap.problems.hybrid_pipeline.instance import Instance, Layer, Plan, Stage

ORDER = "optimal along this order of the layers"
"""What an exact method proves that sees one order of a graph only."""


@dataclass(frozen=True)
class Blocks:
    """Blocks in a topological order.

    Attributes
    ----------
    members : tuple of tuple of int
        Layers by block.
    after : tuple of frozenset of int
        By block, those that read it.
    tensors, gradients : tuple of (tuple of int, int)
        The blocks that make or read a tensor, two at least, and its bytes per sample; equal ones are added up.
    """

    members: tuple[tuple[int, ...], ...]
    after: tuple[frozenset[int], ...]
    tensors: tuple[tuple[tuple[int, ...], int], ...]
    gradients: tuple[tuple[tuple[int, ...], int], ...]

    def __len__(self) -> int:
        return len(self.members)

    @property
    def before(self) -> tuple[frozenset[int], ...]:
        """By block, those that it reads."""
        found: list[set[int]] = [set() for _ in self.members]
        for u, readers in enumerate(self.after):
            for v in readers:
                found[v].add(u)
        return tuple(map(frozenset, found))

    def order(self, choose: Callable[[list[int]], int] = min) -> list[int]:
        """A topological order; ``choose`` takes the next of the blocks that may come."""
        waiting = [len(each) for each in self.before]
        ready, found = [b for b, count in enumerate(waiting) if count == 0], list[int]()
        while ready:
            block = choose(ready)
            ready.remove(block)
            found.append(block)
            for v in sorted(self.after[block]):
                waiting[v] -= 1
                if waiting[v] == 0:
                    ready.append(v)
        return found


def blocks(instance: Instance, joined: Iterable[tuple[int, int]] = ()) -> Blocks:
    """The blocks of an instance; ``joined`` are further pairs of layers in one stage."""
    count = len(instance.layers)
    root = list(range(count))

    def find(i: int) -> int:
        while root[i] != i:
            root[i] = root[root[i]]
            i = root[i]
        return i

    def join(group: Sequence[int]) -> None:
        for i in group[1:]:
            a, b = sorted((find(group[0]), find(i)))
            root[b] = a

    for group in (*(instance.graph.together if instance.graph is not None else ()), *joined):
        join(group)
    edges = instance.edges
    while (order := _sorted({find(i) for i in range(count)}, {(find(u), find(v)) for u, v in edges})) is None:
        for cycle in _cycles(sorted({find(i) for i in range(count)}), {(find(u), find(v)) for u, v in edges}):
            join(cycle)
    place = {layer: k for k, layer in enumerate(order)}
    members: list[list[int]] = [[] for _ in order]
    for i in range(count):
        members[place[find(i)]].append(i)
    after: list[set[int]] = [set() for _ in order]
    for u, v in edges:
        a, b = place[find(u)], place[find(v)]
        if a != b:
            after[a].add(b)
    moved = []
    for gradients in (False, True):
        sizes: dict[tuple[int, ...], int] = {}
        for each in instance.tensors(gradients=gradients):
            known = tuple(sorted({place[find(i)] for i in each.layers}))
            if len(known) > 1 and each.size:
                sizes[known] = sizes.get(known, 0) + each.size
        moved.append(tuple(sorted(sizes.items())))
    return Blocks(tuple(map(tuple, members)), tuple(map(frozenset, after)), moved[0], moved[1])


def _sorted(nodes: set[int], edges: set[tuple[int, int]]) -> list[int] | None:
    """A topological order, the smallest first; ``None`` if there is a cycle."""
    readers: dict[int, list[int]] = {node: [] for node in nodes}
    waiting = dict.fromkeys(nodes, 0)
    for u, v in edges:
        if u != v:
            readers[u].append(v)
            waiting[v] += 1
    heap = sorted(node for node, count in waiting.items() if count == 0)
    found = []
    while heap:
        node = heapq.heappop(heap)
        found.append(node)
        for v in readers[node]:
            waiting[v] -= 1
            if waiting[v] == 0:
                heapq.heappush(heap, v)
    return found if len(found) == len(nodes) else None


def _cycles(nodes: list[int], edges: set[tuple[int, int]]) -> list[list[int]]:
    """Strongly connected components of two nodes at least, by the transitive closure (a bit per node)."""
    place = {node: k for k, node in enumerate(nodes)}
    reach = [1 << k for k in range(len(nodes))]
    for u, v in edges:
        reach[place[u]] |= 1 << place[v]
    for k, own in enumerate(reach):
        for i, bits in enumerate(reach):
            if bits >> k & 1:
                reach[i] = bits | own
    groups: dict[int, list[int]] = {}
    for i, node in enumerate(nodes):
        first = next(j for j in range(len(nodes)) if reach[i] >> j & 1 and reach[j] >> i & 1)
        groups.setdefault(first, []).append(node)
    return [group for group in groups.values() if len(group) > 1]


def orders(found: Blocks, count: int, seed: int) -> list[list[int]]:
    """Different topological orders: the first one, depth first, then depth first with random choices."""
    rng, made = random.Random(seed), list[list[int]]()
    choices: list[Callable[[list[int]], int]] = [min, lambda ready: ready[-1], lambda ready: ready[0]]
    choices += [lambda ready: ready[-1 - min(len(ready) - 1, int(rng.expovariate(1.0)))]] * count
    for choose in choices[:count]:
        order = found.order(choose)
        if order not in made:
            made.append(order)
    return made


def chain_along(instance: Instance, found: Blocks, order: Sequence[int]) -> Instance:
    """The chain of blocks along an order: plans of it are plans of the graph, by :func:`on_graph`.

    It has the values of the graph where transfers are steps, loads of both sides or free; tensors that stages pay for
    one by one are charged as loads instead, which is never less but for hosts. A layer that a type does not support
    takes longer there than all other layers anywhere.

    Raises
    ------
    InputError
        The sums are too large then.
    """
    place = {block: k for k, block in enumerate(order)}
    crossing = [0] * (len(order) + 1)
    for known, size in found.tensors:
        ends = [place[b] for b in known]
        crossing[min(ends)] += size
        crossing[max(ends)] -= size
    for k in range(1, len(crossing)):
        crossing[k] += crossing[k - 1]
    rows = [found.members[b] for b in order]
    worst = sum(
        max(kind.forward[i][-1] + kind.backward[i][-1] for kind in instance.types) for i in range(len(instance.layers))
    )

    def table(t: int, times: tuple[tuple[int, ...], ...]) -> tuple[tuple[int, ...], ...]:
        made = []
        for members in rows:
            sums = tuple(map(sum, zip(*(times[i] for i in members), strict=True)))
            able = all(instance.supports(t, i) for i in members)
            made.append(sums if able else (worst + 1,) * len(sums))
        return tuple(made)

    kinds = [
        kind.model_copy(
            update={"forward": table(t, kind.forward), "backward": table(t, kind.backward), "quartiles": None}
        )
        for t, kind in enumerate(instance.types)
    ]
    how = instance.execution.communication
    rules = instance.execution.model_copy(update={"communication": "load" if how == "tensors" else how})
    layers = instance.layers
    chain = [
        Layer(
            name=layers[members[0]].name,
            output_bytes=size,
            weight_bytes=sum(layers[i].weight_bytes for i in members),
            state_memory=sum(layers[i].state_memory for i in members),
            activation_memory=sum(layers[i].activation_memory for i in members),
            flops=sum(layers[i].flops for i in members),
        )
        for members, size in zip(rows, crossing, strict=False)
    ]
    try:
        return instance.changed(graph=None, types=tuple(kinds), layers=tuple(chain), execution=rules)
    except ValidationError as error:
        raise InputError("; ".join(each["msg"] for each in error.errors(include_url=False))) from error


def on_graph(plan: Plan, found: Blocks, order: Sequence[int]) -> Plan:
    """The plan of a chain along an order, as sets of layers."""
    stages = [
        Stage(
            layers=tuple(sorted(i for k in range(stage.start, stage.stop) for i in found.members[order[k]])),
            devices=stage.devices,
            shares=stage.shares,
        )
        for stage in plan.stages
    ]
    return Plan(micro_batch=plan.micro_batch, stages=tuple(stages))


def restricted(instance: Instance) -> tuple[Instance, Callable[[SolveResult], SolveResult]]:
    """The chain along the first order, and how its results are results of the graph.

    A plan is judged by the evaluator; a proof for the order bounds nothing on the graph.

    Raises
    ------
    InputError
        No chain can say what the graph does.
    """
    found = blocks(instance)
    order = list(range(len(found)))
    try:
        chain = chain_along(instance, found, order)
    except InputError as error:
        text = "the layers form a graph, and the chain along an order of them is none that can be planned"
        raise InputError(f"{text}: {error}") from error

    def back(result: SolveResult) -> SolveResult:
        notes: dict[str, Any] = {**result.notes, "order": "one order of the layers"}
        if not isinstance(result.plan, Plan):
            return SolveResult(Status.UNKNOWN, Stop.DONE, reason=f"no plan along one order: {result.reason}")
        plan = on_graph(result.plan, found, order)
        judged = evaluate(instance, plan)
        if judged.violations:
            return SolveResult(Status.UNKNOWN, Stop.DONE, reason=f"along one order: {judged.violations[0]}")
        exact = result.status is Status.OPTIMAL and instance.execution.communication != "tensors"
        reason = ORDER if exact else "planned along one order of the layers"
        stop = Stop.DONE if result.status is Status.OPTIMAL else result.stop
        return replace(
            result,
            status=Status.FEASIBLE,
            stop=stop,
            plan=plan,
            bound=None,
            claimed=None,
            enumerated=False,
            reason=reason,
            notes=notes,
        )

    return chain, back
