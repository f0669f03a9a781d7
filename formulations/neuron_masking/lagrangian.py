"""Branch and bound on the Lagrangian of the limits, with bounds in exact integers. One device and cycle time.

The bound is that of :mod:`mapgap.formulations.neuron_masking.prices`, for given prices or the best ones.

1.  *Bound.* Cutting planes find the prices of the smallest bound over a box of counts.
2.  *Removal.* The program forwards and backwards gives the largest Lagrangian of a mask with n_i = n; counts that
    cannot be part of a better mask leave the box (``run_hull``).
3.  *Enumeration.* All masks whose Lagrangian comes within some distance of the bound are enumerated, with the program's
    table as exact completion (``run_enumeration``). Each mask worth more than the target is among them: if the
    enumeration ends, the box is solved. The distance grows until the steps run out.
4.  *Branching.* Otherwise the box is halved in the layer where the masks of the last cuts differ most.

The products make the Lagrangian favour extremes (one layer whole, its neighbour least). The curvature of contribution
counteracts and leaves tiny gaps; counts leave larger ones, which branching closes. The proofs are in
``docs/methods/neuron_masking.md``.

The smallest share needs none of this: ``n_i = ceil(s N_i / 10000)`` (or least_i) is the smallest mask of share s, and
costs grow with every n_i, so share s is possible if and only if this mask is within the limits; bisection on s.
"""

from __future__ import annotations

import heapq
from functools import partial

import numpy as np

from mapgap.core import Budget, SolveResult, Status, Stop
from mapgap.formulations.neuron_masking.fleet import solve
from mapgap.formulations.neuron_masking.lagrangian_kernels import Tables, run_enumeration, run_hull
from mapgap.formulations.neuron_masking.params import Lagrangian as Params
from mapgap.formulations.neuron_masking.price_kernels import Box, Prices, run_program
from mapgap.formulations.neuron_masking.prices import Counts, Lagrangian, box_of
from mapgap.kernels import Integers
from mapgap.problems.neuron_masking import SHARE, Instance, Mask, Plan
from mapgap.problems.neuron_masking.lowered.chain import Chain
from mapgap.problems.neuron_masking.lowered.shares import largest_fitting, uniform_mask

Bounds = tuple[Counts, Counts]
"""Lower and upper counts of a box."""


def _reversed(row: Integers) -> Integers:
    return np.ascontiguousarray(row[::-1])


