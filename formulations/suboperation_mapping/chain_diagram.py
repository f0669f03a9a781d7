"""The moves of a ratio along a chain as arrays: weights, cuts and labels for :mod:`ascent`.

Points of the master program are doubles; weights and what they lead to are whole numbers, counted in 4096ths.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mapgap.core import Budget
from mapgap.formulations.suboperation_mapping.chain_arrays import NOTHING, START, Arrays, Sorts
from mapgap.formulations.suboperation_mapping.chain_kernels import (
    LANES,
    Known,
    Table,
    advance,
    follow,
    mark,
    shortest,
    sieve,
    weigh,
)
from mapgap.problems.suboperation_mapping.certificate import chain_labels
from mapgap.problems.suboperation_mapping.certificate.chain import Chain
from mapgap.problems.suboperation_mapping.certificate.chain_costs import NEVER
from mapgap.problems.suboperation_mapping.certificate.chain_weights import UNIT
from mapgap.solvers.highs import MatrixModel, Relaxation

Vector = NDArray[np.float64]
Whole = NDArray[np.int64]
Small = NDArray[np.int32]
Flags = NDArray[np.bool_]
Runs = list[list[int]]
Choice = tuple[int, int, bool]  # a step, the number of a move, and whether it is the only one, or left out
CLOSE = 2e-5  #: of weights: the part of the bound that better ones could add


class Cut(NamedTuple):
    """What a path costs by weights: the constant, the coefficients, and its moves."""

    constant: float
    slopes: Vector
    moves: NDArray[np.int32]


class Weighed(NamedTuple):
    """The best weights: their value in 4096ths, their point, and the paths that are shortest, with shares."""

    value: int
    weighing: Weighing
    point: Vector
    mix: list[tuple[float, Cut]]


class Weighing:
    """Weights as rows by step, what states lead to, by their number over all steps, and what moves cost."""

    def __init__(self, rows: Whole, rest: Whole, offsets: Whole, runs: Runs, prices: Whole) -> None:
        self.rows, self.rest, self.offsets, self.runs, self.prices = rows, rest, offsets, runs, prices

    def value(self, k: int, states: Whole, numbers: Whole) -> Whole:
        """Least makespans of labels with these numbers, in 4096ths."""
        return weighed(numbers, self.rows[k], self.rest[self.offsets[k] + states])


def weighed(numbers: Whole, row: Whole, rest: Whole) -> Whole:
    """The numbers of labels by weights, and what their states lead to."""
    found: Whole = numbers @ row[: numbers.shape[1]] + rest
    return found


class Diagram:
    """The moves of a chain as arrays.

    Attributes
    ----------
    moves : Table
        All of them, the same ones of different steps each time.
    first_move, offsets : (steps + 1,) int64
        By step the first one of its moves, and of the states before it, in this table.
    starts : list of (states + 1,) int64
        By step where the moves of each state begin, from 0.
    numbers : list of (moves,) int32
        By step which one of its state a move is.
    pairs : list of (moves, shares, starts) bool or None
        By step whether a start is that of a share.
    turning : list of bool
        By step, whether moves of a state lead to different ones.
    barred : dict of int to (moves,) bool
        By step which moves are left out.
    """

    def __init__(self, chain: Chain) -> None:
        self.chain, arrays = chain, Arrays(chain)
        self.last, self.places, self.shares = len(chain.steps), len(chain.places), len(chain.shares)
        self.few = chain.weighed  # weights of the tail
        self.starts, self.numbers, self.pairs = list[Whole](), list[Small](), list[Flags | None]()
        self.turning, self.barred = list[bool](), dict[int, Flags]()
        self.tail = dict[int, tuple[Whole, Small]]()  # by step of it what moves add, numbers without weights, too
        lead, costs, known = list[Small](), list[tuple[Whole, Small]](), dict[Any, int]()
        after = list[tuple[int, Sorts, str]]()  # states after a step, how many and which
        here, states, sorts, kept = np.ones(1, np.bool_), [1], START, NOTHING  # ``here`` are states that can be reached
        for k in range(self.last):
            twin = known.setdefault((chain.twin(k), sorts, kept, here.tobytes()), k)
            if twin == k:
                step = arrays.made(k, sorts, kept, here)
                those = slice(None) if step.exist is None else step.exist
                added, which = used(step.added, step.which[those])
                if chain.inner(k):
                    self.tail[k] = added, which
                cost = arrays.cost(k, added) if k != chain.fold else np.zeros((len(added), 1), int)
                if cost is not added:
                    cost, of = arrays.grouped(cost)
                    which = of[which]
                costs.append((cost, which))
                lead.append(step.to[those])
                counts = np.zeros(len(here), np.int64)
                counts[here] = step.each if step.exist is None else step.exist.reshape(-1, step.each).sum(axis=1)
                self.starts.append(np.append(0, np.cumsum(counts)))
                self.numbers.append(np.tile(step.numbers.astype(np.int32), len(step.to) // step.each)[those])
                self.pairs.append(None if step.pairs is None else step.pairs[those])
                self.turning.append(step.turns)
                after.append((arrays.count(step.sorts), *arrays.after(step)))
            else:
                every: tuple[list[Any], ...] = lead, costs, self.starts, self.numbers, self.pairs, self.turning, after
                for by_step in every:
                    by_step.append(by_step[twin])
                if twin in self.tail:
                    self.tail[k] = self.tail[twin]
            count, sorts, kept = after[k]
            states.append(count)
            here = np.zeros(count, np.bool_)
            here[lead[k]] = True
        inside = range(self.last + 1) if chain.fold is None else range(chain.fold + 1, self.last + 1)
        layers = [k for k in inside if k == inside[0] or (k < self.last and self.spreads(k))]
        self.turns = layers if chain.fold is not None else []  # where weights may rise
        self.turn = np.searchsorted(self.turns, np.arange(self.last + 1), side="right") - 1  # the last one, by step
        like = np.array(chain.like)
        first = [run[0] for run in chain.runs for _ in run] if chain.counted else chain.shares
        blocks = [0, *([1, *(2 + b for b in first)] if chain.waits else [])]  # of the tail, for each accelerator
        shared = [np.array(first), *(self.shares + like + n * self.places for n in blocks)]
        shared += [self.few + like + n * self.places for n in range(len(self.turns))]
        self.shared = np.concatenate(shared)  # by weight, which one it is: those of alike ones, where these are counted
        self.first_move = np.cumsum([0, *map(len, lead)])
        self.offsets = np.cumsum([0, *states])
        self.moves = self.joined(lead, costs)
        self.none_known = self.known([])

    def joined(self, lead: list[Small], costs: list[tuple[Whole, Small]]) -> Table:
        """The moves of all steps together."""
        width, counts = max(rows.shape[1] for rows, _ in costs), [len(rows) for rows, _ in costs]
        to, price = np.empty((2, self.first_move[-1]), np.int32)
        known, every = np.cumsum([0, *counts]), np.zeros((sum(counts), width), np.int64)
        for k, (rows, which) in enumerate(costs):
            own = slice(self.first_move[k], self.first_move[k + 1])
            np.add(lead[k], self.offsets[k + 1], out=to[own], casting="unsafe")
            np.add(which, known[k], out=price[own], casting="unsafe")
            every[known[k] : known[k + 1], : rows.shape[1]] = rows
        begins = [begin + starts[:-1] for begin, starts in zip(self.first_move, self.starts, strict=False)]
        begin = np.append(np.concatenate(begins), self.first_move[-1])
        return Table(begin, to, price, every, np.repeat(np.arange(1, self.last + 1), counts))

    def cost(self, k: int, moves: Whole) -> Whole:
        """What some moves of a step add to the numbers that have weights; the fused one adds nothing."""
        return self.costs(self.first_move[k] + moves)

    def costs(self, moves: Whole) -> Whole:
        """The same of moves of all steps, by their numbers in the table."""
        found: Whole = self.moves.costs[self.moves.price[moves] % len(self.moves.costs)]
        return found

    def added(self, k: int, moves: Whole) -> Whole:
        """What some moves of a step of the tail add, numbers without weights, too."""
        rows, which = self.tail[k]
        found: Whole = rows[which[moves]]
        return found

    def to(self, k: int, moves: Whole) -> Whole:
        """The states after some moves of a step."""
        found: Whole = self.moves.to[self.first_move[k] + moves] - self.offsets[k + 1]
        return found

    def narrow(self, choices: Iterable[Choice]) -> None:
        """Leave out the moves that some choices exclude, and no others."""
        chain = self.chain
        for choice in choices:
            chain = chain.narrowed(*choice)
        self.bar(chain)

    def bar(self, chain: Chain) -> None:
        """Leave out the moves that the choices of a chain exclude, and no others."""
        for k, barred in self.barred.items():
            self.price(k)[barred] -= len(self.moves.costs)
        self.barred = {}
        for k, chosen in chain.chosen.items():
            for number, yes in chosen if 0 <= k < self.last else ():  # a proof may name others, which do not exist
                self.barred[k] = self.barred.get(k, False) | ((self.numbers[k] == number) != yes)
        for k, barred in self.barred.items():
            self.price(k)[barred] += len(self.moves.costs)

    def price(self, k: int) -> Small:
        """Which costs the moves of a step have, in the table."""
        found: Small = self.moves.price[self.first_move[k] : self.first_move[k + 1]]
        return found

    def spreads(self, k: int) -> bool:
        return bool(self.chain.steps[k].func is Chain.spread)

    # ---- weights ----

    def split(self, point: Vector) -> Runs:
        """Runs of weights, from a point of the master program, rounded down so that the sums hold."""
        whole = np.floor(np.maximum(point, 0.0) * UNIT * (1 - 1e-9)).astype(int)
        head, later = whole[: self.few], whole[self.few :].reshape(-1, self.places)
        own = head[self.shares : self.shares + self.places] + np.cumsum(later, axis=0)
        return [[0, *head.tolist()], *([turn, UNIT, *row] for turn, row in zip(self.turns, own.tolist(), strict=True))]

    def point(self, runs: Runs) -> Vector:
        """A point of the master program that splits into these runs."""
        head, *later = (np.array(run[1 + (k > 0) :], float) for k, run in enumerate(runs))
        own = np.array([head[self.shares : self.shares + self.places], *later])
        every: Vector = np.concatenate([head, np.diff(own, axis=0).ravel()])
        return (every + 0.5) / UNIT  # not rounded down below them

    def weighing(self, runs: Runs) -> Weighing:
        ends = [*(run[0] for run in runs[1:]), self.last + 1]
        rows = np.zeros((self.last + 1, self.moves.costs.shape[1]), np.int64)
        for (begin, *row), end in zip(runs, ends, strict=True):
            rows[begin:end, : len(row)] = row
        rest, prices = np.zeros(self.offsets[-1], np.int64), np.zeros(2 * len(self.moves.costs), np.int64)
        weigh(self.moves, rows, prices)
        shortest(self.moves, prices, rest)
        return Weighing(rows, rest, self.offsets, runs, prices)

    def path(self, weighing: Weighing) -> Cut:
        """The cut of the shortest path."""
        moves = np.empty(self.last, np.int64)
        follow(self.moves, weighing.prices, weighing.rest, moves)
        added, end = self.costs(moves), self.last if self.chain.fold is None else self.chain.fold
        tail, inside = added[:end, : self.few].sum(axis=0).astype(float), 0.0
        sums = np.zeros((len(self.turns), self.places))
        if self.turns:
            inside = float(added[end + 1 :, 0].sum())
            np.add.at(sums, self.turn[end + 2 :], added[end + 1 :, 1 : 1 + self.places])
            sums = np.cumsum(sums[::-1], axis=0)[::-1]  # a weight stays till the end
            tail[self.shares : self.shares + self.places] += sums[0]
        return Cut(inside, np.append(tail, sums), (moves - self.first_move[:-1]).astype(np.int32))

    def weights(self, goal: int, rounds: int, known: Sequence[Cut] = (), point: Vector | None = None) -> Weighed:
        """The best weights, by cutting planes, half way to the best point; from known cuts and a point."""
        few, width = self.few, len(self.shared)
        own = np.unique(self.shared)  # weights that others may share
        master = MatrixModel()
        height = master.column(upper=4.0, cost=-1.0)
        columns = [master.column() for _ in own]

        def entries(slopes: Vector | Flags) -> list[tuple[int, float]]:
            """Of a sum of all weights."""
            sums = np.bincount(self.shared, slopes, width)[own]
            return [(j, y) for j, y in zip(columns, sums.tolist(), strict=True) if y]

        every = np.arange(width)
        master.row(entries(every < few), upper=1.0)
        if self.turns:
            master.row(entries(every >= self.shares), upper=1.0)
        relaxation, cuts = Relaxation(master), list[Cut]()

        def enter(cut: Cut) -> None:
            relaxation.row([(height, 1.0), *entries(-cut.slopes / goal)], upper=cut.constant / goal)
            cuts.append(cut)

        for cut in known:
            enter(cut)
        if point is None:
            point = np.zeros(width)
            point[:few] = 1.0 / few
            point[few : few + self.places] = self.shares / self.places / few
        best, mix = self.weighed_at(point), list[float]()
        for turn in range(rounds):
            here = self.weighed_at(point) if turn else best
            if here.value > best.value:
                best = here
            if best.value >= UNIT * goal:  # there may be no path
                break
            enter(self.path(here.weighing))
            outcome = relaxation.solve(10.0)
            if outcome.values is None or outcome.duals is None:
                break
            mix = np.abs(outcome.duals[-len(cuts) :]).tolist()
            if outcome.values[height] - best.value / (UNIT * goal) < CLOSE:
                break
            step = np.zeros(width)
            step[own] = [outcome.values[j] for j in columns]
            step = step[self.shared]
            point, before = step if turn < 3 else 0.5 * (step + best.point), point
            if np.array_equal(point, before):  # so will all that follow be
                break
        return best._replace(mix=list(zip(mix, cuts, strict=False)))

    def weighed_at(self, point: Vector) -> Weighed:
        weighing = self.weighing(self.split(point))
        return Weighed(int(weighing.rest[0]), weighing, point, [])

    def root(self) -> Whole:
        """The label of nothing."""
        return np.array([[0, *self.chain.start()]], np.int64)

    # ---- labels ----

    def ways(self, k: int, labels: Whole) -> tuple[Whole, Whole]:
        """All moves of all labels: which label, and which move."""
        starts = self.starts[k]
        count = starts[labels[:, 0] + 1] - starts[labels[:, 0]]
        rows = np.repeat(np.arange(len(labels)), count)
        which = np.arange(len(rows)) + np.repeat(starts[labels[:, 0]] - np.cumsum(count) + count, count)
        if k in self.barred:
            kept = ~self.barred[k][which]
            rows, which = rows[kept], which[kept]
        return rows, which

    def known(self, every: Sequence[tuple[int, Weighing]]) -> Known:
        """Some weights, each from a step on."""
        firsts = np.array([first for first, _ in every], np.int64)
        rows = np.empty((len(every), self.last + 1, self.moves.costs.shape[1]), np.int64)
        rests = np.empty((len(every), self.offsets[-1]), np.int64)
        for w, (_, weighing) in enumerate(every):
            rows[w], rests[w] = weighing.rows, weighing.rest
        return Known(firsts, rows, rests)

    def after(self, k: int, labels: Whole, known: Known | None = None, limit: int = 0) -> Whole:
        """What all moves of all labels lead to, in the order of :meth:`ways`.

        Without those that lead to a limit, in 4096ths, by weights that are known.
        """
        known = known or self.none_known
        if k in self.tail:
            new = self.after_in_tail(k, labels)
            for first, rows, rests in zip(*known, strict=True):
                if first <= k + 1:
                    rest = rests[self.offsets[k + 1] + new[:, 0]]
                    new = new[weighed(self.weighed(k + 1, new), rows[k + 1], rest) < limit]
            return new
        starts, states, to = self.starts[k], labels[:, 0], self.offsets[k + 1]
        new = np.empty(((starts[states + 1] - starts[states]).sum(), labels.shape[1]), np.int64)
        count = advance(labels, starts, self.first_move[k], to, self.moves, known, k + 1, limit, new)
        return new[:count]

    def after_in_tail(self, k: int, labels: Whole) -> Whole:
        """All of what moves of a step of the tail lead to."""
        rows, which = self.ways(k, labels)
        to = self.to(k, which)
        if k == self.chain.fold:
            labels = labels[rows]
            longest = labels[:, 1 : 1 + self.shares].max(axis=1)
            work = np.maximum(0, self.busy(labels) - longest[:, None])
            return np.column_stack([to, longest, work])
        new = np.maximum(0, labels[rows, 1:] + self.added(k, which))
        pairs = self.pairs[k]
        if pairs is not None:
            since = np.where(pairs[which], labels[rows, 1 : 1 + self.shares, None], NEVER).min(axis=1)
            new[:, -self.places :] = np.minimum(new[:, -self.places :], since)
        if self.chain.waits:
            self.wait(new)
        return np.column_stack([to, new])

    def wait(self, new: Whole) -> None:
        """As :func:`~.chain_after.waited`."""
        m, n = self.shares, self.places
        times, work, every, own, since = np.split(new, [m, m + n, m + 2 * n, self.few], axis=1)
        soonest = times.min(axis=1)[:, None]
        np.maximum(every, np.maximum(soonest, work + np.minimum(since, soonest)), out=every)
        np.maximum(own, np.repeat(times, self.places, axis=1), out=own)

    def search(self, bound: int, weighing: Weighing, most: int, budget: Budget) -> int:
        """What labels prove with weights, no more than a bound.

        0 if they have too many moves, if a step leaves more of them than a check follows, or if there is no time.
        """
        if self.chain.counted:  # no label may be left there
            return 0
        labels, made = self.root(), 0
        for k in range(self.last):
            labels = self.after(k, labels)
            made += len(labels)
            if made > most or budget.exhausted:
                return 0
            labels = labels[self.value(weighing, k + 1, labels) < UNIT * bound]
            if not len(labels):
                return bound
            if len(labels) > chain_labels.MOST:
                return 0
            labels = undominated(labels)
        return min(bound, int(self.ends(labels).min()))

    def busy(self, labels: Whole) -> Whole:
        """When the work of the tail can be done."""
        work = labels[:, 1 + self.shares : 1 + self.shares + self.places]
        found: Whole = np.where(work > 0, work + labels[:, -self.places :], 0)
        return found

    def weighed(self, k: int, labels: Whole) -> Whole:
        """The numbers of labels that have weights."""
        return labels[:, 1 : 1 + self.few] if self.chain.inner(k) else labels[:, 1:]

    def ends(self, labels: Whole) -> Whole:
        """The makespan that labels have in the end."""
        if self.turns:
            found: Whole = labels[:, 1] + labels[:, 2:].max(axis=1)
        else:
            waits = labels[:, 1 + self.shares + self.places : 1 + self.few]
            found = np.hstack([labels[:, 1 : 1 + self.shares], waits, self.busy(labels)]).max(axis=1)
        return found

    def value(self, weighing: Weighing, k: int, labels: Whole) -> Whole:
        return weighing.value(k, labels[:, 0], self.weighed(k, labels))


def used(rows: Whole, which: Small) -> tuple[Whole, Small]:
    """Only the rows that some move has, and which of them each has."""
    some = np.zeros(len(rows), np.bool_)
    some[which] = True
    if some.all():
        return rows, which
    return rows[some], (np.cumsum(some, dtype=np.int32) - np.int32(1))[which]


def undominated(labels: Whole) -> Whole:
    """Labels that no other one dominates, in any order; where all are few, these are moved about."""
    return labels[: sieve(labels)] if len(labels) <= LANES else labels[kept_of(labels)]


def kept_of(labels: Whole) -> Whole:
    """Which labels no other one dominates, sorted."""
    order: Whole = np.lexsort(labels.T[::-1])
    kept = np.zeros(len(order), np.bool_)
    mark(np.ascontiguousarray(labels[order]), kept)
    return order[kept]
