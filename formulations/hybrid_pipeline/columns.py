"""Columns of the MIP and CP-SAT models: one per stage (layers ``[i, j)``, group, stages behind it), costs constant.

Constant costs per column matter: the latency is not monotone in E_b (a larger one lowers the AllReduce excess), so a
model with ``E_b >= ...`` would inflate it.

Proofs over columns owe nothing to the label search: what it contributes is a plan of coarse cuts, and the evaluator
says its value U. Stages that no plan below U can have are left out
(:mod:`mapgap.formulations.hybrid_pipeline.windows`), the
stages of the plan are left in: the optimum of a model over the columns is that of the instance, be it below U or U.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, get_args

import numpy as np

from mapgap.core import Budget, InputError, PlanError
from mapgap.formulations.hybrid_pipeline.label_dp import OPEN, Path, approach, front_bounds
from mapgap.formulations.hybrid_pipeline.label_python import interpreted
from mapgap.formulations.hybrid_pipeline.lowered import Array, Lowered
from mapgap.formulations.hybrid_pipeline.pricing import NEVER, stage_times
from mapgap.formulations.hybrid_pipeline.windows import Filter, Windows
from mapgap.problems.hybrid_pipeline.evaluate import evaluate

COLUMN_LIMIT = 400_000
"""Most columns a model is built of."""


@dataclass(frozen=True, order=True)
class Column:
    """A stage: layers ``[start, stop)``, group index, stages behind; its times in ticks."""

    start: int
    stop: int
    group: int
    behind: int
    forward: int
    backward: int
    allreduce: int
    migration: int

    @property
    def both(self) -> int:
        """E = E_f + E_b."""
        return self.forward + self.backward


@dataclass(frozen=True)
class Link:
    """A communication step behind a stage with ``behind`` stages behind it; ``ticks`` is c, one way.

    ``group`` and ``next`` are the groups on both sides where links differ, and 0 where they do not.
    """

    cut: int
    behind: int
    group: int
    next: int
    ticks: int


@dataclass(frozen=True)
class Columns:
    """All columns that a plan below ``upper`` can use, those of a plan of ``upper``, and the links between them.

    ``start`` is a plan of value ``upper`` (none where no plan was found before).
    """

    low: Lowered
    columns: list[Column]
    upper: int
    start: Path

    @property
    def depth(self) -> int:
        """Most stages."""
        return min(int(self.low.members[-1]), self.low.layers)

    def notes(self, budget: Budget) -> dict[str, Any]:
        """What a run says of its columns."""
        upper = self.upper if self.start else None
        return {"columns": len(self.columns), "links": len(self.links), "upper": upper, "build_s": budget.elapsed_s}

    def key(self, group: int) -> int:
        """What a link has to know of a group."""
        return 0 if self.low.uniform else group

    @cached_property
    def links(self) -> list[Link]:
        """Every (cut, stages behind, groups) that joins two columns."""
        before, after = defaultdict(set), defaultdict(set)
        for column in self.columns:
            if column.stop < self.low.layers:
                before[column.stop, column.behind].add(self.key(column.group))
            after[column.start, column.behind + 1].add(self.key(column.group))
        found = []
        for cut, behind in sorted(before.keys() & after.keys()):
            for g in sorted(before[cut, behind]):
                for h in sorted(after[cut, behind]):
                    if self.low.uniform or self.low.compatible[g, h]:
                        found.append(Link(cut, behind, g, h, self.low.link(cut, g, h)))
        return found


def build(low: Lowered, budget: Budget, keep: Filter = "front") -> Columns | None:
    """All useful columns; ``None`` when the time is over or they are too many.

    Parameters
    ----------
    keep : str
        The last test of :mod:`mapgap.formulations.hybrid_pipeline.windows` that a stage has to pass; ``none`` asks
        for no plan before and keeps every stage.

    Raises
    ------
    InputError
        No such test.
    """
    if keep not in get_args(Filter):
        raise InputError(f"keep: expected one of {', '.join(get_args(Filter))}; found {keep!r}")
    upper, path = (OPEN, []) if keep == "none" else _known(low)
    stages = list(Windows(low, upper).stages(keep))
    if sum(len(start) for _, start, _ in stages) > COLUMN_LIMIT:
        return None
    columns = {
        column
        for p, (start, stop, group) in enumerate(path)
        for column in _priced(low, group, len(path) - 1 - p, np.array([start]), np.array([stop]))
    }  # of the plan known, whatever the tests say of them
    for group, start, stop in stages:
        for behind in range(int(low.members[-1] - low.members[group]) + 1):
            here = stop == low.layers if behind == 0 else (stop < low.layers) & (stop + behind <= low.layers)
            columns.update(
                column
                for column in _priced(low, group, behind, start[here], stop[here])
                if low.rounds * (low.micro_batches * column.both + column.allreduce) + column.migration < upper
            )
        if budget.exhausted or len(columns) > COLUMN_LIMIT:
            return None
    return Columns(low, _connected(sorted(columns), low), upper, path)


def _priced(low: Lowered, group: int, behind: int, start: Array, stop: Array) -> Iterator[Column]:
    """The columns of those stages ``[start, stop)`` whose members hold what they store."""
    times = stage_times(low, start, stop, group, low.kept(behind))
    fits = times[:, 0] < NEVER
    for i, j, (forward, backward) in zip(start[fits].tolist(), stop[fits].tolist(), times[fits].tolist(), strict=True):
        allreduce, moved = low.allreduce(i, j, group), low.migration(i, j, group)
        yield Column(i, j, group, behind, forward, backward, allreduce, moved)


def _known(low: Lowered) -> tuple[int, Path]:
    """The evaluator's value of a plan, and the plan: of coarse cuts, or of one stage where that search has none.

    ``OPEN`` and no stages if no group holds the whole network either.
    """
    bounds = front_bounds(low)
    _, path, _ = approach(low, interpreted(low, bounds.both, bounds.forward, low.instance.all_devices))
    if path:
        return _value(low, path), path
    full = len(low.groups) - 1
    single: list[Path] = [
        [(0, low.layers, group)]
        for group in ((full,) if low.instance.all_devices else range(1, full + 1))
        if low.limits(0, low.layers, group, 0) is not None
    ]
    return min(((_value(low, path), path) for path in single), default=(OPEN, []))


def _value(low: Lowered, path: Path) -> int:
    found = evaluate(low.instance, low.plan(path))
    if not found.feasible or found.objective is None:
        raise PlanError(f"a plan to begin with breaks rules: {found.violations}")
    return found.objective


def _connected(columns: list[Column], low: Lowered) -> list[Column]:
    """Columns on some chain from the first layer to the last."""
    while True:
        ends = {(c.stop, c.behind) for c in columns}
        starts = {(c.start, c.behind) for c in columns}
        kept = [
            c
            for c in columns
            if (c.start == 0 or (c.start, c.behind + 1) in ends)
            and (c.stop == low.layers or (c.stop, c.behind - 1) in starts)
        ]
        if len(kept) == len(columns):
            return kept
        columns = kept
