"""Ratios whose shares end at steps of the compute tables.

An accelerator that works on tiles of 16 samples takes the same time for 1 to 16 of them, so the time of a share is a
step function of its samples and a good ratio fills the steps. ``work(a, k)`` is the time of accelerator ``a`` for
``k`` samples through all split layers. For a set of accelerators, the least time ``T`` is taken within which they can
process the batch, ``sum_a max{k: work(a, k) <= T} >= B``; what they could do beyond the batch is taken from one of
them, so that the other shares still end at a step.
"""

from __future__ import annotations

from bisect import bisect_right
from itertools import combinations

from mapgap.problems.suboperation_mapping import Instance
from mapgap.problems.suboperation_mapping.lowered.ratios import Ratio


def work_tables(instance: Instance) -> list[list[int]]:
    """``[a][k]``: ticks of accelerator ``a`` for ``k`` samples in all phases of all split layers, made monotone."""
    found = []
    for a in range(len(instance.accelerators)):
        ticks = [0] * (instance.batch + 1)
        for layer in instance.layers:
            if layer.kind == "split":
                for table in (layer.fp, layer.bp, layer.wu):
                    if table:
                        for k, each in enumerate(table[a], 1):
                            ticks[k] += each
        for k in range(1, len(ticks)):
            ticks[k] = max(ticks[k], ticks[k - 1])
        found.append(ticks)
    return found


def subsets(work: list[list[int]], every: int) -> list[tuple[int, ...]]:
    """Sets of accelerators, the largest first: all of up to ``every`` of them, of more only sets of the fastest."""
    n = len(work)
    if n <= every:
        return [chosen for size in range(n, 0, -1) for chosen in combinations(range(n), size)]
    fastest = sorted(range(n), key=lambda a: (work[a][-1], a))
    return [tuple(sorted(fastest[:size])) for size in range(n, 0, -1)]


def step_aligned_ratios(instance: Instance, every: int = 4) -> list[Ratio]:
    """Step-aligned ratios without repetition, those of more accelerators first.

    Share ``b`` is meant for accelerator ``b``.

    Parameters
    ----------
    every : int
        Accelerators up to which all sets of them are tried; of more only sets of the fastest.
    """
    work, batch = work_tables(instance), instance.batch
    found: dict[Ratio, None] = {}
    for chosen in subsets(work, every):
        ends = sorted({ticks for a in chosen for ticks in work[a][1:]})
        low, high = 0, len(ends) - 1  # the least time is one of the ends
        while low < high:
            middle = (low + high) // 2
            if sum(bisect_right(work[a], ends[middle]) - 1 for a in chosen) >= batch:
                high = middle
            else:
                low = middle + 1
        shares = {a: bisect_right(work[a], ends[low]) - 1 for a in chosen}
        surplus = sum(shares.values()) - batch
        for less in chosen:
            ratio = [shares.get(a, 0) for a in range(len(work))]
            if ratio[less] >= surplus:
                ratio[less] -= surplus
                found.setdefault(tuple(ratio))
        even = [shares.get(a, 0) for a in range(len(work))]  # the surplus from all, the latest first
        for _ in range(surplus):
            a = max(chosen, key=lambda a: (even[a] > 0, work[a][even[a]], a))
            even[a] -= 1
        found.setdefault(tuple(even))
    return list(found)
