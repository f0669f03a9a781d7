"""Record what converting, DFS and an exact method do on a small instance, step by step, as JSON.

    python trail.py INSTANCE

Run in a process of its own, since it loads kernels and engines. Of the two heuristics of MTrain a step is a ratio for
which they ask their mapping; of the exact method a better plan, or a stronger bound. Every plan is evaluated anew.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from typing import Any
from unittest.mock import patch

from mapgap.catalogue.files import load_instance
from mapgap.core import Budget
from mapgap.formulations.suboperation_mapping import stage_mip
from mapgap.heuristics.suboperation_mapping import mtrain
from mapgap.problems.suboperation_mapping.evaluate import evaluate, gantt

Step = dict[str, Any]


def tried(instance: Any, run: Any, **options: Any) -> Iterator[tuple[Any, Any]]:
    """The ratios that a heuristic asks its mapping for, each with the plan."""
    found = []
    mapping = mtrain.mtrain_mapping

    def listening(lowered: Any, *args: Any, **kwargs: Any) -> Any:
        mapped = mapping(lowered, *args, **kwargs)
        found.append((lowered.ratio, None if mapped is None else mapped.plan))
        return mapped

    with patch.object(mtrain, "mtrain_mapping", listening):
        run(instance, Budget(60), **options)
    yield from found


def heuristic(instance: Any, title: str, run: Any, **options: Any) -> Iterator[Step]:
    """A step per ratio."""
    best: int | None = None
    for ratio, plan in tried(instance, run, **options):
        share = "/".join(map(str, ratio))
        if plan is None:
            yield {"by": title, "best": best, "bound": None, "bars": None, "words": f"ratio {share}: nothing fits"}
            continue
        value = evaluate(instance, plan).objective
        words = f"ratio {share}: {value}" + ("" if best is None else ", better" if value < best else ", no better")
        best = value if best is None else min(value, best)
        yield {"by": title, "value": value, "best": best, "bound": None, "bars": bars(instance, plan), "words": words}


def exact(instance: Any, title: str) -> Iterator[Step]:
    """A step per announced plan or bound; what a step does not change stays as it was."""
    heard: list[tuple[Any, int | None]] = []
    result = stage_mip.run(instance, Budget(60, listener=lambda plan, bound: heard.append((plan, bound))))
    best, least, shown = None, None, None
    for plan, bound in [*heard, (None, result.bound)]:
        words = []
        if plan is not None and (best is None or evaluate(instance, plan).objective < best):
            best, shown = evaluate(instance, plan).objective, bars(instance, plan)
            words.append(f"a plan of {best}, ratio {'/'.join(map(str, plan.ratio))}")
        if bound is not None and (least is None or bound > least):
            least = bound
            words.append(f"no plan is below {least}")
        if words:
            end = ": proven optimal" if best == least else ""
            yield {"by": title, "best": best, "bound": least, "bars": shown, "words": "; ".join(words) + end}


def bars(instance: Any, plan: Any) -> list[list[Any]]:
    """``[lane, start, end, moved, phase, label]`` of every operation, in time units."""
    unit = instance.seconds_per_tick
    return [
        [lane, round(bar.start / unit), round(bar.end / unit), round(bar.transfer / unit), bar.group, bar.label]
        for lane, each in enumerate(gantt(instance, plan))
        for bar in each.bars
    ]


def trail(name: str) -> dict[str, Any]:
    """Everything that the player shows."""
    instance = load_instance(name)
    steps = [
        *heuristic(instance, "Converting", mtrain.run_converting),
        *heuristic(instance, "DFS", mtrain.run_dfs),
        *exact(instance, "The optimum"),
    ]
    return {"instance": name, "lanes": [each.name for each in instance.accelerators], "steps": steps}


if __name__ == "__main__":
    json.dump(trail(sys.argv[1]), sys.stdout)
