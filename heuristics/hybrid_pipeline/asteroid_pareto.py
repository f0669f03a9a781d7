"""Algorithm 2 with Pareto sets: the best plan along Asteroid's order, with the shares of Algorithm 1.

Algorithm 2 keeps one sub-pipeline per state, although a longer pipeline depends on two quantities of it, the aligned
dominant step D and the AllReduce excess A. Keeping all that no other one beats in both gives the optimum over the
order, so the difference to ``asteroid`` is what the missing substructure costs. A plan counts with the larger of the
latencies of its own shares and of those of Eq. (7) (rule 6 of the problem), so a label is a pair (D, A) for each of
them, and of two sub-pipelines with the same layers, places and stages, one that is no smaller in all four is dropped.

What makes it quick: the plan of Algorithm 2 is the first upper bound; a stage with ``M T`` above it is not looked at;
the places in front must be able to cover the layers in front; the least they take is added to every label. With a
failure the latency is minimised, as in Algorithm 2, not the migration.
"""

from __future__ import annotations

import time
from typing import NamedTuple

import numpy as np

from mapgap.core import Budget, SolveResult, Status, Stop
from mapgap.heuristics.hybrid_pipeline import nested
from mapgap.heuristics.hybrid_pipeline.asteroid import algorithm_2, plan_of, shares, slowest
from mapgap.heuristics.hybrid_pipeline.chain import Chain, Row, best_of, chain, report, result
from mapgap.problems.hybrid_pipeline import Instance, Plan
from mapgap.problems.hybrid_pipeline.evaluate import evaluate
from mapgap.problems.hybrid_pipeline.lowered.batching import every_micro_batch
from mapgap.problems.hybrid_pipeline.lowered.order import memory_orders
from mapgap.problems.hybrid_pipeline.lowered.tables import Array

Pair = tuple[int, int]


class Label(NamedTuple):
    """Of a sub-pipeline: D and A with the shares of Algorithm 1, with those of Eq. (7), its first stage, the rest."""

    d: int
    a: int
    nested_d: int
    nested_a: int
    row: Row
    behind: Label | None

    @property
    def latency(self) -> int:
        return max(self.d + self.a, self.nested_d + self.nested_a)

    def beats(self, other: Label) -> bool:
        """No worse in all four."""
        return all(x <= y for x, y in zip(self[:4], other[:4], strict=True))


