"""Proofs for :mod:`mapgap.problems.neuron_masking.certificate`: multipliers by cutting planes, boxes where a gap stays."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import linprog

from mapgap.core import Budget
from mapgap.problems.neuron_masking.certificate import MS_PER_HOUR, Chain, check, no_tighter

SCALE = 2**24
ITERATIONS = 60


def prove(instance: dict[str, Any], bound: int, budget: Budget) -> dict[str, Any] | None:
    """The proof that no plan has an objective above ``bound``; ``None`` if none is found within the budget."""
    cycles: dict[str, Any] = {}
    proven: dict[int, int] = {}
    objective = instance["objective"]
    for cycle in reversed(range(len(instance["cycle_ms"]))):
        chains = [Chain(instance, d, cycle) for d in range(len(instance["devices"]))]
        if any(not chain.fits(chain.lower) for chain in chains) or objective == "smallest_share":
            continue
        most = (bound + 1) * instance["cycle_ms"][cycle] - 1
        most = most // MS_PER_HOUR if objective == "rate" else bound
        serving = [c for c in proven if proven[c] <= most and no_tighter(instance, c, cycle)]
        if serving:
            cycles[str(cycle)], proven[cycle] = serving[0], proven[serving[0]]
            continue
        limits = shares(chains, most)
        parts = []
        for chain, limit in zip(chains, limits, strict=True):
            boxes = bounded(chain, limit, budget)
            if boxes is None:
                return None
            parts.append({"bound": limit, "boxes": boxes})
        cycles[str(cycle)], proven[cycle] = parts, sum(limits)
    proof = {"cycles": cycles}
    return proof if check(instance, bound, proof) is None else None


def shares(chains: list[Chain], most: int) -> list[int]:
    """Bounds of single devices that add up to ``most``: their dual bounds, lowered together where that is too much."""
    bounds = [dual(chain, chain.lower, chain.upper)[0] for chain in chains]
    if len(bounds) == 1:
        return [most]
    excess = sum(bounds) - most
    for d in sorted(range(len(bounds)), key=lambda d: -bounds[d]):
        if excess <= 0:
            break
        bounds[d] -= 1
        excess -= 1
    bounds[0] -= max(0, excess)
    return bounds


def bounded(chain: Chain, limit: int, budget: Budget) -> list[list[Any]] | None:
    """Boxes that show that no mask is worth more than ``limit``."""
    steps: list[list[Any]] = []
    stack = [(chain.lower[:], chain.upper[:])]
    while stack:
        if budget.exhausted or len(steps) > 2000:
            return None
        lower, upper = stack.pop()
        if any(low > high for low, high in zip(lower, upper, strict=True)):
            steps.append(["m", 1, *(0 for _ in chain.rows)])
            continue
        _, y, masks = dual(chain, lower, upper)
        if chain.closed(limit, lower, upper, SCALE, y):
            steps.append(["m", SCALE, *y])
            continue
        if lower == upper:
            return None
        i, v = branching(lower, upper, masks)
        steps.append(["s", i, v])
        above, below = lower[:], upper[:]
        above[i], below[i] = v + 1, v
        stack += [(above, upper), (lower, below)]
    return steps


def branching(lower: list[int], upper: list[int], masks: list[list[int]]) -> tuple[int, int]:
    """Where the masks that share the smallest bound disagree most: between them lies the gap."""
    spans = [(min(m[i] for m in masks), max(m[i] for m in masks)) for i in range(len(lower))]
    i = max(range(len(lower)), key=lambda i: ((spans[i][1] - spans[i][0]) / upper[i], upper[i] - lower[i]))
    low, high = spans[i] if spans[i][0] < spans[i][1] else (lower[i], upper[i])
    return i, min(max((low + high) // 2, lower[i]), upper[i] - 1)


def dual(chain: Chain, lower: list[int], upper: list[int]) -> tuple[int, list[int], list[list[int]]]:
    """``(bound, multipliers times SCALE, masks)`` of the smallest Lagrangian bound found, by Kelley's cutting planes.

    The masks are those whose cuts meet there.
    """
    norms = np.array([max(1.0, float(abs(row[2]))) for row in chain.rows])
    cuts: list[tuple[float, Any, list[int]]] = []
    best: tuple[int, list[int]] | None = None
    point = np.zeros(len(norms))
    ceiling = 2.0 * max(1, sum(row[n] for row, n in zip(chain.value, upper, strict=True)))
    for _ in range(ITERATIONS):
        y = [round(SCALE * x / norm) for x, norm in zip(point, norms, strict=True)]
        tails, single, pair = chain.tails(lower, upper, SCALE, y)
        total = tails[0][0] + sum(k * row[2] for k, row in zip(y, chain.rows, strict=True))
        mask: list[int] = []
        for i in range(len(lower)):
            before = mask[-1] if mask else chain.inputs
            after = tails[i + 1] if i + 1 < len(lower) else [0] * len(single[i])
            k = max(range(len(single[i])), key=lambda k: single[i][k] - pair[i] * before * (lower[i] + k) + after[k])
            mask.append(lower[i] + k)
        if best is None or total < best[0]:
            best = (total, y)
        work, memory = chain.costs(mask)
        spare = np.array([row[2] - row[0] * work - row[1] * memory for row in chain.rows], float) / norms
        value = float(sum(row[n] for row, n in zip(chain.value, mask, strict=True)))
        cuts.append((value, spare, mask))
        found = linprog(
            [1.0, *np.zeros(len(norms))],
            A_ub=[[-1.0, *spare] for _, spare, _ in cuts],
            b_ub=[-value for value, _, _ in cuts],
            bounds=[(None, None), *((0.0, ceiling) for _ in norms)],
        )
        if found.x is None or found.x[0] >= best[0] / SCALE - 1e-7 * ceiling:
            break
        point = found.x[1:]
    assert best is not None
    values = [value + float(spare @ point) for value, spare, _ in cuts]
    meeting = [cut[2] for cut, value in zip(cuts, values, strict=True) if value >= max(values) - 1e-6 * ceiling]
    return best[0] // SCALE, best[1], meeting
