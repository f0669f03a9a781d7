"""Columns of the MIP and CP-SAT models: one per stage (layers ``[i, j)``, group, stages behind it), costs constant.

Constant costs per column matter: the latency is not monotone in E_b (a larger one lowers the AllReduce excess), so a
model with ``E_b >= ...`` would inflate it.

Stages that no plan below a value U can have are left out (:mod:`.windows`): U is what the evaluator says of the plan to
start from, or of the best plan of one stage. The stages of that plan are left in: the optimum of a model over the
columns is that of the instance, be it below U or U.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeVar, get_args

import numpy as np

from mapgap.core import Budget, Finding, InputError, OutOfTime, PlanError, SolveResult, Status, Stop, read_start
from mapgap.formulations.hybrid_pipeline.label.first_plan import OPEN, Path
from mapgap.formulations.hybrid_pipeline.label.order_search import fluid_bound
from mapgap.formulations.hybrid_pipeline.params import Columns as Params
from mapgap.formulations.hybrid_pipeline.pricing import NEVER, stage_times
from mapgap.formulations.hybrid_pipeline.windows import Filter, Windows
from mapgap.problems.hybrid_pipeline import Instance, Plan
from mapgap.problems.hybrid_pipeline.evaluate import evaluate
from mapgap.problems.hybrid_pipeline.lowered.arrays import Lowered, infeasible, lower
from mapgap.problems.hybrid_pipeline.lowered.groups import group_count
from mapgap.problems.hybrid_pipeline.lowered.tables import Array
from mapgap.solvers.model import Model, Part, prove

V = TypeVar("V")
Node = tuple[int, int, int]
"""A cut, the stages behind the one in front of it, and what a link has to know of a group beside it."""
Sides = defaultdict[Node, list[V]]
"""Variables by node."""


@dataclass(frozen=True, order=True)
class Column:
    """A stage: layers ``[start, stop)``, group index, stages behind; its times in ticks, ``medium`` what a micro-batch
    takes of one medium for it."""

    start: int
    stop: int
    group: int
    behind: int
    forward: int
    backward: int
    allreduce: int
    migration: int
    medium: int

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

    @cached_property
    def place(self) -> dict[tuple[int, int, int, int], int]:
        """Position of the column with this (start, stop, group, behind)."""
        return {(c.start, c.stop, c.group, c.behind): k for k, c in enumerate(self.columns)}

    def used_by(self, plan: Plan) -> set[int] | None:
        """Positions of the columns that stand for a plan; ``None`` if they are not all here.

        A plan of another micro-batch size has none, nor one with other shares than those of Eq. (7), nor one that uses
        a device twice where its class has another member, whom the columns would take instead.
        """
        if plan.micro_batch != self.low.batch:
            return None
        devices = [device for stage in plan.stages for device in stage.devices]
        twice = {device for device in devices if devices.count(device) > 1}
        if any(len(members) > 1 and twice & set(members) for members in self.low.classes):
            return None
        found = set()
        for p, stage in enumerate(plan.stages):
            behind = len(plan.stages) - 1 - p
            key = self.low.stage_of(stage, behind)
            column = None if key is None else self.place.get((*key, behind))
            if column is None:
                return None
            found.add(column)
        return found

    def plan(self, used: Sequence[bool]) -> Plan:
        """The plan of the columns that are used."""
        chosen = [column for column, on in zip(self.columns, used, strict=True) if on]
        return self.low.plan([(c.start, c.stop, c.group) for c in sorted(chosen, key=lambda c: c.start)])

    @property
    def depth(self) -> int:
        """Most stages."""
        return min(int(self.low.members[-1]), self.low.layers)

    @property
    def notes(self) -> dict[str, Any]:
        """What a run says of its columns."""
        return {"columns": len(self.columns), "links": len(self.links), "upper": self.upper if self.start else None}

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
                    if self.low.uniform or self.low.compatible(g, h):
                        found.append(Link(cut, behind, g, h, self.low.link(cut, g, h)))
        return found

    def leaving(self, x: Sequence[V], z: Sequence[V]) -> tuple[Sides[V], Sides[V]]:
        """Variables of the columns that end, and of the links that leave, at every (cut, stages behind, group)."""
        ends: Sides[V] = defaultdict(list)
        out: Sides[V] = defaultdict(list)
        for variable, column in zip(x, self.columns, strict=True):
            if column.stop < self.low.layers:
                ends[column.stop, column.behind, self.key(column.group)].append(variable)
        for variable, link in zip(z, self.links, strict=True):
            out[link.cut, link.behind, link.group].append(variable)
        return ends, out

    def entering(self, x: Sequence[V], z: Sequence[V]) -> tuple[Sides[V], Sides[V]]:
        """Variables of the columns that begin behind, and of the links that enter, at every such place."""
        starts: Sides[V] = defaultdict(list)
        into: Sides[V] = defaultdict(list)
        for variable, column in zip(x, self.columns, strict=True):
            if column.start > 0:
                starts[column.start, column.behind + 1, self.key(column.group)].append(variable)
        for variable, link in zip(z, self.links, strict=True):
            into[link.cut, link.behind, link.next].append(variable)
        return starts, into


Known = tuple[int, Path]
"""The evaluator's value of a plan, and the plan; ``OPEN`` and no stages where there is none."""


