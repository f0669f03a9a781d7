"""Two questions that may be asked of any method besides its plan: how it is executed, and how long planning takes.

``simulate`` adds the note ``schedules``: the plan under every policy of Fig. 15(b) (right) and GPipe's order, with
half- and full-duplex links. ``repeat`` adds the note ``median_s``: the median process CPU time of so many further runs
(fewer where they take more than 10 s) in the same process, after the one whose plan is returned has loaded everything;
and ``planner_median_s``, the same of what the method itself says it needs for tables, search and plan: the run of a
heuristic contains the evaluation of its plan, that of an exact method does not.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from typing import Any, get_args

from mapgap.core import Budget, SolveResult
from mapgap.problems.hybrid_pipeline.instance import Instance, Plan
from mapgap.problems.hybrid_pipeline.simulate import Duplex, Policy, peak_memory, simulate

REPEAT_S = 10.0
"""Process CPU time after which a method is not run again, however often it was to be."""


def planner_s(result: SolveResult) -> float | None:
    """Process CPU time of tables, search and plan, from the notes of a run with one micro-batch size."""
    notes = result.notes
    if "cpu_s" in notes:
        return float(notes["cpu_s"])
    return float(notes["build_s"]) + float(notes["search_s"]) if {"build_s", "search_s"} <= notes.keys() else None


def schedules(instance: Instance, plan: Plan) -> list[dict[str, Any]]:
    """One row per policy and kind of link: ``policy``, ``duplex``, ``latency_s``, ``samples_per_s``, ``peak_memory``
    (units by device, Eq. 3 with the policy's K_p), ``fits`` (no device is above its memory)."""
    room = {device.name: instance.device_type(d).memory for d, device in enumerate(instance.devices)}
    rows = []
    for policy in get_args(Policy):
        peak = peak_memory(instance, plan, policy)
        fits = all(units <= room[name] for name, units in peak.items())
        for duplex in get_args(Duplex):
            seconds = simulate(instance, plan, policy, duplex).latency * instance.seconds_per_tick
            rows.append(
                {
                    "policy": policy,
                    "duplex": duplex,
                    "latency_s": seconds,
                    "samples_per_s": instance.mini_batch / seconds if seconds else None,
                    "peak_memory": peak,
                    "fits": fits,
                }
            )
    return rows


def observed(run: Callable[..., SolveResult]) -> Callable[..., SolveResult]:
    """Give ``run`` the options ``simulate`` and ``repeat``; without them its result is unchanged."""

    @wraps(run)
    def watched(
        instance: Instance, budget: Budget, simulate: bool = False, repeat: int = 0, **options: object
    ) -> SolveResult:
        result = run(instance, budget, **options)
        notes = dict(result.notes)
        if simulate and isinstance(result.plan, Plan):
            notes["schedules"] = schedules(instance, result.plan)
        if repeat:
            spent: list[float] = []
            planned: list[float] = []
            while len(spent) < repeat and sum(spent) < REPEAT_S and not budget.exhausted:
                begin = time.process_time()
                left = Budget(budget.remaining_s, budget.memory_mb, budget.workers, budget.seed)
                again = planner_s(run(instance, left, **options))
                spent.append(time.process_time() - begin)
                planned += [] if again is None else [again]
            notes |= {"repeated": len(spent), "median_s": statistics.median(spent) if spent else None}
            notes |= {"planner_median_s": statistics.median(planned)} if planned else {}
        return replace(result, notes=notes)

    return watched
