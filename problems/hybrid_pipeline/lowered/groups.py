"""Classes of devices that are alike, groups of them, and what may be put in front of a pipeline's suffix.

Devices are merged into *classes* of interchangeable ones: equal type, equal links to every third device, equal
weights held. (The relation is transitive, and all links inside a class are equal.) A group is then a vector of
counts per class.

A pipeline is built from its end. A *state* says which devices are left for the stages in front; a *move* puts a group
in front. Either every group of the devices left may be next (states and groups are all vectors of counts, by their
mixed-radix index, so that the index of a disjoint union is the sum of the indices), or the devices stand in an order,
groups are runs of it, and a state is the number of places that are passed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mapgap.problems.hybrid_pipeline.instance import Instance
from mapgap.problems.hybrid_pipeline.lowered.tables import Array

Ints = NDArray[np.int32]


class Moves(NamedTuple):
    """What may be put in front, by state: entries ``[first[s], first[s + 1])`` belong to state s.

    States are numbered so that a move leads to a larger one; in state 0 nothing is used.

    Attributes
    ----------
    first : (S + 1,)
    group, target : (V,)
        The group of the stage, and the state with it.
    left : (S,)
        Group of the devices left.
    """

    first: Array
    group: Ints
    target: Ints
    left: Array


def interchangeable(instance: Instance) -> list[list[int]]:
    """Devices by class, in the order of their first members."""
    held = None if instance.replanning is None else instance.replanning.held
    n = len(instance.devices)
    classes: list[list[int]] = []
    for d in range(n):
        for members in classes:
            e = members[0]
            same = instance.devices[d].type == instance.devices[e].type and (held is None or held[d] == held[e])
            squares = [instance.bandwidth, *([instance.latency_ns] if instance.latency_ns else [])]
            if same and all(square[d][x] == square[e][x] for square in squares for x in range(n) if x not in (d, e)):
                members.append(d)
                break
        else:
            classes.append([d])
    return classes


def all_groups(classes: list[list[int]]) -> Array:
    """Every vector of counts, by its mixed-radix index."""
    sizes = [len(members) + 1 for members in classes]
    return np.ascontiguousarray(np.indices(sizes).reshape(len(sizes), -1).T.astype(np.int64))


def groups_along(classes: list[list[int]], order: Sequence[int]) -> Array:
    """The empty group and every run of the order."""
    of = {device: c for c, members in enumerate(classes) for device in members}
    found = np.zeros((len(order) * (len(order) + 1) // 2 + 1, len(classes)), np.int64)
    for k, (a, b) in enumerate(runs(len(order)), 1):
        for device in order[a:b]:
            found[k, of[device]] += 1
    return found


def moves_anywhere(groups: Array, replication: bool) -> Moves:
    """Any group of the devices left: those of the first half of the classes times those of the other."""
    size, count = groups[-1].tolist(), len(groups)
    front, back = _within(size[: len(size) // 2]), _within(size[len(size) // 2 :])
    single, small = groups.sum(axis=1) == 1, len(back)
    found = []
    for used in range(count):
        a, b = divmod(count - 1 - used, small)
        group = (front[a][:, None] * np.int32(small) + back[b]).ravel()[1:]
        found.append(group if replication else group[single[group]])
    lengths = np.array([len(group) for group in found])
    group = np.concatenate(found)
    del found
    target = np.repeat(np.arange(count, dtype=np.int32), lengths)
    target += group
    return Moves(np.concatenate([[0], lengths.cumsum()]), group, target, np.arange(count - 1, -1, -1))


def _within(size: list[int]) -> list[Ints]:
    """By the index of a vector of counts, those of all vectors inside it, ascending."""
    every = np.array(list(product(*(range(most + 1) for most in size))))
    return [np.flatnonzero((every <= most).all(axis=1)).astype(np.int32) for most in every]


def moves_along(n: int, skip: bool, replication: bool) -> Moves:
    """Runs of an order of n devices, from its end; with ``skip`` places in between may stay idle."""
    number = {(a, b): k for k, (a, b) in enumerate(runs(n), 1)}
    first, group, target = [0], [], []
    for passed in range(n + 1):
        ends = range(n - passed, 0, -1) if skip else range(n - passed, max(0, n - passed - 1), -1)
        for b in ends:
            longest = 0 if replication else b - 1
            for a in range(b - 1, longest - 1, -1):
                group.append(number[a, b])
                target.append(n - a)
        first.append(len(group))
    left = np.array([number.get((0, n - passed), 0) for passed in range(n + 1)], np.int64)
    return Moves(np.array(first, np.int64), np.array(group, np.int32), np.array(target, np.int32), left)


def runs(count: int) -> list[tuple[int, int]]:
    """The runs ``[a, b)`` of so many places, by the index of their group less one."""
    return [(a, b) for b in range(1, count + 1) for a in range(b)]


def group_count(instance: Instance) -> int:
    """How many groups there are, the empty one among them: product of (devices + 1) over the classes."""
    return math.prod(len(members) + 1 for members in interchangeable(instance))


def move_count(instance: Instance) -> int:
    """How many moves there are without an order: product of (n + 1) (n + 2) / 2 over the classes of n devices."""
    return math.prod((len(members) + 1) * (len(members) + 2) // 2 for members in interchangeable(instance))
