"""Bounds where devices are too many for an exact search: the label search over a few classes of optimistic devices.

Devices are put into classes, and every device gets the best of its class: layer by layer and share by share the least
time, the largest memory; a link between two classes, or inside one, is the fastest there is. A transfer takes the best
link from a stage to any device *used behind it* (the slowest of a pair of groups is at most the slowest between the
one in front and any member of the other), so that the group behind a cut does not matter to it, which makes the search
many times faster; parallel transfers have the fastest link of all. To each plan belongs one of the relaxed instance,
with the same cuts and counts of devices. That alone bounds nothing, because the latency may fall when ``E_b`` grows (it
lowers the AllReduce excess). So the search minimises what never falls: with ``D_s`` of the suffix from stage s on,

    D + A = max_s (Ta_s + D - sum_{j<s} Eb_j) >= max_s (Ta_s + D_s + sum_{j<s} Ef_j),

because ``D >= D_s + sum_{j<s} E_j``; stages take T of Eq. (7), which is at most ``E_f + E_b``, and of ``E_f`` the least
that any shares give. In inference and for the bottleneck there is no excess, and T in place of ``E_f + E_b`` suffices.
As labels ``(D, Z)`` with ``Z`` the right-hand side,

    D' = max(M T, T + 2 M c, T + 2 c + D),    Z' = max(D' + Ta, Z + Ef + c).

Labels are also left out by what a real plan would still pay, from the group that they stand for to the devices left; so
the value may be above the least of the relaxed instance, and no plan below the upper bound is lost: of a real plan no
label is left out but for one that is no worse and was not.

A few classes are searched in milliseconds, more classes bound better: :class:`Refinement` goes from few to many. Each
has ``growth`` times the moves of the one before, so all together take about as long as the last. The classes are those
of least loss, merged pair by pair from the devices that are equal. After a failure the migration counts as 0.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from mapgap.core import Budget
from mapgap.formulations.hybrid_pipeline.label.first_plan import Path, closing
from mapgap.formulations.hybrid_pipeline.label.search import CompiledSearch
from mapgap.formulations.hybrid_pipeline.params import LabelSearch as Params
from mapgap.problems.hybrid_pipeline import Instance
from mapgap.problems.hybrid_pipeline.instance import Device, DeviceType
from mapgap.problems.hybrid_pipeline.lowered.arrays import Lowered, lower
from mapgap.problems.hybrid_pipeline.lowered.groups import interchangeable
from mapgap.problems.hybrid_pipeline.lowered.order import slowness
from mapgap.problems.hybrid_pipeline.lowered.tables import Array, ordered, times_before

Parts = list[list[int]]


def relaxed(instance: Instance, parts: Parts) -> Lowered:
    """Arrays in which every device has the best of its part; for :class:`CompiledSearch` with ``relaxed``."""
    (batch,) = instance.micro_batch_sizes
    of = {device: p for p, part in enumerate(parts) for device in part}
    members = [[instance.device_type(d) for d in part] for part in parts]
    types = tuple(
        DeviceType.model_construct(
            name=f"P{p}",
            memory=max(kind.memory for kind in kinds),
            forward=_least([kind.forward for kind in kinds]),
            backward=_least([kind.backward for kind in kinds]),
        )
        for p, kinds in enumerate(members)
    )
    number = range(len(instance.devices))
    parallel = instance.execution.transfers == "parallel"
    links = np.array(instance.bandwidth, np.int64)
    np.fill_diagonal(links, 0)
    best = np.array([[links[np.ix_(p, q)].max() for q in parts] for p in parts]).clip(1)
    late = np.array(instance.latency_ns or np.zeros_like(links), np.int64)
    np.fill_diagonal(late, late.max(initial=0))
    least = np.array([[late[np.ix_(p, q)].min() for q in parts] for p in parts])
    if parallel or not ordered(instance):
        best[:], least[:] = best.max(), least.min()
    made = instance.model_copy(
        update={
            "types": types,
            "devices": tuple(Device.model_construct(name=instance.devices[d].name, type=of[d]) for d in number),
            "bandwidth": tuple(tuple(int(best[of[d], of[e]]) for e in number) for d in number),
            "latency_ns": tuple(tuple(int(least[of[d], of[e]]) for e in number) for d in number if instance.latency_ns),
            "replanning": None,
        }
    )
    low = lower(made, pairs=False)
    both = []
    for p in (of[members[0]] for members in low.classes):
        tables = [sum(times_before(kind, batch)) for kind in members[p]]
        if not instance.execution.training:
            tables = [times_before(kind, batch)[0] for kind in members[p]]
        steps = np.min([np.diff(table, axis=0) for table in tables], axis=0)
        both.append(np.concatenate([np.zeros((1, batch + 1), np.int64), steps.cumsum(axis=0)]))
    rounds = 1 if instance.replanning is None else instance.replanning.rounds
    return replace(low, both=np.stack(both), rounds=rounds)


def _least(tables: list[tuple[tuple[int, ...], ...]]) -> tuple[tuple[int, ...], ...]:
    if len(tables) == 1:
        return tables[0]
    return tuple(map(tuple, np.min(np.array(tables, np.int64), axis=0).tolist()))


def move_count(parts: Parts) -> int:
    """As ``groups.move_count``, of classes of these sizes."""
    return math.prod((len(part) + 1) * (len(part) + 2) // 2 for part in parts)


def partitions(instance: Instance) -> list[Parts]:
    """From one part to all classes of interchangeable devices: each merges two parts of the next, those of least loss.

    The loss of a device is how much faster its part is than itself, and of its speed a part by how much more that
    holds: so fast devices, which do most of the work, stay alone longest.
    """
    atoms = interchangeable(instance)
    kinds = [instance.device_type(members[0]) for members in atoms]
    share = -(-instance.micro_batch_sizes[0] // 4) - 1
    times = np.array(
        [[f[share] + b[share] for f, b in zip(kind.forward, kind.backward, strict=True)] for kind in kinds], float
    )
    memory = np.array([kind.memory for kind in kinds], float) + 1.0
    size = np.array([len(members) for members in atoms], float)

    def loss(part: tuple[int, ...]) -> float:
        some = list(part)
        speed, best = 1 / (times[some].sum(axis=1) + 1.0), 1 / (times[some].min(axis=0).sum() + 1.0)
        smaller = np.log(memory[some].max() / memory[some])
        return float((size[some] * (best - speed + speed * smaller / 4)).sum())

    parts: list[tuple[int, ...]] = [(k,) for k in range(len(atoms))]
    losses = dict.fromkeys(parts, 0.0)
    found = [parts]
    while len(parts) > 1:
        pairs = [(a, b) for k, a in enumerate(parts) for b in parts[:k]]
        for a, b in pairs:
            losses.setdefault((*b, *a), math.nan)
            if math.isnan(losses[*b, *a]):
                losses[*b, *a] = loss((*b, *a))
        a, b = min(pairs, key=lambda pair: losses[*pair[1], *pair[0]] - losses[pair[0]] - losses[pair[1]])
        parts = [part for part in parts if part not in (a, b)] + [(*b, *a)]
        found.append(parts)
    return [[sorted(d for k in part for d in atoms[k]) for part in parts] for parts in reversed(found)]


def merged(low: Lowered, coarse: Lowered) -> Array:
    """(G,): the group of the coarse relaxation that stands for each group of the fine one."""
    of = {device: c for c, members in enumerate(coarse.classes) for device in members}
    merge = np.zeros((len(low.classes), len(coarse.classes)), np.int64)
    for c, members in enumerate(low.classes):
        merge[c, of[members[0]]] = 1
    place: Array = np.ravel_multi_index(tuple((low.groups @ merge).T), tuple((coarse.size + 1).tolist()))
    return place


class Refinement:
    """Relaxations from few classes to many, each with the sums in front of cuts that a coarser one gives.

    Parameters
    ----------
    most : int
        Moves of the last one, at most.
    params : LabelSearch
        Of these ``cells`` limits relaxations, too.

    Attributes
    ----------
    bound : int
        No plan is better than this and the upper bounds given.
    searched : list of (moves, search, stages)
        What was searched to its end, the stages of its best pipeline (none where none is below the upper bound).
    """

    def __init__(self, instance: Instance, budget: Budget, most: int, params: Params = Params()) -> None:
        self.instance, self.budget, self.params = instance, budget, params
        self.bound = 0
        self.searched: list[tuple[int, CompiledSearch, Path]] = []
        self.bounds: list[tuple[int, int]] = []
        self.left: list[Parts] = []
        layers = len(instance.layers) + 1
        for parts in partitions(instance):
            moves, groups = move_count(parts), math.prod(len(part) + 1 for part in parts)
            if moves > most or groups * layers > params.cells:
                break
            if not self.left or moves >= params.growth * move_count(self.left[-1]):
                self.left.append(parts)

    @property
    def notes(self) -> dict[str, Any]:
        """Bounds by number of classes."""
        return {"relaxations": {str(classes): bound for classes, bound in self.bounds}}

    def step(self, upper: int) -> None:
        """The next relaxation, against the value of a plan."""
        parts = self.left.pop(0)
        moves = move_count(parts)
        search = CompiledSearch(relaxed(self.instance, parts), self.instance.all_devices, self.budget, relaxed=True)
        best: list[Path] = [[]]

        def proven(bound: int, counts: dict[str, int]) -> None:
            self.bound = max(self.bound, bound)

        closing(
            search.low,
            search,
            self.bound,
            upper,
            (upper - self.bound) // self.params.steps,
            lambda target: self.lend(search, moves, target),
            lambda path, value: best.append(path),
            proven,
        )
        self.bounds.append((len(parts), self.bound))
        if search.stop is None:
            self.searched.append((moves, search, best[-1]))

    def lend(self, search: CompiledSearch, moves: int, upper: int) -> None:
        """Give a search the sums of the finest coarser one that has some, for plans below ``upper``; else none."""
        search.use(None)  # sums for plans below a smaller bound would leave out others
        for number, coarse, _ in reversed(self.searched):
            fronts = coarse.fronts(upper) if number * self.params.growth <= moves else None
            if fronts is not None:
                place = merged(search.low, coarse.low)
                search.use((fronts[0][place], fronts[1][place]))
                return

    def order(self) -> tuple[int, ...] | None:
        """All devices in the order of the stages of the best pipeline found last, the fastest of a class first."""
        if not self.searched or not self.searched[-1][2]:
            return None
        _, search, path = self.searched[-1]
        slow = slowness(self.instance)
        free = [sorted(members, key=lambda d: (slow[d], d)) for members in search.low.classes]
        found = []
        for _, _, group in path:
            for c, number in enumerate(search.low.groups[group].tolist()):
                found += [free[c].pop(0) for _ in range(number)]
        return (*found, *(d for members in free for d in members))
