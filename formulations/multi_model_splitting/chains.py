"""What the exact models read: each pipeline as a chain of blocks that holds only what can be part of a good plan.

A pipeline alone is a shortest path over segments: :class:`Profile` has the tables of one pipeline, ``restrict`` finds
the segments ``(i, j, d)`` (layers ``i..j-1`` on device ``d``) that lie on some path within two limits,

* ``cycle``: no single unit is loaded for longer by this pipeline's own segment, transfer or sensing, and
* ``latency``: the cheapest path through the segment is not longer.

Paths may revisit devices and see the memory of one accelerator without other pipelines, so nothing feasible is lost.
Boundaries at which no remaining segment begins or ends cannot be cut; the layers between the others merge into one
*block*. As transfers are by far the dearest tasks, a falling limit merges most layers: bisection over the ladder of
transfer times keeps the models small where they are hard.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from itertools import pairwise

import numpy as np

from mapgap.problems.multi_model_splitting import Instance, PipelinePlan, Segment
from mapgap.problems.multi_model_splitting.lowered.radios import later
from mapgap.problems.multi_model_splitting.lowered.tables import Array, Mask, Tables, capacities, tabulate
from mapgap.solvers.model import Model, Part

NEVER = 2**40
"""Ticks of what cannot happen; larger than any sum of durations."""


def _elsewhere(costs: Array) -> Array:
    """Smallest entry of ``costs`` at another position than each one's own."""
    if len(costs) == 1:
        return np.array([NEVER])
    order = np.argsort(costs, kind="stable")
    found = np.full(len(costs), costs[order[0]])
    found[order[0]] = costs[order[1]]
    return found


