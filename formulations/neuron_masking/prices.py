"""The Lagrangian of the limits along a chain: bounds and masks, for one device and cycle time.

With a price A per work unit and B per memory unit the limits leave a chain whose layers couple only with their
neighbours, and the best mask is a dynamic program over n_i (``run_program``). For every mask within the limits

    worth(n)  <=  worth(n) - A W(n) - B M(n)  +  C(A, B),     C(A, B) = max of A W + B M over all (W, M) allowed,

so the largest Lagrangian plus C bounds the optimum. Time is linear in W and M (the larger of two linear functions in
spill mode) but for the rounding to whole ticks, so the (W, M) allowed lie in a polygon, and C is attained in a corner.
Cutting planes find the prices of the smallest bound over a box of counts; the masks on the way are pulled within the
limits, filled up, and improved by giving neurons of one layer for neurons of another (``exchange``).

The exact algorithm branches on it (docs/methods/neuron_masking.md), the quick planner takes its masks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import combinations

import numpy as np

from mapgap.core import Budget
from mapgap.formulations.neuron_masking.price_kernels import (
    Box,
    Limits,
    Prices,
    Worth,
    exchange,
    run_program,
    solve_master,
)
from mapgap.problems.neuron_masking.instance import MS_PER_HOUR, SHARE, Instance, Mask, Plan
from mapgap.problems.neuron_masking.lowered.chain import Chain
from mapgap.problems.neuron_masking.lowered.shares import largest_fitting, uniform_mask

Counts = tuple[int, ...]

ROOM = 2**60
"""Scaled values and priced costs stay below this; their differences then fit 64 bits."""


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


def limits_of(chain: Chain) -> Limits:
    """Costs and limits of a chain for the kernels."""
    coefficients = np.array([chain.work, chain.weights, chain.features], np.int64)
    coefficients[:2, 0] *= chain.inputs  # the first layer reads the whole input: costs per neuron
    most_work, most_memory = chain.whole_totals
    return Limits(
        coefficients,
        work=min(chain.work_limit, most_work),
        memory=min(chain.memory_limit, most_memory),
        time=chain.time_limit,
        hard=chain.hard,
        transfer_ticks=chain.transfer.ticks,
        transfer_per=chain.transfer.per,
        spill_ticks=chain.spill.ticks,
        spill_per=chain.spill.per,
    )


def box_of(lower: Counts, upper: Counts) -> Box:
    """A box for the kernels."""
    return Box(np.array(lower, np.int64), np.array(upper, np.int64))


class Lagrangian:
    """Masks and bounds for the objectives ``neurons`` and ``contribution``; the chain has a mask."""

    def __init__(self, chain: Chain, budget: Budget) -> None:
        self.chain, self.budget = chain, budget
        shift = max(0, (ROOM // max(1, chain.worth(chain.upper))).bit_length() - 2)
        start = np.cumsum([0, *(most + 1 for most in chain.upper[:-1])]).astype(np.int64)
        self.worth = Worth(np.array([number << shift for row in chain.value for number in row], np.int64), start, shift)
        self.prefix, self.choice = np.zeros_like(self.worth.value), np.zeros_like(self.worth.value)
        self.limits = limits_of(chain)
        self.corners = corners(chain)
        self.float_corners = np.array([[float(w), float(m)] for w, m in self.corners])
        self.best: Counts = chain.lower
        self.best_worth = chain.worth(chain.lower)
        self.pulls = True  # offers masks outside of the limits, too
        self.offered: dict[Counts, None] = {}
        self.offer(chain.lower)

    def offer(self, kept: Sequence[int]) -> None:
        """Pull a mask within the limits, fill it up, and keep it if it is the best so far."""
        inside = self.chain.fill(self._pulled(kept))
        self.offered[inside] = None
        if (worth := self.chain.worth(inside)) > self.best_worth:
            self.best, self.best_worth = inside, worth
            self.budget.report(plan=Plan(masks=(Mask(kept=inside),)))

    def _pulled(self, kept: Sequence[int]) -> Counts:
        """The largest mask within the limits between the least one and ``kept``, in 1/1024 of the way."""
        lower = self.chain.lower

        def between(part: int) -> Counts:
            return tuple(low + (n - low) * part // 1024 for low, n in zip(lower, kept, strict=True))

        return largest_fitting(between, self.chain.fits, 1024) or lower

    def priced(self, a: float, b: float) -> Prices:
        """Scaled integer prices near ``a`` per work unit and ``b`` per memory unit."""
        work, memory = self.chain.whole_totals
        scale = 2.0**self.worth.shift
        if (cost := (a * work + b * memory) * scale) > ROOM:  # other prices: still a bound
            scale *= ROOM / cost
        price, rent = int(a * scale), int(b * scale)
        costs = self.limits.coefficients
        pair = price * costs[0] + rent * costs[1]
        single = rent * costs[2]
        single[0] += pair[0]
        pair[0] = 0
        support = max(-((-price * w - rent * m) // 1) for w, m in self.corners)
        return Prices(pair, single, int(support))

    def run_forwards(self, box: Box, prices: Prices) -> tuple[int, Counts]:
        """Bound of a box under given prices, and the mask of largest Lagrangian; fills ``prefix``."""
        kept = np.zeros(len(box.lower), np.int64)
        largest = run_program(self.worth, box, prices, self.prefix, self.choice, kept)
        return (int(largest) + prices.support) >> self.worth.shift, tuple(int(n) for n in kept)

    def bound(self, lower: Counts, upper: Counts) -> tuple[int, Prices, list[Counts]]:
        """Cutting planes: the smallest bound found, its prices, and the masks of the cuts."""
        box = box_of(lower, upper)
        masks = [lower]
        cuts = [[float(self.chain.worth(lower)), *map(float, self.chain.totals(lower))]]
        span = self.chain.worth(upper) - cuts[0][0] + 1.0
        reach = [4.0 * span / max(1.0, self.float_corners[:, k].max() - cuts[0][k + 1]) for k in (0, 1)]
        best: tuple[int, Prices] | None = None
        while True:
            a, b, value = solve_master(np.array(cuts), self.float_corners, *reach)
            prices = self.priced(a, b)
            reached, kept = self.run_forwards(box, prices)
            if best is None or reached < best[0]:
                best = reached, prices
            if kept in masks or best[0] <= self.best_worth or self.budget.exhausted:
                break
            masks.append(kept)
            cuts.append([float(self.chain.worth(kept)), *map(float, self.chain.totals(kept))])
            if self.pulls or self.chain.fits(kept):
                self.offer(kept)
            if reached - value < 0.5:
                break
        return *best, masks

    def improve(self, start: Counts | None = None) -> None:
        """Give neurons of one layer for neurons of another, from the best mask or from another one."""
        begin = self.best if start is None else start
        kept = np.array(begin, np.int64)
        totals = np.array(self.chain.totals(begin), np.int64)
        exchange(self.worth, box_of(self.chain.lower, self.chain.upper), self.limits, kept, totals)
        self.offer([int(n) for n in kept])

    def improve_all(self) -> None:
        """The same from every mask offered so far: another start may end in a better mask than the best one does."""
        for start in list(self.offered):
            if self.budget.exhausted:
                break
            self.improve(start)


def quick_mask(chain: Chain, budget: Budget, others: Sequence[Counts] = (), thorough: bool = False) -> Counts:
    """A good mask of a chain that has one, without a proof; ``others`` are masks to begin with.

    The smallest share is solved by it: see :func:`.shares.uniform_mask`. A ``thorough`` search improves every mask on
    its way, not only the best one; it takes some times as long.
    """
    shared = largest_fitting(lambda s: uniform_mask(chain.lower, chain.upper, s), chain.fits, SHARE) or chain.lower
    if chain.objective == "smallest_share":
        return shared
    search = Lagrangian(chain, budget)
    for mask in (shared, *others):
        search.offer(mask)
    search.bound(chain.lower, chain.upper)
    search.improve()
    if thorough:
        search.improve_all()
    return search.best


def quick_plan(
    instance: Instance,
    budget: Budget,
    others: Callable[[int, int], Sequence[Counts]] = lambda device, cycle: (),
    thorough: bool = False,
) -> Plan | None:
    """A good plan of a fleet, without a proof; ``None`` if no cycle time leaves every device a mask.

    Only ``rate`` can prefer a shorter cycle time: the one whose first masks are the best is searched.

    Parameters
    ----------
    others : callable
        ``others(device, cycle)``: masks to begin with.
    thorough : bool
        See :func:`quick_mask`.
    """
    last = len(instance.cycle_ms) - 1
    first: list[tuple[int, int, Plan]] = []  # value, cycle
    fleets: dict[int, tuple[list[Chain], list[list[Counts]]]] = {}
    for cycle in range(last, -1, -1) if instance.objective == "rate" else [last]:
        chains = [Chain.of(instance, d, cycle) for d in range(len(instance.devices))]
        if (first and budget.exhausted) or not all(chain.fits(chain.lower) for chain in chains):
            break  # nor does a shorter one fit
        starts = [[chain.lower, *others(d, cycle)] for d, chain in enumerate(chains)]
        fleets[cycle] = chains, starts
        masks = [max(some, key=chain.worth) for some, chain in zip(starts, chains, strict=True)]
        first.append(_joined(instance, cycle, chains, masks))
    if not first:
        return None
    best = max(first, key=lambda each: each[0])
    budget.report(plan=best[2])
    if not budget.exhausted:
        cycle = best[1]
        chains, starts = fleets[cycle]
        quiet = Budget(time_s=budget.remaining_s).start()
        masks = [quick_mask(chain, quiet, some, thorough) for chain, some in zip(chains, starts, strict=True)]
        best = max(best, _joined(instance, cycle, chains, masks), key=lambda each: each[0])
        budget.report(plan=best[2])
    return best[2]


def _joined(instance: Instance, cycle: int, chains: Sequence[Chain], masks: Sequence[Counts]) -> tuple[int, int, Plan]:
    """Value, cycle and plan of the masks of a fleet."""
    values = [chain.worth(mask) for chain, mask in zip(chains, masks, strict=True)]
    value = min(values) if instance.objective == "smallest_share" else sum(values)
    if instance.objective == "rate":
        value = MS_PER_HOUR * value // instance.cycle_ms[cycle]
    return value, cycle, Plan(cycle=cycle, masks=tuple(Mask(kept=mask) for mask in masks))
