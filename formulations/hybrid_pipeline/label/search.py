"""The label search as a function of cuts and an upper bound: compiled loops, time, memory, and what is known when it
stops."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from mapgap.core import Budget, Stop
from mapgap.formulations.hybrid_pipeline.label import fronts as label_fronts
from mapgap.formulations.hybrid_pipeline.label import kernel as label_kernel
from mapgap.formulations.hybrid_pipeline.label import nodes as label_nodes
from mapgap.formulations.hybrid_pipeline.label import stages as label_stages
from mapgap.formulations.hybrid_pipeline.label import tables as label_tables
from mapgap.formulations.hybrid_pipeline.label.first_plan import Path
from mapgap.problems.hybrid_pipeline.lowered.arrays import Lowered
from mapgap.problems.hybrid_pipeline.lowered.tables import Array

CHUNK = 1_000_000
"""Work between two looks at the clock: far below a second."""

GROUPS = 512
"""Groups between two looks at the clock while tables are made."""

LABELS = 1 << 12
"""Labels and nodes that a search begins with."""

FRONT_STAGES = 2**26
"""Most stages whose times are held for sums in front of cuts, 8 bytes each; an eighth of the memory at most."""

MOST_LABELS = 24_000_000
"""Labels that are held at most, 32 bytes each, where the budget names no memory."""

COLUMNS = 8
LABEL_BYTES = 4 * COLUMNS

Fronts = tuple[NDArray[np.int32], NDArray[np.int32]]
"""Least sums of E and of E_f, (G, L + 1) ticks each."""


class CompiledSearch:
    """Searches of one instance as machine code.

    Parameters
    ----------
    everyone : bool
        Every device must have a stage.
    budget : Budget, optional
        The search stops when it is exhausted, or when the labels take the memory it names.
    work : int, optional
        Work of all searches together (moves and places looked at, stages priced); the search stops after about so much.
    relaxed : bool
        The value is a bound that never falls when a time grows: stages take T of Eq. (7), and the latency is
        ``max_s (D_s + Ta_s + sum_{j<s} Ef_j)`` with ``D_s`` of the suffix from s on and the least ``Ef``.

    Attributes
    ----------
    stop : Stop or None
        Why the last search ended before it was done.
    bound : int
        No plan is better than this and the value found; after a search over all cuts.
    """

    def __init__(
        self,
        low: Lowered,
        everyone: bool,
        budget: Budget | None = None,
        work: int | None = None,
        *,
        relaxed: bool = False,
    ) -> None:
        self.low, self.budget, self.work, self.relaxed = low, budget, work, relaxed
        self.everyone = everyone
        self.stop: Stop | None = None
        self.bound = 0
        self.stages = label_tables.Stages(
            low.forward, low.backward, low.both, low.state, low.activation, low.room, low.groups, low.batch
        )
        self.links = label_tables.Links(
            low.comm,
            low.level,
            low.near,
            low.load,
            low.reduce_num,
            low.reduce_den,
            low.reduce_add,
            low.weights,
            low.move,
            int(low.every_step),
        )
        moves = low.moves
        asked = np.zeros(len(low.groups), np.bool_)
        asked[moves.group] = True
        least, least_f = (np.zeros((len(low.groups), low.layers + 1), np.int32) for _ in range(2))
        for begin, end in self._parts():
            label_stages.least_sums(low.both, low.groups, low.batch, least, begin, end)
            label_stages.least_sums(low.forward, low.groups, low.batch, least_f, begin, end)
        self.steps = label_tables.Steps(*moves, low.complete(everyone), asked, least, least_f, least, least_f)
        memory = None if budget is None else budget.memory_mb
        self.most_stages = FRONT_STAGES if memory is None else min(FRONT_STAGES, memory * 2**14)
        self.most = MOST_LABELS if memory is None else max(LABELS, memory * 2**19 // LABEL_BYTES)

    def __call__(self, cuts: list[int], upper: int) -> tuple[int, Path, dict[str, int]]:
        """Best objective below ``upper`` (or ``upper``), its stages, counts for the notes."""
        low, at = self.low, np.zeros(15, np.int64)
        places = np.array(cuts, np.int64)
        self.stop = None
        window, nearest = self._windows(places, upper)
        if self._over:
            self.stop, self.bound = Stop.TIME, 0
            return upper, [], {}
        if self.work is not None:
            self.work -= 10 * int(self.steps.asked.sum()) * len(cuts)
        opened = self._open(places, upper)
        reach = label_stages.reaches(self.steps, window, opened)
        space = label_tables.Space(places, window, nearest, opened, reach)
        binds = bool(label_stages.memory_binds(self.stages, places, window, low.kept(len(low.size) + low.layers)))
        slots = low.levels + 1 if binds else 1
        form = self._form(slots)
        spans = (np.arange(len(cuts))[:, None] - nearest)[:, self.steps.asked].sum(axis=1)
        store = label_tables.Store(
            pool=np.zeros((LABELS, COLUMNS), np.int32),
            head=np.zeros(LABELS, np.int64),
            key=np.zeros(LABELS, np.int64),
            following=np.zeros(LABELS, np.int64),
            first=np.full(len(cuts), label_nodes.END, np.int64),
            table=np.full(2 * LABELS, -1, np.int64),
            costs=np.zeros((max(1, int(spans.max())) * slots, 3), np.int32),
            place=np.zeros(len(low.groups), np.int64),
        )
        at[label_nodes.R], at[label_nodes.NODE], at[label_nodes.UPPER], at[label_nodes.BEST] = (
            len(cuts) - 1,
            label_nodes.FRESH,
            upper,
            label_nodes.END,
        )
        self.stop = None
        while True:
            limit = CHUNK if self.work is None else max(0, min(CHUNK, self.work))
            ended = label_kernel.search(self.stages, self.links, form, self.steps, space, store, at, limit)
            if ended == label_nodes.DONE:
                break
            if ended == label_nodes.FULL:
                grown = self._grown(store, int(at[label_nodes.USED]), int(at[label_nodes.NODES]))
                self.stop = Stop.MEMORY if grown is None else None
                store = grown or store
            elif self.work is not None:
                self.work -= limit
                self.stop = Stop.DONE if self.work <= 0 else None
            if self.budget is not None and self.budget.exhausted:
                self.stop = Stop.TIME
            if self.stop is not None:
                break
        value = int(at[label_nodes.UPPER])
        self.bound = value
        if self.stop is not None:
            self.bound = int(label_kernel.bound_left(self.stages, self.links, form, self.steps, space, store, at))
        path = label_kernel.stages_of(store.pool, at[label_nodes.BEST], places)
        counts = {
            "labels": int(at[label_nodes.MADE]),
            "stage_costs": int(at[label_nodes.PRICED]),
            "memory_binds": int(binds),
            "nodes": int(at[label_nodes.NODES]),
        }
        return value, [(i, j, g) for i, j, g in path.tolist()], counts

    def _form(self, slots: int) -> label_tables.Round:
        low = self.low
        kept = low.kept(low.micro_batches), low.kept(0), low.kept(1) - low.kept(0)
        apart = not low.uniform or (len(low.comm) > 1 and not self.relaxed)
        heads = len(low.groups) if apart else 1
        return label_tables.Round(*low.form, low.rounds, *kept, slots, int(self.relaxed), heads)

    def use(self, fronts: Fronts | None) -> None:
        """Sums in front of cuts, of plans below an upper bound, for searches that begin with no larger one."""
        front, front_f = least, least_f = self.steps.least, self.steps.least_f
        if fronts is not None:
            front, front_f = np.maximum(least, fronts[0]), np.maximum(least_f, fronts[1])
        self.steps = self.steps._replace(front=front, front_f=front_f)

    def fronts(self, upper: int) -> Fronts | None:
        """Least sums in front of every cut, by the devices left for them, of plans below ``upper``.

        Stages are put one behind the other, as :mod:`.label_fronts` does; no order may restrict the groups. ``None``
        when the time is over, without an upper bound, and where the stages inside the windows are too many.
        """
        if upper > label_fronts.NO_FRONT:
            return None
        low, form, cuts = self.low, self._form(1), np.arange(self.low.layers + 1)
        window, nearest = self._windows(cuts, upper)
        lengths = np.maximum(window.T - cuts, 0).astype(np.int64)  # (G, L + 1)
        if self._over or lengths.sum() > self.most_stages:
            return None
        place = (lengths.cumsum() - lengths.ravel()).reshape(lengths.shape)
        both, forward = (
            label_fronts.stage_times(table, low.groups, low.batch, window, place) for table in (low.both, low.forward)
        )
        ways = label_fronts.Ways(*low.moves[:3], window, nearest, self._open(cuts, upper))
        least = label_fronts.behind(ways)
        times = label_fronts.Times(place, both, forward)
        found, found_f = (np.full(lengths.shape, label_fronts.NO_FRONT, np.int32) for _ in range(2))
        idle = slice(0, 1 if self.everyone else None)
        found[idle, 0] = found_f[idle, 0] = 0
        used = 0
        while used < len(low.groups):
            if self._over:
                return None
            used = label_fronts.fronts(self.stages, self.links, form, ways, times, least, found, found_f, upper, used)
        return found, found_f

    @property
    def _over(self) -> bool:
        return self.budget is not None and self.budget.exhausted

    def _parts(self) -> Iterator[tuple[int, int]]:
        """Some groups after the other, as long as there is time; what is not done says nothing."""
        count = len(self.low.groups)
        for begin in range(0, count, GROUPS):
            if self._over:
                self.stop = Stop.TIME
                return
            yield begin, min(begin + GROUPS, count)

    def _windows(self, cuts: Array, upper: int) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """``window`` and ``nearest`` of ``label_tables.Space``."""
        window, nearest = (np.zeros((len(cuts), len(self.low.groups)), np.int32) for _ in range(2))
        for begin, end in self._parts():
            label_stages.windows(
                self.stages, self.links, self._form(1), self.steps.asked, cuts, upper, window, nearest, begin, end
            )
        return window, nearest

    def _open(self, cuts: Array, upper: int) -> NDArray[np.bool_]:
        """Positions whose transfers alone, over the fastest link, do not reach the bound."""
        form = self.low.form
        found: NDArray[np.bool_] = self.low.rounds * form.factor * form.ways * self.low.comm[-1, cuts] < upper
        found[0] = found[-1] = True
        return found

    def _grown(self, store: label_tables.Store, labels: int, nodes: int) -> label_tables.Store | None:
        """The same content with twice the room; ``None`` where that is too much."""
        if len(store.pool) >= self.most:
            return None
        tight = 2 * nodes > len(store.key)
        if 2 * labels > len(store.pool) or not tight:
            pool = np.zeros((min(2 * len(store.pool), self.most), COLUMNS), np.int32)
            pool[:labels] = store.pool[:labels]
            store = store._replace(pool=pool)
        if tight or 2 * labels <= len(store.pool) // 2:
            pad = np.zeros(len(store.key), np.int64)
            store = store._replace(
                head=np.concatenate([store.head, pad]),
                key=np.concatenate([store.key, pad]),
                following=np.concatenate([store.following, pad]),
                table=np.full(2 * len(store.table), -1, np.int64),
            )
            label_nodes.index(store)
        return store
