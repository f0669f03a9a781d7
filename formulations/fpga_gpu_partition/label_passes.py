"""Label setting over the chain of modules, pruned by bounds against corners.

A *label* is a choice of configurations for the first modules: its totals (latency, energy, multipliers, M20K) and its
state. A *corner* ``(E, L)`` stands for all points with at most that energy and latency; corners cover every point that
would improve what is known. A label is dropped if

- it does not fit the fabric,
- another label with the same state is nowhere worse in the four totals, or
- for every corner some price (``chain.py``) proves that no continuation reaches it.

A pass keeps at most ``width`` labels per stage, the best few under each price. Passes get wider, and start from the
corners that the last one left, until one has dropped nothing for lack of width: it was exhaustive, and what is known is
proven.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from mapgap.core import Budget, OutOfTime
from mapgap.formulations.fpga_gpu_partition.chain import NEVER, Chain
from mapgap.formulations.fpga_gpu_partition.dominance import Array, nondominated
from mapgap.kernels import Integers, Integers2, kernel

CHUNK = 4_000_000
"""Pairs of label and configuration that are tried between two looks at the clock."""

Point = tuple[int, int, list[int]]
"""Energy, latency, one configuration per module."""


class Labels(NamedTuple):
    """Labels of one state: totals (n, 4) of latency, energy, multipliers, M20K, and under each price (n, W)."""

    totals: Integers2
    priced: Integers2


class Step(NamedTuple):
    """Configurations of the next module: values (c, 4), the state after each (-1: the homes do not fit), and under each
    price the least total of the configuration and everything behind it (c, W)."""

    values: Integers2
    following: Integers
    priced: Integers2


class Target(NamedTuple):
    """What a label must be able to reach: the fabric (2,), and under each price one of the corners (P, W)."""

    room: Integers
    corners: Integers2


@kernel("i8(Labels,Step,Target,i8[:,::1])", Labels, Step, Target)
def extend(labels: Labels, step: Step, target: Target, found: Array) -> int:
    """Fill ``found`` with the pairs (label, configuration) that fit the fabric and may reach a corner."""
    corners = target.corners
    count, width, last = 0, labels.priced.shape[1], 0
    for i in range(len(labels.totals)):
        for j in range(len(step.values)):
            if step.following[j] < 0:
                continue
            if labels.totals[i, 2] + step.values[j, 2] > target.room[0]:
                continue
            if labels.totals[i, 3] + step.values[j, 3] > target.room[1]:
                continue
            for turn in range(len(corners)):
                k = turn + last if turn + last < len(corners) else turn + last - len(corners)  # the last success first
                reached = True
                for w in range(width):
                    if labels.priced[i, w] + step.priced[j, w] > corners[k, w]:
                        reached = False
                        break
                if reached:
                    last = k
                    found[count, 0], found[count, 1] = i, j
                    count += 1
                    break
    return count


@dataclass
class _Stage:
    """Labels behind one module, grouped by state; ``parent`` is a row of the stage before."""

    totals: Array
    state: Array
    parent: Array
    taken: Array


@dataclass
class Pass:
    """What one pass found: non-dominated points, whether it was exhaustive, and the most labels of a stage."""

    points: list[Point]
    exhaustive: bool
    labels: int


def run_pass(stages: Chain, prices: Array, corners: Array, width: int, budget: Budget) -> Pass:
    """One pass over all modules.

    Parameters
    ----------
    prices : (W, 4) int64
    corners : (P, 2) int64
        Energy and latency of every corner.
    width : int
        Most labels kept per stage.
    """
    suffix = stages.suffixes(prices)
    fabric = prices[:, 2:] @ np.minimum(stages.room, stages.most[2:])
    target = Target(stages.room, np.ascontiguousarray(corners @ prices[:, [1, 0]].T + fabric))
    stage = _Stage(np.zeros((1, 4), np.int64), *(np.zeros(1, np.int64) for _ in range(3)))
    history: list[_Stage] = []
    exhaustive, most = True, 1
    for m in range(len(stages.values)):
        parts = []
        for state in range(len(stages.following[m])):
            step = _step(stages, m, state, prices, suffix[m + 1])
            parts += _successors(stage, state, step, target, prices, budget)
        if budget.exhausted:
            return Pass([], False, most)
        try:
            stage, cut = _select(parts, prices, suffix[m + 1], width, budget)
        except OutOfTime:
            return Pass([], False, most)
        exhaustive &= not cut
        most = max(most, len(stage.totals))
        history.append(stage)
    return Pass(_points(stage, history), exhaustive, most)


def _step(stages: Chain, m: int, state: int, prices: Array, suffix: Array) -> Step:
    """Configurations of module ``m`` from a state; ``suffix`` prices what is behind them."""
    values, following = stages.values[m], np.ascontiguousarray(stages.following[m][state])
    priced = values @ prices.T + np.where(following[:, None] >= 0, suffix.T[following], NEVER)
    return Step(values, following, np.ascontiguousarray(priced))


def _successors(stage: _Stage, state: int, step: Step, target: Target, prices: Array, budget: Budget) -> list[_Stage]:
    """Labels behind the module of ``step`` that continue those of ``stage`` in ``state``."""
    rows = np.flatnonzero(stage.state == state)
    parts = []
    tests = max(1, len(target.corners) // 8)  # a pair is tried against some of the corners
    size = max(1, CHUNK // (max(len(step.values), 1) * tests))
    for first in range(0, len(rows), size):
        if budget.exhausted or len(target.corners) == 0:
            break
        some = rows[first : first + size]
        totals = np.ascontiguousarray(stage.totals[some])
        found = np.empty((len(some) * len(step.values), 2), np.int64)
        count = extend(Labels(totals, np.ascontiguousarray(totals @ prices.T)), step, target, found)
        i, j = found[:count, 0], found[:count, 1]
        parts.append(_Stage(totals[i] + step.values[j], step.following[j], some[i], j.copy()))
    return parts


def _select(parts: list[_Stage], prices: Array, suffix: Array, width: int, budget: Budget) -> tuple[_Stage, bool]:
    """Non-dominated labels per state; if more than ``width``, the best under each price."""
    columns = [
        np.concatenate([getattr(part, name) for part in parts]) if parts else np.zeros(0, np.int64)
        for name in ("state", "parent", "taken")
    ]
    totals = np.vstack([part.totals for part in parts]) if parts else np.zeros((0, 4), np.int64)
    merged = _Stage(totals, *columns)
    groups = [np.flatnonzero(merged.state == s) for s in np.unique(merged.state)]
    kept = [group[nondominated(totals[group], budget)] for group in groups]
    rows = np.concatenate(kept) if kept else np.zeros(0, np.int64)
    cut = len(rows) > width
    if cut:
        score = totals[rows] @ prices.T + suffix.T[merged.state[rows]]
        share = max(1, width // len(prices))
        rows = rows[np.unique(np.argpartition(score, share, axis=0)[:share])]
    return _Stage(totals[rows], merged.state[rows], merged.parent[rows], merged.taken[rows]), cut


def _points(stage: _Stage, history: list[_Stage]) -> list[Point]:
    """Non-dominated (energy, latency) of complete labels, with their configurations."""
    found = []
    for row in nondominated(np.ascontiguousarray(stage.totals[:, [1, 0]])):
        choice, at = [], int(row)
        for past in reversed(history):
            choice.append(int(past.taken[at]))
            at = int(past.parent[at])
        found.append((int(stage.totals[row, 1]), int(stage.totals[row, 0]), choice[::-1]))
    return found


def merge(points: list[Point]) -> list[Point]:
    """The non-dominated among points, by rising energy; of equal ones the first."""
    front: list[Point] = []
    for point in sorted(points, key=lambda p: (p[0], p[1])):
        if not front or point[1] < front[-1][1]:
            front.append(point)
    return front
