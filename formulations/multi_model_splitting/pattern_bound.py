"""Bounds by patterns: which limits on the cycle time the relaxation over whole accelerators refutes.

Where memory is nearly full of large models, what decides is which parts lie on one accelerator together, and whether
the ends of a pipeline lie where its source and its target are. A *pattern* is what one device can do within its
memories while no unit is busy for longer than a limit C: a set of segments, and a choice for every pipeline that *ends*
there (the device is its only source or its only target): a segment of it, or none, which costs a transfer of its input
or output. Models that need the same memory layer by layer are one *group*, devices with the same memories and the same
ends one *class*, and a segment loads a class by what it loads the least of its devices by; so equal devices and equal
models have one variable where they would have many. With x_P devices of a class that do pattern P,

    sum of x_P = devices of the class,    segments of a group that begin at a cut = segments that end there

(all pipelines of the group begin at its first cut and end at its last one). Every plan with a cycle time of at most C
is a point, so C is *refuted* where there is none. Pipelines may be left out: without the others a plan has no more
load and needs no more memory. The groups that are hardest to place are tried first. Ends whose transfers are small
beside C count for nothing, which makes more devices equal.

What is believed is no linear program. For any whole numbers pi of every group and cut,

    sum over pipelines of pi[first cut] - pi[last cut]  >  sum over devices of the heaviest pattern

refutes C, where a segment from cut i to cut j is worth pi[i] - pi[j]: the segments of a plan are worth the left-hand
side together, and those on a device no more than its heaviest pattern (:mod:`.pattern_kernels`). HiGHS only proposes
the numbers: its duals, rounded.

With operation sharing only the first pipeline of every signal takes part, as in :mod:`.column_bound`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import ceil

import highspy
import numpy as np

from mapgap.formulations.multi_model_splitting import pattern_kernels as kernels
from mapgap.formulations.multi_model_splitting.chains import NEVER, Chain, Profile, chains, first_of_signal
from mapgap.formulations.multi_model_splitting.column_bound import Known, Refuting, bisected
from mapgap.formulations.multi_model_splitting.params import Joint
from mapgap.problems.multi_model_splitting import Instance
from mapgap.problems.multi_model_splitting.lowered.tables import Array, capacities
from mapgap.solvers.guard import check_version

SCALE = 10**9
"""Largest value of a cut, before rounding."""
TOLERANCE = 1e-7
WEIGHTS = 2**50
"""What the dual weights of a knapsack make of all the room there is, before rounding."""
RADIO = 3
"""Among the dimensions of a demand."""
DEFAULT = Joint()

End = tuple[int, int, int]
"""Of a pipeline on a device: its group, the ticks of the transfer of its input from there, and of its output there."""


@dataclass(frozen=True, eq=False)
class Kind:
    """What a class of devices may hold.

    Attributes
    ----------
    room : (6,)
    group : (n,)
        Of each segment; beyond the groups: of which end it is a choice.
    begin, end : (n,)
        First and last cut, as nodes; equal where a choice is to hold nothing.
    demand : (n, 6)
    most : (G,)
        Segments of a group, apart from those of ends.
    ends : int
    """

    devices: int
    room: Array
    group: Array
    begin: Array
    end: Array
    demand: Array
    most: Array
    ends: int


def groups_of(instance: Instance, tables: list[Profile]) -> list[list[int]]:
    """Pipelines of equal memory, hardest to place first; with sharing the first of every signal only."""
    whole = np.maximum(1, capacities(instance).sum(axis=1))
    found: dict[bytes, list[int]] = {}
    for p, alone in enumerate(first_of_signal(instance)):
        if alone:
            found.setdefault(tables[p].need.tobytes(), []).append(p)
    return sorted(found.values(), key=lambda group: -float((tables[group[0]].need[:, -1] / whole).max()))


class Patterns:
    """The relaxation of some groups of an instance.

    Parameters
    ----------
    groups : list of list of int
        Pipelines that take part, as :func:`groups_of` has them.
    over : callable
        Says when to give up.
    params : Joint
    """

    def __init__(
        self,
        instance: Instance,
        tables: list[Profile],
        groups: list[list[int]],
        over: Callable[[], bool] = lambda: False,
        params: Joint = DEFAULT,
    ) -> None:
        self.instance, self.tables, self.groups, self.over, self.params = instance, tables, groups, over, params
        self.refuted, self.opened = -1, NEVER  # the largest limit that has been, the smallest that has not been
        self.capacity = capacities(instance)
        self.sources = [set(instance.sources(p)) for p in range(len(tables))]
        self.targets = [set(instance.targets(p)) for p in range(len(tables))]

    def bisect(self, known: Known) -> Iterator[int]:
        """Better and better bounds; see :func:`.column_bound.bisected`."""

        def still() -> tuple[int, int]:
            lower, opened = known()
            return max(lower, self.refuted + 1), min(opened, self.opened)

        return bisected(still, self.refuting, self.params.fine)

    def refuting(self, limit: int) -> Refuting:
        """Whether no plan has a cycle time of at most ``limit``."""
        if self.over():
            return False
        reduced = chains(self.instance, self.tables, limit)
        found = reduced is None or (yield from Program(self, reduced, limit).refuting())
        if found:
            self.refuted = max(self.refuted, limit)
        else:
            self.opened = min(self.opened, limit)
        return found

    def ends(self, d: int, limit: int) -> list[tuple[End, int]]:
        """The pipelines that end on a device, at the price of a transfer that is not small beside the limit."""
        found = []
        for g, p in ((g, p) for g, group in enumerate(self.groups) for p in group):
            sent = int(self.tables[p].transmit[0, d]) if self.sources[p] == {d} else 0
            received = int(self.tables[p].receive[-1, d]) if self.targets[p] == {d} else 0
            if (sent + received) * self.params.pattern_ends > limit:
                found.append(((g, sent, received), p))
        return sorted(found)

    def demand(self, chain: Chain, p: int, d: int, sent: int = 0, received: int = 0) -> Array:
        """``(K + 1, K + 1, 6)``: what a segment of a pipeline demands of a device; ``NEVER`` where there is none.

        The device has ``sent`` the input if that is not the segment's, and ``received`` the output.
        """
        enter, leave = chain.receive[:, d] + sent, chain.transmit[:, d] + received
        enter[0] = 0 if d in self.sources[p] else chain.receive[0, d]
        leave[-1] = 0 if d in self.targets[p] else chain.transmit[-1, d]
        copies = chain.load[:, None, d] + chain.unload[None, :, d]
        running = chain.running[None, :, d] - chain.running[:, None, d]
        need = chain.need[:, None, :] - chain.need[:, :, None]
        found = np.stack([*need, enter[:, None] + leave[None], copies, running], axis=2)
        return np.where(chain.segments[:, :, d, None], found, NEVER)


class Program:
    """The linear program of one limit: rows of cuts, then of classes; columns of what is left over, then patterns."""

    def __init__(self, patterns: Patterns, reduced: list[Chain], limit: int) -> None:
        check_version("highspy")
        self.all, self.limit, self.reduced = patterns, limit, reduced
        self.count = np.array([len(group) for group in patterns.groups], np.int64)
        self.first, self.last = np.zeros((2, len(patterns.groups)), np.int64)
        self.places: list[dict[int, int]] = []
        rows = 0
        for g, group in enumerate(patterns.groups):
            cuts = sorted({cut for p in group for cut in reduced[p].cuts})
            self.places.append({cut: rows + k for k, cut in enumerate(cuts)})
            self.first[g], self.last[g] = rows, rows + len(cuts) - 1
            rows += len(cuts)
        self.rows = rows
        self.kinds = self._kinds()
        self.engine = _engine()
        given = np.zeros(rows)
        given[self.first], given[self.last] = self.count, -self.count
        for number in given.tolist():
            self.engine.addRow(number, number, 0, [], [])
        for kind in self.kinds:
            self.engine.addRow(kind.devices, kind.devices, 0, [], [])
        for g, most in enumerate(self.count.tolist()):
            self.engine.addCol(1.0, 0.0, most, 2, [int(self.first[g]), int(self.last[g])], [1.0, -1.0])
        for c, kind in enumerate(self.kinds):  # a device without ends may do nothing
            self.engine.addCol(float(kind.ends > 0), 0.0, highspy.kHighsInf, 1, [rows + c], [1.0])

    def _kinds(self) -> list[Kind]:
        classes: dict[tuple[tuple[int, ...], tuple[End, ...]], dict[int, list[int]]] = {}
        for d, memory in enumerate(self.all.capacity.T.tolist()):
            found = self.all.ends(d, self.limit)
            ends, pipelines = tuple(end for end, _ in found), [p for _, p in found]
            classes.setdefault((tuple(memory), ends), {})[d] = pipelines
        return [self._kind(memory, ends, devices) for (memory, ends), devices in classes.items()]

    def _kind(self, memory: tuple[int, ...], ends: tuple[End, ...], devices: dict[int, list[int]]) -> Kind:
        """The segments that some device of a class may hold in some plan, each at the least of its demands."""
        groups, most = self.all.groups, np.zeros(len(self.all.groups), np.int64)
        owner = [*range(len(groups)), *(g for g, _, _ in ends)]
        tables = [np.full((len(self.places[g]),) * 2 + (kernels.DIMENSIONS,), NEVER, np.int64) for g in owner]
        for d, pipelines in devices.items():
            for g, group in enumerate(groups):
                free = [p for p in group if p not in pipelines]
                most[g] = max(most[g], len(free))
                for p in free:
                    self._lower(tables[g], g, p, self.all.demand(self.reduced[p], p, d))
            for table, (g, sent, received), p in zip(tables[len(groups) :], ends, pipelines, strict=True):
                table[0, 0] = 0
                table[0, 0, RADIO] = sent + received
                self._lower(table, g, p, self.all.demand(self.reduced[p], p, d, sent, received))
        room = np.array([*memory, *[self.limit] * 3], np.int64)
        places = [np.argwhere((table <= room).all(axis=2)) for table in tables]
        nodes = np.concatenate([found + self.first[g] for found, g in zip(places, owner, strict=True)])
        return Kind(
            devices=len(devices),
            room=room,
            group=np.repeat(np.arange(len(tables)), [len(found) for found in places]),
            begin=nodes[:, 0],
            end=nodes[:, 1],
            demand=np.concatenate([table[tuple(found.T)] for table, found in zip(tables, places, strict=True)]),
            most=most,
            ends=len(ends),
        )

    def _lower(self, table: Array, g: int, p: int, demand: Array) -> None:
        """Make the demands of a group those of one of its pipelines where these are less."""
        nodes = [self.places[g][cut] - int(self.first[g]) for cut in self.reduced[p].cuts]
        where = np.ix_(nodes, nodes)
        table[where] = np.minimum(table[where], demand)

    def refuting(self) -> Refuting:
        """The decision, by columns."""
        for _ in range(self.all.params.programs):
            if self.all.over():
                return False
            yield
            self.engine.run()
            if self.engine.getModelStatus() != highspy.HighsModelStatus.kOptimal:
                return False
            if self.engine.getInfo().objective_function_value < TOLERANCE:
                return False
            duals = np.asarray(self.engine.getSolution().row_dual)
            scale = SCALE / float(np.abs(duals).max())
            values = np.rint(duals[: self.rows] * scale).astype(np.int64)
            total, fresh, whole = int(self.count @ (values[self.first] - values[self.last])), False, True
            for c, kind in enumerate(self.kinds):
                if self.all.over():
                    return False
                price = ceil(duals[self.rows + c] * -scale + TOLERANCE * SCALE)
                best, proven, chosen = self.heaviest(kind, values, price)
                total -= kind.devices * best
                whole &= proven
                if chosen:
                    self._add(c, kind, chosen)
                    fresh = True
            if whole and total > 0:
                return True
            if not fresh:
                return False
        return False

    def heaviest(self, kind: Kind, values: Array, above: int) -> tuple[int, bool, list[tuple[int, int]]]:
        """The heaviest pattern of a class: what it is worth, at least ``above``, whether none is worth more, and, if
        it is worth more than ``above``, how often it has which segment."""
        worth, groups = values[kind.begin] - values[kind.end], len(self.count)
        order = np.flatnonzero((worth > 0) | (kind.group >= groups))
        order = order[np.argsort(-worth[order], kind="stable")]
        kept = np.zeros(len(order), np.bool_)
        kernels.undominated(_items(worth[order], kind.demand[order], kind.group[order]), kept)
        order = order[kept]
        weights, each = _weights(kind, worth[order], order)
        group = kind.group[order]
        guide = kind.demand[order] @ weights + np.append(each, np.zeros(kind.ends, np.int64))[group]
        part = np.where(group < groups, kind.ends, group - groups)  # ends first, then what is left free
        better = worth[order] / np.where(group < groups, np.maximum(guide, 1), 1)
        place = np.lexsort((-better, part))
        order, guide = order[place], guide[place]
        begin = np.searchsorted(part[place], np.arange(kind.ends + 1))
        if (begin[1:] == begin[:-1]).any():
            return above, True, []  # nothing is left to choose for some end
        items = _items(worth[order], np.column_stack([kind.demand[order], guide]), kind.group[order])
        free = np.append(kind.room, kind.room @ weights + kind.most @ each)
        chosen, params = np.zeros(len(order), np.int64), self.all.params
        room = kernels.Room(free, kind.most, begin.astype(np.int64))
        best, proven = kernels.heaviest(items, room, above, params.few, params.nodes, chosen)
        return int(best), bool(proven), [(int(order[k]), int(chosen[k])) for k in np.flatnonzero(chosen)]

    def _add(self, c: int, kind: Kind, chosen: list[tuple[int, int]]) -> None:
        entries = {self.rows + c: 1}
        for k, times in chosen:
            for row, sign in ((int(kind.begin[k]), 1), (int(kind.end[k]), -1)):
                entries[row] = entries.get(row, 0) + sign * times
        kept = {row: number for row, number in entries.items() if number}
        self.engine.addCol(
            0.0, 0.0, highspy.kHighsInf, len(kept), list(kept), [float(number) for number in kept.values()]
        )


def _engine() -> highspy.Highs:
    engine = highspy.Highs()
    for name, setting in {"output_flag": False, "threads": 1, "presolve": "off", "solver": "simplex"}.items():
        engine.setOptionValue(name, setting)
    return engine


def _items(value: Array, demand: Array, group: Array) -> kernels.Items:
    return kernels.Items(*(np.ascontiguousarray(each, np.int64) for each in (value, demand, group)))


def _weights(kind: Kind, worth: Array, order: Array) -> tuple[Array, Array]:
    """Whole weights of the dimensions and of the groups with which the linear relaxation of a knapsack has its value.

    Any weights of at least 0 do; nothing but the number of nodes depends on them.
    """
    groups, n, size = len(kind.most), len(order), kernels.DIMENSIONS
    unit = np.maximum(kind.room, 1)
    matrix = np.zeros((size + groups + kind.ends, n))
    matrix[:size] = (kind.demand[order] / unit).T
    matrix[size + kind.group[order], np.arange(n)] = 1
    lp = highspy.HighsLp()
    lp.num_col_, lp.num_row_ = n, len(matrix)
    lp.col_cost_ = -worth / SCALE
    lp.col_lower_, lp.col_upper_ = np.zeros(n), np.full(n, highspy.kHighsInf)
    lp.row_lower_ = np.repeat([-highspy.kHighsInf, 1.0], [size + groups, kind.ends])
    lp.row_upper_ = np.concatenate([kind.room / unit, kind.most, np.ones(kind.ends)])
    column, index = np.nonzero(matrix.T)
    lp.a_matrix_.start_ = np.searchsorted(column, np.arange(n + 1)).astype(np.int32)
    lp.a_matrix_.index_, lp.a_matrix_.value_ = index.astype(np.int32), matrix.T[column, index]
    engine = _engine()
    engine.passModel(lp)
    engine.run()
    duals = np.zeros(size + groups)
    if engine.getModelStatus() == highspy.HighsModelStatus.kOptimal:
        duals = np.maximum(0.0, -np.asarray(engine.getSolution().row_dual)[: size + groups])
    duals[:size] /= unit
    most = float(duals[:size] @ kind.room + duals[size:] @ kind.most)
    whole = np.floor(duals * (WEIGHTS / most)).astype(np.int64) if most > 0 else np.zeros(len(duals), np.int64)
    return whole[:size], whole[size:]
