"""Arrays of an instance with one micro-batch size: what label searches and models compute stage costs from."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mapgap.core import SolveResult, Status, Stop
from mapgap.problems.hybrid_pipeline.evaluate import diagnose, warm_up
from mapgap.problems.hybrid_pipeline.instance import Instance, Plan, Stage
from mapgap.problems.hybrid_pipeline.lowered.groups import (
    Moves,
    all_groups,
    groups_along,
    interchangeable,
    moves_along,
    moves_anywhere,
)
from mapgap.problems.hybrid_pipeline.lowered.tables import (
    Array,
    allreduce_fraction,
    lacking,
    ordered,
    prefix_sums,
    times_before,
    transfers,
)

Ints = NDArray[np.int32]


class Form(NamedTuple):
    """The objective ``R (D + A) + G`` as a recursion over suffixes of a pipeline.

    A stage (E = E_f + E_b, T_a) with a step of c ticks each way behind it is put in front of a suffix (D, A)::

        D' = max(busy E, busy ways c + aligned E, aligned (E + ways c) + D)
        A' = max(T_a, A - excess (E_b + c)) + drain (E + ways c)

    On one medium a suffix also has what a micro-batch takes of it, ``W' = W + ways c`` and what the stage takes; of a
    whole pipeline D is ``max(D, busy W + aligned E)``, and ``A' = T_a + max(0, A - E_b - c)`` in a round (rule 18).

    Attributes
    ----------
    busy : int
        Micro-batches that a step works on, in D: M for the latency of a round, M - 1 of a flow shop (rule 13; the other
        one is in A), 1 for the bottleneck.
    aligned : int
        1 if steps in front delay a step (a round).
    ways : int
        2 in training, where gradients return; 1 in inference.
    excess : int
        1 if an AllReduce may run while others still work (a round).
    drain : int
        1 if A is the time of one micro-batch through all steps (latency of a flow shop).
    turns : int
        1 on one medium.
    """

    busy: int
    aligned: int
    ways: int
    excess: int
    drain: int
    turns: int

    @classmethod
    def of(cls, instance: Instance, micro_batches: int) -> Form:
        """The recursion of an instance."""
        rules = instance.execution
        ways = 2 if rules.training else 1
        if instance.objective == "bottleneck":
            return cls(1, 0, ways, 0, 0, int(instance.in_turn))
        if rules.training and rules.latency == "round":
            return cls(micro_batches, 1, ways, 1, 0, int(instance.in_turn))
        return cls(micro_batches - 1, 0, ways, 0, 1, int(instance.in_turn))

    @property
    def factor(self) -> int:
        """D + A is at least this many times every E and every ``ways c``."""
        return self.busy + self.drain


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
        Counts per class of every group by index; group 0 is empty. Without an order the last one holds all devices.
    members : (G,)
        Devices in the group.
    comm : (W, L + 1)
        c: ticks of a communication step one way, by level of the link and cut. The last level is the best one.
    level : (G, G) or (1, 1)
        Level of the link between two disjoint groups; (1, 1) where all links are equal, and where only ``near`` counts.
    near : (C, G)
        Level of the link between one device of a class and a group: a stage of that class and others is no nearer.
    reduce_num, reduce_den, reduce_add : (G,)
        ``T_a = ceil((weights * num + add) / den)``, 0 without weights; part of E_b unless
        ``instance.execution.allreduce`` is "round".
    move : (C, L + 1, L + 1) or (C, 1, 1)
        Migration ticks of a member that is to hold layers ``[i, j)``; (C, 1, 1) without a failure.
    form : Form
        The objective.
    rates, late : list of int
        Bytes per second, and nanoseconds of latency, by level of the link.
    load : (L + 1,)
        c that is part of the load of the stages on both sides of a cut, ticks; else 0.
    order : tuple of int, optional
        Restriction: every group is a run of this order of devices, and stages follow it.
    skip : bool
        With an order: places may be passed without a stage.
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
    level: NDArray[np.int16]
    near: NDArray[np.int16]
    reduce_num: Array
    reduce_den: Array
    reduce_add: Array
    move: Array
    form: Form
    load: Array
    rates: list[int]
    late: list[int]
    order: tuple[int, ...] = ()
    skip: bool = False

    @property
    def layers(self) -> int:
        return len(self.state) - 1

    @property
    def uniform(self) -> bool:
        """All links are equal, so the group behind a cut does not matter to it."""
        return self.level.shape == (1, 1)

    @cached_property
    def moves(self) -> Moves:
        """All moves, without those onto groups that no stage may have."""
        replication = self.instance.execution.replication
        if self.order:
            return moves_along(len(self.order), self.skip, replication)
        return moves_anywhere(self.groups, replication)

    def complete(self, everyone: bool) -> NDArray[np.bool_]:
        """(S,): states that a whole pipeline may end in."""
        states = len(self.moves.left)
        found = np.zeros(states, np.bool_)
        found[-1 if everyone else 1 :] = True
        return found

    def compatible(self, group: int, other: int) -> bool:
        """Whether the devices suffice for two groups (without an order)."""
        return bool((self.groups[group] + self.groups[other] <= self.size).all())

    def kept(self, behind: int) -> int:
        """K of a stage with ``behind`` stages behind it."""
        return warm_up(behind, self.micro_batches, self.instance.execution)

    @property
    def levels(self) -> int:
        """Stages behind from which K stays the same, at most those there can be."""
        most = min(int(self.size.sum()), self.layers)
        return next((q for q in range(most) if self.kept(q) == self.kept(most)), most - 1)

    def reduced(self, start: int, stop: int, group: int) -> int:
        """T_a of Eq. (5), ticks of one AllReduce."""
        weights = int(self.weights[stop] - self.weights[start])
        moved = weights * int(self.reduce_num[group]) + int(self.reduce_add[group])
        return -(-moved // int(self.reduce_den[group])) if weights else 0

    @property
    def overflows(self) -> bool:
        """AllReduce products beyond 64 bits, which compiled searches do not compute."""
        most = int(self.weights[-1]) * int(self.reduce_num.max(initial=0)) + int(self.reduce_add.max(initial=0))
        return most >= 2**62

    @property
    def every_step(self) -> bool:
        """An AllReduce is part of every backward pass."""
        return self.instance.execution.allreduce != "round"

    def allreduce(self, start: int, stop: int, group: int) -> int:
        """Ticks of the AllReduce that ends the round; 0 where there is none or the objective does not count it."""
        return 0 if self.every_step or not self.form.excess else self.reduced(start, stop, group)

    def charged(self, start: int, stop: int, group: int, ef: int, eb: int) -> tuple[int, int]:
        """E_f and E_b with the transfers and the AllReduce that the execution makes part of them."""
        moved = int(self.load[start] + self.load[stop])
        ef += moved
        eb += moved * (self.form.ways - 1)
        return ef, eb + (self.reduced(start, stop, group) if self.every_step else 0)

    def taken(self, start: int, stop: int, group: int) -> int:
        """Ticks of the one medium that a micro-batch takes for a stage, but for the step behind it."""
        if not self.form.turns:
            return 0
        moved = self.form.ways * int(self.load[stop])
        return moved + (self.reduced(start, stop, group) if self.every_step else 0)

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
            c: [(t[c, stop] - t[c, start])[: caps[c] + 1].tolist() for t in (self.both, self.forward, self.backward)]
            for c in present
        }

        def fit(total: int, ef: int, eb: int) -> dict[int, int]:
            return {
                c: min(bisect_right(both, total), bisect_right(forward, ef), bisect_right(backward, eb)) - 1
                for c, (both, forward, backward) in times.items()
            }

        def enough(total: int, ef: int, eb: int) -> bool:
            return sum(count[c] * y for c, y in fit(total, ef, eb).items()) >= self.batch

        totals, forwards, backwards = (sorted({x for c in present for x in times[c][k]}) for k in range(3))
        most = 2**60
        total = totals[bisect_left(totals, True, key=lambda limit: enough(limit, most, most))]
        best, last = (2 * most, 0), len(backwards) - 1
        for ef in forwards:  # a larger one never asks for a larger E_b
            if ef > total or not enough(total, ef, backwards[last]):
                continue
            while last > 0 and enough(total, ef, backwards[last - 1]):
                last -= 1
            best = min(best, (ef + backwards[last], ef))
        ef, eb = best[1], best[0] - best[1]
        return total, ef, eb, fit(total, ef, eb)

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
        places = np.flatnonzero((self.groups == counts).all(axis=1))
        if not len(places):
            return None
        group = int(places[0])
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


def lower(
    instance: Instance, order: Sequence[int] = (), *, skip: bool = False, merge: bool = True, pairs: bool = True
) -> Lowered:
    """Arrays of an instance that allows one micro-batch size, with or without an order that groups must follow.

    Without ``merge`` every device is a class of its own. Without ``pairs`` there is no ``level`` for each
    pair of groups, unless transfers are parallel: readers take ``near``.
    """
    (batch,) = instance.micro_batch_sizes
    classes = interchangeable(instance) if merge else [[d] for d in range(len(instance.devices))]
    kinds = [instance.device_type(members[0]) for members in classes]
    forward, backward = (
        np.stack(tables) for tables in zip(*(times_before(kind, batch) for kind in kinds), strict=True)
    )
    if not instance.execution.training:
        backward = np.zeros_like(backward)
    groups = groups_along(classes, order) if order else all_groups(classes)
    links = _Links(instance, classes, groups, pairs)
    reduce_num, reduce_den, reduce_add = links.reduce()
    charge = instance.execution.communication
    comm = transfers(instance, batch, links.rates, links.late)
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
        comm=comm if charge == "step" else np.zeros_like(comm),
        level=links.level,
        near=links.near,
        reduce_num=reduce_num,
        reduce_den=reduce_den,
        reduce_add=reduce_add,
        move=migration(instance, classes),
        form=Form.of(instance, instance.mini_batch // batch),
        load=comm[0] if charge == "load" else np.zeros_like(comm[0]),
        rates=links.rates,
        late=links.late,
        order=tuple(order),
        skip=skip,
    )


def infeasible(instance: Instance, otherwise: str, **more: Any) -> SolveResult:
    """That no plan exists, with the simplest proof in words that there is, or ``otherwise``."""
    reason = "; ".join(diagnose(instance)) or otherwise
    return SolveResult(Status.INFEASIBLE, Stop.PROVED, reason=reason, **more)


class _Links:
    """Links between classes and groups: a bandwidth and a latency each.

    Where of any two links one is no worse in both, levels are links, the best one last; then ``near`` says what a group
    is to a device. Elsewhere, and where transfers are parallel, every pair of groups has a level of its own, and
    ``near`` the last one, which no link is better than.
    """

    def __init__(self, instance: Instance, classes: list[list[int]], groups: Array, pairs: bool) -> None:
        self.instance, self.groups, n = instance, groups, len(instance.devices)
        late = instance.latency_ns or ((0,) * n,) * n
        members = [[(m[0], d[0] if m is not d else d[-1]) for d in classes] for m in classes]
        self.pair = [[(instance.bandwidth[d][e], late[d][e]) if d != e else None for d, e in row] for row in members]
        known = {link for row in self.pair for link in row if link} or {(1, 0)}
        self.values = sorted({rate for rate, _ in known})
        self.delays = sorted({delay for _, delay in known}, reverse=True)
        near = [self._near(self._rank(k)) for k in range(2)]
        parallel = instance.execution.transfers == "parallel" and n > 1
        if parallel or not ordered(instance):
            self._each_pair(near, parallel)
            return
        places = sorted(known, key=lambda link: (link[0], -link[1]))
        self.rates, self.late = (list(each) for each in zip(*places, strict=True))
        # By places in both orders, the last link that is that good in both.
        level = np.array(
            [[sum(r <= rate and x >= d for r, x in places) - 1 for d in self.delays] for rate in self.values]
        )
        self.near = level[near[0], near[1]].astype(np.int16)
        several = len(places) > 1 and pairs
        self.level = self._slowest(self.near) if several else np.zeros((1, 1), np.int16)

    def _each_pair(self, near: list[NDArray[np.int16]], parallel: bool) -> None:
        """A level for every bandwidth of parallel links with every latency."""
        slowest, members = [self._slowest(each) for each in near], self.groups.sum(axis=1)
        links = np.minimum(members[:, None], members[None]).clip(1) if parallel else 1
        most = len(self.instance.devices) // 2 if parallel else 1
        rates = sorted({b * k for b in self.values for k in range(1, max(1, most) + 1)})
        place = np.searchsorted(rates, np.array(self.values)[slowest[0]] * links)
        table = place * len(self.delays) + slowest[1]
        self.rates, self.late = [r for r in rates for _ in self.delays], self.delays * len(rates)
        self.level = np.ascontiguousarray(table.astype(np.int16))
        self.near = np.full_like(near[0], len(self.rates) - 1)

    def _rank(self, k: int) -> NDArray[np.int16]:
        """Places of the bandwidths (1: latencies) of all pairs of classes, better ones later."""
        values = (self.values, self.delays)[k]
        return np.array([[values.index(link[k]) if link else len(values) - 1 for link in row] for row in self.pair])

    def _near(self, rank: NDArray[np.int16]) -> NDArray[np.int16]:
        """(C, G) place of the worst link between a device of a class and a group."""
        near = np.full((len(self.pair), len(self.groups)), rank.max(), np.int16)
        for c, d in product(range(len(self.pair)), repeat=2):
            present = self.groups[:, d] > 0
            near[c, present] = np.minimum(near[c, present], rank[c, d])
        return near

    def _slowest(self, near: NDArray[np.int16]) -> NDArray[np.int16]:
        """(G, G) place of the worst link between two groups."""
        levels = np.full((len(self.groups), len(self.groups)), near.max(), np.int16)
        for c, nearest in enumerate(near):
            present = self.groups[:, c] > 0
            levels[present] = np.minimum(levels[present], nearest)
        return levels

    def reduce(self) -> tuple[Array, Array, Array]:
        """Fractions of AllReduce ticks per weight byte (Eq. 5) and what is added, by group."""
        num, den, add = (np.full(len(self.groups), value, np.int64) for value in (0, 1, 0))
        inside = []
        for rank in map(self._rank, range(2)):
            worst = np.full(len(self.groups), rank.max(), np.int16)
            for c, d in product(range(len(self.pair)), repeat=2):
                both = (self.groups[:, c] > (c == d)) & (self.groups[:, d] > 0)
                worst[both] = np.minimum(worst[both], rank[c, d])
            inside.append(worst)
        kinds = np.stack([self.groups.sum(axis=1), *inside])
        for count, rate, delay in {tuple(kind) for kind in kinds.T.tolist() if kind[0] > 1}:
            where = (kinds == np.array([[count], [rate], [delay]])).all(axis=0)
            found = allreduce_fraction(self.instance, count, self.values[rate], self.delays[delay])
            num[where], den[where], add[where] = found
        return num, den, add


def migration(instance: Instance, classes: list[list[int]]) -> Array:
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
