"""Tiny instances with huge numbers: whole fields multiplied as far as the loader lets them, every method still right.

What methods form of the numbers (sums, products, coefficients of models) may leave 31 bits, the 53 of a floating-point
number or 63; brute force in Python's integers says what is true. A method may give up, never be wrong or fall over.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any

import pytest

from mapgap.catalogue import registry
from mapgap.contract.fuzz import certified, findings, runs
from mapgap.contract.known import tiny
from mapgap.contract.seeds import samples
from mapgap.core import LARGEST, InstanceBase, Status
from mapgap.evidence.attack import changeable

PROBLEMS = list(registry.problems())
KINDS = ("published", "baseline", "exact", "bound")
EXPONENTS = (20, 30, 40, 52)
LARGE = 2**26


def field(path: tuple[Any, ...]) -> str:
    """The field of an integer: the names on its way."""
    return ".".join(step for step in path if isinstance(step, str))


def magnified(instance: InstanceBase, rng: random.Random) -> Iterator[InstanceBase]:
    """The instance with all integers of one to three fields multiplied, each by the most that the loader accepts."""
    data = instance.to_json()
    paths = changeable(data)
    names = sorted({field(path) for path in paths})
    changed = False
    for name in rng.sample(names, min(len(names), rng.randint(1, 3))):
        factor = 2 ** rng.choice(EXPONENTS) + rng.choice((-1, 0, 1))
        while factor > 1:
            larger = json.loads(json.dumps(data))
            for path in paths:
                if field(path) == name:
                    holder = larger
                    for step in path[:-1]:
                        holder = holder[step]
                    holder[path[-1]] = min(holder[path[-1]] * factor, LARGEST)
            try:
                instance = type(instance).model_validate_json(json.dumps(larger))
            except ValueError:
                factor //= 8
                continue
            data, changed = larger, True
            break
    if changed:
        yield instance


@pytest.mark.in_turn
@pytest.mark.parametrize("sample", samples(2, 300))
@pytest.mark.parametrize("problem", PROBLEMS)
def test_every_method_is_right_however_large_the_numbers(problem: str, sample: list[int]) -> None:
    large = 0
    for seed in sample:
        for instance in magnified(tiny(problem, seed), random.Random(f"magnitudes-{seed}")):
            records = runs(instance, seed, KINDS)
            truth = records["enumerate"]  # where a number says how many there are, it may give up
            wrong = findings(problem, records) + certified(instance, truth)[1]
            assert not wrong, f"{problem} {seed}: {wrong}\n{json.dumps(instance.to_json())}"
            known = truth.status in (Status.OPTIMAL, Status.INFEASIBLE)
            large += known and max(numbers(instance.to_json())) >= LARGE
    assert large or len(sample) < 100 or problem not in registry.house(), f"no number beyond {LARGE}"


def numbers(data: Any) -> Iterator[int]:
    """All integers of plain data."""
    if isinstance(data, dict | list):
        for part in data.values() if isinstance(data, dict) else data:
            yield from numbers(part)
    elif type(data) is int:
        yield data
