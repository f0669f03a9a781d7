"""Proofs for :mod:`mapgap.problems.neuron_masking.certificate`: the search of ``lagrangian.py``, written down.

The bound is given, so a box is either closed or split; the order does not matter. Prices of work and memory come from
cutting planes as there; they become multipliers of the checker's rows by the dual of ``max a W + b M`` over the rows.
The compiled kernels compute with the checker's integers, so what they close the checker closes.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np

from mapgap.core import Budget
from mapgap.formulations.neuron_masking.lagrangian import Bounds, Search, solve_single
from mapgap.formulations.neuron_masking.lagrangian_kernels import run_enumeration
from mapgap.formulations.neuron_masking.price_kernels import Prices, solve_master
from mapgap.formulations.neuron_masking.prices import Counts, box_of
from mapgap.problems.neuron_masking import Instance
from mapgap.problems.neuron_masking import certificate as checker
from mapgap.problems.neuron_masking.lowered.chain import Chain

LISTED = 200_000
"""Most counts that the listing of a box may look at: about a twentieth of a second of the checker."""

BITS = (30, 45, 60)
"""Bits of the Lagrangian's integers, few first: short numbers make a fast check."""

Steps = list[list[Any]]


def prove(instance: dict[str, Any], bound: int, budget: Budget) -> list[Any] | None:
    """The proof that no plan has an objective above ``bound``; ``None`` if none is found within the budget."""
    proof: list[Any] = [None] * len(instance["cycle_ms"])
    if instance["objective"] != "smallest_share":
        whole = Instance.model_validate_json(json.dumps(instance))
        known: dict[int, int] = {}
        for cycle in reversed(range(len(proof))):
            most = bound
            if instance["objective"] == "rate":
                most = ((bound + 1) * instance["cycle_ms"][cycle] - 1) // checker.MS_PER_HOUR
            if serving := [c for c in known if known[c] <= most and checker.no_tighter(instance, c, cycle)]:
                proof[cycle], known[cycle] = serving[-1], known[serving[-1]]
                continue
            parts = [Part(whole, instance, d, cycle) for d in range(len(whole.devices))]
            if not all(part.has_mask for part in parts):
                continue
            found = shared_out(parts, most, budget)
            if found is None:
                return None
            proof[cycle], known[cycle] = found, sum(limit for limit, _ in found)
    return proof if checker.check(instance, bound, proof) is None else None


def shared_out(parts: Sequence[Part], most: int, budget: Budget) -> list[tuple[int, Steps]] | None:
    """Bounds of the devices that add up to ``most`` at most, each with its steps.

    Each device gets its optimum; what is left goes to those whose Lagrangian is far from it.
    """
    best = [most] if len(parts) == 1 else [part.optimum(budget) for part in parts]
    left = most - sum(best)
    if left < 0:
        return None
    found = []
    for part, value in zip(parts, best, strict=True):
        more = min(left, max(0, part.root() - value))
        left -= more
        steps = part.steps(value + more, budget)
        if steps is None:
            return None
        found.append((value + more, steps))
    return found


