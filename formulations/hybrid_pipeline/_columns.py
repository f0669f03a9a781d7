"""Columns of the MIP and CP-SAT models: one per stage (layers ``[i, j)``, group, stages behind it), costs constant.

Constant costs per column matter: the latency is not monotone in E_b (a larger one lowers the AllReduce excess), so a
model with ``E_b >= ...`` would inflate it.

Proofs over columns owe nothing to the label search: what it contributes is a plan, and the evaluator says its value.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property

from formulations.hybrid_pipeline._label_python import interpreted
from formulations.hybrid_pipeline._lowered import Lowered
from formulations.hybrid_pipeline.label_dp import OPEN, Path, approach, front_bounds
from mapgap.core import Budget, PlanError
from problems.hybrid_pipeline.evaluate import evaluate

COLUMN_LIMIT = 400_000
"""Most columns a model is built of."""


@dataclass(frozen=True)
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
    """All columns that a plan of at most ``upper`` can use, and the links between them.

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


def build(low: Lowered, budget: Budget) -> Columns | None:
    """All useful columns; ``None`` when the time is over or they are too many."""
    upper, path = _known(low)
    columns: list[Column] = []
    full, n = len(low.groups) - 1, int(low.members[-1])
    for start in range(low.layers):
        for group in range(1, full + 1):
            for stop in range(start + 1, low.layers + 1):
                shortest = low.limits(start, stop, group, 0)
                if shortest is None or low.rounds * low.micro_batches * shortest[0] > upper:
                    break  # longer stages take and store more
                most = 0 if stop == low.layers else min(n - int(low.members[group]), low.layers - stop)
                least = 0 if stop == low.layers else 1
                known: dict[int, tuple[int, int, int] | None] = {low.kept(0): shortest[:3]}
                for behind in range(least, most + 1):
                    kept = low.kept(behind)
                    if kept not in known:
                        found = low.limits(start, stop, group, behind)
                        known[kept] = None if found is None else found[:3]
                    costs = known[kept]
                    if costs is None:
                        break  # more stages behind store more
                    if low.rounds * low.micro_batches * (costs[1] + costs[2]) <= upper:
                        moved = low.migration(start, stop, group)
                        ta = low.allreduce(start, stop, group)
                        columns.append(Column(start, stop, group, behind, costs[1], costs[2], ta, moved))
            if budget.exhausted or len(columns) > COLUMN_LIMIT:
                return None
    return Columns(low, _connected(columns, low), min(upper, OPEN), path)


def _known(low: Lowered) -> tuple[int, Path]:
    """A plan and the evaluator's value of it; ``OPEN`` and no stages if the search over coarse cuts finds none."""
    bounds = front_bounds(low)
    _, path, _ = approach(low, interpreted(low, bounds.both, bounds.forward, low.instance.all_devices))
    if not path:
        return OPEN, []
    found = evaluate(low.instance, low.plan(path))
    if not found.feasible or found.objective is None:
        raise PlanError(f"a plan of the label search breaks rules: {found.violations}")
    return found.objective, path


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
