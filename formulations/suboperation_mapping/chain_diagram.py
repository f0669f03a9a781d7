"""The moves of a ratio along a chain as arrays: weights, cuts and labels for :mod:`ascent`.

Points of the master program are doubles; weights and what they lead to are whole numbers, counted in 4096ths.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mapgap.core import Budget
from mapgap.formulations.suboperation_mapping.params import Chains as Params
from mapgap.kernels import kernel
from mapgap.problems.suboperation_mapping.certificate.chain import Chain
from mapgap.problems.suboperation_mapping.certificate.chain_costs import NEVER
from mapgap.problems.suboperation_mapping.certificate.chain_weights import UNIT
from mapgap.solvers.highs import MatrixModel

Vector = NDArray[np.float64]
Whole = NDArray[np.int64]
Runs = list[list[int]]
Choice = tuple[int, int, bool]  # a step, the number of a move, and whether it is the only one, or left out
CLOSE = 2e-5  #: of weights: the part of the bound that better ones could add


@kernel("void(i8[:,::1],b1[::1])")
def mark(labels: Whole, kept: NDArray[np.bool_]) -> None:
    """Rows of ``(state, numbers …)``, sorted, that no other one of the state dominates."""
    first = 0
    for i in range(len(labels)):
        if labels[i, 0] != labels[first, 0]:
            first = i
        kept[i] = True
        for j in range(first, i):
            if kept[j]:
                less = True
                for m in range(1, labels.shape[1]):
                    if labels[j, m] > labels[i, m]:
                        less = False
                        break
                if less:
                    kept[i] = False
                    break


class Cut(NamedTuple):
    """What a path costs by weights: the constant, the coefficients, and its moves."""

    constant: float
    slopes: Vector
    moves: NDArray[np.int32]


class Weighed(NamedTuple):
    """The best weights of a label: its value in 4096ths, their point, and the paths that are shortest, with shares."""

    value: int
    weighing: Weighing
    point: Vector
    mix: list[tuple[float, Cut]]


class Weighing:
    """Weights from a step on, as rows by step, and what states lead to."""

    def __init__(self, first: int, rows: list[Whole], rest: list[Whole], runs: Runs) -> None:
        self.first, self.rows, self.rest, self.runs = first, rows, rest, runs

    def value(self, k: int, states: Whole, numbers: Whole) -> Whole:
        """Least makespans of labels with these numbers, in 4096ths."""
        found: Whole = numbers @ self.rows[k - self.first] + self.rest[k - self.first][states]
        return found


class Diagram:
    """The moves of a chain as arrays: ``(to, added, where those of each state begin)`` of every step."""

    def __init__(self, chain: Chain) -> None:
        self.chain, self.states = chain, chain.states()
        self.last, self.places, self.shares = len(chain.steps), len(chain.places), len(chain.shares)
        self.steps: list[tuple[Any, Any, Any]] = []
        self.numbers: list[Whole] = []  # by step and move, which it is of its state
        self.barred: dict[int, NDArray[np.bool_]] = {}  # by step, which moves are left out
        self.costs: list[Whole] = []  # what moves add to the numbers that have weights
        self.pairs: list[Any] = []  # by step, move, share and start: whether one gets an operation of the other
        for k in range(self.last):
            after = {state: i for i, state in enumerate(self.states[k + 1])}
            moves = [(i, after[t], d, p) for i, s in enumerate(self.states[k]) for t, d, p in chain.moves(k, s)]
            where, to = (np.array([move[j] for move in moves]) for j in (0, 1))
            added = np.array([move[2] for move in moves], np.int64)
            self.costs.append(np.array([chain.cost(k, move[2]) for move in moves], np.int64))
            pairs = np.zeros((len(moves), self.shares, chain.timed), np.bool_)
            for j, move in enumerate(moves):
                for b, a in move[3]:
                    pairs[j, b, a] = True
            self.pairs.append(pairs if pairs.any() else None)
            starts = np.searchsorted(where, np.arange(len(self.states[k]) + 1))
            self.steps.append((to, added, starts))
            self.numbers.append(np.arange(len(where)) - starts[where])
        inside = range(self.last + 1) if chain.fold is None else range(chain.fold + 1, self.last + 1)
        layers = [k for k in inside if k == inside[0] or (k < self.last and self.spreads(k))]
        self.turns = layers if chain.fold is not None else []  # where weights may rise

    def narrow(self, choices: Iterable[Choice]) -> None:
        """Leave out the moves that some choices exclude, and no others."""
        self.barred = {}
        for k, number, yes in choices:
            self.barred[k] = self.barred.get(k, False) | ((self.numbers[k] == number) != yes)

    def spreads(self, k: int) -> bool:
        return bool(self.chain.steps[k].func is Chain.spread)

    # ---- weights ----

    def split(self, first: int, point: Vector) -> Runs:
        """Runs of weights, from a point of the master program, rounded down so that the sums hold."""
        n, runs, own = self.places, [], np.zeros(self.places)
        whole = np.floor(np.maximum(point, 0.0) * UNIT * (1 - 1e-9)).astype(int)
        if self.chain.inner(first):
            few = self.shares + self.chain.timed
            head, whole = whole[:few], whole[few:]
            runs.append([first, *head.tolist()])
            own = own + head[self.shares : self.shares + n]
        for turn in self.later(first):
            own, whole = own + whole[:n], whole[n:]
            runs.append([max(turn, first), UNIT, *own.astype(int).tolist()])
        return runs

    def turn(self, first: int) -> int:
        """The run of weights that a step belongs to."""
        return -1 if self.chain.inner(first) else max(t for t in self.turns if t <= first)

    def later(self, first: int) -> list[int]:
        """The runs of weights from that of a step on."""
        return [t for t in self.turns if t >= first or t == self.turn(first)]

    def weighing(self, first: int, runs: Runs) -> Weighing:
        ends = [*(run[0] for run in runs[1:]), self.last + 1]
        whole = [run[1:] for run, end in zip(runs, ends, strict=True) for _ in range(run[0], end)]
        rows = [np.array(row, np.int64) for row in whole]
        rest = [np.zeros(len(self.states[self.last]), np.int64)]
        for k in reversed(range(first, self.last)):
            to, _, starts = self.steps[k]
            row = rows[k + 1 - first]
            cost = rest[-1][to] if k == self.chain.fold else rest[-1][to] + self.costs[k] @ row
            if k in self.barred:
                cost = np.where(self.barred[k], NEVER, cost)
            rest.append(np.minimum(NEVER, np.minimum.reduceat(cost, starts[:-1])))
        return Weighing(first, rows, rest[::-1], runs)

    def path(self, weighing: Weighing, label: Whole) -> Cut:
        """The cut of the shortest path from a label."""
        first, state, n = weighing.first, int(label[0]), self.places
        row, moves = weighing.rows, list[int]()
        own, inside, sums = self.weighed(first, label[None, :])[0].astype(float), 0.0, {}
        if not self.chain.inner(first):
            inside, here = own[0], own[1:]
            sums[self.turn(first)] = here.copy()
        own = own if self.chain.inner(first) else np.zeros(0)
        for k in range(first, self.last):
            (to, _, starts), added = self.steps[k], self.costs[k]
            low, high = starts[state], starts[state + 1]
            cost = weighing.rest[k + 1 - first][to[low:high]]
            if k != self.chain.fold:
                cost = cost + added[low:high] @ row[k + 1 - first]
            if k in self.barred:
                cost = np.where(self.barred[k][low:high], NEVER, cost)
            j = low + int(cost.argmin())
            moves.append(j)
            if self.chain.inner(k + 1):
                own = own + added[j]
            elif k != self.chain.fold:
                inside += added[j, 0]
                turn = self.turn(k + 1)
                sums[turn] = sums.get(turn, 0.0) + added[j, 1:]
            state = int(to[j])
        suffix, parts = np.zeros(n), []
        for turn in reversed(self.later(first)):
            suffix = suffix + sums.get(turn, 0.0)
            parts.append(suffix)
        if self.chain.inner(first):
            own[self.shares : self.shares + n] += suffix
        return Cut(inside, np.concatenate([own, *parts[::-1]]) if parts else own, np.array(moves, np.int32))

    def weights(
        self, first: int, label: Whole, goal: int, rounds: int, known: Sequence[Cut] = (), point: Vector | None = None
    ) -> Weighed:
        """The best weights for a label: by cutting planes, half way to the best point; from known cuts and a point."""
        n, few = self.places, self.shares + self.chain.timed if self.chain.inner(first) else 0
        count = few + n * len(self.later(first))
        master = MatrixModel()
        height = master.column(upper=4.0, cost=-1.0)
        columns = [master.column() for _ in range(count)]
        if few:
            master.row([(j, 1.0) for j in columns[:few]], upper=1.0)
        if self.turns:
            master.row([(j, 1.0) for j in columns[self.shares if few else 0 :]], upper=1.0)
        cuts: list[Cut] = []

        def enter(cut: Cut) -> None:
            slopes = (-cut.slopes / goal).tolist()
            master.row([(height, 1.0), *zip(columns, slopes, strict=True)], upper=cut.constant / goal)
            cuts.append(cut)

        for cut in known:
            enter(cut)
        if point is None:
            point = np.zeros(count)
            point[:few] = 1.0 / few if few else 0.0
            some = (n if few == 0 else self.shares) / n / (n if few == 0 else few)
            point[few : few + n] = some if self.turns else 0.0
        best, mix = self.weighed_at(first, label, point), list[float]()
        for turn in range(rounds):
            here = self.weighed_at(first, label, point) if turn else best
            if here.value > best.value:
                best = here
            enter(self.path(here.weighing, label))
            outcome = master.solve(10.0, relaxed=True, simplex=True)
            if outcome.values is None or outcome.duals is None:
                break
            mix = np.abs(outcome.duals[-len(cuts) :]).tolist()
            if outcome.values[height] - best.value / (UNIT * goal) < CLOSE or best.value >= UNIT * goal:
                break
            step = np.array([outcome.values[j] for j in columns])
            point = step if turn < 3 else 0.5 * (step + best.point)
        return best._replace(mix=list(zip(mix, cuts, strict=False)))

    def weighed_at(self, first: int, label: Whole, point: Vector) -> Weighed:
        weighing = self.weighing(first, self.split(first, point))
        return Weighed(int(self.value(weighing, first, label[None, :])[0]), weighing, point, [])

    def root(self) -> Whole:
        return np.array([0, *self.chain.start()], np.int64)

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
        to, added, starts = self.steps[k]
        rows, which = self.ways(k, labels)
        if k == self.chain.fold:
            longest = labels[:, 1 : 1 + self.shares].max(axis=1)
            work = np.maximum(0, self.busy(labels) - longest[:, None])
            return np.column_stack([to[starts[labels[:, 0]]], longest, work]).astype(np.int64)
        new = np.maximum(0, labels[rows, 1:] + added[which])
        pairs = self.pairs[k]
        if pairs is not None:
            since = np.where(pairs[which], labels[rows, 1 : 1 + self.shares, None], NEVER).min(axis=1)
            new[:, -since.shape[1] :] = np.minimum(new[:, -since.shape[1] :], since)
        return np.column_stack([to[which], new]).astype(np.int64)

    def search(
        self, bound: int, params: Params, budget: Budget, known: Sequence[Weighing]
    ) -> tuple[int, dict[str, Any]]:
        """What labels prove, at most the bound, and how: 0 if there are too many of them, or too little time."""
        rng, weighings = np.random.default_rng(0), list(known)
        labels, total = self.root()[None, :], 0
        grid = [1] * self.last
        for k in range(self.last):
            labels = self.alive(k + 1, self.after(k, labels), bound, weighings)
            if len(labels) > params.labels:
                return 0, {}
            labels = undominated(labels)
            if self.learns(k + 1):
                labels = self.learn(k + 1, labels, bound, params, weighings, rng)
            while len(labels) > params.widest and grid[k] < bound:
                grid[k] *= 2
                labels = rounded(labels, grid[k])
            total += len(labels)
            if budget.exhausted or total > params.labels:
                return 0, {}
            if not len(labels):
                break
        if len(labels):
            bound = min(bound, int(self.ends(labels).min()))
        return bound, {"weights": [[w.first, w.runs] for w in weighings], "grid": grid}

    def busy(self, labels: Whole) -> Whole:
        """When the work of the tail can be done."""
        k, n = 1 + self.shares, self.chain.timed
        ends = np.where(labels[:, k : k + n] > 0, labels[:, k : k + n] + labels[:, k + n :], 0)
        found: Whole = ends.reshape(len(labels), -1, self.places).max(axis=1)
        return found

    def weighed(self, k: int, labels: Whole) -> Whole:
        """The numbers of labels that have weights."""
        few, late = 1 + self.shares + self.places, self.chain.late
        if not self.chain.inner(k):
            return labels[:, 1:]
        if not late:
            return labels[:, 1:few]
        soonest = np.minimum(labels[:, -late:], labels[:, 1 : 1 + self.shares].min(axis=1)[:, None])
        return np.hstack([labels[:, 1:few], labels[:, few : few + late] + soonest])

    def ends(self, labels: Whole) -> Whole:
        """The makespan that labels have in the end."""
        if self.turns:
            found: Whole = labels[:, 1] + labels[:, 2:].max(axis=1)
        else:
            found = np.maximum(labels[:, 1 : 1 + self.shares].max(axis=1), self.busy(labels).max(axis=1))
        return found

    def learns(self, k: int) -> bool:
        return k < self.last and (k in self.turns or self.chain.inner(k))

    def learn(self, k: int, labels: Whole, bound: int, params: Params, weighings: list[Weighing], rng: Any) -> Whole:
        """Weights for the least label, and for any one, in turns, as long as they drop some."""
        for turn in range(params.learnt):
            if len(labels) < params.fine:
                break
            values = self.values(k, labels, weighings)
            i = int(values.argmin()) if turn % 2 == 0 else int(rng.integers(len(labels)))
            found = self.weights(k, labels[i], bound, params.rounds)
            if found.value > values[i] + CLOSE * UNIT * bound:
                weighings.append(found.weighing)
                labels = self.alive(k, labels, bound, [found.weighing])
        return labels

    def values(self, k: int, labels: Whole, weighings: Sequence[Weighing]) -> Whole:
        found = np.full(len(labels), -1)
        for weighing in weighings:
            if weighing.first <= k:
                found = np.maximum(found, self.value(weighing, k, labels))
        return found

    def value(self, weighing: Weighing, k: int, labels: Whole) -> Whole:
        return weighing.value(k, labels[:, 0], self.weighed(k, labels))

    def alive(self, k: int, labels: Whole, bound: int, weighings: Sequence[Weighing]) -> Whole:
        """Those that no weights show to reach the bound."""
        for weighing in weighings:
            if weighing.first <= k and len(labels):
                labels = labels[self.value(weighing, k, labels) < UNIT * bound]
        return labels


def undominated(labels: Whole) -> Whole:
    return labels[kept_of(labels)]


def kept_of(labels: Whole) -> Whole:
    """Which labels no other one dominates, sorted."""
    order: Whole = np.lexsort(labels.T[::-1])
    kept = np.zeros(len(order), np.bool_)
    mark(np.ascontiguousarray(labels[order]), kept)
    return order[kept]


def rounded(labels: Whole, grid: int) -> Whole:
    if grid == 1 or not len(labels):
        return labels
    labels = labels.copy()
    labels[:, 2:] -= labels[:, 2:] % grid
    return undominated(labels)
