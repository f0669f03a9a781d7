"""What follows from what: case splits, smaller instances, and instances whose optimum is known from another's."""

import random
from collections.abc import Iterator
from typing import TypeVar

from mapgap.core import Case, Relation
from unrelated_machines.instance import Instance

T = TypeVar("T")


def _without(row: tuple[T, ...], index: int) -> tuple[T, ...]:
    return row[:index] + row[index + 1 :]


def cases(instance: Instance) -> list[Case]:
    """Split on one job: on its first machine, or on another one. Every plan of the instance is a plan of one case.

    The job is the one that is longest where it is fastest, of those that have a choice; empty if none has.
    """
    free = [j for j in range(len(instance.jobs)) if len(instance.able(j)) > 1]
    if not free:
        return []
    job = max(free, key=lambda j: min(instance.time(i, j) for i in instance.able(j)))
    first, *others = instance.able(job)
    found = []
    for word, shut in (("on", others), ("not on", [first])):
        label = f"{instance.jobs[job]} {word} {instance.machines[first]}"
        times = tuple(
            tuple(None if i in shut and j == job else time for j, time in enumerate(row))
            for i, row in enumerate(instance.times)
        )
        found.append(Case(label, instance.changed(name=f"{instance.name}, {label}", times=times)))
    return found


def shrink(instance: Instance) -> Iterator[Instance]:
    """One job or one machine less."""
    for j in reversed(range(len(instance.jobs))):
        times = tuple(_without(row, j) for row in instance.times)
        yield from instance.if_valid(jobs=_without(instance.jobs, j), times=times)
    for i in reversed(range(len(instance.machines))):
        yield from instance.if_valid(machines=_without(instance.machines, i), times=_without(instance.times, i))


def relations(instance: Instance, rng: random.Random) -> list[Relation]:
    """Exchange, scaling, and a machine more.

    Names of machines mean nothing, so their order does not; three times all times are three times every makespan; a
    plan stays a plan when there is one more machine.
    """
    order = rng.sample(range(len(instance.machines)), len(instance.machines))
    exchanged = instance.changed(times=tuple(instance.times[i] for i in order))
    tripled = instance.changed(
        times=tuple(tuple(None if time is None else 3 * time for time in row) for row in instance.times)
    )
    more = instance.changed(
        machines=(*instance.machines, "one more"), times=(*instance.times, rng.choice(instance.times))
    )
    return [
        Relation("machines in another order", exchanged),
        Relation("all times tripled", tripled, factor=3),
        Relation("a machine twice", more, equal=False),
    ]
