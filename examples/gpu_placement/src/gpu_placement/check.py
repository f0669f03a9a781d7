"""Check the optima of the benchmark's 50 instances without a solver: ``python check.py certificates.json``.

Standard library and exact fractions only; it imports nothing of mapgap and nothing of this package. An instance is a
number of GPUs of 80 GB and models (GB, requests, promised latency); a plan is the GPU of every model. The file claims
that a plan is optimal. Two things are recomputed:

1.  The value of the plan: the largest sum of r/SLO on a GPU over its free GB.
2.  That no plan has a smaller one. A GPU is below ``p/q`` exactly if ``q sum w < p (80 - sum s)`` with ``w = r/SLO``;
    in whole numbers, with ``w = W/2520``: models of weight ``q W + 2520 p s`` fit into a bin of ``2520 p 80 - 1``. For
    every set of models let ``f`` be the fewest bins, and of these the least full last bin. A best packing of a set ends
    with some model, so ``f(set)`` is the smallest of what each of its models makes of ``f(set without it)``: it joins
    the last bin if it fits, and opens one if not. ``f(all)`` needs more bins than there are GPUs, or there would be a
    better plan.
"""

import json
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

MEMORY, UNIT = 80, 2520

Models = list[list[int]]


def value(gpus: int, models: Models, plan: list[int]) -> Fraction:
    """The largest pressure (KVPR) of a plan.

    Raises
    ------
    ValueError
        It is no plan.
    """
    if len(plan) != len(models) or not all(type(i) is int and 0 <= i < gpus for i in plan):
        raise ValueError("expected a GPU for every model")
    worst = Fraction(0)
    for i in range(gpus):
        here = [model for model, gpu in zip(models, plan, strict=True) if gpu == i]
        free = MEMORY - sum(size for size, _, _ in here)
        if free < 1:
            raise ValueError(f"GPU {i} is full")
        worst = max(worst, sum((Fraction(rate, slo) for _, rate, slo in here), Fraction(0)) / free)
    return worst


def fewest_bins(weights: list[int], capacity: int) -> int:
    """How many bins the weights need."""
    if max(weights) > capacity:
        return len(weights) + 1
    step = capacity + 1  # bins before the last one, and the load of that, in one number: bins * step + load
    best = [0] * (1 << len(weights))
    items = [(1 << j, weight) for j, weight in enumerate(weights)]
    for chosen in range(1, len(best)):
        least = -1
        for bit, weight in items:
            if chosen & bit:
                before = best[chosen ^ bit]
                load = before % step + weight
                after = before + weight if load <= capacity else (before // step + 1) * step + weight
                if least < 0 or after < least:
                    least = after
        best[chosen] = least
    return best[-1] // step + 1


def better_plan_exists(gpus: int, models: Models, bound: Fraction) -> bool:
    """Is there a plan of a value below the bound?"""
    p, q = bound.numerator, bound.denominator
    if any(UNIT % slo for _, _, slo in models):
        raise ValueError(f"expected latencies that divide {UNIT}")
    weights = [q * (UNIT * rate // slo) + UNIT * p * size for size, rate, slo in models]
    return fewest_bins(weights, UNIT * p * MEMORY - 1) <= gpus


def checked(case: dict[str, Any]) -> Fraction:
    """The optimum of an instance of the file.

    Raises
    ------
    ValueError
        Its plan is not what the file says, or not optimal.
    """
    found = value(case["gpus"], case["models"], case["plan"])
    if found != Fraction(case["value"]):
        raise ValueError(f"instance {case['number']}: the plan is worth {found}, the file says {case['value']}")
    if better_plan_exists(case["gpus"], case["models"], found):
        raise ValueError(f"instance {case['number']}: there is a plan below {found}")
    return found


def score(values: list[Fraction]) -> Fraction:
    """What the benchmark prints for a program without failures: one over the mean of its values, and 1."""
    return 1 / (sum(values, Fraction(0)) / len(values)) + 1


def main(path: str) -> int:
    cases = json.loads(Path(path).read_text(encoding="utf-8"))["instances"]
    values = []
    for case in cases:
        try:
            values.append(checked(case))
        except ValueError as error:
            print(f"REFUSED  {error}")
    print(f"{len(values)} of {len(cases)} optima hold")
    if len(values) < len(cases):
        return 1
    print(f"largest possible score: {float(score(values)):.6f}")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
