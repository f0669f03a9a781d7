"""Plans of one ratio from its chain of layers: a restricted decision diagram, then list scheduling.

Labels go along the chain (:mod:`~.chain_diagram`), but of each state only some are kept, those of least value and none
that is nearly as another one: what is left in the end is a path, which has a place for every operation of the chain
(Bergman, Cire, van Hoeve, Hooker, "Decision Diagrams for Optimization", 2016, ch. 4). The weights of the bound mix
paths, and say that all work can lie on one accelerator as long as other paths have it elsewhere. So a label is worth
the most that these say, or the weights of any accelerator alone. Operations beside the chain lie where something that
they read lies. Order: the operation that can start first, of these the one of the longest path to the end.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from mapgap.core import Budget
from mapgap.formulations.suboperation_mapping.chain_diagram import Diagram, Weighed, Weighing, Whole
from mapgap.formulations.suboperation_mapping.chain_kernels import gather, thin
from mapgap.formulations.suboperation_mapping.params import Stage as Params
from mapgap.heuristics.suboperation_mapping.heft import duration_on
from mapgap.problems.suboperation_mapping.certificate.chain import Chain
from mapgap.problems.suboperation_mapping.certificate.chain_weights import UNIT
from mapgap.problems.suboperation_mapping.lowered.arrays import Array, Lowered
from mapgap.problems.suboperation_mapping.lowered.mapped import Mapped

MOST = 1_000_000  #: moves that are looked at before the clock is: half a second or so


def chain_plans(
    diagram: Diagram, root: Weighed, goal: int, lowered: Lowered, params: Params, budget: Budget
) -> list[Mapped]:
    """Plans of the best end that labels lead to and of those that are nearly as good, one of each makespan.

    A state keeps ``params.beam`` labels, or as many as have ``params.labels`` moves in a step together. Plans may
    exceed the DRAM; there are none if time runs out. The weights of the root are made better as long as that goes,
    where a chain has few moves: the bound gains little by that, the plan much.
    """
    if len(diagram.moves.to) <= MOST:
        root = diagram.weights(goal, len(diagram.shared), (), root.point)
    found = dict[int, Mapped]()
    for chosen in paths(diagram, root.weighing, params, budget):
        if found and budget.exhausted:
            break
        plan = planned(diagram, chosen, lowered)
        found.setdefault(plan.makespan, plan)
    return [*found.values()]


def planned(diagram: Diagram, chosen: list[int], lowered: Lowered) -> Mapped:
    """The plan of a path."""
    known = dict(places(diagram, chosen))
    location = np.full(lowered.n, -1, np.int64)
    for o in lowered.topological:
        before = [location[p] for p in lowered.predecessors(o)]
        location[o] = known.get(lowered.operations[o], before[-1] if before else 0)
    sequence = listed(lowered, location)
    return Mapped(lowered, location, sequence, *lowered.timetable(location, sequence))


def paths(diagram: Diagram, weighing: Weighing, params: Params, budget: Budget) -> list[list[int]]:
    """The move of every step, of each label that ends first or nearly so; nothing if time runs out."""
    labels, back, every = diagram.root(), list[tuple[Whole, Whole]](), [weighing, *alone(diagram, weighing)]
    each = int(np.diff(diagram.first_move).max())  # moves of one label of every state
    width = max(1, min(params.beam, MOST // each), params.labels // each)
    for k in range(diagram.last):
        if budget.exhausted:
            return []
        rows, which = diagram.ways(k, labels)
        new, inner = diagram.after(k, labels), diagram.chain.inner(k + 1)
        ranked = every[:1] if inner else every  # the tail has no weights of one accelerator
        values: Whole = np.max([diagram.value(w, k + 1, new) for w in ranked], axis=0)
        order = np.empty(len(new), np.int64)
        gather(new, np.argsort(values), np.cumsum(np.append(0, np.bincount(new[:, 0]))), order)
        kept = np.zeros(len(order), np.bool_)
        close = int(params.apart * (int(values.min()) // UNIT))
        thin(np.ascontiguousarray(new[order]), width, close, inner, kept)
        those = order[kept]
        labels = new[those]
        back.append((rows[those], which[those]))
    ends, found = diagram.ends(labels), list[list[int]]()
    for i in np.argsort(ends, kind="stable"):
        if ends[i] > (1.0 + params.apart) * ends.min():
            break
        chosen, j = list[int](), int(i)
        for rows, which in reversed(back):
            chosen.append(int(which[j]))
            j = int(rows[j])
        found.append(chosen[::-1])
    return found


def alone(diagram: Diagram, weighing: Weighing) -> list[Weighing]:
    """For each accelerator, weights of what is left on it alone; none where nothing is fused."""
    head, *later = weighing.runs
    every = range(diagram.places if later else 0)
    return [
        diagram.weighing([head, *([step, UNIT, *(UNIT * (b == a) for b in every)] for step, *_ in later)])
        for a in every
    ]


def places(diagram: Diagram, chosen: list[int]) -> Iterator[tuple[Any, int]]:
    """Operations of the chain, and where they lie."""
    chain, state = diagram.chain, diagram.chain.origin
    for k, move in enumerate(chosen):
        step, number = chain.steps[k], int(diagram.numbers[k][move])
        state = chain.narrowed(k, number, True).moves(k, state)[0][0]
        kind, layer = step.func, step.args[1] if len(step.args) > 1 else None
        if kind in (Chain.spread, Chain.spread_alone, Chain.back, Chain.back_alone):
            phase, where = ("FP", state[0]) if kind in (Chain.spread, Chain.spread_alone) else ("BP", state[1])
            yield from (((phase, layer, b), a) for b, a in enumerate(where))
        if kind in (Chain.reach, Chain.begin, Chain.meet):
            yield ("FP", layer, -1), state[0]
        if kind in (Chain.close, Chain.join, Chain.meet):
            yield ("BP", layer, -1), state[1]
        if kind is Chain.update:
            yield ("WU", layer, step.keywords["b"]), number
        if kind is Chain.work:
            yield step.keywords["o"], number


def listed(lowered: Lowered, location: Array) -> Array:
    """The order of operations that have their places."""
    ticks = [duration_on(lowered, location, o, int(location[o])) for o in range(lowered.n)]
    after: list[list[int]] = [[] for _ in range(lowered.n)]
    before = [set(lowered.predecessors(o).tolist()) for o in range(lowered.n)]
    for o, those in enumerate(before):
        for p in those:
            after[p].append(o)
    rank = [0] * lowered.n
    for o in lowered.topological[::-1].tolist():
        rank[o] = ticks[o] + max((rank[s] for s in after[o]), default=0)
    free, ready = [0] * lowered.accelerators, {o: 0 for o in range(lowered.n) if not before[o]}
    end: dict[int, int] = {}
    while ready:
        start = {o: max(time, free[location[o]]) for o, time in ready.items()}
        o = min(ready, key=lambda o: (start[o], -rank[o]))
        del ready[o]
        end[o] = free[location[o]] = start[o] + ticks[o]
        for s in after[o]:
            if all(p in end for p in before[s]):
                ready[s] = max(end[p] for p in before[s])
    return np.array(list(end), np.int64)
