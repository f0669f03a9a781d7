"""Annealing over ratio, mapping and order: a pool of solutions, and rounds that start from them.

The method ``anneal`` is this search, a member of the portfolio too; ``annealed_converting`` does its short rounds only.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush

import numpy as np

from mapgap.core import Budget
from mapgap.heuristics.suboperation_mapping.params import Annealing, ShortRounds
from mapgap.heuristics.suboperation_mapping.search import annealing as kernels
from mapgap.heuristics.suboperation_mapping.search.incremental import Relatives, relate
from mapgap.heuristics.suboperation_mapping.search.step_aligned import step_aligned_ratios, work_tables
from mapgap.problems.suboperation_mapping import Instance
from mapgap.problems.suboperation_mapping.lowered.arrays import PHASES, Array, Lowered, lower
from mapgap.problems.suboperation_mapping.lowered.mapped import Mapped, timed, well_balanced
from mapgap.problems.suboperation_mapping.lowered.ratios import Ratio, pe_ratio
from mapgap.problems.suboperation_mapping.lowered.timing import LINKS, roomy

SLICE = 2_000_000  #: steps times operations between two looks at the clock: some hundredths of a second
DEARER = 16  #: a timing takes about so many times as long where links are shared
GRAPHS = 200  #: graphs that are kept


@dataclass(frozen=True)
class Graph:
    """A ratio as the kernels read it."""

    lowered: Lowered
    relatives: Relatives
    labels: kernels.Labels

    @classmethod
    def of(cls, instance: Instance, ratio: Ratio) -> Graph:
        lowered = lower(instance, ratio)
        columns = zip(*((layer, PHASES.index(phase), share) for phase, layer, share in lowered.operations), strict=True)
        labels = kernels.Labels(*(np.array(column, np.int64) for column in columns))
        return cls(lowered, relate(lowered.timing, lowered.topological), labels)


def transferred(parent: Mapped, graph: Graph) -> tuple[Array, Array]:
    """``(location, sequence)`` under another ratio: operations of one name stay where they are.

    A new share lies where another operation of its layer and phase lies, and is executed beside it.
    """
    lowered, before = graph.lowered, parent.lowered.operations
    if before == lowered.operations:
        return parent.location.copy(), parent.sequence.copy()
    known = {operation: o for o, operation in enumerate(before)}
    beside = {operation[:2]: o for o, operation in enumerate(before)}
    models = [known.get(operation, beside[operation[:2]]) for operation in lowered.operations]
    missing = np.diff(lowered.timing.pred_ptr).tolist()
    succ_ptr, succ = graph.relatives.succ_ptr, graph.relatives.succ
    ready = [(int(parent.start[models[o]]), o) for o in range(lowered.n) if missing[o] == 0]
    heapify(ready)
    sequence = []
    while ready:
        _, o = heappop(ready)
        sequence.append(o)
        for q in succ[succ_ptr[o] : succ_ptr[o + 1]].tolist():
            missing[q] -= 1
            if missing[q] == 0:
                heappush(ready, (int(parent.start[models[q]]), q))
    return parent.location[models], np.array(sequence, np.int64)


def ratio_moves(instance: Instance) -> Callable[[Ratio, random.Random], Ratio]:
    """A function that draws a neighbour of a ratio: samples go from one share to another.

    One sample, a few, half or all of a share, or as many as end at the next step of a compute table.
    """
    steps = sorted({k for ticks in work_tables(instance) for k in range(1, instance.batch) if ticks[k] < ticks[k + 1]})

    def neighbour(ratio: Ratio, rng: random.Random) -> Ratio:
        giver = rng.choice([b for b, samples in enumerate(ratio) if samples > 0])
        taker = rng.choice([b for b in range(len(ratio)) if b != giver])
        give, take = ratio[giver], ratio[taker]
        up = next((k - take for k in steps if k > take), give)
        down = next((give - k for k in reversed(steps) if k < give), give)
        size = max(1, min(give, rng.choice((1, 1, 2, 4, give // 2, give, up, down))))
        changed = list(ratio)
        changed[giver], changed[taker] = give - size, take + size
        return tuple(changed)

    return neighbour


@dataclass
class Search:
    """The pool: the best solution of each of some ratios.

    Attributes
    ----------
    best : Mapped, optional
        The best of all; announced when it is found.
    """

    instance: Instance
    budget: Budget
    params: ShortRounds = field(default_factory=ShortRounds)
    pool: dict[Ratio, Mapped] = field(default_factory=dict)
    best: Mapped | None = None
    rounds: int = 0
    _graphs: dict[Ratio, Graph] = field(default_factory=dict)

    def graph(self, ratio: Ratio) -> Graph:
        """The graph of a ratio; the last ones are kept."""
        if ratio not in self._graphs:
            if len(self._graphs) >= GRAPHS:
                self._graphs.pop(next(iter(self._graphs)))
            self._graphs[ratio] = Graph.of(self.instance, ratio)
        return self._graphs[ratio]

    def offer(self, mapped: Mapped | None) -> bool:
        """Take a solution into the pool if it is worth it; whether it is the best so far."""
        if mapped is None:
            return False
        ratio, value = mapped.lowered.ratio, mapped.makespan
        held = self.pool.get(ratio)
        if held is None or value < held.makespan:
            self.pool[ratio] = mapped
            if len(self.pool) > self.params.pool:
                del self.pool[self.ranked()[-1]]
        if self.best is None or value < self.best.makespan:
            self.best = mapped
            self.budget.report(plan=mapped.plan)
            return True
        return False

    def ranked(self) -> list[Ratio]:
        """The ratios of the pool, the best first."""
        return sorted(self.pool, key=lambda ratio: (self.pool[ratio].makespan, ratio))

    def anneal(
        self, ratio: Ratio, parent: Mapped, hot: float, steps: int, seed: int, price: float | None = None
    ) -> bool:
        """Anneal the mapping of a solution under a ratio and offer the result; whether it is the best so far.

        ``price``: makespans that one capacity of DRAM too much costs; by default the first of the parameters.
        """
        graph, params = self.graph(ratio), self.params
        lowered = graph.lowered
        location, sequence = transferred(parent, graph)
        walk = kernels.Walk(location, sequence, location.copy(), sequence.copy())
        scale = float(max(1, lowered.makespan(location, sequence)))
        cooling = kernels.Cooling(
            steps=steps,
            seed=seed,
            hot=max(hot * scale * max(1.0, params.few / lowered.n), 1e-2),
            cold=max(params.cold * scale, 1e-3),
            checked=not roomy(lowered.storage),
            penalty=(price or params.prices[0]) * scale / max(1, int(lowered.storage.capacity.max(initial=1))),
        )
        tables = (lowered.timing, lowered.storage, graph.relatives, graph.labels, cooling)
        best, length = -1, max(1, SLICE // lowered.n // dearer(lowered))
        for begin in range(0, steps, length):
            best = kernels.anneal(*tables, begin, min(steps, begin + length), best, walk)
            if self.budget.exhausted:
                break
        self.rounds += 1
        return best >= 0 and self.offer(timed(lowered, walk.best_location, walk.best_sequence))


def unfit(instance: Instance, ratios: Iterable[Ratio]) -> list[Mapped]:
    """Mappings to start from where nothing is known that fits the DRAM; these do not either."""
    found = []
    for ratio in ratios:
        lowered = lower(instance, ratio)
        for location in (well_balanced(lowered), *(np.full(lowered.n, a) for a in range(lowered.accelerators))):
            found.append(
                Mapped(lowered, location, lowered.topological, *lowered.timetable(location, lowered.topological))
            )
    return found


def dearer(lowered: Lowered) -> int:
    """How many times as long a timing takes as one on links of their own, about."""
    return 1 if lowered.timing.medium == LINKS else DEARER


def mapping_work(instance: Instance) -> int:
    """About the work of one MTrain-Mapping: operations times squared accelerators, times what shared links cost."""
    lowered = lower(instance, pe_ratio(instance))
    return lowered.n * len(instance.accelerators) ** 2 * dearer(lowered)


def short_rounds(search: Search) -> None:
    """A few short rounds: all that the quick planner does, and where the longer search begins.

    The best solutions, one of each ratio, are annealed in turn, then some of them under a neighbouring ratio. The
    number of steps follows from the size of the instance: some hundredths of a second. No clock, no seed: the same
    solutions give the same, unless the time limit cuts the search.
    """
    instance, params = search.instance, search.params
    if search.best is None:
        return
    large = mapping_work(instance) > params.large
    rng, neighbour = random.Random(0), ratio_moves(instance)
    steps = min((params.work // 2 if large else params.work) // search.best.lowered.n, params.steps)
    rounds = max(params.finalists, steps // params.round)
    finalists = search.ranked()[: params.finalists]
    for turn in range(rounds):
        if search.budget.exhausted:
            break
        ranked = search.ranked()
        parent = search.pool[finalists[turn] if turn < len(finalists) else ranked[rng.randrange(len(ranked)) // 2]]
        ratio = parent.lowered.ratio
        if turn >= len(finalists) and len(ratio) > 1:
            ratio = neighbour(ratio, rng)
        search.anneal(ratio, parent, params.hot[turn % len(params.hot)], steps // rounds, turn)
    search.rounds = 0  # whoever goes on from here does so in the same way


class Rounds:
    """The rounds of a search, to be done one by one.

    1.  A parent is drawn from the pool; better ones are drawn more often.
    2.  In half of the rounds its ratio is changed (:func:`ratio_moves`).
    3.  The mapping is annealed from a temperature that the rounds take in turn; after all of them the price of DRAM
        above capacity changes. Some instances need a low one to get through what does not fit, others a high one.
    4.  Rounds grow longer while the best solution stays.

    Parameters
    ----------
    wanted : callable, optional
        Whether a ratio is worth a round.

    Attributes
    ----------
    steps : int
        Of all rounds so far, counted as steps on links of their own.
    """

    def __init__(
        self, state: Search, params: Annealing = Annealing(), wanted: Callable[[Ratio], bool] | None = None
    ) -> None:
        self.state, self.params, self.wanted = state, params, wanted
        self.rng, self.neighbour = random.Random(state.budget.seed), ratio_moves(state.instance)
        self.factor, self.stale = 1.0, 0  # length of rounds, rounds since it or the best solution changed
        self.last = state.rounds  # round of the best solution
        self.steps = 0
        ratios = step_aligned_ratios(state.instance, params.every_subset)
        self.parents = [] if state.pool else unfit(state.instance, ratios)

    def parent(self) -> Mapped:
        """Step 1."""
        ranked = self.state.ranked()
        if not ranked:
            return self.rng.choice(self.parents)
        if self.wanted is not None:
            ranked = [ratio for ratio in ranked if self.wanted(ratio)] or ranked[:1]
        return self.state.pool[ranked[min(len(ranked) - 1, int(self.rng.expovariate(0.5)))]]

    def next(self) -> bool:
        """One round; ``False`` instead if the best solution has stayed for so long that the search gives up."""
        parent, params = self.parent(), self.params
        # With two operations, as many rounds as operations would leave most parents and ratios without a turn.
        if self.state.rounds - self.last > params.patience * max(params.pool, parent.lowered.n):
            return False
        self.anneal(parent, self.drawn_ratio(parent))
        return True

    def drawn_ratio(self, parent: Mapped) -> Ratio:
        """Step 2."""
        ratio = parent.lowered.ratio
        if len(ratio) == 1 or self.rng.random() >= 0.5:
            return ratio
        other = self.neighbour(ratio, self.rng)
        return other if self.wanted is None or self.wanted(other) else ratio

    def anneal(self, parent: Mapped, ratio: Ratio) -> None:
        """Steps 3 and 4."""
        state, n, params = self.state, parent.lowered.n, self.params
        turn, which = divmod(state.rounds, len(params.hot))
        hot, price = params.hot[which], params.prices[turn % len(params.prices)]
        steps = int(self.factor * min(params.first_work // n, params.per_operation * n))
        self.steps += steps * (1 if n >= params.few else dearer(parent.lowered))
        if n >= params.few:  # rounds of a length, not of a number of steps
            steps //= dearer(parent.lowered)
        if state.anneal(ratio, parent, hot, steps, self.rng.randrange(2**31), price):
            self.last, self.stale = state.rounds, 0
        else:
            self.stale += 1
        if self.stale >= params.pool:
            self.factor, self.stale = 1.5 * self.factor, 0