@dataclass(frozen=True, eq=False)
class Profile(Tables):
    """Tables of one pipeline, with the devices it may start from and end at.

    Attributes
    ----------
    sources, targets : tuple of int
    capacity : (3, N)
    later : dict
        By sender and receiver, ticks of a message beyond the least of the sender, where there are any.
    """

    sources: tuple[int, ...]
    targets: tuple[int, ...]
    capacity: Array
    later: Mapping[tuple[int, int], int]

    @cached_property
    def latest(self) -> Array:
        """``(L + 1,)``: no transmission of a boundary takes longer, whoever sends and receives."""
        found: Array = self.transmit.max(axis=1) + max(self.later.values(), default=0) * (self.cut > 0)
        return found

    @cached_property
    def compute(self) -> Array:
        """``(L + 1, L + 1, N)``: inference ticks of a segment, negative where ``j < i``."""
        return np.asarray(self.running[None, :, :] - self.running[:, None, :], np.int64)

    @cached_property
    def fits(self) -> Mask:
        """``(L + 1, L + 1, N)``: ``i < j`` and the segment alone fits into the accelerator."""
        size = self.need[:, None, :] - self.need[:, :, None]
        small = (size[:, :, :, None] <= self.capacity[:, None, None, :]).all(axis=0)
        proper = np.triu(np.ones(small.shape[:2], bool), 1)
        return np.asarray(small & proper[:, :, None], bool)

    @cached_property
    def longest(self) -> int:
        """No path without revisits is longer: every task on its slowest device, the dearest cuts."""
        segments = min(self.inference.shape)
        moves = np.sort(self.latest + self.receive.max(axis=1))
        copies = np.sort(self.load.max(axis=1))[-segments:].sum() + np.sort(self.unload.max(axis=1))[-segments:].sum()
        return int(self.sensing.max() + self.inference.max(axis=1).sum() + copies + moves[-segments - 1 :].sum())

    @cached_property
    def most_sent(self) -> int:
        """No path without revisits transmits for longer."""
        sent: int = np.sort(self.latest)[-min(self.inference.shape) - 1 :].sum()
        return int(sent)

    @cached_property
    def heaviest(self) -> int:
        """No unit of a device is loaded for longer by a path without revisits; a radio sends and receives twice."""
        radio = np.sort(self.latest)[-2:].sum() + np.sort(self.receive.max(axis=1))[-2:].sum()
        copies = self.load.max() + self.unload.max()
        return int(max(self.sensing.max(), self.inference.max(axis=1).sum(), copies, radio))

    def within(self, cycle: int) -> Mask:
        """Segments that load no unit of their device for longer than ``cycle``."""
        receive, transmit = self.receive.copy(), self.transmit.copy()
        receive[0] = transmit[-1] = 0  # input and output need not move
        radio = receive[:, None, :] + transmit[None, :, :]
        copies = self.load[:, None, :] + self.unload[None, :, :]
        return np.asarray(self.fits & (self.compute <= cycle) & (copies <= cycle) & (radio <= cycle), bool)

    def restrict(self, cycle: int, latency: int) -> tuple[Mask, int]:
        """Segments on paths within the limits, and the latency of the shortest path (``NEVER`` if there is none)."""
        usable = self.within(cycle)
        cost = np.where(usable, self.load[:, None, :] + self.compute + self.unload[None, :, :], NEVER)
        enter = self._enter(cost, cycle)
        leave = self._leave(cost, cycle)
        through = enter[:, None, :] + cost + leave[None, :, :]
        return np.asarray(through <= min(latency, NEVER - 1), bool), int(min(through.min(), NEVER))

    def _enter(self, cost: Array, cycle: int) -> Array:
        """``(L + 1, N)``: cheapest way to have boundary ``i`` on device ``d``."""
        enter = np.full_like(self.load, NEVER)
        for s in self.sources:
            if self.sensing[s] <= cycle:
                moved = self._moved(0, s, cycle)
                enter[0] = np.minimum(enter[0], np.minimum(self.sensing[s] + moved, NEVER))
        for j in range(1, self.layers):
            done = np.minimum((enter[:j] + cost[:j, j]).min(axis=0), NEVER)
            sent = np.where(self.transmit[j] <= cycle, done + self.transmit[j], NEVER)
            arrive = np.where(self.receive[j] <= cycle, self.receive[j], NEVER)
            enter[j] = np.minimum(_elsewhere(sent) + arrive, NEVER)
        return enter

    def _leave(self, cost: Array, cycle: int) -> Array:
        """``(L + 1, N)``: cheapest way from boundary ``j`` on device ``d`` to the target."""
        leave = np.full_like(self.load, NEVER)
        for d in range(leave.shape[1]):
            moved = self._moved(self.layers, d, cycle)
            leave[-1, d] = min((int(moved[t]) for t in self.targets), default=NEVER)
        for i in range(self.layers - 1, 0, -1):
            rest = np.minimum((cost[i, i + 1 :] + leave[i + 1 :]).min(axis=0), NEVER)
            received = np.where(self.receive[i] <= cycle, rest + self.receive[i], NEVER)
            send = np.where(self.transmit[i] <= cycle, self.transmit[i], NEVER)
            leave[i] = np.minimum(send + _elsewhere(received), NEVER)
        return leave

    def _moved(self, boundary: int, sender: int, cycle: int) -> Array:
        """``(N,)``: ticks to bring a boundary from ``sender`` to every device."""
        sent, received = int(self.transmit[boundary, sender]), self.receive[boundary]
        moved = np.where((received <= cycle) & (sent <= cycle), sent + received, NEVER)
        moved[sender] = 0
        return moved


def profiles(instance: Instance) -> list[Profile]:
    """Tables of every pipeline."""
    capacity, beyond, found = capacities(instance), later(instance), []
    for p in range(len(instance.pipelines)):
        tables = tabulate(instance, p)
        known = {field.name: getattr(tables, field.name) for field in fields(tables)}
        sources, targets = tuple(instance.sources(p)), tuple(instance.targets(p))
        found.append(Profile(**known, sources=sources, targets=targets, capacity=capacity, later=beyond))
    return found


