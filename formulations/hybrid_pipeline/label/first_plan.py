"""A first plan: the label search over a coarse selection of cuts, then over the neighbourhood of the cuts found.

A restriction of cuts gives real plans, so the value is an upper bound. The dynamic programmes begin with it, and the
models over columns leave out what no better plan can use.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np

from mapgap.core import Stop
from mapgap.problems.hybrid_pipeline.lowered.arrays import Lowered

OPEN = 2**40
"""An upper bound above every latency."""

BLOCKS = 12
"""Merged blocks of the coarse search."""

Path = list[tuple[int, int, int]]
"""Stages (start, stop, group) in pipeline order."""


class Engine(Protocol):
    """One search over a selection of cuts: best objective below ``upper``, its stages or none, counts.

    ``stop`` says why the last one ended before it was done; ``bound`` what it proved, over all cuts.
    """

    stop: Stop | None
    bound: int

    def __call__(self, cuts: list[int], upper: int) -> tuple[int, Path, dict[str, int]]: ...


def coarse_cuts(low: Lowered, blocks: int) -> list[int]:
    """About ``blocks`` blocks of equal work, each ending at the cheapest cut near its end."""
    if low.layers <= blocks + blocks // 2:
        return list(range(low.layers + 1))
    work = low.both[:, :, -1].min(axis=0).astype(float)
    work += np.arange(low.layers + 1) * max(1.0, work[-1]) / (4 * low.layers)  # layers without work count a little
    near = max(1, low.layers // (3 * blocks))
    chosen = {0, low.layers}
    for k in range(1, blocks):
        middle = int(np.searchsorted(work, work[-1] * k / blocks))
        window = range(max(1, middle - near), min(low.layers, middle + near + 1))
        chosen.add(min(window, key=lambda cut: (int(low.comm[0, cut]), abs(cut - middle))))
    return sorted(chosen)


def around(path: Path, coarse: Sequence[int], layers: int) -> list[int]:
    """The cuts of a plan, their neighbours at growing distances up to a block, and the coarse selection."""
    distances, step = {0}, 1
    while step <= layers // BLOCKS:
        distances |= {step, -step}
        step = max(step + 1, step * 3 // 2)
    near = {start + k for start, _, _ in path[1:] for k in distances}
    return sorted({cut for cut in near if 0 < cut < layers} | set(coarse))


def closing(
    low: Lowered,
    engine: Engine,
    bound: int,
    upper: int,
    step: int,
    lend: Callable[[int], None] = lambda target: None,
    found: Callable[[Path, int], None] = lambda path, value: None,
    proven: Callable[[int, dict[str, int]], None] = lambda bound, counts: None,
) -> int:
    """Searches below targets that grow from a bound; how many were begun.

    Effort grows fast with the upper bound of a search, and one that finds nothing below its target proves the target.
    So the last one, the only one above the optimum, is barely above it, whatever the value of the plan known.

    Parameters
    ----------
    step : int
        From the bound to the first target; then it doubles.
    lend : callable
        Is told the target before the search below it.
    found, proven : callable
        Are told the stages and the value of every better plan; every bound, and counts for the notes.
    """
    searches = 0
    while bound < upper and engine.stop is None:
        upper_now = min(upper, bound + max(1, step))
        lend(upper_now)
        if engine.stop is not None:
            break
        value, path, begun = approach(low, engine, (upper_now, []), lambda path: None)
        if path:
            found(path, value)
        searches += begun
        if engine.stop is None:
            value, path, counts = engine(list(range(low.layers + 1)), value)
            searches += engine.stop is None
            bound = max(bound, engine.bound)
            if path:
                found(path, value)
            proven(bound, counts)
        if value < upper_now:
            return searches  # if not stopped, an optimum
        step *= 2
    return searches


def approach(
    low: Lowered,
    engine: Engine,
    known: tuple[int, Path] = (OPEN, []),
    found: Callable[[Path], None] = lambda path: None,
) -> tuple[int, Path, int]:
    """An upper bound from coarse cuts, then from neighbourhoods until nothing improves.

    Parameters
    ----------
    known : (int, list of (start, stop, group))
        Value and stages of a plan to begin with.
    found : callable
        Is told the stages of every better plan.

    Returns
    -------
    (int, list of (start, stop, group), int)
        Value (``OPEN`` if no plan was found), its stages, number of searches.
    """
    coarse = coarse_cuts(low, BLOCKS)
    (upper, path), searches = known, 0
    cuts = around(path, coarse, low.layers) if path else coarse
    while len(cuts) <= low.layers and engine.stop is None:
        value, better, _ = engine(cuts, upper)
        searches += 1
        if not better:
            break
        upper, path = value, better
        found(path)
        cuts = around(path, coarse, low.layers)
    return upper, path, searches
