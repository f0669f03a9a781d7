"""Bounds by column generation: which limits on the objective the relaxation over whole paths refutes.

Columns q are paths of single pipelines within a limit C (:mod:`.chains`), with their loads a_q of all units and the
values f(q) of their segments in rows of memory (:mod:`.dual_feasible`). For the cycle time

    v(C) = min v   with   sum of x_q = 1 per pipeline,  sum of a_q x_q <= v per unit,  sum of f(q) x_q <= f(capacity),

and for the total latency v is the sum of the paths' latencies instead. Every plan of an objective of at most C is a
point, so v(C) > C says that there is none: C is *refuted*. Bisection over C finds the largest limit that is refuted.

What is believed is no linear program. For any integers prices u >= 0 of ticks and m >= 0 of memory rows,

    sum over pipelines of the shortest path under u and m  -  sum of m f(capacity)  <=  (sum of u) v(C),

as multiplying the rows by the prices shows (for the latency u = S for all units, and S stands for their sum). HiGHS
only proposes prices: its duals, rounded. The left-hand side is computed from the tables of the instance in integers.

With operation sharing (rule 9) merged tasks load their unit once. Pipelines of different signals never share. So only
the first pipeline of every signal takes part (all that name none do), which bounds the whole: leaving pipelines out
of a plan makes no load larger. A merged task counts in the latency of each pipeline; there the others take part
without memory.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from math import isqrt

import highspy
import numpy as np

from mapgap.formulations.multi_model_splitting.chains import Chain, Profile, chains, first_of_signal
from mapgap.formulations.multi_model_splitting.dual_feasible import COUNTED, ENDS, PLAIN, ROUNDED, share, whole
from mapgap.formulations.multi_model_splitting.params import Joint
from mapgap.formulations.multi_model_splitting.pricing import (
    ACCELERATOR,
    MCU,
    RADIO,
    SENSOR,
    Prices,
    Route,
    shortest,
)
from mapgap.problems.multi_model_splitting import RESOURCES, UNITS, Instance, PipelinePlan, Plan, Segment
from mapgap.problems.multi_model_splitting.lowered.tables import Array, capacities
from mapgap.solvers.guard import check_version

SCALE = 10**6
"""Prices of all ticks together, before rounding."""
LARGEST = 2**61
"""No sum of prices times loads reaches this."""
AWAY = 20.0
"""What a pipeline without a column costs, as a multiple of the limit; too little makes a bound weaker, never wrong."""
VIOLATED, SLACK = 1e-4, 1e-6
"""A row of memory is added if it is broken by this part of its right-hand side."""
DEFAULT = Joint()


@dataclass(frozen=True)
class Row:
    """A dual feasible function on one memory of one device."""

    resource: int
    device: int
    kind: int = PLAIN
    parameter: int = 0


@dataclass(frozen=True, eq=False)
class Column:
    """A path of one pipeline.

    Attributes
    ----------
    pipeline : int
    path : tuple of (first, last, device)
        In layers.
    loads : (4, N)
    demands : (3, m)
        Per segment.
    """

    pipeline: int
    path: tuple[tuple[int, int, int], ...]
    loads: Array
    demands: Array


Known = Callable[[], tuple[int, int]]
"""The best bound and what is not to be refuted: the objective of a plan, or more than any."""
Refuting = Generator[None, None, bool]
"""Yields between two linear programs, and returns whether the limit is refuted; ``False`` proves nothing."""


def bisected(known: Known, refuting: Callable[[int], Refuting], fine: int) -> Iterator[int]:
    """The best bound that refuted limits prove; yields it after every linear program.

    Parameters
    ----------
    known : callable
        Asked anew before each limit.
    refuting : callable
        Whether no plan has an objective of at most a limit.
    fine : int
        A limit is not looked for more closely than to this part of it.
    """
    lower, opened = known()
    while lower < opened and (opened - lower) * fine > lower:
        middle = isqrt(max(1, lower) * opened) if opened > 4 * lower else (lower + opened) // 2
        limit = min(max(middle, lower), opened - 1)
        program = refuting(limit)
        try:
            while True:
                next(program)
                yield lower
        except StopIteration as ended:
            if ended.value:
                lower = limit + 1
            else:
                opened = limit
        yield lower
        others, upper = known()
        lower, opened = max(lower, others), min(opened, upper)


class Relaxation:
    """The relaxation of an instance; columns and rows stay from one limit to the next.

    Parameters
    ----------
    tables : list of Profile
        Of all pipelines.
    over : callable
        Says when to give up.
    params : Joint

    Attributes
    ----------
    notes : dict
        How many limits were tried and refuted, how many programs solved, how many columns and rows there are.
    """

    def __init__(
        self,
        instance: Instance,
        tables: list[Profile],
        over: Callable[[], bool] = lambda: False,
        params: Joint = DEFAULT,
    ) -> None:
        self.instance, self.tables, self.over, self.params = instance, tables, over, params
        self.cycle = instance.objective == "throughput"
        self.capacity = capacities(instance)
        count, n = len(tables), len(instance.devices)
        self.first = first_of_signal(instance)
        self.members = [p for p in range(count) if self.first[p] or not self.cycle]
        self.rows = [Row(r, d) for r in range(len(RESOURCES)) for d in range(n) if self.capacity[r, d] > 0]
        self.columns: dict[tuple[object, ...], Column] = {}
        self.notes = {"limits": 0, "refuted_limits": 0, "programs": 0}
        self.extreme = max(self._extreme(table) for table in tables)

    def offer(self, plan: Plan) -> None:
        """Use the paths of a plan as columns."""
        for p in self.members:
            self.keep(self.column(p, plan.pipelines[p]))

    def bisect(self, known: Known) -> Iterator[int]:
        """Better and better bounds; see :func:`bisected`."""
        return bisected(known, self.refuting, self.params.fine)

    def refuting(self, limit: int) -> Refuting:
        """Whether no plan has an objective of at most ``limit``."""
        if self.over():
            return False
        self.notes["limits"] += 1
        reduced = chains(self.instance, self.tables, limit)
        found = reduced is None or (yield from _Program(self, reduced, limit).refuting())
        self.notes["refuted_limits"] += found
        return found

    def column(self, p: int, decisions: PipelinePlan) -> Column:
        """What a path loads and demands."""
        table, n = self.tables[p], len(self.instance.devices)
        loads = np.zeros((len(UNITS), n), np.int64)
        loads[SENSOR, decisions.source] += table.sensing[decisions.source]
        here = decisions.source
        demands = np.zeros((len(RESOURCES), len(decisions.segments)), np.int64)
        for k, segment in enumerate(decisions.segments):
            i, j, d = segment.first, segment.last, segment.device
            if d != here:
                loads[RADIO, here] += table.transmit[i, here]
                loads[RADIO, d] += table.receive[i, d]
            loads[MCU, d] += table.load[i, d] + table.unload[j, d]
            loads[ACCELERATOR, d] += table.running[j, d] - table.running[i, d]
            demands[:, k] = table.need[:, j] - table.need[:, i]
            here = d
        if here != decisions.target:
            loads[RADIO, here] += table.transmit[-1, here]
            loads[RADIO, decisions.target] += table.receive[-1, decisions.target]
        path = tuple((segment.first, segment.last, segment.device) for segment in decisions.segments)
        return Column(p, path, loads, demands)

    def keep(self, column: Column) -> bool:
        key = (column.pipeline, column.path, column.loads.tobytes())
        new = key not in self.columns
        self.columns.setdefault(key, column)
        return new

    def _extreme(self, table: Profile) -> int:
        """No path, with or without revisits, has more ticks."""
        cuts = table.load + table.unload + table.transmit + table.receive
        return int(table.sensing.max() + table.inference.max(axis=1).sum() + 2 * cuts.max(axis=1).sum())


class _Program:
    """The linear program of one limit."""

    def __init__(self, relaxation: Relaxation, reduced: list[Chain], limit: int) -> None:
        check_version("highspy")
        self.all, self.limit, self.unit = relaxation, limit, max(1, limit)
        self.chains = reduced
        self.routes = {p: _route(reduced[p], relaxation.capacity) for p in relaxation.members}
        self.place = {p: {boundary: k for k, boundary in enumerate(reduced[p].cuts)} for p in relaxation.members}
        self.engine = highspy.Highs()
        for name, setting in {"output_flag": False, "threads": 1, "presolve": "off", "solver": "simplex"}.items():
            self.engine.setOptionValue(name, setting)
        members, n = relaxation.members, len(relaxation.instance.devices)
        self.loads = 4 * n if relaxation.cycle else 0
        for _ in members:
            self.engine.addRow(1.0, 1.0, 0, [], [])
        for _ in range(self.loads):
            self.engine.addRow(-highspy.kHighsInf, 0.0, 0, [], [])
        top = range(len(members), len(members) + self.loads)
        self.engine.addCol(1.0, 0.0, highspy.kHighsInf, self.loads, list(top), [-1.0] * self.loads)
        for k in range(len(members)):
            self.engine.addCol(AWAY, 0.0, 1.0, 1, [k], [1.0])
        self.fixed = 1 + len(members)
        self.columns: list[Column] = []
        self.row_count = 0
        self._add_rows()
        for column in relaxation.columns.values():
            if self._allows(column):
                self._add(column)

    def refuting(self) -> Refuting:
        """The decision, by columns and rows in turn."""
        for _ in range(self.all.params.programs):
            if self.all.over():
                return False
            yield
            self.all.notes["programs"] += 1
            self.engine.run()
            if self.engine.getModelStatus() != highspy.HighsModelStatus.kOptimal:
                return False
            solution = self.engine.getSolution()
            values, duals = np.asarray(solution.col_value), np.asarray(solution.row_dual)
            value = self.engine.getInfo().objective_function_value
            bound, found = self._price(duals)
            if bound is None or bound > self.limit:
                return True
            fits = value <= 1 + SLACK
            if not fits and sum(self._fresh(column) for column in found):
                continue
            if not self._separate(values):
                return False
        return False

    def _price(self, duals: np.ndarray) -> tuple[int | None, list[Column]]:
        """A proven bound on the objective of every plan within the limit (``None``: there is none), and columns."""
        members, first = self.all.members, len(self.all.members)
        shape = (4, len(self.all.instance.devices))
        ticks = np.maximum(0, -duals[first : first + self.loads]).reshape(shape) if self.loads else np.ones(shape)
        weights = np.maximum(0, -duals[first + self.loads :])
        prices, total, unit = self._whole_prices(ticks, weights)
        free = Prices(prices.unit, np.zeros_like(prices.begin), *prices[2:])
        found, bound = [], -total
        for p in members:
            path = shortest(self.routes[p], prices if self.all.first[p] else free)
            if path is None:
                return None, []
            length, segments, source, target = path
            bound += length
            cuts = self.chains[p].cuts
            moved = tuple(Segment(device=d, first=cuts[i], last=cuts[j]) for i, j, d in segments)
            found.append(self.all.column(p, PipelinePlan(source=source, target=target, segments=moved)))
        if unit == 0:
            return (None if bound > 0 else 0), found
        return -(-bound // unit), found

    def _whole_prices(self, ticks: np.ndarray, weights: np.ndarray) -> tuple[Prices, int, int]:
        """Duals as integers: prices, what the memory rows are worth in all, and the sum of the prices of ticks."""
        wholes = [self._whole(row) for row in self.all.rows]
        scale = 10**12
        while True:
            unit = np.floor(ticks * scale).astype(np.int64)
            rows = [int(w * scale * self.unit / r) for w, r in zip(weights, wholes, strict=True)]
            total = sum(a * r for a, r in zip(rows, wholes, strict=True))
            if int(unit.max()) * self.all.extreme + total * (1 + max(c.blocks for c in self.chains)) < LARGEST:
                break
            scale //= 10
        order = sorted((row.device, k) for k, row in enumerate(self.all.rows) if rows[k])
        begin = np.searchsorted([d for d, _ in order], np.arange(ticks.shape[1] + 1)).astype(np.int64)
        chosen = [self.all.rows[k] for _, k in order]
        prices = Prices(
            unit=np.ascontiguousarray(unit),
            begin=begin,
            resource=np.array([row.resource for row in chosen], np.int64),
            kind=np.array([row.kind for row in chosen], np.int64),
            parameter=np.array([row.parameter for row in chosen], np.int64),
            price=np.array([rows[k] for _, k in order], np.int64),
        )
        return prices, total, int(unit.sum()) if self.all.cycle else int(unit.max())

    def _fresh(self, column: Column) -> bool:
        """Add a column that is new."""
        new = self.all.keep(column)
        if new:
            self._add(column)
        return new

    def _add(self, column: Column) -> None:
        first = len(self.all.members)
        index, value = [self.all.members.index(column.pipeline)], [1.0]
        if self.all.cycle:
            for place in np.flatnonzero(column.loads):
                index.append(first + int(place))
                value.append(int(column.loads.flat[place]) / self.unit)
        for k, worth in self._worths(column, range(len(self.all.rows))):
            index.append(first + self.loads + k)
            value.append(worth)
        cost = 0.0 if self.all.cycle else int(column.loads.sum()) / self.unit
        self.engine.addCol(cost, 0.0, 1.0, len(index), index, value)
        self.columns.append(column)

    def _worths(self, column: Column, rows: range) -> list[tuple[int, float]]:
        """Coefficients of a column in rows of memory."""
        found: dict[int, float] = {}
        if self.all.first[column.pipeline]:
            for k in rows:
                row = self.all.rows[k]
                for place, (_, _, d) in enumerate(column.path):
                    if d == row.device:
                        demand = int(column.demands[row.resource, place])
                        worth = share(row.kind, row.parameter, int(self.all.capacity[row.resource, d]), demand)
                        if worth:
                            found[k] = found.get(k, 0.0) + worth / self._whole(row)
        return list(found.items())

    def _whole(self, row: Row) -> int:
        return int(whole(row.kind, row.parameter, int(self.all.capacity[row.resource, row.device])))

    def _allows(self, column: Column) -> bool:
        """Every segment of a path is one of the chain."""
        place, segments = self.place[column.pipeline], self.chains[column.pipeline].segments
        return all(i in place and j in place and segments[place[i], place[j], d] for i, j, d in column.path)

    def _separate(self, values: np.ndarray) -> bool:
        """Add the most violated function of every memory; whether there was one."""
        carried: dict[tuple[int, int], list[tuple[int, float]]] = {}
        for column, x in zip(self.columns, values[self.fixed :], strict=True):
            if x > 1e-9 and self.all.first[column.pipeline]:
                for place, (_, _, d) in enumerate(column.path):
                    for r in range(len(RESOURCES)):
                        carried.setdefault((r, d), []).append((int(column.demands[r, place]), float(x)))
        new = []
        for (r, d), items in carried.items():
            row = self._most_violated(r, d, items)
            if row is not None and row not in self.all.rows:
                new.append(row)
        self.all.rows += new
        self._add_rows()
        return bool(new)

    def _most_violated(self, r: int, d: int, items: list[tuple[int, float]]) -> Row | None:
        capacity = int(self.all.capacity[r, d])
        if capacity == 0:
            return None
        steps = {demand for demand, _ in items} | {capacity - demand + 1 for demand, _ in items}
        kinds = [(ROUNDED, k) for k in range(1, self.all.params.roundings + 1)]
        kinds += [(kind, q) for q in sorted(steps) if q >= 1 and 2 * q <= capacity for kind in (ENDS, COUNTED)]
        best, found = 1 + VIOLATED, None
        for kind, q in kinds:
            total = sum(x * share(kind, q, capacity, demand) for demand, x in items) / whole(kind, q, capacity)
            if total > best:
                best, found = total, Row(r, d, kind, q)
        return found

    def _add_rows(self) -> None:
        """Add the rows of memory that the program does not have yet."""
        news = range(self.row_count, len(self.all.rows))
        self.row_count = len(self.all.rows)
        entries: dict[int, tuple[list[int], list[float]]] = {k: ([], []) for k in news}
        for number, column in enumerate(self.columns):
            for k, worth in self._worths(column, news):
                entries[k][0].append(self.fixed + number)
                entries[k][1].append(worth)
        for index, value in entries.values():
            self.engine.addRow(-highspy.kHighsInf, 1.0, len(index), index, value)


def _route(chain: Chain, capacity: Array) -> Route:
    """The tables of a chain as the kernel wants them."""
    n = capacity.shape[1]
    sources, targets = np.zeros((2, n), np.bool_)
    sources[list(chain.profile.sources)] = targets[list(chain.profile.targets)] = True
    whole_table = np.ascontiguousarray
    return Route(
        segments=whole_table(chain.segments),
        running=whole_table(chain.running),
        load=whole_table(chain.load),
        unload=whole_table(chain.unload),
        transmit=whole_table(chain.transmit),
        receive=whole_table(chain.receive),
        need=whole_table(chain.need),
        sensing=whole_table(chain.profile.sensing),
        sources=sources,
        targets=targets,
        capacity=whole_table(capacity),
    )
