"""Brute force: every partition, every mapping, every sequence that respects the precedences.

Every plan without a cyclic wait is some sequence timed as early as possible, so nothing is missed; several sequences
may give the same plan. The winner is timed once more by the evaluator.
"""

from __future__ import annotations

import numpy as np

from mapgap.core import Budget, PlanError, SolveResult, Status, Stop
from mapgap.formulations.suboperation_mapping.params import Enumeration as Params
from mapgap.kernels import Integers, kernel
from mapgap.problems.suboperation_mapping import Instance, Plan
from mapgap.problems.suboperation_mapping.evaluate import evaluate
from mapgap.problems.suboperation_mapping.lowered.arrays import Array, Lowered, lower
from mapgap.problems.suboperation_mapping.lowered.ratios import partitions
from mapgap.problems.suboperation_mapping.lowered.timing import Storage, Timing, run_memory_excess, run_timetable

CHUNK = 256
"""Mappings between two looks at the clock."""


def count_sequences(lowered: Lowered) -> int:
    """Number of sequences that respect all precedences, by counting over closed sets; n at most 16."""
    before = _masks(lowered)
    ways = {0: 1}
    for _ in range(lowered.n):
        following: dict[int, int] = {}
        for done, number in ways.items():
            for o in range(lowered.n):
                if not done >> o & 1 and before[o] & ~done == 0:
                    following[done | 1 << o] = following.get(done | 1 << o, 0) + number
        ways = following
    return sum(ways.values())


def sequences(lowered: Lowered) -> Array:
    """``(count, n)``: all of them."""
    before = _masks(lowered)
    found: list[list[int]] = []

    def extend(prefix: list[int], done: int) -> None:
        if len(prefix) == lowered.n:
            found.append(prefix)
        for o in range(lowered.n):
            if not done >> o & 1 and before[o] & ~done == 0:
                extend([*prefix, o], done | 1 << o)

    extend([], 0)
    return np.array(found, np.int64)


def _masks(lowered: Lowered) -> list[int]:
    """Predecessors of every operation as a bit set."""
    return [sum(1 << p for p in {int(p) for p in lowered.predecessors(o)}) for o in range(lowered.n)]


@kernel("i8(Timing,Storage,i8[:,::1],i8,i8,i8,i8[::1])", Timing, Storage)
def search(timing: Timing, storage: Storage, table: Array, first: int, last: int, best: int, winner: Integers) -> int:
    """Best makespan below ``best`` over mappings ``first`` to ``last`` (digits in base N); fills ``winner``."""
    n, count = timing.compute.shape
    location = np.zeros(n, np.int64)
    start, end = np.zeros(n, np.int64), np.zeros(n, np.int64)
    for code in range(first, last):
        rest = code
        for o in range(n):
            location[o] = rest % count
            rest //= count
        for row in range(len(table)):
            run_timetable(timing, location, table[row], start, end)
            if end.max() < best and run_memory_excess(storage, location, start, end) == 0:
                best = end.max()
                winner[0], winner[1] = code, row
    return best


def run(instance: Instance, budget: Budget, params: Params = Params()) -> SolveResult:
    """Try everything; UNKNOWN with a reason if that is too much or the time runs out."""
    models = [lower(instance, ratio) for ratio in partitions(instance.batch, len(instance.accelerators))]
    largest = max(model.n for model in models)
    if largest > 16:
        return SolveResult(Status.UNKNOWN, Stop.DONE, reason=f"{largest} operations: too many plans to enumerate")
    pairs = sum(model.accelerators**model.n * count_sequences(model) for model in models)
    if pairs > params.limit or any(count_sequences(model) * model.n > params.limit // 10 for model in models):
        return SolveResult(
            Status.UNKNOWN, Stop.DONE, reason=f"{pairs} mappings and sequences, at most {params.limit} tried"
        )
    best, plan = 2**62, None
    for model in models:
        table, total, winner = sequences(model), model.accelerators**model.n, np.zeros(2, np.int64)
        for first in range(0, total, CHUNK):
            last = min(first + CHUNK, total)
            value = search(model.timing, model.storage, table, first, last, best, winner)
            if value < best:
                best, plan = int(value), _plan(model, int(winner[0]), table[winner[1]])
                budget.report(plan=plan)
            if budget.exhausted:
                return SolveResult(Status.UNKNOWN if plan is None else Status.FEASIBLE, Stop.TIME, plan=plan)
    notes = {"pairs": pairs, "ratios": len(models)}
    if plan is None:
        sizes = ", ".join(f"{a.name} {a.memory}" for a in instance.accelerators)
        reason = f"DRAM: none of {pairs} mappings and sequences fits ({sizes} units)"
        return SolveResult(Status.INFEASIBLE, Stop.PROVED, enumerated=True, reason=reason, notes=notes)
    checked = evaluate(instance, plan)
    if not checked.feasible or checked.objective != best:
        raise PlanError(f"enumeration found {best}, the evaluator {checked.objective}, {checked.violations}")
    return SolveResult(Status.OPTIMAL, Stop.PROVED, plan, best, best, enumerated=True, notes=notes)


def _plan(model: Lowered, code: int, sequence: Array) -> Plan:
    location = np.array([code // model.accelerators**o % model.accelerators for o in range(model.n)], np.int64)
    return model.plan(location, sequence)