class Search(Lagrangian):
    """Branch and bound for the objectives ``neurons`` and ``contribution``; the chain has a mask."""

    def __init__(self, chain: Chain, budget: Budget, params: Params = Params()) -> None:
        super().__init__(chain, budget)
        self.steps, self.boxes = params.steps, 0
        self.tables = Tables(self.prefix, np.zeros_like(self.prefix), self.choice)

    def shrunk(self, lower: Counts, upper: Counts) -> Counts:
        """Largest counts that fit with all other layers at the bottom of the box."""
        now, found = list(lower), []
        for i, most in enumerate(upper):
            low, high = lower[i], most + 1
            while high - low > 1:
                now[i] = (low + high) // 2
                low, high = (now[i], high) if self.chain.fits(now) else (low, now[i])
            now[i] = lower[i]
            found.append(low)
        return tuple(found)

    def fill_tables(self, box: Box, prices: Prices) -> None:
        """Both tables; the reversed chain has the pair of layers i - 1 and i one layer earlier."""
        pair = np.zeros_like(prices.pair)
        pair[1:] = prices.pair[:0:-1]
        worth = self.worth._replace(start=_reversed(self.worth.start))
        turned = Box(_reversed(box.lower), _reversed(box.upper))
        kept = np.zeros(len(box.lower), np.int64)
        against = Prices(pair, _reversed(prices.single), prices.support)
        run_program(worth, turned, against, self.tables.suffix, self.tables.choice, kept)
        self.run_forwards(box, prices)

    def hull(self, box: Box, prices: Prices, target: int) -> Box | None:
        """Counts that a mask worth ``target`` may have, after :meth:`fill_tables`; ``None`` if there is none."""
        inner = Box(np.zeros_like(box.lower), np.zeros_like(box.lower))
        run_hull(self.worth, box, prices, self.tables, (target << self.worth.shift) - prices.support, inner)
        return None if (inner.lower > inner.upper).any() else inner

    def solve_box(self, lower: Counts, upper: Counts, known: int) -> tuple[int, list[Bounds]]:
        """Solve a box or halve it: its bound, and the halves (none if the box holds nothing better than the best)."""
        self.boxes += 1
        self.pulls = self.boxes == 1
        reached, prices, masks = self.bound(lower, upper)
        bound = min(known, reached)
        if bound <= self.best_worth or self.budget.exhausted:
            return bound, []
        box = box_of(lower, upper)
        self.fill_tables(box, prices)
        hull = self.hull(box, prices, self.best_worth + 1)
        if hull is None:
            return self.best_worth, []
        lower, upper = (tuple(int(n) for n in side) for side in hull)
        upper = self.shrunk(lower, upper)
        if not self.chain.fits(lower):
            return self.best_worth, []
        if lower == upper:  # no other mask of the box can be better
            self.offer(lower)
            return self.best_worth, []
        bound = self.enumerate(box, prices, bound)
        if bound <= self.best_worth or self.budget.exhausted:
            return bound, []
        return bound, self.halves(lower, upper, masks)

    def enumerate(self, box: Box, prices: Prices, bound: int) -> int:
        """Enumerate from the bound down to the best worth as far as the steps allow; returns the bound proven."""
        kept = np.zeros(len(box.lower), np.int64)
        steps, distance, prefix = self.steps, 1, self.tables.prefix
        while True:
            target = max(self.best_worth + 1, bound + 1 - distance)
            kept[0] = 0  # no mask keeps none
            if hull := self.hull(box, prices, target):
                least = target << self.worth.shift
                steps = run_enumeration(self.worth, hull, prices, prefix, self.limits, least, steps, kept)
            if kept[0]:
                self.offer(tuple(int(n) for n in kept))
            if steps < 0:
                return bound
            if kept[0] or target <= self.best_worth + 1:
                return self.best_worth  # nothing in the box is worth more
            bound, distance = target - 1, 4 * distance

    def halves(self, lower: Counts, upper: Counts, masks: list[Counts]) -> list[Bounds]:
        """Halve the layer in which the last masks differ most (relative to N_i); else the widest layer."""
        inside = [[min(max(n, lower[k]), upper[k]) for k, n in enumerate(kept)] for kept in masks[-5:]]
        sides = [(min(column), max(column)) for column in zip(*inside, strict=True)]
        most = self.chain.upper
        i = max(range(len(sides)), key=lambda k: (sides[k][1] - sides[k][0]) / most[k])
        if sides[i][0] == sides[i][1]:
            i = max(range(len(sides)), key=lambda k: (upper[k] - lower[k]) / most[k])
            sides[i] = (lower[i], upper[i])
        middle = sum(sides[i]) // 2
        below, above = list(upper), list(lower)
        below[i], above[i] = middle, middle + 1
        return [(lower, tuple(below)), (tuple(above), upper)]

    def run(self) -> int:
        """Best first; returns the bound proven."""
        waiting = [(-self.chain.worth(self.chain.upper), self.chain.lower, self.chain.upper)]
        while waiting and not self.budget.exhausted:
            negative, lower, upper = heapq.heappop(waiting)
            if -negative <= self.best_worth:
                return self.best_worth
            if not self.chain.fits(lower):
                continue
            bound, halves = self.solve_box(lower, self.shrunk(lower, upper), -negative)
            if bound > self.best_worth and not halves:
                heapq.heappush(waiting, (-bound, lower, upper))  # out of time
            for half in halves:
                heapq.heappush(waiting, (-bound, *half))
            if waiting:
                self.budget.report(bound=max(self.best_worth, -waiting[0][0]))
        return max(self.best_worth, -waiting[0][0]) if waiting else self.best_worth


def solve_single(single: Instance, budget: Budget, start: Plan | None = None, params: Params = Params()) -> SolveResult:
    """Best mask of one device under one cycle time, and a bound."""
    chain = Chain.of(single)
    if single.objective == "smallest_share":
        share = largest_fitting(lambda s: uniform_mask(chain.lower, chain.upper, s), chain.fits, SHARE) or chain.lower
        return _result(chain, share, chain.worth(share))
    search = Search(chain, budget, params)
    if start is not None:
        search.offer(start.masks[0].kept)
    bound = search.run()
    return _result(chain, search.best, bound, {"boxes": search.boxes})


def _result(chain: Chain, kept: Counts, bound: int, notes: dict[str, int] | None = None) -> SolveResult:
    plan, worth = Plan(masks=(Mask(kept=kept),)), chain.worth(kept)
    proved = worth == bound
    status, stop = (Status.OPTIMAL, Stop.PROVED) if proved else (Status.FEASIBLE, Stop.TIME)
    return SolveResult(status, stop, plan, bound, worth, notes=notes or {})


def run(instance: Instance, budget: Budget, start: str | Plan | None = None, params: Params = Params()) -> SolveResult:
    """Solve every device under every cycle time that matters."""
    return solve(instance, budget, partial(solve_single, params=params), start, params)
