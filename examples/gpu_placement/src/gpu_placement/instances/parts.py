"""What follows from what: case splits, smaller instances, and instances whose optimum is known from another's."""

import random
from collections.abc import Iterator
from typing import TypeVar

from gpu_placement.instance import Instance
from mapgap.core import Case, Relation

T = TypeVar("T")
Pairs = tuple[tuple[int, int], ...]


def _without(row: tuple[T, ...], index: int) -> tuple[T, ...]:
    return row[:index] + row[index + 1 :]


def _moved(pairs: Pairs, place: dict[int, int]) -> Pairs:
    """Pairs of models in other places; pairs of models that have none are dropped."""
    return tuple((place[a], place[b]) for a, b in pairs if a in place and b in place)


def cases(instance: Instance) -> list[Case]:
    """Split on two models: together, or apart. Every plan of the instance is a plan of one case.

    They are the two of largest demand; empty if there is one model only.
    """
    if len(instance.models) < 2:
        return []
    a, b = sorted(range(len(instance.models)), key=lambda j: -instance.demands[j])[:2]
    found = []
    for word, change in (
        ("together", {"together": (*instance.together, (a, b))}),
        ("apart", {"apart": (*instance.apart, (a, b))}),
    ):
        label = f"{instance.models[a]} and {instance.models[b]} {word}"
        found.append(Case(label, instance.changed(name=f"{instance.name}, {label}", **change)))
    return found


def shrink(instance: Instance) -> Iterator[Instance]:
    """One model, one GPU or one pair less."""
    for j in reversed(range(len(instance.models))):
        place = {k: k - (k > j) for k in range(len(instance.models)) if k != j}
        yield from instance.if_valid(
            models=_without(instance.models, j),
            sizes=_without(instance.sizes, j),
            demands=_without(instance.demands, j),
            apart=_moved(instance.apart, place),
            together=_moved(instance.together, place),
        )
    for i in reversed(range(len(instance.gpus))):
        yield from instance.if_valid(gpus=_without(instance.gpus, i))
    for k in range(len(instance.apart)):
        yield from instance.if_valid(apart=_without(instance.apart, k))
    for k in range(len(instance.together)):
        yield from instance.if_valid(together=_without(instance.together, k))


def relations(instance: Instance, rng: random.Random) -> list[Relation]:
    """Exchange, scaling, and a GPU more.

    The order of models means nothing. With all memory and all demand twice as large every pressure is what it was. A
    plan stays a plan when there is one more GPU.
    """
    order = rng.sample(range(len(instance.models)), len(instance.models))
    place = {j: k for k, j in enumerate(order)}
    exchanged = instance.changed(
        models=tuple(instance.models[j] for j in order),
        sizes=tuple(instance.sizes[j] for j in order),
        demands=tuple(instance.demands[j] for j in order),
        apart=_moved(instance.apart, place),
        together=_moved(instance.together, place),
    )
    doubled = instance.changed(
        memory=2 * instance.memory,
        sizes=tuple(2 * size for size in instance.sizes),
        demands=tuple(2 * demand for demand in instance.demands),
    )
    more = instance.changed(gpus=(*instance.gpus, "one more"))
    return [
        Relation("models in another order", exchanged),
        Relation("all memory and all demand doubled", doubled),
        Relation("a GPU more", more, equal=False),
    ]
