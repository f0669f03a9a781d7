"""Random plans of the FPGA-GPU partition, feasible and infeasible ones."""

from __future__ import annotations

import random

from mapgap.problems.fpga_gpu_partition import Instance, Plan


def random_plan(instance: Instance, rng: random.Random) -> Plan:
    """One option per layer, whatever the fabric and the limits allow.

    A plan of options drawn at random mostly exceeds the fabric; so each plan draws how many of its layers take the
    option with the fewest multipliers instead.
    """
    modest = rng.random()
    chosen = []
    for layer in instance.layers:
        small = min(layer.options, key=lambda option: (option.multipliers, option.m20k))
        chosen.append(small if rng.random() < modest else rng.choice(layer.options))
    return Plan(options=tuple(option.name for option in chosen))
