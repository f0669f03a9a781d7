"""Instances whose optimum follows from that of a given one.

What does *not* follow: with more memory or a faster device the optimum may be worse. Shares solve Eq. (7), whose T may
then be smaller with a larger Ef + Eb (family ``small``, seed 136: twice the memory costs 2 of 855 ticks); and an
AllReduce ends ``Ta - sum Eb`` after the dominant step, so that a faster stage in front of it may move it back.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import product

from mapgap.core import Relation
from mapgap.problems.hybrid_pipeline import DeviceType, Instance

FACTOR = 3


def relations(instance: Instance, rng: random.Random) -> list[Relation]:
    """All of them are exact in whole ticks."""
    return [
        *_reordered(instance, rng),
        *_slower_clock(instance),
        *_scaled_times(instance),
        *_faster_links(instance),
        *_other_units(instance),
        *_more_freedom(instance),
    ]


def _reordered(instance: Instance, rng: random.Random) -> Iterator[Relation]:
    """The devices in another order; not after a failure, whose ties go to the lowest index (rule 11)."""
    if instance.replanning is not None:
        return
    order = rng.sample(range(len(instance.devices)), len(instance.devices))
    yield Relation(
        "devices in another order",
        instance.changed(
            devices=tuple(instance.devices[d] for d in order),
            bandwidth=tuple(tuple(instance.bandwidth[d][e] for e in order) for d in order),
        ),
    )


def _slower_clock(instance: Instance) -> Iterator[Relation]:
    """All times doubled, in ticks of twice the length: only the product of tick and bandwidth is seen."""
    if all(rate % 2 == 0 for i, row in enumerate(instance.bandwidth) for j, rate in enumerate(row) if i != j):
        halved = tuple(tuple(rate // 2 for rate in row) for row in instance.bandwidth)
        for slower in instance.if_valid(tick_ns=2 * instance.tick_ns, bandwidth=halved):
            yield Relation("links half as fast and ticks twice as long", slower)


def _faster_links(instance: Instance) -> Iterator[Relation]:
    """All links k times as fast, k whole.

    Shares and sources of a migration stay as they are, and every D falls, since it rises with each c. An AllReduce
    excess is a whole number ``Ta - C - sum Eb`` with ``C = sum c``. Because ``ceil(Ta / k) <= ceil(C / k) + ceil((Ta -
    C) / k)`` and rounding up term by term takes no less, the new ``Ta - C`` is at most the old one over k, rounded up:
    no larger where that is positive, and not positive where it was not. The excess of the first stage is never
    negative, so A does not rise, nor does the migration. (One faster link alone is not covered.)
    """
    faster = tuple(tuple(FACTOR * rate for rate in row) for row in instance.bandwidth)
    for better in instance.if_valid(bandwidth=faster):
        yield Relation("all links three times as fast", better, equal=False)


def _scaled_times(instance: Instance) -> Iterator[Relation]:
    """All times tripled, where no transfer is rounded up."""
    if not _exact(instance):
        return

    def tripled(rows: tuple[tuple[int, ...], ...]) -> tuple[tuple[int, ...], ...]:
        return tuple(tuple(FACTOR * ticks for ticks in row) for row in rows)

    types = tuple(
        DeviceType(name=kind.name, memory=kind.memory, forward=tripled(kind.forward), backward=tripled(kind.backward))
        for kind in instance.types
    )
    layers = tuple(
        layer.model_copy(
            update={"output_bytes": FACTOR * layer.output_bytes, "weight_bytes": FACTOR * layer.weight_bytes}
        )
        for layer in instance.layers
    )
    for scaled in instance.if_valid(types=types, layers=layers):
        yield Relation("all times tripled", scaled, factor=FACTOR)


def _exact(instance: Instance) -> bool:
    """Whether every transfer, AllReduce and migration takes whole ticks; sums of such bytes then do, too."""
    n = len(instance.devices)
    rates = {instance.bandwidth[i][j] for i in range(n) for j in range(i)}
    for rate, layer in product(rates, instance.layers):
        ticks = rate * instance.tick_ns
        sizes = [batch * layer.output_bytes for batch in instance.micro_batch_sizes]
        if any(size * 10**9 % ticks for size in (*sizes, layer.weight_bytes)):
            return False
        if any(2 * (m - 1) * layer.weight_bytes * 10**9 % (m * ticks) for m in range(2, n + 1)):
            return False
    return True


def _other_units(instance: Instance) -> Iterator[Relation]:
    """Memory in smaller units; bytes behind the last layer, which no cut carries."""
    types = tuple(kind.model_copy(update={"memory": 2 * kind.memory}) for kind in instance.types)
    layers = tuple(
        layer.model_copy(
            update={"state_memory": 2 * layer.state_memory, "activation_memory": 2 * layer.activation_memory}
        )
        for layer in instance.layers
    )
    for other in instance.if_valid(types=types, layers=layers):
        yield Relation("memory counted in halves", other)
    last = instance.layers[-1]
    larger = last.model_copy(update={"output_bytes": last.output_bytes + 7})
    for other in instance.if_valid(layers=(*instance.layers[:-1], larger)):
        yield Relation("more bytes behind the last layer", other)


def _more_freedom(instance: Instance) -> Iterator[Relation]:
    """Every plan stays one, with the same value, and others come in addition."""
    if instance.all_devices:
        yield Relation("devices may stay idle", instance.changed(all_devices=False), equal=False)
    elif instance.replanning is None:
        again = instance.devices[-1].model_copy(update={"name": "one more"})
        rows = [(*row, row[-1]) for row in instance.bandwidth]
        fastest = max(max(row) for row in instance.bandwidth)
        rows[-1] = (*rows[-1][:-1], fastest)
        rows.append((*rows[-1][:-2], fastest, 1))
        for larger in instance.if_valid(devices=(*instance.devices, again), bandwidth=tuple(rows)):
            yield Relation("one more device, which may stay idle", larger, equal=False)
    smaller = [b for b in range(1, max(instance.micro_batch_sizes)) if instance.mini_batch % b == 0]
    sizes = tuple(sorted({*instance.micro_batch_sizes, *smaller}))
    if sizes != instance.micro_batch_sizes:
        for freer in instance.if_valid(micro_batch_sizes=sizes):
            yield Relation("smaller micro-batches allowed", freer, equal=False)