class Search:
    """One search along a chain for plans below an upper bound."""

    def __init__(self, seen: Chain, upper: int, budget: Budget) -> None:
        self.seen, self.upper, self.budget = seen, upper, budget
        self.places, self.layers = len(seen.order), seen.layers
        self.best: Label | None = None
        self.costs: dict[tuple[Row, int], tuple[Pair, Pair] | None] = {}
        self.front, self.front_f = (self._least(table) for table in (seen.tables.both, seen.tables.forward))
        self.window = {(a, b): self._windows(a, b) for b in range(1, self.places + 1) for a in range(b)}
        self.reach = [0]
        for b in range(1, self.places + 1):
            self.reach.append(max(self.window[a, b][self.reach[a]] for a in range(b)))

    def _least(self, table: Array) -> Array:
        """(N + 1, L + 1): least time of the layers before a cut on the places before ``a``; some member of at most
        ``a`` takes ``ceil(B / a)`` samples."""
        sums = np.zeros((self.places + 1, self.layers + 1), np.int64)
        for a in range(1, self.places + 1):
            share = -(-self.seen.tables.batch // a)
            np.cumsum(np.diff(table[:a, :, share], axis=1).min(axis=0), out=sums[a, 1:])
        return sums

    def _windows(self, a: int, b: int) -> list[int]:
        """By first layer the last end of a stage with ``M T`` below the bound; T never falls as a stage grows."""
        window, end = [0] * (self.layers + 1), self.layers
        for i in range(self.layers - 1, -1, -1):
            while end > i:
                found = nested.times(self.seen, (i, end, a, b), 1)
                if found is not None and self.seen.tables.micro_batches * found[0] < self.upper:
                    break
                end -= 1
            window[i] = end
        window[self.layers] = self.layers
        return window

    def stage(self, row: Row, stages_behind: int) -> tuple[Pair, Pair] | None:
        """``(E_f, E_b)`` with the shares of Algorithm 1 and of Eq. (7); ``None`` where memory does not suffice."""
        key = row, stages_behind
        if key not in self.costs:
            given = shares(self.seen, row, stages_behind)
            kept = min(2 * stages_behind + 1, self.seen.tables.micro_batches)
            best = nested.times(self.seen, row, kept)
            self.costs[key] = None if given is None or best is None else (self._own(row, given), best[1:])
        return self.costs[key]

    def _own(self, row: Row, given: tuple[int, ...]) -> Pair:
        """Eq. (8) with given shares."""
        tables, share = self.seen.tables, np.array(given, np.int64)
        span = self.seen.span(row, 1)
        return slowest(tables.forward, span, share), slowest(tables.backward, span, share)

    def run(self) -> Label | None:
        """The best plan below the bound, if any."""
        nodes: list[dict[tuple[int, int, int], list[Label]]] = [{} for _ in range(self.layers + 1)]
        for i in range(self.layers - 1, -1, -1):
            starts = [0] if i == 0 else [a for a in range(1, self.places) if i <= self.reach[a]]
            for a in starts:
                for j in range(i + 1, max(self.window[a, b][i] for b in range(a + 1, self.places + 1)) + 1):
                    if self.budget.exhausted:
                        return self.best
                    self._extend(i, j, a, nodes)
        return self.best

    def _extend(self, i: int, j: int, a: int, nodes: list[dict[tuple[int, int, int], list[Label]]]) -> None:
        """Put ``[i, j)`` from place ``a`` on before every sub-pipeline that begins at ``j``."""
        if j == self.layers:
            if j <= self.window[a, self.places][i]:
                self._add((i, j, a, self.places), 0, 0, [None], nodes)
            return
        for (b, behind, c), labels in list(nodes[j].items()):
            if a < b and j <= self.window[a, b][i]:
                one_way = int(self.seen.tables.comm[self.seen.tables.level[a, b, c], j])
                self._add((i, j, a, b), behind, one_way, labels, nodes)

    def _add(
        self,
        row: Row,
        behind: int,
        one_way: int,
        labels: list[Label] | list[None],
        nodes: list[dict[tuple[int, int, int], list[Label]]],
    ) -> None:
        """Put one stage, with ``behind`` stages behind it, before some labels; keep what no other label beats."""
        i, _, a, b = row
        costs = self.stage(row, behind)
        if costs is None:
            return
        reduce = self.seen.allreduce(row)
        rest, rest_f = int(self.front[a, i]), int(self.front_f[a, i])
        rivals = nodes[i].setdefault((a, behind + 1, b), [])
        for label in labels:
            d, late = self._step(costs[0], one_way, reduce, label and (label.d, label.a))
            if max(d + rest, d + late + rest_f) >= self.upper:
                continue
            nested = self._step(costs[1], one_way, reduce, label and (label.nested_d, label.nested_a))
            new = Label(d, late, *nested, row, label)
            if i == 0:
                if new.latency < self.upper:
                    self.upper, self.best = new.latency, new
            elif not any(rival.beats(new) for rival in rivals):
                rivals[:] = [rival for rival in rivals if not new.beats(rival)]
                rivals.append(new)

    def _step(self, cost: Pair, one_way: int, reduce: int, behind: Pair | None) -> Pair:
        """Labels (D, A) with a stage and a communication step in front (Eqs. 4-6, 11)."""
        (ef, eb), m = cost, self.seen.tables.micro_batches
        if behind is None:
            return m * (ef + eb), reduce
        large = max(m * (ef + eb), 2 * m * one_way + ef + eb, behind[0] + 2 * one_way + ef + eb)
        return large, max(reduce, behind[1] - eb - one_way)


@every_micro_batch
def run(instance: Instance, budget: Budget, ties: str = "fastest_first") -> SolveResult:
    """The optimum over the order; without a time limit that stops it, never worse than ``asteroid``.

    Raises
    ------
    InputError
        Unknown ``ties``.
    """
    begin = time.process_time()
    orders, found = memory_orders(instance, ties), []
    for order in orders:
        found.append(_along(instance, order, budget, begin))
        if budget.exhausted:
            break
    return report(budget, best_of(instance, found))


def _along(instance: Instance, order: list[int], budget: Budget, begin: float) -> SolveResult:
    """The optimum over one order."""
    seen = chain(instance, order)
    plan, _, _, finished = algorithm_2(seen, budget=budget)
    if plan is None or not finished:
        return result(instance, plan, begin, finished)
    terms = evaluate(instance, plan).terms
    search = Search(seen, max(terms["literal_ticks"], terms["nested_ticks"]), budget)
    label, rows = search.run(), []
    while label is not None:
        rows.append(label.row)
        label = label.behind
    better: Plan | None = plan_of(seen, rows) if rows else plan
    found = result(instance, better, begin, stage_costs=len(search.costs))
    if budget.exhausted and found.status is Status.FEASIBLE:
        found = SolveResult(found.status, Stop.TIME, found.plan, notes=found.notes)
    return found
