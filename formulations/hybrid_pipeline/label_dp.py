"""Exact dynamic programme over Pareto labels: the certified optimum in milliseconds.

For a pipeline suffix let ``D`` be its largest aligned step and ``A`` its largest AllReduce excess,

    D = max_i (M E_i + sum_{j<i} E_j),    A = max_s (Ta_s - sum_{j<s} Eb_j),    latency = D + A.

Putting a stage (E, Eb, Ta) and a communication step (c each way, E_comm = 2c) before it gives

    D' = max(M E, E + 2 M c, E + 2c + D),    A' = max(Ta, A - Eb - c),

which rise with D and A. So of two suffixes with the same first layer, devices, number of stages (for the memory of
the stages before, Eq. 3) and head group (for the bandwidth; only where links differ), one that is no better in both
labels is never needed: the Pareto sets give the optimum. A failure adds a third label, ``G = max(G, migration of the
stage)``, and the objective ``R (D + A) + G``. docs/hybrid_pipeline_label_dp.md has the proofs and an example.

What makes it fast, none of which gives up exactness: devices of equal type are one class; an upper bound comes from
the same search over a coarse selection of cuts, then over the neighbourhood of its cuts; a stage with
``M T >= upper`` is never looked at (two pointers per group); devices that cannot cover the layers in front cannot be
left for them; the sums of E and E_f in front are bounded from below; the cost of a stage is computed when a label
asks for it.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mapgap.core import Budget, InputError, SolveResult, Status, Stop
from mapgap.formulations.hybrid_pipeline.label_python import Engine, interpreted
from mapgap.formulations.hybrid_pipeline.lowered import Array, Lowered, lower
from mapgap.problems.hybrid_pipeline import Instance
from mapgap.problems.hybrid_pipeline.evaluate import diagnose
from mapgap.problems.hybrid_pipeline.shared.batching import every_micro_batch
from mapgap.problems.hybrid_pipeline.shared.observe import observed
from mapgap.problems.hybrid_pipeline.shared.order import TIES, memory_order
from mapgap.problems.hybrid_pipeline.shared.replay import replayed

OPEN = 2**40
"""An upper bound above every latency."""

BLOCKS = 12
"""Merged blocks of the coarse search."""

LONG = 400
"""Layers from which the plan before the last search is worth announcing."""

NODE_LIMIT = 2 * 10**8
"""Most nodes (position, devices, stages, head group) a search may hold."""

Path = list[tuple[int, int, int]]


@dataclass(frozen=True)
class Bounds:
    """Least sums of E and of E_f of all stages in front of a layer, ``(G, L + 1)`` by the devices left for them."""

    both: Array
    forward: Array


def front_bounds(low: Lowered) -> Bounds:
    """Some member of a group of k devices takes at least ``ceil(B / k)`` samples, whichever layers it has."""
    both = np.zeros((len(low.groups), low.layers + 1), np.int64)
    forward = np.zeros_like(both)
    for table, sums in ((low.both, both), (low.forward, forward)):
        layer = np.diff(table, axis=1)  # (C, L, B + 1)
        for g in range(1, len(low.groups)):
            present = low.groups[g] > 0
            share = -(-low.batch // int(low.members[g]))
            np.cumsum(layer[present, :, share].min(axis=0), out=sums[g, 1:])
    return Bounds(both, forward)


def compiled(low: Lowered, bounds: Bounds, everyone: bool) -> Engine:
    """The search as machine code."""
    from mapgap.formulations.hybrid_pipeline.label_kernel import search

    def engine(cuts: list[int], upper: int) -> tuple[int, Path, dict[str, int]]:
        value, path, counts = search(
            low.forward,
            low.backward,
            low.both,
            low.state,
            low.activation,
            low.room,
            low.groups,
            low.batch,
            np.array(cuts, np.int64),
            low.compatible,
            low.comm,
            low.level,
            low.reduce_num,
            low.reduce_den,
            low.weights,
            low.move,
            bounds.both,
            bounds.forward,
            low.micro_batches,
            low.rounds,
            everyone,
            upper,
        )
        names = ("labels", "stage_costs", "memory_binds")
        return int(value), [tuple(row) for row in path.tolist()], dict(zip(names, counts.tolist(), strict=True))

    return engine


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


def approach(low: Lowered, engine: Engine) -> tuple[int, Path, int]:
    """An upper bound from coarse cuts, then from neighbourhoods until nothing improves.

    Returns
    -------
    (int, list of (start, stop, group), int)
        Value (``OPEN`` if no plan was found), its stages, number of searches.
    """
    coarse = coarse_cuts(low, BLOCKS)
    upper, path, searches = OPEN, [], 0
    cuts = coarse
    while len(cuts) <= low.layers:
        value, better, _ = engine(cuts, upper)
        searches += 1
        if not better:
            break
        upper, path = value, better
        cuts = around(path, coarse, low.layers)
    return upper, path, searches


def optimum(low: Lowered, engine: Engine, budget: Budget | None = None) -> tuple[int | None, Path, dict[str, Any]]:
    """The upper bound of :func:`approach`, then all cuts below it.

    Returns
    -------
    (int or None, list of (start, stop, group), dict)
        The optimum (``None`` if no plan exists), its stages, and counts: ``labels`` and ``stage_costs`` of the last
        search, ``upper`` before it, ``searches``.
    """
    upper, path, searches = approach(low, engine)
    if low.layers > LONG and path and budget is not None:
        budget.report(plan=low.plan(path))
    value, better, counts = engine(list(range(low.layers + 1)), upper)
    notes = {**counts, "upper": upper if path else None, "searches": searches + 1}
    if better:
        upper, path = value, better
    return (upper if path else None), path, notes


def overflows(low: Lowered) -> bool:
    """AllReduce products beyond 64 bits, which only the interpreted search computes."""
    return int(low.weights[-1]) * int(low.reduce_num.max(initial=0)) >= 2**62


@observed
@replayed
@every_micro_batch
def run(instance: Instance, budget: Budget, engine: str = "auto", order: str = "free") -> SolveResult:
    """The certified optimum; with an order, the best plan whose groups are runs of it and that uses every device.

    Raises
    ------
    InputError
        ``engine`` is not auto, compiled or python; ``order`` is not free, fastest_first or slowest_first.
    """
    if engine not in ("auto", "compiled", "python"):
        raise InputError(f"engine: expected auto, compiled or python; found {engine!r}")
    if order not in ("free", *TIES):
        raise InputError(f"order: expected free, {' or '.join(TIES)}; found {order!r}")
    begin = time.process_time()
    fixed = order != "free"
    everyone = instance.all_devices or fixed
    low = lower(instance, memory_order(instance, order) if fixed else ())
    bounds = front_bounds(low)
    heads = 1 if low.uniform else len(low.groups)
    nodes = (low.layers + 1) * len(low.groups) * min(len(instance.devices), low.layers) * heads
    if nodes > NODE_LIMIT:
        return SolveResult(Status.UNKNOWN, Stop.MEMORY, reason=f"{nodes} states, at most {NODE_LIMIT} are held")
    chosen = engine
    if engine == "auto":
        chosen = "python" if overflows(low) else "compiled"
    if chosen == "compiled":
        search = compiled(low, bounds, everyone)
    else:
        search = interpreted(low, bounds.both, bounds.forward, everyone)
    built = time.process_time()
    value, path, counts = optimum(low, search, budget)
    notes = {"engine": chosen, **counts, "build_s": built - begin, "search_s": time.process_time() - built}
    if fixed:  # the optimum of a restriction bounds nothing
        reason = "" if path else "no plan has all devices in this order; this proves nothing about others"
        status = Status.FEASIBLE if path else Status.UNKNOWN
        return SolveResult(status, Stop.DONE, low.plan(path) if path else None, None, value, reason=reason, notes=notes)
    if value is None:
        reason = "; ".join(diagnose(instance)) or "memory: no cut and choice of groups holds a micro-batch"
        return SolveResult(Status.INFEASIBLE, Stop.PROVED, reason=reason, notes=notes)
    return SolveResult(Status.OPTIMAL, Stop.PROVED, low.plan(path), value, value, notes=notes)
