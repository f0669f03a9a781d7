"""Random instances and random plans; the same seed makes the same."""

import random

from unrelated_machines.instance import Instance, Plan


def tiny(seed: int) -> Instance:
    """Two or three machines, up to six jobs: at most 729 plans. One time in three is missing in half of the seeds."""
    rng = random.Random(f"machines-tiny-{seed}")
    return _instance(rng, f"tiny_{seed}", "tiny", rng.randint(2, 3), rng.randint(2, 6), rng.choice((0.0, 0.33)))


def small(seed: int) -> Instance:
    """Five machines, twenty jobs; every machine can do every job."""
    rng = random.Random(f"machines-small-{seed}")
    return _instance(rng, f"small_{seed}", "small", 5, 20, 0.0)


def _instance(rng: random.Random, name: str, family: str, machines: int, jobs: int, missing: float) -> Instance:
    """Times from 1 to 100 ticks, equally likely; each is missing with a probability."""
    times = tuple(
        tuple(None if rng.random() < missing else rng.randint(1, 100) for _ in range(jobs)) for _ in range(machines)
    )
    return Instance(
        name=name,
        source=f"generated: family {family}",
        tags=("generated", family),
        machines=tuple(f"machine{i + 1}" for i in range(machines)),
        jobs=tuple(f"job{j + 1}" for j in range(jobs)),
        times=times,
    )


def random_plan(instance: Instance, rng: random.Random) -> Plan:
    """Any machine for every job, able or not."""
    return Plan(machines=tuple(rng.randrange(len(instance.machines)) for _ in instance.jobs))
