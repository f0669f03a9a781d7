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
from typing import Any

from mapgap.core import Budget, Finding, InputError, SolveResult, Status, Stop
from mapgap.formulations.hybrid_pipeline.first_plan import Engine, Path, approach
from mapgap.formulations.hybrid_pipeline.label_kernel import compiled
from mapgap.formulations.hybrid_pipeline.label_python import interpreted
from mapgap.formulations.hybrid_pipeline.lowered import Lowered, infeasible, lower
from mapgap.problems.hybrid_pipeline import Instance
from mapgap.problems.hybrid_pipeline.shared.batching import every_micro_batch
from mapgap.problems.hybrid_pipeline.shared.observe import observed
from mapgap.problems.hybrid_pipeline.shared.order import TIES, memory_order
from mapgap.problems.hybrid_pipeline.shared.replay import replayed

LONG = 400
"""Layers from which the plan before the last search is worth announcing."""

NODE_LIMIT = 2 * 10**8
"""Most nodes (position, devices, stages, head group) a search may hold."""


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
        raise InputError(Finding(f"expected auto, compiled or python; found {engine!r}", ("engine",)))
    if order not in ("free", *TIES):
        raise InputError(Finding(f"expected free, {' or '.join(TIES)}; found {order!r}", ("order",)))
    begin = time.process_time()
    fixed = order != "free"
    everyone = instance.all_devices or fixed
    low = lower(instance, memory_order(instance, order) if fixed else ())
    heads = 1 if low.uniform else len(low.groups)
    nodes = (low.layers + 1) * len(low.groups) * min(len(instance.devices), low.layers) * heads
    if nodes > NODE_LIMIT:
        return SolveResult(Status.UNKNOWN, Stop.MEMORY, reason=f"{nodes} states, at most {NODE_LIMIT} are held")
    chosen = engine
    if engine == "auto":
        chosen = "python" if overflows(low) else "compiled"
    search = compiled(low, everyone) if chosen == "compiled" else interpreted(low, everyone)
    built = time.process_time()
    value, path, counts = optimum(low, search, budget)
    notes = {"engine": chosen, **counts, "build_s": built - begin, "search_s": time.process_time() - built}
    if fixed:  # the optimum of a restriction bounds nothing
        reason = "" if path else "no plan has all devices in this order; this proves nothing about others"
        status = Status.FEASIBLE if path else Status.UNKNOWN
        return SolveResult(status, Stop.DONE, low.plan(path) if path else None, None, value, reason=reason, notes=notes)
    if value is None:
        return infeasible(instance, "memory: no cut and choice of groups holds a micro-batch", notes=notes)
    return SolveResult(Status.OPTIMAL, Stop.PROVED, low.plan(path), value, value, notes=notes)
