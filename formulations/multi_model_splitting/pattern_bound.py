"""Bounds by patterns: which limits on the cycle time the relaxation over whole accelerators refutes.

Where memory is nearly full of large models, what decides is which parts lie on one accelerator together. A *pattern* is
a set of segments that one device can hold within its memories while no unit is busy for longer than a limit C. Models
that need the same memory layer by layer are one *group*, devices with the same memories one *class*, and a segment
loads a class by what it loads the least of its devices by; so equal devices and equal models have one variable where
they would have many. With x_P devices of a class that hold pattern P,

    sum of x_P <= devices of the class,    segments of a group that begin at a cut = segments that end there

(all pipelines of the group begin at its first cut and end at its last one). Every plan with a cycle time of at most C
is a point, so C is *refuted* where there is none. Pipelines may be left out: without the others a plan has no more
load and needs no more memory. The groups that are hardest to place are tried first.

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
DEFAULT = Joint()


@dataclass(frozen=True, eq=False)
class Kind:
    """The segments of a class of devices: ``group``, first and last cut (as nodes) and ``demand`` (n, 6)."""

    devices: int
    memory: tuple[int, ...]
    group: Array
    begin: Array
    end: Array
    demand: Array


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
        self.classes: dict[tuple[int, ...], list[int]] = {}
        for d, memory in enumerate(capacities(instance).T.tolist()):
            self.classes.setdefault(tuple(memory), []).append(d)

    def bisect(self, known: Known) -> Iterator[int]:
        """Better and better bounds; see :func:`.column_bound.bisected`."""
        return bisected(known, self.refuting, self.params.pattern_fine)

    def refuting(self, limit: int) -> Refuting:
        """Whether no plan has a cycle time of at most ``limit``."""
        if self.over():
            return False
        reduced = chains(self.instance, self.tables, limit)
        return reduced is None or (yield from Program(self, reduced, limit).refuting())


class Program:
    """The linear program of one limit: rows of cuts, then of classes; columns of pipelines left over, then patterns."""

    def __init__(self, patterns: Patterns, reduced: list[Chain], limit: int) -> None:
        check_version("highspy")
        self.all, self.limit = patterns, limit
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
        self.kinds = [self._kind(memory, devices, reduced) for memory, devices in patterns.classes.items()]
        self.engine = highspy.Highs()
        for name, setting in {"output_flag": False, "threads": 1, "presolve": "off", "solver": "simplex"}.items():
            self.engine.setOptionValue(name, setting)
        given = np.zeros(rows)
        given[self.first], given[self.last] = self.count, -self.count
        for number in given.tolist():
            self.engine.addRow(number, number, 0, [], [])
        for kind in self.kinds:
            self.engine.addRow(-highspy.kHighsInf, kind.devices, 0, [], [])
        for g, most in enumerate(self.count.tolist()):
            self.engine.addCol(1.0, 0.0, most, 2, [int(self.first[g]), int(self.last[g])], [1.0, -1.0])

    def _kind(self, memory: tuple[int, ...], devices: list[int], reduced: list[Chain]) -> Kind:
        """The segments that some device of a class may hold in some plan, each at the least of its loads."""
        found: dict[tuple[int, int, int], Array] = {}
        for g, group in enumerate(self.all.groups):
            for p in group:
                chain, last = reduced[p], len(reduced[p].cuts) - 1
                receive, transmit = chain.receive[:, devices].copy(), chain.transmit[:, devices].copy()
                receive[0] = transmit[last] = 0  # input and output need not move
                running = np.concatenate([np.zeros((1, len(devices)), np.int64), chain.inference[:, devices].cumsum(0)])
                loads = np.stack(
                    [
                        receive[:, None] + transmit[None],
                        chain.load[:, None, devices] + chain.unload[None][:, :, devices],
                        running[None] - running[:, None],
                    ]
                )
                allowed = chain.segments[:, :, devices]
                least = np.where(allowed, loads, NEVER).min(axis=3)
                need = self.all.tables[p].need[:, chain.cuts]
                for i, j in np.argwhere(allowed.any(axis=2)).tolist():
                    name = (g, self.places[g][chain.cuts[i]], self.places[g][chain.cuts[j]])
                    demand = np.concatenate([need[:, j] - need[:, i], least[:, i, j]])
                    found[name] = np.minimum(found[name], demand) if name in found else demand
        names = np.array(sorted(found), np.int64).reshape(-1, 3)
        demands = np.array([found[name] for name in sorted(found)], np.int64).reshape(-1, 6)
        return Kind(len(devices), memory, names[:, 0], names[:, 1], names[:, 2], demands)

    def refuting(self) -> Refuting:
        """The decision, by columns."""
        for _ in range(self.all.params.pattern_programs):
            if self.all.over():
                return False
            yield
            self.engine.run()
            if self.engine.getModelStatus() != highspy.HighsModelStatus.kOptimal:
                return False
            if self.engine.getInfo().objective_function_value < TOLERANCE:
                return False
            duals = np.asarray(self.engine.getSolution().row_dual)
            largest = float(np.abs(duals[: self.rows]).max())
            values = np.rint(duals[: self.rows] * (SCALE / largest)).astype(np.int64)
            total, fresh = int(self.count @ (values[self.first] - values[self.last])), False
            for c, kind in enumerate(self.kinds):
                found = self.heaviest(kind, values)
                if found is None:
                    return False
                best, chosen = found
                total -= kind.devices * best
                price = -float(duals[self.rows + c]) * SCALE / largest
                if best > price + TOLERANCE * SCALE:
                    self._add(c, kind, chosen)
                    fresh = True
            if total > 0:
                return True
            if not fresh:
                return False
        return False

    def heaviest(self, kind: Kind, values: Array) -> tuple[int, list[tuple[int, int]]] | None:
        """The heaviest pattern of a class, and which segments it has how often; ``None``: not known."""
        worth = values[kind.begin] - values[kind.end]
        free = np.array([*kind.memory, self.limit, self.limit, self.limit], np.int64)
        useful = np.flatnonzero(worth > 0)
        filled = (kind.demand[useful] / np.maximum(free, 1)).max(axis=1)
        order = useful[np.argsort(-worth[useful] / np.maximum(filled, 1e-12), kind="stable")]
        items = kernels.Items(
            np.ascontiguousarray(worth[order]),
            np.ascontiguousarray(kind.demand[order]),
            np.ascontiguousarray(kind.group[order]),
        )
        chosen = np.zeros(len(order), np.int64)
        best = kernels.heaviest(items, kernels.Room(free, self.count), self.all.params.nodes, chosen)
        if best == kernels.UNKNOWN:
            return None
        return int(best), [(int(order[k]), int(chosen[k])) for k in np.flatnonzero(chosen)]

    def _add(self, c: int, kind: Kind, chosen: list[tuple[int, int]]) -> None:
        entries = {self.rows + c: 1}
        for k, times in chosen:
            for row, sign in ((int(kind.begin[k]), 1), (int(kind.end[k]), -1)):
                entries[row] = entries.get(row, 0) + sign * times
        kept = {row: number for row, number in entries.items() if number}
        self.engine.addCol(
            0.0, 0.0, highspy.kHighsInf, len(kept), list(kept), [float(number) for number in kept.values()]
        )
