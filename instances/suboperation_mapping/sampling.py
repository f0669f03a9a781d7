"""Random plans, right and wrong ones, for comparing models with the evaluator."""

from __future__ import annotations

import random

import numpy as np

from mapgap.instances.drawing import sequence, shares
from mapgap.problems.suboperation_mapping import Instance, Plan
from mapgap.problems.suboperation_mapping.lowered.arrays import Lowered, lower


def random_plan(instance: Instance, rng: random.Random) -> Plan:
    """A plan of a random ratio; some lack an operation, hold one twice, or have orders that wait for each other.

    Others exceed the DRAM, where it binds.
    """
    n = len(instance.accelerators)
    ratio = shares(rng, instance.batch, n)
    lowered = lower(instance, ratio)
    location = [rng.randrange(n) for _ in range(lowered.n)]
    if rng.random() < 0.3:  # few transfers
        location = [location[0]] * lowered.n
    plan = lowered.plan(np.array(location), np.array(random_sequence(lowered, rng)))
    kind = rng.random()
    orders = [list(names) for names in plan.order]
    full = rng.choice([names for names in orders if names])
    if kind < 0.1:
        full.pop(rng.randrange(len(full)))
    elif kind < 0.2:
        rng.choice(orders).append(rng.choice(full))
    elif kind < 0.3:
        full.reverse()
    return Plan(ratio=ratio, order=tuple(tuple(names) for names in orders))


def random_sequence(lowered: Lowered, rng: random.Random) -> list[int]:
    """A random sequence of the operations that respects all precedences."""
    return sequence(rng, lowered.n, lambda operation: [int(p) for p in lowered.predecessors(operation)])
