"""MTrain-Converting (Tang et al., MTrain, Algorithm 1): the ratio by steps of samples, each mapped by MTrain-Mapping.

The published heuristic, and where searches for plans start. What the paper leaves open is pinned in
``heuristics/suboperation_mapping/mtrain.py``.
"""

from __future__ import annotations

from typing import Any

from mapgap.core import Budget, InputError
from mapgap.heuristics.suboperation_mapping.mtrain_mapping import Effort, mtrain_mapping
from mapgap.problems.suboperation_mapping.instance import Instance
from mapgap.problems.suboperation_mapping.lowered.arrays import lower
from mapgap.problems.suboperation_mapping.lowered.mapped import Mapped
from mapgap.problems.suboperation_mapping.lowered.ratios import Ratio, pe_ratio


def mtrain_converting(
    instance: Instance,
    budget: Budget,
    step_size: int = 1,
    initial: Ratio | None = None,
    most: int | None = None,
    **mapping: Any,
) -> tuple[Mapped | None, dict[str, Any]]:
    """Algorithm 1; returns the best mapping and notes (stops early only when the time is up, or at ``most`` ratios).

    Raises
    ------
    InputError
        A step of less than one sample.
    """
    if step_size < 1:
        raise InputError(f"step_size: expected at least 1, found {step_size}")
    known: dict[Ratio, Mapped | None] = {}
    effort = Effort()

    def mapped(ratio: Ratio) -> Mapped | None:
        if ratio not in known:
            known[ratio] = mtrain_mapping(lower(instance, ratio), effort=effort, **mapping)
        return known[ratio]

    def over() -> bool:
        return budget.exhausted or (most is not None and len(known) >= most)

    ratio = pe_ratio(instance) if initial is None else initial  # steps 1-4
    best = mapped(ratio)  # step 5
    path = [ratio]
    count = len(instance.accelerators)
    w = count + 1
    improved = True
    while improved and not over():  # steps 7 and 21
        duty = best.duty_cycle if best is not None else [0.0] * count
        order = sorted(range(count), key=lambda a: (duty[a], a))  # step 8
        improved, w = False, 1  # step 9
        while w <= count and not improved and not over():
            trials = []
            for r in range(1, count + 1):  # step 10
                trial = list(ratio)
                trial[order[r - 1]] += step_size  # step 11
                trial[order[w - 1]] -= step_size  # step 12
                if r != w and trial[order[w - 1]] >= 0:
                    candidate = mapped(tuple(trial))  # steps 13-14
                    if candidate is not None:
                        trials.append(candidate)
            found = min(trials, key=lambda m: m.makespan, default=None)  # step 16
            if found is not None and (best is None or found.makespan < best.makespan):  # step 17
                best, ratio, improved = found, found.lowered.ratio, True  # step 18
                path.append(ratio)
                budget.report(plan=best.plan)
            else:
                w += 1  # step 20
    notes = {
        "ratios_mapped": len(known),
        "path": [list(r) for r in path],
        "complete": w > count,
        "ready_sets_limited": effort.limited,
    }
    return best, notes
