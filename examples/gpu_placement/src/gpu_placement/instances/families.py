"""Random instances and random plans; the same seed makes the same."""

import random
from functools import cache

from gpu_placement.instance import Instance, Plan

UNIT = 2520
"""Demands are counted in parts of this: it is divisible by every promised latency from 1 to 10."""

Models = list[tuple[int, int, int]]
"""GB of weights, requests per time, promised latency."""


def tiny(seed: int) -> Instance:
    """Two or three small GPUs, up to six models: at most 729 plans; pairs apart and together, and a tight limit."""
    rng = random.Random(f"gpus-tiny-{seed}")
    gpus = rng.randint(2, 3)
    models = [(rng.randint(2, 9), rng.randint(1, 9), rng.randint(5, 9)) for _ in range(rng.randint(2, 6))]
    pairs = [(a, b) for a in range(len(models)) for b in range(a)]
    chosen = rng.sample(pairs, min(len(pairs), rng.choice((0, 0, 1, 2))))
    cut = rng.randint(0, len(chosen))
    instance = _instance(f"tiny_{seed}", "tiny", gpus, rng.choice((24, 40, 64)), models)
    return instance.changed(
        limit=rng.choice((10_000, 25_000, 40_000)), apart=tuple(chosen[:cut]), together=tuple(chosen[cut:])
    )


def small(seed: int) -> Instance:
    """Four to six GPUs of 80 GB, two models for each on average, drawn as those of the benchmark."""
    rng = random.Random(f"gpus-small-{seed}")
    gpus = rng.randint(4, 6)
    models = [(rng.randint(10, 29), rng.randint(1, 9), rng.randint(5, 9)) for _ in range(2 * gpus)]
    return _instance(f"small_{seed}", "small", gpus, 80, models)


def adrs(seed: int) -> Instance:
    """Instance number ``seed``, from 0 to 49, of the benchmark ADRS/prism of SkyDiscover; from 50 on they repeat."""
    gpus, models = benchmark()[seed % 50]
    return _instance(f"adrs_{seed}", "adrs", gpus, 80, models)


@cache
def benchmark() -> list[tuple[int, Models]]:
    """GPUs and models of the 50 instances, drawn as ``generate_test_gpu_models`` of its evaluator draws them.

    ``numpy.random.RandomState`` gives the same numbers in every version of NumPy.
    """
    from numpy.random import RandomState  # no other instance needs NumPy

    rng = RandomState(42)
    found = []
    for _ in range(50):
        gpus = int(rng.randint(5, 10))
        found.append((gpus, [tuple(int(rng.randint(*ends)) for ends in RANGES) for _ in range(2 * gpus)]))
    return found


RANGES = ((10, 30), (1, 10), (5, 10))
"""Weights, requests, latency; the upper end excluded."""


def _instance(name: str, family: str, gpus: int, memory: int, models: Models) -> Instance:
    """All demands are whole: r/SLO in parts of 2520."""
    return Instance(
        name=name,
        source=f"generated: family {family}",
        tags=("generated", family),
        gpus=tuple(f"gpu{i + 1}" for i in range(gpus)),
        memory=memory,
        models=tuple(f"model{j + 1}" for j in range(len(models))),
        sizes=tuple(size for size, _, _ in models),
        demands=tuple(UNIT * rate // slo for _, rate, slo in models),
    )


def random_plan(instance: Instance, rng: random.Random) -> Plan:
    """Any GPU for every model; half of the plans keep models together that must be."""
    gpus = [rng.randrange(len(instance.gpus)) for _ in instance.models]
    if rng.random() < 0.5:
        for a, b in instance.together:
            gpus[a] = gpus[b]
    return Plan(gpus=tuple(gpus))
