"""Heuristics as quick as the published ones: processor time and gap, side by side in one process.

::

    python -m mapgap.contract.entries fpga_gpu_partition --count 200

For every problem (or the named ones) the published heuristic and the entry of the house run in turn, three times each,
on instances read anew (nothing derived is kept from the run before); the least processor time of the three counts. The
gap is what is missing to the bound of an exact method, which is the optimum where that is proven; a run without a plan
misses all. Seeds on which the published heuristic finds no plan are left out.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from statistics import fmean
from typing import Any

from mapgap.catalogue import registry
from mapgap.core import Budget, InstanceBase, Method, Status
from mapgap.evidence.arena import published_method

ENTRIES = {
    "hybrid_pipeline": ("small", ("few_orders",), "label_dp"),
    "neuron_masking": ("small", ("by_objective", "uniform"), "lagrangian"),
    "fpga_gpu_partition": ("small", ("additive_greedy",), "label_setting"),
    "multi_model_splitting": ("tiny", ("first_plans",), "enumerate"),
    "suboperation_mapping": ("tiny", ("two_ratios",), "stage_mip"),
}
"""Of every problem the family, the entries, and the method whose bound is the reference."""
FIRST_SEED = 700_000
LIMIT_S = 10.0


def timed(instance: InstanceBase, methods: Sequence[Method], times: int = 3) -> list[tuple[float, int | None]]:
    """Least processor time, and the evaluator's objective, of every method; they take turns."""
    problem, text = registry.problems()[instance.problem], json.dumps(instance.to_json())
    found: list[tuple[float, int | None]] = []
    for turn in range(times):
        for k, method in enumerate(methods):
            own = problem.instance_type.model_validate_json(text)
            budget = Budget(LIMIT_S).start()
            begin = time.process_time()
            plan = method.solve(own, budget).plan
            took = time.process_time() - begin
            if turn:
                found[k] = (min(took, found[k][0]), found[k][1])
                continue
            judged = None if plan is None else problem.evaluate(instance, plan)
            found.append((took, judged.objective if judged is not None and judged.feasible else None))
    return found


def missing(value: int | None, bound: int) -> float:
    """The share that a value misses of a bound."""
    return 1.0 if value is None else 1 - min(value, bound) / max(value, bound, 1)


def _worse(value: int | None, published: int | None, sign: int) -> bool:
    return value is None or (published is not None and sign * value > sign * published)


def measured(problem: str, count: int) -> list[dict[str, Any]]:
    """One row per entry, over so many instances on which the published heuristic has a plan."""
    family, names, exact = ENTRIES[problem]
    methods = [published_method(problem), *(registry.find_method(problem, name) for name in names)]
    sign = 1 if registry.problems()[problem].sense == "min" else -1
    library, seed = registry.library(problem), FIRST_SEED
    warm = library.generate(family, FIRST_SEED - 1)  # imports and kernels, those of the exact method, too
    timed(warm, methods)
    registry.find_method(problem, exact).solve(warm, Budget(LIMIT_S).start())
    runs: list[list[tuple[float, int | None]]] = []
    bounds: list[int] = []
    seeds: list[int] = []
    proven = left_out = 0
    while len(runs) < count and left_out <= 20 * count:
        instance = library.generate(family, seed)
        seed += 1
        first = timed(instance, methods)
        if not first[0][1]:
            left_out += 1
            continue
        reference = registry.find_method(problem, exact).solve(instance, Budget(LIMIT_S).start())
        if reference.bound is None:
            raise SystemExit(f"{instance.name}: {exact} has no bound after {LIMIT_S:g} s")
        runs.append(first)
        bounds.append(reference.bound)
        seeds.append(seed - 1)
        proven += reference.status is Status.OPTIMAL
    rows = []
    for k, name in enumerate(names, 1):
        worse = [at for at, run in zip(seeds, runs, strict=True) if _worse(run[k][1], run[0][1], sign)]
        rows.append(
            {
                "problem": problem,
                "family": family,
                "published": methods[0].name,
                "entry": name,
                "instances": len(runs),
                "left_out": left_out,
                "proven_optima": proven,
                "ratio": round(sum(run[k][0] for run in runs) / sum(run[0][0] for run in runs), 3),
                "published_ms": round(1000 * fmean(run[0][0] for run in runs), 3),
                "published_gap_percent": round(
                    100 * fmean(missing(run[0][1], bound) for run, bound in zip(runs, bounds, strict=True)), 3
                ),
                "gap_percent": round(
                    100 * fmean(missing(run[k][1], bound) for run, bound in zip(runs, bounds, strict=True)), 3
                ),
                "worse": worse,
            }
        )
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description="Entries of the house against the published heuristics.")
    parser.add_argument("problems", nargs="*", metavar="problem", help="all, if none is named")
    parser.add_argument("--count", type=int, default=200)
    flags = parser.parse_args()
    for problem in flags.problems or ENTRIES:
        for row in measured(problem, flags.count):
            print(json.dumps(row), flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
