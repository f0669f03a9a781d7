"""The moves of a ratio along a chain as arrays: weights, cuts and labels for :mod:`ascent`.

Points of the master program are doubles; weights and what they lead to are whole numbers, counted in 4096ths.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mapgap.core import Budget
from mapgap.formulations.suboperation_mapping.chain_arrays import Arrays
from mapgap.formulations.suboperation_mapping.chain_kernels import Table, follow, mark, shortest, weigh
from mapgap.problems.suboperation_mapping.certificate.chain import Chain
from mapgap.problems.suboperation_mapping.certificate.chain_costs import NEVER
from mapgap.problems.suboperation_mapping.certificate.chain_weights import UNIT
from mapgap.solvers.highs import MatrixModel, Relaxation

Vector = NDArray[np.float64]
Whole = NDArray[np.int64]
Flags = NDArray[np.bool_]
Runs = list[list[int]]
Choice = tuple[int, int, bool]  # a step, the number of a move, and whether it is the only one, or left out
ODD = 0x61C8864680B583EB  #: its powers, modulo 2^64, sum up a row
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
        found: Whole = numbers @ self.rows[k, : numbers.shape[1]] + self.rest[self.offsets[k] + states]
        return found


class Diagram:
    """The moves of a chain as arrays: ``(to, added, where those of each state begin)`` of every step."""

    def __init__(self, chain: Chain) -> None:
        self.chain, arrays = chain, Arrays(chain)
        self.last, self.places, self.shares = len(chain.steps), len(chain.places), len(chain.shares)
        self.few = chain.weighed  # weights of the tail
        self.steps, self.numbers = list[tuple[Whole, Whole, Whole]](), list[Whole]()  # by move, which of its state
        self.turning = list[bool]()  # by step, whether moves of a state lead to different ones
        self.barred: dict[int, Flags] = {}  # by step, which moves are left out
        self.pairs = list[Flags | None]()
        here, states = np.ones(1, np.bool_), [1]  # which states can be reached
        self.twins, known = list[int](), dict[Any, int]()  # by step, the first one with the same moves and states
        for k, step in enumerate(arrays.steps()):
            states.append(arrays.count(step.sorts))
            twin = known.setdefault((id(step), here.tobytes()), k)
            self.twins.append(twin)
            if twin == k:
                kept = np.repeat(here, step.each) & (True if step.exist is None else step.exist)
                count = kept.reshape(-1, step.each).sum(axis=1)
                self.steps.append((step.to[kept], step.added[kept], np.append(0, np.cumsum(count))))
                self.numbers.append(np.tile(step.numbers, len(here))[kept])
                self.pairs.append(None if step.pairs is None else step.pairs[kept])
                self.turning.append(step.turns)
            else:
                every: tuple[list[Any], ...] = self.steps, self.numbers, self.pairs, self.turning
                for those in every:
                    those.append(those[twin])
            here = np.zeros(states[-1], np.bool_)
            here[self.steps[-1][0]] = True
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
        self.first_move = np.cumsum([0, *(len(to) for to, *_ in self.steps)])
        self.offsets = np.cumsum([0, *states])
        self.moves = self.joined(arrays)
        self.price = self.moves.price.copy()  # of all moves

    def joined(self, arrays: Arrays) -> Table:
        """The moves of all steps together."""
        which, costs, rows, known, first = list[Whole](), list[Whole](), list[Whole](), 0, dict[int, Any]()
        for k, (_, added, _) in enumerate(self.steps):
            if self.twins[k] == k:
                cost = arrays.cost(k, added) if k != self.chain.fold else np.zeros((len(added), 1), int)
                first[k] = different(cost)
            found, here = first[self.twins[k]]
            which.append(here + known)
            costs.append(found)
            rows.append(np.full(len(found), k + 1))
            known += len(found)
        width = max(found.shape[1] for found in costs)
        padded = [np.pad(found, ((0, 0), (0, width - found.shape[1]))) for found in costs]
        begins = [begin + starts[:-1] for begin, (*_, starts) in zip(self.first_move, self.steps, strict=False)]
        to = [begin + to for begin, (to, *_) in zip(self.offsets[1:], self.steps, strict=False)]
        return Table(
            np.append(np.concatenate(begins), self.first_move[-1]),
            np.concatenate(to).astype(np.int32),
            np.concatenate(which).astype(np.int32),
            np.concatenate(padded),
            np.concatenate(rows),
        )

    def cost(self, k: int, moves: Whole) -> Whole:
        """What some moves of a step add to the numbers that have weights; the fused one adds nothing."""
        found: Whole = self.moves.costs[self.price[self.first_move[k] + moves]]
        return found

    def narrow(self, choices: Iterable[Choice]) -> None:
        """Leave out the moves that some choices exclude, and no others."""
        self.barred, chain = {}, self.chain
        for choice in choices:
            chain = chain.narrowed(*choice)
        for k, chosen in chain.chosen.items():
            for number, yes in chosen:
                self.barred[k] = self.barred.get(k, False) | ((self.numbers[k] == number) != yes)
        self.moves.price[:] = self.price
        for k, barred in self.barred.items():
            self.moves.price[self.first_move[k] : self.first_move[k + 1]][barred] = len(self.moves.costs)

    def spreads(self, k: int) -> bool:
        return bool(self.chain.steps[k].func is Chain.spread)

    # ---- weights ----

    def split(self, point: Vector) -> Runs:
        """Runs of weights, from a point of the master program, rounded down so that the sums hold."""
        whole = np.floor(np.maximum(point, 0.0) * UNIT * (1 - 1e-9)).astype(int)
        head, later = whole[: self.few], whole[self.few :].reshape(-1, self.places)
        own = head[self.shares : self.shares + self.places] + np.cumsum(later, axis=0)
        return [[0, *head.tolist()], *([turn, UNIT, *row] for turn, row in zip(self.turns, own.tolist(), strict=True))]

    def weighing(self, runs: Runs) -> Weighing:
        ends = [*(run[0] for run in runs[1:]), self.last + 1]
        rows = np.zeros((self.last + 1, self.moves.costs.shape[1]), np.int64)
        for (begin, *row), end in zip(runs, ends, strict=True):
            rows[begin:end, : len(row)] = row
        rest, prices = np.zeros(self.offsets[-1], np.int64), np.zeros(len(self.moves.costs) + 1, np.int64)
        weigh(self.moves, rows, prices)
        shortest(self.moves, prices, rest)
        return Weighing(rows, rest, self.offsets, runs, prices)

    def path(self, weighing: Weighing) -> Cut:
        """The cut of the shortest path."""
        moves = np.empty(self.last, np.int64)
        follow(self.moves, weighing.prices, weighing.rest, moves)
        added, end = self.moves.costs[self.price[moves]], self.last if self.chain.fold is None else self.chain.fold
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
            point = step if turn < 3 else 0.5 * (step + best.point)
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
        _, _, starts = self.steps[k]
        count = starts[labels[:, 0] + 1] - starts[labels[:, 0]]
        rows = np.repeat(np.arange(len(labels)), count)
        which = np.arange(len(rows)) + np.repeat(starts[labels[:, 0]] - np.cumsum(count) + count, count)
        if k in self.barred:
            kept = ~self.barred[k][which]
            rows, which = rows[kept], which[kept]
        return rows, which

    def after(self, k: int, labels: Whole) -> Whole:
        """What all moves of all labels lead to."""
        to, added, _ = self.steps[k]
        rows, which = self.ways(k, labels)
        if k == self.chain.fold:
            labels = labels[rows]
            longest = labels[:, 1 : 1 + self.shares].max(axis=1)
            work = np.maximum(0, self.busy(labels) - longest[:, None])
            return np.column_stack([to[which], longest, work]).astype(np.int64)
        new = np.maximum(0, labels[rows, 1:] + added[which])
        pairs = self.pairs[k]
        if pairs is not None:
            since = np.where(pairs[which], labels[rows, 1 : 1 + self.shares, None], NEVER).min(axis=1)
            new[:, -self.places :] = np.minimum(new[:, -self.places :], since)
        if self.chain.waits:
            self.wait(new)
        return np.column_stack([to[which], new]).astype(np.int64)

    def wait(self, new: Whole) -> None:
        """As :func:`~.chain_after.waited`."""
        m, n = self.shares, self.places
        times, work, every, own, since = np.split(new, [m, m + n, m + 2 * n, self.few], axis=1)
        soonest = times.min(axis=1)[:, None]
        np.maximum(every, np.maximum(soonest, work + np.minimum(since, soonest)), out=every)
        np.maximum(own, np.repeat(times, self.places, axis=1), out=own)

    def search(self, bound: int, weighing: Weighing, most: int, budget: Budget) -> int:
        """What labels prove with weights, no more than a bound: 0 if they have too many moves, or too little time."""
        labels, made = self.root(), 0
        for k in range(self.last):
            labels = self.after(k, labels)
            made += len(labels)
            if made > most or budget.exhausted:
                return 0
            labels = labels[self.value(weighing, k + 1, labels) < UNIT * bound]
            if not len(labels):
                return bound
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


def different(rows: Whole) -> tuple[Whole, Whole]:
    """The rows that differ, and which of them each row is."""
    sums = rows @ np.cumprod(np.full(rows.shape[1], ODD))
    _, first, which = np.unique(sums, return_index=True, return_inverse=True)
    found = rows[first]
    if not np.array_equal(found[which], rows):  # some have the same sum
        found, which = np.unique(rows, axis=0, return_inverse=True)
    return found, which


def undominated(labels: Whole) -> Whole:
    return labels[kept_of(labels)]


def kept_of(labels: Whole) -> Whole:
    """Which labels no other one dominates, sorted."""
    order: Whole = np.lexsort(labels.T[::-1])
    kept = np.zeros(len(order), np.bool_)
    mark(np.ascontiguousarray(labels[order]), kept)
    return order[kept]