def build(
    low: Lowered,
    budget: Budget,
    keep: Filter = "front",
    *,
    known: Known | None = None,
    complete: bool = False,
    params: Params = Params(),
) -> Columns | None:
    """All useful columns; ``None`` when the time is over or they are too many.

    Parameters
    ----------
    keep : str
        The last test of :mod:`mapgap.formulations.hybrid_pipeline.windows` that a stage has to pass; ``none`` asks
        for no plan before and keeps every stage on a chain.
    known : (int, list of (start, stop, group)), optional
        By default that of :func:`one_stage`.
    complete : bool
        Nothing is left out: no plan before, no test, and stages that lie on no chain are kept.

    Raises
    ------
    InputError
        No such test.
    """
    if keep not in get_args(Filter):
        raise InputError(Finding(f"expected one of {', '.join(get_args(Filter))}; found {keep!r}", ("keep",)))
    keep = "none" if complete else keep
    upper, path = known or ((OPEN, []) if keep == "none" else one_stage(low))
    try:
        stages = list(Windows(low, upper, budget).stages(keep))
    except OutOfTime:
        return None
    if sum(len(start) for _, start, _ in stages) > params.columns:
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
                if low.rounds * (low.form.factor * column.both + column.allreduce) + column.migration < upper
            )
        if budget.exhausted or len(columns) > params.columns:
            return None
    return Columns(low, sorted(columns) if complete else _connected(sorted(columns), low), upper, path)


def _priced(low: Lowered, group: int, behind: int, start: Array, stop: Array) -> Iterator[Column]:
    """The columns of those stages ``[start, stop)`` whose members hold what they store."""
    times = stage_times(low, start, stop, group, low.kept(behind))
    fits = times[:, 0] < NEVER
    for i, j, (ef, eb) in zip(start[fits].tolist(), stop[fits].tolist(), times[fits].tolist(), strict=True):
        forward, backward = low.charged(i, j, group, ef, eb)
        allreduce, moved = low.allreduce(i, j, group), low.migration(i, j, group)
        yield Column(i, j, group, behind, forward, backward, allreduce, moved, low.taken(i, j, group))


def known_plan(low: Lowered, plan: Plan | None) -> Known:
    """The evaluator's value of a plan and its stages, where columns stand for it; else :func:`one_stage`."""
    if plan is not None and plan.micro_batch == low.batch:
        count = len(plan.stages)
        rows = [low.stage_of(stage, count - 1 - p) for p, stage in enumerate(plan.stages)]
        path = [row for row in rows if row is not None]
        if len(path) == count and evaluate(low.instance, low.plan(path)).feasible:
            return _value(low, path), path
    return one_stage(low)


