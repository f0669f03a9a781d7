"""The search of ``label_dp`` without a compiler and in integers of any size: the same recursion in plain Python.

It shares no loop with the compiled kernel, which makes it a second implementation to compare with.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import NamedTuple

import numpy as np

from mapgap.core import Budget, Stop
from mapgap.formulations.hybrid_pipeline.label.first_plan import Path
from mapgap.problems.hybrid_pipeline.lowered.arrays import Lowered
from mapgap.problems.hybrid_pipeline.lowered.tables import Array


class Label(NamedTuple):
    """Criteria of a suffix, its first stage (start, stop, group), and the label behind it."""

    d: int
    a: int
    g: int
    w: int
    start: int
    stop: int
    group: int
    behind: Label | None


class Costs:
    """Stage costs on demand, each computed once; layers, groups and K are the keys."""

    def __init__(self, low: Lowered) -> None:
        self.low = low
        self.tables: list[list[list[list[int]]]] = [low.both.tolist(), low.forward.tolist(), low.backward.tolist()]
        self.state: list[int] = low.state.tolist()
        self.activation: list[int] = low.activation.tolist()
        self.room: list[int] = low.room.tolist()
        self.members: list[list[tuple[int, int]]] = [
            [(c, n) for c, n in enumerate(row) if n] for row in low.groups.tolist()
        ]
        self.rows: dict[tuple[int, int, int, int], list[int]] = {}
        self.totals: dict[tuple[int, int, int, int, int], int | None] = {}
        self.pairs: dict[tuple[int, int, int, int], tuple[int, int] | None] = {}

    def row(self, table: int, c: int, i: int, j: int) -> list[int]:
        """Times of a stage by share on a class: 0 both, 1 forward, 2 backward."""
        key = (table, c, i, j)
        if key not in self.rows:
            of = self.tables[table][c]
            self.rows[key] = [y - x for x, y in zip(of[i], of[j], strict=True)]
        return self.rows[key]

    def caps(self, i: int, j: int, group: int, kept: int) -> dict[int, int] | None:
        """Eq. (3): largest share by class, ``None`` where a micro-batch does not fit."""
        held, stored = self.state[j] - self.state[i], kept * (self.activation[j] - self.activation[i])
        batch = self.low.batch
        found, total = {}, 0
        for c, number in self.members[group]:
            left = self.room[c] - held
            if left < 0:
                return None
            found[c] = batch if stored == 0 else min(batch, left // stored)
            total += number * found[c]
        return found if total >= batch else None

    def total(self, i: int, j: int, group: int, kept: int, table: int = 0) -> int | None:
        """T of Eq. (7), or the same for the forward or backward pass alone; ``None`` where memory does not suffice."""
        key = (table, i, j, group, kept)
        if key not in self.totals:
            caps = self.caps(i, j, group, kept)
            self.totals[key] = None if caps is None else self._total(table, i, j, group, caps)
        return self.totals[key]

    def _total(self, table: int, i: int, j: int, group: int, caps: dict[int, int]) -> int:
        members, batch = self.members[group], self.low.batch
        if len(members) == 1:
            c, number = members[0]
            return self.row(table, c, i, j)[-(-batch // number)]
        rows = [(self.row(table, c, i, j), number, caps[c]) for c, number in members]

        def enough(limit: int) -> bool:
            return sum(n * min(cap, bisect_right(row, limit) - 1) for row, n, cap in rows) >= batch

        best = None
        for row, _, cap in rows:
            if best is not None and row[0] >= best:
                continue
            if enough(row[cap]):
                value = row[bisect_left(row, True, 0, cap, key=enough)]
                best = value if best is None else min(best, value)
        assert best is not None
        return best

    def pair(self, i: int, j: int, group: int, kept: int) -> tuple[int, int] | None:
        """Eq. (8): ``(E_f, E_b)`` with the ties of rule 6, ``None`` where memory does not suffice."""
        key = (i, j, group, kept)
        if key not in self.pairs:
            self.pairs[key] = self._pair(i, j, group, kept)
        return self.pairs[key]

    def _pair(self, i: int, j: int, group: int, kept: int) -> tuple[int, int] | None:
        total = self.total(i, j, group, kept)
        if total is None:
            return None
        members, batch = self.members[group], self.low.batch
        if len(members) == 1:
            c, number = members[0]
            share = -(-batch // number)
            return self.row(1, c, i, j)[share], self.row(2, c, i, j)[share]
        caps = self.caps(i, j, group, kept)
        assert caps is not None
        rows = []
        for c, number in members:
            cap = min(caps[c], bisect_right(self.row(0, c, i, j), total) - 1)
            rows.append((self.row(1, c, i, j)[: cap + 1], self.row(2, c, i, j)[: cap + 1], number))
        slack = sum(number * (len(forward) - 1) for forward, _, number in rows) - batch
        forwards = sorted({f for row, _, _ in rows for f in row}, reverse=True)
        backwards = sorted({b for _, row, _ in rows for b in row})
        best: tuple[int, int] | None = None
        for f in forwards:  # descending, until too few samples are left
            caps_f = [bisect_right(row, f) - 1 for row, _, _ in rows]
            lost = sum(n * (len(row) - 1 - cap) for (row, _, n), cap in zip(rows, caps_f, strict=True))
            if lost > slack:
                break

            def enough(b: int, caps_f: list[int] = caps_f) -> bool:
                return (
                    sum(n * min(cap, bisect_right(row, b) - 1) for (_, row, n), cap in zip(rows, caps_f, strict=True))
                    >= batch
                )

            b = backwards[bisect_left(backwards, True, key=enough)]
            if best is None or f + b <= sum(best):
                best = (f, b)
        return best


def front_sums(low: Lowered, table: Array) -> list[list[int]]:
    """Least sum of a time table over all stages in front of a layer, by the group of the devices left for them.

    Some member of a group of k devices takes at least ``ceil(B / k)`` samples, whichever layers it has.
    """
    sums = np.zeros((len(low.groups), low.layers + 1), np.int64)
    layer = np.diff(table, axis=1)  # (C, L, B + 1)
    for g in range(1, len(low.groups)):
        share = -(-low.batch // int(low.members[g]))
        np.cumsum(layer[low.groups[g] > 0, :, share].min(axis=0), out=sums[g, 1:])
    found: list[list[int]] = sums.tolist()
    return found


class Interpreted:
    """The search in Python; ``stop`` and ``bound`` as of ``label_search.CompiledSearch``.

    ``most`` limits the number of stages.
    """

    def __init__(self, low: Lowered, everyone: bool, budget: Budget | None = None, most: int | None = None) -> None:
        self.low, self.everyone, self.budget, self.most = low, everyone, budget, most
        self.costs = Costs(low)
        self.front, self.front_f = front_sums(low, low.both), front_sums(low, low.forward)
        self.stop: Stop | None = None
        self.bound = 0

    def __call__(self, cuts: list[int], upper: int) -> tuple[int, Path, dict[str, int]]:
        search = Search(
            self.low, self.costs, self.front, self.front_f, self.everyone, cuts, upper, self.budget, self.most
        )
        found = search.run()
        self.stop, self.bound = search.stop, 0 if search.stop else search.upper
        return found


class Search:
    """One search over a selection of cuts."""

    def __init__(
        self,
        low: Lowered,
        costs: Costs,
        front: list[list[int]],
        front_f: list[list[int]],
        everyone: bool,
        cuts: list[int],
        upper: int,
        budget: Budget | None = None,
        most: int | None = None,
    ) -> None:
        self.most = most
        self.low, self.costs, self.front, self.front_f = low, costs, front, front_f
        self.everyone, self.cuts, self.upper, self.budget = everyone, cuts, upper, budget
        self.last, moves = len(cuts) - 1, low.moves
        pairs = list(zip(moves.group.tolist(), moves.target.tolist(), strict=True))
        #: (group, state with it) by state
        self.moves = [pairs[a:b] for a, b in zip(moves.first[:-1].tolist(), moves.first[1:].tolist(), strict=True)]
        self.left: list[int] = moves.left.tolist()
        self.complete = low.complete(everyone).tolist()
        self.groups = sorted({group for group, _ in pairs})
        self.best: Label | None = None
        self.labels = 0
        self.stop: Stop | None = None
        slowest = low.form.factor * low.form.ways * low.rounds
        self.allowed = [p in (0, self.last) or slowest * int(low.comm[-1, cut]) < upper for p, cut in enumerate(cuts)]

    def run(self) -> tuple[int, Path, dict[str, int]]:
        """Best objective below the bound given (or that bound), its stages, counts."""
        window = self._windows()
        reach = self._reaches(window)
        #: per position: (state, stages, head group) -> Pareto list
        nodes: list[dict[tuple[int, int, int], list[Label]]] = [{} for _ in self.cuts]
        for p in range(self.last - 1, -1, -1):
            if not self.allowed[p]:
                continue
            for r in range(p + 1, max(window[p]) + 1):
                if self.budget is not None and self.budget.exhausted:
                    self.stop = Stop.TIME
                    break
                if self.allowed[r]:
                    self._extend(p, r, reach, window[p], nodes)
        path, label = [], self.best
        while label is not None:
            path.append((label.start, label.stop, label.group))
            label = label.behind
        return self.upper, path, {"labels": self.labels, "stage_costs": len(self.costs.pairs)}

    def _windows(self) -> list[list[int]]:
        """Per position and group the last position up to which a stage may reach."""
        factor = self.low.form.factor * self.low.rounds
        window = [[0] * len(self.low.groups) for _ in self.cuts]
        for group in self.groups:
            end = self.last
            for p in range(self.last - 1, -1, -1):
                while end > p:
                    total = self.costs.total(self.cuts[p], self.cuts[end], group, 1)
                    if total is not None and factor * total < self.upper:
                        break
                    end -= 1
                window[p][group] = end
        return window

    def _reaches(self, window: list[list[int]]) -> list[int]:
        """Per state the last position up to which the devices left can cover the network from the front."""
        reach = [0] * len(self.moves)
        for state in range(len(self.moves) - 1, -1, -1):
            for group, target in self.moves[state]:
                end = max(reach[target], window[reach[target]][group])
                while not self.allowed[end]:
                    end -= 1
                reach[state] = max(reach[state], end)
        return reach

    def _extend(
        self, p: int, r: int, reach: list[int], window: list[int], nodes: list[dict[tuple[int, int, int], list[Label]]]
    ) -> None:
        """Put every stage [p, r) before every label at r."""
        low, i, j = self.low, self.cuts[p], self.cuts[r]
        form, rounds = low.form, low.rounds
        passing = max(form.aligned, form.drain)
        behind: list[tuple[tuple[int, int, int], list[Label | None]]]
        behind = [((0, 0, 0), [None])] if r == self.last else [(key, list(found)) for key, found in nodes[r].items()]
        for (state, q, head), labels in behind:
            if self.most is not None and q + (1 if p == 0 else 2) > self.most:
                continue
            for group, target in self.moves[state]:
                if r > window[group] or not (self.complete[target] if p == 0 else p <= reach[target]):
                    continue
                pair = self.pair(i, j, group, low.kept(q))
                rest = self.left[target]
                if pair is None:
                    continue
                ta, moved = low.allreduce(i, j, group), low.migration(i, j, group)
                taken = low.taken(i, j, group)
                c = low.link(j, group, head) if q else 0
                both, forward = form.aligned * self.front[rest][i], passing * self.front_f[rest][i]
                for label in labels:
                    busy = form.busy * self.longest(i, j, group, low.kept(q), pair)
                    d, a, g = self.combine(label, pair, busy, c, ta, moved)
                    w = taken + form.turns * form.ways * c + (label.w if label else 0)
                    if p == 0 and form.turns:
                        d = max(d, form.busy * w + form.aligned * sum(pair))
                    value = rounds * max(d + both, self.total(d, a) + forward, form.busy * w) + g
                    if value >= self.upper:
                        continue
                    new = Label(d, a, g, w, i, j, group, label)
                    if p == 0:
                        self.upper, self.best = rounds * self.total(d, a) + g, new
                        self.labels += 1
                        continue
                    key = (target, q + 1, 0 if low.uniform else group)
                    rivals = nodes[p].setdefault(key, [])
                    if not any(x.d <= d and x.a <= a and x.g <= g and x.w <= w for x in rivals):
                        rivals[:] = [x for x in rivals if not (d <= x.d and a <= x.a and g <= x.g and w <= x.w)]
                        rivals.append(new)
                        self.labels += 1

    def pair(self, i: int, j: int, group: int, kept: int) -> tuple[int, int] | None:
        """``(E_f, E_b)`` of a stage, with what the execution makes part of them."""
        found = self.costs.pair(i, j, group, kept)
        return None if found is None else self.low.charged(i, j, group, *found)

    def longest(self, i: int, j: int, group: int, kept: int, pair: tuple[int, int]) -> int:
        """What a stage takes per micro-batch when it never waits: E."""
        return sum(pair)

    def combine(
        self, label: Label | None, pair: tuple[int, int], busy: int, c: int, ta: int, moved: int
    ) -> tuple[int, int, int]:
        """Labels after a stage (and a communication step of c each way) is put before the suffix of ``label``."""
        form, e = self.low.form, sum(pair)
        if label is None:
            return busy, ta + form.drain * e, moved
        step = e + form.ways * c
        d = max(busy, form.busy * form.ways * c + form.aligned * e, form.aligned * step + label.d)
        a = max(ta, label.a - form.excess * (pair[1] + c) + form.turns * ta) + form.drain * step
        return d, a, max(moved, label.g)

    @staticmethod
    def total(d: int, a: int) -> int:
        """Latency of a suffix."""
        return d + a
