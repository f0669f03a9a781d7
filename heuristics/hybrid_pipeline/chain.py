"""What the heuristics share: an instance seen along an order of devices, and verified results."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from mapgap.core import Budget, Finding, InputError, SolveResult, Status, Stop
from mapgap.kernels import Integer, Integers, Integers2, Integers3
from mapgap.problems.hybrid_pipeline import Instance, Plan
from mapgap.problems.hybrid_pipeline.evaluate import evaluate
from mapgap.problems.hybrid_pipeline.lowered.tables import (
    Array,
    allreduce_fraction,
    prefix_sums,
    times_before,
    transfers,
)

UNLIMITED = 2**60
Row = tuple[int, int, int, int]
"""A stage: first layer, end, first place, end along the order."""
Rows = Sequence[Row]


class Tables(NamedTuple):
    """Arrays of an instance along an order of devices; a place is a position in the order.

    Attributes
    ----------
    forward, backward, both : (N, L + 1, B + 1)
        Ticks of the layers before a cut, by place and share.
    room : (N,)
        Memory units by place; without limit for planners that overlook memory.
    state, activation, weights : (L + 1,)
        Sums over the layers before a cut: memory units, memory units per sample, bytes.
    comm : (W, L + 1)
        Ticks one way of a micro-batch across a cut, by bandwidth level.
    level : (N + 1, N + 1, N + 1)
        Bandwidth level between the places ``[a, b)`` and ``[b, c)``.
    reduce_num, reduce_den : (N + 1, N + 1)
        AllReduce ticks per weight byte inside the places ``[a, b)``, a fraction (Eq. 5).
    batch, micro_batches : int
        B and M.
    """

    forward: Integers3
    backward: Integers3
    both: Integers3
    room: Integers
    state: Integers
    activation: Integers
    weights: Integers
    comm: Integers2
    level: Integers3
    reduce_num: Integers2
    reduce_den: Integers2
    batch: Integer
    micro_batches: Integer


class Span(NamedTuple):
    """A stage that is to divide a micro-batch: layers ``[i, j)`` on the places ``[a, b)`` of the order.

    ``state`` is what its weights take of every member's memory, ``stored`` what a sample takes (Eq. 3, K_p of them).
    """

    i: Integer
    j: Integer
    a: Integer
    b: Integer
    state: Integer
    stored: Integer
    batch: Integer


@dataclass(frozen=True)
class Chain:
    """One instance along an order of devices.

    Attributes
    ----------
    instance : Instance
    order : tuple of int
        Device at each place.
    tables : Tables
    """

    instance: Instance
    order: tuple[int, ...]
    tables: Tables

    @property
    def layers(self) -> int:
        return len(self.tables.state) - 1

    def span(self, row: Row, kept: int) -> Span:
        """A stage that stores ``kept`` micro-batches."""
        t, (i, j, a, b) = self.tables, row
        stored = kept * int(t.activation[j] - t.activation[i])
        return Span(i, j, a, b, int(t.state[j] - t.state[i]), stored, t.batch)

    def allreduce(self, row: Row) -> int:
        """T_a of a stage (Eq. 5), ticks."""
        t, (i, j, a, b) = self.tables, row
        return -((-int(t.weights[j] - t.weights[i]) * int(t.reduce_num[a, b])) // int(t.reduce_den[a, b]))


def chain(
    instance: Instance,
    order: Sequence[int],
    *,
    homogeneous: bool = False,
    memory: bool = True,
    communication: bool = True,
) -> Chain:
    """The instance as a planner sees it, which may take all devices for the average one, or overlook memory or links.

    Parameters
    ----------
    instance : Instance
        With one micro-batch size.
    order : sequence of int
        Devices; those that are left out stay idle.
    homogeneous, memory, communication : bool
    """
    (batch,) = instance.micro_batch_sizes
    by_type = [times_before(kind, batch) for kind in instance.types]
    forward, backward = (np.stack([by_type[instance.devices[d].type][k] for d in order]) for k in range(2))
    if homogeneous:
        forward, backward = (
            np.repeat(t.sum(axis=0, keepdims=True) // len(order), len(order), axis=0) for t in (forward, backward)
        )
    comm, level, num, den = _links(instance, order, batch)
    if not communication:
        comm, num = np.zeros_like(comm), np.zeros_like(num)
    room = [instance.device_type(d).memory if memory else UNLIMITED for d in order]
    tables = Tables(
        forward=forward,
        backward=backward,
        both=forward + backward,
        room=np.array(room, np.int64),
        state=prefix_sums([layer.state_memory for layer in instance.layers]),
        activation=prefix_sums([layer.activation_memory for layer in instance.layers]),
        weights=prefix_sums([layer.weight_bytes for layer in instance.layers]),
        comm=comm,
        level=level,
        reduce_num=num,
        reduce_den=den,
        batch=batch,
        micro_batches=instance.mini_batch // batch,
    )
    return Chain(instance, tuple(order), tables)


def _links(instance: Instance, order: Sequence[int], batch: int) -> tuple[Array, Array, Array, Array]:
    """``comm``, ``level``, ``reduce_num`` and ``reduce_den`` of :class:`Tables`."""
    n = len(order)
    rate = [[instance.bandwidth[d][e] for e in order] for d in order]
    links = n // 2 if instance.execution.transfers == "parallel" else 1  # at most, between two groups (rule 2)
    slowest = {rate[x][y] for x in range(n) for y in range(n) if x != y} or {1}
    values = sorted({b * k for b in slowest for k in range(1, max(1, links) + 1)})
    level = np.zeros((n + 1, n + 1, n + 1), np.int64)
    num, den = np.zeros((n + 1, n + 1), np.int64), np.ones((n + 1, n + 1), np.int64)
    for a in range(n):
        for b in range(a + 1, n + 1):
            for c in range(b + 1, n + 1):
                between = min(rate[x][y] for x in range(a, b) for y in range(b, c))
                level[a, b, c] = values.index(between * max(1, min(b - a, c - b, links)))
            members = b - a
            if members > 1:
                inside = min(rate[x][y] for x in range(a, b) for y in range(a, b) if x != y)
                num[a, b], den[a, b], _ = allreduce_fraction(instance, members, inside)
    if int(num.max(initial=0)) * sum(layer.weight_bytes for layer in instance.layers) >= 2**62:
        raise InputError(Finding("expected AllReduce products below 2^62; choose rounder bandwidths", ("bandwidth",)))
    return transfers(instance, batch, values), level, num, den


def result(instance: Instance, plan: Plan | None, begin: float, finished: bool = True, **notes: Any) -> SolveResult:
    """The plan if it is feasible; otherwise UNKNOWN with what the planner overlooked, or that its time was over."""
    notes["cpu_s"] = time.process_time() - begin
    if not finished and plan is None:
        return SolveResult(Status.UNKNOWN, Stop.TIME, reason="the time was over before the first plan", notes=notes)
    found = _judged(instance, plan, notes)
    return found if finished else replace(found, stop=Stop.TIME)


def _judged(instance: Instance, plan: Plan | None, notes: dict[str, Any]) -> SolveResult:
    if plan is None:
        reason = "out of memory: the planner finds no stages that hold a micro-batch; this proves nothing about others"
        return SolveResult(Status.UNKNOWN, Stop.DONE, reason=reason, notes=notes)
    evaluation = evaluate(instance, plan)
    if evaluation.violations:
        notes["rejected_plan"] = plan.to_json()
        memory = [v for v in evaluation.violations if v.rule == "memory"]
        rules = "out of memory" if memory else "breaks the rules of the instance"
        text = "; ".join(f"{v.where}: {v.message}" for v in memory or evaluation.violations)
        return SolveResult(Status.UNKNOWN, Stop.DONE, reason=f"{rules}: {text}", notes=notes)
    return SolveResult(Status.FEASIBLE, Stop.DONE, plan, notes=notes)


def best_of(instance: Instance, outcomes: Sequence[SolveResult]) -> SolveResult:
    """The result whose plan has the smallest objective, the first one on ties or where none has a plan."""

    def objective(outcome: SolveResult) -> float:
        value = evaluate(instance, outcome.plan).objective if isinstance(outcome.plan, Plan) else None
        return math.inf if value is None else value

    return outcomes[0] if len(outcomes) == 1 else min(outcomes, key=objective)


def report(budget: Budget, outcome: SolveResult) -> SolveResult:
    """Announce the plan of a result, if any."""
    if outcome.plan is not None:
        budget.report(plan=outcome.plan)
    return outcome