class Part:
    """One device under one cycle time."""

    def __init__(self, whole: Instance, instance: dict[str, Any], device: int, cycle: int) -> None:
        self.single = whole.single(device, cycle)
        self.chain = Chain.of(self.single)
        self.checked = checker.chain.Chain(instance, device, cycle)
        self.has_mask = self.chain.fits(self.chain.lower)
        if not self.has_mask:
            return
        self.search = Search(self.chain, Budget())  # its steps, not its run
        self.value = np.array([number for row in self.chain.value for number in row], np.int64)
        self.largest = self.chain.worth(self.chain.upper)

    def optimum(self, budget: Budget) -> int:
        """Of the device alone, or a bound of it."""
        found = solve_single(self.single, replace(budget, listener=None)).bound
        assert found is not None
        return found

    def root(self) -> int:
        """The Lagrangian bound of the whole chain."""
        best, _ = self.bound(self.chain.lower, self.chain.upper, -1, BITS[-1])
        return best.limit

    def steps(self, limit: int, budget: Budget) -> Steps | None:
        """Steps that show that no mask is worth more than ``limit``; ``None`` if time runs out or there is one."""
        found: Steps = []
        stack = [(self.chain.lower, self.chain.upper)]
        while stack:
            lower, upper = stack.pop()
            while self.chain.fits(lower):
                if budget.exhausted:
                    return None
                for bits in BITS:
                    best, masks = self.bound(lower, upper, limit, bits)
                    if best.limit <= limit:
                        break
                found.append(["m", best.scale, *best.y])
                span = best.hull(limit)
                if span is None:
                    break
                before, (lower, upper) = (lower, upper), span
                if span != before or not self.chain.fits(lower):  # a step is cheaper than a split
                    continue
                if best.listed(lower, upper, limit):
                    found.append(["e", best.scale, *best.y])
                    break
                if lower == upper:
                    return None
                below, above = self.search.halves(lower, upper, masks)
                i = next(k for k, most in enumerate(upper) if below[1][k] < most)
                found.append(["s", i, below[1][i]])
                stack.append(above)
                lower, upper = below
        return found

    def bound(self, lower: Counts, upper: Counts, limit: int, bits: int) -> tuple[Priced, list[Counts]]:
        """The prices of the smallest bound that cutting planes find, and the masks of the last cuts.

        It stops at a bound of ``limit``.
        """
        masks = [lower]
        cuts = [[float(self.chain.worth(lower)), *map(float, self.chain.totals(lower))]]
        hull = self.search.float_corners
        span = self.chain.worth(upper) - cuts[0][0] + 1.0
        reach = [4.0 * span / max(1.0, hull[:, k].max() - cuts[0][k + 1]) for k in (0, 1)]
        best: Priced | None = None
        while True:
            a, b, value = solve_master(np.array(cuts), hull, *reach)
            priced = Priced(self, lower, upper, self.multipliers(a, b), bits)
            if best is None or priced.limit < best.limit:
                best = priced
            if priced.mask in masks or best.limit <= limit or priced.limit - value < 0.5:
                break
            masks.append(priced.mask)
            cuts.append([float(self.chain.worth(priced.mask)), *map(float, self.chain.totals(priced.mask))])
        return best, masks

    def multipliers(self, a: float, b: float) -> list[float]:
        """``y >= 0`` of the smallest ``y c`` with ``y A >= (a, b)``: prices as multipliers of rows."""
        rows = np.array(self.checked.rows, float)
        choices = []
        for k, (p, q, _) in enumerate(rows):
            if (p > 0 or a <= 0) and (q > 0 or b <= 0):
                y = np.zeros(len(rows))
                y[k] = max(a / p if p else 0.0, b / q if q else 0.0)
                choices.append(y)
        for pair in map(list, combinations(range(len(rows)), 2)):
            if abs(np.linalg.det(rows[pair, :2])) > 0:
                y = np.zeros(len(rows))
                y[pair] = np.linalg.solve(rows[pair, :2].T, [a, b])
                if (y >= 0).all():
                    choices.append(y)
        return [float(x) for x in min(choices, key=lambda y: float(y @ rows[:, 2]))]


class Priced:
    """The Lagrangian of a box under multipliers, in the checker's integers.

    Attributes
    ----------
    limit : int
        No mask of the box is worth more.
    mask : tuple of int
        One of the largest Lagrangian.
    """

    def __init__(self, part: Part, lower: Counts, upper: Counts, y: Sequence[float], bits: int) -> None:
        rows, (work, memory) = part.checked.rows, part.chain.whole_totals
        most = part.largest + sum(
            k * (row[0] * work + row[1] * memory + row[2]) for k, row in zip(y, rows, strict=True)
        )
        self.scale = max(1, int(2.0**bits / max(1.0, most)))
        self.y = [int(k * self.scale) for k in y]
        price, rent, self.support = (sum(k * row[c] for k, row in zip(self.y, rows, strict=True)) for c in range(3))
        self.search = copy(part.search)  # the same tables, which the latest call has filled
        self.search.worth = part.search.worth._replace(value=part.value * self.scale, shift=0)
        costs = part.search.limits.coefficients
        pair, single = price * costs[0] + rent * costs[1], rent * costs[2]
        single[0] += pair[0]
        pair[0] = 0
        self.prices = Prices(pair, single, 0)  # where limits are loose, the support may be longer than 64 bits
        self.box = box_of(lower, upper)
        total, self.mask = self.search.run_forwards(self.box, self.prices)
        self.limit: int = (total + self.support) // self.scale

    def hull(self, limit: int) -> Bounds | None:
        """Counts that a mask worth more than ``limit`` may have; ``None`` if there is no such mask."""
        self.search.fill_tables(self.box, self.prices)
        found = self.search.hull(self.box, self.prices, (limit + 1) * self.scale - self.support)
        return None if found is None else (tuple(map(int, found.lower)), tuple(map(int, found.upper)))

    def listed(self, lower: Counts, upper: Counts, limit: int) -> bool:
        """Can all masks of the box that may be worth more than ``limit`` be looked at?"""
        search, box, kept = self.search, box_of(lower, upper), np.zeros(len(lower), np.int64)
        search.run_forwards(box, self.prices)
        prices, least = self.prices._replace(support=self.support), (limit + 1) * self.scale
        left = run_enumeration(search.worth, box, prices, search.tables.prefix, search.limits, least, LISTED, kept)
        return bool(left >= 0 and kept[0] == 0)  # no mask keeps none
