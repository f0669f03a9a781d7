"""Compiled: Pareto labels along the lattice of sets, from the empty end of a pipeline to all blocks."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mapgap.formulations.hybrid_pipeline.ideals.lattice import Lattice, Tensors, step
from mapgap.formulations.hybrid_pipeline.label.stages import least_cost, stage_cost
from mapgap.formulations.hybrid_pipeline.label.tables import Stages
from mapgap.kernels import Flags, Integer, Integers, Integers2, kernel

ADDED = 0
"""Places of ``Labels.at``: labels, the best value (the upper bound at first), its label, pairs of sets looked at."""
BEST, LABEL, PAIRS = 1, 2, 3


class Costs(NamedTuple):
    """What a stage and a cut take besides the work of the members; by set.

    Attributes
    ----------
    lacking : (C, N)
        Blocks of the set that a class does not support.
    comm : (W, N)
        Ticks of a step of communication one way, by bandwidth level.
    load : (N,)
        Ticks one way that both stages at the border pay.
    weights : (N,)
    reduce_num, reduce_den : (G,)
        As in ``lowered.Lowered``.
    every_step : int
        The AllReduce is part of E_b.
    hosts : (G,)
        Groups that pay for no tensor.
    single : int
        1 if stages pay for tensors one by one; a byte per sample then takes ``num / den`` ticks.
    num, den : int
    area : (N,)
        Work that is left outside of the set, in parts of what a device does in a tick.
    """

    lacking: Integers2
    comm: Integers2
    load: Integers
    weights: Integers
    reduce_num: Integers
    reduce_den: Integers
    every_step: Integer
    hosts: Flags
    single: Integer
    num: Integer
    den: Integer
    area: Integers


class Steps(NamedTuple):
    """States of the devices, and what may be put in front: entries ``[first[s], first[s + 1])`` of state s.

    Attributes
    ----------
    first, group, target, level : (S + 1,), (V,), (V,), (V,)
        The group of the stage, the state with it, the bandwidth level between it and the stage behind.
    kept : (S,)
        K of a stage in front of such a suffix.
    left : (S,)
        What the devices left do in a tick, in the parts of ``Costs.area``.
    complete : (S,)
        States that a pipeline may end in.
    asked : (G,)
        Groups of some move.
    """

    first: Integers
    group: Integers
    target: Integers
    level: Integers
    kept: Integers
    left: Integers
    complete: Flags
    asked: Flags


class Rule(NamedTuple):
    """The objective (``lowered.Form``); ``allreduce``: 1 if an AllReduce ends the round and counts."""

    busy: Integer
    aligned: Integer
    ways: Integer
    excess: Integer
    drain: Integer
    allreduce: Integer


class Labels(NamedTuple):
    """Labels in lists by set and state.

    Attributes
    ----------
    head : (N, S)
        The first one, -1 for none.
    pool : (P, 6)
        D, A, the next one of the list, the label behind, set, group.
    at : (4,)
    """

    head: Integers2
    pool: Integers2
    at: Integers


@kernel("b1(Labels,Rule,i8,i8,i8,i8,i8,i8,i8)", Labels, Rule)
def enter(
    labels: Labels, rule: Rule, d: int, a: int, node: int, state: int, behind: int, group: int, full: int
) -> bool:
    """Add a label unless another one of its place is as good in D and A; dominated ones go. False: no room is left."""
    head, pool, at = labels
    k, before = head[node, state], -1
    while k >= 0:
        if pool[k, 0] <= d and pool[k, 1] <= a:
            return True
        if pool[k, 0] >= d and pool[k, 1] >= a:
            if before < 0:
                head[node, state] = pool[k, 2]
            else:
                pool[before, 2] = pool[k, 2]
        else:
            before = k
        k = pool[k, 2]
    new = at[ADDED]
    if new == len(pool):
        return False
    pool[new, 0], pool[new, 1], pool[new, 2], pool[new, 3] = d, a, head[node, state], behind
    pool[new, 4], pool[new, 5] = node, group
    head[node, state] = new
    at[ADDED] = new + 1
    if full:
        at[BEST], at[LABEL] = d + a, new
    return True


@kernel(
    "i8(Lattice,Tensors,Tensors,Stages,Costs,Steps,Rule,Labels,i8[::1],i8[::1],i8,i8)",
    Lattice,
    Tensors,
    Tensors,
    Stages,
    Costs,
    Steps,
    Rule,
    Labels,
)
def advance(
    lattice: Lattice,
    tensors: Tensors,
    gradients: Tensors,
    stages: Stages,
    costs: Costs,
    steps: Steps,
    rule: Rule,
    labels: Labels,
    stamp: Integers,
    queue: Integers,
    begin: int,
    work: int,
) -> int:
    """Extend the labels of sets from ``begin`` on, until so many pairs were looked at; the next set to extend.

    A negative answer -1 - i: there was no room for more labels at set i, which is to be extended once more. Sets that
    grow from a set are looked at as long as some group could take the difference below the best value: the work of a
    group never falls with the stage.
    """
    bits, full = lattice.bits, len(lattice.parent) - 1
    states, groups, classes = len(steps.kept), len(stages.groups), stages.groups.shape[1]
    scratch = np.zeros((4, classes), np.int64)
    opened = np.zeros(groups, np.bool_)
    cost = np.zeros((groups, 2), np.int64)
    paid = np.zeros((len(queue), 2), np.int64)
    at, pool = labels.at, labels.pool
    factor, until = max(1, rule.busy + rule.drain), at[PAIRS] + work
    for u in range(begin, full):
        present = False
        for s in range(states):
            if labels.head[u, s] >= 0:
                present = True
                break
        if not present:
            continue
        if at[PAIRS] >= until:
            return u
        queue[0], stamp[u] = u, u
        paid[0, 0], paid[0, 1] = 0, 0
        last, here = 1, 0
        while here < last:
            grown = queue[here]
            here += 1
            for k in range(lattice.first[grown], lattice.first[grown + 1]):
                v = lattice.child[k]
                if stamp[v] == u:
                    continue
                stamp[v] = u
                at[PAIRS] += 1
                limit = (at[BEST] - 1) // factor
                some = False
                for g in range(1, groups):
                    opened[g] = False
                    if not steps.asked[g]:
                        continue
                    able, kinds = True, 0
                    for c in range(classes):
                        if stages.groups[g, c] > 0:
                            kinds += 1
                            if costs.lacking[c, v] > costs.lacking[c, u]:
                                able = False
                                break
                    if not able:
                        continue
                    if kinds > 1:
                        ef, eb = least_cost(stages, stages.groups[g], u, v, 1, scratch)
                    else:
                        ef, eb = stage_cost(stages, stages.groups[g], u, v, 1, scratch)
                    if ef >= 0 and ef + eb <= limit:
                        opened[g] = some = True
                if not some:
                    continue
                queue[last] = v
                if costs.single > 0:
                    paid[last, 0] = paid[here - 1, 0] + step(tensors, bits, grown, u, lattice.element[k])
                    paid[last, 1] = paid[here - 1, 1] + step(gradients, bits, grown, u, lattice.element[k])
                last += 1
                for s in range(states):
                    if labels.head[u, s] < 0:
                        continue
                    known = -1
                    for m in range(steps.first[s], steps.first[s + 1]):
                        g, t = steps.group[m], steps.target[m]
                        if not opened[g] or (v == full and not steps.complete[t]):
                            continue
                        if costs.area[v] > steps.left[t] * limit:
                            continue
                        if known != g:
                            ef, eb = stage_cost(stages, stages.groups[g], u, v, steps.kept[s], scratch)
                            known = g
                            if ef >= 0:
                                moved = costs.load[u] + costs.load[v]
                                ef += moved
                                eb += moved * (rule.ways - 1)
                                if costs.single > 0 and not costs.hosts[g]:
                                    ef += -(-paid[last - 1, 0] * costs.num // costs.den)
                                    if rule.ways == 2:
                                        eb += -(-paid[last - 1, 1] * costs.num // costs.den)
                            cost[g, 0], cost[g, 1] = ef, eb
                        ef, eb = cost[g, 0], cost[g, 1]
                        if ef < 0:
                            continue
                        ta = 0
                        if costs.reduce_num[g] > 0:
                            ta = -(-(costs.weights[v] - costs.weights[u]) * costs.reduce_num[g] // costs.reduce_den[g])
                            if costs.every_step > 0:
                                eb += ta
                                ta = 0
                            elif rule.allreduce == 0:
                                ta = 0
                        c, e = costs.comm[steps.level[m], u], ef + eb
                        label = labels.head[u, s]
                        while label >= 0:
                            d = max(
                                rule.busy * e,
                                rule.busy * rule.ways * c + rule.aligned * e,
                                rule.aligned * (e + rule.ways * c) + pool[label, 0],
                            )
                            a = max(ta, pool[label, 1] - rule.excess * (eb + c)) + rule.drain * (e + rule.ways * c)
                            if d + a < at[BEST] and not enter(labels, rule, d, a, v, t, label, g, v == full):
                                return -1 - u
                            label = pool[label, 2]
    return full
