"""Branch and bound on the Lagrangian of the limits, with bounds in exact integers. One device and cycle time.

With a price A per work unit and B per memory unit the limits leave a chain whose layers couple only with their
neighbours, and the best mask is a dynamic program over n_i (``run_program``). For every mask within the limits

    worth(n)  <=  worth(n) - A W(n) - B M(n)  +  C(A, B),     C(A, B) = max of A W + B M over all (W, M) allowed,

so the largest Lagrangian plus C bounds the optimum. Time is linear in W and M (the larger of two linear functions in
spill mode) but for the rounding to whole ticks, so the (W, M) allowed lie in a polygon, and C is attained in a corner.

1.  *Bound.* Cutting planes find the prices of the smallest bound over a box of counts.
2.  *Removal.* The program forwards and backwards gives the largest Lagrangian of a mask with n_i = n; counts that
    cannot be part of a better mask leave the box (``run_hull``), which is bounded again if that shrinks it.
3.  *Enumeration.* All masks whose Lagrangian comes within some distance of the bound are enumerated, with the program's
    table as exact completion (``run_enumeration``). Each mask worth more than the target is among them: if the
    enumeration ends, the box is solved. The distance grows until the steps run out.
4.  *Branching.* Otherwise the box is halved in the layer where the masks of the last cuts differ most.

The products make the Lagrangian favour extremes (one layer whole, its neighbour least). The curvature of contribution
counteracts and leaves tiny gaps; counts leave larger ones, which branching closes. ``docs/neuron_masking_exact.md`` has
the proofs.

The smallest share needs none of this: ``n_i = ceil(s N_i / 10000)`` (or least_i) is the smallest mask of share s, and
costs grow with every n_i, so share s is possible if and only if this mask is within the limits; bisection on s.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from mapgap.core import Budget, SolveResult, Stop
from mapgap.formulations.neuron_masking._chain import Chain
from mapgap.formulations.neuron_masking._fleet import Report, Single, solve
from mapgap.formulations.neuron_masking._lagrangian_kernels import run_enumeration, run_hull, run_program, solve_master
from mapgap.problems.neuron_masking import SHARE, Instance

Array = NDArray[np.int64]
Counts = tuple[int, ...]
Box = tuple[Counts, Counts]

ROOM = 2**60
"""Scaled values and priced costs stay below this; their differences then fit 64 bits."""

CUTS = 40
"""Most cutting planes per box."""

STEPS = 20_000_000
"""Steps of the enumeration per box, about a twentieth of a second."""

SHRINKS = 0.5
"""A box is bounded again when its volume has shrunk by exp(-SHRINKS) or more."""


@dataclass(frozen=True)
class Prices:
    """Scaled integer prices as costs of the chain, and C(A, B).

    Attributes
    ----------
    pair, single : (I,)
        Price of a pair of neurons of layers i - 1 and i, and of a neuron of layer i; ``pair[0]`` is 0.
    support : int
    """

    pair: Array
    single: Array
    support: int


def corners(chain: Chain) -> list[tuple[Fraction, Fraction]]:
    """Corners of a polygon that holds every (W, M) of a mask within the limits.

    It is bounded by the axes, the unmasked model and the limits without the rounding of transfers to whole ticks.
    """
    most_work, most_memory = chain.whole_totals
    main = Fraction(chain.transfer.ticks, chain.transfer.per)
    extra = Fraction(chain.spill.ticks, chain.spill.per)
    zero, one = Fraction(0), Fraction(1)
    memory = min(chain.memory_limit, most_memory) if chain.hard else most_memory
    rows = [  # (p, q, r) of p W + q M <= r
        (-one, zero, zero),
        (zero, -one, zero),
        (one, zero, Fraction(min(chain.work_limit, most_work))),
        (zero, one, Fraction(memory)),
        (one, main, Fraction(chain.time_limit)),
    ]
    if not chain.hard:
        rows.append((one, main + extra, chain.time_limit + extra * chain.memory_limit))
    found = set()
    for (p, q, r), (s, t, u) in combinations(rows, 2):
        if determinant := p * t - q * s:
            w, m = (r * t - q * u) / determinant, (p * u - r * s) / determinant
            if all(x * w + y * m <= z for x, y, z in rows):
                found.add((w, m))
    return sorted(found)


class Search:
    """Branch and bound for the objectives ``neurons`` and ``contribution``; the chain has a mask."""

    def __init__(self, chain: Chain, budget: Budget, report: Report) -> None:
        self.chain, self.budget, self.report = chain, budget, report
        self.shift = max(0, (ROOM // max(1, chain.worth(chain.upper))).bit_length() - 2)
        self.start = np.cumsum([0, *(most + 1 for most in chain.upper[:-1])]).astype(np.int64)
        self.value = np.array([number << self.shift for row in chain.value for number in row], np.int64)
        self.prefix, self.suffix, self.choice = (np.zeros_like(self.value) for _ in range(3))
        self.coefficients = np.array([chain.work, chain.weights, chain.features], np.int64)
        self.coefficients[:2, 0] *= chain.inputs  # the first layer reads the whole input: costs per neuron
        self.corners = corners(chain)
        self.float_corners = np.array([[float(w), float(m)] for w, m in self.corners])
        self.limits = np.array(
            [
                min(chain.work_limit, chain.whole_totals[0]),
                min(chain.memory_limit, chain.whole_totals[1]),
                chain.time_limit,
                chain.hard,
                chain.transfer.ticks,
                chain.transfer.per,
                chain.spill.ticks,
                chain.spill.per,
            ],
            np.int64,
        )
        self.best: Counts = chain.lower
        self.best_worth = chain.worth(chain.lower)
        self.boxes = 0
        self.offer(chain.lower)

    def offer(self, kept: Sequence[int]) -> None:
        """Pull a mask within the limits, fill it up, and keep it if it is the best so far."""
        inside = self.chain.fill(self._pulled(kept))
        if (worth := self.chain.worth(inside)) > self.best_worth:
            self.best, self.best_worth = inside, worth
            self.report(inside, None)

    def _pulled(self, kept: Sequence[int]) -> Counts:
        """The largest mask within the limits between the least one and ``kept``, in 1/1024 of the way."""
        lower = self.chain.lower

        def between(part: int) -> Counts:
            return tuple(low + (n - low) * part // 1024 for low, n in zip(lower, kept, strict=True))

        low, high = 0, 1025  # part low fits, part high does not
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self.chain.fits(between(middle)) else (low, middle)
        return between(low)

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

    def priced(self, a: float, b: float) -> Prices:
        """Scaled integer prices near ``a`` per work unit and ``b`` per memory unit."""
        work, memory = self.chain.whole_totals
        scale = 2.0**self.shift
        if (cost := (a * work + b * memory) * scale) > ROOM:  # other prices: still a bound
            scale *= ROOM / cost
        price, rent = int(a * scale), int(b * scale)
        pair = price * self.coefficients[0] + rent * self.coefficients[1]
        single = rent * self.coefficients[2]
        single[0] += pair[0]
        pair[0] = 0
        support = max(-((-price * w - rent * m) // 1) for w, m in self.corners)
        return Prices(pair, single, support)

    def program(self, low: Array, high: Array, prices: Prices) -> tuple[int, Counts]:
        """Bound of a box under given prices, and the mask of largest Lagrangian; fills ``prefix``."""
        kept = np.zeros(len(low), np.int64)
        largest = run_program(
            self.value, self.start, low, high, prices.pair, prices.single, self.prefix, self.choice, kept
        )
        return (int(largest) + prices.support) >> self.shift, tuple(int(n) for n in kept)

    def tables(self, low: Array, high: Array, prices: Prices) -> None:
        """Fill ``prefix`` and ``suffix``; the reversed chain has the pair of layers i - 1 and i one layer earlier."""
        reversed_pair = np.zeros_like(prices.pair)
        reversed_pair[1:] = prices.pair[:0:-1]
        flipped = [np.ascontiguousarray(row[::-1]) for row in (self.start, low, high, prices.single)]
        kept = np.zeros(len(low), np.int64)
        run_program(
            self.value, flipped[0], flipped[1], flipped[2], reversed_pair, flipped[3], self.suffix, self.choice, kept
        )
        self.program(low, high, prices)

    def hull(self, low: Array, high: Array, prices: Prices, target: int) -> tuple[Array, Array] | None:
        """Counts that a mask worth ``target`` may have, after :meth:`tables`; ``None`` if there is no such mask."""
        inner, outer = np.zeros_like(low), np.zeros_like(low)
        least = (target << self.shift) - prices.support
        run_hull(self.value, self.start, low, high, prices.single, self.prefix, self.suffix, least, inner, outer)
        return None if (inner > outer).any() else (inner, outer)

    def solve_box(self, lower: Counts, upper: Counts, known: int) -> tuple[int, list[Box]]:
        """Solve a box or halve it: its bound, and the halves (none if the box holds nothing better than the best)."""
        self.boxes += 1
        bound = known
        while True:
            reached, prices, masks = self.bound(lower, upper)
            bound = min(bound, reached)
            if bound <= self.best_worth or self.budget.exhausted:
                return bound, []
            low, high = np.array(lower, np.int64), np.array(upper, np.int64)
            self.tables(low, high, prices)
            hull = self.hull(low, high, prices, self.best_worth + 1)
            if hull is None:
                return self.best_worth, []
            lower, upper = (tuple(int(n) for n in side) for side in hull)
            upper = self.shrunk(lower, upper)
            if not self.chain.fits(lower):
                return self.best_worth, []
            before, after = (high - low + 1).astype(float), np.array(upper) - np.array(lower) + 1.0
            if np.log(before / after).sum() < SHRINKS:
                break
        bound = self.enumerate(low, high, prices, bound)
        if bound <= self.best_worth or self.budget.exhausted:
            return bound, []
        return bound, self.halves(lower, upper, masks)

    def bound(self, lower: Counts, upper: Counts) -> tuple[int, Prices, list[Counts]]:
        """Cutting planes: the smallest bound found, its prices, and the masks of the cuts."""
        low, high = np.array(lower, np.int64), np.array(upper, np.int64)
        masks = [lower]
        cuts = [[float(self.chain.worth(lower)), *map(float, self.chain.totals(lower))]]
        span = self.chain.worth(upper) - cuts[0][0] + 1.0
        reach = [4.0 * span / max(1.0, self.float_corners[:, k].max() - cuts[0][k + 1]) for k in (0, 1)]
        best: tuple[int, Prices] | None = None
        for _ in range(CUTS):
            a, b, value = solve_master(np.array(cuts), self.float_corners, *reach)
            prices = self.priced(a, b)
            reached, kept = self.program(low, high, prices)
            if best is None or reached < best[0]:
                best = reached, prices
            if kept in masks or best[0] <= self.best_worth or self.budget.exhausted:
                break
            masks.append(kept)
            cuts.append([float(self.chain.worth(kept)), *map(float, self.chain.totals(kept))])
            if self.boxes == 1 or self.chain.fits(kept):
                self.offer(kept)
            if reached - value < 0.5:
                break
        assert best is not None
        return *best, masks

    def enumerate(self, low: Array, high: Array, prices: Prices, bound: int) -> int:
        """Enumerate from the bound down to the best worth as far as the steps allow; returns the bound proven."""
        kept = np.zeros(len(low), np.int64)
        steps, distance = STEPS, 1
        while True:
            target = max(self.best_worth + 1, bound + 1 - distance)
            kept[0] = 0  # no mask keeps none
            if hull := self.hull(low, high, prices, target):
                steps = run_enumeration(
                    self.value,
                    self.start,
                    *hull,
                    prices.pair,
                    prices.single,
                    self.prefix,
                    self.coefficients,
                    self.limits,
                    prices.support,
                    self.shift,
                    target << self.shift,
                    steps,
                    kept,
                )
            if kept[0]:
                self.offer(tuple(int(n) for n in kept))
            if steps < 0:
                return bound
            if kept[0] or target <= self.best_worth + 1:
                return self.best_worth  # nothing in the box is worth more
            bound, distance = target - 1, 4 * distance

    def halves(self, lower: Counts, upper: Counts, masks: list[Counts]) -> list[Box]:
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
                self.report(None, max(self.best_worth, -waiting[0][0]))
        return max(self.best_worth, -waiting[0][0]) if waiting else self.best_worth


def largest_share(chain: Chain) -> Counts:
    """Smallest mask of the largest possible smallest share."""

    def mask(share: int) -> Counts:
        return tuple(max(low, -(-share * n // SHARE)) for low, n in zip(chain.lower, chain.upper, strict=True))

    low, high = 0, SHARE + 1  # share low fits, share high does not
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if chain.fits(mask(middle)) else (low, middle)
    return mask(low)


def solve_single(chain: Chain, budget: Budget, report: Report) -> Single:
    """Best mask of one device under one cycle time, and a bound."""
    if not chain.value:
        kept = largest_share(chain)
        return Single(Stop.PROVED, chain.worth(kept), kept, chain.worth(kept))
    search = Search(chain, budget, report)
    bound = search.run()
    stop = Stop.PROVED if bound == search.best_worth else Stop.TIME
    return Single(stop, search.best_worth, search.best, bound, {"boxes": search.boxes})


def run(instance: Instance, budget: Budget) -> SolveResult:
    """Solve every device under every cycle time that matters."""
    return solve(instance, budget, solve_single)