def one_stage(low: Lowered) -> Known:
    """The best plan of one stage; ``OPEN`` and no stages if none fits."""
    everyone, moves = low.instance.all_devices, low.moves
    groups = moves.group[: moves.first[1]].tolist()
    single: list[Path] = [
        [(0, low.layers, group)]
        for group in (groups[-1:] if everyone else groups)
        if (not everyone or low.members[group] == low.members[-1]) and low.limits(0, low.layers, group, 0) is not None
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


def prove_columns(
    instance: Instance,
    budget: Budget,
    keep: Filter,
    make: Callable[[Columns], Model],
    *,
    hint: bool,
    start: str | Plan | None,
    params: Params,
) -> SolveResult:
    """Build the columns that pass the tests up to ``keep`` and prove the model over them; UNKNOWN if they are too many.

    A bound from floating point is exact near the value that the model is shifted by. Where an engine has ended a few
    ticks below a plan of its own, it is asked again with that plan as the start.

    Parameters
    ----------
    hint : bool
        The engine begins with the plan known before. Where it has no better one, that plan is the result.
    start : plan or file, optional
        A plan known before, which leaves fewer columns; without, the best plan of one stage.
    """
    given = read_start(start, Plan, instance, evaluate)
    least = fluid_bound(lower(instance, tuple(range(len(instance.devices)))))
    budget.report(plan=given, bound=least)
    if group_count(instance) * len(instance.layers) > params.cells:
        return _without_model(instance, Stop.MEMORY, given, least)
    with budget.timed("build"):
        low = lower(instance)
        found = (OPEN, []) if keep == "none" else known_plan(low, given)
        if found[1]:
            budget.report(plan=low.plan(found[1]))
        columns = build(low, budget, keep, known=found, params=params)
    if columns is None:
        plan = low.plan(found[1]) if found[1] else None
        return _without_model(instance, Stop.TIME if budget.exhausted else Stop.MEMORY, plan, least)
    notes, otherwise = columns.notes, "memory: no chain of stages holds a micro-batch"
    if not columns.columns:
        return infeasible(instance, otherwise, notes=notes)
    known = low.plan(columns.start) if columns.start else None
    with budget.timed("build"):
        model = make(columns)
    result = prove(
        model,
        budget,
        start=known if hint else None,
        notes=notes,
        value=lambda plan: evaluate(instance, plan).objective if isinstance(plan, Plan) else None,
        known=None if known is None else columns.upper,
    )
    if result.status is Status.FEASIBLE and result.stop is Stop.DONE and result.plan not in (None, known):
        assert isinstance(result.plan, Plan)
        return prove_columns(instance, budget, keep, make, hint=hint, start=result.plan, params=params)
    if result.plan is None and known is not None:
        result = replace(result, status=Status.FEASIBLE, plan=known)
    if result.status is Status.INFEASIBLE:
        return infeasible(instance, otherwise, notes=notes)
    return result if result.bound is not None and result.bound >= least else replace(result, bound=least)


def _without_model(instance: Instance, stop: Stop, plan: Plan | None, bound: int) -> SolveResult:
    """The plan known, if any, and a bound that needs no model."""
    reason = f"{group_count(instance)} groups of devices on {len(instance.layers)} layers: too many stages to build a"
    reason += " model of" + (" in the time given" if stop is Stop.TIME else "")
    value = None if plan is None else evaluate(instance, plan).objective
    if value is None:
        return SolveResult(Status.UNKNOWN, stop, bound=bound, reason=reason)
    status = Status.OPTIMAL if value == bound else Status.FEASIBLE
    return SolveResult(status, Stop.PROVED if value == bound else stop, plan, bound, value, reason=reason)


def parts(instance: Instance, make: Callable[[Columns, Collection[int]], Model]) -> list[Part]:
    """One integer program per micro-batch size.

    A complete one is over all chains of stages, device by device: no plan before, no bound, no classes of devices.
    """

    def part(size: int) -> Part:
        def build_model(complete: bool = False, without: Collection[int] = ()) -> Model:
            low = lower(instance.with_micro_batch(size), merge=not complete)
            columns = build(low, Budget(time_s=math.inf), complete=complete)
            if columns is None:
                text = f"expected at most {Params.columns} stages to choose from, found more"
                raise InputError(Finding(text, ("layers",)))
            return make(columns, without)

        several = len(instance.micro_batch_sizes) > 1
        return Part(f"micro-batch {size}" if several else "", build_model)

    return [part(size) for size in instance.micro_batch_sizes]