@dataclass(frozen=True, eq=False)
class Chain:
    """One pipeline within limits; ``K`` blocks, ``N`` devices.

    Attributes
    ----------
    profile : Profile
        Its tables have one row per *layer*; the other attributes one per block.
    cuts : tuple of int, length K + 1
        Boundaries of the model around the blocks, first 0 and last ``L``.
    segments : (K + 1, K + 1, N) bool
        Blocks ``i..j-1`` may be a segment on ``d``.
    inference : (K, N)
    demand : (3, K)
    load, unload, transmit, receive : (K + 1, N)
    shortest : int
        Latency of the shortest path.
    """

    profile: Profile
    cuts: tuple[int, ...]
    segments: Mask
    inference: Array
    demand: Array
    load: Array
    unload: Array
    transmit: Array
    receive: Array
    shortest: int

    @property
    def blocks(self) -> int:
        return len(self.cuts) - 1

    def beyond(self, k: int, d: int, e: int) -> int:
        """Ticks of the transfer of a boundary from ``d`` to ``e`` beyond those of ``transmit`` (rule 14)."""
        return self.profile.later.get((d, e), 0) if self.profile.cut[self.cuts[k]] else 0

    @cached_property
    def running(self) -> Array:
        """``(K + 1, N)``: inference of the blocks before a boundary."""
        return np.asarray(self.profile.running[list(self.cuts)], np.int64)

    @cached_property
    def need(self) -> Array:
        """``(3, K + 1)``: demand of the blocks before a boundary."""
        return np.asarray(self.profile.need[:, list(self.cuts)], np.int64)

    @cached_property
    def cover(self) -> Mask:
        """``(K, K, N)``: some segment on ``d`` contains the blocks ``i`` and ``j >= i``."""
        ends = self.segments[:-1, 1:]  # by first and last block
        longer = np.maximum.accumulate(ends[:, ::-1], axis=1)[:, ::-1]
        found = np.maximum.accumulate(longer, axis=0)
        return np.asarray(found & np.triu(np.ones(found.shape[:2], bool))[:, :, None], bool)

    def holds(self, decisions: PipelinePlan) -> bool:
        """Source, target and segments of an execution plan are among those of the chain."""
        place = {boundary: k for k, boundary in enumerate(self.cuts)}
        ends = [0, *(segment.last for segment in decisions.segments)]
        return (
            decisions.source in self.profile.sources
            and decisions.target in self.profile.targets
            and ends[-1] == self.cuts[-1]
            and [segment.first for segment in decisions.segments] == ends[:-1]
            and all(
                s.first in place
                and s.last in place
                and 0 <= s.device < self.segments.shape[2]
                and self.segments[place[s.first], place[s.last], s.device]
                for s in decisions.segments
            )
        )

    def plan(self, source: int, target: int, devices: list[int]) -> PipelinePlan:
        """Execution plan from the device of every block."""
        begins = [k for k in range(self.blocks) if k == 0 or devices[k] != devices[k - 1]]
        segments = tuple(
            Segment(device=devices[i], first=self.cuts[i], last=self.cuts[j])
            for i, j in pairwise([*begins, self.blocks])
        )
        return PipelinePlan(source=source, target=target, segments=segments)


def _merge(profile: Profile, allowed: Mask, shortest: int, kept: tuple[int, ...]) -> Chain:
    rows, starts = list(kept), list(kept[:-1])
    return Chain(
        profile=profile,
        cuts=kept,
        segments=allowed[np.ix_(rows, rows)],
        inference=np.add.reduceat(profile.inference, starts, axis=0),
        demand=np.add.reduceat(profile.demand, starts, axis=1),
        load=profile.load[rows],
        unload=profile.unload[rows],
        transmit=profile.transmit[rows],
        receive=profile.receive[rows],
        shortest=shortest,
    )


def chains(instance: Instance, tables: list[Profile], limit: int | None) -> list[Chain] | None:
    """Every pipeline with only what a plan of objective at most ``limit`` can use; ``None``: there is no such plan.

    Pipelines that may share segments (rule 9) keep the same boundaries.
    """
    cycle, slack = NEVER - 1, NEVER - 1
    if limit is not None and instance.objective == "throughput":
        cycle = limit
    shortest = [profile.restrict(cycle, NEVER - 1)[1] for profile in tables]
    if any(length >= NEVER for length in shortest):
        return None
    if limit is not None and instance.objective == "latency":
        slack = limit - sum(shortest)
    if slack < 0:
        return None
    allowed = [profile.restrict(cycle, length + slack)[0] for profile, length in zip(tables, shortest, strict=True)]
    kept = [set(np.flatnonzero(mask.any(axis=(1, 2)) | mask.any(axis=(0, 2))).tolist()) for mask in allowed]
    if instance.sharing:
        for group in sharing_groups(instance):
            union = set().union(*(kept[p] for p in group))
            for p in group:
                kept[p] = union
    return [
        _merge(profile, mask, length, tuple(sorted(cuts)))
        for profile, mask, length, cuts in zip(tables, allowed, shortest, kept, strict=True)
    ]


