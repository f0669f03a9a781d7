"""Arrays of an instance with one micro-batch size: what all exact methods compute stage costs from.

Devices are merged into *classes* of interchangeable ones: equal type, equal bandwidth to every third device, equal
weights held. (The relation is transitive, and the bandwidth inside a class is one number.) A group is then a vector of
counts per class, stored as its mixed-radix index, so that the index of a disjoint union is the sum of the indices.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mapgap.core import SolveResult, Status, Stop
from mapgap.problems.hybrid_pipeline import Instance, Plan, Stage
from mapgap.problems.hybrid_pipeline.evaluate import diagnose
from mapgap.problems.hybrid_pipeline.shared.tables import (
    Array,
    allreduce_fraction,
    lacking,
    prefix_sums,
    times_before,
    transfers,
)


def interchangeable(instance: Instance) -> list[list[int]]:
    """Devices by class, in the order of their first members."""
    held = None if instance.replanning is None else instance.replanning.held
    n = len(instance.devices)
    classes: list[list[int]] = []
    for d in range(n):
        for members in classes:
            e = members[0]
            same = instance.devices[d].type == instance.devices[e].type and (held is None or held[d] == held[e])
            links = zip(instance.bandwidth[d], instance.bandwidth[e], strict=True)
            if same and all(a == b for x, (a, b) in enumerate(links) if x not in (d, e)):
                members.append(d)
                break
        else:
            classes.append([d])
    return classes


@dataclass(frozen=True)
class Lowered:
    """One instance, one micro-batch size.

    Attributes
    ----------
    instance : Instance
    classes : list of list of int
        Devices by class.
    micro_batches, batch, rounds : int
        M, B and the factor of the latency in the objective.
    size : (C,)
    forward, backward, both : (C, L + 1, B + 1)
        Sums of the time tables over layers ``< l``, ticks, by class and share.
    state, activation, weights : (L + 1,)
        Sums over layers ``< l``: memory units, memory units per sample, bytes.
    room : (C,)
        Memory units.
    groups : (G, C)
        Counts per class of every group by index; group 0 is empty, the last one holds all devices.
    members : (G,)
        Devices in the group.
    comm : (W, L + 1)
        c: ticks of a communication step one way, by bandwidth level and cut.
    level : (G, G) or (1, 1)
        Bandwidth level between two disjoint groups; (1, 1) where all links are equal.
    reduce_num, reduce_den : (G,)
        ``T_a = ceil(weights * num / den)``.
    move : (C, L + 1, L + 1) or (C, 1, 1)
        Migration ticks of a member that is to hold layers ``[i, j)``; (C, 1, 1) without a failure.
    order : tuple of int, optional
        Restriction: every group is a run of this order of all devices, and stages follow it.
    """

    instance: Instance
    classes: list[list[int]]
    micro_batches: int
    batch: int
    rounds: int
    size: Array
    forward: Array
    backward: Array
    both: Array
    state: Array
    activation: Array
    weights: Array
    room: Array
    groups: Array
    members: Array
    comm: Array
    level: Array
    reduce_num: Array
    reduce_den: Array
    move: Array
    order: tuple[int, ...] = ()

    @property
    def layers(self) -> int:
        return len(self.state) - 1

    @property
    def uniform(self) -> bool:
        """All links have the same bandwidth, so the group behind a cut does not matter to it."""
        return self.level.shape == (1, 1)

    @cached_property
    def compatible(self) -> NDArray[np.bool_]:
        """(G, G): whether a group may stand in front of what another one, by row, has behind it.

        Both must fit into the devices; with an order the devices behind and those with the group must be ends of it.
        """
        fits: NDArray[np.bool_] = np.asarray((self.groups[:, None] + self.groups[None] <= self.size).all(axis=2))
        if self.order:
            of = {device: c for c, members in enumerate(self.classes) for device in members}
            place = np.append(np.cumprod((self.size + 1)[:0:-1])[::-1], 1)  # index of one device of each class
            ends = np.cumsum([0, *(place[of[device]] for device in reversed(self.order))])
            allowed = np.zeros_like(fits)
            for behind in ends:
                allowed[behind, ends[ends > behind] - behind] = True
            fits &= allowed
        return fits

    def kept(self, behind: int) -> int:
        """K of a stage with ``behind`` stages behind it."""
        return min(2 * behind + 1, self.micro_batches)

    def allreduce(self, start: int, stop: int, group: int) -> int:
        """T_a of a stage, ticks."""
        return -(
            -int(self.weights[stop] - self.weights[start]) * int(self.reduce_num[group]) // int(self.reduce_den[group])
        )

    def migration(self, start: int, stop: int, group: int) -> int:
        """Migration ticks of the slowest member of a stage."""
        if self.move.shape[1] == 1:
            return 0
        return max(int(self.move[c, start, stop]) for c in range(len(self.size)) if self.groups[group, c])

    def link(self, cut: int, group: int, behind: int) -> int:
        """c: ticks one way over a cut from a group to the one behind it."""
        level = self.level[0, 0] if self.uniform else self.level[group, behind]
        return int(self.comm[level, cut])

    def limits(self, start: int, stop: int, group: int, behind: int) -> tuple[int, int, int, dict[int, int]] | None:
        """Eqs. (7), (8) of a stage: ``(T, E_f, E_b, largest share by class)``; ``None`` where memory does not suffice.

        The largest shares keep all three limits; they add up to at least B.
        """
        present = [c for c in range(len(self.size)) if self.groups[group, c]]
        count = {c: int(self.groups[group, c]) for c in present}
        state = int(self.state[stop] - self.state[start])
        stored = self.kept(behind) * int(self.activation[stop] - self.activation[start])
        caps = {}
        for c in present:
            room = int(self.room[c]) - state
            if room < 0:
                return None
            caps[c] = self.batch if stored == 0 else min(self.batch, room // stored)
        if sum(count[c] * caps[c] for c in present) < self.batch:
            return None
        times = {
            c: [(table[c, stop] - table[c, start])[: caps[c] + 1] for table in (self.both, self.forward, self.backward)]
            for c in present
        }

        def fit(limits: tuple[int, int, int]) -> dict[int, int]:
            found = {}
            for c in present:
                places = [int(np.searchsorted(t, x, "right")) - 1 for t, x in zip(times[c], limits, strict=True)]
                found[c] = min(places)
            return found

        def enough(limits: tuple[int, int, int]) -> bool:
            return sum(count[c] * y for c, y in fit(limits).items()) >= self.batch

        values = [sorted({int(x) for c in present for x in times[c][k]}) for k in range(3)]
        most = 2**60
        total = _first(values[0], lambda x: enough((x, most, most)))
        best = (2 * most, 0)
        for ef in values[1]:
            if ef <= total and enough((total, ef, most)):

                def within(x: int, ef: int = ef) -> bool:
                    return enough((total, ef, x))

                best = min(best, (ef + _first(values[2], within), ef))
        ef, eb = best[1], best[0] - best[1]
        return total, ef, eb, fit((total, ef, eb))

    def stage_of(self, stage: Stage, behind: int) -> tuple[int, int, int] | None:
        """(start, stop, group) of a plan's stage; ``None`` if it has none here.

        It has none if its shares do not solve Eq. (7) as rule 6 has it, if it does not fit into the memory, and if its
        devices or layers are none of the instance's.
        """
        start, stop = stage.start, stage.stop
        of = {device: c for c, members in enumerate(self.classes) for device in members}
        inside = 0 <= start < stop <= self.layers and all(device in of for device in stage.devices)
        if not inside or len(set(stage.devices)) != len(stage.devices) or len(stage.shares) != len(stage.devices):
            return None
        counts = [0] * len(self.classes)
        for device in stage.devices:
            counts[of[device]] += 1
        group = int(np.flatnonzero((self.groups == counts).all(axis=1))[0])
        found = self.limits(start, stop, group, behind)
        if found is None or min(stage.shares) < 0 or sum(stage.shares) != self.batch:
            return None
        # Shares within these limits that add up to B solve Eq. (7), and take neither more nor less than E_f and E_b.
        nested = all(share <= found[3][of[device]] for device, share in zip(stage.devices, stage.shares, strict=True))
        return (start, stop, group) if nested else None

    def plan(self, stages: list[tuple[int, int, int]]) -> Plan:
        """The plan of ``(start, stop, group)`` triples in pipeline order, with devices and the shares of Eq. (7)."""
        free = [list(members) for members in self.classes]
        made = []
        for p, (start, stop, group) in enumerate(stages):
            found = self.limits(start, stop, group, len(stages) - 1 - p)
            assert found is not None
            left, chosen = self.batch, []
            for c in range(len(self.size)):
                for _ in range(int(self.groups[group, c])):
                    share = min(left, found[3][c])
                    chosen.append((free[c].pop(0), share))
                    left -= share
            chosen.sort()
            devices, shares = zip(*chosen, strict=True)
            made.append(Stage(start=start, stop=stop, devices=devices, shares=shares))
        return Plan(micro_batch=self.batch, stages=tuple(made))


def _first(values: list[int], test: Callable[[int], bool]) -> int:
    """Smallest of ascending ``values`` that passes a test which all later ones pass too; the last one passes."""
    low, high = 0, len(values) - 1
    while low < high:
        middle = (low + high) // 2
        if test(values[middle]):
            high = middle
        else:
            low = middle + 1
    return values[low]


def lower(instance: Instance, order: Sequence[int] = (), *, merge: bool = True) -> Lowered:
    """Arrays of an instance that allows one micro-batch size, with or without an order that groups must follow.

    Without ``merge`` every device is a class of its own.
    """
    (batch,) = instance.micro_batch_sizes
    classes = interchangeable(instance) if merge else [[d] for d in range(len(instance.devices))]
    kinds = [instance.device_type(members[0]) for members in classes]
    forward, backward = (
        np.stack(tables) for tables in zip(*(times_before(kind, batch) for kind in kinds), strict=True)
    )
    groups = np.array(list(product(*(range(len(members) + 1) for members in classes))), np.int64)
    links = _Links(instance, classes, groups)
    reduce_num, reduce_den = links.reduce()
    return Lowered(
        instance=instance,
        classes=classes,
        micro_batches=instance.mini_batch // batch,
        batch=batch,
        rounds=1 if instance.replanning is None else instance.replanning.rounds,
        size=np.array([len(members) for members in classes], np.int64),
        forward=forward,
        backward=backward,
        both=forward + backward,
        state=prefix_sums([layer.state_memory for layer in instance.layers]),
        activation=prefix_sums([layer.activation_memory for layer in instance.layers]),
        weights=prefix_sums([layer.weight_bytes for layer in instance.layers]),
        room=np.array([kind.memory for kind in kinds], np.int64),
        groups=groups,
        members=groups.sum(axis=1),
        comm=transfers(instance, batch, links.values),
        level=links.between(),
        reduce_num=reduce_num,
        reduce_den=reduce_den,
        move=_migration(instance, classes),
        order=tuple(order),
    )


def infeasible(instance: Instance, otherwise: str, **more: Any) -> SolveResult:
    """That no plan exists, with the simplest proof in words that there is, or ``otherwise``."""
    reason = "; ".join(diagnose(instance)) or otherwise
    return SolveResult(Status.INFEASIBLE, Stop.PROVED, reason=reason, **more)


class _Links:
    """Bandwidths between classes and groups."""

    def __init__(self, instance: Instance, classes: list[list[int]], groups: Array) -> None:
        self.instance, self.groups = instance, groups
        size = len(classes)
        self.pair = [[0] * size for _ in range(size)]
        for c, d in product(range(size), repeat=2):
            other = classes[d][0] if c != d else classes[d][-1]
            self.pair[c][d] = instance.bandwidth[classes[c][0]][other] if classes[c][0] != other else 0
        self.values = sorted({b for row in self.pair for b in row if b}) or [1]

    def between(self) -> Array:
        """(G, G) levels, (1, 1) where there is one only."""
        if len(self.values) == 1:
            return np.zeros((1, 1), np.int64)
        rank = {b: w for w, b in enumerate(self.values)} | {0: len(self.values) - 1}
        levels = np.full((len(self.groups), len(self.groups)), len(self.values) - 1, np.int64)
        present = self.groups > 0
        for c, row in enumerate(self.pair):
            for d, b in enumerate(row):
                both = present[:, c][:, None] & present[:, d][None]
                levels[both] = np.minimum(levels[both], rank[b])
        return levels

    def reduce(self) -> tuple[Array, Array]:
        """Fractions of AllReduce ticks per weight byte (Eq. 5), by group."""
        num, den = np.zeros(len(self.groups), np.int64), np.ones(len(self.groups), np.int64)
        for g, counts in enumerate(self.groups.tolist()):
            members = sum(counts)
            if members < 2:
                continue
            inside = [
                self.pair[c][d]
                for c in range(len(counts))
                for d in range(len(counts))
                if counts[c] and counts[d] and (c != d or counts[c] > 1)
            ]
            num[g], den[g] = allreduce_fraction(self.instance, members, min(inside))
        return num, den


def _migration(instance: Instance, classes: list[list[int]]) -> Array:
    """(C, L + 1, L + 1): ticks until one member of a class holds the weights of layers ``[i, j)`` (rule 11)."""
    if instance.replanning is None:
        return np.zeros((len(classes), 1, 1), np.int64)
    count = len(instance.layers)
    move = np.zeros((len(classes), count + 1, count + 1), np.int64)
    for c, (device, *_) in enumerate(classes):
        for source, sizes in lacking(instance, device).items():
            sums = prefix_sums(sizes)
            top, bottom = 10**9, instance.bandwidth[source][device] * instance.tick_ns
            shared = math.gcd(top, bottom)
            moved = -(-(sums[None] - sums[:, None]).clip(0) * (top // shared) // (bottom // shared))
            move[c] = np.maximum(move[c], moved)
    return move
