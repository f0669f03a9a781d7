"""What the heuristics share: an instance seen along an order of devices, stages to plans, verified results."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from mapgap.core import Budget, InputError, SolveResult, Status, Stop
from mapgap.heuristics.hybrid_pipeline import kernels
from mapgap.problems.hybrid_pipeline import Instance, Plan, Stage
from mapgap.problems.hybrid_pipeline.evaluate import evaluate

PROBLEM = "hybrid_pipeline"
ASTEROID = "Ye et al., Asteroid"
UNLIMITED = 2**60
Array = npt.NDArray[np.int64]
Rows = Sequence[tuple[int, int, int, int]]
"""Stages as (first layer, end, first place, end) along the order."""


@dataclass(frozen=True)
class Chain:
    """One instance along an order of devices.

    Attributes
    ----------
    instance : Instance
    order : tuple of int
        Device at each place.
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
    """

    instance: Instance
    order: tuple[int, ...]
    forward: Array
    backward: Array
    both: Array
    room: Array
    state: Array
    activation: Array
    weights: Array
    comm: Array
    level: Array
    reduce_num: Array
    reduce_den: Array
    batch: int
    micro_batches: int

    @property
    def layers(self) -> int:
        return len(self.state) - 1

    def planned(self, block: int, rule: int) -> tuple[Rows, int]:
        """Stages of Algorithm 2 (none where it finds no plan) and the number of stages it evaluated."""
        _, evaluated, path = kernels.plan(
            self.forward,
            self.backward,
            self.both,
            self.room,
            self.state,
            self.activation,
            self.weights,
            self.comm,
            self.level,
            self.reduce_num,
            self.reduce_den,
            self.batch,
            self.micro_batches,
            block,
            rule,
        )
        return [(int(i), int(j), int(a), int(b)) for i, j, a, b in path], int(evaluated)

    def shares(self, row: tuple[int, int, int, int], behind: int, block: int, rule: int) -> tuple[int, ...] | None:
        """Shares of a stage with ``behind`` stages after it, ``None`` where the memory is too small."""
        i, j, a, b = row
        kept = min(2 * behind + 1, self.micro_batches)
        share = np.zeros(b - a, np.int64)
        stored = kept * int(self.activation[j] - self.activation[i])
        held = int(self.state[j] - self.state[i])
        fits = kernels.allocate(self.both, self.room, i, j, a, b, held, stored, self.batch, block, rule, share)
        return tuple(share.tolist()) if fits else None

    def plan(self, rows: Rows, block: int = 1, rule: int = kernels.BALANCED) -> Plan | None:
        """The plan of stages along the order; ``None`` where one of them has no shares."""
        stages = []
        for p, row in enumerate(rows):
            shares = self.shares(row, len(rows) - 1 - p, block, rule)
            if shares is None:
                return None
            pairs = sorted(zip(self.order[row[2] : row[3]], shares, strict=True))
            stages.append(
                Stage(start=row[0], stop=row[1], devices=tuple(d for d, _ in pairs), shares=tuple(y for _, y in pairs))
            )
        return Plan(micro_batch=self.batch, stages=tuple(stages))


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
    forward, backward = (_sums_of_times(instance, order, phase, batch) for phase in ("forward", "backward"))
    if homogeneous:
        forward, backward = (
            np.repeat(t.sum(axis=0, keepdims=True) // len(order), len(order), axis=0) for t in (forward, backward)
        )
    comm, level, num, den = _links(instance, order, batch)
    if not communication:
        comm, num = np.zeros_like(comm), np.zeros_like(num)
    room = [instance.device_type(d).memory if memory else UNLIMITED for d in order]
    return Chain(
        instance=instance,
        order=tuple(order),
        forward=forward,
        backward=backward,
        both=forward + backward,
        room=np.array(room, np.int64),
        state=_sums([layer.state_memory for layer in instance.layers]),
        activation=_sums([layer.activation_memory for layer in instance.layers]),
        weights=_sums([layer.weight_bytes for layer in instance.layers]),
        comm=comm,
        level=level,
        reduce_num=num,
        reduce_den=den,
        batch=batch,
        micro_batches=instance.mini_batch // batch,
    )


def _sums(values: list[int]) -> Array:
    return np.concatenate(([0], np.cumsum(np.array(values, np.int64)))).astype(np.int64)


def _sums_of_times(instance: Instance, order: Sequence[int], phase: str, batch: int) -> Array:
    by_type = {}
    for t, kind in enumerate(instance.types):
        sums = np.zeros((len(instance.layers) + 1, batch + 1), np.int64)
        np.cumsum(np.array(getattr(kind, phase), np.int64)[:, :batch], axis=0, out=sums[1:, 1:])
        by_type[t] = sums
    return np.stack([by_type[instance.devices[d].type] for d in order])


def _links(instance: Instance, order: Sequence[int], batch: int) -> tuple[Array, Array, Array, Array]:
    """``comm``, ``level``, ``reduce_num`` and ``reduce_den`` of :class:`Chain`."""
    n = len(order)
    rate = [[instance.bandwidth[d][e] for e in order] for d in order]
    values = sorted({rate[x][y] for x in range(n) for y in range(n) if x != y}) or [1]
    sizes = [0, *(batch * layer.output_bytes for layer in instance.layers[:-1]), 0]
    comm = np.array([[instance.transfer_ticks(size, b) for size in sizes] for b in values], np.int64)
    level = np.zeros((n + 1, n + 1, n + 1), np.int64)
    num, den = np.zeros((n + 1, n + 1), np.int64), np.ones((n + 1, n + 1), np.int64)
    for a in range(n):
        for b in range(a + 1, n + 1):
            for c in range(b + 1, n + 1):
                level[a, b, c] = values.index(min(rate[x][y] for x in range(a, b) for y in range(b, c)))
            members = b - a
            if members > 1:
                slowest = min(rate[x][y] for x in range(a, b) for y in range(a, b) if x != y)
                top, bottom = 2 * (members - 1) * 10**9, members * slowest * instance.tick_ns
                shared = math.gcd(top, bottom)
                num[a, b], den[a, b] = top // shared, bottom // shared
    if int(num.max(initial=0)) * sum(layer.weight_bytes for layer in instance.layers) >= 2**62:
        raise InputError("weight_bytes, bandwidth: expected AllReduce products below 2^62; choose rounder bandwidths")
    return comm, level, num, den


def result(instance: Instance, plan: Plan | None, begin: float, **notes: Any) -> SolveResult:
    """The plan if it is feasible; otherwise UNKNOWN with what the planner overlooked."""
    notes["cpu_s"] = time.process_time() - begin
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


def report(budget: Budget, outcome: SolveResult) -> SolveResult:
    """Announce the plan of a result, if any."""
    if outcome.plan is not None:
        budget.report(plan=outcome.plan)
    return outcome