def whole(tables: list[Profile]) -> list[Chain]:
    """Every pipeline as it is: each layer a block, each device for each segment, whether or not it fits there."""
    found = []
    for profile in tables:
        layers, n = profile.inference.shape
        proper = np.triu(np.ones((layers + 1, layers + 1), bool), 1)
        every = np.repeat(proper[:, :, None], n, axis=2)
        found.append(_merge(profile, every, 0, tuple(range(layers + 1))))
    return found


def single_part(instance: Instance, model: Callable[[list[Chain], int, Collection[int]], Model]) -> list[Part]:
    """The program for the largest limit, which holds all plans; ``model`` makes it from chains, limit and ``without``.

    The complete program has whole chains, and so has one that the limits of single pipelines refute already.
    """
    tables = profiles(instance)
    top = ceiling(instance, tables)

    def build(complete: bool = False, without: Collection[int] = ()) -> Model:
        reduced = None if complete else chains(instance, tables, top)
        return model(whole(tables) if reduced is None else reduced, top, without)

    return [Part("", build)]


def ceiling(instance: Instance, tables: list[Profile]) -> int:
    """No plan has a larger objective."""
    if instance.objective == "throughput":
        radio = sum(profile.heaviest for profile in tables)
        return max(radio, sum(profile.most_sent for profile in tables)) if instance.in_turn else radio
    return sum(profile.longest for profile in tables)


def floor(instance: Instance, tables: list[Profile], top: int) -> int:
    """Smallest limit that every pipeline can keep alone: a bound on the objective, ``top + 1`` if no limit will do."""
    if instance.objective == "latency":
        return min(sum(profile.restrict(NEVER - 1, NEVER - 1)[1] for profile in tables), top + 1)
    low = 0
    for profile in tables:
        high = low if profile.restrict(low, NEVER - 1)[1] < NEVER else top + 1
        while low < high:
            middle = (low + high) // 2
            if profile.restrict(middle, NEVER - 1)[1] < NEVER:
                high = middle
            else:
                low = middle + 1
    return low


def rungs(tables: list[Profile], bound: int, top: int) -> list[int]:
    """Limits on the cycle time from ``bound`` to ``top`` just below a transfer time, where a cut stops being one."""
    values = np.concatenate([np.concatenate([t.transmit.ravel(), t.receive.ravel()]) for t in tables])
    return [int(ticks) - 1 for ticks in np.unique(values) if bound < ticks <= top]


def sharing_groups(instance: Instance) -> list[list[int]]:
    """Pipelines that may share segments: same signal and model, at least two."""
    groups: dict[tuple[str, str], list[int]] = {}
    if instance.sharing:
        for p, pipeline in enumerate(instance.pipelines):
            if pipeline.signal:
                groups.setdefault((pipeline.signal, pipeline.model), []).append(p)
    return [group for group in groups.values() if len(group) > 1]


def signal_groups(instance: Instance) -> list[list[int]]:
    """Pipelines that may share sensing and input transfers: same signal, at least two."""
    groups: dict[str, list[int]] = {}
    if instance.sharing:
        for p, pipeline in enumerate(instance.pipelines):
            if pipeline.signal:
                groups.setdefault(pipeline.signal, []).append(p)
    return [group for group in groups.values() if len(group) > 1]


def first_of_signal(instance: Instance) -> list[bool]:
    """Whether a pipeline is the first of its signal, or names none: no earlier one can spare it a task."""
    later = {p for group in signal_groups(instance) for p in group[1:]}
    return [p not in later for p in range(len(instance.pipelines))]
